//! Predictable execution for soft real-time work on ordinary Linux: what an application imports.
//!
//! # What can I do here?
//!
//! | to | call | an example |
//! |---|---|---|
//! | **reserve** the processor for a thread of mine | [`reserve`], [`Request`] | [below](#reserve), `examples/reserve.rs` |
//! | **run** a program of activities, on this machine or in its twin | [`Host::admit_and_run`] of a [`LiveHost`] or a [`Twin`] | [below](#run), `examples/two_hosts.rs` |
//! | **take turns**: several tasks in one thread, by deadline, by rate or in their order | [`Program::executor`] with [`executor::Edf`], [`executor::Fcfs`] or [`executor::Rmdp`] | [below](#take-turns) |
//! | **call** handlers of mine when they are due, in one real-time thread, while I make and end them | [`upcalls::Upcalls`]; mapped from what they are for: [`upcalls::qos`] | [there](upcalls), `examples/upcalls.rs`, `examples/qos.rs` |
//! | **share** a network interface: many clients, each with buffers of its own and called when its packet arrives | [`net::Interface`] | [there](net), `examples/peek.rs`, `examples/early.rs` |
//! | **send** messages to another host, each there within a time, or be refused with a reason | [`channels::Node`], or [`channels::Client`] where a daemon has it | [there](channels), `examples/channel.rs` |
//! | **analyse** whether deadlines will be met, before anything runs | [`analysis`]; of a whole program [`admission::admit`] | [below](#analyse) |
//! | **judge** what happened by a contract | [`judge`] | [below](#judge), `examples/two_hosts.rs` |
//!
//! Besides: what this machine can do, and the remedy for what it cannot ([`doctor`]); what it costs ([`calibrate`]); programs of others,
//! scheduled or reserved for ([`command`]); an application's own events ([`EventLog`]); activities that wait for each
//! other at ports ([`Program::port`]), which descriptors of the outside may feed ([`LiveHost::feed`]); turns by a policy of one's own
//! (`examples/own_policy.rs`); reservations that follow the load ([`adaptive`]); and the
//! host of the modem study, with its 32 priorities, interrupts and deferred calls ([`study`]).
//!
//! # Reserve
//!
//! [`reserve`] gives the calling thread so much processor time out of every so much, by the kernel's `SCHED_DEADLINE`, until the
//! value it returns is dropped; however the thread leaves, it then has the policy and the processors it had before. A refusal says
//! its one cause and what to do about it. A [`Request`] asks for more: time slots that keep to the microsecond, on a processor of one's choice.
//! What was received is read back: [`Reserved::delivery`].
//!
//! ```no_run
//! use laxity::{EventLog, Service, Span, now, reserve, sleep_until};
//!
//! let mut log = EventLog::new("modem");
//! let block = log.declare("block");
//!
//! let period = Span::from_millis(8);
//! let reserved = reserve(Service::from_millis(2), period)?;
//! let mut due = now();
//! for number in 0..100 {
//!     // … work on one block …
//!     log.mark(block, [number, 0]);
//!     due += period;
//!     sleep_until(due);
//! }
//! println!("{} was {}", reserved.reservation(), reserved.grade());
//! drop(reserved);
//!
//! for entry in log.events() {
//!     println!("{entry}");
//! }
//! # Ok::<(), laxity::Error>(())
//! ```
//!
//! # Run
//!
//! A [`Program`] is activities whose bodies are state machines, each placed as Linux schedules threads. The [`Twin`] runs it in virtual time,
//! the same every time and on every machine; a [`LiveHost`] runs it on this machine's Linux. Both are a [`Host`], and both return a
//! [`RunRecord`]. What a host runs was admitted first, on what that host says it can enforce.
//!
//! ```
//! use laxity::{Context, Host, Machine, Placement, ProcessorId, Program, Scheduling, Service, Span, Step, Twin};
//!
//! let mut program = Program::new(1);
//! for (name, nice) in [("one", 0), ("two", 5)] {
//!     let thread = Placement::Linux(Scheduling::Fair { nice });
//!     program.add(name, ProcessorId(0), thread, |_: &mut dyn Context| {
//!         Step::Burn(Service::from_millis(1))
//!     });
//! }
//! // A machine under Linux with a tick of 250 Hz that costs nothing; `calibrate` measures a real one.
//! let mut twin = Twin::linux(&Machine::without_costs(250), 1);
//! let record = twin.admit_and_run(program, Span::from_secs(1))?;
//! let [one, two] = [0, 1].map(|activity| record.usage[activity].service);
//! assert_eq!(one + two, Service::from_secs(1));
//! assert!(one > two * 2, "five nice steps are a factor of three");
//! # Ok::<(), laxity::HostError>(())
//! ```
//!
//! # Take turns
//!
//! On an executor the jobs of several tasks take turns in one thread, each to its end. Its policy says before anything runs whether all of
//! them will meet their deadlines; where one may not, the program is refused and the task named.
//!
//! ```
//! use laxity::contract::{Bound, Contract, Limit, Outcome, Quantity, Statistic};
//! use laxity::executor::Edf;
//! use laxity::upcall::Timing;
//! use laxity::{
//!     Host, Machine, Periodic, Placement, ProcessorId, Program, Scheduling, Service, Span, Step, Twin, judge,
//! };
//!
//! let mut program = Program::new(1);
//! let thread = (ProcessorId(0), Placement::Linux(Scheduling::Fifo(50)));
//! let executor = program.executor("shared", thread, None, Edf::default());
//! let mut tasks = Vec::new();
//! for (name, service, period) in [("video", 8, 40), ("audio", 3, 30)] {
//!     let (service, period) = (Service::from_millis(service), Span::from_millis(period));
//!     let timing = Timing::each(period);
//!     let task = Periodic {
//!         name: name.into(),
//!         processor: ProcessorId(0),
//!         placement: Placement::On { executor, task: Some(timing.task(service, period)?) },
//!         reservation: None,
//!         timing,
//!         deadline: period,
//!         service,
//!     };
//!     tasks.push(task.install(&mut program, move |_, _| Step::Burn(service)));
//! }
//! let record = Twin::linux(&Machine::without_costs(250), 1).admit_and_run(program, Span::from_secs(1))?;
//!
//! let never_late = Limit::new(Quantity::DEADLINE_MISSES, Statistic::Total, Bound::AtMost(0));
//! let contract = Contract { name: "in time".into(), limits: vec![never_late], ..Contract::default() };
//! assert_eq!(judge(&contract, &record, &tasks).result, Outcome::Met);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Analyse
//!
//! [`analysis`] says whether deadlines will be met, on every kind of supply: exactly where that is possible, safely elsewhere.
//!
//! ```
//! use laxity::analysis::supply::ExplicitDeadline;
//! use laxity::analysis::{Task, fixed_priority};
//! use laxity::{Reservation, Service, Span};
//!
//! // Two tasks in a reservation of 2 ms out of every 8, the more urgent first.
//! let tasks = [
//!     Task::new(Service::from_micros(500), Span::from_millis(10))?,
//!     Task::new(Service::from_millis(3), Span::from_millis(20))?,
//! ];
//! let supply = ExplicitDeadline::continuous(Reservation::new(Service::from_millis(2), Span::from_millis(8))?);
//! assert!(fixed_priority::test(&tasks, &supply)?.is_schedulable());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Judge
//!
//! A [`Contract`](contract::Contract) says what "on time" means; [`judge`] says whether a run kept it, or that the evidence does not tell.
//!
//! ```
//! use laxity::contract::{Bound, Contract, Limit, Outcome, Quantity, Statistic};
//! use laxity::upcall::Timing;
//! use laxity::{
//!     Host, Machine, Periodic, Placement, ProcessorId, Program, Scheduling, Service, Span, Step, Twin, judge,
//! };
//!
//! let service = Service::from_micros(300);
//! let mut program = Program::new(1);
//! let task = Periodic {
//!     name: "control".into(),
//!     processor: ProcessorId(0),
//!     placement: Placement::Linux(Scheduling::Fifo(50)),
//!     reservation: None,
//!     timing: Timing::each(Span::from_millis(1)),
//!     deadline: Span::from_millis(1),
//!     service,
//! };
//! let control = task.install(&mut program, move |_, _| Step::Burn(service));
//! let record = Twin::linux(&Machine::without_costs(250), 1).admit_and_run(program, Span::from_secs(1))?;
//!
//! let half = Bound::AtMost(500_000);
//! let contract = Contract {
//!     name: "half a period".into(),
//!     limits: vec![Limit::new(Quantity::RESPONSE_TIME, Statistic::Maximum, half)],
//!     ..Contract::default()
//! };
//! assert_eq!(judge(&contract, &record, &[control]).result, Outcome::Met);
//! # Ok::<(), laxity::HostError>(())
//! ```
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod channels;
mod error;
mod event_log;
pub mod net;
pub mod observe;
pub mod periodic;
mod reserve;
pub mod upcalls;

