//! What signalling asks of a host, at random, against an oracle that keeps a list of what was granted and reckons all else from nothing.

use laxity_model::Span;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Host, Traffic};
use laxity_model::channels::asked::{Asked, Name, Scarce, Shortage};
use laxity_model::channels::signalling::{Admits, ChannelId, Delays, Hold, LinkId, Place};
use proptest::prelude::*;

use super::channel;
use super::oracle::{BUFFERS, Granted, Oracle, buffers, host, way};

/// What a test does. Numbers are taken modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Op {
    Reserve {
        channel: u64,
        place: usize,
        bytes: u32,
        interval: u64,
        burst: u32,
        before: u64,
    },
    Relax(usize, u64, u64),
    Release(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![1..1_500_u32, 1_500..40_000_u32];
    let reserve = (
        0..9_u64,
        0..6_usize,
        bytes,
        2_000..60_000_u64,
        1..4_u32,
        0..4_000_u64,
    );
    let reserve =
        reserve.prop_map(
            |(channel, place, bytes, interval, burst, before)| Op::Reserve {
                channel,
                place,
                bytes,
                interval,
                burst,
                before,
            },
        );
    let more = prop_oneof![Just(0), 1..20_000_u64, 20_000..2_000_000_u64];
    prop_oneof![
        5 => reserve,
        2 => (any::<usize>(), more.clone(), more).prop_map(|(which, before, own)| Op::Relax(which, before, own)),
        2 => any::<usize>().prop_map(Op::Release),
    ]
}

/// Beginning here, passing and ending, over either link.
fn place(number: usize) -> Place {
    let from = [None, Some(LinkId(0)), Some(LinkId(1))][number % 3];
    let to = match number {
        0 | 4 => Some(LinkId(0)),
        1 | 3 => Some(LinkId(1)),
        _ => None,
    };
    Place { from, to }
}

/// What is offered instead is granted, and no more than that.
fn would_fit(
    host: &Host<Dedicated>,
    (hold, place, before): (Hold, Place, Span),
    asked: &Asked,
    short: Shortage,
) {
    let one = Span::from_nanos(1);
    let grants = |traffic| {
        let asked = Asked {
            traffic,
            ..asked.clone()
        };
        host.clone().reserve(hold, place, &asked, before).is_ok()
    };
    if let Some(interval) = short.fits.interval {
        assert!(
            grants(asked.traffic.with_interval(interval).unwrap()),
            "{short}"
        );
        assert!(
            !grants(asked.traffic.with_interval(interval - one).unwrap()),
            "{short}"
        );
    }
    if let Some(size) = short.fits.size {
        let larger = size.checked_add(1).unwrap();
        assert!(grants(asked.traffic.with_largest(size)), "{short}");
        assert!(!grants(asked.traffic.with_largest(larger)), "{short}");
    }
}

/// How much of what was offered is taken: all, or as much as there are buffers for, here first.
fn is_as_much_as_fits(oracle: &Oracle, one: &Granted, (offered, took): (Delays, Delays)) {
    let had = one.delays;
    let fits = |delays| {
        let needed = buffers(one.place, &one.asked.traffic, delays);
        let mut all = oracle.clone();
        all.granted.retain(|other| other.hold != one.hold);
        all.taken(Some((one.hold.channel, needed))) <= BUFFERS
    };
    let nano = Span::from_nanos(1);
    assert!(had.before <= took.before && took.before <= offered.before);
    assert!(had.own <= took.own && took.own <= offered.own);
    if took.own < offered.own {
        assert_eq!(took.before, had.before);
        assert!(!fits(Delays {
            own: took.own + nano,
            ..took
        }));
    } else if took.before < offered.before {
        assert!(!fits(Delays {
            before: took.before + nano,
            ..took
        }));
    }
}

/// Of what was granted something is told wrong, one at a time.
fn is_told_from(host: &Host<Dedicated>, oracle: &Oracle, which: usize) {
    let nano = Span::from_nanos(1);
    let count = oracle.granted.len();
    if count == 0 {
        return;
    }
    let mut wrong = vec![oracle.granted.clone(); 8];
    let at = which % count;
    wrong[0][at].delays.own += nano;
    wrong[1][at].delays.before += nano;
    wrong[2][at].hold.version += 100;
    wrong[3][at].hold.channel.generation += 1;
    wrong[4][at].place.to = Some(LinkId(7));
    let traffic = &mut wrong[5][at].asked.traffic;
    *traffic = traffic.with_largest(traffic.largest().checked_add(1).unwrap());
    wrong[6].remove(at);
    let doubled = wrong[7][at].clone();
    wrong[7].push(doubled);
    // One instead of another.
    if count > 1 {
        let mut instead = oracle.granted.clone();
        instead[(at + 1) % count] = instead[at].clone();
        wrong.push(instead);
    }
    for (number, granted) in wrong.into_iter().enumerate() {
        let other = Oracle { granted };
        assert!(!host.agrees(other.reserved().into_iter()), "{number}");
    }
}

