//! From one interrupt of a device to the next.

use laxity_model::Instant;

/// The last two interrupts.
#[derive(Default)]
pub(super) struct Interrupts {
    before: Option<Instant>,
    last: Option<Instant>,
}

impl Interrupts {
    /// Takes the next one; returns the one before it, and since when what the machine did bears on the interval between them: a halt that
    /// delayed the one before makes it short.
    pub(super) fn take(&mut self, at: Instant) -> Option<[Instant; 2]> {
        let last = self.last.replace(at);
        let before = std::mem::replace(&mut self.before, last);
        last.map(|last| [last, before.unwrap_or(last)])
    }
}
