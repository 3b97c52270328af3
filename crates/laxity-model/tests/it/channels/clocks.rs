//! Two clocks against the truth: whatever heartbeats take, the offset is within what is said, and so is how late a message is.

use laxity_model::channels::clocks::{
    Carried, Crossing, Echo, Logical, Place, Relation, Seen, Stamp, Timeliness,
};
use laxity_model::{Instant, Span};
use proptest::prelude::*;

const BILLION: i128 = 1_000_000_000;

/// A clock of which the truth is known: in nanoseconds of true time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    at: i128,
    says: i128,
    ppb: i128,
}

impl Clock {
    fn says(self, now: i128) -> Instant {
        let passed = now - self.at;
        let says = self.says + passed + (passed * self.ppb).div_euclid(BILLION);
        Instant::from_nanos(u64::try_from(says).expect("no clock is before its epoch"))
    }

    /// It goes otherwise from now on.
    fn turns(&mut self, now: i128, step: i128, ppb: i128) {
        let says = i128::from(self.says(now).as_nanos()) + step;
        *self = Self { at: now, says, ppb };
    }
}

/// Two hosts that send heartbeats to each other.
struct Pair {
    now: i128,
    clocks: [Clock; 2],
    relations: [Relation; 2],
    /// What the last heartbeat that came to each said of when it left, and when it came.
    stamped: [Option<(Instant, Instant)>; 2],
}

impl Pair {
    fn new(epochs: [u64; 2], ppb: [i32; 2]) -> Self {
        let clock = |epoch: u64, ppb: i32| Clock {
            at: 0,
            says: epoch.into(),
            ppb: ppb.into(),
        };
        Self {
            now: 0,
            clocks: [clock(epochs[0], ppb[0]), clock(epochs[1], ppb[1])],
            relations: [Relation::default(); 2],
            stamped: [None; 2],
        }
    }

    fn clock(&self, host: usize) -> Instant {
        self.clocks[host].says(self.now)
    }

    /// A heartbeat leaves a host now, and takes so long.
    fn beat(&mut self, from: usize, takes: u64) -> Seen {
        let sent = self.clock(from);
        let echo = self.stamped[from].map(|(left, came)| Echo {
            sent: left,
            held: sent.saturating_since(came),
        });
        self.now += i128::from(takes);
        let to = 1 - from;
        let came = self.clock(to);
        self.stamped[to] = Some((sent, came));
        self.relations[to].exchanged(Stamp { sent, echo }, came)
    }

    fn truth(&self, host: usize) -> i128 {
        i128::from(self.clock(1 - host).as_nanos()) - i128::from(self.clock(host).as_nanos())
    }

    /// The truth is in what each says, to a nanosecond of rounding.
    fn holds(&self) -> bool {
        (0..2).all(|host| {
            let offset = self.relations[host].offset(self.clock(host));
            let truth = self.truth(host);
            offset.is_none_or(|offset| (-1..=1).any(|off| offset.holds(truth + off)))
        })
    }
}

/// From when one left to when the next does, and what it takes, in nanoseconds.
fn beats() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let takes = prop_oneof![
        3 => 20_000..200_000_u64,
        1 => 200_000..20_000_000_u64,
    ];
    prop::collection::vec((0..100_000_000_u64, takes), 1..200)
}

