//! A client as its driver calls it, by its policy (§2.1, figure 2).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use laxity_model::nif::exchange::{Account, BufferPolicy, Offer, Outcome, Reason, decide};
use laxity_model::nif::link::{LinkError, Memory, Received};

use crate::buffers::{Buffer, Held, Shared};
use crate::client::{Client, Context, Direction, Loan, News, Peek};

/// What a call of a client's gives; `None` if it panicked.
pub(crate) fn caught<R>(call: impl FnOnce() -> R) -> Option<R> {
    // Whoever panicked is never called again, so what it left half done is seen by nobody.
    catch_unwind(AssertUnwindSafe(call)).ok()
}

/// A client in the driver's list.
pub(crate) struct Entry<M: Memory> {
    /// What it sends from, and, if it swaps, receives into.
    pub(crate) pool: Arc<Shared<M>>,
    pub(crate) receiver: Box<dyn Receiver<M>>,
    pub(crate) account: Account,
}

/// A client of any policy and memory.
pub(crate) trait Receiver<M: Memory>: Send {
    /// Its packet has arrived. What is in `packet` afterwards is the driver's.
    fn arrive(&mut self, packet: &mut Received<M>, context: &mut Context<'_>) -> Outcome;

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>);

    fn told(&mut self, news: News, context: &mut Context<'_>);

    /// Closes what it receives into.
    fn close(&self) {}
}

/// What was given for the next packet, and what becomes of that packet.
fn offered<M: Memory>(
    policy: BufferPolicy,
    pool: &Arc<Shared<M>>,
    length: usize,
) -> (Option<Held<M>>, Outcome) {
    let given = pool.given();
    let offer = Offer {
        policy,
        room: given.as_ref().map(|held| held.bytes().len()),
        is_closed: pool.is_closed(),
    };
    (given, decide(offer, length))
}

/// Takes the buffer in which its packet is, for one of its own.
pub(crate) struct Swapping<M: Memory, C> {
    pub(crate) pool: Arc<Shared<M>>,
    pub(crate) client: C,
}

impl<M: Memory, C: Client<M>> Receiver<M> for Swapping<M, C> {
    fn arrive(&mut self, packet: &mut Received<M>, context: &mut Context<'_>) -> Outcome {
        let (given, outcome) = offered(BufferPolicy::SwapOrReturn, &self.pool, packet.length);
        match (given, outcome) {
            (Some(mut held), Outcome::Swapped) => {
                held.swap(&mut packet.memory);
                let buffer = Buffer::received(held, packet.length, (&*packet).into());
                self.client.receive(buffer, context);
                if context.is_refused {
                    return Outcome::Dropped(Reason::Refused);
                }
            }
            // It stays given, or comes home where there is no giving any more.
            (Some(held), _) => drop(held.give()),
            (None, _) => {}
        }
        outcome
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        self.client.sent(tag, outcome, context);
    }

    fn told(&mut self, news: News, context: &mut Context<'_>) {
        self.client.told(news, context);
    }
}

/// Gets a copy in memory of its own kind.
pub(crate) struct Owning<O: Memory, C> {
    pub(crate) own: Arc<Shared<O>>,
    pub(crate) client: C,
}

impl<M: Memory, O: Memory, C: Client<O>> Receiver<M> for Owning<O, C> {
    fn arrive(&mut self, packet: &mut Received<M>, context: &mut Context<'_>) -> Outcome {
        let (given, outcome) = offered(BufferPolicy::MustReturn, &self.own, packet.length);
        match (given, outcome) {
            (Some(mut held), Outcome::Copied) => {
                let bytes = &packet.memory.bytes()[..packet.length];
                held.bytes_mut()[..packet.length].copy_from_slice(bytes);
                let buffer = Buffer::received(held, packet.length, (&*packet).into());
                self.client.receive(buffer, context);
                if context.is_refused {
                    return Outcome::Dropped(Reason::Refused);
                }
            }
            (Some(held), _) => drop(held.give()),
            (None, _) => {}
        }
        outcome
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        self.client.sent(tag, outcome, context);
    }

    fn told(&mut self, news: News, context: &mut Context<'_>) {
        self.client.told(news, context);
    }

    fn close(&self) {
        self.own.close();
    }
}

/// Looks at the packet in the driver's memory.
pub(crate) struct Peeking<P>(pub(crate) P);

impl<M: Memory, P: Peek> Receiver<M> for Peeking<P> {
    fn arrive(&mut self, packet: &mut Received<M>, context: &mut Context<'_>) -> Outcome {
        let loan = Loan {
            bytes: &packet.memory.bytes()[..packet.length],
            direction: Direction::In,
            arrived: Some((&*packet).into()),
        };
        self.0.look(loan, context);
        Outcome::Peeked
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, context: &mut Context<'_>) {
        self.0.sent(tag, outcome, context);
    }

    fn told(&mut self, news: News, context: &mut Context<'_>) {
        self.0.told(news, context);
    }
}
