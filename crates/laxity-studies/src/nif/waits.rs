//! What is shown of waits: behind others' packets, beside them, and for the wire.

use laxity_lab::bench::{Draft, Holes, Made};
use laxity_lab::report::{Origin, Row, fixed};
use laxity_model::Span;

use super::{Nif, Run, Seen, TEXT, behind, outbound};
use crate::or;
use crate::spread::Spread;

/// So many times longer a packet has to wait in BSD's way, behind the most.
const BEHIND: u64 = 8;
/// And a job of the task, beside the most.
const BESIDE: u64 = 2;
/// And a frame of video that leaves in its turn.
const OUTBOUND: u64 = 4;

type Trial = (Run, Seen);

/// Both hosts, with the runs of each.
fn hosts<'a>(made: &'a Made<'a, Nif>) -> [(&'static str, &'a [Trial]); 2] {
    [("twin-host", &made.twin), ("here-host", &made.live)]
}

/// All of these in words, by thousandths of a millisecond: the median, and between what they lie.
fn words(all: Option<Spread>) -> Option<String> {
    let spread = all?.briefly(|nanos| fixed(nanos / 1_000, 1_000, 3));
    Some(format!("{spread} ms"))
}

fn spread<'a>(all: impl Iterator<Item = &'a Span>) -> Option<Spread> {
    Spread::of(all.map(|span| Some(span.as_nanos())))
}

fn times(less: Option<Spread>, more: Option<Spread>) -> Option<u64> {
    let (less, more) = (less?.median, more?.median);
    (more * 10).checked_div(less)
}

fn tenths(times: Option<u64>) -> String {
    or(times.map(|times| fixed(times, 10, 1)), "nothing was seen")
}

/// A cell of each host.
fn cells(of: impl Fn(&[Trial]) -> Option<Spread>, made: &Made<'_, Nif>) -> [Option<String>; 2] {
    hosts(made).map(|(_, trials)| words(of(trials)))
}

fn with(mut row: Row, cells: [Option<String>; 2]) -> Row {
    let [twin, here] = cells;
    row.push(twin.and_then(|twin| Origin::Simulated.cell(twin)));
    row.push(here.and_then(|here| Origin::Measured.cell(here)));
    row
}

/// What was seen behind so many packets, in this way: of each run what `of` takes of it.
fn behind_of(
    trials: &[Trial],
    (queued, is_bsd): (u64, bool),
    of: fn(&behind::Seen) -> &[Span],
) -> Option<Spread> {
    let own = trials.iter().filter_map(|trial| match trial {
        (Run::Behind(case), Seen::Behind(seen)) => {
            ((case.queued, case.is_bsd) == (queued, is_bsd)).then_some(seen)
        }
        _ => None,
    });
    spread(own.flat_map(of))
}

/// What was seen of frames of video that left in this order.
fn outbound_of(trials: &[Trial], by_priority: bool) -> Option<Spread> {
    let own = trials.iter().filter_map(|trial| match trial {
        (Run::Outbound(case), Seen::Outbound(seen)) => {
            (case.by_priority == by_priority).then_some(seen)
        }
        _ => None,
    });
    spread(own.flatten())
}

const WAITED: fn(&behind::Seen) -> &[Span] = |seen| &seen.waited;
const LONGEST: fn(&behind::Seen) -> &[Span] = |seen| &seen.longest;

/// Draws both figures, as far as anything of them was run.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Nif>) {
    let both = behind::QUEUED.map(|queued| [false, true].map(|is_bsd| (queued, is_bsd)));
    let rows = both.into_iter().flatten().map(|which| {
        let way = if which.1 { "bsd-behind" } else { "own-behind" };
        let row = Origin::Charged.row([which.0.into(), TEXT.say(way, &[]).into()]);
        let row = with(row, cells(|all| behind_of(all, which, WAITED), made));
        with(row, cells(|all| behind_of(all, which, LONGEST), made))
    });
    let is_run = |of: fn(&Run) -> bool| {
        let mut all = made.twin.iter().chain(&made.live);
        all.any(|(run, _)| of(run))
    };
    if is_run(|run| matches!(run, Run::Behind(_))) {
        draft.table("behind", "behind", &[], rows);
    }
    let rows = [false, true].map(|by_priority| {
        let way = if by_priority {
            "by-priority"
        } else {
            "in-turn"
        };
        let row = Origin::Charged.row([TEXT.say(way, &[]).into()]);
        with(row, cells(|all| outbound_of(all, by_priority), made))
    });
    if is_run(|run| matches!(run, Run::Outbound(_))) {
        draft.table("outbound", "outbound", &[], rows);
    }
    for (host, trials) in hosts(made) {
        claim_behind(draft, made, (host, trials));
        claim_outbound(draft, made, (host, trials));
    }
}

