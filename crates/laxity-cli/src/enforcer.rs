//! The enforcers, as the command line names them.

use clap::ValueEnum;

/// Who enforces a reservation.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Enforcer {
    /// Time slots: X in every window of Y.
    Slots,
    /// The kernel's `SCHED_DEADLINE`: X in every period.
    Deadline,
}
