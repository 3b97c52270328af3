//! One end of the sessions between two hosts: at any time one in use, perhaps the one before it, and one that is not confirmed yet.

use core::num::NonZeroU32;
use std::sync::Arc;

use laxity_model::{Instant, Span};

use super::budget::Budget;
use super::key::{Code, Identity};
use super::noise::{self, Began, Keys, Outcome};
use super::seal::{self, Opening, SealError, Sealing};
use super::terms::{Came, Neighbour, Refused, Same, Terms};
use crate::channels::frame::{
    Answer, Body, First, Frame, HEADER, Header, MAC, TAG, check, checked,
};

/// A session.
struct Session {
    own: NonZeroU32,
    began: bool,
    since: Instant,
    sealing: Sealing,
    opening: Opening,
}

/// A first message that is not answered.
struct Pending {
    began: Began,
    /// Whether it went within a session.
    within: bool,
}

/// One end of the sessions with a neighbour.
pub struct Peer {
    identity: Arc<Identity>,
    neighbour: Neighbour,
    code: Code,
    terms: Terms,
    /// What sessions are numbered by here, beside the neighbour.
    turn: u8,
    /// The greatest stamps of first messages: of ours, and of theirs.
    said: u64,
    heard: u64,
    pending: Option<Pending>,
    tries: u32,
    try_at: Instant,
    current: Option<Session>,
    previous: Option<Session>,
    /// Answered, and nothing heard in it yet.
    next: Option<Session>,
}

/// How long a frame of a handshake is at the most.
const HANDSHAKE: usize = HEADER + First::LENGTH + TAG;

impl Peer {
    /// Of this host, with a neighbour; what is sent first has a stamp above this one, for which the time of any clock is good, and 0 costs one message more where the neighbour knows an earlier life of this host.
    ///
    /// # Errors
    ///
    /// [`Same`].
    pub fn new(
        identity: Arc<Identity>,
        neighbour: Neighbour,
        terms: Terms,
        stamp: u64,
        now: Instant,
    ) -> Result<Self, Same> {
        if identity.public() == neighbour.key || neighbour.number >= (1 << 24) - 1 {
            return Err(Same);
        }
        Ok(Self {
            code: Code::new(&neighbour.key),
            identity,
            neighbour,
            terms,
            turn: 0,
            said: stamp,
            heard: 0,
            pending: None,
            tries: 0,
            try_at: now,
            current: None,
            previous: None,
            next: None,
        })
    }

    /// The number of the neighbour that a session belongs to, as a frame's header names it.
    #[must_use]
    pub const fn neighbour_of(session: NonZeroU32) -> Option<u32> {
        (session.get() >> 8).checked_sub(1)
    }

