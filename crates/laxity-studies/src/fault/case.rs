//! The cases: who is in each, drawn from a seed.

use laxity_model::verify::attribution::Declared;
use laxity_model::{Priority, Service, Span};

use laxity_lab::bench::bodies::Times;
use laxity_lab::report::Value;
use laxity_lab::workload::Draws;

/// The device's period, and its deadline: the 12.5 ms of the study.
pub const PERIOD: Span = Span::from_micros(12_500);
/// The work of each job: the study's 14.7 % (§6.6).
pub const WORK: Service = Service::from_micros(1_840);

/// Where the victim's long work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// In a thread of priority 24, as the study's THR 24.
    Thread,
    /// In a thread with a reservation of this much every 8 ms, and priority 8 outside it.
    Reserved(Service),
}

impl From<Served> for Value {
    fn from(served: Served) -> Self {
        match served {
            Served::Thread => "thread 24".into(),
            Served::Reserved(service) => format!("reserved {service}/8ms").into(),
        }
    }
}

/// Somebody besides the victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A device: interrupt level, times, the handler's work, the deferred call's work if it queues one.
    Device {
        /// The level of its interrupt; the victim's is 5.
        level: u8,
        /// When it interrupts.
        times: Times,
        /// What its handler takes.
        handler: Service,
        /// What its deferred call takes.
        deferred: Option<Service>,
    },
    /// A thread.
    Thread {
        /// Its priority.
        priority: Priority,
        /// When it works.
        times: Times,
        /// What that takes.
        work: Service,
        /// What it declares.
        declared: Declared,
    },
    /// A thread that always wants the processor.
    Spinner {
        /// Its priority.
        priority: Priority,
    },
}

/// What is wrong in a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::InterruptsOff => "a device keeps interrupts off",
            Self::LongDeferred => "a driver's long deferred calls",
            Self::TwoNeeded => "two drivers, harmless alone",
            Self::TwoSufficient => "a device and a thread, each enough",
            Self::Rogue => "a thread above all",
            Self::Overrun => "the victim overruns",
            Self::TooLittle => "too small a reservation",
            Self::Nothing => "nothing",
        }
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is wrong.
    pub kind: Kind,
    /// How the victim is served.
    pub served: Served,
    /// Those that keep the rules.
    pub innocents: Vec<Part>,
    /// Those that do not.
    pub culprits: Vec<Part>,
    /// Every so many jobs the victim takes this instead.
    pub overrun: Option<(u64, Service)>,
    /// When the victim's device interrupts.
    pub victim: Times,
}

