//! Clients that are found at an interface's hook, before a packet is queued anywhere.
//!
//! A client has a credit there for each buffer that it gave to the driver, and the interface has memory posted for each credit: so its packets find both, and a packet without a credit is dropped where that costs least.
//! The program knows clients by numbers of its own. One that is given up is nobody's for a while, and what was stamped at the hook before that was over is not its next client's, however long it waits for the driver.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use laxity_linux::net::xdp::early::{Early, Flow};
use laxity_model::nif::link::Stamp;
use laxity_model::nif::registry::ClientId;
use laxity_model::{Instant, Span};

use super::error::Error;
use super::options::EarlyOptions;

/// A number is nobody's for so long. A program that found the last client has stamped its packet before, and one that finds the next one stamps it after: in the middle is the bound between them, so far from either that no clock has to be exact.
const RESTS: Span = Span::from_secs(1);
/// No client.
const NOBODY: u32 = u32::MAX;

/// Who is found at the hook of an interface.
#[derive(Debug)]
pub(super) struct Hook {
    early: Arc<Early>,
    /// By the program's numbers.
    owners: Box<[Owner]>,
    unused: Mutex<Unused<Steered>>,
}

/// Whose a number is.
#[derive(Debug)]
struct Owner {
    /// The driver's name of the client.
    client: AtomicU32,
    /// Packets that were stamped before, in nanoseconds, were another's.
    since: AtomicU64,
}

/// What no flow has.
#[derive(Debug)]
struct Unused<T> {
    /// Those that were given up first before others.
    numbers: VecDeque<Number<T>>,
    flows: u32,
    buffers: u32,
}

/// A number that is nobody's.
#[derive(Debug)]
struct Number<T> {
    number: u32,
    /// Since when; `None`: it never was anybody's.
    since: Option<Instant>,
    /// Who had it: as long as a thread has that in its hands, it may still add a credit.
    last: Weak<T>,
}

/// How many numbers of clients the program has: that of what is of no flow, and so many that all flows can be given up at once and others begin.
pub(super) const fn numbers(options: &EarlyOptions) -> u32 {
    options.flows.saturating_mul(2).saturating_add(1)
}

/// A flow that is found at the hook: what its client gives is told there, too.
#[derive(Debug)]
pub(super) struct Steered {
    hook: Arc<Hook>,
    flow: Flow,
    number: u32,
    buffers: u32,
    /// What others who had the number lost.
    dropped_before: u64,
}

impl Hook {
    /// As the interface was opened.
    pub(super) fn new(early: Arc<Early>, options: &EarlyOptions) -> Arc<Self> {
        Arc::new(Self {
            early,
            owners: (0..numbers(options))
                .map(|_| Owner {
                    client: AtomicU32::new(NOBODY),
                    since: AtomicU64::new(0),
                })
                .collect(),
            unused: Mutex::new(Unused::new(options)),
        })
    }

    /// Whose a packet is that the program found to be of this number's client, if that is beyond doubt. Of all others the driver finds out by itself: of what is of no flow, of what waited while its number
    /// became another's, and of what is not stamped.
    #[inline]
    pub(super) fn client_of(&self, number: u32, at: Instant, stamp: Stamp) -> Option<u32> {
        let owner = self.owners.get(number as usize)?;
        owner.client_of(at, stamp)
    }

    /// Memory is posted for so many packets that are of no flow.
    pub(super) fn open_rest(&self, posted: u32) {
        self.early.give(0, posted);
    }

    /// It is again for one of those.
    #[inline]
    pub(super) fn give_rest(&self) {
        self.early.give(0, 1);
    }

    fn unused(&self) -> MutexGuard<'_, Unused<Steered>> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on packets of this flow are this client's, which has given so many buffers. What came before is found by the driver, and comes first.
    pub(super) fn steer(
        self: &Arc<Self>,
        flow: Flow,
        client: ClientId,
        buffers: u32,
        now: Instant,
    ) -> Result<Arc<Steered>, Error> {
        let (number, since) = self
            .unused()
            .take(buffers, now)
            .ok_or(Error::TooManyFlows)?;
        // Whoever gave a buffer while its client ended may have left a credit.
        self.early.take_back(number);
        let steered = Arc::new(Steered {
            hook: Arc::clone(self),
            flow,
            number,
            buffers,
            dropped_before: self.early.dropped(number),
        });
        self.owners[number as usize].is(client.0, since);
        self.early.give(number, buffers);
        match self.early.steer(&flow, number, 0) {
            Ok(()) => Ok(steered),
            Err(errno) => {
                steered.end(now);
                Err(Error::Hook(io::Error::from(errno)))
            }
        }
    }
}

impl Owner {
    fn is(&self, client: u32, since: Instant) {
        self.client.store(client, Ordering::Relaxed);
        self.since.store(since.as_nanos(), Ordering::Relaxed);
    }

