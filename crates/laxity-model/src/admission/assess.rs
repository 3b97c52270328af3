//! What each enforcer can make of each request.

use alloc::vec::Vec;

use super::deadline::Book;
use super::slots::{Claim, Processor};
use super::{RequestAdmission, SlotPlan, Supply};
use crate::policy::slots::Effort;
use crate::{Enforcer, Program};

/// The slots granted, and what was found of every request of a program that was checked; advice for as much effort as is left.
pub(super) fn assess(
    program: &Program,
    supply: &Supply,
    effort: &mut Effort,
) -> (Vec<SlotPlan>, Vec<RequestAdmission>) {
    let book = book(program, supply);
    let here = usize::from(program.processors);
    let processors: Vec<Processor<'_>> = supply.processors[..here]
        .iter()
        .map(|processor| {
            let askers = program
                .askers(Enforcer::Slots)
                .filter(|(_, activity, _)| activity.processor == processor.processor);
            let claims: Vec<Claim> = askers.map(|(id, _, asked)| (id, asked)).collect();
            Processor::new(processor, program, claims, effort)
        })
        .collect();
    let requests = program.numbered().filter_map(|(id, activity)| {
        let request = activity.reservation?;
        let mut by = |enforcer| match enforcer {
            Enforcer::Deadline => book.assess(id, request.reservation),
            Enforcer::Slots => {
                processors[activity.processor.index()].assess(id, request.reservation, effort)
            }
        };
        Some(RequestAdmission {
            activity: id,
            asked: by(request.enforcer),
            other: by(request.enforcer.other()),
        })
    });
    let requests = requests.collect();
    let slots = processors.into_iter().filter_map(Processor::into_plan);
    (slots.collect(), requests)
}

/// The deadline reservations that are granted, in order.
fn book<'a>(program: &Program, supply: &'a Supply) -> Book<'a> {
    let mut book = Book {
        supply: &supply.deadline,
        granted: Vec::new(),
    };
    for (id, _, asked) in program.askers(Enforcer::Deadline) {
        if book.assess(id, asked).is_ok() {
            book.granted.push((id, asked));
        }
    }
    book
}
