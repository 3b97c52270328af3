//! What the edges of time slots cost on this machine, as the holder of slots sees them: the gaps between its clock readings.

use laxity_model::enforce::ranks::HIGHEST_BELOW_SLOTS;
use laxity_model::enforce::slots::EARLY;
use laxity_model::{Instant, Outside, Span};

use super::bench::Bench;
use super::samples::Samples;
use super::{CalibrateError, DISTURBED, Result};
use crate::enforce::slots::Pace;
use crate::enforce::slots::calibrate::{CYCLE, LENGTH, delay_ns, watch};

/// Runs of the dispatcher, of 0.11 s and a hundred slots each.
const RUNS: usize = 20;
/// Between readings further apart than this something else has run.
const GAP: Span = Span::from_nanos(800);
/// Samples of each kind in one run, with room for what comes twice.
const ROOM: usize = 256;
/// What ends a slot begins so early or late at most; a gap elsewhere is a tick's, or a device's.
const EARLIEST_NS: i64 = -40_000;
const LATEST_NS: i64 = 60_000;

/// What was seen.
pub(super) struct Edges {
    /// The whole gap around the beginning of a slot.
    pub(super) begin: Samples,
    /// The whole gap at its end.
    pub(super) end: Samples,
    /// From the edge, where the dispatcher decides, to the holder's first instruction.
    pub(super) entering: Samples,
    /// From the edge, for which the timer was set, to the holder's last instruction.
    pub(super) leaving: Samples,
    /// The reverse, where a hypervisor takes the processor before the timer is due.
    pub(super) cut: Samples,
}

impl Edges {
    fn with_room(count: usize) -> Self {
        Self {
            begin: Samples::bounded(count, EARLY + DISTURBED),
            end: Samples::with_room(count),
            entering: Samples::with_room(count),
            leaving: Samples::with_room(count),
            cut: Samples::with_room(count),
        }
    }

    fn end(&mut self, end: Option<End>) {
        let Some(end) = end else {
            return;
        };
        let span = |ns: i64| Span::from_nanos(ns.max(0).unsigned_abs());
        self.end.push(end.length);
        self.leaving.push(span(end.late_ns));
        self.cut.push(span(-end.late_ns));
    }
}

/// Has slots dispatched without any compensation, and looks at what their holder sees.
pub(super) fn edges(bench: &Bench<'_>) -> Result<Edges> {
    let (runs, _) = bench.parts(RUNS * 100, RUNS);
    let mut found = Edges::with_room(runs * ROOM);
    // Real-time outside its slots too, so that the gaps are the dispatcher's and not those of ordinary threads.
    let outside = Outside::Timesharing(HIGHEST_BELOW_SLOTS);
    for _ in 0..runs {
        bench.pause();
        bench.go_on()?;
        let observed =
            watch(bench.cpu(), outside, GAP, Pace::Plain).map_err(CalibrateError::Slots)?;
        found.evaluate(observed.first_edge, &observed.gaps);
    }
    Ok(found)
}

impl Edges {
    /// Takes what was observed in one run.
    fn evaluate(&mut self, begins: Instant, gaps: &[(Instant, Instant)]) {
        let ends = begins + LENGTH;
        let mut ended: Option<End> = None;
        for (from, to) in gaps {
            let length = to.saturating_since(*from);
            // The dispatcher spins half the lead before the beginning, and nobody else has the processor.
            let spinning = begins - EARLY / 2;
            let (before, after) = (delay_ns(*from, spinning), delay_ns(*to, begins));
            if let (Some(..0), Some(late @ 0..)) = (before, after) {
                self.begin.push(length);
                self.entering.push(Span::from_nanos(late.unsigned_abs()));
                continue;
            }
            let is_end = |late: &i64| (EARLIEST_NS..=LATEST_NS).contains(late);
            let Some(late_ns) = delay_ns(*from, ends).filter(is_end) else {
                continue;
            };
            let this = End {
                at: *from,
                length,
                late_ns,
            };
            match &mut ended {
                // The longest gap at an end is the dispatcher's; the others are of something that came just before or after.
                Some(same) if same.at + CYCLE / 2 > this.at => {
                    if same.length < this.length {
                        *same = this;
                    }
                }
                _ => self.end(ended.replace(this)),
            }
        }
        self.end(ended);
    }
}

/// A gap at the end of a slot.
#[derive(Clone, Copy)]
struct End {
    at: Instant,
    length: Span,
    /// From the edge, negative before it.
    late_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_belongs_to_its_edge() {
        let us = Span::from_micros;
        let first_edge = Instant::from_millis(5);
        let slot = |n: u64| first_edge + CYCLE * n;
        let gaps = vec![
            (slot(0) - us(38), slot(0) + us(6)),
            (slot(0) + LENGTH + us(3), slot(0) + LENGTH + us(14)),
            // A tick just after the end, one in the middle, and one just before the next end.
            (slot(0) + LENGTH + us(30), slot(0) + LENGTH + us(33)),
            (slot(0) + us(700), slot(0) + us(703)),
            (slot(1) - us(37), slot(1) + us(8)),
            (slot(1) + LENGTH - us(20), slot(1) + LENGTH - us(17)),
            (slot(1) + LENGTH - us(2), slot(1) + LENGTH + us(9)),
        ];
        let mut found = Edges::with_room(ROOM);
        found.evaluate(first_edge, &gaps);
        let (begin, _) = found.begin.finish().unwrap();
        assert_eq!((begin.at(0), begin.at(1_000_000)), (us(44), us(45)));
        let (end, evidence) = found.end.finish().unwrap();
        assert_eq!(evidence.samples, 2);
        assert_eq!(end.median(), us(11));
        let (entering, _) = found.entering.finish().unwrap();
        assert_eq!((entering.at(0), entering.at(1_000_000)), (us(6), us(8)));
        let (leaving, _) = found.leaving.finish().unwrap();
        assert_eq!((leaving.at(0), leaving.at(1_000_000)), (us(0), us(3)));
        let (cut, _) = found.cut.finish().unwrap();
        assert_eq!((cut.at(0), cut.at(1_000_000)), (us(0), us(2)));
    }
}
