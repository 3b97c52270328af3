//! Streams of all four classes, mapped from what is asked for and side by side on one executor, have that.

use std::num::{NonZeroU32, NonZeroU64};

use crate::executors::executor;
use crate::streams::{Asked, Stream};
use crate::{Failure, Result, Tolerance};
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcalls::qos::{Class, Cost, Limits, Path, map};
use laxity_model::{Host, Program, Service, Span};

/// 32 µs for a full PDU.
const COST: Cost = Cost {
    each: Service::from_micros(4),
    byte_ps: 20_000,
};

const fn count(of: u32) -> NonZeroU32 {
    NonZeroU32::new(of).expect("it is more than nothing")
}

const PATH: Path = Path {
    pdu_bytes: count(1_400),
    header_bytes: 28,
    latency: Span::from_millis(2),
    jitter: Span::from_millis(1),
};

/// A video, a transfer, requests, and messages at a high rate: each with how many frames, PDUs, requests or messages there are.
const ALL: [(&str, Class, u64); 4] = [
    (
        "video",
        Class::ContinuousMedia {
            frame_bytes: count(30_000),
            every: Span::from_millis(40),
            delay: Span::from_millis(200),
        },
        8,
    ),
    (
        "transfer",
        Class::Bulk {
            bytes_per_second: NonZeroU64::new(1_000_000).expect("it is more than nothing"),
        },
        200,
    ),
    (
        "requests",
        Class::Transactions {
            bytes: count(200),
            every: Span::from_millis(20),
            response: Span::from_millis(8),
        },
        15,
    ),
    (
        "messages",
        Class::Messages {
            bytes: count(900),
            per_second: count(500),
            delay: Span::from_millis(60),
        },
        150,
    ),
];

/// All arrives, no later than was asked, and no buffer held more than was foreseen.
pub(crate) fn streams_have_what_was_asked_for(host: &mut dyn Host, _: &Tolerance) -> Result {
    let limits = Limits {
        shortest: Span::from_millis(4),
        longest: Span::from_millis(20),
        ..Limits::default()
    };
    let mut program = Program::new(1);
    let executor = executor(&mut program, Rmdp::new());
    let mut streams = Vec::new();
    for (name, class, units) in ALL {
        let mapping = map(&class, &COST, &PATH, &limits);
        let asked = Asked {
            name: name.to_owned(),
            class,
            mapping: mapping.map_err(|error| Failure::Wrong(error.to_string()))?,
            path: PATH,
            is_paced: true,
            phases: [70, 55, 45].map(Span::from_millis),
            units,
        };
        streams.push(Stream::install(asked, &mut program, executor)?);
    }
    let length = streams.iter().map(Stream::lasts).max().unwrap_or_default();
    host.admit_and_run(program, length)?;
    streams.iter().try_for_each(Stream::check)
}
