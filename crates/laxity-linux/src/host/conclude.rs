//! What a run's grants were worth, and what excuses it: the witness's late wake-ups weighed by who was seen, and the grade of each grant as
//! of its worst moment.

mod alone;
mod crawling;
mod finding;
mod strangers;

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::enforce::{Holder, WITNESS_ACTIVITY, Witness, ranks};
use laxity_model::request::Strangers;
use laxity_model::verify::contract::not_the_kernels;
use laxity_model::{
    Disturbance, Disturbances, Enforcer, Event, EventKind, Grade, Instant, ProcessorId, Span,
    Whereabouts,
};

use super::lookout::Seen;
use super::sighting::Sighting;
use crate::doctor::outranking::is_above_slots;
use crate::run::own::Role;
pub(super) use finding::Granted;
use finding::{Finding, Slots};

/// What is known of a run besides its events.
pub(super) struct Evidence<'a> {
    pub(super) start: Instant,
    /// The kernel's number of each processor on which something of the program may have been.
    pub(super) cpus: Vec<usize>,
    /// On so many of them, the program's own, there may have been slots: the first.
    pub(super) with_slots: usize,
    /// For how long the program itself may hold it, by whomever it has there whom neither the witness nor the dispatcher outranks.
    pub(super) own: Vec<Span>,
    /// The witnesses; of where there is none the dispatcher alone tells.
    pub(super) witnesses: Vec<Witness>,
    /// When [they woke late](witnessed) by what was concluded from just before: a dispatcher records the same halt after its witness.
    pub(super) before: &'a [Disturbance],
    /// What [was held by nobody who was found](Conclusion::unfound) then, as far back as that is added up.
    pub(super) unfound: &'a [Disturbance],
    /// What [others held](Conclusion::held) then, as far back.
    pub(super) held: &'a [Disturbance],
    /// Since when what was granted is over, where the last look comes later: who is seen then for the first time may have come since.
    pub(super) over: Option<Instant>,
    /// Whether the kernel told how long the witness waited; `None` without a witness.
    pub(super) tells: Option<bool>,
    pub(super) seen: &'a Seen,
}

/// What a late wake-up was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weighed {
    /// A standstill, or that somebody held the processor.
    As(EventKind),
    /// Nobody was found, and it passes for the kernel's own work: a standstill, unless there is too much of it.
    Kernels,
    /// Nobody knows whether it was somebody's or the machine's own doing: it excuses, and is told.
    Doubtful,
    /// Who recorded it was no witness any more.
    Nothing,
}

/// What came of it.
pub(super) struct Conclusion {
    pub(super) disturbances: Vec<Disturbance>,
    /// When one crawled, of them.
    pub(super) crawled: Vec<Disturbance>,
    /// Those that may have been somebody's doing.
    pub(super) doubts: Vec<Disturbance>,
    /// What passes for the kernel's own work if there is not too much of it, and did just before, in order and apart.
    pub(super) unfound: Vec<Disturbance>,
    /// What others than the program held, and did just before: in what crawled meanwhile that is theirs.
    pub(super) held: Vec<Disturbance>,
    findings: Vec<Finding>,
    /// What is to be known of slots on a processor, and is not against them.
    spared: Vec<(usize, String)>,
    notices: Vec<String>,
}