/// A host and its oracle do the same.
struct Both {
    host: Host<Dedicated>,
    oracle: Oracle,
    versions: u32,
}

impl Both {
    fn reserve(&mut self, channel: ChannelId, place: Place, traffic: Traffic, before: Span) {
        self.versions += 1;
        let version = self.versions;
        let hold = Hold { channel, version };
        let asked = Asked {
            name: Name::new("a/channel").unwrap(),
            traffic,
            discard: false,
        };
        let expected = self.oracle.reserve(hold, place, &traffic, before);
        match (self.host.reserve(hold, place, &asked, before), expected) {
            (Ok(own), Ok(stages)) => {
                assert_eq!(own, stages.iter().map(|one| one.1).sum());
                self.oracle.granted.push(Granted {
                    hold,
                    place,
                    asked,
                    delays: Delays { before, own },
                    stages,
                });
            }
            (Err(short), Err((of, lacks))) => {
                assert_eq!(short.of, of);
                assert!(lacks.is_none_or(|lacks| lacks == short.lacks), "{short}");
                // Where only another version's delay is too short, this one would do for both.
                let is_version = lacks.is_some() && of != Scarce::Buffers;
                let least = |stage| self.oracle.least(stage, channel, &traffic);
                let least: Option<Span> = way(place).into_iter().map(least).sum();
                assert_eq!(short.fits.within, least.filter(|_| is_version));
                would_fit(&self.host, (hold, place, before), &asked, short);
            }
            (one, other) => panic!("{one:?}, and not {other:?}"),
        }
    }

    fn relax(&mut self, at: usize, before: u64, own: u64) {
        let one = &self.oracle.granted[at];
        let had = one.delays;
        let offered = Delays {
            before: had.before + Span::from_micros(before),
            own: had.own + Span::from_micros(own),
        };
        let took = self.host.relax(one.hold, offered);
        is_as_much_as_fits(&self.oracle, one, (offered, took));
        let held = self.host.held(one.hold.channel).iter();
        let mut held = held.filter(|held| held.version == one.hold.version);
        let held = held.next().expect("it is held");
        let more = one.stages.iter().zip(&held.stages);
        let more: Vec<Span> = more.map(|(had, has)| has.1 - had.1).collect();
        assert_eq!(more.iter().copied().sum::<Span>(), took.own - had.own);
        let (least, most) = (more.iter().min(), more.iter().max());
        assert!(*most.unwrap() - *least.unwrap() <= Span::from_nanos(1));
        let one = &mut self.oracle.granted[at];
        (one.delays, one.stages) = (took, held.stages.clone());
    }

    fn does(&mut self, op: Op) {
        let count = self.oracle.granted.len();
        match op {
            Op::Reserve {
                channel: number,
                place: at,
                bytes,
                interval,
                burst,
                before,
            } => {
                let traffic = Traffic::new(bytes, (1, Span::from_micros(interval)), burst).unwrap();
                let place = place(at);
                let before = place.from.map_or(Span::ZERO, |_| Span::from_micros(before));
                self.reserve(channel(number), place, traffic, before);
            }
            Op::Relax(which, before, own) if count > 0 => self.relax(which % count, before, own),
            Op::Release(which) if count > 0 => {
                let gone = self.oracle.granted.remove(which % count);
                self.host.release(gone.hold);
            }
            Op::Relax(..) | Op::Release(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::edf_support::cases(48), ..ProptestConfig::default() })]

    /// Whatever is reserved, relaxed and released, of however many versions: it is what the oracle has, all are in time, and the host tells that from anything else.
    #[test]
    fn a_host_has_what_was_granted_whatever_is_asked(ops in prop::collection::vec(op(), 1..40), which in any::<usize>()) {
        let mut both = Both { host: host(), oracle: Oracle::default(), versions: 0 };
        for op in ops {
            both.does(op);
            both.oracle.is(&both.host);
        }
        is_told_from(&both.host, &both.oracle, which);
        for one in std::mem::take(&mut both.oracle.granted) {
            both.host.release(one.hold);
        }
        both.oracle.is(&both.host);
    }
}
