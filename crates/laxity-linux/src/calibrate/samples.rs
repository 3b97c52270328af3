//! Samples of a cost, and what speaks for them.

use laxity_model::Span;
use laxity_model::enforce::machine::Quantiles;

use super::DISTURBED;

/// The samples are looked at in so many consecutive parts, to see whether the machine was steady.
const PARTS: usize = 8;

/// How a figure was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// Samples that count.
    pub samples: u64,
    /// Samples that were left out, as the machine itself stood still meanwhile.
    pub disturbed: u64,
    /// The least and the greatest median of eight consecutive parts of the samples: near each other on a steady machine.
    pub medians: (Span, Span),
}

/// More gaps than this in one stretch are no measurement.
const MOST_GAPS: usize = 1 << 16;

/// Room for the gaps that a thread sees: nothing is allocated, and no page faulted in, while it looks.
pub(super) fn paged_in<T: Clone>(gap: T) -> Vec<T> {
    let mut gaps = vec![gap; MOST_GAPS];
    gaps.clear();
    gaps
}

/// Spans in the order they were measured.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    spans: Vec<Span>,
    disturbed: u64,
    bound: Span,
}

impl Samples {
    /// With room for so many, already paged in: nothing is allocated while it is measured.
    pub(super) fn with_room(count: usize) -> Self {
        let mut spans = vec![Span::MAX; count];
        spans.clear();
        Self {
            spans,
            disturbed: 0,
            bound: DISTURBED,
        }
    }

    /// For what may take longer than [`DISTURBED`] on an undisturbed machine.
    pub(super) fn bounded(count: usize, bound: Span) -> Self {
        Self {
            bound,
            ..Self::with_room(count)
        }
    }

    /// Takes a sample, or counts it as disturbed. What is beyond the room is not taken: each measurement makes room for all it will take.
    #[inline]
    pub(super) fn push(&mut self, span: Span) {
        if span > self.bound {
            self.disturbed += 1;
        } else if self.spans.len() < self.spans.capacity() {
            self.spans.push(span);
        }
    }

    /// Takes a sample, if there is one.
    pub(super) fn extend(&mut self, span: Option<Span>) {
        if let Some(span) = span {
            self.push(span);
        }
    }

    /// What was measured later.
    pub(super) fn append(&mut self, later: Self) {
        self.spans.extend(later.spans);
        self.disturbed += later.disturbed;
    }

    /// Each less what is not the cost that was sought.
    pub(super) fn less(mut self, cost: Span) -> Self {
        for span in &mut self.spans {
            *span = span.saturating_sub(cost);
        }
        self
    }

    /// How many count.
    pub(super) fn len(&self) -> u64 {
        self.spans.len() as u64
    }

    /// How many were left out.
    pub(super) const fn disturbed(&self) -> u64 {
        self.disturbed
    }

    /// The median; zero of nothing.
    pub(super) fn median(&self) -> Span {
        median(self.spans.clone())
    }

    /// The distribution and its evidence; `None` of nothing.
    pub(super) fn finish(mut self) -> Option<(Quantiles, Evidence)> {
        let length = self.spans.len().div_ceil(PARTS).max(1);
        let medians: Vec<Span> = self
            .spans
            .chunks(length)
            .map(|part| median(part.to_vec()))
            .collect();
        let (least, most) = (medians.iter().min()?, medians.iter().max()?);
        let evidence = Evidence {
            samples: self.len(),
            disturbed: self.disturbed,
            medians: (*least, *most),
        };
        Some((Quantiles::of(&mut self.spans)?, evidence))
    }
}

fn median(mut spans: Vec<Span>) -> Span {
    Quantiles::of(&mut spans).map_or(Span::ZERO, |quantiles| quantiles.median())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Span {
        Span::from_micros(n)
    }

    #[test]
    fn what_is_too_long_is_counted_and_left_out() {
        let mut samples = Samples::with_room(10);
        for n in [3, 101, 5, 100, 4] {
            samples.push(us(n));
        }
        let (quantiles, evidence) = samples.less(us(4)).finish().unwrap();
        assert_eq!((evidence.samples, evidence.disturbed), (4, 1));
        assert_eq!(quantiles.at(0), us(0));
        assert_eq!(quantiles.at(1_000_000), us(96));
    }

    #[test]
    fn an_unsteady_machine_shows_in_the_medians_of_the_parts() {
        let mut samples = Samples::with_room(800);
        for n in 0..800 {
            samples.push(if n < 700 { us(2) } else { us(9) });
        }
        let (quantiles, evidence) = samples.finish().unwrap();
        assert_eq!(quantiles.median(), us(2));
        assert_eq!(evidence.medians, (us(2), us(9)));
    }

    #[test]
    fn nothing_is_no_distribution() {
        assert!(Samples::with_room(5).finish().is_none());
        assert_eq!(Samples::with_room(5).median(), Span::ZERO);
    }
}
