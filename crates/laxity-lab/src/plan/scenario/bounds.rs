//! Response times in a variant: of everything that recurs, with everything the machine takes for itself; on Linux as far as
//! [`linux`](super::linux) can tell.
//!
//! For an activity: all jobs of everything that is not less urgent may go first (equals in any order), and each slot of a holder that does so
//! costs its switches; a less urgent one may just be causing a cost that nothing interrupts; in slots, only the table's own supply counts. So
//! a bound holds whatever the phases are, and beyond what one run happens to show.

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::analysis::supply::{Dedicated, SupplyBound, TableSupply};
use laxity_model::analysis::{Overflow, Response, Task, fixed_priority};
use laxity_model::policy::bands::HIGHEST_VARIABLE;
use laxity_model::policy::slots::{SlotTable, shortest_interval};
use laxity_model::request::ONCE;
use laxity_model::{Priority, Service, Span};

use super::agreed::reserves_later;
use super::costs::{Others, heed_others, shorter};
use super::drivers::{During, Wakes};
use super::linux::{Live, never_done};
use super::ranks::{is_thread, slot_rank, thread_rank};
use super::sources::{Source, Stage, Work, beside};
use super::{Ready, VariantPlan, slots_of};
use crate::plan::{Bottleneck, Line, NoBound, Reason};
use crate::runner::machine::{Charged, Machine};
use crate::runner::modes::Mode;
use crate::scenario::{Resolved, ResolvedVariant, Start, TaskKind};

/// Threads of a priority up to this are lifted to it when they starve.
const LIFTED_TO: Priority = Priority::new(HIGHEST_VARIABLE).expect("there are 32");

/// The lines of a variant, and its bottleneck; `plan` says what is known of its devices.
pub(super) fn of(
    resolved: &Resolved,
    variant: &ResolvedVariant,
    ready: &Ready,
    (live, plan): (Option<&Live<'_>>, &VariantPlan),
) -> Result<(Vec<Line>, Option<Bottleneck>), Overflow> {
    let mut lines = Vec::new();
    let mut worst: Option<(i128, Option<Bottleneck>)> = None;
    for processor in 0..resolved.host.processors {
        let analyst = |charged| {
            let machine = match live {
                Some(live) => live.machine(ready, processor, charged),
                None => Machine::of(resolved.host.profile.machine),
            };
            Analyst::on((resolved, variant, ready), processor, machine, live)
        };
        let (largest, usual) = (analyst(Charged::Largest), analyst(Charged::Usual));
        let [least, most] = [Charged::Least, Charged::Largest].map(|costs| move || analyst(costs));
        for (subject, mut line) in largest.subjects() {
            let found = match live {
                Some(live) => live.bound((&largest, Charged::Largest), &subject),
                None => largest.bound(&subject),
            };
            line.answer(NoBound::settle(found)?);
            let whole = largest.stage.mode_of(&subject).map(|mode| mode.whole);
            plan.heed_device(&mut line, whole, reserves_later(variant));
            // Who takes the time of a thread in the kernel's reservation is not known.
            let is_known = live.is_none_or(|live| !live.is_by_deadline(ready, &subject));
            match live {
                Some(live) => live.heed_costs(&mut line, &subject, (&usual, &least), is_known)?,
                None => heed_others(&most, &mut line, &subject)?,
            }
            plan.heed_unasked(&mut line);
            // What takes most of its time usually, where that is known: the largest costs, each time, are nobody's course of events.
            let at_usual = line.at_usual_costs();
            let (judged, as_judged) = match &at_usual {
                Some(at_usual) => (&usual, at_usual),
                None => (&largest, &line),
            };
            if let Some(slack) = as_judged.relative_slack().filter(|_| is_known)
                && worst.as_ref().is_none_or(|(least, _)| slack < *least)
            {
                let found = judged.bottleneck(&subject, as_judged);
                // Of one that has no work, and waits for nothing, there is nothing to say.
                let is_idle =
                    line.cost_ns == Some(0) && found.contributor == Some(line.name.clone());
                worst = Some((slack, Some(found).filter(|_| !is_idle)));
            }
            lines.push(line);
        }
    }
    Ok((lines, worst.and_then(|(_, bottleneck)| bottleneck)))
}

/// Whether the usual calls of a phase are complete when its last one comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
    Done,
    Open,
}

