//! The seam between the applications and whoever carries their messages: one that sends, one that receives, and the loops of both, which are the same for all.

use std::io;

use laxity::{now, sleep_until};
use laxity_model::{Instant, Span};

use super::flows::{Flow, When};

/// Who is waited for after the last message is due to be sent: what has not come by then is lost.
pub const REST: Span = Span::from_millis(500);

/// One end of a flow, by which messages go.
pub trait Sends {
    /// Sends one. It may wait as long as it has to, which makes the messages after it late.
    ///
    /// # Errors
    ///
    /// What no further message will be without.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;
}

/// The other end.
pub trait Receives {
    /// Waits for the next message, which is in the room's front then, and says how long it is; `None`: none came until then.
    ///
    /// # Errors
    ///
    /// What no further message will be without.
    fn receive(&mut self, room: &mut [u8], until: Instant) -> io::Result<Option<usize>>;
}

/// A message that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Whose it is.
    pub flow: Flow,
    /// Its number, from 0.
    pub number: u64,
    /// When `receive` had returned with it.
    pub at: Instant,
}

/// Sends what is due, each at its time or, where those before it took longer, right after them; nothing any more when the time is over.
///
/// # Errors
///
/// What the carrier fails with.
pub fn send(flow: Flow, when: When, carrier: &mut dyn Sends) -> io::Result<()> {
    let mut message = vec![0; flow.bytes()];
    for number in 0..flow.count(when) {
        sleep_until(flow.scheduled(when, number));
        if now() >= when.until {
            break;
        }
        flow.write(&mut message, number);
        carrier.send(&message)?;
    }
    Ok(())
}

/// Receives until the rest is over. What is not as it was sent is left out, and so it is lost.
///
/// # Errors
///
/// What the carrier fails with.
pub fn receive(flow: Flow, when: When, carrier: &mut dyn Receives) -> io::Result<Vec<Arrival>> {
    let over = when.until + REST;
    // A longer message than ours is seen to be longer.
    let mut room = vec![0; flow.bytes() + 1];
    let mut arrivals = Vec::with_capacity(flow.count(when) as usize);
    while let Some(length) = carrier.receive(&mut room, over)? {
        let at = now();
        let message = room.get(..length).unwrap_or_default();
        if let Some(number) = flow.number(message) {
            arrivals.push(Arrival { flow, number, at });
        }
        if at >= over {
            break;
        }
    }
    Ok(arrivals)
}

/// As processes tell it, a line each: `control 17 123456789`, the flow, the number and the instant in nanoseconds.
pub(super) fn lines(arrivals: &[Arrival]) -> String {
    let line =
        |one: &Arrival| format!("{} {} {}\n", one.flow.name(), one.number, one.at.as_nanos());
    arrivals.iter().map(line).collect()
}

/// What such a line tells.
pub(super) fn of_line(line: &str) -> Option<Arrival> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let mut flows = [Flow::Control, Flow::Video, Flow::Bulk].into_iter();
    let flow = flows.find(|flow| flow.name() == name)?;
    let mut numbers = words.map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(number)), Some(Ok(at)), None) => Some(Arrival {
            flow,
            number,
            at: Instant::from_nanos(at),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that are there, in this order, and who ends when all are taken.
    struct There(Vec<Vec<u8>>);

    impl Receives for There {
        fn receive(&mut self, room: &mut [u8], _: Instant) -> io::Result<Option<usize>> {
            let Some(message) = self.0.pop() else {
                return Ok(None);
            };
            let length = message.len().min(room.len());
            room[..length].copy_from_slice(&message[..length]);
            Ok(Some(length))
        }
    }

    #[test]
    fn what_came_is_told_and_what_is_not_as_it_was_sent_did_not_come() {
        let flow = Flow::Control;
        let whole = |number| {
            let mut message = vec![0; flow.bytes()];
            flow.write(&mut message, number);
            message
        };
        let (mut longer, shorter) = (whole(3), whole(4)[..63].to_vec());
        longer.push(0);
        let from = now();
        let when = When {
            from,
            until: from + Span::from_secs(60),
        };
        let mut there = There(vec![whole(1), shorter, longer, whole(2)]);
        let arrivals = receive(flow, when, &mut there).expect("it does not fail");
        let numbers: Vec<u64> = arrivals.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [2, 1]);
        let again: Vec<_> = lines(&arrivals).lines().filter_map(of_line).collect();
        assert_eq!(again, arrivals);
        for wrong in [
            "",
            "control",
            "control 1",
            "control 1 2 3",
            "else 1 2",
            "video x 2",
        ] {
            assert_eq!(of_line(wrong), None, "{wrong}");
        }
    }
}
