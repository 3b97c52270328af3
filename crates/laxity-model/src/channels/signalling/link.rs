//! One end of a link: what is said arrives once, in order, or the other end is known to be lost.
//!
//! Both ends have a *session* of their own. What is said counts where it is of the session that the other end has, and to the one that this end has; whoever gives a session up begins a later one, and so does the other end as soon as it hears of that. So what was lost is
//! said again, a number of times; what comes twice, late or of an earlier life of a node changes nothing; and what one end did of which the other knows nothing ends with the session.

use alloc::collections::{BTreeMap, VecDeque};

use super::Terms;
use crate::Instant;
use crate::channels::clocks::{Echo, Relation, Stamp};

/// One end's count of its lives, and of how often it has given up the other end in this one. A later one is more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Session {
    /// The node's.
    pub incarnation: u32,
    /// From 0 in that.
    pub count: u32,
}

/// What goes over the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<M> {
    /// Of who sends it.
    pub from: Session,
    /// Of who is to receive it, where that is known.
    pub to: Option<Session>,
    /// All messages below this number have arrived.
    pub heard: u64,
    /// What else it says.
    pub content: Content<M>,
}

/// What a frame is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content<M> {
    /// Who sends it lives. When it left, by its clock, and when the last one came.
    Heartbeat(Stamp),
    /// No more than what was heard.
    Heard,
    /// The message of this number, counted from 0 in the session.
    Message(u64, M),
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broke {
    /// Nothing was heard of the other end, or it did not hear.
    Silent,
    /// The other end has heard nothing of this one.
    Dropped,
    /// The other end has begun a new life.
    Restarted,
}

/// So many messages are under way at once.
const WINDOW: usize = 32;

/// One end.
#[derive(Clone, Debug)]
pub(super) struct End<M> {
    own: Session,
    theirs: Option<Session>,
    is_up: bool,
    last_heard: Instant,
    beat_at: Instant,
    /// What is not known to have arrived. The first has this number, and of the first `sent` it is not known yet.
    queue: VecDeque<M>,
    first: u64,
    sent: usize,
    tries: u32,
    resend_at: Instant,
    expected: u64,
    early: BTreeMap<u64, M>,
    inbox: VecDeque<M>,
    owes: bool,
    /// When the last heartbeat left, by the other's clock, and came, by ours.
    stamped: Option<(Instant, Instant)>,
    pub(super) clocks: Relation,
}

impl<M: Clone> End<M> {
    pub(super) fn new(incarnation: u32, now: Instant) -> Self {
        Self {
            own: Session {
                incarnation,
                count: 0,
            },
            theirs: None,
            is_up: false,
            last_heard: now,
            beat_at: now,
            queue: VecDeque::new(),
            first: 0,
            sent: 0,
            tries: 0,
            resend_at: Instant::MAX,
            expected: 0,
            early: BTreeMap::new(),
            inbox: VecDeque::new(),
            owes: false,
            stamped: None,
            clocks: Relation::default(),
        }
    }

    pub(super) const fn is_up(&self) -> bool {
        self.is_up
    }

    /// How much is still to be heard.
    pub(super) fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// So many messages of the other end have been handed out, where all have.
    pub(super) const fn heard(&self) -> u64 {
        self.expected
    }

    /// To be said, and the number that it has; nobody is there to whom it could be where the link is down.
    pub(super) fn say(&mut self, message: M) -> Option<u64> {
        if !self.is_up {
            return None;
        }
        let number = self.first + self.queue.len() as u64;
        self.queue.push_back(message);
        Some(number)
    }

    /// What was said, in order.
    pub(super) fn take(&mut self) -> Option<M> {
        self.inbox.pop_front()
    }

