//! One processor in virtual time, and the executors of several processes on it that take turns: as the kernel would run their threads, all of one priority, and the
//! sentinel where none of them can run.

mod asked;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::together::{Act, Member, Occupant, Region, Sentinel, Vigil, Watchdog};
use laxity_model::program::upcalls::{Board, Command, Control, turns};
use laxity_model::{Body, Context as _, Instant, PortId, Service, Span, Step};

use crate::together::process::{Arrives, Ask, At, Done, Fault, Held, Keep, Misbehaves, Own, Spec};

/// Small, so that its ends are reached.
pub(crate) type Shared = Region<4, 8>;

const DOORBELL: PortId = PortId(0);
pub(crate) const COMMANDS: PortId = PortId(1);
pub(crate) const EVENTS: u16 = 2;
/// The sentinel looks so long after a release that nobody attends to.
pub(crate) const GRACE: Span = Span::from_micros(5);
/// No quantum takes as long.
pub(crate) const LIMIT: Service = Service::from_micros(50);

/// No quantum takes longer that is as it was declared.
const TAKES: Span = Span::from_micros(8);
const MICRO: Span = Span::from_micros(1);

struct Process {
    own: Own,
    body: Box<dyn Body>,
    at: At,
    boards: Arc<[Board]>,
    seat: u16,
    quanta: u64,
    is_removed: bool,
    fault: Option<(u64, Fault)>,
    /// Stopped until then, wherever it is.
    stopped: Instant,
}

/// The processor.
pub(crate) struct Machine {
    pub(crate) region: Arc<Shared>,
    now: Instant,
    processes: Vec<Process>,
    /// Those that can run, the running one first.
    runnable: VecDeque<usize>,
    sentinel: Option<Sentinel<Arc<Shared>>>,
    /// It waits until then, unless it is woken.
    vigil: Option<Instant>,
    watchdog: Option<Watchdog<Arc<Shared>, 4>>,
    /// The same.
    patrol: Option<Instant>,
    /// What arrives from outside.
    script: VecDeque<(Instant, Arrives)>,
    /// What arrives before the step of this number, which takes no time.
    between: Vec<(u64, Arrives)>,
    steps: u64,
    done: Arc<Mutex<Vec<Done>>>,
    misbehaves: Option<Misbehaves>,
    held: Held,
}

impl Machine {
    /// With these upcalls, which all run from 10 µs on. One process that shares nothing where `alone`.
    pub(crate) fn new(specs: &[Spec], alone: bool) -> Self {
        Self::held(specs, alone, (None, None))
    }

    /// The same, where all are held to what they were admitted with, and one does otherwise.
    pub(crate) fn held(
        specs: &[Spec],
        alone: bool,
        (misbehaves, held): (Option<Misbehaves>, Held),
    ) -> Self {
        let region = Arc::new(Shared::default());
        let done = Arc::default();
        let mut machine = Self {
            sentinel: Some(Sentinel::new(Arc::clone(&region), GRACE)),
            now: Instant::ZERO,
            processes: Vec::new(),
            runnable: VecDeque::new(),
            vigil: None,
            watchdog: (!alone).then(|| Watchdog::new(Arc::clone(&region), LIMIT)),
            patrol: None,
            script: VecDeque::new(),
            between: Vec::new(),
            steps: 0,
            done,
            misbehaves,
            held,
            region,
        };
        let of = |spec: &Spec| if alone { 0 } else { spec.process };
        let count = specs.iter().map(of).max().map_or(0, |most| most + 1);
        for process in 0..count {
            let own = specs.iter().copied().enumerate();
            let own: Vec<_> = own.filter(|(_, spec)| of(spec) == process).collect();
            machine.add(&own, alone);
        }
        machine
    }

    fn add(&mut self, upcalls: &[(usize, Spec)], alone: bool) {
        let number = self.processes.len();
        let seat = number as u16;
        self.region.gives(seat);
        let member = Member::sit(Arc::clone(&self.region), seat, 1).unwrap();
        for place in 0..upcalls.len() as u16 {
            for command in [Command::Create, Command::Run] {
                self.asks(
                    10,
                    &Ask {
                        process: number,
                        place,
                        command,
                        ticket: 0,
                    },
                );
            }
        }
        let keep = Keep {
            upcalls: upcalls.to_vec(),
            done: Arc::clone(&self.done),
            misbehaves: self.misbehaves.clone(),
            held: self.held,
        };
        let boards: Arc<[Board]> = upcalls.iter().map(|_| Board::default()).collect();
        let control = Control::new([COMMANDS, PortId(EVENTS)], Arc::clone(&boards), keep);
        let ports = usize::from(EVENTS) + upcalls.len();
        self.processes.push(Process {
            own: Own {
                now: Cell::new(self.now),
                reading: Span::ZERO,
                received: Service::ZERO,
                ports: (0..ports).map(|_| VecDeque::new()).collect(),
                rings: vec![None; ports],
                awaited: vec![false; ports],
                member: (!alone).then_some(member),
            },
            body: turns(Rmdp::default(), DOORBELL, Box::new(control), !alone),
            at: At::Body,
            boards,
            seat,
            quanta: 0,
            is_removed: false,
            fault: None,
            stopped: Instant::ZERO,
        });
        self.runnable.push_back(number);
    }

