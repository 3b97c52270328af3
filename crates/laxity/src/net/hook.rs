//! Clients that are found at an interface's hook, before a packet is queued anywhere.
//!
//! A client has a credit there for each buffer that it gave to the driver, and the interface has memory posted for each credit: so its packets find both, and a packet without a credit is dropped where that costs least.
//! A credit is there, on its way with a packet that cost it, or spent on one that the driver took; only what is spent is given back. So whatever else comes to a client, those that are there and on their way are never more than the memory that is posted for it.
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
    /// Packets that were lost below with their credit, which was given back.
    mended: AtomicU64,
}

/// Whose a number is.
#[derive(Debug)]
struct Owner {
    /// The driver's name of the client.
    client: AtomicU32,
    /// Packets that were stamped before, in nanoseconds, were another's.
    since: AtomicU64,
    /// All credits of the number, wherever they are: those of its client, and what is still on its way of who had it before.
    all: AtomicU32,
    /// Those that packets cost which the driver took.
    spent: AtomicU32,
    flow: Mutex<Option<(Flow, Weak<Steered>)>>,
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
    number: u32,
    /// What others who had the number lost.
    dropped_before: u64,
}

impl Hook {
    /// As the interface was opened.
    pub(super) fn new(early: Arc<Early>, options: &EarlyOptions) -> Arc<Self> {
        Arc::new(Self {
            early,
            owners: (0..numbers(options)).map(|_| Owner::new()).collect(),
            unused: Mutex::new(Unused::new(options)),
            mended: AtomicU64::new(0),
        })
    }

    /// Whose a packet is that the driver took, and the program found to be of this number's client, if that is beyond doubt. Of all others the driver finds out by itself: of what is of no flow, of what waited while its number
    /// became another's, and of what is not stamped.
    #[inline]
    pub(super) fn took(&self, number: u32, at: Instant, stamp: Stamp) -> Option<u32> {
        let owner = self.owners.get(number as usize)?;
        let client = owner.client_of(at, stamp);
        if number == 0 || client.is_some() || owner.is_anybodys_now(stamp) {
            owner.spent.fetch_add(1, Ordering::Relaxed);
        } else if take_one(&owner.all) {
            // Of who had the number before: its memory is posted again, for anybody.
            self.unused().buffers += 1;
        }
        client
    }

    /// Memory is posted for so many packets that are of no flow.
    pub(super) fn open_rest(&self, posted: u32) {
        self.owners[0].all.fetch_add(posted, Ordering::Relaxed);
        self.early.give(0, posted);
    }

    /// Memory was posted: it is for one of those again, if one was taken.
    #[inline]
    pub(super) fn posted(&self) {
        self.gave(0);
    }

    /// A buffer or memory is there again: so is a credit of those that were spent.
    #[inline]
    fn gave(&self, number: u32) {
        if take_one(&self.owners[number as usize].spent) {
            self.early.give(number, 1);
        }
    }

    /// So many packets were lost below until now, since there was no memory or no room for them: nobody takes them, so their credits are given back. Only while no other is on its way; else at the next look.
    pub(super) fn mend(&self, lost: u64) {
        let new = lost.saturating_sub(self.mended.load(Ordering::Relaxed));
        if new == 0 {
            return;
        }
        let numbered = (0..).zip(&self.owners);
        let away: Vec<(u32, u32)> = numbered
            .map(|(number, owner)| (number, owner.on_their_way(self.early.credits(number))))
            .collect();
        if !are_all_lost(&away, new) {
            return;
        }
        self.mended.store(lost, Ordering::Relaxed);
        for (number, lost) in away {
            let owner = &self.owners[number as usize];
            if number == 0 || owner.client.load(Ordering::Relaxed) != NOBODY {
                self.early.give(number, lost);
            } else {
                owner.all.fetch_sub(lost, Ordering::Relaxed);
                self.unused().buffers += lost;
            }
        }
    }

