//! What a judgement must know of all runs together: what was lost of the evidence, and how much of it was disturbed.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Cause, Quantity, Reason};
use crate::enforce::{Witness, between_looks};
use crate::{Disturbances, Instant, ProcessorId, RunRecord, Span, Whereabouts};

/// More than this share of a run disturbed, or seen by nobody, in parts per million, leaves a verdict inconclusive.
const LIMIT_PPM: u32 = 10_000;

/// Whether a share in parts per million was disturbed, or seen by nobody, of which so much is too much to judge the rest: more than 1 %.
pub const fn is_too_much(ppm: u32) -> bool {
    ppm > LIMIT_PPM
}

/// A part of a whole, in parts per million; nothing of nothing.
pub fn share_ppm(part: u64, whole: u64) -> u32 {
    let ppm = u128::from(part) * 1_000_000;
    let ppm = ppm.checked_div(whole.into()).unwrap_or(0);
    u32::try_from(ppm).unwrap_or(u32::MAX)
}

/// Halts of something: how often it stood still, and for how long together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stood {
    /// How often.
    pub count: u64,
    /// For how long.
    pub total: Span,
}

impl Stood {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.total += other.total;
    }
}

/// What some runs say of themselves: when the machine itself stood still, of what share of them is not judged, and what is missing of the evidence.
///
/// A halt excuses who ran on its processor, or may have ([`Whereabouts`]). So the share is that of the processor that stood still most; where somebody
/// may have been on any of them, as who is held by `SCHED_DEADLINE`, whatever halts of any of them overlap is not judged, and the share is that of all
/// together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Halts {
    by_processor: BTreeMap<ProcessorId, Stood>,
    /// When any of them did.
    together: Stood,
    /// Whether somebody may have been on any of them.
    anywhere: bool,
    wakeups: u64,
    length: Span,
    events_lost: u64,
}

impl Halts {
    /// Those of these runs.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        let mut all = Self::default();
        records.into_iter().for_each(|record| all.add(record));
        all
    }

    fn add(&mut self, record: &RunRecord) {
        // What the machine does once a run is over is none of its time.
        let within = |from: Instant, to: Instant| Stood {
            count: u64::from(from < record.end),
            total: to.min(record.end).saturating_since(from),
        };
        for one in &record.disturbances {
            let stood = self.by_processor.entry(one.processor).or_default();
            stood.add(within(one.from, one.to));
        }
        let any = Disturbances::of_who_ran(record, [Whereabouts::Anywhere]);
        for [from, to] in any.stretches() {
            self.together.add(within(*from, *to));
        }
        self.ran(record.usage.iter().map(|usage| usage.ran));
        self.wakeups += record.witness_wakeups;
        self.length += record.end.saturating_since(record.start);
        self.events_lost += record.events_lost;
    }

    /// In these runs others ran there, beside the program's activities.
    pub fn ran(&mut self, there: impl IntoIterator<Item = Whereabouts>) {
        let mut there = there.into_iter();
        self.anywhere |= there.any(|ran| ran == Whereabouts::Anywhere);
    }

    /// Adds those of other runs.
    pub fn merge(&mut self, other: &Self) {
        for (processor, stood) in &other.by_processor {
            self.by_processor.entry(*processor).or_default().add(*stood);
        }
        self.together.add(other.together);
        self.anywhere |= other.anywhere;
        self.wakeups += other.wakeups;
        self.length += other.length;
        self.events_lost += other.events_lost;
    }

    /// Of each processor that stood still.
    pub fn by_processor(&self) -> impl Iterator<Item = (ProcessorId, Stood)> {
        let all = self.by_processor.iter();
        all.map(|(processor, stood)| (*processor, *stood))
    }

    /// How often the witness woke.
    pub const fn wakeups(&self) -> u64 {
        self.wakeups
    }

    /// The share that is not judged, in parts per million: of the witness's wake-ups, or of the time, whichever is more. `None` where nobody looked.
    pub fn ppm(&self) -> Option<u32> {
        let shares = self.worst().map(|stood| {
            let of_time = share_ppm(stood.total.as_nanos(), self.length.as_nanos());
            // Without a witness no wake-up was late.
            share_ppm(stood.count, self.wakeups).max(of_time)
        });
        let looked = (self.wakeups > 0).then_some(0);
        shares.chain(looked).max()
    }

    /// Each processor by itself, and all together where somebody may have been on any: the worst of these counts.
    fn worst(&self) -> impl Iterator<Item = Stood> {
        let together = self.anywhere.then_some(self.together);
        self.by_processor.values().copied().chain(together)
    }
}

