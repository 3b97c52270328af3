//! A processor simple enough to be obviously right.

use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};

pub(crate) const VICTIM: u16 = 0;
pub(crate) const BEGIN: Mark = Mark(0);
pub(crate) const END: Mark = Mark(1);

/// A processor with four classes, each first come first served, each before the one below; microseconds.
pub(crate) struct Machine {
    calls: Vec<Call>,
    begun: Vec<bool>,
    /// Released while its thread was at work on another job: it wakes nobody before that is done.
    woken: Vec<bool>,
    left: Vec<u64>,
    /// The thread that was dispatched and has neither waited nor been preempted.
    loaded: Option<usize>,
    now: u64,
    events: Vec<Event>,
}

impl Machine {
    pub(crate) fn run(calls: &[Call]) -> Vec<Event> {
        let mut calls = calls.to_vec();
        calls.sort_by_key(|call| call.at);
        let mut machine = Self {
            begun: vec![false; calls.len()],
            woken: vec![false; calls.len()],
            left: calls.iter().map(|call| call.work).collect(),
            loaded: None,
            now: 0,
            events: Vec::new(),
            calls,
        };
        while let Some(next) = machine.next() {
            machine.go(next);
        }
        let asleep: Vec<usize> = (0..machine.calls.len())
            .filter(|call| machine.calls[*call].class <= Class::Above && !machine.woken[*call])
            .collect();
        for call in asleep {
            machine.now = machine.calls[call].at;
            machine.event(EventKind::Wake, call, machine.now);
        }
        // A job that finds its thread asleep wakes it before anything else happens then.
        machine
            .events
            .sort_by_key(|event| (event.at, event.kind != EventKind::Wake));
        machine.events
    }

    fn next(&self) -> Option<usize> {
        let open = (0..self.calls.len()).filter(|call| self.left[*call] > 0);
        let ready = open.clone().filter(|call| self.calls[*call].at <= self.now);
        // A handler or deferred call that has begun goes on before its equals.
        let best = ready.max_by_key(|call| {
            let class = self.calls[*call].class;
            (class, self.begun[*call], std::cmp::Reverse(*call))
        });
        best.or_else(|| open.min_by_key(|call| (self.calls[*call].at, *call)))
    }

    fn event(&mut self, kind: EventKind, call: usize, first: u64) {
        self.events.push(Event {
            at: Instant::from_micros(self.now),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(self.calls[call].who),
            args: [first * 1_000, 0],
        });
    }

    /// The next job of the same thread, if it is released already.
    fn more(&self, call: usize) -> Option<usize> {
        let Call { who, .. } = self.calls[call];
        (0..self.calls.len()).find(|other| {
            self.calls[*other].who == who
                && self.left[*other] > 0
                && self.calls[*other].at <= self.now
        })
    }

    fn begin(&mut self, call: usize) {
        let Call { class, at, .. } = self.calls[call];
        match class {
            Class::Handler => self.event(EventKind::InterruptEnter, call, at),
            Class::Deferred => self.event(EventKind::DeferredEnter, call, at),
            Class::Above | Class::Victim => {}
        }
        if class == Class::Victim {
            self.event(EventKind::Mark(BEGIN), call, at);
        }
    }

    fn load(&mut self, call: usize) {
        let same = |other: usize| self.calls[other].who == self.calls[call].who;
        if self.loaded.is_some_and(same) {
            self.loaded = Some(call);
            return;
        }
        if let Some(former) = self.loaded.replace(call) {
            self.event(EventKind::Preempt, former, 0);
        }
        self.event(EventKind::Dispatch, call, 0);
    }

    fn go(&mut self, call: usize) {
        let Call {
            class, at, work, ..
        } = self.calls[call];
        if at > self.now {
            // Nothing was ready; who comes first then is another question.
            self.now = at;
            return;
        }
        if class <= Class::Above {
            self.load(call);
        }
        if !std::mem::replace(&mut self.begun[call], true) {
            self.begin(call);
        }
        let higher = self.calls.iter().filter(|other| other.class > class);
        let interrupted = higher
            .map(|other| other.at)
            .filter(|other| *other > self.now)
            .min();
        let until = interrupted
            .unwrap_or(u64::MAX)
            .min(self.now + self.left[call]);
        self.left[call] -= until - self.now;
        self.now = until;
        if self.left[call] > 0 {
            return;
        }
        match class {
            Class::Handler => self.event(EventKind::InterruptExit, call, work),
            Class::Deferred => self.event(EventKind::DeferredExit, call, work),
            Class::Above | Class::Victim => {
                if class == Class::Victim {
                    self.event(EventKind::Mark(END), call, 0);
                }
                if let Some(next) = self.more(call) {
                    self.woken[next] = true;
                    self.event(EventKind::Wake, next, self.calls[next].at);
                } else {
                    self.event(EventKind::Block, call, 0);
                    self.loaded = None;
                }
            }
        }
    }
}

/// What else is to run: a handler, a deferred call, a thread above the victim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    Victim,
    Above,
    Deferred,
    Handler,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) class: Class,
    pub(crate) who: u16,
    pub(crate) at: u64,
    pub(crate) work: u64,
}