/// What a subject is looked at by. Who has slots and a rank besides has both: what either gives is a bound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Its slots, where it has such; else its rank.
    Slots,
    /// Its rank outside its slots, which pay their costs all the same.
    RankBeside,
    /// The order of its turns on a thread.
    Turns,
}

/// Whether the modem holds its reservation, and what the subject is looked at by.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) reserved: bool,
    by: By,
}

/// Looks at one processor.
pub(super) struct Analyst<'a> {
    pub(super) stage: Stage<'a>,
    /// What is assumed of others.
    pub(super) others: Others,
}

impl<'a> Analyst<'a> {
    /// Of a variant on one processor of a machine.
    fn on(
        (resolved, variant, ready): (&Resolved, &'a ResolvedVariant, &'a Ready),
        processor: u16,
        machine: Machine,
        live: Option<&Live<'_>>,
    ) -> Self {
        let twin = live.is_none().then_some(resolved.host.profile);
        let start = if live.is_some() {
            Start::Connected
        } else {
            variant.start
        };
        Self {
            stage: Stage::new((machine, twin), (variant, start), ready, processor),
            others: Others::May,
        }
    }
}

impl Analyst<'_> {
    pub(super) fn bound(&self, subject: &Source) -> Result<Span, NoBound> {
        if self.stage.modems.len() > 1 {
            return Err("the phases of several calls are not analysed together".into());
        }
        if subject.task().is_none() {
            return Err(never_done(self, subject).into());
        }
        if let Some(links) = self.links(subject) {
            return self.chained(subject, links);
        }
        let by_slots = NoBound::settle(self.longest(subject, By::Slots))?;
        let by_rank = NoBound::settle(self.longest(subject, By::RankBeside))?;
        let by_turns = NoBound::settle(self.longest(subject, By::Turns))?;
        let found = shorter(shorter(by_slots, by_rank), by_turns);
        match (found, self.promised(subject)) {
            // Here others of its executor may go first in any order, and there by its policy.
            (Ok(longest), Some(promised)) => Ok(longest.min(promised)),
            (Err(_), Some(promised)) => Ok(promised),
            (found, None) => found.map_err(NoBound::Because),
        }
    }

    /// The longest response in any mode, with what the machine takes besides.
    pub(super) fn longest(&self, subject: &Source, by: By) -> Result<Span, NoBound> {
        let longest = self.cases(subject).into_iter();
        let mut longest = longest.map(|mode| self.response(subject, mode, by));
        let besides = self.stage.machine.besides;
        longest.try_fold(Span::ZERO, |longest, one| Ok(longest.max(one? + besides)))
    }

    /// In which modes a subject is looked at.
    pub(super) fn cases(&self, subject: &Source) -> Vec<Option<&Mode>> {
        let modes = self.stage.modes();
        if modes.is_empty() {
            return vec![None];
        }
        let wanted = |mode: &&Mode| subject.mode.is_none_or(|name| name == mode.name);
        modes.iter().filter(wanted).map(Some).collect()
    }

    /// The longest response in a mode. The driver's calls know no other phase; for all others, of this phase alone if all is quiet before
    /// the next begins, else of all phases together.
    fn response(&self, subject: &Source, mode: Option<&Mode>, by: By) -> Result<Span, NoBound> {
        let reserved = self.stage.is_reserved(mode);
        let case = Case { reserved, by };
        let phase = mode.map_or(During::Call, |mode| During::Phase(mode.phase));
        let found = self.among(subject, phase, case);
        let is_quiet = match (&found, mode) {
            (_, None) => true,
            (Ok((_, window)), Some(mode)) => *window <= mode.silence,
            (Err(_), Some(_)) => false,
        };
        // A bound is over all courses of a call, and a proof needs one: this phase alone.
        if is_quiet || subject.mode.is_some() || self.others != Others::May {
            return found.map(|(response, _)| response);
        }
        Ok(self.among(subject, During::Call, case)?.0)
    }

    /// The longest response and the busy window during that of the modem's call.
    fn among(&self, subject: &Source, during: During, case: Case) -> Result<(Span, Span), NoBound> {
        let late = self.late();
        let found = |by_period| {
            let wakes = Wakes { late, by_period };
            NoBound::settle(match case.by {
                By::Turns => self.in_turn(subject, during, case, wakes),
                By::Slots | By::RankBeside => self.among_those(subject, during, case, wakes),
            })
        };
        let by_period = found(true)?;
        // Threads that could take every tick together need not do so: that is a bound, and proves nothing.
        if self.others != Others::May {
            return Ok(by_period?);
        }
        Ok(match (by_period, found(false)?) {
            (Ok(one), Ok(other)) => (one.0.min(other.0), one.1.min(other.1)),
            (Err(_), Ok(found)) | (Ok(found), Err(_)) => found,
            (Err(why), Err(_)) => return Err(why.into()),
        })
    }

    /// The same, if those who sleep wake so.
    fn among_those(
        &self,
        subject: &Source,
        during: During,
        case: Case,
        wakes: Wakes,
    ) -> Result<(Span, Span), NoBound> {
        let machine = &self.stage.machine;
        let mut sources = self.stage.sources(during, case.reserved, wakes);
        let own = sources.iter().find(|source| subject.is(source));
        let edges = self.in_slots(own.ok_or("it does not run then")?)?;
        let edges = edges.and_then(|_| self.edges(own?));
        // On Linux strangers are looked for above the slots, not above that rank.
        let mut has_both = || self.stage.is_twin() && beside(&mut sources, subject);
        if case.by == By::RankBeside && !has_both() {
            return Err("it has no rank besides its slots".into());
        }
        let own = sources.iter().find(|source| subject.is(source));
        let own = own.ok_or("it does not run then")?;
        self.is_real_time(own)?;
        let (mut task, usual) = self.own_task(own, during, &sources, case)?;
        let slots = self.in_slots(own)?;
        let mut first = self.first(own, usual, &sources, (during, case))?;
        first.extend(self.one_each(own, &sources));
        first.extend(edges);
        let supply: Box<dyn SupplyBound> = match slots {
            Some(slots) => Box::new(slots),
            None => Box::new(Dedicated),
        };
        self.lifted(own, &sources)?;
        let blocking = self.blocking(own, &sources);
        let window = fixed_priority::busy_window_among(&task, &first, blocking, &&*supply)?;
        let mut wake = Some(machine.late).filter(|_| own.sleeps);
        if own.sleeps && window.is_some_and(|window| window + task.jitter() <= task.period()) {
            // No two of its jobs meet in a window: how late the one behind is does not matter.
            task = task.with_jitter(Span::ZERO);
        } else if !task.jitter().is_zero() {
            // The jitter is how late it wakes.
            wake = None;
        }
        let response = fixed_priority::response_time_among(&task, &first, blocking, &&*supply)?;
        let response = own.answer(response).map_err(|why| match response {
            Response::Unbounded if own.slots.is_some() => Reason::too_much(
                "it and what goes first ask for more than its slots are sure to give",
            ),
            Response::Unbounded => self.too_much_with_costs(own, &sources).unwrap_or(why),
            _ => why,
        });
        let response = response.map_err(|why| self.with_piles(why, own, &sources))?;
        let later = wake.unwrap_or(Span::ZERO) + own.held;
        Ok((response + later, self.kept(window)?))
    }

    /// The most that those who do not go first have the processor pay just before.
    pub(super) fn blocking(&self, own: &Source, sources: &[Source]) -> Service {
        let all = sources.iter();
        let less = all.filter(|source| !self.goes_first(source, own));
        self.stage.machine.one_cost() * (less.count() as u64 + 1)
    }

    /// A busy window, if it was found and the kernel lets it last.
    pub(super) fn kept(&self, window: Option<Span>) -> Result<Span, NoBound> {
        let window = window.ok_or("the busy window is too long to be searched")?;
        if window > self.stage.machine.longest_window {
            return Err(
                "real-time threads might keep the processor for longer than the kernel lets them"
                    .into(),
            );
        }
        Ok(window)
    }

    /// All whose jobs may go before those of one, and the switches of slots before it; with none that never stops.
    pub(super) fn first(
        &self,
        own: &Source,
        usual: Usual,
        sources: &[Source],
        (during, case): (During, Case),
    ) -> Result<Vec<Task>, NoBound> {
        let mut first = Vec::new();
        let (mut holders, mut held) = (BTreeSet::new(), BTreeMap::new());
        for source in sources.iter().filter(|source| self.goes_first(source, own)) {
            let same = source.activity == own.activity && source.mode.is_some();
            // Of an activity that is asked about in no mode, jobs in one mode are jobs in another. No call waits for the last one of its phase.
            let is_own = std::ptr::eq(source, own) && own.shared.is_none();
            if is_own || (same && (source.once || usual == Usual::Done)) {
                continue;
            }
            match &source.work {
                Work::Jobs { task, .. }
                    if source.slots.is_none_or(|whose| own.slots == Some(whose)) =>
                {
                    first.extend(self.as_assumed(source, task));
                }
                Work::Jobs { task, .. } if self.others != Others::May => {
                    // Of who waits no more is known.
                    if self.others == Others::Share && !source.waits {
                        let (_, tasks) = held.entry(source.slots).or_insert((source, Vec::new()));
                        tasks.extend(Task::new(task.cost(), task.period()));
                    }
                }
                Work::Jobs { task, .. } => {
                    first.push(self.postponed(own, source, task, during, case)?);
                    // A job pays for one slot alone, and may take several.
                    if holders.insert(source.slots) {
                        first.extend(self.edges(source));
                    }
                }
                Work::Endless => return Err(self.shares(own, source).into()),
            }
        }
        let held = held.into_values();
        first.extend(held.flat_map(|(source, tasks)| self.share(source, tasks)));
        Ok(first)
    }

    /// A source's own job; and where that is the last of its phase, whether the others are complete when it comes.
    fn own_task(
        &self,
        own: &Source,
        during: During,
        sources: &[Source],
        case: Case,
    ) -> Result<(Task, Usual), NoBound> {
        let task = own.task().ok_or("it never stops")?;
        if let Some(one) = own.shared {
            // All others may go before it.
            let one = Task::new(one, ONCE).map_err(|error| error.to_string())?;
            return Ok((one, Usual::Open));
        }
        if !own.once {
            return Ok((*task, Usual::Open));
        }
        let phase = self.stage.mode_of(own).map(|mode| mode.phase);
        let mut usual = self.stage.modes().iter().filter(|mode| !mode.once);
        let usual = usual.find(|mode| Some(mode.phase) == phase);
        let source = usual.and_then(|usual| {
            let mut calls = sources.iter().filter(|one| one.activity == own.activity);
            calls.find(|source| source.mode == Some(usual.name))
        });
        let source = source.ok_or("it does not run then")?;
        let usual = source.task().ok_or("it does not run then")?;
        let whole = Task::new(usual.cost() + task.cost(), task.period());
        let whole = whole.map_err(|_| "it takes no time")?;
        let before = self.among(source, during, case);
        let is_done = NoBound::settle(before)?.is_ok_and(|(before, _)| before <= usual.period());
        Ok((whole, if is_done { Usual::Done } else { Usual::Open }))
    }

    /// By how much who sleeps may see an instant late: up to a tick.
    pub(super) fn late(&self) -> Span {
        self.stage.machine.late
    }

    /// Whether jobs of the one may go before jobs of the other, or are its own. In the slots of the other, nobody else runs in theirs.
    pub(super) fn goes_first(&self, source: &Source, own: &Source) -> bool {
        let slots = slot_rank(&self.stage.machine);
        let equals = self.others == Others::May || source.activity == own.activity;
        match own.slots {
            Some(_) if source.slots == own.slots => equals,
            Some(_) => source.rank > slots,
            None => source.rank > own.at_least() || (source.rank == own.at_least() && equals),
        }
    }

    /// What a holder's slots give it, if it has any; each begins with a cost, for which see [`Self::edges`].
    pub(super) fn in_slots(&self, own: &Source) -> Result<Option<TableSupply>, NoBound> {
        if own.slots.is_none() {
            return Ok(None);
        }
        let (table, owner) = self
            .table(own)
            .ok_or("its reservation is refused, or not by slots")?;
        let supply = TableSupply::new(table, owner).map_err(|error| error.to_string())?;
        Ok(Some(supply))
    }

    fn table(&self, own: &Source) -> Option<(&SlotTable, usize)> {
        slots_of(&self.stage.ready.admission().slots, own.slots?)
    }

    /// The switches to a holder and back, at each of its slots.
    fn edges(&self, own: &Source) -> Option<Task> {
        let (table, owner) = self.table(own)?;
        let switch = self.stage.machine.thread(Service::ZERO);
        Task::new(switch, shortest_interval(table, owner)?).ok()
    }

    /// Jobs of a holder of slots as others see them: what waits for its slots may be done late, and for those below that is jitter.
    fn postponed(
        &self,
        own: &Source,
        source: &Source,
        task: &Task,
        during: During,
        case: Case,
    ) -> Result<Task, NoBound> {
        if own.slots.is_some() {
            let above = format!(
                "`{}` ranks above its slots with more than its own",
                source.name
            );
            return Err(above.into());
        }
        let response = |by| {
            let found = self.among(source, during, Case { by, ..case });
            NoBound::settle(found.map(|(response, _)| response))
        };
        let mut found = response(By::Slots)?;
        // Who is looked at by the rank beside its slots takes others by theirs alone, or two holders would wait for each other's answer.
        if found.is_err() && case.by != By::RankBeside {
            found = shorter(found, response(By::RankBeside)?);
        }
        let together = match source.mode.is_some() && self.stage.has_several_phases(during) {
            true => " with calls of all its phases together",
            false => "",
        };
        let found = found.map_err(|why| {
            let (name, words) = (&source.name, why.words);
            format!("`{name}` has no bound{together}: {words}")
        });
        let response = found?;
        Ok(task.with_jitter(response.saturating_sub(task.cost().as_dedicated_span())))
    }

    /// That somebody asks for all there is. Of what equals leave each other nothing is known, nor of what a command does.
    fn shares(&self, own: &Source, endless: &Source) -> Reason {
        let name = &endless.name;
        if own.at_least() == endless.rank {
            return format!("it shares its priority with `{name}`, which never stops").into();
        }
        let mut tasks = self.stage.variant.tasks.iter();
        let task = tasks.find(|task| task.name == *name);
        match task.map(|task| &task.kind) {
            Some(TaskKind::Command { .. }) => {
                format!("it is below `{name}`, a command that may work all the time").into()
            }
            Some(TaskKind::Client(_) | TaskKind::Flow(_)) => {
                format!("it is below `{name}`, of whose packets nobody says how many come").into()
            }
            _ => Reason::too_much(format!("it is below `{name}`, which never stops")),
        }
    }

    /// An ordinary thread has no bound.
    pub(super) fn is_real_time(&self, own: &Source) -> Result<(), NoBound> {
        if own.slots.is_none() && own.at_least() < thread_rank(self.stage.machine.real_time_from) {
            return Err("it is an ordinary thread: of what real-time ones leave, the kernel gives it a share".into());
        }
        Ok(())
    }

    /// A thread has no bound where others that never run are lifted above it.
    pub(super) fn lifted(&self, own: &Source, sources: &[Source]) -> Result<(), NoBound> {
        let machine = &self.stage.machine;
        let is_liftable = is_thread(own.at_least()) && own.slots.is_none();
        if !machine.lifts || !is_liftable || own.at_least() > thread_rank(LIFTED_TO) {
            return Ok(());
        }
        let starves = |source: &&Source| {
            source.work == Work::Endless && source.rank > 0 && source.rank < thread_rank(LIFTED_TO)
        };
        let Some(source) = sources.iter().find(starves) else {
            return Ok(());
        };
        let why = format!(
            "`{}` below it never stops, and is lifted to priority {HIGHEST_VARIABLE} when it starves",
            source.name
        );
        Err(why.into())
    }
}
