//! What is known of an upcall, for all to read while it runs.

use super::Standing;
use crate::base::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::executor::ExecutorError;
use crate::program::upcall::Call;
use crate::{Instant, Span};

/// What an upcall has done since it was made. Of one that is at work each number is right by itself, while others may be of a moment later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Calls that have begun.
    pub calls: u64,
    /// Units that were done in them.
    pub units: u64,
    /// Calls that were still at work when their next release came, and were over by the time that this was asked.
    pub overruns: u64,
    /// Releases that came to nothing for that.
    pub missed: u64,
    /// Calls that ended, or were cut off, after they were due: their deadline counts from their release, or from that of their chain's first. Of a group's members none, since they wait for its budget.
    pub late: u64,
    /// How often it has yielded to somebody more urgent.
    pub yields: u64,
    /// The longest from a release to the begin of its call.
    pub most_late: Span,
    /// The longest from a release to the end of its call.
    pub longest_response: Span,
    /// The same from the release of the first of its chain; its own where nobody precedes it.
    pub longest_end_to_end: Span,
    /// The longest quantum, on the clock: with all that took the processor away meanwhile.
    pub longest_quantum: Span,
    /// Calls with a quantum that took longer than was declared for it.
    pub over_service: u64,
    /// Arrivals that were dropped because too many waited.
    pub dropped: u64,
    /// When the call began that it is in; `None` between calls. What that call makes of the releases that come meanwhile, its own and those of others that wait for it, is counted after it.
    pub at_work_since: Option<Instant>,
}

/// The state of one upcall: written by its executor alone, read by anybody. Nobody waits for anybody. It has cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Board {
    standing: AtomicU32,
    /// How the last command ended that was answered.
    outcome: AtomicU32,
    /// The ticket of that command.
    answered: AtomicU64,
    /// Stretches of work without a look.
    quanta: AtomicU64,
    /// The release of the call that it is in; none between calls.
    in_call_ns: AtomicU64,
    /// When that began.
    began_ns: AtomicU64,
    /// The release of the last call that has begun; none before the first.
    called_ns: AtomicU64,
    /// When the call is due that it is in.
    due_ns: AtomicU64,
    calls: AtomicU64,
    units: AtomicU64,
    overruns: AtomicU64,
    missed: AtomicU64,
    late: AtomicU64,
    yields: AtomicU64,
    most_late_ns: AtomicU64,
    longest_response_ns: AtomicU64,
    longest_end_to_end_ns: AtomicU64,
    longest_quantum_ns: AtomicU64,
    over_service: AtomicU64,
    /// The release of the first of the chain whose call it is in.
    origin_ns: AtomicU64,
    /// Whether whoever left the place may still be in the way of others.
    owes: AtomicU32,
    /// Those of these places are released when a call of it is over.
    successors: [AtomicU64; 2],
    /// Written by all who have something arrive.
    dropped: AtomicU64,
    /// So many of them were told of.
    dropped_told: AtomicU64,
}

/// Between calls, and before the first.
const NONE: u64 = u64::MAX;

fn instant(nanos: u64) -> Option<Instant> {
    (nanos != NONE).then(|| Instant::from_nanos(nanos))
}

/// How commands end.
const DONE: u32 = 0;
const DENIED: u32 = 1;
const FULL: u32 = 2;

/// There is one writer, so that nothing is lost between the load and the store.
fn add(to: &AtomicU64, more: u64) {
    let sum = to.load(Ordering::Relaxed).wrapping_add(more);
    to.store(sum, Ordering::Relaxed);
}

fn raise(to: &AtomicU64, value: Span) {
    let most = to.load(Ordering::Relaxed).max(value.as_nanos());
    to.store(most, Ordering::Relaxed);
}

