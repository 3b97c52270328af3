//! What to propose where one reservation is open, or several that take part of the same processor: none of them comes first, so that what is
//! found does not depend on the order in which a file names them.
//!
//! What each would need by itself is where the search begins. From there on a combination is looked at after all that take less of the
//! processor; where it leaves somebody unserved, what comes next for one of those is tried, and where it is refused, what comes next for one that
//! can be proposed another period. What is found is then made less, a grain at a time, as long as that still serves all: slots between those
//! of others may give more than is asked for. So it is the least, with what is proposed to the others as it is: a grain less does not do.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use laxity_model::Reservation;
use laxity_model::analysis::devices::Open;

use super::proposal::{GRAIN, is_sensible};

/// So many combinations are looked at.
const MOST_LOOKS: usize = 256;

/// What may be proposed to one, what is preferred first.
pub(crate) struct Choice {
    open: Open,
    /// What would do if nobody else were there.
    alone: Vec<Reservation>,
}

/// What becomes of a combination.
pub(crate) enum Outcome {
    /// It is not granted.
    Refused,
    /// These are not served by it.
    Unserved(Vec<usize>),
    /// It does.
    Served,
}

/// That there is no combination that does.
pub(crate) struct Nothing {
    /// Whether some that might do were not looked at.
    pub(crate) is_cut_short: bool,
}

impl Choice {
    /// Of what would do if nobody else were there; it makes no sense to ask for some of that.
    pub(crate) fn new(open: Open, mut alone: Vec<Reservation>) -> Self {
        alone.retain(|one| is_sensible(*one));
        Self { open, alone }
    }

    /// What is preferred to all others.
    pub(crate) fn first(&self) -> Option<Reservation> {
        self.alone.first().copied()
    }

    /// Where only X is open, more and more of it.
    fn at(&self, place: usize) -> Option<Reservation> {
        match self.open {
            Open::Service(_) => {
                let more = GRAIN.as_full_service().checked_mul(place as u64)?;
                let least = self.first()?;
                let service = least.service().checked_add(more)?;
                let found = Reservation::new(service, least.period()).ok();
                found.filter(|found| is_sensible(*found))
            }
            Open::Period(_) | Open::Both => self.alone.get(place).copied(),
        }
    }

    /// A grain less, of one whose X is open.
    fn less(&self, than: Reservation) -> Option<Reservation> {
        let service = than.service().saturating_sub(GRAIN.as_full_service());
        let less = Reservation::new(service, than.period()).ok();
        less.filter(|_| !matches!(self.open, Open::Period(_)))
    }

    /// Whether it can be something else than more at the same period.
    const fn moves(&self) -> bool {
        !matches!(self.open, Open::Service(_))
    }
}

/// One for each, by what becomes of them all: in the order of the choices.
pub(crate) fn find(
    choices: &[&Choice],
    judge: impl FnMut(&[Reservation]) -> Outcome,
) -> Result<Vec<Reservation>, Nothing> {
    let mut search = Search {
        choices,
        judge,
        looks: 0,
    };
    let found = search.first().ok_or(Nothing {
        is_cut_short: search.looks == MOST_LOOKS,
    })?;
    Ok(search.lowered(found))
}

struct Search<'a, J> {
    choices: &'a [&'a Choice],
    judge: J,
    looks: usize,
}

