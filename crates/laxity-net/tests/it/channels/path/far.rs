//! The far end against one that keeps everything in lists, over frames that come in any order, twice, changed, or not at all.

use core::num::NonZeroU16;
use std::collections::{BTreeMap, BTreeSet};

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::{Place, Timeliness};
use laxity_model::channels::handler::Late;
use laxity_model::channels::reassembly::Why;
use laxity_model::channels::signalling::Label;
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Data, Left};
use laxity_net::channels::path::{Ends, Event, FarEnd, Lane, Lost, Received, Stored};
use proptest::prelude::*;

use super::world::nonzero;

const SIZE: usize = 3;
const MOST: u16 = 4;
/// Its last part is shorter than others.
const LARGEST: usize = 11;
const BUFFERS: usize = 2;
const DELAY: u64 = 5;
const EARLIEST: i64 = 20;
const UNSEEN: u64 = 4;
const PATIENCE: u64 = 7;

fn ends(late: Late) -> Ends {
    Ends {
        traffic: Traffic::new(6, (1, Span::from_nanos(10)), 1).expect("traffic"),
        packet_bytes: nonzero(SIZE as u32),
        largest: nonzero(LARGEST as u32),
        buffers: [BUFFERS as u32, 0],
        delay: Span::from_nanos(DELAY),
        earliest: Span::from_nanos(EARLIEST as u64),
        unseen: Span::from_nanos(UNSEEN),
        host: 2,
        late,
        patience: Span::from_nanos(PATIENCE),
    }
}

/// What a part of a message is.
fn payload(message: u64, part: u16, parts: u16) -> Vec<u8> {
    let length = if part + 1 == parts {
        message as usize % SIZE + 1
    } else {
        SIZE
    };
    let byte = |place| (message as u8).wrapping_mul(31) ^ (part as u8) << 4 ^ place as u8;
    (0..length).map(byte).collect()
}

/// The oracle: a message is the set of parts that have come of it.
#[derive(Default)]
struct Slow {
    open: BTreeMap<u64, Open>,
    /// Complete, and not taken; or taken and not given back.
    held: usize,
    /// Nothing below is waited for.
    next: u64,
    /// What became of each message: told here once.
    ends: BTreeMap<u64, String>,
    last: Option<u64>,
}

struct Open {
    parts: u16,
    came: BTreeSet<u16>,
    until: u64,
    logical: u64,
}

impl Slow {
    fn give_up(&mut self, message: u64, why: Why) {
        let open = self.open.remove(&message).expect("it is open");
        self.next = self.next.max(message + 1);
        let end = format!("{why:?} {}", open.came.len());
        assert_eq!(self.ends.insert(message, end), None);
    }

    /// Of all that is not waited for, and of which nothing is there, it is said.
    fn settle(&mut self) {
        for message in 0..self.next {
            if !self.open.contains_key(&message) {
                let end = self.ends.entry(message);
                end.or_insert_with(|| "missing".to_owned());
            }
        }
    }

    fn expire(&mut self, now: u64) {
        let due = self.open.iter().filter(|(_, open)| open.until <= now);
        let due: Vec<u64> = due.map(|(message, _)| *message).collect();
        for message in due {
            self.give_up(message, Why::Due);
        }
        self.settle();
    }

    /// What comes of a frame, and what is said of its message if that is complete: gap, laxity, timeliness, and who took too long.
    fn arrived(
        &mut self,
        (now, came): (u64, u64),
        data: &Data<'_>,
        late: Late,
    ) -> (Stored, Option<Verdict>) {
        let (message, part, parts) = (data.message, data.part, data.parts.get());
        let is_short = data.payload.len() < SIZE;
        let whole = usize::from(part) * SIZE + data.payload.len();
        let is_long = data.payload.len() > SIZE || parts > MOST || whole > LARGEST;
        if is_long || (is_short && part + 1 < parts) {
            return (Stored::Malformed, None);
        }
        if message < self.next {
            return (Stored::Stale, None);
        }
        // Two parts go together, and the next two are due 10 later.
        let pieces = u64::from((parts - 1) / 2 - part / 2);
        let early = data.earliness.min(EARLIEST);
        let logical = (came as i64 + early).max(0) as u64 + 10 * pieces;
        let patience = if late == Late::Discard { 0 } else { PATIENCE };
        let until = logical + DELAY + patience + 1;
        if !self.open.contains_key(&message) {
            if self.open.len() + self.held == BUFFERS {
                let oldest = self.open.keys().next().copied();
                let Some(oldest) = oldest.filter(|oldest| *oldest < message) else {
                    return (Stored::NoBuffer, None);
                };
                self.give_up(oldest, Why::NoBuffer);
            }
            let open = Open {
                parts,
                came: BTreeSet::new(),
                until,
                logical,
            };
            self.open.insert(message, open);
        }
        let stored = self.store(message, (part, parts), logical);
        if stored != Stored::Complete {
            self.settle();
            return (stored, None);
        }
        self.complete((now, came), data, late)
    }

