//! What was seen of a run, in the shape a contract is judged by.

use alloc::collections::BTreeMap;

use super::{Bound, Phase, Quantity};
use crate::base::histogram::Histogram;
use crate::{Disturbances, Span};

/// The values of one quantity in one phase.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Those that the program and the host answer for.
    pub undisturbed: Histogram,
    /// Those that overlap a stretch in which the machine itself stood still: counted and shown, never judged.
    pub disturbed: Histogram,
    /// Those that nobody knows, as bad as they may have been: what breaks a limit among them leaves it open.
    pub possible: Histogram,
    /// Of disturbed ones, what they were at the least without the halts in them, and at the most: halts excuse no more than they can account for.
    pub between: [Histogram; 2],
    /// Of those that were not over at the end, or had no beginning, what they had come to: they may break an upper bound, and keep none.
    pub unfinished: Histogram,
}

impl Observed {
    /// Adds all that another has.
    pub fn merge(&mut self, other: &Self) {
        self.undisturbed.merge(&other.undisturbed);
        self.disturbed.merge(&other.disturbed);
        self.possible.merge(&other.possible);
        for (own, theirs) in self.between.iter_mut().zip(&other.between) {
            own.merge(theirs);
        }
        self.unfinished.merge(&other.unfinished);
    }

    /// Those that the program answers for, and each other as it would be best for this bound: what breaks it here is broken.
    pub(super) fn at_best(&self, bound: Bound) -> Histogram {
        let mut all = self.undisturbed.clone();
        let [least, most] = &self.between;
        match bound {
            Bound::AtLeast(_) => all.merge(most),
            Bound::AtMost(_) | Bound::AtMostTimesControl { .. } => {
                all.merge(least);
                all.merge(&self.unfinished);
            }
        }
        all
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

    /// Adds something that lasted so long, of which halts delayed so much; `None`: there were none. Where that is [no more than a tenth](Disturbances::judged), the rest. Whether it was
    /// disturbed.
    pub fn record_time(
        &mut self,
        quantity: Quantity,
        phase: &Phase,
        lasted: Span,
        delayed: Option<Span>,
    ) -> bool {
        let (judged, disturbed) = Disturbances::judged(lasted, delayed);
        self.record(quantity, phase, judged.as_nanos(), disturbed);
        if let Some(delayed) = delayed.filter(|_| disturbed) {
            self.between(quantity, phase, [lasted.saturating_sub(delayed), lasted]);
        }
        disturbed
    }

    /// Adds a time between two things, each of which halts may have delayed by as much as this, so that it is longer or shorter; `None`: there were none.
    pub fn record_shifted(
        &mut self,
        quantity: Quantity,
        phase: &Phase,
        time: Span,
        delayed: Option<Span>,
    ) {
        self.record(quantity, phase, time.as_nanos(), delayed.is_some());
        if let Some(delayed) = delayed {
            let ends = [time.saturating_sub(delayed), time + delayed];
            self.between(quantity, phase, ends);
        }
    }

    fn between(&mut self, quantity: Quantity, phase: &Phase, ends: [Span; 2]) {
        let set = self.sets.entry((quantity, phase.clone())).or_default();
        for (own, end) in set.between.iter_mut().zip(ends) {
            own.record(end.as_nanos());
        }
    }

    /// Adds what a value had come to that was not over.
    pub fn record_unfinished(&mut self, quantity: Quantity, phase: &Phase, least: u64) {
        let set = self.sets.entry((quantity, phase.clone())).or_default();
        set.unfinished.record(least);
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