impl<J: FnMut(&[Reservation]) -> Outcome> Search<'_, J> {
    /// `None` where no more is looked at.
    fn look(&mut self, asked: &[Reservation]) -> Option<Outcome> {
        if self.looks == MOST_LOOKS {
            return None;
        }
        self.looks += 1;
        Some((self.judge)(asked))
    }

    /// The places of a combination, after what it takes of the processor.
    fn of(&self, places: Vec<usize>) -> Option<(u64, Vec<usize>, Vec<Reservation>)> {
        let asked = self.choices.iter().zip(&places);
        let asked: Option<Vec<_>> = asked.map(|(choice, place)| choice.at(*place)).collect();
        let asked = asked?;
        let taken = asked.iter().map(|one| one.share_ppm()).sum();
        Some((taken, places, asked))
    }

    /// The first that does.
    fn first(&mut self) -> Option<Vec<Reservation>> {
        let begin = self.of(vec![0; self.choices.len()])?;
        let (mut known, mut next) = (BTreeSet::new(), BinaryHeap::from([Reverse(begin)]));
        while let Some(Reverse((_, places, asked))) = next.pop() {
            let moving = match self.look(&asked)? {
                Outcome::Served => return Some(asked),
                Outcome::Unserved(who) => who,
                Outcome::Refused => {
                    let all = 0..self.choices.len();
                    all.filter(|one| self.choices[*one].moves()).collect()
                }
            };
            for one in moving {
                let mut places = places.clone();
                places[one] += 1;
                if known.insert(places.clone()) {
                    next.extend(self.of(places).map(Reverse));
                }
            }
        }
        None
    }

    /// What of each a grain less still does, until nothing does.
    fn lowered(&mut self, mut asked: Vec<Reservation>) -> Vec<Reservation> {
        let mut one = 0;
        while one < asked.len() {
            let before = asked[one];
            let Some(less) = self.choices[one].less(before) else {
                one += 1;
                continue;
            };
            asked[one] = less;
            match self.look(&asked) {
                // What others have may be less now.
                Some(Outcome::Served) => one = 0,
                _ => {
                    asked[one] = before;
                    one += 1;
                }
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Service, Span};
    use proptest::prelude::*;

    use super::*;

    fn grains(count: u64, period_ms: u64) -> Reservation {
        let service = Service::from_nanos(count * GRAIN.as_nanos());
        Reservation::new(service, Span::from_millis(period_ms)).expect("no more than a processor")
    }

    fn in_grains(reservation: Reservation) -> u64 {
        reservation.service().as_nanos() / GRAIN.as_nanos()
    }

    fn of_service(least: u64) -> Choice {
        Choice::new(Open::Service(Span::from_millis(8)), vec![grains(least, 8)])
    }

    proptest! {
        /// What a table gives does not grow with what is asked for: anything may do and anything may not.
        #[test]
        fn what_is_found_does_and_a_grain_less_of_any_does_not(
            least in prop::collection::vec(1_u64..20, 1..4),
            doing in prop::collection::vec(any::<bool>(), 97),
            most in 20_u64..120,
        ) {
            let choices: Vec<Choice> = least.iter().map(|least| of_service(*least)).collect();
            let judge = |asked: &[Reservation]| {
                let all = asked.iter().map(|one| in_grains(*one));
                let key = all.clone().fold(0, |key, one| key * 31 + one) % 97;
                if all.sum::<u64>() > most {
                    Outcome::Refused
                } else if doing[usize::try_from(key).unwrap()] {
                    Outcome::Served
                } else {
                    Outcome::Unserved((0..asked.len()).collect())
                }
            };
            let choices: Vec<&Choice> = choices.iter().collect();
            let Ok(found) = find(&choices, judge) else { return Ok(()); };
            prop_assert!(matches!(judge(&found), Outcome::Served));
            for one in 0..found.len() {
                let mut less = found.clone();
                if let Some(found) = choices[one].less(found[one]) {
                    less[one] = found;
                    prop_assert!(!matches!(judge(&less), Outcome::Served), "{less:?}");
                }
            }
        }
    }

    #[test]
    fn who_is_served_already_gets_no_more() {
        let choices = [of_service(10), of_service(20)];
        let judge = |asked: &[Reservation]| match in_grains(asked[1]) {
            23.. => Outcome::Served,
            _ => Outcome::Unserved(vec![1]),
        };
        let found = find(&[&choices[0], &choices[1]], judge).ok();
        // What the first needs is found by the judge too, which never asks for it.
        assert_eq!(found, Some(vec![grains(1, 8), grains(23, 8)]));
    }

    #[test]
    fn what_is_refused_is_tried_at_another_period_and_not_with_more() {
        let alone = vec![grains(10, 8), grains(6, 4), grains(4, 2)];
        let both = Choice::new(Open::Both, alone);
        let mut looks = 0;
        let is_of_2 = |asked: &[Reservation]| asked[0].period() == Span::from_millis(2);
        let found = find(&[&both], |asked| {
            looks += 1;
            match is_of_2(asked) && in_grains(asked[0]) == 4 {
                true => Outcome::Served,
                false => Outcome::Refused,
            }
        });
        assert_eq!((found.ok(), looks), (Some(vec![grains(4, 2)]), 4));
        let nothing = find(&[&of_service(10)], |_| Outcome::Refused).err();
        assert!(nothing.is_some_and(|nothing| !nothing.is_cut_short));
    }

    #[test]
    fn a_search_that_finds_nothing_ends_and_says_so() {
        let choices = [of_service(1), of_service(1), of_service(1)];
        let all: Vec<&Choice> = choices.iter().collect();
        let mut looks = 0;
        let nothing = find(&all, |_| {
            looks += 1;
            Outcome::Unserved(vec![0, 1, 2])
        });
        assert!(nothing.is_err_and(|nothing| nothing.is_cut_short));
        assert_eq!(looks, MOST_LOOKS);
    }
}
