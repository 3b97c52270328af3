//! A ring in memory of this process, for one thread: in virtual time, and in tests of what is done with rings.

use alloc::boxed::Box;

use super::{Control, Memory, Shape, Side};
use crate::Instant;
use crate::base::atomic::{AtomicU32, AtomicU64};
use crate::base::bell::Sleeping;

/// The memory of a ring between two who take turns. Who would wait is told at once that time is up.
#[derive(Debug)]
pub struct Here {
    control: Control,
    words: Box<[AtomicU64]>,
}

impl Here {
    /// In which nothing was sent.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let words = (0..shape.words()).map(|_| AtomicU64::new(0));
        Self {
            control: Control::default(),
            words: words.collect(),
        }
    }
}

impl Sleeping for Here {
    fn sleep(&self, _: &AtomicU32, _: u32, _: Option<Instant>) -> bool {
        false
    }

    fn wake_all(&self, _: &AtomicU32) {}
}

impl Memory for Here {
    fn control(&self) -> &Control {
        &self.control
    }

    fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    fn raise(&self, _: Side) {}
}