    #[inline]
    fn client_of(&self, at: Instant, stamp: Stamp) -> Option<u32> {
        let client = self.client.load(Ordering::Relaxed);
        let is_of_it = stamp == Stamp::Hook && at.as_nanos() >= self.since.load(Ordering::Relaxed);
        (is_of_it && client != NOBODY).then_some(client)
    }
}

impl<T> Unused<T> {
    fn new(options: &EarlyOptions) -> Self {
        let never = |number| Number {
            number,
            since: None,
            last: Weak::new(),
        };
        Self {
            numbers: (1..numbers(options)).map(never).collect(),
            flows: options.flows,
            buffers: options.buffers,
        }
    }

    /// A number for a client with so many buffers, and since when packets of that number are its own; `None` if there is no room, or no number has rested.
    fn take(&mut self, buffers: u32, now: Instant) -> Option<(u32, Instant)> {
        if self.flows == 0 || self.buffers < buffers {
            return None;
        }
        let has_rested = |number: &Number<T>| {
            let is_over = |since| now.saturating_since(since) >= RESTS;
            number.since.is_none_or(is_over) && number.last.strong_count() == 0
        };
        let found = self.numbers.iter().position(has_rested)?;
        let Number { number, since, .. } = self.numbers.remove(found)?;
        self.flows -= 1;
        self.buffers -= buffers;
        let own_since = since.and_then(|since| since.checked_add(RESTS / 2));
        Some((number, own_since.unwrap_or(Instant::ZERO)))
    }

    /// Its client is none any more.
    fn give_up(&mut self, number: u32, buffers: u32, now: Instant, last: Weak<T>) {
        self.flows += 1;
        self.buffers += buffers;
        self.numbers.push_back(Number {
            number,
            since: Some(now),
            last,
        });
    }
}

impl Steered {
    /// Its client has given a buffer again. No more credits than buffers: one that was spent on a packet that the driver found had cost none.
    pub(super) fn gave(&self) {
        if self.hook.early.credits(self.number) < self.buffers {
            self.hook.early.give(self.number, 1);
        }
    }

    /// Packets that were dropped at the hook for want of a buffer.
    pub(super) fn dropped(&self) -> u64 {
        let all = self.hook.early.dropped(self.number);
        all.saturating_sub(self.dropped_before)
    }

    /// The flow is nobody's any more.
    pub(super) fn end(self: Arc<Self>, now: Instant) {
        // It is only not there where it could not be entered.
        let _ = self.hook.early.forget(&self.flow);
        self.hook.early.take_back(self.number);
        self.hook.owners[self.number as usize].is(NOBODY, now);
        let last = Arc::downgrade(&self);
        let mut unused = self.hook.unused();
        unused.give_up(self.number, self.buffers, now, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_linux::net::xdp::program::Rest;

    const ONE: EarlyOptions = EarlyOptions {
        flows: 1,
        buffers: 4,
        rest: Rest::ClientZero,
    };

    #[test]
    fn what_was_stamped_for_the_last_client_of_a_number_is_not_the_next_ones() {
        let mut unused = Unused::<()>::new(&ONE);
        let owner = Owner {
            client: AtomicU32::new(NOBODY),
            since: AtomicU64::new(0),
        };
        let ended = Instant::from_millis(5_000);
        let first = unused.take(4, ended).expect("none was anybody's");
        assert_eq!(first, (1, Instant::ZERO));
        unused.give_up(1, 4, ended, Weak::new());
        // The other number is taken first, and given up later.
        assert_eq!(unused.take(4, ended), Some((2, Instant::ZERO)));
        unused.give_up(2, 4, ended + RESTS, Weak::new());
        let rested = ended + RESTS;
        assert_eq!(unused.take(4, rested - Span::from_nanos(1)), None);
        let (number, since) = unused.take(4, rested).expect("it has rested");
        assert_eq!(number, 1);
        owner.is(7, since);
        assert_eq!(owner.client_of(ended, Stamp::Hook), None);
        assert_eq!(owner.client_of(rested, Stamp::Hook), Some(7));
        assert_eq!(owner.client_of(rested, Stamp::Read), None, "nobody knows");
        owner.is(NOBODY, rested);
        assert_eq!(owner.client_of(rested, Stamp::Hook), None);
    }

    #[test]
    fn a_number_is_given_to_nobody_while_a_thread_may_still_add_a_credit() {
        let mut unused = Unused::new(&ONE);
        let now = Instant::from_millis(5_000);
        let gives = [1, 2].map(|number| {
            assert!(
                unused
                    .take(4, now)
                    .is_some_and(|(taken, _)| taken == number)
            );
            let gives = Arc::new(());
            unused.give_up(number, 4, now, Arc::downgrade(&gives));
            gives
        });
        let rested = now + RESTS;
        assert_eq!(unused.take(4, rested), None);
        let [first, second] = gives;
        drop(second);
        assert!(unused.take(4, rested).is_some_and(|(taken, _)| taken == 2));
        unused.give_up(2, 4, now, Weak::new());
        drop(first);
        assert!(unused.take(4, rested).is_some_and(|(taken, _)| taken == 1));
    }
}
