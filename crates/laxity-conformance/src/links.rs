//! What every interface must do alike, live and emulated: cases over two that are connected.
//!
//! A case takes a fresh [`Wire`], sends and receives at both of its ends, and judges by what arrived, by what came back, and by counts. Instants are only
//! compared with each other. Nobody else may use the wire: what is received is what was sent, or a case fails.

mod fates;
mod frames;
mod sums;

use laxity_model::nif::link::{Link, LinkError, Memory, Received};
use laxity_model::{Instant, Span};

use crate::{Failure, Result};
use frames::Frame;

/// Two interfaces that are connected, and what may befall them.
pub trait Wire {
    /// The interface at one end, to which things happen.
    type Near: Link;
    /// The one at the other.
    type Far: Link;

    /// The interface at the one end.
    fn near(&mut self) -> &mut Self::Near;

    /// The one at the other.
    fn far(&mut self) -> &mut Self::Far;

    /// The time now.
    fn now(&mut self) -> Instant;

    /// Lets a moment pass, about as long as a packet takes.
    fn pass(&mut self);

    /// Sets the near interface down, or up again. Whether that can be done.
    fn set_up(&mut self, is_up: bool) -> bool;

    /// How often the near interface copies a frame in several pieces within this process, until the system has it.
    fn copies(&self) -> u64;

    /// Deletes the near interface. Whether that can be done.
    fn delete(&mut self) -> bool;
}

/// One thing that every interface must do.
#[derive(Clone, Copy, Debug)]
pub struct LinkCase<W> {
    /// Its name, unique among these cases.
    pub name: &'static str,
    /// Runs it over a wire that is fresh; an error says how the interface differs.
    pub run: fn(&mut W) -> Result,
}

/// All of them.
pub fn link_cases<W: Wire>() -> Vec<LinkCase<W>> {
    let case = |name, run| LinkCase { name, run };
    vec![
        case(
            "what-is-sent-arrives-unchanged-and-in-order",
            frames::in_order,
        ),
        case("what-is-queued-leaves-with-the-next-flush", frames::queued),
        case("what-lies-in-pieces-arrives-whole", frames::gathered),
        case("a-runt-arrives", frames::runts),
        case("a-frame-for-nobody-arrives", frames::for_nobody),
        case(
            "an-instant-lies-between-sending-and-taking",
            frames::instants,
        ),
        case("what-does-not-fit-is-refused", frames::refused),
        case("so-many-arrive-as-memory-was-posted", sums::as_posted),
        case(
            "without-memory-nothing-arrives-and-all-is-counted",
            sums::without_memory,
        ),
        case("what-has-left-is-told-once", sums::told_once),
        case("no-more-are-below-than-it-says", sums::reach),
        case("memory-that-was-dropped-is-there-again", sums::dropped),
        case("memory-adds-up-whatever-is-done", sums::adds_up),
        case("down-is-told-once-and-up-goes-on", fates::down_and_up),
        case("when-it-is-gone-all-memory-comes-home", fates::gone),
    ]
}

/// How long is waited for what must come; nothing is judged by it.
const PATIENCE: Span = Span::from_secs(5);

/// Lets moments pass until the answer is something.
fn until<W: Wire, T>(
    wire: &mut W,
    what: &str,
    mut found: impl FnMut(&mut W, Instant) -> Result<Option<T>>,
) -> Result<T> {
    let end = wire.now() + PATIENCE;
    loop {
        let now = wire.now();
        if let Some(found) = found(wire, now)? {
            return Ok(found);
        }
        if now > end {
            return Err(Failure::Wrong(format!("{what} did not come")));
        }
        wire.pass();
    }
}

/// The same of a packet at an end.
fn arrival<W: Wire, L: Link>(
    wire: &mut W,
    end: fn(&mut W) -> &mut L,
) -> Result<Received<L::Memory>> {
    until(wire, "a packet", |wire, now| {
        end(wire)
            .receive(now)
            .map_err(|error| wrong("receive", &error))
    })
}

/// The same, which is this frame.
fn arrives<W: Wire, L: Link>(
    wire: &mut W,
    end: fn(&mut W) -> &mut L,
    frame: Frame,
) -> Result<Received<L::Memory>> {
    let received = arrival(wire, end)?;
    frame.is(&received, end(wire).facts().medium)?;
    Ok(received)
}

fn wrong(call: &str, error: &LinkError) -> Failure {
    Failure::Wrong(format!("{call}: {error}"))
}

/// Memory for so many packets at an end.
fn memory<L: Link>(of: &mut L, packets: usize) -> Result<Vec<L::Memory>> {
    of.allocate(packets)
        .map_err(|error| wrong("allocate", &error))
}

fn post<L: Link>(to: &mut L, memory: L::Memory) -> Result {
    to.post(memory)
        .map_err(|_| Failure::Wrong("memory of its own was not taken".to_owned()))
}

/// Posts memory for so many packets.
fn post_many<L: Link>(to: &mut L, packets: usize) -> Result {
    for memory in memory(to, packets)? {
        post(to, memory)?;
    }
    Ok(())
}

/// Sends a frame, when there is room for it, and takes back what has left.
fn send<W: Wire, L: Link>(wire: &mut W, end: fn(&mut W) -> &mut L, frame: Frame) -> Result {
    let mut memory = memory(end(wire), 1)?.pop();
    until(wire, "room for a frame", |wire, now| {
        let link = end(wire);
        drop(link.sent(now));
        let mut taken = memory.take().expect("it came back");
        frame.write(taken.bytes_mut());
        match link.send(taken, frame.length, now) {
            Ok(()) => Ok(Some(())),
            Err((back, LinkError::Full)) => {
                memory = Some(back);
                Ok(None)
            }
            Err((_, error)) => Err(wrong("send", &error)),
        }
    })
}