    fn store(&mut self, message: u64, (part, parts): (u16, u16), logical: u64) -> Stored {
        let open = self.open.get_mut(&message).expect("it is open");
        if open.parts != parts {
            return Stored::Malformed;
        }
        if !open.came.insert(part) {
            return Stored::Doubled;
        }
        open.logical = open.logical.min(logical);
        if open.came.len() < usize::from(parts) {
            return Stored::Stored;
        }
        Stored::Complete
    }

    fn complete(
        &mut self,
        (now, came): (u64, u64),
        data: &Data<'_>,
        late: Late,
    ) -> (Stored, Option<Verdict>) {
        let message = data.message;
        let open = self.open.remove(&message).expect("it is open");
        let older: Vec<u64> = self.open.range(..message).map(|(one, _)| *one).collect();
        for one in older {
            self.give_up(one, Why::Overtaken);
        }
        self.next = message + 1;
        let laxity = (open.logical + DELAY) as i64 - now as i64;
        let timeliness = match laxity {
            ..0 => Timeliness::Late,
            0..4 => Timeliness::WithinError,
            4.. => Timeliness::InTime,
        };
        let is_late = timeliness == Timeliness::Late;
        // It was here for longer than it may be, and had not left the host before late.
        let is_here = data.earliness >= 0 && now > open.logical.max(came) + DELAY;
        let guilty = (is_late && is_here).then_some(Place::Host(2));
        let end = if is_late { "late" } else { "in time" };
        assert_eq!(self.ends.insert(message, end.to_owned()), None);
        self.settle();
        let gap = self.last.map_or(message, |last| message - last - 1);
        self.last = Some(message);
        let verdict = Verdict {
            gap,
            laxity,
            timeliness,
            guilty,
        };
        if is_late && late == Late::Discard {
            return (Stored::Discarded, Some(verdict));
        }
        self.held += 1;
        (Stored::Complete, Some(verdict))
    }
}

#[derive(PartialEq, Debug)]
struct Verdict {
    gap: u64,
    laxity: i64,
    timeliness: Timeliness,
    guilty: Option<Place>,
}

/// What the far end says of messages, in the oracle's words.
#[derive(Default)]
struct Said {
    ends: BTreeMap<u64, String>,
    guilty: BTreeMap<u64, Option<Place>>,
}

