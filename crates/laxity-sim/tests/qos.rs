//! Streams that were mapped from what an application asks for have that, in whatever phases their ends are to each other and beside others that take turns with them: the twin tries it.

use std::num::{NonZeroU32, NonZeroU64};

use laxity_conformance::streams::{Asked, Stream};
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcalls::qos::{Class, Cost, Limits, Path, map};
use laxity_model::{Host, HostError, Placement, Priority, ProcessorId, Program, Service, Span};
use laxity_sim::{Profile, Twin};
use proptest::prelude::*;

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Span> {
    range.prop_map(Span::from_micros)
}

fn class() -> impl Strategy<Value = Class> {
    let bytes = || (1..20_000_u32).prop_map(|bytes| NonZeroU32::new(bytes).unwrap());
    let rate = (1_000..4_000_000_u64).prop_map(|rate| NonZeroU64::new(rate).unwrap());
    let often = (20..3_000_u32).prop_map(|often| NonZeroU32::new(often).unwrap());
    prop_oneof![
        (bytes(), micros(5_000..60_000), micros(5_000..400_000)).prop_map(
            |(frame_bytes, every, delay)| Class::ContinuousMedia {
                frame_bytes,
                every,
                delay,
            }
        ),
        rate.prop_map(|bytes_per_second| Class::Bulk { bytes_per_second }),
        (bytes(), micros(2_000..50_000), micros(500..60_000)).prop_map(
            |(bytes, every, response)| Class::Transactions {
                bytes,
                every,
                response,
            }
        ),
        (bytes(), often, micros(5_000..100_000)).prop_map(|(bytes, per_second, delay)| {
            Class::Messages {
                bytes,
                per_second,
                delay,
            }
        }),
    ]
}

fn path() -> impl Strategy<Value = Path> {
    let bytes = (64..9_000_u32).prop_map(|bytes| NonZeroU32::new(bytes).unwrap());
    (bytes, 0..60_u32, micros(1..3_000), micros(0..5_000)).prop_map(
        |(pdu_bytes, header_bytes, latency, jitter)| Path {
            pdu_bytes,
            header_bytes,
            latency,
            jitter: jitter.min(latency),
        },
    )
}

fn cost() -> impl Strategy<Value = Cost> {
    (500..20_000_u64, 0..20_000_u64).prop_map(|(each, byte_ps)| Cost {
        each: Service::from_nanos(each),
        byte_ps,
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (50..400_u64, micros(500..2_000), micros(2_000..50_000)).prop_map(
        |(quantum, shortest, longest)| Limits {
            quantum: Service::from_micros(quantum),
            shortest,
            longest,
            call: Service::ZERO,
        },
    )
}

/// Streams that can be mapped, whose two ends have time together, with the phases of their frames and of their ends.
fn stream() -> impl Strategy<Value = Asked> {
    let phases = [
        micros(60_000..120_000),
        micros(10_000..60_000),
        micros(0..10_000),
    ];
    let parts = (
        class(),
        path(),
        cost(),
        limits(),
        any::<bool>(),
        phases,
        5..40_u64,
    );
    parts.prop_filter_map(
        "it can be mapped",
        |(class, path, cost, limits, is_paced, phases, units)| {
            let mapping = map(&class, &cost, &path, &limits).ok()?;
            let takes = mapping.service * u64::from(mapping.batch.get());
            let has_time = takes.as_dedicated_span() * 3 <= mapping.deadline;
            has_time.then(|| Asked {
                name: format!("{class:?}"),
                class,
                mapping,
                path,
                is_paced,
                phases,
                units,
            })
        },
    )
}

/// What of these is admitted together, run; the number of streams.
fn together(streams: Vec<Asked>) -> Result<usize, TestCaseError> {
    let mut admitted: Vec<Asked> = Vec::new();
    for asked in streams {
        let all = admitted.iter().chain([&asked]).cloned();
        let (program, _) = program(all.collect());
        let mut twin = Twin::new(Profile::IDEAL);
        // Nothing lasts no time at all: it is only admitted.
        match twin.admit_and_run(program, Span::from_nanos(1)) {
            Ok(_) => admitted.push(asked),
            Err(HostError::Refused(_)) => {}
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
    let count = admitted.len();
    let (program, streams) = program(admitted);
    let length = streams.iter().map(Stream::lasts).max().unwrap_or_default();
    let ran = Twin::new(Profile::IDEAL).admit_and_run(program, length);
    ran.map_err(|error| TestCaseError::fail(error.to_string()))?;
    for stream in &streams {
        stream
            .check()
            .map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
    }
    Ok(count)
}

fn program(streams: Vec<Asked>) -> (Program, Vec<Stream>) {
    let mut program = Program::new(1);
    let thread = (ProcessorId(0), Placement::Thread(Priority::HIGHEST));
    let executor = program.executor("upcalls", thread, None, Rmdp::new());
    let install = |asked| Stream::install(asked, &mut program, executor).unwrap();
    let streams = streams.into_iter().map(install).collect();
    (program, streams)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Each has what was asked for: no less throughput, no longer delay, no buffer that runs over.
    #[test]
    fn mapped_streams_have_what_was_asked_for(
        streams in proptest::collection::vec(stream(), 1..6)
    ) {
        // One is admitted, whoever else is not.
        prop_assert!(together(streams)? > 0);
    }
}
