//! Who listens to a name, and the channels that open there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};

use laxity_linux::host::ring::Ring;
use laxity_linux::os::clock;
use laxity_model::Instant;
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::ring::Side;
use laxity_net::channels::node;
use laxity_net::channels::told::LENGTH;

use super::Asks;
use super::client::Shared;
use super::core::Core;
use super::ends::{Life, Receiver, rings, shape};
use super::error::Error;
use super::inward::Inward;
use super::setup::Listens;

/// Somebody who listens, as the node's thread has him.
pub(super) struct Listening {
    listens: node::Listens,
    largest: u32,
    /// Rings for channels that are not open yet: the application's side, and the node's.
    posted: VecDeque<[Ring; 2]>,
    accepted: Sender<Accepted>,
}

/// A channel that has opened, for its application.
pub(super) struct Accepted {
    pub(super) ring: Ring,
    pub(super) life: Arc<Life>,
    pub(super) asked: Asked,
}

/// A channel that has opened, for the node's thread.
pub(super) struct Offered {
    pub(super) inward: Inward,
    pub(super) ring: Ring,
}

/// A channel that an application of another process takes.
pub(super) struct Taken {
    pub(super) ring: Ring,
    pub(super) listens: node::Listens,
}

impl Taken {
    pub(super) const fn listens(&self) -> node::Listens {
        self.listens
    }

    /// It has opened.
    pub(super) fn begins(self, life: Arc<Life>) -> Offered {
        let Self { ring, listens } = self;
        let inward = Inward::new(ring.sender(), life, (listens, listens.largest));
        Offered { inward, ring }
    }
}

impl Listening {
    /// Whether a channel may open here, or why not.
    pub(super) fn answers(&self, asked: &Asked) -> Result<node::Listens, u32> {
        if self.posted.is_empty() {
            return Err(super::DECLINED_BUSY);
        }
        match asked.traffic.largest().get() <= self.largest {
            true => Ok(self.listens),
            false => Err(super::DECLINED_LARGE),
        }
    }

    /// A channel has opened. `None` where there is no ring for it any more, or nobody listens.
    pub(super) fn begins(&mut self, life: &Arc<Life>, asked: Asked) -> Option<Offered> {
        let [own, nodes] = self.posted.pop_front()?;
        let (sender, ring) = (nodes.sender(), nodes);
        let accepted = Accepted {
            ring: own,
            life: Arc::clone(life),
            asked,
        };
        self.accepted.send(accepted).ok()?;
        let inward = Inward::new(sender, Arc::clone(life), (self.listens, self.largest));
        Some(Offered { inward, ring })
    }
}

/// Who listens to a name. Dropped, nobody does, and channels that are open stay so.
#[derive(Debug)]
pub struct Listener {
    name: Name,
    via: Via,
    accepted: mpsc::Receiver<Accepted>,
}

/// How its node is reached.
#[derive(Debug)]
enum Via {
    Node(Arc<Asks>, Listens),
    /// By a socket, under this number.
    Line(Arc<Shared>, u32),
}

impl Listener {
    /// Begins to listen.
    pub(super) fn new(
        asks: &Arc<Asks>,
        name: Name,
        (listens, unseen): (Listens, laxity_model::Span),
    ) -> Result<Self, Error> {
        let (sender, accepted) = mpsc::channel();
        let posted = (0..listens.backlog.max(1)).map(|_| ring(&listens));
        let listening = Listening {
            listens: node::Listens {
                room: listens.room,
                largest: listens.largest.get(),
                patience: listens.patience,
                unseen,
            },
            largest: listens.largest.get(),
            posted: posted.collect::<Result<_, _>>()?,
            accepted: sender,
        };
        let own = name.clone();
        let begun = asks.ask(move |core: &mut Core| {
            if core.listening.contains_key(&own) || core.served.contains_key(&own) {
                return Err(Error::Taken);
            }
            core.listening.insert(own, listening);
            Ok(())
        });
        begun.wait()??;
        Ok(Self {
            name,
            via: Via::Node(Arc::clone(asks), listens),
            accepted,
        })
    }

    /// One of another process than the node's.
    pub(super) fn afar(
        name: Name,
        (shared, number): (Arc<Shared>, u32),
        accepted: mpsc::Receiver<Accepted>,
    ) -> Self {
        let via = Via::Line(shared, number);
        Self {
            name,
            via,
            accepted,
        }
    }

    /// The name that is listened to.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Waits for a channel that opens under this name, no longer than until then; `None`: time is up.
    ///
    /// # Errors
    ///
    /// The node has ended, or there is no memory for the next channel's messages.
    pub fn accept(&self, until: Option<Instant>) -> Result<Option<Receiver>, Error> {
        let accepted = match until {
            None => self.accepted.recv().map_err(|_| Error::Ended)?,
            Some(until) => {
                let left = until.saturating_since(clock::now());
                match self
                    .accepted
                    .recv_timeout(std::time::Duration::from_nanos(left.as_nanos()))
                {
                    Ok(accepted) => accepted,
                    Err(RecvTimeoutError::Timeout) => return Ok(None),
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::Ended),
                }
            }
        };
        let Accepted { ring, life, asked } = accepted;
        let receiver = Receiver::new(ring.receiver(), life, asked);
        match &self.via {
            Via::Line(shared, number) => shared.accepted(*number),
            Via::Node(asks, listens) => {
                let (next, name) = (self::ring(listens)?, self.name.clone());
                let posted = asks.ask(move |core: &mut Core| {
                    if let Some(listening) = core.listening.get_mut(&name) {
                        listening.posted.push_back(next);
                    }
                });
                posted.wait()?;
            }
        }
        Ok(Some(receiver))
    }
}

/// Waits until the node knows, so that channels which have opened and were not accepted are closed, and no more of them open; and its memory is given back here.
impl Drop for Listener {
    fn drop(&mut self) {
        match &self.via {
            Via::Line(shared, number) => shared.close(*number),
            Via::Node(asks, _) => {
                let name = self.name.clone();
                let removed = asks.ask(move |core: &mut Core| core.listening.remove(&name));
                // One that has ended has closed them all.
                drop(removed.wait());
            }
        }
        for Accepted { life, .. } in self.accepted.try_iter() {
            life.close();
        }
    }
}

/// For one channel.
fn ring(listens: &Listens) -> Result<[Ring; 2], Error> {
    let shape = shape(listens.room.get(), listens.largest, LENGTH)?;
    rings(shape, Side::Receiver)
}
