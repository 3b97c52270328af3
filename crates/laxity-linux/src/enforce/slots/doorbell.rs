//! How threads wake a dispatcher.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::os::futex;

/// Wakes a dispatcher before its next edge.
#[derive(Debug, Default)]
pub(crate) struct Doorbell(AtomicU32);

impl Doorbell {
    pub(crate) fn number(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn ring(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.0);
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}
