//! Who takes from the holder of slots before anybody has looked at that, and what is known of a holder at which nobody looked.

use super::*;
use crate::doctor::rights::{self, Right};
use crate::host::sighting::worker::Worker;

fn first_processor() -> usize {
    let usable = sched::affinity(Tid::current()).unwrap();
    usable.iter().next().unwrap()
}

/// A watcher of slots there that begins now: nobody was looked at yet.
fn beginning(seen: &Arc<Seen>, cpu: usize, is_holders: IsHolders) -> (Watcher, [Producer; 2]) {
    let (mut watcher, rings) = by_slots(seen, clock::now());
    watcher.lookout = Lookout::begin(vec![cpu], |thread| is_above(thread, cpu, &is_holders));
    watcher.start.slots_on = Some(cpu);
    watcher.start.witnessed = vec![cpu];
    watcher.start.is_holders = is_holders;
    (watcher, rings)
}

/// Of a long period the first look at the holder comes late: who was there at the start, took what it wanted and left is known by then.
#[test]
fn who_takes_before_the_first_look_at_the_holder_is_named() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let cpu = first_processor();
    let stranger = Worker::ranked(Policy::Fifo(90), cpu);
    let named = format!(
        "{} of process {} (SCHED_FIFO priority 90), there from the start",
        stranger.name(),
        std::process::id()
    );
    let seen = Seen::new(Grade::Enforced);
    let (mut watcher, _rings) = beginning(&seen, cpu, Box::new(|_| false));
    let run = Run::new(1, 0, Ports::default());
    watcher.look_out(&run);
    stranger.work();
    watcher.look_out(&run);
    stranger.end();
    watcher.look_out(&run);
    watcher.look(false);
    let grade = seen.grade();
    let told = grade.reason().unwrap_or_default();
    assert_eq!(grade.rank(), unenforced().rank(), "{grade:?}");
    assert!(told.contains(&named), "{told}");
}

fn unenforced() -> Grade {
    let reason = String::new();
    Grade::Unenforced { reason }
}

/// All that it ever had was before the start. And who is placed meanwhile is the holder, and none of these.
#[test]
fn who_could_have_taken_and_slept_is_there_from_the_start_and_not_named() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let cpu = first_processor();
    let stranger = Worker::ranked(Policy::Fifo(97), cpu);
    stranger.work();
    let holder = Worker::ranked(Policy::Fifo(ranks::OCCUPANT), cpu);
    let own = holder.tid;
    let seen = Seen::new(Grade::Enforced);
    let (mut watcher, _rings) = beginning(&seen, cpu, Box::new(move |thread| thread.tid == own));
    let run = Run::new(1, 0, Ports::default());
    for _ in 0..2 {
        holder.work();
        watcher.look_out(&run);
    }
    watcher.look(false);
    let strangers = watcher.lookout.seen().strangers.iter();
    let known: Vec<(Tid, Option<Instant>)> =
        strangers.map(|one| (one.thread.tid, one.at)).collect();
    assert!(known.contains(&(stranger.tid, None)), "{known:?}");
    assert!(known.iter().all(|(tid, _)| *tid != own), "{known:?}");
    let grade = seen.grade();
    let told = grade.reason().unwrap_or_default();
    assert!(!told.contains(&stranger.name()), "{told}");
    stranger.end();
    holder.end();
}

/// What its holder was kept from tells how firmly slots were held, as much as who was seen beside it.
#[test]
fn slots_that_were_over_before_a_period_of_them_was_seen_are_not_called_enforced() {
    let cases = [
        (true, false, true),
        // Nobody held them.
        (true, true, false),
        (false, false, false),
    ];
    for (has_slots, is_awaited, is_doubted) in cases {
        let seen = Seen::new(Grade::Enforced);
        let mut watcher = match has_slots {
            true => by_slots(&seen, clock::now()).0,
            false => by_kernel(&seen),
        };
        if is_awaited {
            seen.await_holder();
        }
        seen.observe(Ok(Box::new(Waits(Span::ZERO))));
        let run = Run::new(1, 0, Ports::default());
        run.finish();
        watcher.watch(&run);
        let grade = seen.grade();
        let why = grade.reason().unwrap_or_default();
        if is_doubted {
            // Somebody else may be found there besides.
            assert_ne!(grade, Grade::Enforced);
        } else {
            assert!(!why.contains("before a period of it was seen"), "{why}");
        }
    }
}
