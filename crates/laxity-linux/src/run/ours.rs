//! Which threads of this process are laxity's own: those that enforce and watch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::os::fork::PerProcess;
use crate::os::sched::Tid;

/// Each, and whether it has done all that it does: until it is gone it keeps its rank.
fn all() -> MutexGuard<'static, BTreeMap<Tid, bool>> {
    static ALL: PerProcess<Mutex<BTreeMap<Tid, bool>>> = PerProcess::new(|_| Mutex::default());
    let mut all = ALL.get().lock().unwrap_or_else(PoisonError::into_inner);
    let lives = |thread: &Tid| Path::new(&format!("/proc/self/task/{thread}")).exists();
    all.retain(|thread, has_done| !*has_done || lives(thread));
    all
}

/// The calling thread is one of them until it ends, which it does soon after this is dropped.
pub(crate) struct Ours(Tid);

impl Ours {
    pub(crate) fn enter() -> Self {
        let own = Tid::current();
        all().insert(own, false);
        Self(own)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        all().insert(self.0, true);
    }
}

/// The threads of this process that are laxity's own, now.
pub(crate) fn present() -> BTreeSet<Tid> {
    all().keys().copied().collect()
}

/// Whether a thread of this process is laxity's own.
pub(crate) fn is_ours(thread: Tid) -> bool {
    all().contains_key(&thread)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_is_ours_while_it_lives() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = Tid::current();
            tell.send((own, is_ours(own))).unwrap();
            let here = Ours::enter();
            tell.send((own, is_ours(own))).unwrap();
            drop(here);
            tell.send((own, is_ours(own))).unwrap();
            // It has done all that it does, and is still there.
            ended.recv().unwrap_err();
        });
        let seen: Vec<(Tid, bool)> = (0..3).map(|_| told.recv().unwrap()).collect();
        let own = seen[0].0;
        assert_eq!(seen, [(own, false), (own, true), (own, true)]);
        assert!(is_ours(own) && present().contains(&own));
        drop(end);
        thread.join().unwrap();
        // A joined thread may be on its way out of the kernel for a moment.
        while Path::new(&format!("/proc/self/task/{own}")).exists() {
            std::thread::yield_now();
        }
        assert!(!is_ours(own) && !present().contains(&own));
    }
}
