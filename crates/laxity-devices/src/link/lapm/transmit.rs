//! Which frame goes out next.

use super::frame::{Frame, Kind, Supervisory, advance, distance};
use super::{Lapm, State};
use crate::bits::BitSource;

impl Lapm {
    /// Chooses the frame to send now and writes it to `sent_frame`.
    fn next_frame(&mut self) -> bool {
        let mut out = core::mem::take(&mut self.sent_frame);
        let sent = self.encode_next(&mut out);
        self.sent_frame = out;
        sent
    }

    fn encode_next(&mut self, out: &mut Vec<u8>) -> bool {
        let nr = self.next_receive;
        let supervisory = |kind, function, poll| Frame::Supervisory {
            kind,
            function,
            nr,
            poll,
        };
        let frame = if let Some((function, poll)) = self.due.answer.take() {
            Frame::Unnumbered { function, poll }
        } else if let Some(function) = self.due.request.take() {
            self.start_t401();
            let poll = true;
            Frame::Unnumbered { function, poll }
        } else if self.state != State::Connected {
            return false;
        } else if core::mem::take(&mut self.due.enquiry) {
            self.start_t401();
            supervisory(Kind::Command, Supervisory::Ready, true)
        } else if core::mem::take(&mut self.due.final_response) {
            supervisory(Kind::Response, Supervisory::Ready, true)
        } else if core::mem::take(&mut self.due.reject) {
            self.counters.rejects_sent += 1;
            supervisory(Kind::Response, Supervisory::Reject, false)
        } else if self.encode_information(out) {
            self.due.acknowledgement = false;
            return true;
        } else if core::mem::take(&mut self.due.acknowledgement) {
            supervisory(Kind::Response, Supervisory::Ready, false)
        } else {
            return false;
        };
        frame.encode(self.role, out);
        true
    }

    fn encode_information(&mut self, out: &mut Vec<u8>) -> bool {
        if self.timer_recovery {
            return false;
        }
        let index = usize::from(distance(self.acknowledged, self.next_send));
        if index < self.unacknowledged.len() {
            self.counters.frames_retransmitted += 1;
        } else {
            if index >= usize::from(self.config.window) || self.send_queue.is_empty() {
                return false;
            }
            let count = self.send_queue.len().min(self.config.max_octets);
            self.unacknowledged
                .push_back(self.send_queue.drain(..count).collect());
        }
        let payload = &self.unacknowledged[index];
        Frame::Information {
            ns: self.next_send,
            nr: self.next_receive,
            poll: false,
            payload,
        }
        .encode(self.role, out);
        self.counters.frames_sent += 1;
        self.next_send = advance(self.next_send, 1);
        if self.t401_at.is_none() {
            self.start_t401();
        }
        true
    }
}

impl BitSource for Lapm {
    #[inline]
    fn next_bit(&mut self) -> bool {
        if self.framer.is_ready() && self.next_frame() {
            self.framer.begin(&self.sent_frame);
        }
        self.framer.next_bit()
    }
}
