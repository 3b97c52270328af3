//! Frames, and that they arrive as they were sent.

use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Left, Link, LinkError, Medium, Memory, Received};

use super::{Wire, arrival, arrives, memory, post, post_many, send, wrong};
use crate::{Failure, Result, ensure};

/// A frame that can be told from all others, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub(super) number: u32,
    pub(super) length: usize,
    /// The last byte of the address that it is for.
    pub(super) to: u8,
}

/// Ethernet pads shorter ones.
const SHORTEST: usize = 60;

impl Frame {
    pub(super) const fn new(number: u32, length: usize) -> Self {
        Self {
            number,
            length,
            to: 1,
        }
    }

    fn byte(self, at: usize) -> u8 {
        match at {
            0..=4 => 2,
            5 => self.to,
            6..=10 => 6,
            11 => 2,
            // An EtherType that is left to experiments.
            12 => 0x88,
            13 => 0xb5,
            // Where IP alone is carried, that is what it must look like.
            14 => 0x45,
            15..=18 => self.number.to_be_bytes()[at - HEADER - 1],
            _ => (self.number as usize).wrapping_mul(31).wrapping_add(at) as u8,
        }
    }

    pub(super) fn write(self, to: &mut [u8]) {
        for (at, byte) in to.iter_mut().take(self.length).enumerate() {
            *byte = self.byte(at);
        }
    }

    /// That this is what arrived from an interface of this medium.
    pub(super) fn is<M: Memory>(self, received: &Received<M>, medium: Medium) -> Result {
        let padded = self.length.max(SHORTEST);
        ensure!(
            received.length == self.length || received.length == padded,
            "{self:?} arrived with {} bytes",
            received.length
        );
        let bytes = &received.memory.bytes()[..received.length];
        let from = match medium {
            Medium::Ethernet => 0,
            // The header is made up.
            Medium::Ip => HEADER,
        };
        let differs = (from..self.length).find(|at| bytes[*at] != self.byte(*at));
        ensure!(differs.is_none(), "{self:?} differs at {differs:?}");
        ensure!(
            received.left == Left::default(),
            "something is left of a frame that is whole: {:?}",
            received.left
        );
        Ok(())
    }
}

pub(super) fn in_order<W: Wire>(wire: &mut W) -> Result {
    const COUNT: u32 = 200;
    one_way(wire, W::near, W::far, COUNT)?;
    one_way(wire, W::far, W::near, COUNT)
}

fn one_way<W: Wire, A: Link, B: Link>(
    wire: &mut W,
    from: fn(&mut W) -> &mut A,
    to: fn(&mut W) -> &mut B,
    count: u32,
) -> Result {
    const POSTED: u32 = 8;
    let longest = from(wire).facts().mtu.min(to(wire).facts().mtu) + HEADER;
    let frame = |number: u32| {
        let length = SHORTEST + (number as usize * 97) % (longest - SHORTEST + 1);
        Frame::new(number, if number == 0 { longest } else { length })
    };
    post_many(to(wire), POSTED as usize)?;
    for number in 0..count {
        send(wire, from, frame(number))?;
        if number + 1 < POSTED {
            continue;
        }
        let received = arrives(wire, to, frame(number + 1 - POSTED))?;
        post(to(wire), received.memory)?;
    }
    for number in count + 1 - POSTED..count {
        arrives(wire, to, frame(number))?;
    }
    Ok(())
}

pub(super) fn queued<W: Wire>(wire: &mut W) -> Result {
    let count = wire.near().facts().reach.min(8) as u32;
    post_many(wire.far(), count as usize)?;
    let now = wire.now();
    for (memory, number) in memory(wire.near(), count as usize)?.into_iter().zip(0..) {
        let (mut memory, frame) = (memory, Frame::new(number, 100));
        frame.write(memory.bytes_mut());
        let queued = wire.near().queue(memory, 100, Left::default(), now);
        queued.map_err(|(_, error)| wrong("queue", &error))?;
    }
    wire.near()
        .flush(now)
        .map_err(|error| wrong("flush", &error))?;
    for number in 0..count {
        arrives(wire, W::far, Frame::new(number, 100))?;
    }
    Ok(())
}

