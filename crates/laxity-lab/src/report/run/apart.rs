//! What is judged, apart from what was seen where the machine stood still.

use laxity_model::verify::contract::Quantity;

use crate::evidence::histogram::HistogramJson;
use crate::evidence::subjects::{DeviceFigures, StreamFigures, SubjectResults};
use crate::report::Value;
use crate::scenario::kinds::{FRAMES_LOST, key};

/// What was seen of a quantity, if it was.
pub(super) fn quantity(subject: &SubjectResults, wanted: Quantity) -> Option<&HistogramJson> {
    subject.quantities.get(&key(wanted))
}

/// A time in nanoseconds as the reasons of a verdict print it, which leave off what is less than a microsecond of it: beside them a time has one look.
/// The page shows four digits of that.
pub(super) const fn as_told(ns: u64) -> u64 {
    match ns {
        1_000_000..1_000_000_000 => ns - ns % 1_000,
        _ => ns,
    }
}

/// So many samples were lost or underrun where the machine stood still.
pub(super) fn lost_besides(device: &DeviceFigures) -> Option<Value> {
    some(
        device
            .lost()
            .saturating_sub(device.samples_lost_undisturbed),
    )
}

pub(super) fn some(count: u64) -> Option<Value> {
    (count > 0).then(|| count.into())
}

/// Frames that were lost while nothing disturbed, and others.
pub(super) fn frames_lost((subject, stream): (&SubjectResults, &StreamFigures)) -> [u64; 2] {
    let seen = quantity(subject, FRAMES_LOST);
    let undisturbed = seen.and_then(|seen| seen.undisturbed);
    let judged = undisturbed.map_or(stream.frames_lost, |own| own.sum);
    [judged, stream.frames_lost.saturating_sub(judged)]
}

/// How many jobs ended too late, and how many there were.
pub(super) fn missed(jobs: &HistogramJson) -> [u64; 2] {
    let late = jobs.buckets.iter().filter(|(misses, _)| *misses > 0);
    [late.map(|(_, jobs)| jobs).sum(), jobs.count]
}

/// Of the jobs that nothing disturbed, so many ended too late.
pub(super) fn undisturbed_misses(jobs: &HistogramJson) -> u64 {
    let undisturbed = jobs.undisturbed.map(|own| own.sum);
    undisturbed.unwrap_or_else(|| missed(jobs)[0])
}
