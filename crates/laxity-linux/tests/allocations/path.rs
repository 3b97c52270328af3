//! A channel over three hosts, with memory of its own for all that it carries.

use std::num::NonZeroU32;

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::handler::{self, Costs, Late, Looks};
use laxity_model::channels::signalling::Label;
use laxity_model::channels::source::{self, Excess};
use laxity_model::nif::urgency::Stated;
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Body, Data, Frame, LONGEST, check, checked};
use laxity_net::channels::path::{
    Effect, Ends, FarEnd, Granted, Handed, Lane, Limits, Next, Offer, Pace, Queue, Relay, WayOut,
};

const LABEL: Label = Label {
    index: 0,
    generation: 0,
};
const HELD: Early = Early::Held {
    horizon: Span::ZERO,
};
const DELAY: Span = Span::from_micros(500);

/// The bytes of a message, of which not all may count.
struct Bytes(Box<[u8]>, usize);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

pub(crate) struct Line {
    near: WayOut<Bytes>,
    middle: WayOut<Bytes>,
    far: FarEnd,
    /// Memory of messages that nobody has.
    free: Vec<Bytes>,
    delivered: u64,
    demoted: u64,
}

const fn nonzero(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not 0")
}

fn queue(stated: Stated, excess: Excess) -> Queue {
    Queue {
        source: source::Limits {
            stated,
            packets: nonzero(3),
            room: nonzero(4),
            excess,
        },
        handler: handler::Limits {
            packet_bytes: nonzero(1_000),
            packets: nonzero(3),
            room: nonzero(20),
            looks: Looks::After(nonzero(2)),
            early: HELD,
            late: Late::Deliver,
            costs: Costs::default(),
        },
        largest: 6_000,
    }
}

impl Line {
    pub(crate) fn new() -> Self {
        let traffic = Traffic::new(3_000, (1, Span::from_millis(1)), 2).expect("traffic");
        let link = Limits {
            channels: 1,
            packets: 40,
            reach: 1,
            early: HELD,
            by: By::Deadline,
            rate: 0,
            overhead: 0,
        };
        let hop = Granted {
            next: LABEL,
            delay: DELAY,
            late: Late::Deliver,
        };
        let (mut near, mut middle) = (WayOut::new(link), WayOut::new(link));
        let stated = traffic.stated(DELAY).expect("traffic");
        let real_time = queue(stated, Excess::Demote);
        let best_effort = queue(Stated::ANYTHING, Excess::DropNewest);
        let lanes = [Some(real_time), Some(best_effort)];
        let pace = Pace::new(&traffic, nonzero(3), Span::ZERO);
        let relay = Relay::new(nonzero(1_000), [20, 20], DELAY, pace);
        assert_eq!(near.begin(hop, lanes), Ok(0));
        assert_eq!(middle.pass(hop, relay), Ok(0));
        let far = FarEnd::new(Ends {
            traffic,
            packet_bytes: nonzero(1_000),
            largest: nonzero(6_000),
            buffers: [2, 2],
            delay: DELAY,
            earliest: DELAY,
            unseen: Span::ZERO,
            host: 2,
            late: Late::Deliver,
            patience: Span::ZERO,
        });
        Self {
            near,
            middle,
            far,
            free: (0..60).map(|_| Bytes(vec![7; 6_000].into(), 0)).collect(),
            delivered: 0,
            demoted: 0,
        }
    }

    /// In a millisecond of their own four messages are offered, of which two are too many, and all goes on that can; each 16th frame is lost.
    pub(crate) fn carries(&mut self, round: u64) {
        let begins = Instant::ZERO + Span::from_millis(round);
        for number in 0..4 {
            let mut bytes = self.free.pop().expect("all come back");
            bytes.1 = [0, 900, 2_500, 6_000][((round + number) % 4) as usize];
            let free = &mut self.free;
            match self
                .near
                .offer(0, begins, bytes, |effect| back(free, effect))
            {
                Offer::Waits => {}
                Offer::Demoted => self.demoted += 1,
                Offer::Blocked(bytes, _) | Offer::Dropped(bytes) | Offer::TooLarge(bytes) => {
                    free.push(bytes);
                }
            }
        }
        for step in 0..4 {
            self.moves(begins + Span::from_micros(step * 250), round);
        }
    }

    fn moves(&mut self, now: Instant, round: u64) {
        let mut bytes = [0; LONGEST];
        let free = &mut self.free;
        self.near.run(0, now, |effect| back(free, effect));
        while let Some(length) = leaves(&mut self.near, now, &mut bytes, free) {
            self.near.run(0, now, |effect| back(free, effect));
            let data = parsed(&bytes[..length]);
            if !(round + u64::from(data.part)).is_multiple_of(16) {
                self.middle.forward(0, now, now, &data);
            }
        }
        while let Some(length) = leaves(&mut self.middle, now, &mut bytes, free) {
            self.far.arrived(now, now, &parsed(&bytes[..length]), drop);
            while let Some(message) = self.far.take() {
                assert!(self.far.bytes(&message).iter().all(|byte| *byte == 7));
                self.far.give_back(message);
                self.delivered += 1;
            }
        }
        self.far.expire(now, drop);
    }

    /// Messages that were delivered, demoted, and lost.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let lost = Lane::ALL.map(|lane| self.far.counts(lane).1.lost());
        [self.delivered, self.demoted, lost.iter().sum()]
    }
}

fn back(free: &mut Vec<Bytes>, effect: Effect<Bytes>) {
    if let Effect::Back(bytes) = effect {
        free.push(bytes);
    }
}

/// The next frame, and how long it is.
fn leaves(
    way_out: &mut WayOut<Bytes>,
    now: Instant,
    out: &mut [u8],
    free: &mut Vec<Bytes>,
) -> Option<usize> {
    let mut length = None;
    let next = way_out.take(
        now,
        |data| {
            length = checked(&Body::Data(*data), out).ok();
            Handed::Taken
        },
        |effect| back(free, effect),
    );
    assert!(!matches!(next, Next::NoRoom));
    way_out.sent(now, |effect| back(free, effect));
    length
}

fn parsed(bytes: &[u8]) -> Data<'_> {
    let frame = Frame::of_datagram(bytes).expect("a frame");
    match check(&frame) {
        Ok(Body::Data(data)) => data,
        other => panic!("{other:?}"),
    }
}
