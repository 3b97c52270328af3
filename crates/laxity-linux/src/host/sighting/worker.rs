//! A thread that works when a test tells it to, as whatever it was made.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use laxity_model::{Service, Span};

use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::proc::stat_of;
use crate::os::sched::{self, Policy, Tid};

/// A thread that works for as long as it is told to, and says when it has.
pub(in crate::host) struct Worker {
    pub(in crate::host) tid: Tid,
    orders: mpsc::Sender<Service>,
    done: mpsc::Receiver<Tid>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// An ordinary one, asleep.
    pub(in crate::host) fn start() -> Self {
        let (orders, received) = mpsc::channel();
        let (tell, done) = mpsc::channel();
        let thread = thread::Builder::new().name("worker".to_owned());
        let thread = thread.spawn(move || {
            tell.send(Tid::current()).unwrap();
            for service in received {
                let begun = clock::thread_service();
                while clock::thread_service().saturating_sub(begun) < service {}
                tell.send(Tid::current()).unwrap();
            }
        });
        let tid = done.recv().unwrap();
        let worker = Self {
            tid,
            orders,
            done,
            thread: thread.unwrap(),
        };
        worker.rest();
        worker
    }

    /// The same of this rank on this processor.
    pub(in crate::host) fn ranked(policy: Policy, cpu: usize) -> Self {
        let worker = Self::start();
        sched::set_policy(worker.tid, policy).unwrap();
        sched::set_affinity(worker.tid, &CpuSet::single(cpu)).unwrap();
        worker
    }

    /// How it is named.
    pub(in crate::host) fn name(&self) -> String {
        format!("thread {} \"worker\"", self.tid)
    }

    /// For a millisecond.
    pub(in crate::host) fn work(&self) {
        self.work_for(Service::from_millis(1));
    }

    pub(in crate::host) fn work_for(&self, service: Service) {
        self.orders.send(service).unwrap();
        self.done.recv().unwrap();
        self.rest();
    }

    /// Waits until it sleeps: what it does before that is counted by then.
    fn rest(&self) {
        let latest = clock::now() + Span::from_secs(10);
        while stat_of(self.tid, 3) != Ok('S') {
            assert!(clock::now() < latest, "it works for ever");
            thread::yield_now();
        }
    }

    /// It ends.
    pub(in crate::host) fn end(self) {
        drop(self.orders);
        self.thread.join().unwrap();
    }
}