impl Default for Board {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            standing: AtomicU32::new(0),
            outcome: AtomicU32::new(DONE),
            answered: zero(),
            quanta: zero(),
            in_call_ns: AtomicU64::new(NONE),
            began_ns: AtomicU64::new(NONE),
            called_ns: AtomicU64::new(NONE),
            due_ns: zero(),
            calls: zero(),
            units: zero(),
            overruns: zero(),
            missed: zero(),
            late: zero(),
            yields: zero(),
            most_late_ns: zero(),
            longest_response_ns: zero(),
            longest_end_to_end_ns: zero(),
            longest_quantum_ns: zero(),
            over_service: zero(),
            origin_ns: zero(),
            owes: AtomicU32::new(0),
            successors: [zero(), zero()],
            dropped: zero(),
            dropped_told: zero(),
        }
    }
}

impl Board {
    /// What the upcall is.
    pub fn standing(&self) -> Standing {
        let code = self.standing.load(Ordering::Acquire) as usize;
        Standing::ALL
            .get(code)
            .copied()
            .unwrap_or(Standing::Panicked)
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        let read = |from: &AtomicU64| from.load(Ordering::Relaxed);
        let span = |from: &AtomicU64| Span::from_nanos(read(from));
        Counts {
            calls: read(&self.calls),
            units: read(&self.units),
            overruns: read(&self.overruns),
            missed: read(&self.missed),
            late: read(&self.late),
            yields: read(&self.yields),
            most_late: span(&self.most_late_ns),
            longest_response: span(&self.longest_response_ns),
            longest_end_to_end: span(&self.longest_end_to_end_ns),
            longest_quantum: span(&self.longest_quantum_ns),
            over_service: read(&self.over_service),
            dropped: read(&self.dropped),
            at_work_since: instant(read(&self.began_ns)),
        }
    }

    /// How the command ended that had this ticket, once it was carried out. Whoever asks must put no other meanwhile.
    pub fn answer(&self, ticket: u64) -> Option<Result<(), ExecutorError>> {
        if self.answered.load(Ordering::Acquire) != ticket {
            return None;
        }
        Some(match self.outcome.load(Ordering::Relaxed) {
            DONE => Ok(()),
            FULL => Err(ExecutorError::Full),
            _ => Err(ExecutorError::NoSuchHandler),
        })
    }

    /// Its handler panicked: where it is called next it ends. For the executor's thread alone.
    pub fn note_panic(&self) {
        self.becomes(Standing::Panicked);
    }

    /// It is this now. For the executor's thread alone, as all that follows.
    pub fn becomes(&self, standing: Standing) {
        self.standing.store(standing as u32, Ordering::Release);
    }

    /// Whether an upcall of this place that was called and is closed counts as if it were there: what it has done may make others later until the executor has had nothing to do. So
    /// admission counts it until then, and the place is nobody's.
    pub fn owes(&self) -> bool {
        self.owes.load(Ordering::Acquire) != 0
    }

    pub(super) fn owe(&self, does: bool) {
        self.owes.store(does.into(), Ordering::Release);
    }

    /// A command is carried out, or not.
    pub fn answers(&self, ticket: u64, outcome: Result<(), ExecutorError>) {
        let code = match outcome {
            Ok(()) => DONE,
            Err(ExecutorError::Full) => FULL,
            Err(_) => DENIED,
        };
        self.outcome.store(code, Ordering::Relaxed);
        self.answered.store(ticket, Ordering::Release);
    }

    /// Somebody else has the place now.
    pub fn clear(&self) {
        let counts = [
            &self.calls,
            &self.units,
            &self.overruns,
            &self.missed,
            &self.late,
            &self.yields,
            &self.most_late_ns,
            &self.longest_response_ns,
            &self.longest_end_to_end_ns,
            &self.longest_quantum_ns,
            &self.over_service,
            &self.successors[0],
            &self.successors[1],
            &self.dropped,
            &self.dropped_told,
        ];
        for count in counts {
            count.store(0, Ordering::Relaxed);
        }
        for instant in [&self.in_call_ns, &self.began_ns, &self.called_ns] {
            instant.store(NONE, Ordering::Relaxed);
        }
    }

