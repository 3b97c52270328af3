//! The cases: who is in each, drawn from a seed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use laxity_lab::runner::tasks::Times;
use laxity_lab::workload::Draws;
use laxity_model::verify::attribution::Declared;
use laxity_model::{InterruptLevel, Placement, Priority, Service, Span};
use serde::Deserialize;

use super::TEXT;

static KINDS: LazyLock<BTreeMap<Kind, String>> = LazyLock::new(|| TEXT.quoted("kinds"));

/// The device's period, and its deadline: the 12.5 ms of the study.
pub const PERIOD: Span = Span::from_micros(12_500);
/// The work of each job: the study's 14.7 % (§6.6).
pub const WORK: Service = Service::from_micros(1_840);

/// Somebody besides the victim: a device or a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The level of its interrupt, which is not the victim's, or its thread's priority.
    pub placement: Placement,
    /// When it works; `None`: it always wants the processor.
    pub times: Option<Times>,
    /// What its handler or its thread takes.
    pub work: Service,
    /// What its deferred call takes.
    pub deferred: Option<Service>,
    /// What it declares.
    pub declared: Declared,
}

impl Part {
    fn device(level: u8, times: Times, handler: Service, deferred: Option<Service>) -> Self {
        Self {
            placement: Placement::Interrupt(InterruptLevel(level)),
            times: Some(times),
            work: handler,
            deferred,
            declared: Declared::default(),
        }
    }

    const fn thread(
        priority: Priority,
        times: Option<Times>,
        work: Service,
        declared: Declared,
    ) -> Self {
        Self {
            placement: Placement::Thread(priority),
            times,
            work,
            deferred: None,
            declared,
        }
    }

    const fn spinner(priority: Priority) -> Self {
        Self::thread(priority, None, Service::ZERO, Declared::rank(priority))
    }
}

/// What is wrong in a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A device keeps interrupts off for 30 to 50 ms, as the study heard of a USB scanner (§8.1).
    InterruptsOff,
    /// A driver spends about 5 ms in each of some deferred calls.
    LongDeferred,
    /// Two drivers, neither of which would do harm alone.
    TwoNeeded,
    /// One keeps interrupts off, another one's thread takes over: each would do harm alone.
    TwoSufficient,
    /// A thread above all others.
    Rogue,
    /// The victim takes longer than it said.
    Overrun,
    /// The victim reserved too little.
    TooLittle,
    /// Nothing.
    Nothing,
}

impl Kind {
    /// In words.
    pub fn about(self) -> &'static str {
        KINDS.get(&self).map_or("", String::as_str)
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is wrong.
    pub kind: Kind,
    /// What the victim's thread has reserved of every 8 ms, and runs in alone; without it, it is of priority 24 as the study's THR 24.
    pub reserved: Option<Service>,
    /// Those that keep the rules.
    pub innocents: Vec<Part>,
    /// Those that do not.
    pub interfering: Vec<Part>,
    /// Every so many jobs the victim takes this instead.
    pub overrun: Option<(u64, Service)>,
    /// When the victim's device interrupts.
    pub victim: Times,
}

/// Draws one thing after another.
pub struct Draw(Draws);

impl Draw {
    /// The case of this number from a seed; another one for each attempt.
    #[must_use]
    pub fn new(seed: u64, number: u64, attempt: u64) -> Self {
        Self(Draws::new(seed, number << 16 | attempt))
    }

    fn us(&mut self, from: u64, to: u64) -> u64 {
        self.0.between(from, to)
    }

    fn span(&mut self, from_us: u64, to_us: u64) -> Span {
        Span::from_micros(self.us(from_us, to_us))
    }

    fn service(&mut self, from_us: u64, to_us: u64) -> Service {
        Service::from_micros(self.us(from_us, to_us))
    }

    fn priority(&mut self, from: u8, to: u8) -> Priority {
        let level = self.us(u64::from(from), u64::from(to));
        let level = u8::try_from(level).ok().and_then(Priority::new);
        level.unwrap_or(Priority::HIGHEST)
    }

    /// An interrupt level other than the victim's.
    fn level(&mut self) -> u8 {
        [3, 4, 6, 7, 9, 12][self.us(0, 5) as usize]
    }

