//! What arrives for a body, by other threads and by descriptors.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::PortId;
use laxity_model::base::port::{Arrival, PortKind};
use rustix::io::Errno;

use super::{FeedError, Rank};
use crate::host::together::{Feeder, Place, Seat};
use crate::os::clock;
use crate::run::port::Ports;

/// The ports of a body, for the threads that put into them. Those that it waits on belong to the thread that drives it.
#[derive(Clone)]
pub struct Inbox {
    pub(super) ports: Arc<Ports>,
    pub(super) feeds: Arc<Feeds>,
    /// Where the body takes turns with those of other processes.
    pub(super) place: Option<Arc<Place>>,
    /// There it waits for no descriptors itself.
    pub(super) feeder: Option<Arc<Feeder>>,
}

/// A port that a descriptor feeds: each time that it can be read while nothing waits in the port, something arrives there.
pub(super) type Feed = (PortId, Arc<OwnedFd>);

/// The descriptors, which come and go. Whoever drives the body tries the lock, and looks again at its next wait.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) all: Mutex<Vec<Feed>>,
    /// How often they have changed.
    pub(super) changes: AtomicU64,
}

impl Inbox {
    /// With these ports, of which ids are indices.
    #[must_use]
    pub fn new(kinds: &[PortKind]) -> Self {
        // Only descriptors could be wrong, and there are none.
        let ports = Ports::new(kinds, Vec::new()).unwrap_or_default();
        Self {
            ports: Arc::new(ports),
            feeds: Arc::default(),
            place: None,
            feeder: None,
        }
    }

    /// The body takes turns with those of other processes, in this seat, on a thread of this name and rank.
    #[must_use]
    pub fn in_seat(mut self, seat: Seat, name: &str, rank: &Rank) -> Self {
        let place = Arc::new(Place::new(seat));
        let ports = Arc::clone(&self.ports);
        let feeder = Feeder::new(name, rank.above(), ports, Arc::clone(&place));
        self.feeder = Some(Arc::new(feeder));
        self.place = Some(place);
        self
    }

    /// From the body's next wait on, this feeds the port: each time that it can be read, or has come to its end, while nothing waits there. In a seat a copy of it does, once whenever the body waits for
    /// the port: for that there is a thread of the next higher rank then, or an ordinary one beside a reservation, until the body ends. Elsewhere the body waits itself, at its doorbell.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor for that, or in a seat no such thread; then nothing feeds the port.
    pub fn feed(
        &self,
        [port, doorbell]: [PortId; 2],
        with: &Arc<OwnedFd>,
    ) -> Result<(), FeedError> {
        if let Some(feeder) = &self.feeder {
            return feeder.feed(port, with);
        }
        // Here, where somebody can be told that there is none: at its wait it would end the body.
        let waited = self.ports.get(doorbell).ok_or(Errno::INVAL)?;
        let armed = waited.permits.arm();
        armed.map_err(|why| FeedError::of(&why))?;
        self.changes_feed(port, Some((port, Arc::clone(with))));
        Ok(())
    }

    /// Nothing feeds it any more, from the body's next wait on, or in a seat from now on.
    pub fn end_feed(&self, port: PortId) {
        match &self.feeder {
            Some(feeder) => feeder.end_feed(port),
            None => self.changes_feed(port, None),
        }
    }

    fn changes_feed(&self, port: PortId, to: Option<Feed>) {
        let all = self.feeds.all.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        all.retain(|(fed, _)| *fed != port);
        all.extend(to);
        drop(all);
        self.feeds.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Puts an arrival of now; `false` if there is no room, or no such port. Takes no lock and never waits.
    pub fn put(&self, port: PortId, payload: [u64; 2]) -> bool {
        let at = clock::now();
        let has_room = self.ports.put(port, Arrival { at, payload }) == Some(true);
        if has_room {
            self.call(port);
        }
        has_room
    }

    /// After it was put: who is called finds what has arrived.
    fn call(&self, port: PortId) {
        if let Some(place) = &self.place {
            place.call(&self.ports, port);
        }
    }

    /// The same, where the oldest that wait make room for it: how many were dropped for that, or itself where all that wait are being put or taken just now.
    pub fn put_newest(&self, port: PortId, payload: [u64; 2]) -> u64 {
        let at = clock::now();
        let dropped = self.ports.put_newest(port, Arrival { at, payload });
        self.call(port);
        dropped.unwrap_or(1)
    }

    /// The body's waits end, and so does whoever drives it.
    pub fn close(&self) {
        self.ports.close();
        self.leave();
    }

    /// What was put last ends the body, which waits for no turn among other processes to do so.
    pub fn leave(&self) {
        if let Some(place) = &self.place {
            place.leave();
        }
    }
}
