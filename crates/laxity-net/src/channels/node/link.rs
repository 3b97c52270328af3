//! One link of a node: what waits for it, and whom it believes.

use std::collections::VecDeque;

use laxity_model::channels::clocks::Stamp;
use laxity_model::channels::signalling::link::Content;
use laxity_model::nif::urgency::{Stated, Urgency};
use laxity_model::policy::multiclass::Early;
use laxity_model::{Instant, Span};

use super::super::frame::{Body, DATA, Frame, HEADER, SIGNAL_PAYLOAD, Signal, TAG, check, checked};
use super::super::path::{Effect, Handed, Label, Lane, Leaves, Limits, Next, WayOut};
use super::super::session::{Budget, Came, Refused};
use super::event::Sent;
use super::setup::{Link, SetupError, Trust};
use super::{LinkCounts, Setup};

/// So many signals and handshakes wait at once: all messages of a link that may be under way, a heartbeat, what was heard, and what belongs to handshakes.
pub(super) const SAID: u32 = 40;

/// What waits in a link's own channel.
#[derive(Debug)]
enum Said {
    /// A signal, and when it was said.
    Signal(Signal, Instant),
    /// A part of a handshake, sealed or not, as it leaves.
    Handshake(Box<[u8]>),
}

/// A link of a node.
pub(super) struct Way<B> {
    pub(super) out: WayOut<B>,
    pub(super) trust: Trust,
    pub(super) unseen: Span,
    pub(super) early: Early,
    /// By which label a channel is known here that has this number of the way out.
    pub(super) ends: Box<[Option<Label>]>,
    /// All that wait are early until then.
    pub(super) asks: Option<Instant>,
    /// Handlers that were blocked, and go on.
    pub(super) woken: Vec<(Label, Lane)>,
    pub(super) counts: LinkCounts,
    own: u32,
    line: Urgency,
    said: VecDeque<Said>,
}

impl<B: AsRef<[u8]>> Way<B> {
    /// For as many channels as the node may have, whose packets are as many as admission has buffers, beside best effort; what is stated of its own signals they keep, and take no longer than that.
    pub(super) fn new(
        link: Link,
        (setup, buffers): (&Setup, u64),
        (delay, signals): (Span, Stated),
    ) -> Result<Self, SetupError> {
        // Of channels that are closed there may be what is out of reach, and one that was put back.
        let reach = link.reach.max(1);
        let closed = u32::try_from(reach)
            .ok()
            .and_then(|reach| reach.checked_add(2));
        let closed = closed.ok_or(SetupError::TooMany)?;
        let channels = setup
            .channels
            .checked_add(closed)
            .ok_or(SetupError::TooMany)?;
        let packets = u64::from(setup.channels) * u64::from(setup.best_effort)
            + u64::from(SAID)
            + u64::from(closed);
        let packets = packets.checked_add(buffers);
        let packets = packets.and_then(|packets| u32::try_from(packets).ok());
        let mut out = WayOut::new(Limits {
            channels,
            packets: packets.ok_or(SetupError::TooMany)?,
            reach,
            early: link.early,
            by: link.by,
            rate: link.rate,
            overhead: link.overhead,
        });
        let own = out.own(delay, SAID).map_err(|_| SetupError::TooMany)?;
        Ok(Self {
            out,
            trust: link.trust,
            unseen: link.unseen,
            early: link.early,
            ends: vec![None; channels as usize].into(),
            asks: None,
            woken: Vec::with_capacity(2 * reach),
            counts: LinkCounts::default(),
            own,
            line: Urgency::new(signals),
            said: VecDeque::with_capacity(SAID as usize),
        })
    }

    /// A signal waits to leave. What says the same as one that waits already, or is news of it, takes its place.
    pub(super) fn says(&mut self, now: Instant, signal: Signal) {
        let same = self.said.iter_mut().find_map(|said| match said {
            Said::Signal(other, at) if is_news(&signal, other) => Some((other, at)),
            Said::Signal(..) | Said::Handshake(_) => None,
        });
        if let Some((other, at)) = same {
            (*other, *at) = (signal, now);
            return;
        }
        let length = Body::Signal(signal.clone()).length();
        self.waits(now, length.saturating_sub(DATA), Said::Signal(signal, now));
    }