    /// A frame has come, at this time, and at this instant by the host's clock.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        clock: Instant,
        frame: Frame<M>,
        terms: &Terms,
    ) -> Option<Broke> {
        if self.theirs.is_some_and(|theirs| frame.from < theirs) {
            return None;
        }
        let mut broke = None;
        if self.theirs != Some(frame.from) {
            let before = self.theirs.replace(frame.from);
            let is_other = before.map(|one| one.incarnation) != Some(frame.from.incarnation);
            if is_other {
                (self.clocks, self.stamped) = (Relation::default(), None);
            }
            if self.is_up {
                let how = [Broke::Dropped, Broke::Restarted][usize::from(is_other)];
                broke = Some(self.give_up(how));
            }
            // It is told at once, so that both agree soon.
            self.beat_at = now;
        }
        if frame.to != Some(self.own) {
            return broke;
        }
        self.is_up = true;
        self.last_heard = now;
        self.has_heard(frame.heard, now, terms);
        match frame.content {
            Content::Heard => {}
            Content::Heartbeat(stamp) => {
                self.clocks.exchanged(stamp, clock);
                self.stamped = Some((stamp.sent, clock));
            }
            Content::Message(number, message) => self.came(number, message),
        }
        broke
    }

    /// The other end has all below this number.
    fn has_heard(&mut self, heard: u64, now: Instant, terms: &Terms) {
        let count = heard.saturating_sub(self.first);
        // Nobody can have heard what was not sent.
        let Some(count) = usize::try_from(count)
            .ok()
            .filter(|count| (1..=self.sent).contains(count))
        else {
            return;
        };
        self.queue.drain(..count);
        self.first = heard;
        self.sent -= count;
        self.tries = 0;
        self.resend_at = match self.sent {
            0 => Instant::MAX,
            _ => now + terms.resend,
        };
    }

    fn came(&mut self, number: u64, message: M) {
        self.owes = true;
        let ahead = number.checked_sub(self.expected);
        if ahead.is_none_or(|ahead| ahead >= WINDOW as u64) {
            return;
        }
        self.early.entry(number).or_insert(message);
        while let Some(next) = self.early.remove(&self.expected) {
            self.inbox.push_back(next);
            self.expected += 1;
        }
    }

    /// This end's session is over, and a later one begins.
    fn give_up(&mut self, how: Broke) -> Broke {
        self.own.count = self.own.count.saturating_add(1);
        self.is_up = false;
        self.queue.clear();
        self.early.clear();
        self.inbox.clear();
        (self.first, self.sent, self.expected) = (0, 0, 0);
        (self.tries, self.resend_at, self.owes) = (0, Instant::MAX, false);
        how
    }

    /// The next heartbeat is due then.
    pub(super) const fn beats(&mut self, now: Instant) {
        self.beat_at = now;
    }

    /// When something is to be done.
    pub(super) fn next(&self, terms: &Terms) -> Instant {
        let silent = match self.is_up {
            true => self.silent_at(terms),
            false => Instant::MAX,
        };
        self.beat_at.min(self.resend_at).min(silent)
    }

    fn silent_at(&self, terms: &Terms) -> Instant {
        let silent = self.last_heard.checked_add(terms.silent);
        silent.unwrap_or(Instant::MAX)
    }

    /// Does what is due by now, but for what is to be said.
    pub(super) fn wake(
        &mut self,
        now: Instant,
        clock: Instant,
        terms: &Terms,
        out: &mut impl FnMut(Frame<M>),
    ) -> Option<Broke> {
        let mut broke = None;
        let is_silent = self.is_up && self.silent_at(terms) <= now;
        if is_silent || (self.resend_at <= now && self.tries >= terms.tries) {
            broke = Some(self.give_up(Broke::Silent));
            self.beat_at = now;
        }
        if self.resend_at <= now {
            self.tries += 1;
            self.resend_at = now + terms.resend;
            for place in 0..self.sent {
                out(self.message(place));
            }
        }
        if self.beat_at <= now {
            let next = self.beat_at + terms.heartbeat;
            self.beat_at = if next > now {
                next
            } else {
                now + terms.heartbeat
            };
            let echo = self.stamped.map(|(sent, came)| Echo {
                sent,
                held: clock.saturating_since(came),
            });
            out(self.frame(Content::Heartbeat(Stamp { sent: clock, echo })));
        }
        broke
    }

    /// Says what there is to say, and that what came was heard.
    pub(super) fn flush(&mut self, now: Instant, terms: &Terms, out: &mut impl FnMut(Frame<M>)) {
        while self.sent < self.queue.len().min(WINDOW) {
            out(self.message(self.sent));
            self.sent += 1;
            self.owes = false;
            if self.resend_at == Instant::MAX {
                self.resend_at = now + terms.resend;
            }
        }
        if core::mem::take(&mut self.owes) {
            out(self.frame(Content::Heard));
        }
    }

    fn message(&self, place: usize) -> Frame<M> {
        let number = self.first + place as u64;
        self.frame(Content::Message(number, self.queue[place].clone()))
    }

    fn frame(&self, content: Content<M>) -> Frame<M> {
        Frame {
            from: self.own,
            to: self.theirs,
            heard: self.expected,
            content,
        }
    }
}