pub use error::Error;
pub use event_log::{EventLog, LogEntry};
pub use observe::judge;
pub use periodic::{Periodic, PeriodicProbe};
pub use reserve::{Request, Reserved, reserve};

pub use laxity_linux::doctor::can_run_live;
pub use laxity_linux::host::hold::Observer;
pub use laxity_linux::os::clock::{now, sleep_until};
pub use laxity_linux::os::fact::Unknown;
pub use laxity_linux::os::fork::PerProcess;
pub use laxity_linux::os::signals::{Watch, survive_file_size_limit};
pub use laxity_linux::{LiveConfig, LiveHost};
pub use laxity_model::enforce::Witness;
pub use laxity_model::enforce::machine::Machine;
pub use laxity_model::verify::delivery::Delivery;
pub use laxity_model::verify::{attribution, contract};
pub use laxity_model::{
    Activity, ActivityId, Body, Context, Disturbance, Enforcer, Event, EventKind, Grade, Grant,
    Host, HostError, Instant, Mark, Outside, Placement, ProcessorId, Program, Refused, Reservation,
    ReservationError, ReservationRequest, RunEnd, RunRecord, Scheduling, SemaphoreId, Service,
    Span, Step, TimeConstraint, TimeConstraintError, Usage, Whereabouts, adaptive, analysis,
};
/// Network cards of the twin, and the wire between two of them.
pub use laxity_sim::net as cards;
pub use laxity_sim::{Recording, Twin};