/// The twenty of the experiment: what is wrong, and whether the victim has a reservation.
pub const TWENTY: [(Kind, bool); 20] = [
    (Kind::InterruptsOff, false),
    (Kind::InterruptsOff, true),
    (Kind::InterruptsOff, false),
    (Kind::InterruptsOff, true),
    (Kind::InterruptsOff, false),
    (Kind::InterruptsOff, true),
    (Kind::LongDeferred, false),
    (Kind::LongDeferred, true),
    (Kind::LongDeferred, false),
    (Kind::LongDeferred, true),
    (Kind::LongDeferred, false),
    (Kind::TwoNeeded, false),
    (Kind::TwoNeeded, false),
    (Kind::TwoNeeded, false),
    (Kind::TwoSufficient, false),
    (Kind::TwoSufficient, true),
    (Kind::Rogue, false),
    (Kind::Rogue, true),
    (Kind::Overrun, false),
    (Kind::TooLittle, true),
];

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
            let first = self.span(0, 5_000);
            parts.push(Part::Device {
                level: self.level(),
                times: Times::steady(first, self.span(1_500, 6_000)),
                handler: self.service(5, 90),
                deferred: None,
            });
        }
        let first = self.span(0, 20_000);
        parts.push(Part::Device {
            level: self.level(),
            times: Times::steady(first, self.span(15_000, 40_000)),
            handler: self.service(5, 50),
            deferred: Some(self.service(50, 300)),
        });
        for _ in 0..self.us(0, 2) {
            let (work, first) = (self.service(200, 1_000), self.span(0, 10_000));
            let (priority, every) = (self.priority(16, 30), self.span(12_000, 40_000));
            parts.push(Part::Thread {
                priority,
                times: Times::steady(first, every),
                work,
                declared: Declared::thread(priority, work, every),
            });
        }
        // The callback of the study's §6.3.
        let (callback, every) = (self.service(5, 20), Span::from_millis(1));
        parts.push(Part::Thread {
            priority: Priority::HIGHEST,
            times: Times::steady(Span::ZERO, every),
            work: callback,
            declared: Declared::thread(Priority::HIGHEST, callback, every),
        });
        for _ in 0..self.us(1, 3) {
            let priority = self.priority(6, 10);
            parts.push(Part::Spinner { priority });
        }
        parts
    }

    fn interrupts_off(&mut self) -> Part {
        let first = self.span(100_000, 300_000);
        Part::Device {
            level: self.level(),
            times: Times::steady(first, self.span(400_000, 900_000)),
            handler: self.service(30_000, 50_000),
            deferred: None,
        }
    }

    fn rogue(&mut self, declares: bool) -> Part {
        let priority = Priority::HIGHEST;
        let (first, every) = (self.span(100_000, 300_000), self.span(300_000, 600_000));
        Part::Thread {
            priority,
            times: Times::steady(first, every),
            work: self.service(20_000, 45_000),
            declared: if declares {
                Declared::thread(priority, Service::from_millis(1), every)
            } else {
                Declared::rank(priority)
            },
        }
    }

    /// Some deferred calls in a row, of which each leaves little time to the next.
    fn long_deferred(&mut self) -> Part {
        let deferred = self.us(4_500, 5_500);
        let (first, every) = (self.span(100_000, 200_000), self.span(150_000, 400_000));
        Part::Device {
            level: self.level(),
            times: Times {
                first,
                every,
                in_burst: self.us(4, 6),
                apart: Span::from_micros(deferred + self.us(100, 300)),
            },
            handler: self.service(5, 50),
            deferred: Some(Service::from_micros(deferred)),
        }
    }

    /// A driver whose deferred call comes once in a while, right after one of the victim's interrupts.
    fn beside(&mut self, victim: Times, every: u64) -> Part {
        let offset = self.us(50, 900);
        Part::Device {
            level: self.level(),
            times: Times::steady(
                victim.first + PERIOD * 8 + Span::from_micros(offset),
                PERIOD * every,
            ),
            handler: self.service(5, 50),
            deferred: Some(self.service(6_000, 8_500)),
        }
    }

    /// A case of this kind.
    pub fn case(&mut self, kind: Kind, reserved: bool) -> Case {
        let victim = Times::steady(self.span(1_000, 12_000), PERIOD);
        let mut overrun = None;
        let culprits = match kind {
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
            served: if reserved {
                Served::Reserved(service)
            } else {
                Served::Thread
            },
            innocents: self.innocents(),
            culprits,
            overrun,
            victim,
        }
    }
}

/// The case of a kind that is run on this machine: a thread above the victim that takes over now and then, a device that keeps interrupts off,
/// or nobody.
#[must_use]
pub fn set(kind: Kind) -> Case {
    let priority = Priority::new(28).unwrap_or(Priority::HIGHEST);
    let rare = Times::steady(Span::from_millis(211), Span::from_millis(450));
    let culprit = match kind {
        Kind::Rogue => Some(Part::Thread {
            priority,
            times: rare,
            work: Service::from_millis(25),
            declared: Declared::rank(priority),
        }),
        Kind::InterruptsOff => Some(Part::Device {
            level: 9,
            times: rare,
            handler: Service::from_millis(35),
            deferred: None,
        }),
        _ => None,
    };
    let device = Part::Device {
        level: 7,
        times: Times::steady(Span::from_millis(3), Span::from_micros(3_700)),
        handler: Service::from_micros(30),
        deferred: None,
    };
    let priority = Priority::NORMAL;
    Case {
        kind,
        served: Served::Thread,
        innocents: vec![device, Part::Spinner { priority }],
        culprits: culprit.into_iter().collect(),
        overrun: None,
        victim: Times::steady(Span::from_millis(5), PERIOD),
    }
}
