//! A reservation that laxity finds itself: the program is measured while it runs.
//!
//! Meanwhile it has half of each period in slots, and outside them what others leave: so it is not late for lack of a reservation, and does not get more
//! than half if it never sleeps. From one look to the next, a period apart, the kernel's count of its service is compared. Jobs as long as half a
//! period or more are not measured: the program is then as it was, and a reservation is to be named.

use laxity::{Delivery, Grade, HostError, Reservation, Service, Span};
use laxity_lab::runner::load::CALLS;
use laxity_lab::runner::proposal;
use laxity_model::analysis::devices::with_margin;
use laxity_model::enforce::slots::SUPPLY;

/// Y where none is named.
pub(super) const AUTO_PERIOD: Span = Span::from_millis(8);
/// So many undisturbed periods are measured: as many as calls of a scenario's device.
pub(super) const PERIODS: u64 = CALLS;
/// So many of one that was just started are not: it reads its files and faults its memory in, which it does not do later.
const BEGINNING: u64 = 100;
/// Nobody needs to be told of what is over sooner.
const PATIENCE: Span = Span::from_secs(2);
/// X is a multiple of this, as of what is proposed to a scenario's device.
const GRAIN: Service = proposal::GRAIN.as_full_service();

/// What a program has while it is measured.
pub(super) fn measured_with(period: Span) -> Result<Reservation, String> {
    let shortest = SUPPLY.shortest_period();
    if period < shortest {
        return Err(format!(
            "a period of {} is too short for auto, as slots of it would be mostly edges: write `auto/{}`, or more, or name a reservation",
            period.beside(shortest),
            shortest.beside(period)
        ));
    }
    let half = Service::from_nanos(period.as_nanos() / 2);
    Reservation::new(half, period).map_err(|error| error.to_string())
}

/// No less is found of any program.
pub(super) fn least(period: Span) -> Result<Reservation, HostError> {
    Reservation::new(GRAIN, period).map_err(|error| HostError::Failed(error.to_string()))
}

/// What is said when it begins to be measured, where that takes so long that one would wonder.
pub(super) fn announced(name: &str, period: Span, is_just_started: bool) -> Option<String> {
    let periods = PERIODS + if is_just_started { BEGINNING } else { 0 };
    let takes = period * periods;
    (takes > PATIENCE).then(|| {
        let beginning = match is_just_started {
            true => format!(", without its first {BEGINNING}"),
            false => String::new(),
        };
        format!(
            "{name} is measured for {} or more: {PERIODS} of its periods of {period}{beginning}; what it took is reserved then",
            rounded(takes)
        )
    })
}

/// To whole seconds.
fn rounded(takes: Span) -> Span {
    Span::from_secs(takes.as_nanos().div_ceil(1_000_000_000))
}

/// One time that the program was measured.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// What was seen of it meanwhile.
    pub(super) seen: Delivery,
    /// How firmly it had its slots meanwhile: beside strangers, not.
    pub(super) grade: Grade,
    /// Why nothing follows of it, if that is so.
    pub(super) why_not: Option<String>,
}