    fn waits(&mut self, now: Instant, length: usize, said: Said) {
        // What is longer than was admitted is none of ours.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if length > SIGNAL_PAYLOAD.get() || self.said.len() >= SAID as usize {
            self.counts.unsaid += 1;
            return;
        }
        let logical = self.line.arrived(now, 1).logical;
        if self.out.say(self.own, now, logical, length) {
            self.said.push_back(said);
        } else {
            self.counts.unsaid += 1;
        }
    }

    /// A part of a handshake waits to leave.
    fn replies(&mut self, now: Instant, reply: Option<Box<[u8]>>) {
        if let Some(reply) = reply {
            let length = reply.len().saturating_sub(HEADER + DATA + TAG);
            self.waits(now, length, Said::Handshake(reply));
        }
    }

    /// Keys are agreed on anew, where there is need.
    pub(super) fn polls(&mut self, now: Instant) {
        let mut reply = None;
        if let Trust::Sealed(peer) = &mut self.trust
            && peer.due() <= now
        {
            peer.poll(now, |bytes| reply = Some(bytes.into()));
        }
        self.replies(now, reply);
    }

    /// When the time alone makes something of it.
    pub(super) fn due(&self) -> Instant {
        let peer = match &self.trust {
            Trust::Sealed(peer) => peer.due(),
            Trust::Checked => Instant::MAX,
        };
        peer.min(self.asks.unwrap_or(Instant::MAX))
    }

    /// A frame that came is opened.
    pub(super) fn opens<'a>(
        &mut self,
        now: Instant,
        frame: &'a mut [u8],
        budget: &mut Budget,
    ) -> Option<Came<'a>> {
        self.counts.came += 1;
        let mut reply: Option<Box<[u8]>> = None;
        let came = match &mut self.trust {
            Trust::Sealed(peer) => {
                peer.open(now, frame, budget, |bytes| reply = Some(bytes.into()))
            }
            Trust::Checked => unsealed(frame),
        };
        self.replies(now, reply);
        let counts = &mut self.counts;
        match &came {
            Ok(Came::Data(_)) => counts.data += 1,
            Ok(Came::Signal(_)) => counts.signals += 1,
            Ok(Came::Answered | Came::Agreed | Came::Again) => counts.handshakes += 1,
            Err(Refused::Malformed(_)) => counts.malformed += 1,
            Err(Refused::Again) => counts.repeated += 1,
            Err(Refused::Forged) => counts.forged += 1,
            Err(_) => counts.refused += 1,
        }
        came.ok()
    }

    /// The frame that leaves now is written and handed over.
    pub(super) fn fill(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        mut hand: impl FnMut(&[u8]) -> Handed,
        mut sent: impl FnMut(Sent<B>),
    ) -> Next {
        let Self {
            out,
            trust,
            ends,
            woken,
            counts,
            said,
            ..
        } = self;
        let leaves = |leaves: Leaves<'_>| {
            let is_best_effort = matches!(&leaves, Leaves::Data(data) if data.best_effort);
            let taken = match leaves {
                Leaves::Own(_) => said.pop_front().map(|said| later(said, now)),
                Leaves::Data(_) => None,
            };
            let (length, taken) = match (leaves, taken) {
                (Leaves::Data(data), _) => (trust.seal(now, &Body::Data(data), buffer), None),
                (Leaves::Own(_), Some(Said::Signal(signal, at))) => {
                    let body = Body::Signal(signal);
                    let length = trust.seal(now, &body, buffer);
                    let Body::Signal(signal) = body else {
                        return Handed::Refused;
                    };
                    (length, Some(Said::Signal(signal, at)))
                }
                (Leaves::Own(_), Some(Said::Handshake(bytes))) => {
                    let room = buffer.get_mut(..bytes.len());
                    let length = room.map(|room| {
                        room.copy_from_slice(&bytes);
                        bytes.len()
                    });
                    (length, Some(Said::Handshake(bytes)))
                }
                (Leaves::Own(_), None) => (None, None),
            };
            let Some(length) = length else {
                counts.unsealed += 1;
                return Handed::Refused;
            };
            let handed = hand(&buffer[..length]);
            match handed {
                Handed::Taken => {
                    counts.handed += 1;
                    counts.best_effort += u64::from(is_best_effort);
                }
                Handed::NoRoom => taken.into_iter().for_each(|taken| said.push_front(taken)),
                Handed::Refused => {}
            }
            handed
        };
        let next = out.leave(now, leaves, |effect| told(effect, ends, woken, &mut sent));
        self.asks = match next {
            Next::NotBefore(at) => Some(at),
            Next::Handed(..) | Next::NoRoom | Next::Nothing => None,
        };
        next
    }

    /// What is to be told of an effect.
    pub(super) fn sends<R>(
        &mut self,
        mut sent: impl FnMut(Sent<B>),
        ask: impl FnOnce(&mut WayOut<B>, &mut dyn FnMut(Effect<B>)) -> R,
    ) -> R {
        let Self {
            out, ends, woken, ..
        } = self;
        ask(out, &mut |effect| told(effect, ends, woken, &mut sent))
    }
}