proptest! {
    #[test]
    fn the_truth_is_within_the_error(
        epochs in prop::array::uniform2(0..1_u64 << 60),
        ppb in prop::array::uniform2(-99_999..99_999),
        beats in beats(),
    ) {
        let mut pair = Pair::new(epochs, ppb);
        for (number, (waits, takes)) in beats.into_iter().enumerate() {
            pair.now += i128::from(waits);
            prop_assert!(pair.holds());
            let seen = pair.beat(number % 2, takes);
            prop_assert_ne!(seen, Seen::Stepped);
            prop_assert!(pair.holds());
        }
    }

    /// The rates change all the time, within what they may.
    #[test]
    fn the_truth_is_within_the_error_where_rates_wander(
        beats in beats(),
        rates in prop::collection::vec(-99_999..99_999_i128, 200),
    ) {
        let mut pair = Pair::new([1 << 40, 1 << 50], [0, 0]);
        for (number, ((waits, takes), ppb)) in beats.into_iter().zip(rates).enumerate() {
            let now = pair.now;
            pair.clocks[number / 2 % 2].turns(now, 0, ppb);
            pair.now += i128::from(waits);
            pair.beat(number % 2, takes);
            prop_assert!(pair.holds());
        }
        prop_assert_eq!(pair.relations.map(|relation| relation.steps()), [0, 0]);
    }

    /// A clock is set by an hour, or a minute, or a second: after one more round trip the truth is within the error again.
    #[test]
    fn a_step_is_noticed_with_the_next_round_trip(
        host in 0..2_usize,
        step in prop_oneof![1_000_000_000..4_000_000_000_000_i128, -4_000_000_000_000..-1_000_000_000_i128],
        before in prop::collection::vec((0..100_000_000_u64, 20_000..200_000_u64), 4..40),
        under_way in any::<bool>(),
    ) {
        let mut pair = Pair::new([1 << 50, 1 << 51], [50_000, -50_000]);
        for (number, (waits, takes)) in before.into_iter().enumerate() {
            pair.now += i128::from(waits);
            pair.beat(number % 2, takes);
        }
        if under_way {
            pair.beat(host, 50_000);
        }
        let now = pair.now;
        pair.clocks[host].turns(now, step, 0);
        for number in 0..6 {
            pair.now += 25_000_000;
            pair.beat(number % 2, 50_000);
        }
        prop_assert!(pair.holds());
        for relation in pair.relations {
            prop_assert!(relation.steps() >= 1);
        }
        for host in 0..2 {
            let offset = pair.relations[host].offset(pair.clock(host)).expect("they have spoken");
            prop_assert!(offset.error() < Span::from_micros(100), "{:?}", offset);
        }
    }

    /// Nobody can make this panic, or learn what is not there.
    #[test]
    fn whatever_a_heartbeat_says_is_no_more_than_nonsense(
        said in prop::collection::vec((any::<u64>(), any::<Option<(u64, u64)>>(), any::<u64>()), 0..20),
        carried in (any::<u64>(), any::<i64>(), any::<u64>()),
        at in any::<u64>(),
    ) {
        let mut relation = Relation::default();
        for (sent, echo, at) in said {
            let echo = echo.map(|(sent, held)| Echo { sent: Instant::from_nanos(sent), held: Span::from_nanos(held) });
            let stamp = Stamp { sent: Instant::from_nanos(sent), echo };
            relation.exchanged(stamp, Instant::from_nanos(at));
            prop_assert!(relation.drift().is_none_or(|drift| drift.least_ppb <= drift.most_ppb));
        }
        let (left, earliness, error) = carried;
        let carried = Carried { left: Instant::from_nanos(left), earliness, error: Span::from_nanos(error), late: None };
        let at = Instant::from_nanos(at);
        let link = Crossing { number: 0, propagation: Span::MAX, longest: Span::ZERO };
        let logical = carried.arrives(relation.offset(at), at, link);
        let carried = logical.leaves(Span::MAX, at, 1);
        prop_assert_eq!(carried.left, at);
    }
}

#[test]
fn the_error_is_half_the_shortest_round_trip_and_what_the_clocks_may_have_drifted() {
    let mut pair = Pair::new([1 << 40, 1 << 41], [0, 0]);
    for takes in [5_000_000, 40_000, 60_000, 9_000_000] {
        pair.beat(0, takes);
        pair.beat(1, takes);
    }
    let offset = pair.relations[0]
        .offset(pair.clock(0))
        .expect("it is known");
    let off = offset.nanos() - pair.truth(0);
    assert!((0..10).contains(&off), "{off}");
    // 18 ms after the round trip of 80 µs the clocks may have drifted by 3.6 µs, and by 16 ns in it.
    let error = offset.error().as_nanos();
    assert!((43_600..43_700).contains(&error), "{error}");
}

#[test]
fn the_mean_drift_is_known_after_half_a_minute() {
    let mut pair = Pair::new([1 << 40, 1 << 41], [60_000, -70_000]);
    for number in 0..1_000 {
        pair.now += 50_000_000;
        pair.beat(number % 2, 50_000);
        let drift = pair.relations[0].drift();
        let known = drift.is_some();
        assert!(known || pair.now < 33_000_000_000);
        assert!(!known || pair.now > 32_000_000_000);
    }
    let drift = pair.relations[0].drift().expect("50 s have passed");
    assert!(
        drift.least_ppb <= -129_990 && drift.most_ppb >= -130_010,
        "{drift:?}"
    );
    assert!(drift.most_ppb - drift.least_ppb < 20_000, "{drift:?}");
}

const DELAY: Span = Span::from_micros(500);
const LINK: Crossing = Crossing {
    number: 0,
    propagation: Span::from_micros(10),
    longest: Span::from_micros(150),
};

