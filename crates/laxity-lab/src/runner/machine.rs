//! What a machine takes for itself, as work that an analysis knows.

use laxity::study::Profile;
use laxity_model::admission::SlotSupply;
use laxity_model::analysis::Task;
use laxity_model::enforce::Witness;
use laxity_model::enforce::machine::{Figure, Machine as Measured};
use laxity_model::enforce::slots::SUPPLY;
use laxity_model::policy::slots::SlotTable;
use laxity_model::{Priority, ProcessorId, Service, Span};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// No longer than this may real-time threads of Linux keep a processor: after 0.95 s of each the kernel lets others run.
const LONGEST_ON_LINUX: Span = Span::from_millis(900);

/// Which of the costs that were measured every event is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Charged {
    /// The largest: nothing was seen to cost more. What was met once in thousands is charged each time.
    Largest,
    /// What 99.9 % of those measured do not exceed.
    Usual,
    /// The least, and no delay but that: whatever happens takes longer.
    Least,
}

impl Charged {
    /// What an event is charged on a machine, if that was measured.
    pub(crate) fn of(self, measured: Option<&Measured>, figure: Figure) -> Span {
        let ppm = match self {
            Self::Largest => 1_000_000,
            Self::Usual => 999_000,
            Self::Least => 0,
        };
        measured.map_or(Span::ZERO, |known| known.figure(figure).at(ppm))
    }

    /// What it takes to switch to a thread that has set its timer, and back.
    pub(crate) fn switches(self, measured: Option<&Measured>) -> Span {
        self.of(measured, Figure::ContextSwitch) * 2 + self.of(measured, Figure::Timer)
    }

    /// The kernel's tick, where it is known how often that comes.
    pub(crate) fn tick(self, measured: Option<&Measured>) -> Option<Task> {
        let apart = NANOS_PER_SEC.checked_div(measured?.tick_hz.into())?;
        let cost = self.of(measured, Figure::Tick).as_full_service();
        Task::new(cost, Span::from_nanos(apart)).ok()
    }
}

/// A machine, asked for its worst cases.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The least and the most time between ticks by which threads wake; `None` where they wake at any instant.
    ticks: Option<(Span, Span)>,
    /// How late a thread sees an instant.
    pub(crate) late: Span,
    /// What comes on top of every response: on Linux an interrupt is a timer that is late, and so may a slot be as a whole.
    pub(crate) besides: Span,
    /// What it does for itself above everybody.
    pub(crate) own: Vec<(&'static str, Task)>,
    /// What it takes to get into a handler and out of it, to call a deferred call, to switch to a thread and back.
    handler: Span,
    deferred: Span,
    thread: Span,
    /// The most that a less urgent activity can have the processor pay, without being interrupted.
    one: Span,
    /// Threads of this priority and above preempt the holder of a slot.
    pub(crate) threads_above: Option<Priority>,
    /// Whether threads that starve are lifted above others.
    pub(crate) lifts: bool,
    /// Threads below this one are ordinary ones, among whom nothing is sure.
    pub(crate) real_time_from: Priority,
    /// A busy window that is longer is not what the machine does.
    pub(crate) longest_window: Span,
}

impl Machine {
    /// That of a twin.
    pub(crate) fn of(profile: Profile) -> Self {
        let costs = profile.costs;
        let ticks = profile.tick_hz.map(|hz| {
            let hz = u64::from(hz);
            let [least, most] = [NANOS_PER_SEC / hz, NANOS_PER_SEC.div_ceil(hz)];
            (Span::from_nanos(least), Span::from_nanos(most))
        });
        let clock = profile.clock();
        let clock = clock.and_then(|clock| Task::new(clock.service, clock.period).ok());
        let handler = costs.interrupt_entry + costs.interrupt_exit;
        Self {
            ticks,
            late: ticks.map_or(Span::ZERO, |(_, most)| most),
            besides: Span::ZERO,
            own: clock
                .map(|clock| ("the clock", clock))
                .into_iter()
                .collect(),
            handler,
            deferred: costs.deferred_dispatch,
            thread: costs.context_switch * 2,
            one: costs
                .context_switch
                .max(costs.deferred_dispatch)
                .max(handler),
            threads_above: profile.threads_above,
            lifts: profile.bands.starvation.is_some(),
            real_time_from: Priority::IDLE,
            longest_window: Span::MAX,
        }
    }

    /// That on which a scenario would run, with slots of this table on the processor; all costs zero of one that was not measured.
    ///
    /// Every activity is a thread there: it is switched to and from, and sets its timer. Laxity's own threads are the witness and the dispatcher.
    pub(crate) fn live(
        (measured, charged): (Option<&Measured>, Charged),
        slots: Option<&SlotSupply>,
        table: Option<&SlotTable>,
    ) -> Self {
        let most = |figure| charged.of(measured, figure);
        // Neither edges that are late nor what a slot takes at most need ever be.
        let slots = slots.filter(|_| charged != Charged::Least);
        let switches = charged.switches(measured);
        let mut own = Vec::new();
        let tick = charged.tick(measured);
        own.extend(tick.map(|tick| ("the kernel's tick", tick)));
        let mut add = |name, cost: Span, period: Span| {
            let task = Task::new(cost.as_full_service(), period).ok();
            own.extend(task.map(|task| (name, task)));
        };
        let witness = Witness::of_experiment(ProcessorId(0)).period;
        add("the witness", switches, witness);
        if let (Some(slots), Some(table)) = (slots, table) {
            let count = table.slots().len() as u64;
            let each = slots.per_slot.as_dedicated_span();
            add("the dispatcher", each * count, table.cycle());
        }
        Self {
            ticks: None,
            late: most(Figure::Wakeup),
            besides: most(Figure::Wakeup) + slots.map_or(Span::ZERO, |slots| slots.jitter),
            own,
            handler: switches,
            deferred: switches,
            thread: switches,
            one: most(Figure::ContextSwitch) + most(Figure::Timer),
            threads_above: SUPPLY.threads_above,
            lifts: false,
            real_time_from: Priority::REAL_TIME,
            longest_window: LONGEST_ON_LINUX,
        }
    }

    /// Ticks by which threads wake are at least so far apart; `None` where threads wake exactly.
    pub(crate) fn shortest_tick(&self) -> Option<Span> {
        self.ticks.map(|(least, _)| least)
    }

    /// A handler's work with what it takes to get into and out of it.
    pub(crate) fn handler(&self, work: Service) -> Service {
        work + self.handler.as_full_service()
    }

    /// A deferred call's work with what it takes to call it.
    pub(crate) fn deferred(&self, work: Service) -> Service {
        work + self.deferred.as_full_service()
    }

    /// A thread's work with the switch to it, and the one back to whom it took the processor from.
    pub(crate) fn thread(&self, work: Service) -> Service {
        work + self.thread.as_full_service()
    }

    /// What one less urgent activity can have the processor pay just before: nothing interrupts that, and such costs add up.
    pub(crate) fn one_cost(&self) -> Service {
        self.one.as_full_service()
    }
}