/// Sends a frame of which so much lies in its memory, and the rest in three pieces and an empty one, in this order. Returns how often it was copied.
fn send_pieces<W: Wire>(wire: &mut W, frame: Frame, own: usize, order: [usize; 4]) -> Result<u64> {
    let Some(mut memory) = memory(wire.near(), 1)?.pop() else {
        return Err(Failure::Wrong("no memory came".to_owned()));
    };
    let mut whole = vec![0; frame.length];
    frame.write(&mut whole);
    memory.bytes_mut()[..own].copy_from_slice(&whole[..own]);
    let rest = &whole[own..];
    let ends = [
        0,
        rest.len() / 7,
        rest.len() / 7,
        rest.len() / 2,
        rest.len(),
    ];
    let pieces = order.map(|at| &rest[ends[at]..ends[at + 1]]);
    let now = wire.now();
    let queued = (wire.near()).queue_gathered(memory, own, &pieces, Left::default(), now);
    let together = queued.map_err(|(_, error)| wrong("queue_gathered", &error))?;
    let near = wire.near();
    near.flush(now).map_err(|error| wrong("flush", &error))?;
    let facts = near.facts();
    ensure!(
        !(facts.gathers && together) || own < HEADER,
        "it gathers, and copied the pieces together"
    );
    Ok(u64::from(facts.copies) + u64::from(together))
}

pub(super) fn gathered<W: Wire>(wire: &mut W) -> Result {
    const RIGHT: [usize; 4] = [0, 1, 2, 3];
    let longest = wire.near().facts().mtu + HEADER;
    post_many(wire.far(), 5)?;
    let lengths = [(HEADER, longest), (200, 700), (700, 700), (0, 90)];
    for (number, (own, length)) in (0..).zip(lengths) {
        let frame = Frame::new(number, length);
        let (copied, must) = (send_pieces(wire, frame, own, RIGHT)?, wire.copies());
        ensure!(
            copied == must || own < HEADER,
            "it was copied {copied} times, not {must}"
        );
        arrives(wire, W::far, frame)?;
    }
    let frame = Frame::new(4, 500);
    send_pieces(wire, frame, 64, [2, 1, 0, 3])?;
    let arrived = arrival(wire, W::far)?;
    ensure!(
        arrived.length == frame.length && frame.is(&arrived, wire.far().facts().medium).is_err(),
        "that pieces arrive in another order is not seen"
    );
    Ok(())
}

pub(super) fn runts<W: Wire>(wire: &mut W) -> Result {
    let shortest = match wire.far().facts().medium {
        Medium::Ethernet => HEADER,
        Medium::Ip => HEADER + 1,
    };
    let lengths = shortest..SHORTEST;
    post_many(wire.far(), lengths.len())?;
    for (number, length) in (0..).zip(lengths) {
        let frame = Frame::new(number, length);
        send(wire, W::near, frame)?;
        arrives(wire, W::far, frame)?;
    }
    Ok(())
}

pub(super) fn for_nobody<W: Wire>(wire: &mut W) -> Result {
    post_many(wire.far(), 2)?;
    for (number, to) in [(0, 77), (1, 1)] {
        let frame = Frame {
            to,
            ..Frame::new(number, 64)
        };
        send(wire, W::near, frame)?;
        arrives(wire, W::far, frame)?;
    }
    Ok(())
}

pub(super) fn instants<W: Wire>(wire: &mut W) -> Result {
    post_many(wire.far(), 50)?;
    let mut last = wire.now();
    for number in 0..50 {
        let before = wire.now();
        send(wire, W::near, Frame::new(number, 200))?;
        let received = arrival(wire, W::far)?;
        let after = wire.now();
        ensure!(
            before <= received.at && received.at <= after && last <= received.at,
            "sent at {before:?}, arrived at {:?}, taken at {after:?}, the one before at {last:?}",
            received.at
        );
        last = received.at;
    }
    Ok(())
}

pub(super) fn refused<W: Wire>(wire: &mut W) -> Result {
    post_many(wire.far(), 2)?;
    let longest = wire.near().facts().mtu + HEADER;
    let Some(mut held) = memory(wire.near(), 1)?.pop() else {
        return Err(Failure::Wrong("no memory came".to_owned()));
    };
    let room = held.bytes().len();
    ensure!(
        room >= longest,
        "a frame of {longest} bytes does not fit in {room}"
    );
    Frame::new(0, room).write(held.bytes_mut());
    for length in [longest + 1, room + 1, usize::MAX, HEADER - 1, 0] {
        let now = wire.now();
        match wire.near().send(held, length, now) {
            Err((memory, LinkError::TooLong(told, most))) if length > longest => {
                ensure!(told == length && most < length, "told {told} of {most}");
                held = memory;
            }
            Err((memory, LinkError::TooShort(told))) if length < HEADER => {
                ensure!(told == length, "told {told}");
                held = memory;
            }
            Err((_, error)) => return Err(wrong("send", &error)),
            Ok(()) => return Err(Failure::Wrong(format!("{length} bytes were taken"))),
        }
    }
    // It goes on.
    send(wire, W::near, Frame::new(1, longest))?;
    arrives(wire, W::far, Frame::new(1, longest)).map(drop)
}