/// What a judgement must know of all runs together, besides what was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunFacts {
    /// Events that did not fit the ring.
    pub events_lost: u64,
    /// The share of the runs that was disturbed, in parts per million ([`Halts::ppm`]).
    pub disturbed_ppm: u32,
    /// The share of the runs that nobody saw, in parts per million.
    pub unseen_ppm: u32,
    /// So long, and no longer, the machine may have stood still without being seen: zero where it cannot, as in the twin, or where nobody looked.
    pub unseen: Span,
}

/// What nobody knows of one component: it leaves open what is judged of that one, and of no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Doubts {
    /// So often somebody may have held a processor where it ran ([`RunRecord::held`]).
    pub held: u64,
    /// The share of the looks for halts that met one where it ran, in parts per million: however long a halt is, it is one.
    pub looks_ppm: u32,
    /// Of what nobody saw whether the machine stood still.
    pub halts_unseen: HaltsUnseen,
    /// What came of work that took longer than was foreseen, while nothing that was promised was missing: these convict nobody.
    pub outgrown: &'static [Quantity],
}

impl Doubts {
    /// What nobody knows of who ran there in these runs.
    pub fn of<'a, W>(runs: impl IntoIterator<Item = (&'a RunRecord, W)>) -> Self
    where
        W: IntoIterator<Item = Whereabouts>,
    {
        let mut all = Self::default();
        let (mut halts, mut looks) = (0, 0);
        for (record, ran) in runs {
            let ran: Vec<Whereabouts> = ran.into_iter().collect();
            all.held += record.held(ran.iter().copied());
            halts += record.halts(ran);
            looks += record.witness_wakeups;
            if record.unwatched {
                all.halts_unseen = HaltsUnseen::All;
            }
        }
        all.looks_ppm = share_ppm(halts, looks);
        all
    }
}

/// Of which values nobody can tell whether halts of the machine made them what they are: these convict nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HaltsUnseen {
    /// Of none: who looks for halts sees them.
    #[default]
    None,
    /// Of these quantities.
    Of(&'static [Quantity]),
    /// Of all: nobody looked.
    All,
}

impl Doubts {
    /// Why these values, or what is summed up of them in windows, convict nobody.
    pub(super) fn left_open(&self, quantity: Quantity) -> Option<Cause> {
        let is_among = |all: &[Quantity]| all.contains(&quantity.of_each());
        let is_unseen = match self.halts_unseen {
            HaltsUnseen::None => false,
            HaltsUnseen::Of(some) => is_among(some),
            HaltsUnseen::All => true,
        };
        if is_unseen {
            Some(Cause::HaltsUnseen)
        } else {
            is_among(self.outgrown).then_some(Cause::Outgrown)
        }
    }
}

impl RunFacts {
    /// The facts of these runs.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        Self::of_halts(&Halts::of(records))
    }

    /// The facts of runs that say this of themselves.
    pub fn of_halts(halts: &Halts) -> Self {
        Self {
            events_lost: halts.events_lost,
            disturbed_ppm: halts.ppm().unwrap_or(0),
            // Events are recorded by who makes them.
            unseen_ppm: 0,
            // A halt that lasts from one look to the next is seen.
            unseen: between_looks(halts.length, halts.wakeups),
        }
    }

    /// Why these runs leave a verdict open; what was disturbed does not where that is `certain` all the same.
    pub(super) fn reasons(&self, certain: bool) -> impl Iterator<Item = Reason> {
        let lost = (self.events_lost > 0).then_some(Cause::EventsLost(self.events_lost));
        let disturbed = self.is_disturbed() && !certain;
        let disturbed = disturbed.then_some(Cause::Disturbed(self.disturbed_ppm));
        let unseen = is_too_much(self.unseen_ppm);
        let unseen = unseen.then_some(Cause::Unseen(self.unseen_ppm));
        let causes = [lost, disturbed, unseen].into_iter().flatten();
        causes.map(Reason::of_the_run)
    }

    /// The same where budgets of `SCHED_DEADLINE` outranked who looks: a halt may then have been `overlooked`, if it was no longer than that.
    /// Nothing changes where nobody looked, or nobody had to, as in the twin.
    #[must_use]
    pub fn beside_budgets(self, overlooked: Span) -> Self {
        match self.unseen.is_zero() {
            true => self,
            false => Self {
                unseen: self.unseen.max(overlooked),
                ..self
            },
        }
    }

    /// Whether halts of a millisecond and more may have gone unseen, as they do [beside budgets](Self::beside_budgets).
    pub(super) fn hides_halts(&self) -> bool {
        self.unseen >= Witness::BESIDE_BUDGETS
    }

    /// Whether so much was disturbed that what does not hold of everything is not judged.
    pub const fn is_disturbed(&self) -> bool {
        is_too_much(self.disturbed_ppm)
    }
}
