//! One process of those that take turns, as its executor's thread has it.

use core::ops::Deref;

use super::region::{CONTROL, Scan, Seat};
use super::{Others, Region, Seen, Standing, Turn};
use crate::Instant;
use crate::base::atomic::Ordering::{Relaxed, SeqCst};
use crate::base::atomic::fence;
use crate::executor::Claim;

/// What the thread is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It has the baton: the executor looks.
    Go,
    /// The same, and it began to work where the baton rested: the guards are to be told.
    Took,
    /// It wakes the thread of this seat, which has the baton now, and asks again.
    Wake(u16),
    /// It waits while its word is this, until an instant at the latest, and asks again.
    Sleep {
        /// The word as it was.
        word: u32,
        /// [`Instant::MAX`]: until it is woken.
        until: Instant,
    },
    /// Its seat was taken away, since a handler did not come back: it calls none any more.
    Removed,
}

/// A process with a seat. Waiting is a loop of [`Member::wait`] and what that says.
#[derive(Debug)]
pub struct Member<M> {
    region: M,
    number: u16,
    /// The turn that it has, or had.
    turn: Option<Turn>,
    /// The changes that are known.
    seen: u32,
    /// So many seats are known to be used, whatever anybody writes later.
    used: u32,
    /// The own claim that goes first of those that were released when they were published, and the next release.
    first: Option<Claim>,
    next: Instant,
    /// Somebody was interrupted, when the others were looked at last.
    gives_way: bool,
    /// It goes, and waits for no turn.
    leaves: bool,
}

impl<const S: usize, const R: usize, M: Deref<Target = Region<S, R>>> Member<M> {
    /// Takes the seat, which must have been given to this process; `None` if it was not. The thread has this number.
    pub fn sit(region: M, number: u16, thread: u32) -> Option<Self> {
        let seat = region.seat(number)?;
        // Said first: of one at work the guards know the thread.
        let taken = seat.thread.compare_exchange(0, thread, SeqCst, SeqCst);
        if taken.is_err() || !seat.turns(Standing::Given, Standing::Working) {
            return None;
        }
        Some(Self {
            region,
            number,
            turn: None,
            seen: 0,
            used: 0,
            first: None,
            next: Instant::MAX,
            gives_way: false,
            leaves: false,
        })
    }

    fn seat(&self) -> Option<&Seat<R>> {
        self.region.seat(self.number)
    }

    /// Whether it has the baton.
    pub fn holds(&self) -> bool {
        self.turn == Some(self.region.turn())
    }

    /// Whether other threads of its priority are to have the processor between two quanta: that of somebody who was interrupted and can go on waits there, and what he
    /// has released is not seen before.
    pub const fn gives_way(&self) -> bool {
        self.gives_way
    }

    /// It goes: from now on it waits for no turn, and calls no handler any more.
    pub const fn leaves(&mut self) {
        self.leaves = true;
    }

    /// What the thread is to do that has nothing to do, or no baton.
    pub fn wait(&mut self, now: Instant) -> Act {
        let Some(seat) = self.seat() else {
            return Act::Removed;
        };
        let word = seat.word.load(SeqCst);
        if seat.standing() == Some(Standing::Removed) {
            return Act::Removed;
        }
        if self.leaves {
            return Act::Go;
        }
        if self.holds() {
            self.let_go(now, word)
        } else {
            self.get(now, word)
        }
    }

    /// It has the baton, and what it is to do with it.
    fn let_go(&mut self, now: Instant, word: u32) -> Act {
        let seen = self.region.changes().load(SeqCst);
        let called = self
            .seat()
            .is_some_and(|seat| seat.called_ns.load(SeqCst) > 0);
        let scan = self.scan(now, 0);
        let Some((turn, seat)) = self.turn.zip(self.seat()) else {
            return Act::Removed;
        };
        let own = self.own(now);
        let to = match (own, scan.first) {
            (Some(own), Some((claim, _))) if own <= claim => return Act::Go,
            (_, Some((_, other))) => Some(other),
            (Some(_), None) => return Act::Go,
            (None, None) if called => return Act::Go,
            (None, None) => {
                let sooner = scan.next.filter(|(at, _)| *at < self.next);
                sooner.map(|(_, other)| other)
            }
        };
        let next = turn.to(to.or(Some(self.number)), to.is_none());
        seat.becomes(Standing::Waiting);
        if !self.region.pass(turn, next) {
            // It was taken for one who blocks: who has it now may have looked before this one waited.
            seat.becomes(Standing::Working);
            return self.get(now, word);
        }
        fence(SeqCst);
        match to {
            Some(other) => {
                if let Some(seat) = self.region.seat(other) {
                    seat.kick();
                }
                Act::Wake(other)
            }
            // Who called before it saw that the baton rests is seen here.
            None if self.region.changes().load(SeqCst) != seen => self.get(now, word),
            None => Act::Sleep {
                word,
                until: self.next,
            },
        }
    }

