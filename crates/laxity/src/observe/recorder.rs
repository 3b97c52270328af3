//! Values as they are recorded of a component: those apart that overlap a stretch in which the machine itself stood still.

use laxity_model::verify::contract::{Observations, Phase, Quantity};
use laxity_model::{Disturbance, Instant, RunRecord};

/// The stretches in which the machine stood still, for asking what overlaps them.
pub struct Disturbances<'a>(pub &'a [Disturbance]);

impl Disturbances<'_> {
    /// Whether any overlaps the time from `from` to `to`, ends included. O(log n).
    pub fn overlap(&self, from: Instant, to: Instant) -> bool {
        let first = self.0.partition_point(|disturbance| disturbance.to < from);
        self.0
            .get(first)
            .is_some_and(|disturbance| disturbance.from <= to)
    }
}

/// Takes the values of one component.
pub struct Recorder<'a> {
    disturbances: Disturbances<'a>,
    /// What is recorded from now on belongs to this phase.
    pub phase: Phase,
    quantities: Observations,
}

impl<'a> Recorder<'a> {
    /// Nothing yet.
    #[must_use]
    pub const fn new(record: &'a RunRecord) -> Self {
        Self {
            disturbances: Disturbances(record.disturbances.as_slice()),
            phase: Phase::RUN,
            quantities: Observations::new(),
        }
    }

    /// Records a value that came of what happened from `from` to `to`.
    pub fn value(&mut self, quantity: Quantity, value: u64, [from, to]: [Instant; 2]) {
        let disturbed = self.disturbances.overlap(from, to);
        self.quantities
            .record(quantity, &self.phase, value, disturbed);
    }

    /// Records the time from `from` to `to`.
    pub fn span(&mut self, quantity: Quantity, from: Instant, to: Instant) {
        let nanos = to.saturating_since(from).as_nanos();
        self.value(quantity, nanos, [from, to]);
    }

    /// All that was recorded.
    pub fn finish(self) -> Observations {
        self.quantities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_counts_the_ends() {
        let at = Instant::from_millis;
        let list = [
            Disturbance {
                from: at(10),
                to: at(12),
            },
            Disturbance {
                from: at(30),
                to: at(31),
            },
        ];
        let disturbances = Disturbances(&list);
        for (from, to, expected) in [
            (0, 9, false),
            (0, 10, true),
            (12, 13, true),
            (13, 29, false),
            (11, 11, true),
            (9, 40, true),
            (32, 40, false),
        ] {
            assert_eq!(
                disturbances.overlap(at(from), at(to)),
                expected,
                "{from} to {to}"
            );
        }
    }
}
