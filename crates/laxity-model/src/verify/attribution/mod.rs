//! Whose fault: who made a job late, from the events of a run alone. The verdict names the interfering tasks, not the victim (Jones, Saroiu §8.1 ask
//! for "systematic latency timing verification of all components": a vendor plays by the rules only if others are seen to).
//!
//! # What is computed
//!
//! 1. *Timeline*. Between two events of the victim's processor one activity holds it: the innermost interrupt handler; else the
//!    deferred call; else the thread dispatched last that has neither waited nor been preempted since; else nobody.
//! 2. *Excess*. Each call of a handler, each deferred call and each job of a thread may take what the [`Rules`] and its declaration
//!    allow; what it holds beyond that is excess: the end of the call, or all of a call that came too often. A thread's time counts
//!    only while the victim was ready and had a claim on the processor: a victim with a reservation in force has one within its time slots only.
//! 3. *Chains*. Jobs of the victim that follow each other without a pause are one chain, for lateness is handed on in it; what ran right before
//!    them without a pause, and comes before the victim, belongs to it too, and there a thread's time counts although the victim was not ready
//!    yet. Of threads, those come before the victim that ran within the chain while the victim was ready, and, unless they are declared to rank
//!    no higher than it, those that ran while one that comes before it was ready: what they delayed may reach into the chain.
//! 4. *Counterfactual*. For a set of rule-breakers, the chain is replayed without their excess: all that came before the victim runs as soon as it is
//!    ready (raised, queued or woken), cut short if it is in the set; the victim's jobs, first come first served, each as long as it was, have what is left of the time
//!    on which the victim had a claim, or had in fact. (The victim's own overrun, if it is in the set, is taken off its jobs instead.)
//! 5. *Interfering tasks*. A rule-breaker interferes with a late job if there is a set of other rule-breakers without whose excess the job is
//!    still late, and without whose excess *and* this one's it is in time: it belongs to a smallest set that explains the lateness. So of two at once both are named if both are
//!    needed, and both if each suffices; somebody whose excess changes nothing is not. They are ranked by how much earlier the job
//!    ends without each alone.
//! 6. *Nobody's fault*: a job that is late even without all excess was promised too little: its reservation is too small; or it ranks
//!    too low among threads (in time without those of no higher rank); or all together is too much for the processor.
//!
//! A replay invents nothing: time in which the victim was not ready, or had no claim and did not run, stays closed to it, and what an excess delayed from before
//! the chain stays in it. Threads that come before the holder of a slot stay where they were. And a reservation's holder that lived on time outside its slots may be told that the reservation is too small
//! where an interfering task took that time: nobody owed it that time.
//!
//! # What a live trace can tell
//!
//! Live, handlers and deferred calls are emulated by threads, and no event says that a thread was preempted. Threads of real-time rank nest, so
//! the timeline holds for them: a rogue of the program is seen from its `Dispatch` to its `Block`. What is not of the program
//! (kernel, other processes) leaves no events: it shows as [`Holder::Unseen`] where the victim records the processor time it
//! received ([`Jobs::Marks::service`]), else as time of whoever seemed to run. `Disturbed` and `Crawled` events of the witness go before everything else, to
//! [`Holder::Machine`]. Threads that share a processor by turns (fair class, round robin) cannot be told apart; they matter only if they rank above the victim.
//! A victim that wanders between processors cannot be judged.

mod calls;
mod chain;
mod jobs;
mod replay;
mod rules;
mod timeline;
mod verdict;

use alloc::vec::Vec;

pub use rules::{Allowance, Declared, Rule, Rules};

use crate::{ActivityId, Event, Instant, Mark, Reservation, Service, Span};

/// How the victim's jobs are told from its events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jobs {
    /// From each wake-up (or call, for a handler) to the next wait. The release is when it was meant to wake (or was raised).
    Waits,
    /// By marks. A job without its marks is not seen, but for the last: see [`Victim::device`].
    Marks {
        /// The job begins.
        begin: Mark,
        /// Which of that mark's two arguments is the release, in nanoseconds of the host.
        release: usize,
        /// The job is complete.
        end: Mark,
        /// Recorded after each end: the first argument is the processor time received so far, in nanoseconds.
        service: Option<Mark>,
    },
}

/// Who may have been wronged, and what it may expect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Whose jobs.
    pub activity: ActivityId,
    /// The interrupt handler of its own device, if it has one: what it raised last and nobody served is a late job too.
    pub device: Option<ActivityId>,
    /// How jobs are told.
    pub jobs: Jobs,
    /// Due so long after their release.
    pub deadline: Span,
    /// The most processor time a job was declared to need. What it takes beyond (and beyond the slack) is its own fault.
    pub work: Service,
}