/// Weighs what was seen. An event of the witness that turns out to be the machine's own doing becomes a disturbance; one whose witness was
/// none any more goes.
pub(super) fn conclude(events: &mut Vec<Event>, evidence: &Evidence<'_>) -> Conclusion {
    let (mut findings, mut spared) = (Vec::new(), Vec::new());
    evidence.late_alone(events, &mut findings);
    let of_ours = |event: &&Event| event.kind == EventKind::Stopped;
    // Several who watch saw the same.
    let ours = Disturbance::joined(events.iter().filter(of_ours).map(Disturbance::of));
    // Our own process is stopped as a whole, and the machine is not.
    let stops = Disturbances::bearing_on(&ours, [Whereabouts::Anywhere]);
    let (mut doubtful, mut unfound) = (Vec::new(), evidence.unfound.to_vec());
    events.retain_mut(|event| {
        let weighed = evidence.weigh(event, &stops);
        match weighed {
            Weighed::As(kind) => event.kind = kind,
            Weighed::Kernels => {
                event.kind = EventKind::Disturbed;
                unfound.push(Disturbance::of(event));
            }
            Weighed::Doubtful => {
                event.kind = EventKind::Disturbed;
                doubtful.push(Disturbance::of(event));
            }
            Weighed::Nothing => {}
        }
        weighed != Weighed::Nothing
    });
    let held = crawling::cut(events, evidence);
    let [doubtful, unfound] = [doubtful, unfound].map(Disturbance::joined);
    let all = 0..evidence.cpus.len();
    let too_much = all.flat_map(|processor| not_the_kernels(&on(processor, &unfound)));
    let too_much: Vec<Disturbance> = too_much.collect();
    let of_kind = |kind| {
        let all = events.iter().filter(move |event| event.kind == kind);
        all.map(Disturbance::of)
    };
    let crawled = Disturbance::joined(of_kind(EventKind::Crawled));
    let still = of_kind(EventKind::Disturbed);
    let disturbances = Disturbance::joined(still.chain(crawled.iter().copied()));
    let own = evidence.cpus.iter().take(evidence.with_slots);
    for (processor, cpu) in own.enumerate() {
        evidence.strangers(processor, &mut findings);
        spared.extend(evidence.spared(*cpu).map(|text| (*cpu, text)));
        evidence.holds(processor, events, &mut findings);
        evidence.doubts(processor, (&doubtful, &stops), &mut findings);
        evidence.adds_up(*cpu, &on(processor, &too_much), &mut findings);
    }
    evidence.tampered(&mut findings);
    let untold = "the kernel does not tell how long threads wait (/proc/thread-self/schedstat): whatever delayed the witness is judged, for it may have been somebody";
    let untold = (evidence.tells == Some(false)).then(|| untold.to_owned());
    Conclusion {
        disturbances,
        crawled,
        doubts: Disturbance::joined(doubtful.into_iter().chain(too_much)),
        unfound,
        held,
        findings,
        spared,
        notices: untold
            .into_iter()
            .chain(evidence.stops(&ours))
            .chain(evidence.seen.guardian.clone())
            .collect(),
    }
}

/// Whether somebody woke late.
pub(super) const fn is_late(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::Disturbed | EventKind::Held | EventKind::Stopped
    )
}

/// When witnesses woke late.
pub(super) fn witnessed(events: &[Event]) -> impl Iterator<Item = Disturbance> + '_ {
    let of_witness = |event: &&Event| is_late(event) && event.activity == WITNESS_ACTIVITY;
    events.iter().filter(of_witness).map(Disturbance::of)
}

/// Those of one processor.
fn on(processor: usize, all: &[Disturbance]) -> Vec<Disturbance> {
    let is_here = |one: &&Disturbance| one.processor.index() == processor;
    all.iter().filter(is_here).copied().collect()
}

/// To whole multiples of a grain.
fn rounded(span: Span, grain: Span) -> Span {
    grain * ((span + grain / 2) / grain)
}

/// How finely lengths are told, and how finely instants.
const TENTH: Span = Span::from_micros(100);
const MILLISECOND: Span = Span::from_millis(1);

