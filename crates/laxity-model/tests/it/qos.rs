//! The mapping from application classes to upcalls: every number against what it is for, and every wrong input against its answer.

use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::program::upcalls::qos::{
    Buffers, Class, Cost, Limits, Mapping, Path, Release, Unmappable, map, provisioned,
};
use laxity_model::{Service, Span};
use proptest::prelude::*;

fn count(of: u32) -> NonZeroU32 {
    NonZeroU32::new(of).unwrap()
}

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// 10 µs for each PDU, and 10 ns for each byte of it.
const COST: Cost = Cost {
    each: Service::from_micros(10),
    byte_ps: 10_000,
};

fn path() -> Path {
    Path {
        pdu_bytes: count(1_000),
        header_bytes: 50,
        latency: ms(10),
        jitter: ms(1),
    }
}

fn video(frame_bytes: u32, every: Span, delay: Span) -> Class {
    Class::ContinuousMedia {
        frame_bytes: count(frame_bytes),
        every,
        delay,
    }
}

/// By hand: 20 PDUs of 1,000 bytes every 40 ms. One call a frame does with a delay of 5 · 40 + 10 ms. Where 100 ms are asked for, one call would have to come every 90 / 5 ms, two every 90 / 6, three every
/// 90 / 7: each more often than frames need. Four may come every 10 ms.
#[test]
fn a_video_is_mapped_as_by_hand() {
    let slow = map(
        &video(20_000, ms(40), ms(210)),
        &COST,
        &path(),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!((slow.batch, slow.period), (count(20), ms(40)));
    assert_eq!(slow.delay, Some(ms(210)));
    assert_eq!(slow.service, Service::from_micros(20));
    assert_eq!((slow.quantum, slow.unit_pdus), (count(10), count(20)));
    assert_eq!((slow.spacing, slow.bytes_per_second), (ms(2), 525_000));
    let buffers = Buffers {
        send: 40,
        link: 40,
        receive: 81,
    };
    assert_eq!(slow.buffers, buffers);
    assert_eq!((slow.release, slow.throughput()), (Release::Timer, 500_000));

    let soon = map(
        &video(20_000, ms(40), ms(100)),
        &COST,
        &path(),
        &Limits::default(),
    )
    .unwrap();
    assert_eq!((soon.batch, soon.period), (count(5), ms(10)));
    assert_eq!(soon.delay, Some(ms(90)));
}

fn no(class: &Class, cost: &Cost, limits: &Limits) -> Unmappable {
    map(class, cost, &path(), limits).unwrap_err()
}

fn requests(every: Span, response: Span) -> Class {
    Class::Transactions {
        bytes: count(100),
        every,
        response,
    }
}

/// Numbers that mean nothing, or contradict each other.
#[test]
fn what_means_nothing_is_told() {
    let limits = Limits::default();
    let zero = |class: &Class| matches!(no(class, &COST, &limits), Unmappable::Zero(_));
    assert!(zero(&video(1, Span::ZERO, ms(100))));
    assert!(zero(&requests(ms(10), Span::ZERO)));
    let free = Cost {
        each: Service::ZERO,
        byte_ps: 0,
    };
    assert_eq!(
        no(&video(1, ms(40), ms(100)), &free, &limits),
        Unmappable::Zero("the cost of a PDU")
    );
    let still = Limits {
        shortest: Span::ZERO,
        ..limits
    };
    assert_eq!(
        no(&video(1, ms(40), ms(100)), &COST, &still),
        Unmappable::Zero("the shortest period")
    );
    let crossed = Limits {
        shortest: ms(50),
        ..limits
    };
    assert!(matches!(
        no(&video(1, ms(40), ms(900)), &COST, &crossed),
        Unmappable::Limits { .. }
    ));
}

/// Where so many PDUs come too often, and one more in the longest period is faster than was asked for, it is faster.
#[test]
fn bulk_keeps_to_the_shortest_period() {
    let class = Class::Bulk {
        bytes_per_second: NonZeroU64::new(37_500).unwrap(),
    };
    let path = Path {
        pdu_bytes: count(1_000),
        header_bytes: 0,
        ..path()
    };
    let limits = Limits {
        shortest: ms(30),
        longest: ms(40),
        ..Limits::default()
    };
    let mapping = map(&class, &COST, &path, &limits).unwrap();
    assert_eq!((mapping.batch, mapping.period), (count(2), ms(40)));
}

/// Its PDUs are whole nanoseconds apart only where that is not too short: three PDUs every 10 ns more than 1 ms.
#[test]
fn no_period_is_rounded_to_less_than_the_shortest() {
    let shortest = ms(1) + Span::from_nanos(10);
    let limits = Limits {
        shortest,
        ..Limits::default()
    };
    let least = ms(10) + shortest * 5;
    let stream = map(&video(3_000, ms(40), least), &COST, &path(), &limits).unwrap();
    assert_eq!((stream.batch, stream.period), (count(3), shortest));
    assert_eq!(stream.delay, Some(least));
    // 3,000 bytes in just that.
    let class = Class::Bulk {
        bytes_per_second: NonZeroU64::new(2_999_970).unwrap(),
    };
    let limits = Limits {
        longest: shortest,
        ..limits
    };
    let bulk = map(&class, &COST, &path(), &limits).unwrap();
    assert_eq!((bulk.batch, bulk.period), (count(3), shortest));
}

/// What is asked for cannot be, and why.
#[test]
fn what_cannot_be_is_told() {
    let limits = Limits::default();
    let dear = Cost {
        each: Service::from_millis(1),
        byte_ps: 0,
    };
    assert!(matches!(
        no(&video(1, ms(40), ms(100)), &dear, &limits),
        Unmappable::PduTooDear { .. }
    ));
    assert_eq!(
        no(&video(20_000, ms(40), ms(9)), &COST, &limits),
        Unmappable::TooSoon {
            delay: ms(9),
            shortest: ms(1),
            least: ms(15),
        }
    );
    assert!(matches!(
        no(&requests(Span::from_micros(999), ms(1)), &COST, &limits),
        Unmappable::TooOften { .. }
    ));
    assert_eq!(
        no(&requests(ms(10), Span::from_micros(12)), &COST, &limits),
        Unmappable::TooMuch {
            needs: Service::from_micros(13),
            of: Span::from_micros(12),
        }
    );
    let bulk = |bytes_per_second| Class::Bulk {
        bytes_per_second: NonZeroU64::new(bytes_per_second).unwrap(),
    };
    let much = no(&bulk(100_000_000), &COST, &limits);
    assert!(much.to_string().contains("more than there is"), "{much}");
    assert!(matches!(
        no(&bulk(u64::MAX), &COST, &limits),
        Unmappable::TooLarge(_) | Unmappable::TooMuch { .. }
    ));
}

#[test]
fn a_tolerated_loss_leaves_the_largest_out() {
    let frames: Vec<u32> = (1..=1_000).rev().collect();
    for (loss_ppm, largest) in [
        (0, 1_000),
        (999, 1_000),
        (1_000, 999),
        (100_000, 900),
        (999_999, 1),
    ] {
        assert_eq!(
            provisioned(&frames, loss_ppm),
            Some(count(largest)),
            "{loss_ppm}"
        );
    }
    assert_eq!(provisioned(&frames, 1_000_000), None);
    assert_eq!(provisioned(&[], 0), None);
    assert_eq!(provisioned(&[0, 0], 0), None);
}

#[test]
fn a_cost_covers_its_samples_and_needs_two_sizes() {
    let micros = Service::from_micros;
    let line = Cost::of_samples(&[(0, micros(5)), (1_000, micros(15)), (2_000, micros(25))]);
    let expected = Cost {
        each: micros(5),
        byte_ps: 10_000,
    };
    assert_eq!(line, Ok(expected));
    let falls = Cost::of_samples(&[(10, micros(9)), (2_000, micros(2))]).unwrap();
    assert_eq!((falls.each, falls.byte_ps), (micros(9), 0));
    for samples in [
        &[][..],
        &[(10, micros(1))],
        &[(10, micros(1)), (10, micros(2))],
    ] {
        assert_eq!(Cost::of_samples(samples), Err(Unmappable::TooFewSizes));
    }
}

prop_compose! {
    fn anything()(
        bytes in 1..=u32::MAX, rate in 1..=u64::MAX, often in 1..=u32::MAX,
        spans in [any::<u64>(), any::<u64>(), any::<u64>()],
        pdu in 1..=u32::MAX, header in any::<u32>(), small in any::<bool>(),
        cost in [any::<u64>(), any::<u64>(), any::<u64>()],
        limits in [any::<u64>(), any::<u64>()], which in 0..4,
    ) -> (Class, Cost, Path, Limits) {
        // Half of them of sizes that occur.
        let [a, b, c] = spans.map(|span| Span::from_nanos(if small { span % 1_000_000_000 } else { span }));
        let bytes = count(if small { bytes % 100_000 + 1 } else { bytes });
        let class = match which {
            0 => Class::ContinuousMedia { frame_bytes: bytes, every: c, delay: a },
            1 => Class::Bulk { bytes_per_second: NonZeroU64::new(if small { rate % 10_000_000 + 1 } else { rate }).unwrap() },
            2 => Class::Transactions { bytes, every: a, response: c },
            _ => Class::Messages { bytes, per_second: count(if small { often % 10_000 + 1 } else { often }), delay: b },
        };
        let [each, byte_ps, quantum] = cost.map(|cost| if small { cost % 100_000 } else { cost });
        let cost = Cost { each: Service::from_nanos(each), byte_ps };
        let path = Path { pdu_bytes: count(if small { pdu % 9_000 + 1 } else { pdu }), header_bytes: header % 100, latency: c, jitter: c };
        let [shortest, longest] = limits.map(|limit| Span::from_nanos(if small { limit % 50_000_000 } else { limit }));
        let limits = Limits { quantum: Service::from_nanos(quantum), shortest, longest, ..Limits::default() };
        (class, cost, path, limits)
    }
}

prop_compose! {
    fn near_the_least()(
        bytes in 1..200_000_u32, every in 1..100_000_u64, shortest in 100..20_000_u64,
        more in 0..100_000_u64, latency in 0..50_000_u64,
    ) -> (u32, Span, Limits, Span, Span) {
        let [every, shortest, more, latency] = [every, shortest, more, latency].map(Span::from_micros);
        (bytes, every, Limits { shortest, longest: shortest + more, ..Limits::default() }, more, latency)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is asked for, there is an answer; and a yes is one: it keeps to the limits, moves what it is to move, and takes no longer than it may.
    #[test]
    fn every_answer_keeps_to_what_was_asked((class, cost, path, limits) in anything()) {
        let Ok(mapping) = map(&class, &cost, &path, &limits) else {
            return Ok(());
        };
        prop_assert!(mapping.quantum <= mapping.batch);
        prop_assert!(mapping.service * u64::from(mapping.quantum.get()) <= limits.quantum);
        prop_assert!(mapping.pdu_bytes <= path.pdu_bytes);
        prop_assert!(mapping.deadline <= mapping.period);
        let spaced = mapping.spacing.as_nanos() * u64::from(mapping.batch.get());
        prop_assert!(spaced <= mapping.period.as_nanos());
        prop_assert!(mapping.period >= limits.shortest);
        let is_asked = matches!(class, Class::Transactions { .. });
        prop_assert!(is_asked || mapping.period <= limits.longest);
        // In a second, in PDUs, exactly: more than is asked for.
        let moves = u128::from(mapping.batch.get()) * 1_000_000_000;
        let in_time = |pdus: u128, every: Span| moves * u128::from(every.as_nanos()) >= pdus * 1_000_000_000 * u128::from(mapping.period.as_nanos());
        let pdus = u128::from(mapping.unit_pdus.get());
        let whole = |bytes: NonZeroU32| pdus * u128::from(mapping.pdu_bytes.get()) >= u128::from(bytes.get());
        match class {
            Class::ContinuousMedia { frame_bytes, every, delay } => {
                prop_assert!(whole(frame_bytes) && in_time(pdus, every));
                prop_assert!(mapping.delay.unwrap() <= delay);
            }
            Class::Messages { bytes, per_second, delay } => {
                let every = Span::from_nanos(1_000_000_000 / u64::from(per_second.get()));
                prop_assert!(whole(bytes) && in_time(pdus, every));
                prop_assert!(mapping.delay.unwrap() <= delay);
            }
            Class::Transactions { bytes, every, response } => {
                prop_assert!(whole(bytes) && mapping.period == every);
                prop_assert!(mapping.delay.unwrap() <= response);
            }
            Class::Bulk { bytes_per_second } => {
                let bytes = moves * u128::from(mapping.pdu_bytes.get());
                prop_assert!(bytes >= u128::from(bytes_per_second.get()) * u128::from(mapping.period.as_nanos()));
            }
        }
    }

    /// A delay that is refused is told with one that is not, but for what it takes of the processor.
    #[test]
    fn the_least_delay_that_is_told_is_not_too_soon((bytes, every, limits, _, latency) in near_the_least()) {
        let path = Path { latency, ..path() };
        let asked = |delay| map(&video(bytes, every, delay), &COST, &path, &limits);
        let Err(Unmappable::TooSoon { least, .. }) = asked(Span::ZERO) else {
            panic!("nothing takes no time");
        };
        let is_too_soon = |delay| matches!(asked(delay), Err(Unmappable::TooSoon { .. }));
        prop_assert!(!is_too_soon(least));
        prop_assert!(is_too_soon(least.saturating_sub(Span::from_nanos(1))));
    }
}

/// The most PDUs that wait at a receiver whose calls are released so long after the sender's, which fills each call. `choose` says for each step of a PDU of that call how much later than possible it is, up to so much, and (of none) how much
/// later a call of the receiver begins; it ends as late as it may.
fn most_waiting(
    mapping: &Mapping,
    path: &Path,
    phase: u64,
    calls: u64,
    mut choose: impl FnMut(Option<u64>, u64) -> u64,
) -> u64 {
    let [period, spacing] = [mapping.period, mapping.spacing].map(Span::as_nanos);
    let [latency, jitter] = [path.latency, path.jitter].map(Span::as_nanos);
    let batch = u64::from(mapping.batch.get());
    let [mut handed, mut left, mut paced, mut last] = [0; 4];
    let mut arrivals = Vec::new();
    for call in (0..calls * batch).map(|pdu| pdu / batch) {
        handed = handed.max(call * period + choose(Some(call), period));
        // By when a link has sent it that keeps to the spacing; it may be faster, too.
        paced = paced.max(handed) + spacing;
        let soonest = handed.max(left);
        left = soonest + choose(Some(call), paced - soonest);
        last = last.max(left + latency - jitter + choose(Some(call), jitter));
        arrivals.push(last);
    }
    let (mut done, mut most) = (0, 0);
    for call in 0..last / period + 2 {
        let release = phase + call * period;
        let begins = release + choose(None, period - 1);
        let by = |at| arrivals.partition_point(|arrived| *arrived <= at) as u64;
        most = most.max(by(release + period - 1) - done);
        done += batch.min(by(begins) - done);
    }
    most
}

fn bulk_over(jitter: Span, batch: u64) -> (Mapping, Path) {
    let path = Path {
        latency: ms(100),
        jitter,
        ..path()
    };
    // Of 1 ms each.
    let class = Class::Bulk {
        bytes_per_second: NonZeroU64::new(1_000_000).unwrap(),
    };
    let limits = Limits {
        longest: ms(batch),
        ..Limits::default()
    };
    let mapping = map(&class, &COST, &path, &limits).unwrap();
    assert_eq!(u64::from(mapping.batch.get()), batch);
    (mapping, path)
}

/// Late at first, and then as soon as can be: in the worst phase no more waits than there is room for, and all but a call's PDUs of that.
#[test]
fn a_receivers_buffer_is_what_the_worst_jitter_fills() {
    for (batch, jitter_us) in [
        (1, 0),
        (10, 0),
        (10, 1),
        (10, 4_000),
        (10, 10_000),
        (7, 25_500),
        (20, 90_000),
    ] {
        let (mapping, path) = bulk_over(Span::from_micros(jitter_us), batch);
        let phases = (0..batch * 4).map(|quarter| quarter * 250_000 + 1);
        let most = phases.map(|phase| {
            let turn = |call: Option<u64>, most: u64| match call {
                Some(call) if call < 30 => most,
                _ => 0,
            };
            most_waiting(&mapping, &path, phase, 60, turn)
        });
        let (most, room) = (most.max().unwrap(), mapping.buffers.receive);
        assert!(
            most <= room && most + 1 >= room,
            "{most} of {room}: {batch} {jitter_us}"
        );
    }
}

proptest! {
    /// Whatever is late, within what is possible.
    #[test]
    fn a_receivers_buffer_suffices(
        batch in 1..12_u64, jitter_us in 0..40_000_u64, phase in 0..12_000_000_u64, seed in 1..u64::MAX,
    ) {
        let (mapping, path) = bulk_over(Span::from_micros(jitter_us), batch);
        let mut dice = seed;
        let choose = |_: Option<u64>, most: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            match dice % 4 {
                0 => dice % (most + 1),
                1 => 0,
                _ => most,
            }
        };
        let most = most_waiting(&mapping, &path, phase, 60, choose);
        prop_assert!(most <= mapping.buffers.receive, "{most} of {}", mapping.buffers.receive);
    }
}