    /// Runs until this microsecond; every quantum in its order.
    pub(crate) fn run(mut self, end: u64) -> (Vec<Done>, Self) {
        let end = Instant::from_micros(end);
        let mut moved = (self.now, self.steps);
        while self.now < end {
            if moved.0 != self.now {
                moved = (self.now, self.steps);
            }
            assert!(
                self.steps - moved.1 < 1_000,
                "all pass the baton, and nobody works"
            );
            self.due();
            if self.patrols() {
                continue;
            }
            let Some(&running) = self.runnable.front() else {
                if !self.stand() {
                    let next = self.next().min(end);
                    self.pass_to(next);
                }
                continue;
            };
            let arrives = |event: &mut (u64, Arrives)| event.0 == self.steps;
            let now: Vec<_> = self.between.extract_if(.., arrives).collect();
            now.into_iter().for_each(|(_, what)| self.put(what));
            self.steps += 1;
            self.go(running);
        }
        let done = self.done.lock().unwrap().clone();
        (done, self)
    }

    /// The running thread does its next step.
    fn go(&mut self, running: usize) {
        let process = &mut self.processes[running];
        process.own.now.set(self.now);
        match process.at {
            At::Body => match process.body.step(&mut process.own) {
                Step::Charge(Service::ZERO) => {}
                Step::Charge(service) if service.as_dedicated_span() > TAKES => {
                    process.at = At::Busy(service.as_dedicated_span());
                }
                Step::Charge(service) => {
                    self.works(running, service.as_dedicated_span());
                    self.gives_way(running);
                }
                Step::Wait(_) | Step::WaitUntil(..) if process.own.member.is_some() => {
                    process.at = At::Waiting;
                }
                Step::Wait(_) => self.sleeps(running, 0, Instant::MAX),
                Step::WaitUntil(_, until) => self.sleeps(running, 0, until),
                other => panic!("{other:?}"),
            },
            At::Waiting => {
                let member = process.own.member.as_mut().unwrap();
                match member.wait(self.now) {
                    Act::Go => process.at = At::Body,
                    Act::Took => {
                        process.at = At::Body;
                        self.work_begins();
                    }
                    Act::Wake(other) => self.wake(other),
                    Act::Sleep { word, until } => self.sleeps(running, word, until),
                    Act::Removed => panic!("nobody removes anybody here"),
                }
            }
            At::Spinning => self.works(running, MICRO),
            At::Busy(Span::ZERO) => {
                process.at = At::Body;
                self.gives_way(running);
            }
            At::Busy(left) => {
                process.at = At::Busy(left.saturating_sub(MICRO));
                self.works(running, MICRO);
            }
            other => panic!("{other:?} cannot run"),
        }
    }