proptest! {
    /// Over one link: when the message is current there, and whether it is in time, is within what is said, and so is who was late.
    #[test]
    fn a_message_is_in_time_or_late_as_it_is_in_truth(
        ppb in prop::array::uniform2(-99_999..99_999),
        beats in beats(),
        // From the logical arrival to when it leaves, what the link takes, and what the far host takes.
        (left, takes, there) in (0..900_000_u64, 10_000..700_000_u64, 0..900_000_u64),
    ) {
        let mut pair = Pair::new([1 << 40, 1 << 50], ppb);
        for (number, (waits, takes)) in beats.into_iter().enumerate() {
            pair.now += i128::from(waits);
            pair.beat(number % 2, takes);
        }
        let began = pair.now;
        let logical = Logical::here(pair.clock(0));
        pair.now += i128::from(left);
        let carried = logical.leaves(DELAY, pair.clock(0), 0);
        pair.now += i128::from(takes);
        let at = pair.clock(1);
        let came = carried.arrives(pair.relations[1].offset(at), at, LINK);
        // The truth: one delay and the propagation behind the logical arrival at the first host, by its clock, which no clock's rate moves by more than a tenth of a microsecond here.
        let current = i128::from(DELAY.as_nanos() + LINK.propagation.as_nanos());
        let says = |nanos: i128| i128::from(pair.clocks[1].says(began + nanos).as_nanos());
        let upper = i128::from(came.at.as_nanos());
        let slack = 400;
        prop_assert!(upper + slack >= says(current), "{:?} {:?}", came, says(current));
        if came.error != Span::MAX {
            prop_assert!(upper - i128::from(came.error.as_nanos()) - slack <= says(current));
        }
        pair.now += i128::from(there);
        let delivered = came.delivered(DELAY, pair.clock(1), 1);
        let due = began + current + i128::from(DELAY.as_nanos());
        match delivered.timeliness {
            Timeliness::InTime => prop_assert!(pair.now <= due + slack),
            Timeliness::Late => prop_assert!(pair.now + slack >= due),
            Timeliness::WithinError => prop_assert!(delivered.laxity >= 0),
        }
        // Of each the time that it may take, since the message was there and current.
        let slack = slack as u64;
        let overran = match delivered.late {
            None => true,
            Some(Place::Host(0)) => left + slack > DELAY.as_nanos().min(360_000),
            Some(Place::Link(_)) => takes + slack > LINK.propagation.as_nanos(),
            Some(Place::Host(_)) => there + slack > DELAY.as_nanos(),
        };
        prop_assert!(overran, "{:?} {:?}", delivered, (left, takes, there));
        prop_assert_eq!(delivered.timeliness == Timeliness::Late && delivered.late.is_none(), false);
    }
}

/// Two clocks that have spoken, 80 µs a round trip.
fn spoken() -> Pair {
    let mut pair = Pair::new([1 << 40, 1 << 50], [0, 0]);
    (0..4).for_each(|number| {
        pair.beat(number % 2, 40_000);
    });
    pair
}

/// Who is said to be late, where the first host, the link and the second host take so many microseconds.
fn late(left: i128, takes: i128, there: i128) -> (Timeliness, Option<Place>) {
    let mut pair = spoken();
    let logical = Logical::here(pair.clock(0));
    pair.now += left * 1_000;
    let carried = logical.leaves(DELAY, pair.clock(0), 0);
    pair.now += takes * 1_000;
    let at = pair.clock(1);
    let came = carried.arrives(pair.relations[1].offset(at), at, LINK);
    pair.now += there * 1_000;
    let delivered = came.delivered(DELAY, pair.clock(1), 1);
    (delivered.timeliness, delivered.late)
}

#[test]
fn the_guilty_is_named() {
    assert_eq!(late(100, 40, 100), (Timeliness::InTime, None));
    // A switch's queue that no hop sees.
    assert_eq!(
        late(400, 2_000, 10),
        (Timeliness::Late, Some(Place::Link(0)))
    );
    assert_eq!(
        late(1_500, 40, 10),
        (Timeliness::Late, Some(Place::Host(0)))
    );
    assert_eq!(
        late(400, 40, 1_500),
        (Timeliness::Late, Some(Place::Host(1)))
    );
    // A millisecond and 10 µs are allowed in all: less than the error before that is not known.
    assert_eq!(late(400, 40, 560).0, Timeliness::WithinError);
    assert_eq!(late(400, 40, 1_100).0, Timeliness::Late);
}

#[test]
fn before_the_clocks_have_spoken_only_what_is_late_for_certain_is_known() {
    let logical = Logical::here(Instant::from_secs(5));
    let carried = logical.leaves(DELAY, Instant::from_secs(5), 0);
    let at = Instant::from_secs(900);
    let came = carried.arrives(None, at, LINK);
    assert_eq!(came.at, at + DELAY + LINK.propagation);
    let then = |micros| {
        came.delivered(DELAY, at + Span::from_micros(micros), 1)
            .timeliness
    };
    assert_eq!(then(1_000), Timeliness::WithinError);
    assert_eq!(then(1_011), Timeliness::Late);
}
