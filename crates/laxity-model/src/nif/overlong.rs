//! Whether a driver takes longer than was said of it, by what the kernel counts of its thread.
//!
//! A driver is admitted above slots by a statement: so many packets, none of which takes longer than so much. [`Pace`](super::most::Pace) sees to it that there are no more. That none takes longer nothing
//! can enforce, as what a client does with its packet is the client's. So it is measured: what the thread had of its processor from one look at it to another is held against what was charged for what it
//! did meanwhile. What is under way is charged when it is done: so much may be owed, once, and not anew at each look. Who took less than was charged has nothing to its credit, or it could take long for as
//! long as it had been idle before.
//!
//! More counts as a thread's time than its own work: interrupts, where the kernel does not tell them apart, and on a virtual machine a halt that meets the thread at work and that nobody counts as
//! stolen. What of halts is seen by those who watch is taken off. Others leave it to luck whether a window is too long, and meet a thread that is seldom at work seldom: so one such window says nothing, and
//! [several](WINDOWS) in a second do.

use crate::request::{Strangers, Work};
use crate::verify::contract::ADDED_UP;
use crate::{Instant, Service, Span};

/// So many windows of [a second](ADDED_UP) in which a driver took longer tell that it does.
pub const WINDOWS: usize = 3;
/// A window is no shorter than this.
pub const SHORTEST: Span = Span::from_millis(40);

/// What was seen of a driver; all but `at` since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// What its thread had had of the processor. To be read before `charged`.
    pub had: Service,
    /// What had been charged for all that it was done with.
    pub charged: Service,
    /// For how long in all those who watch had stood still.
    pub stood: Span,
}

/// What a driver took in some windows together, and what had been charged for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overlong {
    /// What it had.
    pub took: Service,
    /// What it was to have had at the most.
    pub charged: Service,
}

/// Holds one driver to what was said of it.
#[derive(Clone, Debug)]
pub struct Tally {
    /// It may be at work when it is looked at: so much is charged later at the most.
    under_way: Service,
    /// When the window began.
    since: Option<Look>,
    /// What it had beyond what was charged and excused until then: no more than may be under way. What halts added that nobody saw, a window that is charged more than it took takes off again.
    owed: Service,
    /// The last windows in which it took longer, and when they ended; the oldest first.
    longer: [Option<(Instant, Overlong)>; WINDOWS],
}

impl Tally {
    /// Of a driver that was admitted with this work, which is what it may do without a pause.
    #[must_use]
    pub const fn new(work: Work) -> Self {
        Self {
            under_way: work.service,
            since: None,
            owed: Service::ZERO,
            longer: [None; WINDOWS],
        }
    }

    /// Somebody looks at it now: what it took in the windows that tell that it takes longer, if there are as many.
    pub fn look(&mut self, now: Look) -> Option<Overlong> {
        // Of less than before it is another one.
        let same = |since: &Look| now.had >= since.had && now.charged >= since.charged;
        let Some(since) = self.since.filter(same) else {
            *self = Self {
                since: Some(now),
                owed: Service::ZERO,
                longer: [None; WINDOWS],
                ..*self
            };
            return None;
        };
        if now.at.saturating_since(since.at) < SHORTEST {
            return None;
        }
        self.since = Some(now);
        let window = Overlong {
            took: now.had.saturating_sub(since.had),
            charged: now.charged.saturating_sub(since.charged),
        };
        let stood = now.stood.saturating_sub(since.stood).as_full_service();
        let more = window.took.saturating_sub(window.charged);
        // Excuses are of this window: they pay for nothing that is owed from before.
        let more = more
            .saturating_sub(stood)
            .saturating_sub(Strangers::UNNOTICED);
        // Whoever may take more than can be counted takes no longer.
        let owed = self.owed.checked_add(more).unwrap_or(Service::MAX);
        let owed = owed.saturating_sub(window.charged.saturating_sub(window.took));
        if owed <= self.under_way {
            self.owed = owed;
            return None;
        }
        self.longer.rotate_left(1);
        self.longer[WINDOWS - 1] = Some((now.at, window));
        let (first, _) = self.longer[0]?;
        (now.at.saturating_since(first) < ADDED_UP).then(|| {
            let all = self.longer.iter().flatten();
            all.fold(Overlong::default(), |sum, (_, one)| Overlong {
                took: sum.took + one.took,
                charged: sum.charged + one.charged,
            })
        })
    }
}