impl Round {
    /// Periods that were not taken, each with the reason in words.
    fn not_taken(&self) -> impl Iterator<Item = String> {
        let seen = &self.seen;
        let counted = [
            (seen.disturbed_by_halts(), "while the machine stood still"),
            (seen.disturbed_by_stops, "while laxity itself was stopped"),
            (seen.stopped, "while it was stopped"),
            (seen.unseen, "that nobody saw"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        counted.map(|(count, why)| format!("{count} {why}"))
    }

    fn words(&self) -> String {
        let seen = &self.seen;
        let left_out = seen.disturbed + seen.stopped + seen.unseen;
        let reasons: Vec<String> = self.not_taken().collect();
        let left_out = match left_out {
            0 => "none left out".to_owned(),
            count => format!("{count} left out ({})", reasons.join(", ")),
        };
        let lost = match seen.events_lost {
            0 => String::new(),
            lost => format!(", {lost} records lost"),
        };
        let grade = match self.grade.reason() {
            Some(reason) => format!(", {} ({reason})", self.grade),
            None => String::new(),
        };
        let used = self.why_not.as_ref();
        let used = used.map_or_else(String::new, |why| format!(", not used: {why}"));
        format!(
            "{} periods taken, {left_out}{lost}{grade}{used}",
            seen.periods
        )
    }
}

/// How often the program was measured and what was left out of that; `None` of one that was not.
pub(super) fn told(rounds: &[Round]) -> Option<String> {
    let not_used = rounds.iter().filter(|round| round.why_not.is_some());
    match rounds {
        [] => None,
        [only] => Some(format!("measured once: {}", only.words())),
        several => {
            let each = several.iter().enumerate();
            let each = each.map(|(number, round)| format!("{}. {}", number + 1, round.words()));
            Some(format!(
                "measured {} times, {} of them not used: {}",
                several.len(),
                not_used.count(),
                each.collect::<Vec<_>>().join("; ")
            ))
        }
    }
}

/// What follows of what was seen so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Measured {
    NotYet,
    /// It has begun, and is measured from now on.
    Begun,
    Found {
        reservation: Reservation,
        why: String,
    },
    /// More than could be seen for certain.
    TooMuch(String),
}

/// The same of a program that was just started: nothing, but when it has begun.
pub(super) fn begun(seen: &Delivery) -> Measured {
    match seen.periods {
        ..BEGINNING => Measured::NotYet,
        _ => Measured::Begun,
    }
}

/// What follows of what was seen of a program that had this meanwhile.
pub(super) fn find(seen: &Delivery, with: Reservation) -> Measured {
    if seen.periods < PERIODS {
        return Measured::NotYet;
    }
    let (most, period) = (seen.most, with.period());
    let work = with_margin(most).max(GRAIN).as_nanos();
    let service = Service::from_nanos(work.next_multiple_of(GRAIN.as_nanos()));
    let found = (service <= with.service()).then(|| Reservation::new(service, period));
    match found {
        Some(Ok(reservation)) => Measured::Found {
            reservation,
            why: format!(
                "{most}, the most in one of {} undisturbed periods, and a quarter more",
                seen.periods
            ),
        },
        _ => Measured::TooMuch(format!(
            "it took {most} in a period of {period}, of which it had no more than half for certain while it was measured: name a reservation"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(most_us: u64, periods: u64) -> Measured {
        let seen = Delivery {
            most: Service::from_micros(most_us),
            periods,
            ..Delivery::default()
        };
        find(&seen, measured_with(Span::from_millis(8)).unwrap())
    }

    #[test]
    fn the_most_and_a_quarter_more_is_proposed_if_half_was_enough_to_see_it() {
        assert_eq!(found(1_000, 999), Measured::NotYet);
        let cases = [(1_000, 1_250), (1_001, 1_300), (0, 50), (3_200, 4_000)];
        for (most_us, x_us) in cases {
            let Measured::Found { reservation, why } = found(most_us, 1_000) else {
                panic!("half was enough for {most_us}");
            };
            assert_eq!(reservation.service(), Service::from_micros(x_us));
            assert!(why.contains("1000 undisturbed"), "{why}");
        }
        assert!(matches!(found(3_201, 1_000), Measured::TooMuch(_)));
    }

    #[test]
    fn what_a_program_takes_to_begin_is_not_what_it_is_measured_by() {
        let seen = |periods| Delivery {
            most: Service::from_millis(3),
            periods,
            ..Delivery::default()
        };
        let found = [0, 99, 100].map(|periods| begun(&seen(periods)));
        use Measured::{Begun, NotYet};
        assert_eq!(found, [NotYet, NotYet, Begun]);
    }

    #[test]
    fn every_round_is_told_with_what_was_left_out_of_it_and_why() {
        let seen = Delivery {
            periods: 1_000,
            ..Delivery::default()
        };
        let quiet = Round {
            seen,
            grade: Grade::Enforced,
            why_not: None,
        };
        let disturbed = Round {
            seen: Delivery {
                disturbed: 30,
                stopped: 8,
                unseen: 5,
                events_lost: 3,
                ..seen
            },
            grade: Grade::Unenforced {
                reason: "`x` ranks above".to_owned(),
            },
            why_not: Some("it took too much".to_owned()),
        };
        assert_eq!(told(&[]), None);
        let once = "measured once: 1000 periods taken, none left out";
        assert_eq!(told(std::slice::from_ref(&quiet)).as_deref(), Some(once));
        let twice = "measured 2 times, 1 of them not used: 1. 1000 periods taken, 43 left out (30 while the machine stood still, 8 while it was stopped, 5 that nobody saw), 3 records lost, unenforced (`x` ranks above), not used: it took too much; 2. 1000 periods taken, none left out";
        assert_eq!(told(&[disturbed, quiet]).as_deref(), Some(twice));
    }

    #[test]
    fn who_would_have_to_wait_for_what_is_measured_is_told_for_how_long() {
        let told = announced("it", Span::from_millis(10), true);
        assert_eq!(
            told.as_deref(),
            Some(
                "it is measured for 11s or more: 1000 of its periods of 10ms, without its first 100; what it took is reserved then"
            )
        );
        let adopted = announced("process 7", AUTO_PERIOD, false);
        let adopted = adopted.expect("it takes long");
        assert!(adopted.contains("for 8s or more: 1000 of its periods of 8ms;"));
        assert_eq!(announced("it", Span::from_millis(1), true), None);
    }

    #[test]
    fn nothing_is_proposed_at_a_period_of_nothing_but_edges() {
        let why = measured_with(Span::from_micros(100)).unwrap_err();
        assert!(why.contains("`auto/1ms`"), "{why}");
    }
}