    /// What goes well with everybody: devices with short handlers, one with a short deferred call, threads with a budget, spinners.
    fn innocents(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        for _ in 0..self.us(1, 3) {
            let (first, level) = (self.span(0, 5_000), self.level());
            let times = Times::steady(first, self.span(1_500, 6_000));
            parts.push(Part::device(level, times, self.service(5, 90), None));
        }
        let (first, level) = (self.span(0, 20_000), self.level());
        let times = Times::steady(first, self.span(15_000, 40_000));
        let (handler, deferred) = (self.service(5, 50), self.service(50, 300));
        parts.push(Part::device(level, times, handler, Some(deferred)));
        for _ in 0..self.us(0, 2) {
            let (work, first) = (self.service(200, 1_000), self.span(0, 10_000));
            let (priority, every) = (self.priority(16, 30), self.span(12_000, 40_000));
            let declared = Declared::thread(priority, work, every);
            let times = Times::steady(first, every);
            parts.push(Part::thread(priority, Some(times), work, declared));
        }
        // The callback of the study's §6.3.
        let (callback, every) = (self.service(5, 20), Span::from_millis(1));
        let declared = Declared::thread(Priority::HIGHEST, callback, every);
        let times = Times::steady(Span::ZERO, every);
        parts.push(Part::thread(
            Priority::HIGHEST,
            Some(times),
            callback,
            declared,
        ));
        for _ in 0..self.us(1, 3) {
            parts.push(Part::spinner(self.priority(6, 10)));
        }
        parts
    }

    fn interrupts_off(&mut self) -> Part {
        let (first, level) = (self.span(100_000, 300_000), self.level());
        let times = Times::steady(first, self.span(400_000, 900_000));
        Part::device(level, times, self.service(30_000, 50_000), None)
    }

    /// A thread above all, which may declare less than it takes.
    fn rogue(&mut self, declares: bool) -> Part {
        let highest = Priority::HIGHEST;
        let (first, every) = (self.span(100_000, 300_000), self.span(300_000, 600_000));
        let declared = if declares {
            Declared::thread(highest, Service::from_millis(1), every)
        } else {
            Declared::rank(highest)
        };
        let work = self.service(20_000, 45_000);
        Part::thread(highest, Some(Times::steady(first, every)), work, declared)
    }

    /// Some deferred calls in a row, of which each leaves little time to the next.
    fn long_deferred(&mut self) -> Part {
        let deferred = self.us(4_500, 5_500);
        let (first, every) = (self.span(100_000, 200_000), self.span(150_000, 400_000));
        let level = self.level();
        let times = Times {
            first,
            every,
            in_burst: self.us(4, 6),
            apart: Span::from_micros(deferred + self.us(100, 300)),
        };
        let deferred = Service::from_micros(deferred);
        Part::device(level, times, self.service(5, 50), Some(deferred))
    }

    /// A driver whose deferred call comes once in a while, right after one of the victim's interrupts.
    fn beside(&mut self, victim: Times, every: u64) -> Part {
        let (offset, level) = (self.span(50, 900), self.level());
        let first = victim.first + PERIOD * 8 + offset;
        let times = Times::steady(first, PERIOD * every);
        let (handler, deferred) = (self.service(5, 50), self.service(6_000, 8_500));
        Part::device(level, times, handler, Some(deferred))
    }

    /// A case of this kind.
    pub fn case(&mut self, kind: Kind, reserved: bool) -> Case {
        let victim = Times::steady(self.span(1_000, 12_000), PERIOD);
        let mut overrun = None;
        let interfering = match kind {
            Kind::InterruptsOff => vec![self.interrupts_off()],
            Kind::LongDeferred => vec![self.long_deferred()],
            Kind::TwoNeeded => {
                let every = self.us(10, 30);
                vec![self.beside(victim, every), self.beside(victim, every)]
            }
            Kind::TwoSufficient => {
                let declares = self.us(0, 1) == 1;
                vec![self.interrupts_off(), self.rogue(declares)]
            }
            Kind::Rogue => {
                let declares = self.us(0, 1) == 1;
                vec![self.rogue(declares)]
            }
            Kind::Overrun => {
                overrun = Some((self.us(10, 40), self.service(13_000, 20_000)));
                Vec::new()
            }
            Kind::TooLittle | Kind::Nothing => Vec::new(),
        };
        let service = match kind {
            Kind::TooLittle => self.service(800, 1_050),
            _ => Service::from_micros(2_600),
        };
        Case {
            kind,
            reserved: reserved.then_some(service),
            innocents: self.innocents(),
            interfering,
            overrun,
            victim,
        }
    }
}

/// The case of a kind that is run on this machine: a thread above the victim that takes over now and then, a device that keeps interrupts off,
/// or nobody.
pub fn set(kind: Kind) -> Case {
    let above = Priority::new(28).unwrap_or(Priority::HIGHEST);
    let rare = Times::steady(Span::from_millis(211), Span::from_millis(450));
    let task = match kind {
        Kind::Rogue => {
            let work = Service::from_millis(25);
            Some(Part::thread(above, Some(rare), work, Declared::rank(above)))
        }
        Kind::InterruptsOff => Some(Part::device(9, rare, Service::from_millis(35), None)),
        _ => None,
    };
    let often = Times::steady(Span::from_millis(3), Span::from_micros(3_700));
    let device = Part::device(7, often, Service::from_micros(30), None);
    Case {
        kind,
        reserved: None,
        innocents: vec![device, Part::spinner(Priority::NORMAL)],
        interfering: task.into_iter().collect(),
        overrun: None,
        victim: Times::steady(Span::from_millis(5), PERIOD),
    }
}