    /// A stretch of work begins. The call is due so long after the release of its chain's first; [`Span::MAX`] of one that never is.
    pub(super) fn works(&self, call: &Call, deadline: Span) {
        add(&self.quanta, 1);
        if self.is_in_call() {
            return;
        }
        let release = call.paced.release;
        let began = call.began.as_nanos();
        self.began_ns.store(began, Ordering::Relaxed);
        for begun in [&self.in_call_ns, &self.called_ns] {
            begun.store(release.as_nanos(), Ordering::Relaxed);
        }
        let origin = call.origin.as_nanos();
        self.origin_ns.store(origin, Ordering::Relaxed);
        let due = origin.saturating_add(deadline.as_nanos());
        self.due_ns.store(due, Ordering::Relaxed);
        add(&self.calls, 1);
        add(&self.missed, call.paced.missed);
        add(&self.overruns, call.paced.overrun.into());
        raise(&self.most_late_ns, call.began.saturating_since(release));
    }

    /// So many units of it are done.
    pub fn did(&self, units: u32) {
        add(&self.units, units.into());
    }

    pub(super) fn quanta(&self) -> u64 {
        self.quanta.load(Ordering::Relaxed)
    }

    /// It yields to somebody more urgent.
    pub fn yields(&self) {
        add(&self.yields, 1);
    }

    pub(super) fn overran(&self) {
        add(&self.overruns, 1);
    }

    /// Whether it is in a call.
    pub(super) fn is_in_call(&self) -> bool {
        self.in_call_ns.load(Ordering::Relaxed) != NONE
    }

    /// The release of the last call that has begun.
    pub(super) fn called(&self) -> Option<Instant> {
        instant(self.called_ns.load(Ordering::Relaxed))
    }

    /// The call is over.
    pub(super) fn responds(&self, now: Instant) {
        self.began_ns.store(NONE, Ordering::Relaxed);
        let release = self.in_call_ns.swap(NONE, Ordering::Relaxed);
        if release != NONE {
            let response = now.saturating_since(Instant::from_nanos(release));
            raise(&self.longest_response_ns, response);
            let due = self.due_ns.load(Ordering::Relaxed);
            add(&self.late, (now.as_nanos() > due).into());
            raise(
                &self.longest_end_to_end_ns,
                now.saturating_since(self.origin()),
            );
        }
    }

    /// A quantum took this long; `is_over` if it is the first of its call that took longer than was declared.
    pub(super) fn measured(&self, took: Span, is_over: bool) {
        raise(&self.longest_quantum_ns, took);
        add(&self.over_service, is_over.into());
    }

    /// The release of the first of the chain whose call it is in, or was in last.
    pub(super) fn origin(&self) -> Instant {
        Instant::from_nanos(self.origin_ns.load(Ordering::Relaxed))
    }

    /// From now on the upcall of this place is released when a call of it is over, or is not any more.
    pub(super) fn precedes(&self, place: u16, does: bool) {
        let Some(word) = self.successors.get(usize::from(place / 64)) else {
            return;
        };
        let (bits, bit) = (word.load(Ordering::Relaxed), 1 << (place % 64));
        let bits = if does { bits | bit } else { bits & !bit };
        word.store(bits, Ordering::Relaxed);
    }

    /// The places of those that are released when a call of it is over.
    pub(super) fn successors(&self) -> impl Iterator<Item = u16> + use<> {
        let words = [0, 1].map(|word: usize| self.successors[word].load(Ordering::Relaxed));
        (0..128).filter(move |place| words[usize::from(place / 64)] >> (place % 64) & 1 == 1)
    }

    /// So many arrivals found no room. For any thread.
    pub fn drops(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// So many have since this was asked last.
    pub(super) fn take_dropped(&self) -> u64 {
        let dropped = self.dropped.load(Ordering::Relaxed);
        dropped.wrapping_sub(self.dropped_told.swap(dropped, Ordering::Relaxed))
    }
}