    fn word(&self, seat: u16) -> u32 {
        let word = self.region.word(seat).unwrap();
        word.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn sleeps(&mut self, running: usize, word: u32, until: Instant) {
        let process = &self.processes[running];
        let changed = match process.own.member {
            Some(_) => self.word(process.seat) != word,
            None => !process.own.ports[0].is_empty(),
        };
        if changed {
            // Alone it is the host that takes what rang.
            self.awake(running);
            return;
        }
        self.processes[running].at = At::Asleep { word, until };
        self.runnable.pop_front();
    }

    /// A sleeper looks again.
    fn awake(&mut self, number: usize) {
        let process = &mut self.processes[number];
        process.at = match process.own.member {
            Some(_) => At::Waiting,
            None => {
                process.own.ports[0].clear();
                At::Body
            }
        };
        if !self.runnable.contains(&number) {
            self.runnable.push_back(number);
        }
    }

    fn wake(&mut self, seat: u16) {
        let number = self.processes.iter().position(|one| one.seat == seat);
        let number = number.expect("somebody has every seat that is woken");
        let process = &self.processes[number];
        if let At::Asleep { word, .. } = process.at
            && process.stopped <= self.now
            && word != self.word(seat)
        {
            self.awake(number);
        }
    }

    fn work_begins(&mut self) {
        for (is_woken, waits) in self
            .region
            .begun()
            .into_iter()
            .zip([&mut self.vigil, &mut self.patrol])
        {
            if is_woken {
                *waits = None;
            }
        }
    }

    /// Between two quanta, as its host does it: others of its priority that can run do, where it says so.
    fn gives_way(&mut self, running: usize) {
        let member = self.processes[running].own.member.as_ref();
        if member.is_some_and(Member::gives_way) && self.runnable.front() == Some(&running) {
            self.runnable.rotate_left(1);
        }
    }

    /// A quantum, at whose end the process may be hit.
    fn works(&mut self, running: usize, takes: Span) {
        let end = self.now + takes;
        let process = &mut self.processes[running];
        process.quanta += 1;
        process.own.received += Service::from_nanos(takes.as_nanos());
        let hit = process.fault.filter(|(after, _)| *after == process.quanta);
        self.pass_to(end);
        let process = &mut self.processes[running];
        let Some((_, fault)) = hit else {
            return;
        };
        match fault {
            Fault::Blocks(micros) | Fault::Strays(micros) => {
                process.at = At::Blocked {
                    until: end + Span::from_micros(micros),
                };
            }
            Fault::Stops(micros) => {
                process.stopped = end + Span::from_micros(micros);
                process.at = At::Blocked {
                    until: process.stopped,
                };
            }
            Fault::Dies => process.at = At::Dead,
        }
        self.runnable.pop_front();
    }

    /// The sentinel has the processor, if it does not wait; whether it did anything.
    fn stand(&mut self) -> bool {
        if self.vigil.is_some_and(|until| self.now < until) {
            return false;
        }
        let Some(sentinel) = &mut self.sentinel else {
            return false;
        };
        match sentinel.look(self.now) {
            Vigil::Sleep { until, .. } => self.vigil = Some(until),
            Vigil::Wake(seat) => {
                self.wake(seat);
                self.work_begins();
            }
            Vigil::Again => {}
            Vigil::Remove(_) => panic!("a sentinel removes nobody"),
        }
        true
    }

    /// The watchdog has the processor, if it does not wait; whether it did anything.
    fn patrols(&mut self) -> bool {
        let Some(watchdog) = self
            .watchdog
            .as_mut()
            .filter(|_| self.patrol.is_none_or(|until| until <= self.now))
        else {
            return false;
        };
        let processes = &self.processes;
        let received = |seat, _| match processes.iter().find(|one| one.seat == seat) {
            None => Occupant::Unknown,
            Some(one) if one.is_removed => Occupant::Removed,
            Some(one) => Occupant::Present(Some(one.own.received)),
        };
        match watchdog.look(self.now, received) {
            Vigil::Sleep { until, .. } => self.patrol = Some(until),
            Vigil::Remove(seat) => {
                // An ordinary thread from now on, which nobody leaves any time here.
                let number = self
                    .processes
                    .iter()
                    .position(|one| one.seat == seat)
                    .unwrap();
                (self.processes[number].at, self.processes[number].is_removed) = (At::Dead, true);
                self.runnable.retain(|other| *other != number);
                if let Some(next) = self.region.remove(seat, self.now) {
                    self.wake(next);
                }
            }
            Vigil::Wake(_) | Vigil::Again => {}
        }
        true
    }

    /// Those whose time has come can run.
    fn due(&mut self) {
        for number in 0..self.processes.len() {
            match self.processes[number].at {
                At::Asleep { until, .. } if until <= self.now => self.awake(number),
                At::Blocked { until } if until <= self.now => {
                    let strays =
                        matches!(self.processes[number].fault, Some((_, Fault::Strays(_))));
                    self.processes[number].at = if strays { At::Spinning } else { At::Body };
                    self.runnable.push_back(number);
                }
                _ => {}
            }
        }
    }

    /// When anything happens by itself.
    fn next(&self) -> Instant {
        let times = self.processes.iter().map(|process| match process.at {
            At::Asleep { until, .. } | At::Blocked { until } => until,
            _ => Instant::MAX,
        });
        let guarded = [
            self.sentinel.as_ref().and(self.vigil),
            self.watchdog.as_ref().and(self.patrol),
        ];
        let scripted = self.script.front().map(|event| event.0);
        times
            .chain(guarded.into_iter().flatten())
            .chain(scripted)
            .min()
            .unwrap_or(Instant::MAX)
    }

    /// Time passes, and what comes meanwhile comes.
    fn pass_to(&mut self, until: Instant) {
        while let Some((at, what)) = self.script.front().copied()
            && at <= until
        {
            self.script.pop_front();
            self.now = self.now.max(at);
            self.put(what);
        }
        self.now = self.now.max(until);
    }

    /// It has arrived.
    fn put(&mut self, (process, port, payload): Arrives) {
        let into = &mut self.processes[process];
        into.own.now.set(self.now);
        into.own.put(port, payload);
        let (seat, is_awaited) = (into.seat, into.own.awaited[usize::from(port.0)]);
        if into.own.member.is_none() {
            if matches!(into.at, At::Asleep { .. }) {
                self.awake(process);
            }
        } else if is_awaited && self.region.call(seat, self.now) {
            self.wake(seat);
            self.work_begins();
        }
    }
}
