//! The order in which upcalls take turns, quantum by quantum, is on every host that which a list of their releases gives. So two hosts agree with each other, too.

use crate::executors::executor;
use crate::stage::{Stage, at, marks};
use crate::upcalls::{units, upcall};
use crate::{Failure, Result, Tolerance, ensure};
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::{Call, First, Timing};
use laxity_model::{Context, Host, Instant, Service, Span, Step};

/// An upcall, in milliseconds; a unit takes one.
#[derive(Clone, Copy)]
struct Member {
    period: u64,
    phase: u64,
    batch: u64,
    quantum: u64,
}

const fn member(period: u64, phase: u64, batch: u64, quantum: u64) -> Member {
    Member {
        period,
        phase,
        batch,
        quantum,
    }
}

/// Found by trial: two of one rate, each of which goes on before the other after it has yielded; and no release is nearer to the end of a quantum than 2 ms, so that what is late by less changes no order.
const MEMBERS: [Member; 4] = [
    member(20, 4, 3, 3),
    member(60, 33, 7, 3),
    member(120, 24, 20, 4),
    member(120, 25, 11, 5),
];
/// All periods divide it, and at its end nobody is left.
const WINDOW: u64 = 120;
const WINDOWS: u64 = 5;
/// Before the first, until all have begun.
const LEAD: u64 = 100;

/// Whoever ended a stretch of work no later than this was held up by nothing that changes an order.
const LATE: Span = Span::from_micros(1_500);

/// A quantum.
#[derive(Clone, Copy)]
struct Turn {
    /// Whose, at which of its calls, and how many units were done before.
    what: [u64; 3],
    units: u64,
    /// Since its window began.
    ends: Span,
    /// Whether a release before it came to nothing.
    missed: bool,
}

impl Turn {
    /// As it is told.
    const fn codes(&self) -> [u64; 2] {
        let [who, call, done] = self.what;
        let missed = if self.missed { 1_000 } else { 0 };
        [(who * 1_000 + call) * 1_000 + done, missed + self.units]
    }

    fn told([code, units]: [u64; 2], at: Instant, epoch: Instant) -> (u64, Self) {
        let (who, call, done) = (code / 1_000_000, code / 1_000 % 1_000, code % 1_000);
        let calls = WINDOW / MEMBERS[who as usize].period;
        let window = call / calls;
        let (missed, units) = (units >= 1_000, units % 1_000);
        let from = epoch + Span::from_millis(LEAD + window * WINDOW);
        let turn = Self {
            what: [who, call % calls, done],
            units,
            ends: (at + Span::from_millis(units)).saturating_since(from),
            missed,
        };
        (window, turn)
    }
}

/// What a window must be, from the releases alone: whoever has the shortest period goes first, among equals who was released first; it does a quantum, and goes on unless somebody of a shorter period has come.
fn expected() -> Vec<Turn> {
    let mut open: Vec<(u64, [u64; 3])> = Vec::new();
    for (who, member) in (0..).zip(MEMBERS) {
        let calls = 0..WINDOW / member.period;
        let release = |call| member.phase + call * member.period;
        open.extend(calls.map(|call| (release(call), [who, call, 0])));
    }
    let (mut turns, mut now) = (Vec::new(), 0);
    while let Some(soonest) = open.iter().map(|(release, _)| *release).min() {
        now = now.max(soonest);
        let rank = |(release, [who, ..]): &(u64, [u64; 3])| {
            let is_released = *release <= now;
            (!is_released, MEMBERS[*who as usize].period, *release)
        };
        open.sort_by_key(rank);
        let what = open[0].1;
        let Member { batch, quantum, .. } = MEMBERS[what[0] as usize];
        let units = quantum.min(batch - what[2]);
        now += units;
        turns.push(Turn {
            what,
            units,
            ends: Span::from_millis(now),
            missed: false,
        });
        open[0].1[2] += units;
        open.retain(|(_, [who, _, done])| *done < MEMBERS[*who as usize].batch);
    }
    turns
}