impl Evidence<'_> {
    fn cpu(&self, processor: ProcessorId) -> usize {
        self.cpus
            .get(processor.index())
            .copied()
            .unwrap_or(usize::MAX)
    }

    fn seen_at(&self, at: Option<Instant>) -> String {
        at.map_or_else(
            || "there from the start".to_owned(),
            |at| format!("seen {}", self.after_the_start(at)),
        )
    }

    fn after_the_start(&self, at: Instant) -> String {
        let after = rounded(at.saturating_since(self.start), MILLISECOND);
        format!("{after} after the start")
    }

    /// How often something was, for how long at most, and when first; of one at least.
    fn often(&self, all: &[Disturbance]) -> String {
        let longest = all.iter().map(|one| one.length()).max().unwrap_or_default();
        let long = rounded(longest, TENTH);
        let first = all.first().map_or(self.start, |first| first.from);
        let first = self.after_the_start(first);
        match all.len() {
            1 => format!("for {long}, {first}"),
            times => format!("{times} times, for {long} at most, first {first}"),
        }
    }

    /// Whether who recorded it may have been no witness any more.
    fn is_untrue(&self, event: &Event) -> bool {
        let (late, cpu) = (Disturbance::of(event), self.cpu(event.processor));
        self.seen.tampered.iter().any(|tampered| {
            let changed = &tampered.changed;
            let watches = matches!(changed.role, Role::Dispatcher | Role::Witness);
            watches && changed.cpu == cpu && late.to > tampered.sound_until
        })
    }

    /// What a late wake-up was, now that everybody was looked for; anything else is what it was recorded as.
    fn weigh(&self, event: &Event, stops: &Disturbances) -> Weighed {
        let (late, cpu) = (Disturbance::of(event), self.cpu(event.processor));
        if !is_late(event) {
            return Weighed::As(event.kind);
        }
        if self.is_untrue(event) {
            return Weighed::Nothing;
        }
        if stops.overlap(late.from, late.to) {
            return Weighed::Doubtful;
        }
        if event.kind == EventKind::Disturbed || self.tells != Some(true) {
            return Weighed::As(event.kind);
        }
        let is_known = self.may_be_own(late)
            || self.seen.unseen.is_some()
            || self.suspects(cpu).next().is_some();
        match Holder::of(late, is_known) {
            Holder::Known => Weighed::As(EventKind::Held),
            Holder::Kernel => Weighed::Kernels,
            Holder::Unknown => Weighed::Doubtful,
        }
    }

    /// That our own process was stopped, by what one of those who watch saw of it.
    fn stops(&self, ours: &[Disturbance]) -> Option<String> {
        let one = ours.first()?.processor;
        let often = self.often(&on(one.index(), ours));
        let told = "what was late then says nothing of the machine";
        Some(format!(
            "somebody stopped laxity itself, which stood still {often}: {told}"
        ))
    }

    /// Whether the program itself can have held a processor for so long.
    fn may_be_own(&self, held: Disturbance) -> bool {
        let own = self.own.get(held.processor.index());
        own.is_some_and(|own| held.length() <= *own)
    }

    /// The strangers that could have held up the witness, or the dispatcher, and did not sleep all the time.
    fn suspects(&self, cpu: usize) -> impl Iterator<Item = &Sighting> {
        let strangers = self.seen.strangers.iter();
        strangers
            .filter(move |seen| {
                !seen.is_idle(cpu) && seen.thread.outranks(ranks::DISPATCHER - 1, cpu)
            })
            .filter(|seen| self.came_in_time(seen))
    }

    /// Whether it is known to have come before all was over.
    fn came_in_time(&self, seen: &Sighting) -> bool {
        let late = seen.at.zip(self.over);
        late.is_none_or(|(at, over)| at <= over)
    }

    /// The strangers above the slots of a processor.
    fn above(&self, cpu: usize) -> impl Iterator<Item = &Sighting> {
        let strangers = self.seen.strangers.iter();
        strangers.filter(move |seen| is_above_slots(&seen.thread, cpu))
    }

    /// Of each that slept all the time, that it did.
    fn spared(&self, cpu: usize) -> impl Iterator<Item = String> {
        let name = Sighting::name;
        let (idle, busy): (Vec<_>, Vec<_>) = self.above(cpu).partition(|seen| seen.is_idle(cpu));
        let (mut idle, busy): (BTreeSet<_>, BTreeSet<_>) = (
            idle.into_iter().map(name).collect(),
            busy.into_iter().map(name).collect(),
        );
        idle.retain(|name| !busy.contains(name));
        idle.into_iter().map(move |named| {
            format!(
                "{named} ranks above the slots of processor {cpu}, and was seen to take nothing from them: it never ran for {}",
                Strangers::UNNOTICED
            )
        })
    }

    /// Each by its name and since when, once.
    fn named<'b>(&self, all: impl Iterator<Item = &'b Sighting>) -> String {
        let mut told: BTreeMap<String, String> = BTreeMap::new();
        for seen in all {
            // All threads of another laxity have one name.
            let named = told.entry(seen.name());
            named.or_insert_with(|| self.seen_at(seen.at));
        }
        let told = told.iter().map(|(named, at)| format!("{named}, {at}"));
        told.collect::<Vec<_>>().join("; ")
    }

    /// That somebody held up the witness or the dispatcher of a processor.
    fn holds(&self, processor: usize, events: &[Event], findings: &mut Vec<Finding>) {
        let cpu = self.cpus[processor];
        let is_here =
            |event: &&Event| event.kind == EventKind::Held && event.processor.index() == processor;
        let held: Vec<Disturbance> = events.iter().filter(is_here).map(Disturbance::of).collect();
        if held.is_empty() || self.tells != Some(true) {
            return;
        }
        let often = self.often(&held);
        let is_suspected = self.suspects(cpu).any(|one| !one.is_beside());
        let finding = if is_suspected || self.seen.unseen.is_some() {
            Finding::against_slots(cpu, format!("processor {cpu} was held {often}"))
        } else {
            // What the program itself has there was admitted, or is named for it.
            let text = format!("the program itself held processor {cpu} {often}");
            Finding {
                slots: Slots::None,
                ..Finding::against_slots(cpu, text)
            }
        };
        findings.push(finding);
    }

    /// That a processor was held, and nobody was there who could have done it, or that our own threads were stopped.
    fn doubts(
        &self,
        processor: usize,
        (doubtful, stops): (&[Disturbance], &Disturbances),
        findings: &mut Vec<Finding>,
    ) {
        let here = on(processor, doubtful).into_iter();
        let (ours, here): (Vec<_>, Vec<_>) =
            here.partition(|held| stops.overlap(held.from, held.to));
        if !ours.is_empty() {
            let (cpu, often) = (self.cpus[processor], self.often(&ours));
            let reason = format!(
                "somebody stopped laxity itself: its threads of processor {cpu} stood still {often}"
            );
            findings.push(Finding {
                slots: Slots::OnAndByDeadline(cpu),
                ..Finding::of_doubt(cpu, reason)
            });
        }
        if !here.is_empty() {
            let (cpu, often) = (self.cpus[processor], self.often(&here));
            let reason = format!(
                "processor {cpu} was held {often}, and nobody was found who could: somebody who has gone, the kernel in a system call that nothing preempts, or what it keeps for ordinary work that had waited for most of a second"
            );
            findings.push(Finding::of_doubt(cpu, reason));
        }
    }

    /// That each of these alone would pass for the kernel's own work, and all of them do not.
    fn adds_up(&self, cpu: usize, too_much: &[Disturbance], findings: &mut Vec<Finding>) {
        if too_much.is_empty() {
            return;
        }
        let all: Span = too_much.iter().map(|one| one.length()).sum();
        let (often, all) = (self.often(too_much), rounded(all, TENTH));
        let reason = format!(
            "processor {cpu} was held {often}, {all} in all, and nobody was found who could: what is more than 1 % of a second is not taken for the kernel's own work, but may be that of somebody who comes and goes, or the program's own, where it outranks its slots"
        );
        findings.push(Finding::of_doubt(cpu, reason));
    }

    fn tampered(&self, findings: &mut Vec<Finding>) {
        for tampered in &self.seen.tampered {
            let changed = &tampered.changed;
            let reason = format!(
                "{}, seen {}",
                changed.what,
                self.after_the_start(tampered.at)
            );
            let above = changed.policy.outranks(ranks::BELOW_OCCUPANT);
            let on = Slots::On(changed.cpu);
            let (slots, holder) = match changed.role {
                Role::Dispatcher | Role::Witness => (on, None),
                // Wherever there are slots, somebody may have outranked them since.
                Role::Lookout => (Slots::All, None),
                Role::Activity(id) => (if above { on } else { Slots::None }, Some(id)),
            };
            findings.push(Finding {
                slots,
                holder,
                only_there: false,
                grade: Grade::Unenforced { reason },
                without_slots: None,
            });
        }
    }
}

