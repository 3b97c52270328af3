//! What an application of each class needs, mapped by costs that are measured here, is admitted together and done on this machine.

#[path = "together/halts.rs"]
mod halts;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::mpsc::{self, Receiver};

use laxity::calibrate::pdu_cost;
use laxity::upcalls::qos::{Class, Limits, Mapping, Path, Release, map};
use laxity::upcalls::{Call, Options, Rank, Spec, State, Upcall, Upcalls};
use laxity::{Instant, Span, now};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::sched::{self, Tid};

use halts::Halts;

/// So many calls of each.
const CALLS: u64 = 10;

fn count(of: u32) -> NonZeroU32 {
    NonZeroU32::new(of).unwrap()
}

/// Each with the bytes a second that it is to move, and how long one waits at the most.
fn classes() -> [(&'static str, Class, u64, Option<Span>); 4] {
    let [every, delay, response] = [40, 150, 5].map(Span::from_millis);
    let video = Class::ContinuousMedia {
        frame_bytes: count(20_000),
        every,
        delay,
    };
    let transfer = Class::Bulk {
        bytes_per_second: NonZeroU64::new(500_000).unwrap(),
    };
    let requests = Class::Transactions {
        bytes: count(200),
        every: Span::from_millis(10),
        response,
    };
    let messages = Class::Messages {
        bytes: count(500),
        per_second: count(1_000),
        delay,
    };
    [
        ("video", video, 500_000, Some(delay)),
        ("transfer", transfer, 500_000, None),
        ("requests", requests, 20_000, Some(response)),
        ("messages", messages, 500_000, Some(delay)),
    ]
}

/// An upcall that was mapped to this, ready to run, and of each of its calls when it was released and when it was over.
fn made(upcalls: &Upcalls, name: &str, mapping: &Mapping) -> (Upcall, Receiver<[Instant; 2]>) {
    let (tell, told) = mpsc::channel();
    let mut packet = vec![0_u8; mapping.pdu_bytes.get() as usize];
    let mut left = CALLS;
    let handler = move |call: &mut Call<'_>| {
        for _ in 0..call.now() {
            std::hint::black_box(&mut packet).fill(call.done() as u8);
        }
        if call.done() + call.now() == call.batch() {
            tell.send([call.paced.release, now()]).unwrap();
            left -= 1;
        }
        if left == 0 {
            call.suspend();
        }
    };
    let upcall = upcalls.create(Spec::mapped(name, mapping), handler);
    let upcall = upcall.unwrap();
    if mapping.release == Release::Arrivals {
        for request in 0..CALLS {
            upcall.release([request, 0]).unwrap();
        }
    }
    (upcall, told)
}

#[test]
fn four_classes_are_admitted_together_and_do_what_they_were_mapped_from() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let path = Path {
        pdu_bytes: count(1_400),
        header_bytes: 28,
        latency: Span::from_millis(5),
        jitter: Span::from_millis(2),
    };
    let mut packet = vec![0_u8; 1_400];
    let mut work = move |bytes: u32| {
        let packet = std::hint::black_box(&mut packet[..bytes as usize]);
        packet
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(1));
    };
    let cost = pdu_cost(&[64, 700, 1_400], &mut work).unwrap();
    let usable = sched::affinity(Tid::current()).unwrap();
    let processor = usable.iter().last().unwrap();
    let rank = Rank::Fifo {
        priority: 90,
        processor: Some(processor),
    };
    let upcalls = Upcalls::start(Options {
        rank,
        ..Options::default()
    });
    let upcalls = upcalls.unwrap();
    let running = classes().map(|(name, class, bytes_per_second, delay)| {
        let mapping = map(&class, &cost, &path, &Limits::default()).unwrap();
        assert!(mapping.throughput() >= bytes_per_second, "{mapping:?}");
        assert!(
            delay.is_none_or(|most| mapping.delay.unwrap() <= most),
            "{mapping:?}"
        );
        let (upcall, told) = made(&upcalls, name, &mapping);
        (upcall, told, mapping)
    });
    let ((), halts) = Halts::during(processor, || {
        for (upcall, ..) in &running {
            upcall.run().unwrap();
        }
        for (upcall, ..) in &running {
            let idle = upcalls.sleep_until(&[upcall], now() + Span::from_secs(60));
            assert_eq!((idle, upcall.state()), (Ok(vec![0]), State::Suspended));
        }
    });
    keep_what_was_asked(running, &halts);
}

/// Each has done all of it, and in time, halts of the machine apart. One in ten may be late by what is too short to be seen as one, or as the machine is slower than when the costs were measured.
fn keep_what_was_asked(all: [(Upcall, Receiver<[Instant; 2]>, Mapping); 4], halts: &Halts) {
    let mut late = Vec::new();
    for (upcall, told, mapping) in all {
        let counts = upcall.close().unwrap();
        // As many units as calls, whoever was late: none is left out, and none is done twice.
        assert_eq!(counts.calls, CALLS);
        assert_eq!(counts.units, CALLS * u64::from(mapping.batch.get()));
        let took = told.iter();
        let took = took.map(|[release, ended]| halts.beyond(release, ended));
        let most = mapping.deadline + Halts::UNSEEN;
        late.extend(took.filter(|took| *took > most).map(|took| (took, most)));
    }
    assert!(
        late.len() as u64 <= 4 * CALLS / 10,
        "{late:?}; the longest halt {}",
        halts.longest()
    );
}
