//! Values as they are recorded of a component: those apart that overlap a stretch in which the machine itself stood still.

use std::collections::BTreeMap;

use laxity_model::verify::contract::{Counted, Observations, Phase, Quantity, in_windows};
use laxity_model::{Disturbances, Instant, Reservation, RunRecord, Span, Whereabouts};

/// A run, and what is to be counted in it.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// What the host handed back.
    pub record: &'a RunRecord,
    /// What is to be summed up in windows ([`Quantity::in_every`]).
    pub windows: &'a [Quantity],
    /// When what somebody did in it is not judged.
    pub disturbances: Disturbances,
    /// What their driver, or who works for them, was granted.
    pub reservation: Option<Reservation>,
}

impl<'a> Run<'a> {
    /// One in which nothing is summed up, and everybody may have run anywhere.
    #[must_use]
    pub fn of(record: &'a RunRecord) -> Self {
        Self {
            record,
            windows: &[],
            disturbances: Disturbances::of_who_ran(record, [Whereabouts::Anywhere]),
            reservation: None,
        }
    }
}

/// Takes the values of one component.
pub struct Recorder<'a> {
    run: Run<'a>,
    /// From when on windows count.
    from: Instant,
    counted: BTreeMap<Quantity, Vec<Counted>>,
    /// When how much of something there was is not judged, though the machine went on.
    excused: BTreeMap<Quantity, Vec<[Instant; 2]>>,
    /// What is recorded from now on belongs to this phase.
    pub phase: Phase,
    quantities: Observations,
}

impl<'a> Recorder<'a> {
    /// Nothing yet.
    #[must_use]
    pub const fn new(run: Run<'a>) -> Self {
        Self {
            from: run.record.start,
            run,
            counted: BTreeMap::new(),
            excused: BTreeMap::new(),
            phase: Phase::RUN,
            quantities: Observations::new(),
        }
    }

    /// Windows begin here and not with the run: before, nothing was due.
    pub fn windows_from(&mut self, at: Instant) {
        self.from = at;
    }

    /// Records a value that came of what happened from `from` to `to`. In windows it counts where it began.
    pub fn value(&mut self, quantity: Quantity, value: u64, [from, to]: [Instant; 2]) {
        let disturbed = self.run.disturbances.overlap(from, to);
        self.record(quantity, value, from, disturbed);
    }

    /// From `from` to `to` there may be less of this because the machine stood still before: windows that overlap that are not judged.
    pub fn excuse(&mut self, quantity: Quantity, span: [Instant; 2]) {
        self.excused.entry(quantity).or_default().push(span);
    }

    /// When what it did is not judged.
    pub const fn disturbances(&self) -> &Disturbances {
        &self.run.disturbances
    }

    /// By how much halts in this time delayed it, or who drives it; `None`: there were none.
    pub fn delayed(&self, span: [Instant; 2]) -> Option<Span> {
        self.disturbances().delayed(span, self.run.reservation)
    }

    /// Records a value that began at `at`, of which so much and no more came of the machine's standing still, apart from the rest; `None`: it did
    /// not stand still.
    pub fn told_apart(
        &mut self,
        quantity: Quantity,
        value: u64,
        excused: Option<u64>,
        at: Instant,
    ) {
        let disturbed = excused.map_or(0, |excused| excused.min(value));
        let rest = value - disturbed;
        // Nothing at all is one value too.
        if disturbed > 0 || (rest == 0 && excused.is_some()) {
            self.record(quantity, disturbed, at, true);
        }
        if rest > 0 || excused.is_none() {
            self.record(quantity, rest, at, false);
        }
    }

    fn record(&mut self, quantity: Quantity, amount: u64, at: Instant, disturbed: bool) {
        self.count(
            quantity,
            Counted {
                at,
                amount,
                disturbed,
                possible: false,
            },
        );
        self.quantities
            .record(quantity, &self.phase, amount, disturbed);
    }

    /// Records what a value may be at worst that nobody knows, and that would have begun at `at`.
    pub fn possible(&mut self, quantity: Quantity, amount: u64, at: Instant) {
        self.count(
            quantity,
            Counted {
                at,
                amount,
                disturbed: false,
                possible: true,
            },
        );
        self.quantities
            .record_possible(quantity, &self.phase, amount);
    }

    /// Records a time, or how far one is from another, of what happened in this span, which halts there may have made longer or shorter by as much as they delay.
    pub fn shifted(&mut self, quantity: Quantity, time: Span, span: [Instant; 2]) {
        let delayed = self.delayed(span);
        self.quantities
            .record_shifted(quantity, &self.phase, time, delayed);
    }

    /// Records what a time of what happened in this span had come to that was not over, or had no beginning: less what halts there delay.
    pub fn unfinished(&mut self, quantity: Quantity, time: Span, span: [Instant; 2]) {
        let delayed = self.delayed(span);
        let least = time.saturating_sub(delayed.unwrap_or_default());
        self.quantities
            .record_unfinished(quantity, &self.phase, least.as_nanos());
    }

    /// For windows, where there are such.
    fn count(&mut self, quantity: Quantity, one: Counted) {
        let mut windows = self.run.windows.iter();
        if one.amount > 0 && windows.any(|window| window.of_each() == quantity) {
            self.counted.entry(quantity).or_default().push(one);
        }
    }

    /// Records the time from `from` to `to`.
    pub fn span(&mut self, quantity: Quantity, from: Instant, to: Instant) {
        self.lasted(quantity, to.saturating_since(from), [from, to]);
    }

    /// Records something that lasted so long of the time from `from` to `to`; where halts of the machine were no more than a tenth of that, the rest, and otherwise that the rest is what it was at the least.
    pub fn lasted(&mut self, quantity: Quantity, lasted: Span, span: [Instant; 2]) {
        let delayed = self.delayed(span);
        self.lasted_behind(quantity, lasted, delayed);
    }

    /// The same of what halts, wherever they were, delayed by so much; `None`: there were none.
    pub fn lasted_behind(&mut self, quantity: Quantity, lasted: Span, delayed: Option<Span>) {
        self.quantities
            .record_time(quantity, &self.phase, lasted, delayed);
    }

    /// All that was recorded.
    pub fn finish(mut self) -> Observations {
        let run = [self.from, self.run.record.end];
        for quantity in self.run.windows {
            let counted = self.counted.get(&quantity.of_each());
            let counted = counted.cloned().unwrap_or_default();
            let length = quantity.window().unwrap_or_default();
            let excused = self.excused.get(&quantity.of_each());
            let excused = excused.into_iter().flatten().copied();
            let disturbances = self.run.disturbances.clone().and(excused);
            let sums = in_windows(length, run, counted, &disturbances);
            self.quantities.set(*quantity, &Phase::RUN, sums);
        }
        self.quantities
    }
}
