//! Of a link's channels those that begin here: from messages to packets that wait.

use laxity_model::Instant;
use laxity_model::channels::clocks::Logical;
use laxity_model::channels::handler;
use laxity_model::channels::source::Offered;

use super::frames::Waiting;
use super::{Effect, WayOut};
use crate::channels::path::Lane;
use crate::channels::path::origin::Offer;

impl<B: AsRef<[u8]>> WayOut<B> {
    /// An application offers a message of a channel that begins here; where it has no lane for what keeps a promise, it is best effort. O(1), but for those that are dropped for it.
    ///
    /// # Panics
    ///
    /// No such channel is open.
    pub fn offer(
        &mut self,
        channel: u32,
        now: Instant,
        buffer: B,
        mut effect: impl FnMut(Effect<B>),
    ) -> Offer<B> {
        let [real_time, best_effort] = self.begins(channel);
        let fits = match (&mut *real_time, &mut *best_effort) {
            (Some(lane), _) | (None, Some(lane)) => lane.takes(buffer.as_ref().len()),
            (None, None) => return Offer::Dropped(buffer),
        };
        if !fits {
            return Offer::TooLarge(buffer);
        }
        let (buffer, was_demoted) = match real_time {
            None => (buffer, false),
            Some(lane) => match lane.offer(now, buffer, &mut effect) {
                Offered::Waits => return Offer::Waits,
                Offered::Blocked(buffer, until) => return Offer::Blocked(buffer, until),
                Offered::Dropped(buffer) => return Offer::Dropped(buffer),
                Offered::BestEffort(buffer) => (buffer, true),
            },
        };
        let Some(lane) = best_effort else {
            return Offer::Dropped(buffer);
        };
        match lane.offer(now, buffer, effect) {
            Offered::Waits if was_demoted => Offer::Demoted,
            Offered::Waits => Offer::Waits,
            Offered::Blocked(buffer, until) => Offer::Blocked(buffer, until),
            Offered::Dropped(buffer) | Offered::BestEffort(buffer) => Offer::Dropped(buffer),
        }
    }

    /// What the handler of a lane does now that it has the processor. A packet that it makes is to be [queued](Self::queue) when its work is done, before it is asked again.
    ///
    /// # Panics
    ///
    /// No such channel is open, or the packet before was not queued.
    pub fn next(
        &mut self,
        (channel, lane): (u32, Lane),
        now: Instant,
        mut effect: impl FnMut(Effect<B>),
    ) -> handler::Next {
        let Some(lane) = &mut self.begins(channel)[lane as usize] else {
            return handler::Next::Idle;
        };
        assert!(lane.made.is_none(), "the packet before was not queued");
        let next = lane.next(now, &mut effect);
        if lane.has_room_again() {
            effect(Effect::Room(channel));
        }
        next
    }

    /// The packet that the handler has made begins to wait for the link. Whether there was one.
    ///
    /// # Panics
    ///
    /// No such channel is open.
    pub fn queue(&mut self, (channel, lane): (u32, Lane), now: Instant) -> bool {
        let of = self.begins(channel)[lane as usize].as_mut();
        let Some(made) = of.and_then(|of| of.made.take()) else {
            return false;
        };
        self.wait(
            Waiting {
                channel,
                lane,
                logical: Logical::here(made.packet.due.logical),
                host: 0,
                was_late: false,
                message: made.packet.message,
                part: made.part,
                parts: made.parts,
                length: made.packet.bytes,
                place: made.place,
            },
            now,
        );
        true
    }

    /// The handlers of a channel do all that they can now, where nobody has to be given the processor between; answers when there is more to do, if nothing happens before.
    ///
    /// # Panics
    ///
    /// No such channel is open.
    pub fn run(
        &mut self,
        channel: u32,
        now: Instant,
        mut effect: impl FnMut(Effect<B>),
    ) -> Option<Instant> {
        let mut resumes: Option<Instant> = None;
        for lane in Lane::ALL {
            let from = self.run_lane((channel, lane), now, &mut effect);
            resumes = [resumes, from].into_iter().flatten().min();
        }
        resumes
    }

    fn run_lane(
        &mut self,
        (channel, lane): (u32, Lane),
        now: Instant,
        effect: &mut impl FnMut(Effect<B>),
    ) -> Option<Instant> {
        let of = self.begins(channel)[lane as usize].as_ref()?;
        if now < of.resumes {
            return Some(of.resumes);
        }
        loop {
            match self.next((channel, lane), now, &mut *effect) {
                handler::Next::Idle | handler::Next::Blocked => return None,
                handler::Next::Inherits { from, .. } if from > now => {
                    if let Some(of) = &mut self.begins(channel)[lane as usize] {
                        of.resumes = from;
                    }
                    return Some(from);
                }
                handler::Next::Packet(..) => {
                    self.queue((channel, lane), now);
                }
                handler::Next::Inherits { .. }
                | handler::Next::Look
                | handler::Next::Discards(_) => {}
            }
        }
    }
}