/// A claim of the twin, or of the live runs of this kind, which stays open where something never came, and in the twin is none.
fn claim(
    draft: &mut Draft<'_>,
    (made, (host, trials)): (&Made<'_, Nif>, (&str, &[Trial])),
    (key, holds): (&str, bool),
    holes: Holes<'_>,
    is_read: fn(&Run) -> bool,
) {
    let never_came = never_came(trials, is_read);
    match host {
        "twin-host" => draft.claim(key, holds && never_came.is_none(), holes),
        _ => {
            let said = made.said(is_read).but(never_came);
            draft.claim_here(key, (holds, false), holes, &said);
        }
    }
}

/// That packets or frames never came whose waits should have been seen, if so: these may be the longest of all.
fn never_came(trials: &[Trial], is_read: fn(&Run) -> bool) -> Option<String> {
    let read = trials.iter().filter(|(run, _)| is_read(run));
    let (mut missing, mut all) = (0, 0);
    for trial in read {
        let (sent, came) = match trial {
            (Run::Behind(case), Seen::Behind(seen)) => (case.bursts, seen.waited.len()),
            (Run::Outbound(case), Seen::Outbound(seen)) => (case.frames, seen.len()),
            _ => continue,
        };
        missing += sent.saturating_sub(came as u64);
        all += sent;
    }
    let holes: Holes<'_> = &[("missing", &missing), ("all", &all)];
    (missing > 0).then(|| TEXT.say("never-came", holes))
}

fn claim_behind(
    draft: &mut Draft<'_>,
    made: &Made<'_, Nif>,
    (host, trials): (&'static str, &[Trial]),
) {
    let [.., most] = behind::QUEUED;
    let of = |is_bsd, what| behind_of(trials, (most, is_bsd), what);
    let (waited, longest) = (
        [of(false, WAITED), of(true, WAITED)],
        [of(false, LONGEST), of(true, LONGEST)],
    );
    if [waited, longest].concat().iter().all(Option::is_none) {
        return;
    }
    let behind = times(waited[0], waited[1]);
    let beside = times(longest[0], longest[1]);
    let holes: Holes<'_> = &[
        ("host", &TEXT.say(host, &[])),
        ("most", &most),
        ("behind", &BEHIND),
        ("beside", &BESIDE),
        ("behind-times", &tenths(behind)),
        ("beside-times", &tenths(beside)),
    ];
    let is_it = |run: &Run| matches!(run, Run::Behind(_));
    let holds = |times: Option<u64>, least| times.is_some_and(|times| times >= least * 10);
    let both = [
        ("behind", holds(behind, BEHIND)),
        ("beside", holds(beside, BESIDE)),
    ];
    for one in both {
        claim(draft, (made, (host, trials)), one, holes, is_it);
    }
}

fn claim_outbound(
    draft: &mut Draft<'_>,
    made: &Made<'_, Nif>,
    (host, trials): (&'static str, &[Trial]),
) {
    let [turn, first] = [false, true].map(|by_priority| outbound_of(trials, by_priority));
    if turn.is_none() && first.is_none() {
        return;
    }
    let (longer, bound) = (times(first, turn), outbound::bound());
    // Of this machine all that is said of the longest is how long it stood still.
    let at_most = first.map(|first| match host {
        "twin-host" => first.most,
        _ => first.median,
    });
    let millis = |nanos: u64| format!("{} ms", fixed(nanos / 1_000, 1_000, 3));
    let which = TEXT.say(&format!("{host}-frames"), &[]);
    let holes: Holes<'_> = &[
        ("host", &TEXT.say(host, &[])),
        ("outbound", &OUTBOUND),
        ("times", &tenths(longer)),
        ("which", &which),
        ("bound", &millis(bound.as_nanos())),
        ("seen", &or(at_most.map(millis), "nothing was seen")),
    ];
    let is_it = |run: &Run| matches!(run, Run::Outbound(_));
    let is_longer = longer.is_some_and(|times| times >= OUTBOUND * 10);
    let is_bounded = at_most.is_some_and(|nanos| nanos <= bound.as_nanos());
    for one in [("outbound", is_longer), ("outbound-bound", is_bounded)] {
        claim(draft, (made, (host, trials)), one, holes, is_it);
    }
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::{Request, judge};

    use super::*;
    use crate::disturbed;

    /// What is held of outbound video of which all frames came in time that came, and so many did.
    fn held(came: u64, is_live: bool) -> Vec<Option<bool>> {
        let request = Request::default();
        let mut made = Made::nothing(&request);
        let runs = outbound::cases(&request, is_live).map(|case| {
            let took = Span::from_millis(if case.by_priority { 1 } else { 40 });
            let seen = vec![took; case.frames.min(came) as usize];
            (Run::Outbound(case), Seen::Outbound(seen))
        });
        if is_live {
            made.live = runs.collect();
            made.said = made.live.iter().map(|_| disturbed(0)).collect();
        } else {
            made.twin = runs.collect();
        }
        let report = judge(&Nif, &made).expect("it is judged");
        report.checks.iter().map(|check| check.held).collect()
    }

    #[test]
    fn frames_that_never_came_were_not_in_time() {
        for is_live in [false, true] {
            assert_eq!(held(u64::MAX, is_live), [Some(true); 2]);
        }
        assert_eq!(held(70, false), [Some(false); 2]);
        assert_eq!(held(70, true), [None; 2]);
    }
}
