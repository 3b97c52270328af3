//! What the kernel's tick takes from a thread that computes: the gaps between its clock readings that come with the tick's period.

use laxity_model::{Instant, Span};

use super::bench::Bench;
use super::samples::{Samples, paged_in};
use super::{Result, clock};

const PARTS: usize = 20;
/// Ticks in all; of each part fewer than the processor may be kept busy at a stretch.
const TICKS: usize = 1_000;
/// Shorter gaps are no interrupt.
const LEAST: Span = Span::from_micros(1);
/// The longest stretch of computing.
const LONGEST: Span = Span::from_millis(240);
/// A period is divided into so many parts to see where in it the ticks come.
const BINS: u64 = 400;
/// A tick's interrupt comes within so many of them.
const NEAR: u64 = 3;

/// What was seen.
pub(super) struct Ticks {
    /// How often it comes; 0 where it does not.
    pub(super) hz: u32,
    /// What each takes.
    pub(super) lost: Samples,
}

/// Reads the clock for a while, and picks the gaps that come at the tick's instants.
pub(super) fn ticks(bench: &Bench<'_>) -> Result<Ticks> {
    let period = clock::tick();
    let (parts, each) = bench.parts(TICKS, PARTS);
    let stretch = (period * each as u64).min(LONGEST);
    let mut gaps = Vec::new();
    for _ in 0..parts {
        gaps.extend(bench.alone(|| read(bench, stretch))?);
    }
    let expected = stretch / period * parts as u64;
    Ok(pick(&gaps, period, expected, clock::reading_cost()))
}

/// Reads the clock all the time; where it could not, and for how long.
fn read(bench: &Bench<'_>, stretch: Span) -> Vec<(Instant, Span)> {
    let mut gaps = paged_in((Instant::ZERO, Span::ZERO));
    let mut last = clock::now();
    let end = last + stretch;
    while last < end && !bench.interrupted() {
        let now = clock::now();
        let gap = now.saturating_since(last);
        if gap > LEAST && gaps.len() < gaps.capacity() {
            gaps.push((last, gap));
        }
        last = now;
    }
    gaps
}

/// The gaps that come with the period, near the place in it where most come.
fn pick(gaps: &[(Instant, Span)], period: Span, expected: u64, cost: Span) -> Ticks {
    let bin = |at: Instant| at.as_nanos() % period.as_nanos() * BINS / period.as_nanos();
    let mut counts = [0_u64; BINS as usize];
    for (at, _) in gaps {
        counts[bin(*at) as usize] += 1;
    }
    let around = |center: u64| -> u64 {
        let bins = center + BINS - NEAR..=center + BINS + NEAR;
        bins.map(|bin| counts[(bin % BINS) as usize]).sum()
    };
    let center = (0..BINS).max_by_key(|center| around(*center)).unwrap_or(0);
    // So that the instants of one tick have one number, whichever side of the center they are on.
    let half = period.as_nanos() * 3 / 2 - center * period.as_nanos() / BINS;
    let mut lost = Samples::with_room(gaps.len());
    let mut tick = None;
    for (at, gap) in gaps {
        let distance = bin(*at).abs_diff(center);
        if distance.min(BINS - distance) > NEAR {
            continue;
        }
        let number = (at.as_nanos() + half) / period.as_nanos();
        let gap = gap.saturating_sub(cost);
        match &mut tick {
            // Something short came just before or after it.
            Some((same, longest)) if *same == number => *longest = gap.max(*longest),
            _ => lost.extend(tick.replace((number, gap)).map(|(_, gap)| gap)),
        }
    }
    lost.extend(tick.map(|(_, gap)| gap));
    // Other interrupts come anywhere; a tick at each of its instants.
    let comes = lost.len() * 2 >= expected;
    let hz = u64::from(comes) * 1_000_000_000 / period.as_nanos();
    Ticks {
        hz: hz as u32,
        lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Span = Span::from_millis(4);

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn ticks_are_told_from_other_gaps_by_their_instants() {
        // They come around the period's end: some just before, some just after it.
        let mut gaps: Vec<_> = (1..=100)
            .map(|n| (at(n * 4_000 - 5 + n % 10), Span::from_micros(3)))
            .collect();
        gaps.extend((1..=60).map(|n| (at(n * 6_431), Span::from_micros(9))));
        gaps.sort();
        let found = pick(&gaps, PERIOD, 100, Span::from_micros(1));
        assert_eq!(found.hz, 250);
        let (quantiles, evidence) = found.lost.finish().unwrap();
        assert_eq!(evidence.samples, 100);
        assert_eq!(quantiles.median(), Span::from_micros(2));
    }

    #[test]
    fn a_processor_without_a_tick_has_none() {
        let gaps: Vec<_> = (1..=60)
            .map(|n| (at(n * 6_431), Span::from_micros(9)))
            .collect();
        assert_eq!(pick(&gaps, PERIOD, 100, Span::ZERO).hz, 0);
        assert_eq!(pick(&[], PERIOD, 100, Span::ZERO).hz, 0);
    }
}
