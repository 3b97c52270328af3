//! Who is let loose of its processor when a run is over.

use std::sync::mpsc;

use super::*;
use crate::doctor::rights;

impl Run {
    /// One of a single activity that ended then.
    pub(crate) fn that_ended(at: Instant) -> Self {
        let run = Self::new(1, 0, Ports::default());
        run.ended_ns.store(at.as_nanos(), Ordering::SeqCst);
        run
    }
}

/// Lets a thread of a run loose that has ended itself or not, and says whether who has its number, and had one processor, may run on others then.
fn is_loose(run: Run, has_ended: bool) -> bool {
    let (tell, told) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let pinned = thread::spawn(move || {
        let cpus = sched::affinity(Tid::current()).expect("its own");
        sched::pin(cpus.iter().next().expect("it runs somewhere")).expect("its own");
        tell.send(Tid::current()).expect("somebody waits");
        ends.recv().ok()
    });
    let tid = told.recv().expect("it has begun");
    let ended = thread::spawn(|| None);
    while !ended.is_finished() {
        thread::yield_now();
    }
    let (handle, other) = match has_ended {
        true => (ended, pinned),
        false => (pinned, ended),
    };
    let tid_of = Arc::new(AtomicI32::new(tid.0));
    let one: Thread<()> = Thread {
        handle,
        tid: tid_of,
        run: Arc::new(run),
    };
    one.let_loose();
    let cpus = sched::affinity(tid).expect("it waits");
    drop(end);
    for handle in [one.handle, other] {
        handle.join().expect("it ends");
    }
    cpus.iter().count() > 1
}

#[test]
fn who_works_on_long_after_its_run_is_let_loose_and_nobody_else() {
    let all = sched::affinity(Tid::current()).expect("its own");
    if all.iter().count() < 2 {
        return rights::skip("there is one processor for all");
    }
    let long_ago = || Run::that_ended(Instant::from_nanos(1));
    assert!(is_loose(long_ago(), false));
    assert!(
        !is_loose(Run::that_ended(clock::now()), false),
        "it has only just ended"
    );
    let under_way = Run::new(1, 0, Ports::default());
    assert!(!is_loose(under_way, false));
    assert!(!is_loose(long_ago(), true), "the number is a stranger's");
}
