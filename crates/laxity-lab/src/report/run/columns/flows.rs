//! What is shown of a flow.

use laxity_model::verify::contract::Quantity;

use super::{COUNT, Column, Line, MILLISECONDS, column, time, with};
use crate::evidence::histogram::HistogramJson;
use crate::report::run::apart::{missed, quantity, some, undisturbed_misses};
use crate::scenario::kinds::{
    ARRIVAL_TO_THREAD, BYTES_RECEIVED, FRAME_INTERVAL, FRAME_JITTER, PACKETS_LOST,
};

pub(super) const FLOW: Column = column("flow", "flow", None, |line| {
    Some(line.flow?.name.as_str().into())
});

fn of<'a>(line: &Line<'a>, wanted: Quantity) -> Option<&'a HistogramJson> {
    quantity(line.flow?, wanted)
}

pub(super) const OF_FLOWS: [Column; 7] = [
    column(
        "frame interval, min",
        "frames\nmin ms",
        MILLISECONDS,
        |line| time(of(line, FRAME_INTERVAL)?.told_min()),
    ),
    with(
        column("frame interval, max", "\nmax ms", MILLISECONDS, |line| {
            time(of(line, FRAME_INTERVAL)?.told_max())
        }),
        |line| time(of(line, FRAME_INTERVAL)?.disturbed_max()),
    ),
    column(
        "frame jitter, p99",
        "jitter\np99 ms",
        MILLISECONDS,
        |line| time(of(line, FRAME_JITTER)?.told_p99()),
    ),
    with(
        column("packets lost", "packets\nlost", COUNT, |line| {
            Some(undisturbed_misses(of(line, PACKETS_LOST)?).into())
        }),
        |line| {
            let lost = of(line, PACKETS_LOST)?;
            some(missed(lost)[0].saturating_sub(undisturbed_misses(lost)))
        },
    ),
    column(
        "arrival to thread, p99",
        "to thread\np99 ms",
        MILLISECONDS,
        |line| time(of(line, ARRIVAL_TO_THREAD)?.told_p99()),
    ),
    with(
        column("arrival to thread, max", "\nmax ms", MILLISECONDS, |line| {
            time(of(line, ARRIVAL_TO_THREAD)?.told_max())
        }),
        |line| time(of(line, ARRIVAL_TO_THREAD)?.disturbed_max()),
    ),
    column("kilobytes received", "kB\nreceived", COUNT, |line| {
        let received = of(line, BYTES_RECEIVED)?;
        Some((received.mean? * received.count / 1_000).into())
    }),
];
