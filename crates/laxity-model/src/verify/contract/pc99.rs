//! The limits that the PC industry set itself for driver-based modems, as a contract.

use alloc::vec;

use super::Bound::{AtLeast, AtMost};
use super::Statistic::{Maximum, Minimum};
use super::{Contract, Limit, Phase, Phases, Quantity, Subjects};

/// The timing limits of *PC 99 System Design Guide*, chapter 19, "Modems" (Intel, Microsoft, 1998), as quoted by Jones, Saroiu,
/// *Predictability Requirements of a Soft Modem*, SIGMETRICS 2001:
///
/// * interrupts are disabled for at most 100 µs (§6.2.2); what is limited here is the processor time that the interrupt handler takes;
/// * at any instant, all deferred calls queued but not yet run take at most 500 µs together (§6.2.4); a driver that queues none
///   keeps this limit, if its interrupts were seen;
/// * the interrupt period is 3 to 16 ms (§6.2.1), bound to the phases in which the card can keep it: on hook its blocks last 2.5 ms; of
///   these, to those that a run [can have](super::Evidence::phases_over);
/// * long work runs in a thread of priority 28 or above (§6.2.5): advisory, since the study found 24 to be enough.
pub fn pc99() -> Contract {
    let off_hook = || Phases::Only(vec![Phase::DIALING, Phase::TRAINING, Phase::CONNECTED]);
    Contract {
        name: "pc99".into(),
        subjects: Subjects::All,
        limits: vec![
            Limit::new(Quantity::INTERRUPT_TIME, Maximum, AtMost(100_000)).during(Phases::Each),
            Limit::new(Quantity::DEFERRED_TIME, Maximum, AtMost(500_000))
                .during(Phases::Each)
                .holds_unseen_with(Quantity::INTERRUPT_TIME),
            Limit::new(Quantity::INTERRUPT_PERIOD, Minimum, AtLeast(3_000_000)).during(off_hook()),
            Limit::new(Quantity::INTERRUPT_PERIOD, Maximum, AtMost(16_000_000)).during(off_hook()),
            Limit::new(Quantity::THREAD_PRIORITY, Minimum, AtLeast(28))
                .during(Phases::Each)
                .advisory(),
        ],
    }
}