    /// Whether something can be sealed.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.current.is_some()
    }

    /// The session in use, by its number here and there.
    #[must_use]
    pub fn session(&self) -> Option<(NonZeroU32, NonZeroU32)> {
        let current = self.current.as_ref()?;
        Some((current.own, current.sealing.theirs()))
    }

    /// When [`poll`](Self::poll) has something to do, at the latest.
    #[must_use]
    pub fn due(&self) -> Instant {
        let over = [&self.previous, &self.next, &self.current].into_iter();
        let over = over
            .flatten()
            .map(|one| self.after(one, self.terms.over_after));
        let over = over.min().unwrap_or(Instant::MAX);
        let fresh = match &self.current {
            _ if self.pending.is_some() => self.try_at,
            Some(current) => self.fresh_at(current).max(self.try_at),
            None => self.try_at,
        };
        over.min(fresh)
    }

    /// Begins a handshake if there is need of one, and gives up what is over. What is to be sent is handed out.
    pub fn poll(&mut self, now: Instant, send: impl FnOnce(&[u8])) {
        let over_after = self.terms.over_after;
        for one in [&mut self.previous, &mut self.next, &mut self.current] {
            one.take_if(|one| after(one.since, over_after) <= now);
        }
        let is_wanted = self.pending.is_some() || self.wants_fresh(now);
        if is_wanted && self.try_at <= now {
            self.begin(now, send);
        }
    }

    /// Seals a frame for the neighbour, and says how long it is.
    ///
    /// # Errors
    ///
    /// There is no session, its keys are used up, or there is no room.
    pub fn seal(
        &mut self,
        now: Instant,
        body: &Body<'_>,
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let over_after = self.terms.over_after;
        let current = self.current.as_mut();
        let current = current.filter(|one| after(one.since, over_after) > now);
        let current = current.ok_or(SealError::NoSession)?;
        current.sealing.seal(body, out, self.terms.most_frames)
    }

    /// A frame has come, which is all of these bytes; it is opened where it lies. What is to be answered is handed out.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn open<'a>(
        &mut self,
        now: Instant,
        bytes: &'a mut [u8],
        budget: &mut Budget,
        send: impl FnOnce(&[u8]),
    ) -> Result<Came<'a>, Refused> {
        let header = Frame::of_datagram(bytes)?.header;
        let Some(session) = header.session else {
            return match check(&Frame::of_datagram(bytes)?)? {
                Body::Data(_) | Body::Signal(_) => Err(Refused::Open),
                Body::First(first) => {
                    self.is_for_us([&first.clear(), &first.noise], first.mac)?;
                    self.hear(now, &first, false, Some(budget), send)
                }
                Body::Answer(answer) => self.finish(now, &answer, Some(budget)),
            };
        };
        match self.open_sealed(now, session, header, bytes)? {
            Body::Data(data) => Ok(Came::Data(data)),
            Body::Signal(signal) => Ok(Came::Signal(signal)),
            Body::First(first) => self.hear(now, &first, true, None, send),
            Body::Answer(answer) => self.finish(now, &answer, None),
        }
    }

    /// Opens a frame with the keys of its session; the first one that comes in a new session confirms it.
    fn open_sealed<'a>(
        &mut self,
        now: Instant,
        number: NonZeroU32,
        header: Header,
        bytes: &'a mut [u8],
    ) -> Result<Body<'a>, Refused> {
        let over_after = self.terms.over_after;
        let is_it = |one: &Option<Session>| one.as_ref().is_some_and(|one| one.own == number);
        let confirms = is_it(&self.next);
        let one = match confirms {
            true => &mut self.next,
            false if is_it(&self.current) => &mut self.current,
            false => &mut self.previous,
        };
        let is_alive = |one: &&mut Session| one.own == number && after(one.since, over_after) > now;
        let one = one.as_mut().filter(is_alive).ok_or(Refused::NoSession)?;
        let body = one.opening.open(header, bytes)?;
        if confirms {
            self.previous = self.current.take();
            self.current = self.next.take();
            self.settled(now);
        }
        Ok(body)
    }

    /// There is a new session: nothing is asked any more.
    fn settled(&mut self, now: Instant) {
        self.pending = None;
        self.tries = 0;
        self.try_at = now;
    }

    /// Whether the code is that of who knows this host's key. It costs a hash.
    fn is_for_us(&self, covered: [&[u8]; 2], mac: [u8; MAC]) -> Result<(), Refused> {
        if self.identity.code.over(covered) == mac {
            Ok(())
        } else {
            Err(Refused::Forged)
        }
    }

    /// A first message whose code is right, or that came within a session.
    fn hear<'a>(
        &mut self,
        now: Instant,
        first: &First,
        within: bool,
        budget: Option<&mut Budget>,
        send: impl FnOnce(&[u8]),
    ) -> Result<Came<'a>, Refused> {
        if first.cipher != self.neighbour.cipher {
            return Err(Refused::Cipher);
        }
        // Of two that cross, both in a session or neither, the one of the greater key stays. Who asks outside of a session that this host has, has lost it.
        let crosses = self
            .pending
            .as_ref()
            .is_some_and(|own| own.within == within);
        if crosses && self.identity.public() > self.neighbour.key {
            return Err(Refused::Unasked);
        }
        if budget.is_some_and(|budget| !budget.take(now)) {
            return Err(Refused::Budget);
        }
        let heard = noise::hear(&self.identity, &self.neighbour.key, first)?;
        let stamp = heard.stamp;
        let number = self.number();
        if stamp <= self.heard {
            let stale = Outcome::Stale(self.heard);
            let (answer, _) = heard.answer(&self.code, number, stale)?;
            self.reply(&Body::Answer(answer), within, send);
            return Err(Refused::Stale);
        }
        let (answer, keys) = heard.answer(&self.code, number, Outcome::Agreed)?;
        self.heard = stamp;
        self.pending = None;
        self.tries = 0;
        self.try_at = now.checked_add(self.terms.retry).unwrap_or(Instant::MAX);
        self.next = Some(self.new_session(now, number, first.session, false, &keys));
        self.reply(&Body::Answer(answer), within, send);
        Ok(Came::Answered)
    }

    /// An answer has come.
    fn finish<'a>(
        &mut self,
        now: Instant,
        answer: &Answer,
        budget: Option<&mut Budget>,
    ) -> Result<Came<'a>, Refused> {
        let own = self.pending.as_ref().map(|pending| pending.began.own);
        if own != Some(answer.to) {
            return Err(Refused::Unasked);
        }
        if let Some(budget) = budget {
            self.is_for_us([&answer.clear(), &answer.noise], answer.mac)?;
            if !budget.take(now) {
                return Err(Refused::Budget);
            }
        }
        let pending = self.pending.as_mut().ok_or(Refused::Unasked)?;
        let own = pending.began.own;
        let (outcome, keys) = pending.began.finish(answer)?;
        self.settled(now);
        match outcome {
            Outcome::Stale(stamp) => {
                self.said = self.said.max(stamp);
                Ok(Came::Again)
            }
            Outcome::Agreed => {
                let session = self.new_session(now, own, answer.session, true, &keys);
                // What was answered and not confirmed is as good as the one before.
                let current = self.current.take();
                self.previous = self.next.take().or(current);
                self.current = Some(session);
                Ok(Came::Agreed)
            }
        }
    }

    fn new_session(
        &self,
        now: Instant,
        own: NonZeroU32,
        theirs: NonZeroU32,
        began: bool,
        keys: &Keys,
    ) -> Session {
        let (sealing, opening) = seal::session(keys, self.neighbour.cipher, theirs);
        Session {
            own,
            began,
            since: now,
            sealing,
            opening,
        }
    }

    /// Sends a first message.
    fn begin(&mut self, now: Instant, send: impl FnOnce(&[u8])) {
        let number = self.number();
        self.said = self.said.saturating_add(1);
        let (remote, cipher) = (&self.neighbour.key, self.neighbour.cipher);
        let begun = noise::begin(
            &self.identity,
            remote,
            &self.code,
            number,
            cipher,
            self.said,
        );
        let wait = self.terms.retry.checked_mul(1 << self.tries.min(4));
        self.try_at = after(now, wait.unwrap_or(Span::MAX));
        // Without random numbers there is nothing to be sent; it is tried again like one that was lost.
        let Ok((first, began)) = begun else {
            return;
        };
        // Each second one goes outside, in case that the other side has lost the session.
        let within = self.current.is_some() && self.tries.is_multiple_of(2);
        self.tries = self.tries.saturating_add(1);
        let within = self.reply(&Body::First(first), within, send);
        self.pending = Some(Pending { began, within });
    }

    /// Sends a part of a handshake, within the session if it can be, and says whether it was.
    fn reply(&mut self, body: &Body<'_>, within: bool, send: impl FnOnce(&[u8])) -> bool {
        let mut frame = [0; HANDSHAKE];
        let current = self.current.as_mut().filter(|_| within);
        let most = self.terms.most_frames;
        let sealed = current.and_then(|current| current.sealing.seal(body, &mut frame, most).ok());
        let length = sealed.or_else(|| checked(body, &mut frame).ok());
        if let Some(length) = length {
            send(&frame[..length]);
        }
        sealed.is_some()
    }

    /// A number for a new session: no other one that is alive has it, of which there are four at the most.
    fn number(&mut self) -> NonZeroU32 {
        loop {
            self.turn = self.turn.wrapping_add(1);
            let number = (self.neighbour.number + 1) << 8 | u32::from(self.turn);
            let number = NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX);
            let sessions = [&self.current, &self.previous, &self.next].into_iter();
            let mut taken = sessions.flatten().map(|session| session.own);
            let asked = self.pending.as_ref().map(|pending| pending.began.own);
            if asked != Some(number) && taken.all(|taken| taken != number) {
                return number;
            }
        }
    }

    fn wants_fresh(&self, now: Instant) -> bool {
        match &self.current {
            Some(current) => self.fresh_at(current) <= now,
            None => true,
        }
    }

    /// When fresh keys are wanted in place of a session's.
    fn fresh_at(&self, session: &Session) -> Instant {
        if session.sealing.count() >= self.terms.fresh_frames {
            return session.since;
        }
        let later = match session.began {
            true => Span::ZERO,
            false => (self.terms.over_after.saturating_sub(self.terms.fresh_after)) / 4,
        };
        self.after(session, self.terms.fresh_after + later)
    }

    fn after(&self, session: &Session, span: Span) -> Instant {
        after(session.since, span)
    }
}

fn after(instant: Instant, span: Span) -> Instant {
    instant.checked_add(span).unwrap_or(Instant::MAX)
}
