//! Which packet of a link's channels leaves next, and where that is decided (§3.1, §4.2).
//!
//! Packets of a channel leave in order. Its first one competes for the link with those of the others, in the same [three classes](crate::policy::multiclass) as handlers for a processor; but nothing preempts a packet that is on its way. It is an
//! [`Order`] of a driver's frames, so that [`Transmit`](crate::nif::transmit::Transmit) keeps how many are out of its reach, and one that is early is told with the instant at which to ask again.

use alloc::boxed::Box;
use alloc::vec;

use crate::nif::transmit::{FrameId, Next, Order, Outgoing};
use crate::policy::multiclass::{By, Claim, Classes, Early, Next as Class};
use crate::policy::queue::{Links, Queue};
use crate::{Instant, Span};

/// The packets of a link's channels.
///
/// O(log channels) to add the first packet of a channel and to take one, O(1) to add any other; nothing is allocated after it is made.
#[derive(Clone, Debug)]
pub struct LinkScheduler {
    classes: Classes,
    channels: Box<[Line]>,
    links: Links,
    claims: Box<[Claim]>,
}

/// A channel's packets.
#[derive(Clone, Copy, Debug)]
struct Line {
    waiting: Queue,
    /// How long after its logical arrival each is due.
    delay: Span,
}

impl LinkScheduler {
    /// For channels from 0 to below this number, with so many packets of all together.
    #[must_use]
    pub fn new(channels: usize, packets: u32, early: Early, by: By) -> Self {
        let line = Line {
            waiting: Queue::EMPTY,
            delay: Span::ZERO,
        };
        Self {
            classes: Classes::new(channels, early, by),
            channels: vec![line; channels].into(),
            links: Links::new(packets as usize),
            claims: vec![Claim::BestEffort; packets as usize].into(),
        }
    }

    /// Packets of this channel are due so long after their logical arrivals; by that, and by when they are due, a driver's frames have theirs. Before it is said they are current at once when they are due.
    pub fn delay(&mut self, channel: u32, delay: Span) {
        self.channels[channel as usize].delay = delay;
    }

    /// The place of a channel among current ones, where that is [by priority](By::Priority): the smallest number goes first.
    pub fn rank(&mut self, channel: u32, rank: u64) {
        self.classes.rank(channel, rank);
    }

    /// A packet of a channel begins to wait, behind those of the channel that do.
    pub fn queue(&mut self, channel: u32, frame: FrameId, claim: Claim, now: Instant) {
        self.claims[frame.index()] = claim;
        let line = &mut self.channels[channel as usize];
        let is_first = line.waiting.is_empty();
        line.waiting.push(&mut self.links, frame.0);
        if is_first {
            self.classes.enter(channel, claim, now);
        }
    }

    /// No packet of a channel waits any more; those that did are told.
    pub fn withdraw(&mut self, channel: u32, mut each: impl FnMut(FrameId)) {
        let line = &mut self.channels[channel as usize];
        while let Some(frame) = line.waiting.pop(&mut self.links) {
            each(FrameId(frame));
        }
        self.classes.leave(channel);
    }

    /// Which packet leaves now; it waits no more.
    pub fn take(&mut self, now: Instant) -> Next {
        let channel = match self.classes.next(now) {
            Class::Goes(channel) => channel,
            Class::NotBefore(at) => return Next::NotBefore(at),
            Class::Nobody => return Next::Nothing,
        };
        let line = &mut self.channels[channel as usize];
        let frame = line.waiting.pop(&mut self.links);
        match line.waiting.first() {
            Some(behind) => {
                let claim = self.claims[behind as usize];
                self.classes.renew(channel, claim, now);
            }
            None => self.classes.leave(channel),
        }
        frame.map_or(Next::Nothing, |frame| Next::Frame(FrameId(frame)))
    }
}

/// Each client of the driver is a channel, by its number; a frame that is due whenever is best effort.
impl Order for LinkScheduler {
    fn add(&mut self, frame: FrameId, outgoing: &Outgoing, now: Instant) {
        let channel = outgoing.client.0;
        let delay = self.channels[channel as usize].delay;
        let claim = match outgoing.due {
            Instant::MAX => Claim::BestEffort,
            deadline => Claim::RealTime {
                logical: deadline.saturating_sub(delay),
                deadline,
            },
        };
        self.queue(channel, frame, claim, now);
    }

