//! What is known of a reservation that is given back.

use super::*;

/// Nobody looks any more by then.
#[test]
fn that_one_of_our_threads_has_failed_is_told_when_the_watch_ends() {
    let run = Arc::new(Run::new(1, 0, Ports::default()));
    let seen = Seen::new(Grade::Enforced);
    let watch = Watch {
        run: Arc::clone(&run),
        watcher: None,
        witnesses: Vec::new(),
        seen: Arc::clone(&seen),
    };
    run.fail(HostError::CannotRun("the witness has gone".to_owned()));
    assert_eq!(seen.grade(), Grade::Enforced);
    drop(watch);
    let reason = seen.grade().reason().map(str::to_owned);
    assert!(reason.is_some_and(|why| why.contains("the witness has gone")));
}
