//! Yes or no while a program runs: changes of reservations, and time constraints.
//!
//! [`AdmissionState`] answers what activities ask for while they run, and keeps the [`Calendar`](crate::policy::slots::Calendar) that
//! follows from its answers: tables one after the other, and unreserved time that is given away once. *Another reservation* needs another
//! table, and an instant at which that can take over without breaking anybody's promise in a window that begins before and ends after; the
//! module `mode_change` has the rule and why its search misses nothing. Of random changes among up to four reservations for which there is a
//! table, 1 in 100 finds no such instant and is refused. *A time constraint* ([`crate::TimeConstraint`]) is given what its owner's own slots
//! lack out of unreserved time, earliest deadline first, and refused if that does not suffice. Both are held against brute force in
//! `tests/it/slot_changes.rs`.

mod mode_change;
mod slack;
mod state;

pub use state::{AdmissionState, Proposal};