/// What is asked of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question<'a> {
    /// Of whom.
    pub victim: Victim,
    /// What is declared, by [`ActivityId`]; who is beyond its end declared nothing.
    pub declared: &'a [Declared],
    /// What everybody has to keep.
    pub rules: Rules,
}

/// Who held the processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Holder {
    /// The victim itself.
    Victim,
    /// An interrupt handler.
    Handler(ActivityId),
    /// A deferred procedure call.
    Deferred(ActivityId),
    /// Another thread.
    Thread(ActivityId),
    /// The machine stood still.
    Machine,
    /// Something without events, while the victim seemed to run.
    Unseen,
    /// Nobody that is known.
    Nobody,
}

impl Holder {
    /// The activity it is, if it is one.
    pub const fn activity(self) -> Option<ActivityId> {
        match self {
            Self::Handler(id) | Self::Deferred(id) | Self::Thread(id) => Some(id),
            Self::Victim | Self::Machine | Self::Unseen | Self::Nobody => None,
        }
    }
}

/// How long somebody held the processor between a late job's release and its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Who.
    pub who: Holder,
    /// How long.
    pub time: Span,
    /// How much of it in excess of the rules.
    pub excess: Span,
}

/// Somebody without whom a late job would have been in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterferingTask {
    /// Who.
    pub who: Holder,
    /// What it broke.
    pub rule: Rule,
    /// What it held in excess, in the job's chain up to the job's end.
    pub excess: Span,
    /// How much earlier the job would have ended without that excess alone.
    pub explains: Span,
    /// Whether that alone would have made the job in time.
    pub suffices: bool,
    /// Whether the job would have been late without the excess of all others.
    pub needed: bool,
}

/// Why a job was late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// By these, the one who explains most first; [`Holder::Victim`] may be among them.
    InterferingTasks(Vec<InterferingTask>),
    /// Nobody's, but what was reserved does not suffice even if all keep the rules.
    Reservation {
        /// What was in force.
        reserved: Reservation,
        /// What the chain's jobs up to this one needed.
        needed: Service,
        /// What there was of slots from the chain's beginning to this job's deadline, used or not.
        in_slots: Service,
    },
    /// Nobody's, but it ranks no higher than threads that ran: in time without them.
    Rank,
    /// Nobody broke a rule so that it matters, and all together was too much.
    Overload,
}

/// A late job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LateJob {
    /// When it was released.
    pub release: Instant,
    /// When it was complete; the end of the trace if it never was.
    pub end: Instant,
    /// Whether it was completed.
    pub completed: bool,
    /// By how much it was late.
    pub lateness: Span,
    /// When its chain began: lateness before its release was handed on from there.
    pub chain_from: Instant,
    /// Who held the processor from its release to its end, the longest first.
    pub held: Vec<Held>,
    /// Why it was late.
    pub fault: Fault,
}

/// How an activity kept the rules in the whole trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Breach {
    /// Who.
    pub who: Holder,
    /// What it broke (the worst first seen).
    pub rule: Rule,
    /// How often.
    pub times: u64,
    /// The longest call or job.
    pub longest: Span,
}

/// Somebody the verdict names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// Who.
    pub who: Holder,
    /// What it broke.
    pub rule: Rule,
    /// Late jobs it is an interfering task of.
    pub jobs: u64,
    /// How much earlier those would have ended without it, in sum.
    pub explains: Span,
}

/// What a trace says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// Jobs seen.
    pub jobs: u64,
    /// Those that were late, by release.
    pub late: Vec<LateJob>,
    /// The interfering tasks of all late jobs together, the one who explains most first.
    pub named: Vec<Named>,
    /// Everybody who broke a rule, whether it made a job late or not, by activity. A thread that declares nothing is among them only if it
    /// ran while the victim was ready.
    pub breaches: Vec<Breach>,
    /// The device's longest wait from raising an interrupt to its handler, if the victim has a device.
    pub longest_held_off: Option<Span>,
}

/// Who is to blame for the victim's late jobs, if anybody. `events` by time, as in a [`RunRecord`](crate::RunRecord). Takes O(events) and, for each chain with late
/// jobs, O(2ⁿ · events in it) for its n ≤ [`MOST_SUSPECTS`] rule-breakers.
pub fn attribute(events: &[Event], question: &Question<'_>) -> Findings {
    let Some(first) = events
        .iter()
        .find(|event| event.activity == question.victim.activity)
    else {
        return Findings::default();
    };
    let timeline = timeline::Timeline::read(events, first.processor, question);
    let jobs = jobs::read(events, &question.victim, timeline.end);
    verdict::judge(&timeline, &jobs, question)
}

/// So many rule-breakers of one chain are examined, those with the most excess; the rest count as innocent of it.
pub const MOST_SUSPECTS: usize = 10;
