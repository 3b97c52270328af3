//! Looks once a period at what the holder of a reservation has received, and now and again at who could take it away.

mod observed;

use std::sync::Arc;

use laxity_model::base::ring::Consumer;
use laxity_model::enforce::{Witness, ranks};
use laxity_model::verify::contract::ADDED_UP;
use laxity_model::verify::delivery::{Delivery, Held, Meter};
use laxity_model::{
    Disturbance, Enforcer, Event, EventKind, Grade, HostError, Instant, ProcessorId, Reservation,
    Span,
};

use super::super::conclude::{Evidence, conclude, is_late, witnessed};
use super::super::lookout::{self, Lookout};
use super::HOLDER;
use super::above::is_above;
use super::seen::{Anew, Holders, Seen};
use crate::doctor;
use crate::doctor::machine::Throttling;
use crate::os::clock;
use crate::os::limits;
use crate::os::proc::RealTimeThread;
use crate::os::sched::{self, Policy, Tid};
use crate::os::schedstat::Account;
use crate::run::{self, Run, Thread};
use observed::{Asking, Observed, Records};

/// It looks no more often than this beside a dispatcher, which takes more by itself.
pub(crate) const BESIDE_SLOTS: Span = Span::from_millis(1);
/// Nor than this beside the kernel, so that all of ours takes less than half a hundredth of a processor whatever the period is: a look takes some 30 µs
/// where it begins with nothing in the caches, and who came since is looked for as often.
pub(crate) const BESIDE_KERNEL: Span = Span::from_millis(20);
/// To ask whether holders that were not seen to run sleep takes no more than one part of so many of the time.
const ASKING_SHARE: u64 = 500;

/// Whether a thread is of the holder.
pub(crate) type IsHolders = Box<dyn Fn(&RealTimeThread) -> bool + Send>;

/// When it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    first: Instant,
    every: Span,
}

impl Looks {
    /// At this instant and once every so many periods after it, no more often than that.
    pub(crate) fn new(first: Instant, period: Span, seldom: Span) -> Self {
        let periods = seldom.as_nanos().div_ceil(period.as_nanos());
        Self {
            first,
            every: period * periods,
        }
    }

    /// From one to the next.
    pub(crate) const fn every(&self) -> Span {
        self.every
    }

    /// The first that is not past.
    fn after(&self, now: Instant) -> Instant {
        let passed = now.saturating_since(self.first) / self.every;
        if now < self.first {
            self.first
        } else {
            self.first + self.every * (passed + 1)
        }
    }
}

/// What a watcher begins with.
pub(crate) struct WatcherStart {
    pub(crate) reservation: Reservation,
    pub(crate) held: Held,
    /// The dispatcher stops the holder outside its slots: its records tell when.
    pub(crate) stops: bool,
    /// The processor of slots, on which nobody may outrank who has them.
    pub(crate) slots_on: Option<usize>,
    /// Who has them, or may be given them, or begins all this, until the first look at who has.
    pub(crate) is_holders: IsHolders,
    /// The processors of which somebody records when they stand still, in the order of the model's numbers.
    pub(crate) witnessed: Vec<usize>,
    /// Where the watcher itself is best.
    pub(crate) cpu: Option<usize>,
    /// Each stretch is kept, as well as what they come to.
    pub(crate) keeps_stretches: bool,
    /// Records of the dispatcher and the witness.
    pub(crate) consumers: Vec<Consumer>,
}

impl WatcherStart {
    /// The witness of each processor on which there is one, as it is beside whom the kernel holds.
    pub(crate) fn witnesses(&self) -> impl Iterator<Item = Witness> + use<> {
        let by_kernel = self.held == Held::ByKernel;
        let held = by_kernel.then_some(self.reservation);
        let all = (0..self.witnessed.len() as u16).map(ProcessorId);
        all.map(move |on| Witness::new(on).outranked_by(held.into_iter(), clock::tick()))
    }
}

/// Starts a watcher; it ends with the run, and [hears then](Watcher::note_ends) from whoever joins it what others recorded at their ends.
pub(crate) fn spawn(
    start: WatcherStart,
    looks: impl FnOnce(Instant) -> Looks + Send + 'static,
    seen: Arc<Seen>,
    run: Arc<Run>,
) -> Result<Thread<Option<Watcher>>, HostError> {
    run::spawn("laxity-watcher".to_owned(), run, move |run| {
        clock::use_exact_timers();
        // Beside the kernel, where it may be no more than an ordinary thread, it looks less punctually.
        match start.cpu {
            Some(cpu) => lookout::settle(cpu, run)?,
            None => {
                let _ = sched::set_policy(Tid::current(), Policy::Fifo(ranks::COLLECTOR));
            }
        }
        let mut lookout = start.slots_on.map_or_else(Lookout::at_own, |cpu| {
            Lookout::begin(vec![cpu], |thread| is_above(thread, cpu, &start.is_holders))
        });
        Ok(run.wait_for_start().map(|begin| {
            lookout.start();
            let looks = looks(begin);
            let mut watcher = Watcher::new(start, seen, lookout, (begin, looks));
            watcher.watch(run);
            watcher
        }))
    })
}

