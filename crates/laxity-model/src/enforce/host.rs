//! What a host must do, and what it hands back: the record of a run.

use alloc::string::String;
use alloc::vec::Vec;

use super::disturbance::{Disturbance, Whereabouts};
use crate::admission::{Admitted, Supply, admit};
use crate::base::port::PortUsage;
use crate::program::HostError;
use crate::program::Program;
use crate::request::Work;
use crate::{Event, EventKind, Grant, Instant, Mark, Service, Span};

/// The longest stretch of burning ([`Step::Burn`](crate::program::Step::Burn)) between two readings of the thread's own processor time, which cost a
/// system call each. Linux settles its account of a thread for each, and may find that its slice is used up.
pub const BURN_STRETCH: Span = Span::from_micros(100);

/// Runs programs: the twin in virtual time, Linux in real time. Both pass the same conformance suite.
pub trait Host {
    /// What kind of host this is, for reports: `twin win2000-pii450`, `linux 6.18.44`.
    fn describe(&self) -> String;

    /// What this host can enforce now for a program of so many processors: all that admission is told of it.
    ///
    /// # Errors
    ///
    /// [`HostError::CannotRun`] where it cannot have so many, or not those that it is configured with.
    fn supply(&mut self, processors: u16) -> Result<Supply, HostError>;

    /// Runs what was admitted on this host's supply for `length`, or until a body returns
    /// [`Step::EndRun`](crate::program::Step::EndRun), or until all activities have finished. However it ends, everything the host
    /// changed is as it was.
    /// The program's bodies are dropped by the time the record is handed back.
    ///
    /// # Errors
    ///
    /// What fails on the way. [`HostError::Refused`] only where somebody else took meanwhile what was granted.
    fn run(&mut self, admitted: Admitted, length: Span) -> Result<RunRecord, HostError>;

    /// Admits a program on what this host can enforce now. Nothing is started.
    ///
    /// # Errors
    ///
    /// Those of [`Self::supply`], and [`Rejected`](crate::admission::Rejected) as a host's error.
    fn admit(&mut self, program: Program) -> Result<Admitted, HostError> {
        let supply = self.supply(program.processors)?;
        Ok(admit(program, &supply)?)
    }

    /// Admits a program, and runs it.
    ///
    /// # Errors
    ///
    /// Those of [`Self::admit`], with which nothing was started, and of [`Self::run`].
    fn admit_and_run(&mut self, program: Program, length: Span) -> Result<RunRecord, HostError> {
        let admitted = self.admit(program)?;
        self.run(admitted, length)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// Its length was over.
    Length,
    /// A body said so.
    EndRun,
    /// No activity was left.
    AllFinished,
}

/// What one activity used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Processor time received.
    pub service: Service,
    /// Times it gave the processor up to wait.
    pub voluntary_switches: u64,
    /// Times the processor was taken from it.
    pub involuntary_switches: u64,
    /// Page faults served without and with I/O; always 0 in the twin.
    pub page_faults: u64,
    /// The reservation it was granted, if it asked for one.
    pub grant: Option<Grant>,
    /// Where it ran.
    pub ran: Whereabouts,
    /// What [goes first](super::above()) there.
    pub above: Vec<Work>,
}

/// Everything that is known of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    /// When it began.
    pub start: Instant,
    /// When it was over: nobody is owed anything after it. On Linux threads see that at their next look, and what was under way may leave events and
    /// receive service a little later.
    pub end: Instant,
    /// Why.
    pub ended_by: RunEnd,
    /// All events by time; equal times in the order they happened on their processor.
    pub events: Vec<Event>,
    /// Events that did not fit the ring, those of the witness among them. Any loss makes a verdict inconclusive.
    pub events_lost: u64,
    /// By [`ActivityId`](crate::ActivityId).
    pub usage: Vec<Usage>,
    /// By [`PortId`](crate::PortId).
    pub ports: Vec<PortUsage>,
    /// What the witness and dispatchers saw, in order and [apart](Disturbance::joined); empty in the study's twin, or where no witness can serve.
    pub disturbances: Vec<Disturbance>,
    /// Those stretches of them in which a processor [crawled](super::PieceTimes), joined likewise.
    pub crawled: Vec<Disturbance>,
    /// Those that may have been somebody's doing: the processor was held, and nobody was found who could. What they excuse is not known to be the
    /// machine's; always empty in the twin of the study.
    pub doubts: Vec<Disturbance>,
    /// How often the witness woke, of several the one that woke most, as whoever holds up another must not make this one blind; 0 where there was none.
    pub witness_wakeups: u64,
    /// Whether the machine may have stood still and nobody looked: there was no witness, or none ever woke. Never of a twin.
    pub unwatched: bool,
    /// Time the hypervisor took away, as the kernel counts it; `None` in the twin.
    pub steal: Option<Span>,
    /// What else a reader of this must know, each a sentence: who interfered with what was not reserved, and what could not be told.
    pub notices: Vec<String>,
    /// Those of them that say who could have taken the processor from what was not reserved, or that he did, or that nobody could see it; always empty
    /// in a twin. What is reserved has it in its [`Grade`](crate::Grade).
    pub outranked: Vec<String>,
}

impl RunRecord {
    /// What a program recorded under a mark, in order.
    pub fn marked(&self, mark: Mark) -> impl Iterator<Item = &Event> + Clone {
        let events = self.events.iter();
        events.filter(move |event| event.kind == EventKind::Mark(mark))
    }

    /// One between these instants of which nothing else is known: nobody ran, and nobody looked for halts.
    #[must_use]
    pub const fn empty(start: Instant, end: Instant) -> Self {
        Self {
            start,
            end,
            ended_by: RunEnd::Length,
            events: Vec::new(),
            events_lost: 0,
            usage: Vec::new(),
            ports: Vec::new(),
            disturbances: Vec::new(),
            crawled: Vec::new(),
            doubts: Vec::new(),
            witness_wakeups: 0,
            unwatched: false,
            steal: None,
            notices: Vec::new(),
            outranked: Vec::new(),
        }
    }
}