/// What this machine can do, and the remedy for what it cannot.
pub mod doctor {
    pub use laxity_linux::doctor::machine::Kernel;
    pub use laxity_linux::doctor::{Cause, Diagnosis, Finding, Machine, Status, diagnose, rights};
}

/// Programs that are started: placed before they execute, watched while they run, and ended with everything that they started.
pub mod command {
    pub use laxity_linux::host::beside::{Beside, Right};
    pub use laxity_linux::host::command::{
        End, EndError, Ended, Held, ProcessGroup, RunningCommand, StartError, Used, look_for,
    };
    pub use laxity_linux::os::cpuset::CpuSet;
    pub use laxity_linux::os::open_files;
    pub use laxity_linux::os::proc::process_of;
    pub use laxity_linux::os::sched::{Policy, SchedError, affinity, set_policy};
    pub use laxity_linux::os::signals::{Got, Inbox, for_a_program, is_ignored, is_own, obey};
}

/// Reservations of programs that are not ours: started for it, or running already.
pub mod hold {
    pub use laxity_linux::host::hold::{
        Choice, CloseHold, Confinement, HoldError, HoldRequest, Holders, ProgramHold,
        ProgramRequest, may_reserve,
    };
    pub use laxity_linux::os::sched::Tid;
    pub use laxity_model::verify::delivery::{Halts, KIND, OVERRUNS, SHORT_PERIODS, Stretch};
}

/// Yes or no before anything runs, with the reason, and the nearest request that fits.
pub mod admission {
    pub use laxity_model::admission::{
        Admission, Admitted, Advice, DeadlineSupply, Denial, Keeps, Prediction, ProcessorSupply,
        Rejected, RequestAdmission, SlotSupply, Supply, Why, admit,
    };
    pub use laxity_model::policy::slots::Change;
    pub use laxity_model::request::{Shortage, Work};
}

/// Handlers that take turns in one thread: first come, first served, the earliest deadline first, rate monotonic with delayed preemption, or by a policy of one's own with the
/// schedulability test that belongs to it.
pub mod executor {
    pub use laxity_model::executor::edf::Edf;
    pub use laxity_model::executor::fcfs::Fcfs;
    pub use laxity_model::executor::rmdp::Rmdp;
    pub use laxity_model::executor::{
        ExecutorError, ExecutorPolicy, HandlerId, Job, Ready, Unschedulable,
    };
    pub use laxity_model::policy::{Decision, Policy};
    pub use laxity_model::{ExecutorId, PortId};
}

/// How an activity becomes more urgent for a while: [`Context::raise`], [`Program::declare_raise`].
pub mod raise {
    pub use laxity_model::policy::Rank;
    pub use laxity_model::policy::raise::Highest;
}

/// When the jobs of a periodic task are released, of how many units each is, and what the handler is told of each call.
pub mod upcall {
    pub use laxity_model::executor::pacing::{OnOverrun, Paced};
    pub use laxity_model::program::upcall::{Call, Epoch, First, Timing, Upcall};
    pub use laxity_model::program::{Group, Links};
}

/// The modem study's host (Windows 2000 on a Pentium II): its twin, its 32 priorities, its interrupt levels. Linux emulates them:
/// [`Placement`] tells how.
pub mod study {
    pub use laxity_model::{InterruptLevel, Priority};
    pub use laxity_sim::{Costs, Profile};
}

/// The pages in `docs/` whose examples are this crate's: run with its own.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/net.md")]
#[doc = include_str!("../../../docs/upcalls.md")]
#[doc = include_str!("../../../docs/which-test.md")]
struct Pages;
