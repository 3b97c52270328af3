//! Which threads of this process are laxity's own: those that enforce and watch.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::os::sched::Tid;

fn all() -> MutexGuard<'static, BTreeSet<Tid>> {
    static ALL: Mutex<BTreeSet<Tid>> = Mutex::new(BTreeSet::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread is one of them, until this is dropped.
pub(super) struct Ours(Tid);

impl Ours {
    pub(super) fn enter() -> Self {
        let own = Tid::current();
        all().insert(own);
        Self(own)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

/// The threads of this process that are laxity's own, now.
pub(crate) fn present() -> BTreeSet<Tid> {
    all().clone()
}

/// Whether a thread of this process is laxity's own.
pub(crate) fn is_ours(thread: Tid) -> bool {
    all().contains(&thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_ours_while_it_lives() {
        let own = Tid::current();
        assert!(!is_ours(own));
        let here = Ours::enter();
        assert!(is_ours(own));
        drop(here);
        assert!(!is_ours(own));
    }
}