/// Whether somebody was late. What is done without a pause ends at one instant in whatever order it is done, so that an order is told from a delay: as much work as goes before each end must have ended then.
fn is_late(turns: &[Turn], expected: &[Turn]) -> bool {
    let ends = |turns: &[Turn]| {
        let ends = turns.iter().scan(0, |done, turn| {
            *done += turn.units;
            Some((*done, turn.ends))
        });
        ends.collect::<Vec<(u64, Span)>>()
    };
    let had = ends(turns);
    let is_held_up = |(done, end): &(u64, Span)| {
        let found = had.iter().find(|(so_far, _)| so_far >= done);
        // Of more than that the rest ended later.
        found.is_some_and(|(so_far, at)| {
            let more = Span::from_millis(so_far - done);
            *at > *end + more + LATE
        })
    };
    ends(expected).iter().any(is_held_up) || turns.iter().any(|turn| turn.missed)
}

/// One window is as another, so each is held against one list; but those in which somebody was late.
fn judge(windows: &[Vec<Turn>]) -> Result {
    let expected = expected();
    let codes = |turns: &[Turn]| turns.iter().map(Turn::codes).collect::<Vec<_>>();
    let mut late = 0;
    for (number, turns) in windows.iter().enumerate() {
        if is_late(turns, &expected) {
            late += 1;
            continue;
        }
        ensure!(
            codes(turns) == codes(&expected),
            "window {number} of {WINDOWS}, {late} before it late: {:?} instead of {:?}",
            codes(turns),
            codes(&expected)
        );
    }
    if late == windows.len() {
        return Err(Failure::Disturbed {
            disturbed: late,
            periods: windows.len(),
        });
    }
    Ok(())
}

/// Upcalls take turns in one order, quantum by quantum.
pub(crate) fn upcalls_take_turns(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let turns = stage.program.mark("turns");
    let executor = executor(&mut stage.program, Rmdp::new());
    let (mut cues, mut begun) = (Vec::new(), Vec::new());
    for (who, member) in (0..).zip(MEMBERS) {
        let phase = Span::from_millis(LEAD + member.phase);
        let timing = Timing {
            first: First::After(stage.program.epoch.clone(), phase),
            batch: units(member.batch as u32),
            quantum: units(member.quantum as u32),
            ..Timing::each(Span::from_millis(member.period))
        };
        let mut first = None;
        let work = move |context: &mut dyn Context, call: &mut Call| {
            let release = call.paced.release;
            let since = release.saturating_since(*first.get_or_insert(release));
            let number = since.as_nanos() / Span::from_millis(member.period).as_nanos();
            let turn = Turn {
                what: [who, number, call.done().into()],
                units: call.now().into(),
                ends: Span::ZERO,
                missed: call.paced.missed > 0,
            };
            context.mark(turns, turn.codes());
            Step::Burn(Service::from_millis(call.now().into()))
        };
        let calls = WINDOWS * WINDOW / member.period;
        let place = (executor, member.period);
        let (cue, begins) = upcall(&mut stage, place, (timing, calls), work);
        cues.push(cue);
        begun.push((begins, phase));
    }
    let play = stage.play(host, &cues)?;
    let first = begun.first().and_then(|(begins, phase)| {
        let [release, _] = *marks(&play.record, *begins).first()?;
        Some(at(release).saturating_sub(*phase))
    });
    let epoch = first.ok_or_else(|| Failure::Wrong("nobody was called".to_owned()))?;
    let mut windows = vec![Vec::new(); WINDOWS as usize];
    for event in play.record.marked(turns) {
        let (window, turn) = Turn::told(event.args, event.at, epoch);
        // A call that was missed puts others off, beyond the last.
        if let Some(turns) = windows.get_mut(window as usize) {
            turns.push(turn);
        }
    }
    judge(&windows)
}
