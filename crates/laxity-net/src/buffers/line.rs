//! By which clients tell their driver that frames wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use laxity_model::base::stack::Stack;

/// By which clients tell their driver that frames wait.
pub(crate) struct Line {
    ready: Stack,
    listed: Box<[AtomicBool]>,
    pub(super) sent: AtomicU64,
    waker: Waker,
}

impl Line {
    pub(crate) fn new(clients: u32, waker: Waker) -> Option<Self> {
        Some(Self {
            ready: Stack::new(clients)?,
            listed: (0..clients).map(|_| AtomicBool::new(false)).collect(),
            sent: AtomicU64::new(0),
            waker,
        })
    }

    /// The driver's thread looks after this.
    pub(crate) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    pub(super) fn announce(&self, client: u32) {
        let listed = &self.listed[client as usize];
        // Where it is listed already, the driver has yet to look: SeqCst, as in the stack. Whoever lists it has the only right to push it.
        if !listed.load(Ordering::SeqCst) && !listed.swap(true, Ordering::SeqCst) {
            self.ready.push(client);
            self.wake();
        }
    }

    /// Clients that have announced something. What they announce once their number came out makes them come again.
    pub(crate) fn announced(&self) -> impl Iterator<Item = u32> {
        self.ready.take_all().inspect(|client| {
            self.listed[*client as usize].store(false, Ordering::SeqCst);
        })
    }
}