impl Said {
    fn event(&mut self, event: Event) {
        let (first, count, end) = match event {
            Event::Late {
                message, guilty, ..
            } => {
                self.guilty.insert(message, guilty);
                (message, 1, "late".to_owned())
            }
            Event::Lost {
                lane,
                first,
                count,
                why,
            } => {
                assert_eq!(lane, Lane::RealTime);
                let end = match why {
                    Lost::Missing => "missing".to_owned(),
                    Lost::Incomplete { came, why } => format!("{why:?} {came}"),
                };
                (first, count, end)
            }
        };
        for message in first..first + count {
            assert_eq!(self.ends.insert(message, end.clone()), None, "{message}");
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Of a message so far ahead of the least that may come: part, parts, earliness, how long ago it came, and whether its length is wrong.
    Frame(u64, u16, u16, i64, u64, bool),
    Take,
    GiveBack,
    Later(u64),
    Expire,
}

fn op() -> impl Strategy<Value = Op> {
    let times = (-9..30_i64, prop_oneof![Just(0_u64), 0..20_u64]);
    let frame = (0..5_u64, 0..5_u16, 1..6_u16, times, 0..20_u8);
    prop_oneof![
        12 => frame.prop_map(|(ahead, part, parts, (early, ago), wrong)| {
            Op::Frame(ahead, part.min(parts - 1), parts, early, ago, wrong == 0)
        }),
        2 => Just(Op::Take),
        2 => Just(Op::GiveBack),
        2 => (1..12_u64).prop_map(Op::Later),
        1 => Just(Op::Expire),
    ]
}

/// Of most messages all frames say that they have as many parts.
fn parts(message: u64, drawn: u16) -> u16 {
    if message.is_multiple_of(5) {
        drawn
    } else {
        message as u16 % MOST + 1
    }
}

/// One frame, to both. Answers the bytes of a message that waits from now on.
fn frame(
    (far, slow): (&mut FarEnd, &mut Slow),
    said: &mut Said,
    (now, came): (u64, u64),
    (data, late): (&Data<'_>, Late),
) -> Option<Verdict> {
    let (stored, verdict) = slow.arrived((now, came), data, late);
    let [at, from] = [now, came].map(Instant::from_nanos);
    let arrived = far.arrived(at, from, data, |event| said.event(event));
    assert_eq!(arrived, stored);
    if let Some(verdict) = &verdict {
        if verdict.timeliness == Timeliness::Late {
            assert_eq!(said.guilty[&data.message], verdict.guilty);
        } else {
            said.ends.insert(data.message, "in time".to_owned());
        }
    }
    verdict.filter(|_| stored == Stored::Complete)
}

proptest! {
    #[test]
    fn the_far_end_is_as_lists(
        ops in proptest::collection::vec(op(), 0..250),
        discards in any::<bool>(),
    ) {
        let late = if discards { Late::Discard } else { Late::Deliver };
        let (mut far, mut slow) = (FarEnd::new(ends(late)), Slow::default());
        let (mut said, mut now) = (Said::default(), 30);
        let (mut waits, mut taken) = (Vec::new(), Vec::<Received>::new());
        for op in ops {
            match op {
                Op::Frame(ahead, part, drawn, earliness, ago, is_wrong) => {
                    let message = slow.next.saturating_sub(1) + ahead;
                    let parts = parts(message, drawn);
                    let part = part.min(parts - 1);
                    let mut bytes = payload(message, part, parts);
                    if is_wrong {
                        bytes.resize(SIZE + 1, 0);
                    }
                    let data = Data {
                        channel: Label { index: 0, generation: 0 },
                        message,
                        part,
                        parts: NonZeroU16::new(parts).expect("not 0"),
                        earliness,
                        left: Left::UNKNOWN,
                        best_effort: false,
                        payload: &bytes,
                    };
                    let both = (&mut far, &mut slow);
                    if let Some(verdict) = frame(both, &mut said, (now, now - ago), (&data, late)) {
                        waits.push((message, parts, verdict));
                    }
                }
                Op::Take => {
                    let first = far.take();
                    prop_assert_eq!(first.is_some(), !waits.is_empty());
                    let Some(first) = first else { continue };
                    let (message, parts, verdict) = waits.remove(0);
                    prop_assert_eq!(first.message, message);
                    let delivered = first.delivered.expect("it is due");
                    let (gap, laxity) = (first.gap, delivered.laxity);
                    let timeliness = delivered.timeliness;
                    let guilty = delivered.late;
                    prop_assert_eq!(Verdict { gap, laxity, timeliness, guilty }, verdict);
                    let whole: Vec<u8> =
                        (0..parts).flat_map(|part| payload(message, part, parts)).collect();
                    prop_assert_eq!(far.bytes(&first), whole);
                    taken.push(first);
                }
                Op::GiveBack => {
                    if let Some(last) = taken.pop() {
                        far.give_back(last);
                        slow.held -= 1;
                    }
                }
                Op::Later(by) => now += by,
                Op::Expire => {
                    slow.expire(now);
                    far.expire(Instant::from_nanos(now), |event| said.event(event));
                }
            }
            prop_assert_eq!(&said.ends, &slow.ends);
            let until = slow.open.values().map(|open| open.until).min();
            prop_assert_eq!(far.expires(), until.map(Instant::from_nanos));
        }
    }
}

/// Who sends the greatest numbers makes nobody count to them.
#[test]
fn a_number_far_ahead_is_one_event() {
    let mut far = FarEnd::new(ends(Late::Deliver));
    let at = Instant::from_nanos(9);
    let mut events = Vec::new();
    for (message, stored) in [
        (u64::MAX - 1, Stored::Complete),
        (7, Stored::Stale),
        (u64::MAX, Stored::Malformed),
    ] {
        let data = Data {
            channel: Label {
                index: 0,
                generation: 0,
            },
            message,
            part: 0,
            parts: NonZeroU16::MIN,
            earliness: i64::MAX,
            left: Left::UNKNOWN,
            best_effort: false,
            payload: b"x",
        };
        assert_eq!(
            far.arrived(at, at, &data, |event| events.push(event)),
            stored
        );
    }
    let [
        Event::Lost {
            first: 0,
            count,
            why: Lost::Missing,
            ..
        },
    ] = events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(count, u64::MAX - 1);
    let (came, ended) = far.counts(Lane::RealTime);
    assert_eq!((came.disbelieved, ended.missing), (3, u64::MAX - 1));
}

/// With one host before it is known who took too long: that one, the link between, or this one.
#[test]
fn with_one_host_before_it_is_known_who_took_too_long() {
    for (earliness, ago, guilty) in [
        ([5, -20], 0, Place::Host(0)),
        ([0, 0], 0, Place::Link(0)),
        ([0, 0], 6, Place::Host(1)),
    ] {
        let mut far = FarEnd::new(Ends {
            host: 1,
            ..ends(Late::Deliver)
        });
        let mut events = Vec::new();
        // The second part is 10 behind the first one, which was current at once.
        for (part, came, now) in [(0, 100, 100), (1, 110 - ago, 110)] {
            let bytes = payload(0, part, 2);
            let data = Data {
                channel: Label {
                    index: 0,
                    generation: 0,
                },
                message: 0,
                part,
                parts: NonZeroU16::new(2).expect("not 0"),
                earliness: earliness[usize::from(part)],
                left: Left::UNKNOWN,
                best_effort: false,
                payload: &bytes,
            };
            let [now, came] = [now, came].map(Instant::from_nanos);
            far.arrived(now, came, &data, |event| events.push(event));
        }
        let [Event::Late { guilty: who, .. }] = events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(who, Some(guilty));
    }
}