/// Handlers that were blocked are noted; all else is told.
fn told<B>(
    effect: Effect<B>,
    ends: &[Option<Label>],
    woken: &mut Vec<(Label, Lane)>,
    sent: &mut impl FnMut(Sent<B>),
) {
    let end = |channel: u32| ends.get(channel as usize).copied().flatten();
    match effect {
        Effect::Back(buffer) => sent(Sent::Back(buffer)),
        Effect::Room(channel) => end(channel)
            .into_iter()
            .for_each(|end| sent(Sent::Room(end))),
        Effect::Wakes(channel, lane) => woken.extend(end(channel).map(|end| (end, lane))),
    }
}

/// Whether a signal makes another one needless that waits.
fn is_news(signal: &Signal, other: &Signal) -> bool {
    if (signal.from, signal.to) != (other.from, other.to) {
        return false;
    }
    match (&signal.content, &other.content) {
        (Content::Heartbeat(_), Content::Heartbeat(_)) | (Content::Heard, Content::Heard) => true,
        (Content::Message(one, _), Content::Message(other, _)) => one == other,
        _ => false,
    }
}

/// A heartbeat says when it leaves, and not when it began to wait for that.
fn later(said: Said, now: Instant) -> Said {
    let Said::Signal(mut signal, at) = said else {
        return said;
    };
    if let Content::Heartbeat(Stamp { sent, echo }) = &mut signal.content {
        let waited = now.saturating_since(at);
        *sent = sent.checked_add(waited).unwrap_or(Instant::MAX);
        if let Some(echo) = echo {
            echo.held = echo.held.checked_add(waited).unwrap_or(Span::MAX);
        }
    }
    Said::Signal(signal, now)
}

/// A frame with a checksum.
fn unsealed(frame: &[u8]) -> Result<Came<'_>, Refused> {
    match check(&Frame::of_datagram(frame)?)? {
        Body::Data(data) => Ok(Came::Data(data)),
        Body::Signal(signal) => Ok(Came::Signal(signal)),
        Body::First(_) | Body::Answer(_) => Err(Refused::Unasked),
    }
}

impl Trust {
    /// Writes a frame, and says how long it is; `None` where there is no session, or no room.
    fn seal(&mut self, now: Instant, body: &Body<'_>, out: &mut [u8]) -> Option<usize> {
        match self {
            Self::Sealed(peer) => peer.seal(now, body, out).ok(),
            Self::Checked => checked(body, out).ok(),
        }
    }
}
