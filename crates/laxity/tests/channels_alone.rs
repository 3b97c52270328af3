//! What a node takes of its processor, by itself: each test has the nodes of this process for itself.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity::channels::{Excess, Lane};
use laxity::{Span, now, sleep_until};

#[path = "channels/support.rs"]
#[allow(dead_code, reason = "other tests have more of it")]
mod support;

use support::{addresses, listens, name, nodes, spec};

/// What each thread of a node of this process has taken of processors until now, in nanoseconds; in the same order each time.
fn taken() -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: PathBuf| {
        let read = |what| std::fs::read_to_string(task.join(what)).unwrap_or_default();
        let is_node = read("comm").starts_with("channels of");
        let taken = read("schedstat").split(' ').next()?.parse::<u64>().ok()?;
        is_node.then_some(taken)
    };
    let mut tasks: Vec<PathBuf> = tasks.map(|task| task.unwrap().path()).collect();
    tasks.sort();
    tasks.into_iter().filter_map(of).collect()
}

/// The threads of nodes are known by their names alone.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_node_with_nothing_to_do_looks_for_heartbeats_alone() {
    let _alone = alone();
    let both = nodes(addresses(), true);
    let looks = || both.each_ref().map(|node| node.looks().unwrap());
    let before = looks();
    sleep_until(now() + Span::from_secs(1));
    let after = looks();
    // In each of 20 heartbeats: one that goes, is gone and is heard, and one that comes; and what asks.
    for (before, after) in before.into_iter().zip(after) {
        assert!((20..=200).contains(&(after - before)), "{}", after - before);
    }
}

/// Each message of an application that sends without end is sent, dropped, or demoted, and its node has half of a processor for that beside what was granted. Whoever asks it something has an answer.
fn without_end(excess: Excess) {
    let _alone = alone();
    let both = nodes(addresses(), true);
    let [from, to] = &both;
    let _listener = to.listen(name("control"), listens(64), Span::ZERO).unwrap();
    let mut asked = spec(64, 1);
    asked.excess = excess;
    let mut sender = from.open(&asked).unwrap();
    let (begun, before, mut sent) = (now(), taken(), 0_u64);
    let length = Span::from_secs(1);
    while now() < begun + length {
        sent += u64::from(sender.send(&[0; 64]).is_ok());
        if sent.is_multiple_of(1 << 12) {
            from.links().unwrap();
        }
    }
    let all = now().saturating_since(begun).as_nanos();
    let shares = before.into_iter().zip(taken());
    let shares: Vec<u64> = shares
        .map(|(before, after)| (after - before) * 100 / all)
        .collect();
    let counts = loop {
        let (began, _) = sender.counts(Lane::RealTime).unwrap();
        let source = began.unwrap().source;
        if source.offered >= sent {
            break source;
        }
    };
    eprintln!("{excess:?}: {sent} messages, {shares:?} % of a processor");
    assert_eq!(counts.offered, sent);
    let gone = counts.taken + counts.demoted + counts.dropped + counts.displaced;
    assert!(counts.offered - gone <= 32, "{counts:?}");
    assert!(sent > 10_000, "{sent}");
    // Half of it at the most, and what was granted.
    assert_eq!(shares.len(), 2);
    assert!(shares.iter().all(|share| *share < 70), "{shares:?} %");
}

#[test]
fn who_sends_without_end_and_is_shaped_leaves_the_processor_to_others() {
    without_end(Excess::Shape);
}

#[test]
fn who_displaces_without_end_does_so_too() {
    without_end(Excess::DropOldest);
}

#[test]
fn who_drops_and_who_demotes_without_end_too() {
    without_end(Excess::DropNewest);
    without_end(Excess::Demote);
}
