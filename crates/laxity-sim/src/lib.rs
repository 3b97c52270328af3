//! The virtual-time twin: a [`Host`](laxity_model::Host) that is a discrete-event machine. The same program runs here and on Linux, and
//! the same decision code ([`laxity_model::policy::bands`], [`laxity_model::policy::slots`]) says who runs.
//!
//! There are two kinds of twin: of the modem study's host and its likes ([`Profile`]), of which the rest of this page tells, and of a
//! Linux machine that was measured ([`Twin::linux`]). Both are machineries on one core, which has the calendar, steps, waits, and what
//! programs ask for; they decide who has a processor, and what that costs. A run can be taken from instant to instant ([`Machine`]).
//!
//! # What has the processor
//!
//! On each processor, from the top:
//!
//! 1. *interrupt handlers*: the highest level raised; a handler is interrupted by higher levels only;
//! 2. *deferred procedure calls*: one first-in first-out queue, each queued at most once, interrupted by interrupts only;
//! 3. *reservations*: in its time slot, a runnable holder;
//! 4. *threads* by priority bands. A slot that its holder does not use belongs to them; a holder that wakes inside its slot gets the rest
//!    of it at once. Outside its slots a holder competes here ([`Outside::Timesharing`](laxity_model::Outside)) or does not run
//!    (`Confined`). Its slots take nothing from its quantum, and it keeps its place among its equals meanwhile.
//! 5. idle.
//!
//! `External` activities take no processor: what they charge passes as time. Slots of a reservation that is not in force go to the threads. The table
//! is made once, before the run, of all reservations that the program declares, and begins at the run's start.
//!
//! # Time
//!
//! A run begins at [`Instant::ZERO`](laxity_model::Instant) and covers `[0, length)`: what is due at the very end does not happen. Each activity is ready
//! at the start; the first step of an interrupt handler or deferred procedure call, which tells what it waits for, runs as such.
//! A step takes no time; what it charges takes time afterwards. What it signals takes effect at that instant, but who runs is decided
//! when the step has returned.
//!
//! An instant is processed in rounds until nothing more is due at it: (a) the clock tick; (b) processors in the order of their numbers, where work
//! ended; (c) timers in the order in which they were set; (d) where something changed, who runs is decided: slot edges, ends of
//! quanta, preemption. So work that ends at an instant ends before what wakes at it, and a signal beats a time-out.
//!
//! Threads sleep until the first tick of the clock at or after the instant they ask for (exactly until that instant where a profile
//! has no tick); devices (interrupts and externals) are exact.
//! Costs ([`Costs`]) are taken from whoever has the processor, before its work goes on: nothing interrupts them, no activity is charged for them, and quanta and slots
//! run on meanwhile.
//!
//! # Waiting
//!
//! * `Wait` with a count above zero goes on at once, for a handler or deferred call too: the same invocation goes on.
//! * `SleepUntil` an instant that is past goes on at once; for an interrupt handler this invocation ends, and its device raises it again at once.
//! * Waiters on a semaphore are served first come, first served.
//! * `Yield` means something in a thread only, and nothing inside a reservation's slot.
//!
//! # What is recorded
//!
//! `Wake`: a thread's wait is over (every timed wait, also one that was over before it began; semaphores only if it had to wait).
//! `Dispatch` and `Preempt`: threads only; an interrupt is no preemption. Switch costs come after `Dispatch`, entry costs after `InterruptEnter` and
//! `DeferredEnter`. A thread that yields to another is preempted, but counted as a voluntary switch.
//! `SlotBegin` and `SlotEnd`: of reservations in force, whether or not the holder can use the slot. Equal programs give equal records, to the byte.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod core;
mod linux;
pub mod net;
pub mod nodes;
mod study;
mod supply;
mod twin;

pub use core::{Machine, Recording};
pub use study::{Costs, Profile};
pub use twin::Twin;
