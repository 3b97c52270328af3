//! Who is stopped, who was changed in its slot, and what members have received.

use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;

use laxity_model::Span;

use super::*;
use crate::doctor::rights::{self, Right};
use crate::os::proc::stat_of;

#[test]
fn where_it_cannot_be_read_who_is_stopped_that_is_not_nobody() {
    assert_eq!(ranked(Ok(Vec::new())), Ok(Vec::new()));
    let gone = io::Error::from_raw_os_error(libc::ENOENT);
    assert_eq!(ranked(Err(gone)), Ok(Vec::new()));
    let hidden = io::Error::from_raw_os_error(libc::EACCES);
    let unknown = ranked(Err(hidden)).unwrap_err();
    assert!(unknown.to_string().contains("cgroup.threads"), "{unknown}");
}

/// A program that sleeps, and holds slots.
fn member() -> (Child, Members) {
    let program = Command::new("sleep").arg("1000").spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let own = Attributes::of(thread).unwrap();
    let before = (own, sched::affinity(thread).unwrap());
    let members = Members::new(None, before, true).unwrap();
    members.add(thread, own).unwrap();
    (program, members)
}

#[test]
fn who_was_changed_in_its_slot_is_known_at_the_slots_end() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let (mut program, members) = member();
    let thread = Tid(program.id().cast_signed());
    let batch = Policy::Batch { nice: 0 };
    let mut found = Vec::new();
    // Outside its slots it is what it was before: that is given to it at each slot's end.
    for changes_inside in [None, Some(Members::INSIDE), Some(batch), None] {
        members.enter().unwrap();
        if let Some(policy) = changes_inside {
            sched::set_policy(thread, policy).unwrap();
        }
        members.leave().unwrap();
        found.push(members.changed(thread));
    }
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(found, [None, None, Some(batch), Some(batch)]);
}

/// Its slot may never end, where it outranks the dispatcher.
#[test]
fn who_has_a_rank_that_nobody_gave_it_is_known_before_its_slot_ends() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let (mut program, members) = member();
    let thread = Tid(program.id().cast_signed());
    let own = sched::policy(thread).unwrap();
    let (above, below) = (Policy::Fifo(99), Policy::RoundRobin(1));
    let all = [
        own,
        Members::INSIDE,
        above,
        below,
        Policy::Batch { nice: 0 },
    ];
    let found = all.map(|policy| {
        sched::set_policy(thread, policy).unwrap();
        members.changed(thread)
    });
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(found, [None, None, Some(above), None, None]);
}

/// Works for so long.
fn work(service: Service) {
    let until = clock::thread_service() + service;
    while clock::thread_service() < until {}
}

#[test]
fn who_has_the_number_of_another_has_had_nothing_of_what_that_had() {
    let much = Service::from_millis(100);
    work(much);
    let counter = Counter::of(Tid::current()).unwrap();
    counter.before.store(0, Ordering::Relaxed);
    // No time has passed since.
    counter.looked.store(u64::MAX, Ordering::Relaxed);
    assert_eq!(counter.since(), Service::ZERO);
    work(much);
    assert!(counter.since() > Service::ZERO);
}

#[test]
fn one_that_is_not_counted_takes_nothing_from_the_others() {
    let own = Tid::current();
    let attributes = Attributes::of(own).unwrap();
    let before = (attributes, sched::affinity(own).unwrap());
    let members = Members::new(None, before, false).unwrap();
    let counted = Counter::of(own).map(Arc::new);
    for counted in [counted, None] {
        members.list.lock().threads.push(Member {
            tid: own,
            own: attributes,
            changed: Arc::default(),
            counted,
        });
    }
    work(Service::from_millis(100));
    assert_eq!(members.service(), None);
    members.list.lock().threads.pop();
    let received = members.service().expect("who is left is counted");
    assert!(received >= Service::from_millis(50), "{received:?}");
}

/// A thread that works for so long whenever that is asked, and then waits.
struct Worker {
    thread: Tid,
    account: Account,
    ask: mpsc::Sender<Service>,
}

/// Waits for something that must come.
fn until(what: &str, condition: impl Fn() -> bool) {
    let latest = clock::now() + Span::from_secs(10);
    while !condition() {
        assert!(clock::now() < latest, "in vain: {what}");
        thread::yield_now();
    }
}

impl Worker {
    fn start() -> Self {
        let (ask, asked) = mpsc::channel::<Service>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            tell.send(Tid::current()).unwrap();
            asked.into_iter().for_each(work);
        });
        let thread = told.recv().unwrap();
        let account = Account::of(thread).unwrap();
        Self {
            thread,
            account,
            ask,
        }
    }

    /// Returns when it has worked, by its account.
    fn work(&self, service: Service) {
        let had = || self.account.read().unwrap().service;
        let enough = had() + service;
        self.ask.send(service).unwrap();
        until("its work", || {
            had() >= enough && stat_of(self.thread, 3) == Ok('S')
        });
    }

    /// Returns when it has gone.
    fn end(self) {
        drop(self.ask);
        until("its end", || self.account.read().is_err());
    }
}

#[test]
fn what_a_thread_that_is_not_meant_does_is_none_of_the_slots() {
    let [held, other, later] = [(); 3].map(|()| Worker::start());
    let own = Attributes::of(held.thread).unwrap();
    let before = (own, sched::affinity(held.thread).unwrap());
    let members = Members::new(None, before, false).unwrap();
    let family = Family::new(std::process::id(), None, false);
    let (work, much) = (Service::from_millis(20), Service::from_millis(500));
    // What it had before it was a member is none of theirs either.
    later.work(much);
    members.add(held.thread, own).unwrap();
    members.keep(&family, &[held.thread]);
    let counted = || members.service().expect("the kernel counts");
    let mut marks = vec![counted()];
    held.work(work);
    marks.push(counted());
    other.work(work);
    marks.push(counted());
    members.add(later.thread, own).unwrap();
    later.work(work);
    marks.push(counted());
    // Neither its end nor that it is forgotten takes anything back.
    later.end();
    marks.push(counted());
    members.keep(&family, &[held.thread]);
    marks.push(counted());
    let since = marks.windows(2).map(|two| two[1] - two[0]);
    let since: Vec<Service> = since.collect();
    let worked: Vec<bool> = since.iter().map(|had| *had >= work).collect();
    assert_eq!(worked, [true, false, true, false, false], "{since:?}");
    assert!(since[2] < much, "{since:?}");
}
