//! The clients of one [QoS module](laxity_model::nif::qos), which report to it from whatever threads: their driver's when packets arrive, and those of whoever takes them.
//!
//! Nobody waits for anybody: how a client stands are two words that it writes, and whoever reports asks the module about all of them as they are then. If somebody else reports meanwhile, he asks again, so that the last
//! word is of what all have reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_model::Instant;
use laxity_model::nif::qos::{Module, Moment, Raise, Reported, Standing, Terms};

/// So many clients may be in a group.
pub const MOST: usize = 32;

/// A client's place in its group, which it reports from.
pub struct Seat {
    group: Arc<Group>,
    who: usize,
}

struct Group {
    module: Box<dyn Module>,
    places: Box<[Place]>,
    /// How many reports there were.
    reports: AtomicU64,
}

struct Place {
    terms: Terms,
    /// Packets that are waiting or at work.
    packets: AtomicU32,
    /// The logical arrival of the first, in nanoseconds.
    logical: AtomicU64,
}

/// A group of clients, of which one module says who is how urgent: the seat of each, in order. Whoever is in a group serves it on: a seat is nobody else's afterwards.
///
/// # Panics
///
/// There are more than [`MOST`].
#[must_use]
pub fn group(module: impl Module + 'static, all: &[Terms]) -> Vec<Seat> {
    assert!(all.len() <= MOST, "{} clients are too many", all.len());
    let places = all.iter().map(|terms| Place {
        terms: *terms,
        packets: AtomicU32::new(0),
        logical: AtomicU64::new(0),
    });
    let group = Arc::new(Group {
        module: Box::new(module),
        places: places.collect(),
        reports: AtomicU64::new(0),
    });
    let seats = (0..all.len()).map(|who| Seat {
        group: Arc::clone(&group),
        who,
    });
    seats.collect()
}

impl Seat {
    /// Another handle on the same, for whoever takes the packets.
    pub(super) fn again(&self) -> Self {
        Self {
            group: Arc::clone(&self.group),
            who: self.who,
        }
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.place().terms
    }

    fn place(&self) -> &Place {
        &self.group.places[self.who]
    }

    /// One more packet has come; to be said before it can be taken. Of the first, whoever takes it has the last word.
    pub(super) fn arrived(&self, logical: Instant, now: Instant, raise: &mut Raise<'_>) {
        let place = self.place();
        if place.packets.fetch_add(1, Ordering::SeqCst) == 0 {
            place.logical.store(logical.as_nanos(), Ordering::SeqCst);
        }
        self.report((Moment::Arrival, logical), now, raise);
    }

    /// One more has come, and now so many wait: of a client whose packets nobody says when he is done with.
    pub(super) fn arrived_as(
        &self,
        number: u32,
        logical: Instant,
        now: Instant,
        raise: &mut Raise<'_>,
    ) {
        self.place().packets.store(number - 1, Ordering::SeqCst);
        self.arrived(logical, now, raise);
    }

    /// A packet is taken.
    pub(super) fn taken(&self, logical: Instant, now: Instant, raise: &mut Raise<'_>) {
        let first = &self.place().logical;
        first.store(logical.as_nanos(), Ordering::SeqCst);
        self.report((Moment::Taken, logical), now, raise);
    }

    /// A packet is done.
    pub(super) fn done(&self) {
        self.place().packets.fetch_sub(1, Ordering::SeqCst);
    }

    /// Of a packet with this logical arrival.
    fn report(&self, (moment, logical): (Moment, Instant), now: Instant, raise: &mut Raise<'_>) {
        let group = &*self.group;
        let mut reports = group.reports.fetch_add(1, Ordering::SeqCst) + 1;
        loop {
            let own = self.place().standing(now);
            let mut all = [own; MOST];
            for (standing, place) in all.iter_mut().zip(&group.places) {
                *standing = place.standing(now);
            }
            // Where the others were done with meanwhile it is the first.
            if all[self.who].packets <= 1 {
                all[self.who] = Standing::of(self.terms(), 1, logical, now);
            }
            let reported = Reported {
                all: &all[..group.places.len()],
                who: self.who,
                moment,
                now,
            };
            group.module.decide(&reported, raise);
            let since = group.reports.load(Ordering::SeqCst);
            if since == reports {
                return;
            }
            reports = since;
        }
    }
}

impl Place {
    fn standing(&self, now: Instant) -> Standing {
        let logical = Instant::from_nanos(self.logical.load(Ordering::SeqCst));
        let packets = self.packets.load(Ordering::SeqCst);
        Standing::of(&self.terms, packets, logical, now)
    }
}