impl Conclusion {
    /// What a grant was worth that was admitted with this grade: no more than at its worst moment.
    pub(super) fn grade(&self, admitted: Grade, granted: Granted) -> Grade {
        let against = self.findings.iter();
        let against = against.filter(|finding| finding.is_against(granted));
        against.fold(admitted, |grade, finding| grade.and(&finding.grade))
    }

    /// Where these were granted, what of [`Self::notices`] others than the program could have taken from what had no grant, or did.
    pub(super) fn outranked(&self, granted: &[Granted]) -> Vec<String> {
        let findings = self.findings.iter();
        let of_others = findings.filter(|one| one.is_of_others() && one.is_against_none(granted));
        let reasons = of_others.filter_map(Finding::against_none);
        reasons.map(str::to_owned).collect()
    }

    /// What else is to be told, where these were granted: what is against no grant, and who could have taken from slots and did not.
    pub(super) fn notices(self, granted: &[Granted]) -> Vec<String> {
        let mut findings = self.findings;
        findings.retain(|finding| finding.is_against_none(granted));
        let untold = findings.iter().filter_map(Finding::against_none);
        let untold: Vec<String> = untold.map(str::to_owned).collect();
        let has_slots = |cpu| {
            let mut all = granted.iter();
            all.any(|(enforcer, _, on)| *enforcer == Enforcer::Slots && *on == cpu)
        };
        let mut spared = self.spared;
        spared.retain(|(cpu, _)| has_slots(*cpu));
        let spared = spared.into_iter().map(|(_, text)| text);
        self.notices
            .into_iter()
            .chain(untold)
            .chain(spared)
            .collect()
    }
}

#[cfg(test)]
mod tests;
