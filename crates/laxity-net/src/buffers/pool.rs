//! A client's own pool of buffers (§2).

use std::sync::Arc;

use laxity_model::Instant;
use laxity_model::nif::exchange::Census;
use laxity_model::nif::link::Memory;

use super::buffer::{Buffer, Empty, Unavailable};
use super::shared::Shared;

/// How many buffers a pool has at first, and how many it may grow to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSize {
    /// At first.
    pub buffers: u32,
    /// At the most; no fewer than at first, and fewer than 2²⁴.
    pub most: u32,
}

impl PoolSize {
    /// A pool has fewer.
    pub(crate) const END: u32 = 1 << 24;

    /// So many, and never more.
    #[must_use]
    pub const fn fixed(buffers: u32) -> Self {
        Self {
            buffers,
            most: buffers,
        }
    }
}

/// The buffers of one client, and of nobody else. Any thread may have it.
pub struct Pool<M: Memory>(pub(crate) Arc<Shared<M>>);

impl<M: Memory> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Memory> Pool<M> {
    /// An empty buffer. Never waits.
    ///
    /// # Errors
    ///
    /// [`Unavailable::NoneFree`] or [`Unavailable::Closed`].
    pub fn take(&self) -> Result<Buffer<M, Empty>, Unavailable> {
        self.0.take().map(Buffer::empty)
    }

    /// An empty buffer, waiting until one is free, no longer than until then. Whatever becomes free wakes whoever waits.
    ///
    /// # Errors
    ///
    /// [`Unavailable::NoneFree`] if time is up, or [`Unavailable::Closed`].
    pub fn wait(&self, until: Option<Instant>) -> Result<Buffer<M, Empty>, Unavailable> {
        let waited = self.0.wait(until, || match self.take() {
            Err(Unavailable::NoneFree) => None,
            other => Some(other),
        });
        waited.unwrap_or(Err(Unavailable::NoneFree))
    }

    /// Gives up to so many of those that are free to the driver, and tells how many that were. Never waits.
    pub fn give(&self, most: u32) -> u32 {
        let free = |_: &u32| self.0.give_free().is_some();
        let given = (0..most).take_while(free).count();
        // No more than `most`.
        given as u32
    }

    /// Tells the driver of what was sent quietly.
    pub(crate) fn announce(&self) {
        self.0.announce();
    }

    /// So many buffers leave: those that are free at once, others as they come home. A pool grows
    /// [at its driver](crate::Driver::grow), which has the memory.
    pub fn shrink(&self, buffers: u32) {
        self.0.shrink(buffers);
    }

    /// No packet is received any more; what was given comes home. The driver is to be [told](crate::Driver::unregister), too.
    pub fn close(&self) {
        self.0.close();
    }

    /// Where its buffers are. Exact while nobody moves one. O(the most that it may have).
    #[must_use]
    pub fn census(&self) -> Census {
        self.0.census()
    }
}
