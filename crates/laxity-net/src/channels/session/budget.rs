//! How many first messages are looked into.

use laxity_model::nif::urgency::{Stated, StatedError, Urgency};
use laxity_model::{Instant, Span};

/// What a node spends on handshakes of whoever claims to be somebody, all neighbours together: a number a second, and some at once. What is beyond is refused, and costs a hash.
#[derive(Clone, Debug)]
pub struct Budget(Urgency);

impl Budget {
    /// So many a second, and so many at once.
    ///
    /// # Errors
    ///
    /// Either is 0.
    pub fn new(a_second: u32, at_once: u32) -> Result<Self, StatedError> {
        let stated = Stated::new(a_second, Span::from_secs(1), at_once, Span::ZERO)?;
        Ok(Self(Urgency::new(stated)))
    }

    /// Whether there is one left, which is taken then. O(1).
    pub fn take(&mut self, now: Instant) -> bool {
        let is_left = self.0.keeps(now, 1);
        if is_left {
            self.0.arrived(now, 1);
        }
        is_left
    }
}