/// Looks at the holder, and out for others.
pub(crate) struct Watcher {
    start: WatcherStart,
    seen: Arc<Seen>,
    observed: Vec<Observed>,
    events: Vec<Event>,
    /// When witnesses woke late, by the records of the last look.
    before: Vec<Disturbance>,
    /// What nobody was found for who held the processor, of the last second.
    unfound: Vec<Disturbance>,
    /// What others held, of the same.
    held: Vec<Disturbance>,
    /// When the dispatcher stopped the holder, if it stands.
    stopped: Option<Instant>,
    /// Who could take from it, and whether our threads are what they ought to be.
    lookout: Lookout,
    /// Whether the kernel tells a holder from a standstill.
    tells: bool,
    begin: Instant,
    looks: Looks,
    /// So many records had been lost when what is told began.
    lost_before: u64,
    /// When holders that do not run are asked again whether they sleep.
    ask_at: Instant,
    /// Somebody has stopped this thread since the last look.
    was_stopped: bool,
}

impl Watcher {
    fn new(
        start: WatcherStart,
        seen: Arc<Seen>,
        lookout: Lookout,
        (begin, looks): (Instant, Looks),
    ) -> Self {
        Self {
            start,
            seen,
            observed: Vec::new(),
            events: Vec::new(),
            before: Vec::new(),
            unfound: Vec::new(),
            held: Vec::new(),
            stopped: None,
            lookout,
            tells: Account::of_current().is_some(),
            begin,
            looks,
            lost_before: 0,
            ask_at: Instant::ZERO,
            was_stopped: false,
        }
    }

    fn watch(&mut self, run: &Run) {
        let mut look_at = self.looks.after(clock::now());
        // It wakes for the lookout alone, too: whoever knows when the slots are would be seen at no look that is put off to the next of theirs.
        while self.sleep_until(look_at.min(self.lookout.due(run.alarm())), run) {
            let now = clock::now();
            if now >= self.lookout.due(run.alarm()) {
                self.look_out(run);
            }
            if now >= look_at {
                self.look(false);
                look_at = self.looks.after(clock::now());
            }
        }
        // Whoever came, or took something, after the look before is seen by this one.
        self.look_out(run);
        self.look(true);
        self.note_unseen();
    }

    /// Dispatcher and witness have ended too: what they recorded after the last look counts as well, as of a dispatcher that somebody froze until then.
    pub(crate) fn note_ends(mut self) {
        if self.seen.begins_anew(clock::now()).is_none() {
            self.records();
        }
    }

    /// Of slots that were over before a period of them was seen nobody knows what they were worth: what their holder was kept from tells that, beside who was
    /// there.
    fn note_unseen(&self) {
        let saw_nothing = |seen: Delivery| seen.periods + seen.disturbed + seen.stopped == 0;
        let is_held = self.start.slots_on.is_some() && self.seen.holders() != Holders::Awaited;
        if is_held && self.seen.delivery().is_ok_and(saw_nothing) {
            let reason =
                "it was over before a period of it was seen: nobody knows what was taken from it";
            self.seen.note(Grade::Uncertain {
                reason: reason.to_owned(),
            });
        }
    }

    /// Sleeps until the instant; `false` if the run ended first.
    fn sleep_until(&mut self, until: Instant, run: &Run) -> bool {
        let goes_on = run.sleep_until(until);
        self.was_stopped |= self.lookout.woke();
        goes_on
    }

    /// Looks; publishes what is known so far. What comes after the reservation's end is none of it.
    fn look(&mut self, is_last: bool) {
        if let Some(anew) = self.seen.begins_anew(clock::now()) {
            self.begin_anew(anew);
            return;
        }
        let seen = self.records();
        let now = clock::now();
        let at = self.seen.over_since().map_or(now, |over| over.min(now));
        let mut asking = Asking {
            may: is_last || now >= self.ask_at,
            stops: self.start.stops,
            took: Span::ZERO,
        };
        let (mut delivery, mut kept) = (Delivery::default(), Vec::new());
        for observed in &mut self.observed {
            let stretches = observed.take(at, &seen, &mut asking, is_last);
            kept.extend(stretches.filter(|_| self.start.keeps_stretches));
            delivery.add(&observed.meter().delivery());
        }
        if asking.may {
            self.ask_at = now + asking.took * ASKING_SHARE;
        }
        self.note_starved(at);
        delivery.events_lost = self.lost() - self.lost_before;
        delivery.halts_unseen = self.start.consumers.is_empty();
        if self.start.slots_on.is_some() {
            self.seen
                .note(delivery.grade_of_slots(self.start.reservation));
        }
        let subjects = self.seen.publish(delivery, &kept);
        for mut subject in subjects {
            // What it had before belongs to no period.
            subject.look();
            let meter = self.meter(now);
            self.observed.push(Observed::new(subject, meter));
        }
    }

