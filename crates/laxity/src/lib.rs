//! Predictable execution for soft real-time work on ordinary Linux: what an application imports.
//!
//! # Reserve the processor
//!
//! [`reserve`] gives the calling thread so much processor time out of every so much, by the kernel's `SCHED_DEADLINE`, until the
//! value it returns is dropped; however the thread leaves, it then has the policy and the processors it had before. A refusal says
//! its one cause and what to do about it.
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
//! # Run a program on either host
//!
//! A [`Program`] is activities whose bodies are state machines. The [`Twin`] runs it in virtual time, the same every time and on every
//! machine; a [`LiveHost`] runs it on this machine's Linux. Both are a [`Host`], and both return a [`RunRecord`]. What a host runs was
//! admitted first ([`admission::admit`]), on what that host says it can enforce: [`Host::admit_and_run`] is both in one.
//!
//! ```
//! use laxity::{Context, Host, Placement, Priority, ProcessorId, Profile, Program, Service, Span, Step, Twin};
//!
//! let mut program = Program::new(1);
//! let thread = Placement::Thread(Priority::NORMAL);
//! for name in ["one", "two"] {
//!     program.add(name, ProcessorId(0), thread, |_: &mut dyn Context| {
//!         Step::Burn(Service::from_millis(1))
//!     });
//! }
//! let record = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_secs(1))?;
//! let received: Service = record.usage.iter().map(|usage| usage.service).sum();
//! assert_eq!(received, Service::from_secs(1));
//! # Ok::<(), laxity::HostError>(())
//! ```
//!
//! # Know before anything runs
//!
//! [`analysis`] says whether deadlines will be met, on every kind of supply: exactly where that is possible, safely elsewhere.
//! [`slots`] plans a table of time slots for reservations of any periods.
//!
//! ```
//! use laxity::analysis::supply::Continuous;
//! use laxity::analysis::{Task, fixed_priority};
//! use laxity::{Reservation, Service, Span};
//!
//! // Two tasks in a reservation of 2 ms out of every 8, the more urgent first.
//! let tasks = [
//!     Task::new(Service::from_micros(500), Span::from_millis(10))?,
//!     Task::new(Service::from_millis(3), Span::from_millis(20))?,
//! ];
//! let supply = Continuous::new(Reservation::new(Service::from_millis(2), Span::from_millis(8))?);
//! assert!(fixed_priority::test(&tasks, &supply)?.is_schedulable());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/reserve.rs` and `examples/two_hosts.rs` are the first two, complete.
#![forbid(unsafe_code)]

mod error;
mod event_log;
mod reserve;

pub use error::Error;
pub use event_log::{EventLog, LogEntry};
pub use reserve::{Reserved, reserve};

pub use laxity_linux::doctor::{Cause, Diagnosis, can_run_live};
pub use laxity_linux::os::clock::{now, sleep_until};
pub use laxity_linux::{LiveConfig, LiveHost};
pub use laxity_model::admission;
pub use laxity_model::analysis;
pub use laxity_model::enforce::Witness;
pub use laxity_model::executor;
pub use laxity_model::policy::{self, slots};
pub use laxity_model::{
    Activity, ActivityId, Body, Context, Disturbance, Enforcer, Event, EventKind, Grade, Grant,
    Host, HostError, Instant, InterruptLevel, Mark, Outside, Placement, Priority, ProcessorId,
    Program, Reservation, ReservationError, ReservationRequest, RunEnd, RunRecord, SemaphoreId,
    Service, Span, Step, Usage,
};
pub use laxity_sim::{Profile, Recording, Twin};