    fn next(&mut self, now: Instant) -> Next {
        self.take(now)
    }

    fn clear(&mut self) {
        for (channel, line) in (0..).zip(&mut self.channels) {
            line.waiting = Queue::EMPTY;
            self.classes.leave(channel);
        }
    }
}

/// Where a link's scheduler runs: the paper's three options (§4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Placement {
    /// A call from the handler that has queued a packet, and from the completion of the one before.
    #[default]
    Call,
    /// A thread of its own.
    Thread,
    /// A new thread for each packet that is to leave.
    ThreadEach,
}

/// Why a link's scheduler may have to run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// A handler has queued a packet.
    Queued,
    /// A packet has left.
    Completed,
    /// One that was early is current.
    Current,
}

/// Who runs a link's scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Runs {
    /// Nobody: who completes the packet that is on its way will.
    Nobody,
    /// Whoever asks, at once.
    Caller,
    /// Its thread, which is woken.
    Thread,
    /// A thread that is made for it.
    NewThread,
}

impl Placement {
    /// Who runs it for this cause, where the link has all that it may have, or not.
    #[must_use]
    pub const fn runs(self, cause: Cause, is_full: bool) -> Runs {
        match (self, cause) {
            (_, Cause::Queued | Cause::Current) if is_full => Runs::Nobody,
            (Self::Call, _) => Runs::Caller,
            (Self::Thread, _) => Runs::Thread,
            (Self::ThreadEach, _) => Runs::NewThread,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::Priority;
    use crate::nif::registry::ClientId;
    use crate::nif::transmit::Transmit;

    const CHANNELS: u32 = 4;
    /// As many as a test ever has.
    const PACKETS: u32 = 200;
    /// After its logical arrival a packet is due: of the last channel never.
    const DELAYS: [u64; 3] = [5, 9, 30];

    fn frame(channel: u32, logical: u64) -> Outgoing {
        let delay = DELAYS.get(channel as usize);
        Outgoing {
            client: ClientId(channel),
            length: 100,
            priority: Priority::NORMAL,
            due: delay.map_or(Instant::MAX, |delay| Instant::from_nanos(logical + delay)),
        }
    }

    fn scheduler(early: Early) -> LinkScheduler {
        let mut scheduler = LinkScheduler::new(CHANNELS as usize, PACKETS, early, By::Deadline);
        for (channel, delay) in (0..).zip(DELAYS) {
            scheduler.delay(channel, Span::from_nanos(delay));
        }
        scheduler
    }

    /// The oracle: of each channel the first that waits, of all those who goes by class, and then by what counts there.
    fn goes(waiting: &[(FrameId, u32, u64)], early: Early, now: u64) -> Option<Vec<FrameId>> {
        let horizon = match early {
            Early::Held { horizon } => horizon.as_nanos(),
            _ => 0,
        };
        let firsts = (0..CHANNELS).filter_map(|channel| {
            let mut all = waiting.iter();
            all.find(|(_, of, _)| *of == channel)
        });
        let placed = firsts.filter_map(|(frame, channel, logical)| {
            let place = match DELAYS.get(*channel as usize) {
                None => (2, 0),
                Some(delay) if logical.saturating_sub(horizon) <= now => (0, logical + delay),
                Some(_) => match early {
                    Early::Held { .. } => return None,
                    Early::Last => (3, *logical),
                    Early::BeforeBestEffort => (1, *logical),
                },
            };
            Some((place, *frame))
        });
        let placed: Vec<_> = placed.collect();
        let least = placed.iter().map(|(place, _)| *place).min()?;
        let equals = placed.iter().filter(|(place, _)| *place == least);
        Some(equals.map(|(_, frame)| *frame).collect())
    }

    #[derive(Clone, Debug)]
    enum Op {
        Add(u32, u64),
        Go,
        Later(u64),
        Withdraw(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (0..CHANNELS, 0..40_u64).prop_map(|(channel, ahead)| Op::Add(channel, ahead)),
            3 => Just(Op::Go),
            1 => (1..9_u64).prop_map(Op::Later),
            1 => (0..CHANNELS).prop_map(Op::Withdraw),
        ]
    }

    proptest! {
        #[test]
        fn goes_as_lists_that_are_searched(
            horizon in 0..9_u64,
            kind in 0..3_usize,
            ops in proptest::collection::vec(op(), 0..PACKETS as usize),
        ) {
            let early = [
                Early::Held { horizon: Span::from_nanos(horizon) },
                Early::Last,
                Early::BeforeBestEffort,
            ][kind];
            let mut scheduler = scheduler(early);
            let mut waiting: Vec<(FrameId, u32, u64)> = Vec::new();
            let (mut now, mut last, mut came) = (0, [0; CHANNELS as usize], 0);
            for op in ops {
                match op {
                    Op::Add(channel, ahead) => {
                        // Logical arrivals of a channel never go back.
                        let logical = last[channel as usize].max(now + ahead);
                        last[channel as usize] = logical;
                        scheduler.add(FrameId(came), &frame(channel, logical), Instant::from_nanos(now));
                        waiting.push((FrameId(came), channel, logical));
                        came += 1;
                    }
                    Op::Go => match (scheduler.next(Instant::from_nanos(now)), goes(&waiting, early, now)) {
                        (Next::Frame(frame), Some(equals)) => {
                            prop_assert!(equals.contains(&frame), "{frame:?} for {equals:?}");
                            waiting.retain(|one| one.0 != frame);
                        }
                        (Next::NotBefore(at), None) => {
                            let (at, before) = (at.as_nanos(), |at: u64| goes(&waiting, early, at));
                            prop_assert!(now < at && before(at - 1).is_none() && before(at).is_some());
                        }
                        (Next::Nothing, None) => prop_assert!(waiting.is_empty()),
                        both => prop_assert!(false, "{both:?}"),
                    },
                    Op::Later(by) => now += by,
                    Op::Withdraw(channel) => {
                        let mut gone = Vec::new();
                        scheduler.withdraw(channel, |frame| gone.push(frame));
                        let of = waiting.iter().filter(|one| one.1 == channel);
                        prop_assert_eq!(gone, of.map(|one| one.0).collect::<Vec<_>>());
                        waiting.retain(|one| one.1 != channel);
                    }
                }
            }
        }
    }

    #[test]
    fn nobody_waits_any_more_when_a_driver_is_cleared() {
        let order = Box::new(scheduler(Early::Last));
        let mut transmit = Transmit::new(order, 4, 1);
        for channel in [0, 0, 3] {
            transmit.offer(&frame(channel, 0), Instant::ZERO);
        }
        transmit.clear();
        assert_eq!(transmit.next(Instant::ZERO), Ok(Next::Nothing));
        transmit.offer(&frame(1, 0), Instant::ZERO);
        assert!(matches!(transmit.next(Instant::ZERO), Ok(Next::Frame(_))));
    }

    #[test]
    fn a_frame_that_is_withdrawn_gives_back_its_place() {
        let mut transmit = Transmit::new(Box::new(scheduler(Early::Last)), 2, 1);
        for channel in [0, 1] {
            transmit.offer(&frame(channel, 0), Instant::ZERO);
        }
        let mut gone = Vec::new();
        transmit.order().withdraw(0, |frame| gone.push(frame));
        gone.into_iter().for_each(|frame| transmit.withdrawn(frame));
        assert_eq!(transmit.waiting(), 1);
        assert!(transmit.offer(&frame(2, 0), Instant::ZERO).is_some());
        assert!(transmit.offer(&frame(2, 0), Instant::ZERO).is_none());
    }

    #[test]
    fn a_link_that_is_full_is_asked_again_by_whoever_completes() {
        for (placement, runs) in [
            (Placement::Call, Runs::Caller),
            (Placement::Thread, Runs::Thread),
            (Placement::ThreadEach, Runs::NewThread),
        ] {
            assert_eq!(placement.runs(Cause::Queued, true), Runs::Nobody);
            assert_eq!(placement.runs(Cause::Current, true), Runs::Nobody);
            for cause in [Cause::Queued, Cause::Completed, Cause::Current] {
                assert_eq!(placement.runs(cause, false), runs);
            }
        }
    }
}