    /// A holder that wants its processor has had nothing of it for so long that neither its budget nor its slots explain that.
    fn note_starved(&self, at: Instant) {
        let period = self.start.reservation.period();
        let mut all = self.observed.iter();
        if let Some(longest) = all.find_map(|one| one.starved_for(at, period)) {
            let reason = format!("it wanted to run, and got nothing for more than {longest}");
            self.seen.note(Grade::Uncertain { reason });
        }
    }

    /// So many records did not fit until now.
    fn lost(&self) -> u64 {
        self.start.consumers.iter().map(Consumer::lost).sum()
    }

    /// What was seen until now is none of what is told: periods, standstills and strangers are those from this look on.
    fn begin_anew(&mut self, anew: Anew) {
        for consumer in &mut self.start.consumers {
            consumer.drain(&mut self.events);
        }
        self.events.clear();
        self.before.clear();
        self.unfound.clear();
        self.held.clear();
        self.stopped = None;
        self.was_stopped = false;
        self.lost_before = self.lost();
        self.lookout.begin_anew();
        self.start.reservation = anew.reservation;
        self.looks = anew.looks.unwrap_or(self.looks);
        self.begin = clock::now();
        let meter = self.meter(self.begin);
        for observed in &mut self.observed {
            observed.begin_anew(meter.clone());
        }
    }

    /// What judges a holder from this instant on.
    fn meter(&self, from: Instant) -> Meter {
        let WatcherStart {
            reservation, held, ..
        } = self.start;
        let meter = Meter::new(reservation, held, from);
        let meter = meter.together(self.looks.every() / reservation.period());
        match held {
            Held::ByKernel => meter.noticed_at(doctor::budget_grain()),
            Held::BySlots | Held::Confined => meter,
        }
    }

    /// What dispatcher and witness recorded since the last look. What of it is against the reservation is noted.
    fn records(&mut self) -> Records {
        self.events.clear();
        for consumer in &mut self.start.consumers {
            consumer.drain(&mut self.events);
        }
        let over = self.seen.over_since();
        // What begins once all is over is none of it.
        self.events.retain(|event| {
            !is_late(event) || over.is_none_or(|over| Disturbance::of(event).from < over)
        });
        self.events.sort_by_key(|event| event.at);
        let before = std::mem::replace(&mut self.before, witnessed(&self.events).collect());
        let slots_on = self.start.slots_on;
        let cpus = self.start.witnessed.clone();
        let own = match self.start.held {
            Held::ByKernel => Span::MAX,
            _ => Span::ZERO,
        };
        let evidence = Evidence {
            start: self.begin,
            // What the kernel holds ranks above a witness.
            own: cpus.iter().map(|_| own).collect(),
            with_slots: cpus.len(),
            witnesses: self.start.witnesses().collect(),
            before: &before,
            unfound: &self.unfound,
            held: &self.held,
            over,
            cpus,
            tells: Some(self.tells),
            seen: self.lookout.seen(),
        };
        let mut found = conclude(&mut self.events, &evidence);
        let now = clock::now();
        let told = [&mut found.unfound, &mut found.held].map(std::mem::take);
        [self.unfound, self.held] = told;
        for kept in [&mut self.unfound, &mut self.held] {
            kept.retain(|held| held.to + ADDED_UP > now);
        }
        let enforcer = slots_on.map_or(Enforcer::Deadline, |_| Enforcer::Slots);
        let granted = (enforcer, HOLDER, slots_on.unwrap_or(usize::MAX));
        self.seen.note(found.grade(Grade::Enforced, granted));
        let mut stood = Vec::new();
        for event in &self.events {
            match event.kind {
                EventKind::SlotEnd if self.start.stops => {
                    self.stopped = Some(event.at);
                }
                EventKind::SlotBegin => {
                    let since = self.stopped.take();
                    stood.extend(since.map(|since| event.at.saturating_since(since)));
                }
                _ => {}
            }
        }
        let [still, stops] = found.standstills();
        Records {
            stood,
            still,
            stops,
            unwatched: std::mem::take(&mut self.was_stopped),
        }
    }

    /// Looks for who could take from the holder, and whether our threads are what they ought to be, and are there.
    fn look_out(&mut self, run: &Run) {
        if !self.seen.is_over() {
            self.seen.note_failure(run);
        }
        let (observed, start) = (&self.observed, &self.start);
        // The first look at the holder comes a period after it was placed; who takes from it until then is no less a stranger.
        let mine = |thread: &RealTimeThread| match observed.is_empty() {
            true => (start.is_holders)(thread),
            false => observed.iter().any(|one| one.subject.has(thread)),
        };
        let is_over = || self.seen.is_over();
        match start.slots_on {
            Some(cpu) => {
                let above = |thread: &RealTimeThread| is_above(thread, cpu, mine);
                self.lookout.look(run, is_over, above);
            }
            None => {
                self.lookout.look_at_own(run, is_over);
                self.read_back(&limits::throttling());
            }
        }
    }

    /// Whoever has the right may take the kernel's limit away at any time, by which alone it admits what it can give.
    fn read_back(&self, limits: &Throttling) {
        if let Some(reason) = limits.admits_all() {
            self.seen.note(Grade::Unenforced { reason });
        }
    }
}

#[cfg(test)]
mod tests;