    fn unused(&self) -> MutexGuard<'_, Unused<Steered>> {
        lock(&self.unused)
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
        let owner = &self.owners[number as usize];
        // Whoever gave a buffer while its client ended may have left a credit.
        let late = self.early.take_back(number);
        owner.all.fetch_sub(late, Ordering::Relaxed);
        self.unused().buffers += late;
        let steered = Arc::new(Steered {
            hook: Arc::clone(self),
            number,
            dropped_before: self.early.dropped(number),
        });
        owner.is(client.0, since);
        *lock(&owner.flow) = Some((flow, Arc::downgrade(&steered)));
        owner.all.fetch_add(buffers, Ordering::Relaxed);
        self.early.give(number, buffers);
        match self.early.steer(&flow, number, 0) {
            Ok(()) => Ok(steered),
            Err(errno) => Err(Error::Hook(io::Error::from(errno))),
        }
    }

    /// The driver has unregistered a client: its flow is nobody's any more, if it has one. Memory that was posted for it is another's to have, but for what is on its way.
    pub(super) fn ended(&self, client: ClientId, now: Instant) {
        let is_its = |owner: &Owner| owner.client.load(Ordering::Relaxed) == client.0;
        let Some(at) = self.owners.iter().position(is_its) else {
            return;
        };
        let (number, owner) = (at as u32, &self.owners[at]);
        owner.is(NOBODY, now);
        let Some((flow, last)) = lock(&owner.flow).take() else {
            return;
        };
        // It is only not there where it could not be entered.
        let _ = self.early.forget(&flow);
        let back = owner.spent.swap(0, Ordering::Relaxed) + self.early.take_back(number);
        owner.all.fetch_sub(back, Ordering::Relaxed);
        self.unused().give_up(number, back, now, last);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One less, where there is one.
#[inline]
fn take_one(count: &AtomicU32) -> bool {
    let less = |count: u32| count.checked_sub(1);
    let taken = count.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    taken.is_ok()
}

/// Whether so many packets that were lost are all that numbers have on their way.
fn are_all_lost(away: &[(u32, u32)], lost: u64) -> bool {
    let all: u64 = away.iter().map(|(_, packets)| u64::from(*packets)).sum();
    all == lost
}

impl Owner {
    const fn new() -> Self {
        Self {
            client: AtomicU32::new(NOBODY),
            since: AtomicU64::new(0),
            all: AtomicU32::new(0),
            spent: AtomicU32::new(0),
            flow: Mutex::new(None),
        }
    }

    /// What is neither among these credits nor spent. More than are on their way, while one that was spent is given back; never fewer.
    fn on_their_way(&self, credits: u32) -> u32 {
        let there = credits.saturating_add(self.spent.load(Ordering::Acquire));
        let all = self.all.load(Ordering::Relaxed);
        all.saturating_sub(there)
    }

    /// Whether a packet that nothing is known of is likely this client's.
    fn is_anybodys_now(&self, stamp: Stamp) -> bool {
        stamp != Stamp::Hook && self.client.load(Ordering::Relaxed) != NOBODY
    }

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

    /// Its client is none any more, and so many of its buffers are unused.
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
    /// Its client has given a buffer again. One that was spent on a packet that the driver found had cost no credit, and gives back none but what other packets have cost.
    pub(super) fn gave(&self) {
        self.hook.gave(self.number);
    }

    /// Packets that were dropped at the hook for want of a buffer.
    pub(super) fn dropped(&self) -> u64 {
        let all = self.hook.early.dropped(self.number);
        all.saturating_sub(self.dropped_before)
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
        let owner = Owner::new();
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

    #[test]
    fn what_is_lost_below_is_given_back_only_where_nothing_else_is_on_its_way() {
        let owner = Owner::new();
        owner.all.store(8, Ordering::Relaxed);
        owner.spent.store(3, Ordering::Relaxed);
        assert_eq!([0, 2, 5].map(|there| owner.on_their_way(there)), [5, 3, 0]);
        let away = [(0, 0), (1, 3), (2, 1)];
        assert!(are_all_lost(&away, 4));
        assert!(!are_all_lost(&away, 3), "one is not in the ring yet");
    }
}
