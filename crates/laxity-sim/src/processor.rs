//! One processor: what is stacked on it, and when something about that is due.

use laxity_model::admission::changes::AdmissionState;
use laxity_model::enforce::{Command, Dispatcher};
use laxity_model::policy::bands::Bands;
use laxity_model::{Instant, Span};

use crate::queue::{Links, Queue};

/// Interrupt levels go from 0 to 31.
pub(crate) const LEVELS: usize = 32;

/// The slot table of one processor as it is carried out.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) dispatcher: Dispatcher,
    /// What is held and granted; its calendar is what the dispatcher carries out.
    pub(crate) admission: AdmissionState,
    /// The activity of each owner in the table.
    pub(crate) owners: Vec<u16>,
    /// The activity whose slot it is.
    pub(crate) owner: Option<u16>,
    /// When the dispatcher wants to be asked again.
    pub(crate) poll_at: Instant,
}

/// An edge of the table that was passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) at: Instant,
    pub(crate) from: Option<u16>,
    pub(crate) to: Option<u16>,
}

impl Slots {
    /// The number of an activity among the owners.
    pub(crate) fn number(&self, activity: u16) -> Option<usize> {
        self.owners.iter().position(|owner| *owner == activity)
    }

    /// The dispatcher is handed what has been granted by now.
    pub(crate) fn adopt(&mut self, now: Instant) {
        self.dispatcher.follow(self.admission.calendar().clone());
        self.poll_at = now;
    }

    /// Carries out the next edge that is due by now.
    pub(crate) fn pass_edge(&mut self, now: Instant) -> Option<Edge> {
        if self.poll_at > now {
            return None;
        }
        match self.dispatcher.poll(now) {
            Command::Switch { from, to, edge } => {
                self.owner = to.map(|owner| self.owners[owner]);
                Some(Edge {
                    at: edge,
                    from: from.map(|owner| self.owners[owner]),
                    to: self.owner,
                })
            }
            // The dispatcher is part of this machine: between edges it is not there.
            Command::SleepUntil(at) | Command::SpinUntil(at) => {
                self.poll_at = at;
                None
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Processor {
    /// When the machine must look at this processor again.
    pub(crate) due: Instant,
    /// When the work of what is executing ends.
    pub(crate) work_ends: Instant,
    /// Since when its work goes on (ahead of now while a cost is being paid).
    pub(crate) working_since: Instant,
    /// Until then the machine's own costs have the processor.
    pub(crate) cost_until: Instant,
    /// When the bands want to decide again.
    pub(crate) decide_at: Instant,
    /// What is executing.
    pub(crate) executing: Option<u16>,
    /// The thread that is loaded: executing, or under interrupts and deferred calls.
    pub(crate) thread: Option<u16>,
    /// The thread that runs by its reservation and not by the bands.
    pub(crate) reserved: Option<u16>,
    /// The deferred call that is executing or interrupted.
    pub(crate) deferred: Option<u16>,
    /// Something changed: who runs must be decided.
    pub(crate) undecided: bool,
    /// The levels at which interrupts are raised and not yet accepted.
    raised_levels: u32,
    /// The handlers that have begun, each interrupted by the next.
    pub(crate) handlers: Vec<(u8, u16)>,
    raised: [Queue; LEVELS],
    pub(crate) deferred_queue: Queue,
    pub(crate) slots: Option<Slots>,
    pub(crate) bands: Bands,
}

impl Processor {
    pub(crate) fn new(bands: Bands, slots: Option<Slots>) -> Self {
        Self {
            due: Instant::MAX,
            work_ends: Instant::MAX,
            working_since: Instant::ZERO,
            cost_until: Instant::ZERO,
            decide_at: Instant::MAX,
            executing: None,
            thread: None,
            reserved: None,
            deferred: None,
            undecided: true,
            raised_levels: 0,
            handlers: Vec::with_capacity(LEVELS),
            raised: [Queue::EMPTY; LEVELS],
            deferred_queue: Queue::EMPTY,
            slots,
            bands,
        }
    }

    /// A device raises its line.
    pub(crate) fn raise(&mut self, links: &mut Links, level: u8, handler: u16) {
        self.raised[usize::from(level)].push(links, handler);
        self.raised_levels |= 1 << level;
        self.undecided = true;
    }

    /// Takes the interrupt that is to be accepted now: of the highest level raised, if that is above what executes.
    pub(crate) fn accept(&mut self, links: &mut Links) -> Option<u16> {
        let level = self.raised_levels.checked_ilog2()? as u8;
        if self.handlers.last().is_some_and(|(at, _)| *at >= level) {
            return None;
        }
        let queue = &mut self.raised[usize::from(level)];
        let handler = queue.pop(links)?;
        if queue.is_empty() {
            self.raised_levels &= !(1 << level);
        }
        self.handlers.push((level, handler));
        Some(handler)
    }

    /// The machine itself takes the processor for this long, after what it already has to pay.
    pub(crate) fn pay(&mut self, cost: Span, now: Instant) {
        if !cost.is_zero() {
            self.cost_until = later(self.cost_until.max(now), cost);
        }
    }

    /// When this processor is next due, by what it knows.
    pub(crate) fn set_due(&mut self) {
        let due = self.work_ends.min(self.decide_at);
        self.due = match &self.slots {
            Some(slots) => due.min(slots.poll_at),
            None => due,
        };
    }
}

/// `span` after `at`, or the end of time.
pub(crate) fn later(at: Instant, span: Span) -> Instant {
    at.checked_add(span).unwrap_or(Instant::MAX)
}