    /// It does not have the baton, or rests with it.
    fn get(&mut self, now: Instant, word: u32) -> Act {
        let Some(seat) = self.seat() else {
            return Act::Removed;
        };
        let is_back = seat.standing() != Some(Standing::Waiting);
        if is_back {
            seat.becomes(Standing::Waiting);
            self.region.changed();
            // In this order: who calls sees that it waits, or it sees the call.
            fence(SeqCst);
        }
        let has_work = self.own(now).is_some() || seat.called_ns.load(SeqCst) > 0;
        loop {
            let turn = self.region.turn();
            let is_own = turn.seat() == Some(self.number);
            let takes = turn.is_at_rest() && (is_back || has_work || turn.seat().is_none());
            if !is_own && !takes {
                return Act::Sleep {
                    word,
                    until: Instant::MAX,
                };
            }
            let own = turn.to(Some(self.number), false);
            if self.region.pass(turn, own) {
                // In this order: who saw the turn before this has called before what is looked at now.
                fence(SeqCst);
                seat.becomes(Standing::Working);
                seat.began_ns.store(now.as_nanos(), SeqCst);
                self.turn = Some(own);
                return if is_own { Act::Go } else { Act::Took };
            }
        }
    }

    /// What is written of the others.
    fn scan(&mut self, now: Instant, rank_ns: u64) -> Scan {
        self.used = self.used.max(self.region.used());
        let scan = self
            .region
            .scan((now, self.used), Some(self.number), rank_ns);
        self.gives_way = scan.is_interrupted;
        scan
    }

    /// The own claim that goes first by now.
    fn own(&self, now: Instant) -> Option<Claim> {
        let due = (self.next <= now).then_some(Claim {
            rank_ns: 0,
            release: self.next,
        });
        due.or(self.first)
    }

    /// It has gone. Tells whom to wake.
    pub fn leave(&mut self, now: Instant) -> Option<u16> {
        self.leaves = true;
        self.seat()?.becomes(Standing::Left);
        self.region.hand_on_from(self.number, now)
    }

    /// As others see it: what is asked of the executor is no more urgent than its handlers.
    fn among_others(&self, claim: Claim) -> Claim {
        let asked = || Some(self.seat()?.call_rank_ns.load(SeqCst));
        match claim.rank_ns {
            ..=CONTROL => Claim {
                rank_ns: asked().unwrap_or(u64::MAX),
                ..claim
            },
            _ => claim,
        }
    }
}

impl<const S: usize, const R: usize, M: Deref<Target = Region<S, R>>> Others for Member<M> {
    fn is_called(&self) -> bool {
        self.region.changes().load(Relaxed) != self.seen
    }

    fn hear(&mut self) {
        // In this order: who calls after this raises the changes after this.
        self.seen = self.region.changes().load(SeqCst);
        if let Some(seat) = self.seat() {
            seat.hears();
        }
    }

    fn look(&mut self, now: Instant, running: Claim) -> Seen {
        let running = self.among_others(running);
        let scan = self.scan(now, running.rank_ns);
        let first = scan.first.map(|(claim, _)| claim.rank_ns);
        let goes_first = first.is_some_and(|rank| rank < running.rank_ns);
        Seen {
            goes_first: !self.leaves && (goes_first || !self.holds()),
            until: scan.until,
        }
    }

    fn is_turn(&mut self, now: Instant, own: &mut dyn Iterator<Item = Claim>) -> bool {
        if self.leaves {
            return true;
        }
        // As others see them: what is asked of it goes before all else of its own, and not before all of theirs.
        let released = own.filter(|claim| claim.release <= now);
        let first = released.map(|claim| self.among_others(claim)).min();
        let Some(own) = first.filter(|_| self.holds()) else {
            return false;
        };
        let scan = self.scan(now, 0);
        scan.first.is_none_or(|(claim, _)| own <= claim)
    }

    fn publish(&mut self, now: Instant, own: &mut dyn Iterator<Item = Claim>) {
        let (mut asked, mut first, mut next) = (None, None::<Claim>, Instant::MAX);
        let mut all = own.inspect(|claim| match claim.release <= now {
            true if claim.rank_ns <= CONTROL => asked = Some(*claim),
            true => first = Some(first.map_or(*claim, |first| first.min(*claim))),
            false => next = next.min(claim.release),
        });
        if let Some(seat) = self.seat() {
            seat.write(&mut all);
        }
        drop(all);
        if let Some((asked, seat)) = asked.zip(self.seat()) {
            // It was heard and is not done: to the others it is called still.
            seat.is_called(asked.release);
        }
        let asked = asked.map(|claim| self.among_others(claim));
        self.first = asked.into_iter().chain(first).min();
        self.next = next;
    }

    fn begins(&mut self, now: Instant) {
        if let Some(seat) = self.seat() {
            seat.began_ns.store(now.as_nanos(), Relaxed);
        }
    }
}
