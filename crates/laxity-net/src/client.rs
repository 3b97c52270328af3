//! What a client is, and what it may do when it is called (§2.1).
//!
//! A client is called by its driver's thread, at its packet's arrival and before anything else happens to the packet: it may be done
//! with it there, keep it, queue it, wake somebody, or change how urgent somebody is. It imposes itself on all others who share the
//! interface meanwhile, so it **neither waits nor allocates**. What a driver calls may panic: that client ends, its buffers come
//! home, and nobody else notices.
//!
//! What is only lent for the call cannot be kept:
//!
//! ```compile_fail,E0521
//! # use laxity_net::client::{Context, Loan, Peek};
//! struct Keeps(Vec<&'static [u8]>);
//! impl Peek for Keeps {
//!     fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
//!         self.0.push(packet.bytes);
//!     }
//! }
//! ```

use laxity_model::nif::exchange::Outcome;
use laxity_model::nif::link::{LinkError, Memory};
use laxity_model::nif::registry::ClientId;
pub use laxity_model::policy::Rank;
use laxity_model::{ActivityId, EventKind, Instant, PortId, SemaphoreId};

use crate::buffers::{Arrived, Buffer, Filled};

/// What a client's call does to the rest of the host, which carries it out.
pub trait Effects {
    /// Puts an arrival into a port, which may wake its waiter; `false` if the port is full, and the arrival dropped. Never waits.
    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool;

    /// From `at` on the activity is so urgent. What an earlier call arranged, and has not happened yet, never will. In a program that is so
    /// [until it waits](laxity_model::policy::raise); a thread of no program is what it was made until it is made something else.
    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant);

    /// Something happened to a packet, at the time of the call, as the [kind](EventKind) tells. Nothing unless somebody records: then it costs
    /// one call that does nothing.
    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        let _ = (kind, args);
    }
}

/// Where there is nothing but the driver: ports are full, and nobody is raised.
impl Effects for () {
    fn put(&mut self, _: PortId, _: [u64; 2]) -> bool {
        false
    }

    fn raise(&mut self, _: ActivityId, _: Rank, _: Instant) {}
}

/// What a client may do while it is called.
pub struct Context<'a> {
    now: Instant,
    effects: &'a mut dyn Effects,
    pub(crate) is_refused: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(now: Instant, effects: &'a mut dyn Effects) -> Self {
        Self {
            now,
            effects,
            is_refused: false,
        }
    }

    /// When the driver began to look at its interface, which may be after the packet arrived.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The packet that this is called for is not kept, as there is no room for it: it counts as dropped.
    pub const fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Puts an arrival into a port; `false` if the port is full, and the arrival dropped.
    pub fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        self.effects.put(port, payload)
    }

    /// Adds one to a semaphore.
    pub fn signal(&mut self, semaphore: SemaphoreId) {
        self.effects.put(semaphore, [0; 2]);
    }

    /// From `at` on the activity is so urgent, [as its host does it](Effects::raise).
    pub fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        self.effects.raise(activity, rank, at);
    }
}

/// What clients are told of their interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum News {
    /// It is down: nothing arrives, and what is sent comes back unsent.
    Down,
    /// It is up again.
    Up,
    /// It does not exist any more, or its driver has ended. All buffers have come home, but for those that clients hold; there are no more calls.
    Gone,
}

/// A client with buffers of memory `M`: of its interface's kind ([`SwapOrReturn`](laxity_model::nif::exchange::BufferPolicy)), or of its own (`MustReturn`), by how it
/// [registers](crate::driver).
pub trait Client<M: Memory>: Send {
    /// A packet has arrived, for a buffer that was given. Let go of, the buffer is free again; [emptied](Buffer::emptied), it can be
    /// given again at once.
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>);

    /// A frame of this tag has left; or not, for this reason. Its buffer is home.
    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        let _ = (tag, outcome, context);
    }

    /// Something happened to the interface.
    fn told(&mut self, news: News, context: &mut Context<'_>) {
        let _ = (news, context);
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// It arrived.
    In,
    /// It is handed to the interface, which may still refuse it.
    Out,
}

/// A packet in the driver's memory, for the length of a call.
#[derive(Clone, Copy, Debug)]
pub struct Loan<'call> {
    /// The packet.
    pub bytes: &'call [u8],
    /// Which way it goes.
    pub direction: Direction,
    /// When it arrived, and how; of what is sent, `None`.
    pub arrived: Option<Arrived>,
}

/// A client that only looks (`PeekOnly`), or a [tap](crate::Driver::tap).
pub trait Peek: Send {
    /// A packet is there, until this returns.
    fn look(&mut self, packet: Loan<'_>, context: &mut Context<'_>);

    /// Of a tap: whose the packet was that arrived and was looked at last, if anybody's, and what became of it.
    fn became(&mut self, whose: Option<ClientId>, outcome: Outcome) {
        let _ = (whose, outcome);
    }

    /// As [`Client::sent`].
    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        let _ = (tag, outcome, context);
    }

    /// As [`Client::told`].
    fn told(&mut self, news: News, context: &mut Context<'_>) {
        let _ = (news, context);
    }
}
