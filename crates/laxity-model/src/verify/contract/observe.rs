//! What was seen of a run, in the shape a contract is judged by.

use alloc::collections::BTreeMap;

use super::{Phase, Quantity};
use crate::base::histogram::Histogram;

/// The values of one quantity in one phase.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Those that the program and the host answer for.
    pub undisturbed: Histogram,
    /// Those that overlap a stretch in which the machine itself stood still: counted and shown, never judged.
    pub disturbed: Histogram,
    /// Those that nobody knows, as bad as they may have been: what breaks a limit among them leaves it open.
    pub possible: Histogram,
}

impl Observed {
    /// Adds all that another has.
    pub fn merge(&mut self, other: &Self) {
        self.undisturbed.merge(&other.undisturbed);
        self.disturbed.merge(&other.disturbed);
        self.possible.merge(&other.possible);
    }

    /// All that are known, together: the raw values.
    pub fn raw(&self) -> Histogram {
        let mut all = self.undisturbed.clone();
        all.merge(&self.disturbed);
        all
    }
}

/// Everything that was measured in a run: per quantity and phase, undisturbed and disturbed apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observations {
    sets: BTreeMap<(Quantity, Phase), Observed>,
}

impl Observations {
    /// Nothing seen yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            sets: BTreeMap::new(),
        }
    }

    /// Adds a value, in the quantity's unit. O(log sets); allocates when a set is new or its histogram grows.
    pub fn record(&mut self, quantity: Quantity, phase: &Phase, value: u64, disturbed: bool) {
        let set = self.sets.entry((quantity, phase.clone())).or_default();
        if disturbed {
            set.disturbed.record(value);
        } else {
            set.undisturbed.record(value);
        }
    }

    /// Adds what a value may have been at worst that nobody knows.
    pub fn record_possible(&mut self, quantity: Quantity, phase: &Phase, value: u64) {
        let set = self.sets.entry((quantity, phase.clone())).or_default();
        set.possible.record(value);
    }

    /// Sets what was seen of a quantity in a phase, in place of all before.
    pub fn set(&mut self, quantity: Quantity, phase: &Phase, observed: Observed) {
        self.sets.insert((quantity, phase.clone()), observed);
    }

    /// The quantities that were summed up in windows.
    pub fn windows(&self) -> impl Iterator<Item = Quantity> {
        let quantities = self.sets.keys().map(|(quantity, _)| *quantity);
        quantities.filter(|quantity| quantity.window().is_some())
    }

    /// What was seen of a quantity in a phase.
    pub fn get(&self, quantity: Quantity, phase: &Phase) -> Option<&Observed> {
        self.sets.get(&(quantity, phase.clone()))
    }

    /// What was seen of a quantity in the whole run.
    pub fn whole(&self, quantity: Quantity) -> Observed {
        let mut all = Observed::default();
        for (_, observed) in self.phases(quantity) {
            all.merge(observed);
        }
        all
    }

    /// What was seen of a quantity, phase by phase, by the phases' names.
    pub fn phases(&self, quantity: Quantity) -> impl Iterator<Item = (&Phase, &Observed)> {
        let sets = self.sets.iter().filter(move |((q, _), _)| *q == quantity);
        sets.map(|((_, phase), observed)| (phase, observed))
    }
}
