//! A way to place tasks in which all fit, looked for to the end: for sets that no heuristic places.

use std::cell::Cell;
use std::slice;

use super::PlanError;
use super::attempt::{Answer, Member, admits, methods};
use super::effort::Effort;
use super::place::{Placing, of};
use super::processor::is_hopeless;

/// What came of it.
pub(super) enum Found {
    /// So all fit: everybody's processor.
    Way(Vec<Option<u16>>),
    /// Each way was looked at, and none does.
    None,
    /// Not each was looked at, or of some it is not known.
    Open,
}

/// A search, with what it has come upon so far.
struct Search<'a> {
    placing: &'a Placing<'a>,
    effort: Effort<'a>,
    is_open: Cell<bool>,
}

impl Placing<'_> {
    /// Tries each way to place those that are `open` beside those that have a home, as long as its effort lasts: depth first, and no further where those
    /// that are placed already do not fit, as one more never helps. Where the test hangs on who is there it may, and nothing is proved.
    pub(super) fn search(&self, homes: &[Option<u16>], open: &[usize]) -> Result<Found, PlanError> {
        let search = Search {
            placing: self,
            effort: Effort::new(self.supply, self.members.len()),
            is_open: Cell::new(false),
        };
        let mut tests = self
            .members
            .iter()
            .map(|one| methods(slice::from_ref(one), self.scheduler));
        let first = tests.next();
        let is_one_test = tests.all(|test| Some(&test) == first.as_ref());
        let mut homes = homes.to_vec();
        let can_fit = search.can_fit(&mut homes, open)?;
        if can_fit && search.place(&mut homes, open)? {
            return Ok(Found::Way(homes));
        }
        Ok(match search.is_open.get() || !is_one_test {
            true => Found::Open,
            false => Found::None,
        })
    }
}

impl Search<'_> {
    /// Whether those that have a home fit there, and each of the others does somewhere with them alone.
    fn can_fit(&self, homes: &mut [Option<u16>], open: &[usize]) -> Result<bool, PlanError> {
        for processor in 0..self.placing.processors {
            let is_free = of(processor, self.placing.members, homes).next().is_none();
            if !is_free && self.fits(processor, homes)? == Some(false) {
                return Ok(false);
            }
        }
        for index in open {
            let mut fits_nowhere = true;
            for processor in self.placing.allowed(*index) {
                homes[*index] = Some(processor);
                fits_nowhere &= self.fits(processor, homes)? == Some(false);
            }
            homes[*index] = None;
            if fits_nowhere {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn place(&self, homes: &mut [Option<u16>], open: &[usize]) -> Result<bool, PlanError> {
        let Some((first, rest)) = open.split_first() else {
            return Ok(true);
        };
        let mut was_on_a_free_one = false;
        for processor in self.placing.allowed(*first) {
            let is_free = of(processor, self.placing.members, homes).next().is_none();
            // To those that may be on any, processors with nobody are alike.
            if is_free && self.placing.are_alike() {
                if was_on_a_free_one {
                    continue;
                }
                was_on_a_free_one = true;
            }
            homes[*first] = Some(processor);
            match self.fits(processor, homes)? {
                Some(true) if self.place(homes, rest)? => return Ok(true),
                Some(_) => {}
                None => self.is_open.set(true),
            }
            if self.effort.is_spent() {
                self.is_open.set(true);
                break;
            }
        }
        homes[*first] = None;
        Ok(false)
    }

    /// Whether those on a processor are admitted there; `None` if that is not known.
    fn fits(&self, processor: u16, homes: &[Option<u16>]) -> Result<Option<bool>, PlanError> {
        let (members, scheduler) = (self.placing.members, self.placing.scheduler);
        let with: Vec<Member> = of(processor, members, homes).cloned().collect();
        let methods = methods(&with, scheduler);
        let mut is_known = true;
        for method in &methods {
            match self.effort.ask(|supply| admits(*method, &with, supply))? {
                Answer::Admits => return Ok(Some(true)),
                Answer::Refuses => {}
                Answer::TooLong | Answer::CannotTell => is_known = false,
            }
        }
        let is_refused = is_known || is_hopeless(&methods, &with, self.placing.supply);
        Ok(is_refused.then_some(false))
    }
}
