//! What becomes of a frame that comes in.

use super::frame::{Frame, Kind, Role, Supervisory, Unnumbered, advance, distance};
use super::{Lapm, Loss, State};
use crate::bits::BitSink;
use crate::link::hdlc::FrameError;

impl Lapm {
    fn on_frame(&mut self, octets: &[u8]) {
        let sender = match self.role {
            Role::Originator => Role::Answerer,
            Role::Answerer => Role::Originator,
        };
        let Some(frame) = Frame::decode(octets, sender) else {
            self.counters.invalid += 1;
            return;
        };
        self.heard_at = self.now;
        match frame {
            Frame::Unnumbered { function, poll, .. } => self.on_unnumbered(function, poll),
            Frame::Supervisory {
                kind,
                function,
                nr,
                poll,
            } => self.on_supervisory(kind, function, nr, poll),
            Frame::Information {
                ns,
                nr,
                poll,
                payload,
            } => self.on_information(ns, nr, poll, payload),
        }
    }

    fn on_unnumbered(&mut self, function: Unnumbered, poll: bool) {
        match (function, self.state) {
            (Unnumbered::Establish, State::Idle | State::Connected) => {
                self.due.answer = Some((Unnumbered::Acknowledge, poll));
                self.start();
            }
            (Unnumbered::Establish, State::Establishing) => {
                self.due.answer = Some((Unnumbered::Acknowledge, poll));
            }
            (Unnumbered::Establish, State::Lost(_)) => {
                self.due.answer = Some((Unnumbered::Disconnected, poll));
            }
            (Unnumbered::Acknowledge, State::Establishing) => self.start(),
            (Unnumbered::Disconnected, State::Establishing | State::Connected) => {
                self.stop(State::Lost(Loss::Refused));
            }
            (Unnumbered::Acknowledge | Unnumbered::Disconnected, _) => self.counters.invalid += 1,
        }
    }

    fn on_supervisory(&mut self, kind: Kind, function: Supervisory, nr: u8, poll: bool) {
        if self.state != State::Connected || !self.is_outstanding(nr) {
            self.refuse_numbered(kind == Kind::Command && poll);
            return;
        }
        self.fresh = false;
        if function == Supervisory::Reject {
            self.counters.rejects_received += 1;
        }
        self.due.final_response |= kind == Kind::Command && poll;
        self.acknowledge(nr);
        if self.timer_recovery {
            if kind == Kind::Response && poll {
                self.timer_recovery = false;
                self.due.enquiry = false;
                self.retry = 0;
                self.send_again_from(nr);
            }
        } else if function == Supervisory::Reject {
            self.send_again_from(nr);
        }
    }

    fn on_information(&mut self, ns: u8, nr: u8, poll: bool, payload: &[u8]) {
        if self.state != State::Connected || !self.is_outstanding(nr) {
            self.refuse_numbered(poll);
            return;
        }
        self.fresh = false;
        self.due.final_response |= poll;
        self.acknowledge(nr);
        if ns == self.next_receive {
            self.accept(payload);
            return;
        }
        self.counters.frames_out_of_sequence += 1;
        if distance(ns, self.next_receive) <= self.config.window {
            // Received before: its acknowledgement was lost.
            self.due.acknowledgement = true;
        } else if !self.rejecting {
            self.rejecting = true;
            self.due.reject = true;
        }
    }

    fn accept(&mut self, payload: &[u8]) {
        self.due.acknowledgement = true;
        self.next_receive = advance(self.next_receive, 1);
        self.rejecting = false;
        self.due.reject = false;
        self.receive_queue.extend(payload);
    }

    /// A numbered frame outside a connection, or with an impossible acknowledgement.
    fn refuse_numbered(&mut self, poll: bool) {
        self.counters.invalid += 1;
        if poll && matches!(self.state, State::Lost(_)) {
            self.due.answer = Some((Unnumbered::Disconnected, true));
        }
    }

    fn is_outstanding(&self, nr: u8) -> bool {
        usize::from(distance(self.acknowledged, nr)) <= self.unacknowledged.len()
    }

    fn acknowledge(&mut self, nr: u8) {
        let count = distance(self.acknowledged, nr);
        if count == 0 {
            return;
        }
        // Frames being sent again may be acknowledged before they are sent.
        if distance(self.acknowledged, self.next_send) < count {
            self.next_send = nr;
        }
        self.unacknowledged.drain(..usize::from(count));
        self.acknowledged = nr;
        if !self.timer_recovery {
            self.t401_at = None;
            if self.next_send != self.acknowledged {
                self.start_t401();
            }
        }
    }

    fn send_again_from(&mut self, nr: u8) {
        self.next_send = nr;
        self.t401_at = None;
    }
}

impl BitSink for Lapm {
    #[inline]
    fn push_bit(&mut self, bit: bool) {
        match self.deframer.push(bit) {
            None => return,
            Some(Err(FrameError::BadFcs)) => {
                self.counters.bad_fcs += 1;
                return;
            }
            Some(Err(FrameError::Aborted | FrameError::Malformed | FrameError::TooLong)) => {
                self.counters.malformed += 1;
                return;
            }
            Some(Ok(frame)) => {
                self.received_frame.clear();
                self.received_frame.extend_from_slice(frame);
            }
        }
        let frame = core::mem::take(&mut self.received_frame);
        self.on_frame(&frame);
        self.received_frame = frame;
    }
}
