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
    /// How often it has yielded to somebody more urgent.
    pub yields: u64,
    /// The longest from a release to the begin of its call.
    pub most_late: Span,
    /// The longest from a release to the end of its call.
    pub longest_response: Span,
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
    calls: AtomicU64,
    units: AtomicU64,
    overruns: AtomicU64,
    missed: AtomicU64,
    yields: AtomicU64,
    most_late_ns: AtomicU64,
    longest_response_ns: AtomicU64,
}

/// Between calls.
const NONE: u64 = u64::MAX;

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
            calls: zero(),
            units: zero(),
            overruns: zero(),
            missed: zero(),
            yields: zero(),
            most_late_ns: zero(),
            longest_response_ns: zero(),
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
            yields: read(&self.yields),
            most_late: span(&self.most_late_ns),
            longest_response: span(&self.longest_response_ns),
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
        let mut codes = (0..).zip(Standing::ALL);
        let code = codes.find(|(_, known)| *known == standing);
        self.standing
            .store(code.map_or(0, |(code, _)| code), Ordering::Release);
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
            &self.yields,
            &self.most_late_ns,
            &self.longest_response_ns,
        ];
        for count in counts {
            count.store(0, Ordering::Relaxed);
        }
        self.in_call_ns.store(NONE, Ordering::Relaxed);
    }

    /// A stretch of work begins.
    pub(super) fn works(&self, call: &Call) {
        add(&self.quanta, 1);
        if self.is_in_call() {
            return;
        }
        let release = call.paced.release;
        self.in_call_ns.store(release.as_nanos(), Ordering::Relaxed);
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

    /// The call is over.
    pub(super) fn responds(&self, now: Instant) {
        let release = self.in_call_ns.swap(NONE, Ordering::Relaxed);
        if release != NONE {
            let response = now.saturating_since(Instant::from_nanos(release));
            raise(&self.longest_response_ns, response);
        }
    }
}
