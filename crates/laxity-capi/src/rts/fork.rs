//! What a process becomes that is forked: one without upcalls, which may make its own. No thread but the one that forks is in it, and so no executor.

use std::cell::RefCell;
use std::sync::{MutexGuard, OnceLock};

use super::{All, all};
use crate::edge::Failure;

thread_local! {
    /// Held from before a fork until after it, so that what the child finds is whole, and nobody's.
    static HELD: RefCell<Option<MutexGuard<'static, All>>> = const { RefCell::new(None) };
}

extern "C" fn before() {
    HELD.set(Some(all()));
}

extern "C" fn after_in_parent() {
    HELD.set(None);
}

extern "C" fn after_in_child() {
    if let Some(mut held) = HELD.take() {
        // Not dropped: that would wait for a thread that is not there.
        std::mem::forget(std::mem::take(&mut *held));
    }
}

/// Has every fork from now on go by this. Called with what [`all`] gives held.
pub(super) fn guard() -> Result<(), Failure> {
    static REFUSED: OnceLock<i32> = OnceLock::new();
    // SAFETY: all three wait for nothing but a lock that nobody holds while he forks.
    let refused = || unsafe {
        libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child))
    };
    match REFUSED.get_or_init(refused) {
        0 => Ok(()),
        errno => Err(Failure::new(*errno, "no memory to guard forks".to_owned())),
    }
}
