//! What is shown of the flagship: one row for whoever carries, over what, and beside what.

use laxity_lab::bench::Draft;
use laxity_lab::report::{Origin, Row, fixed};
use laxity_model::Span;

use super::super::TEXT;
use super::claims::{Runs, Says};
use super::judge::Judged;
use super::{Beside, Case, Outcome, Seen};
use crate::or;
use crate::spread::Spread;
use laxity::net::world::{Between, Queues};

/// The figure.
pub(in super::super) const FIGURE: &str = "flagship";

/// How its links' frames wait, in words.
fn queues(queues: Queues) -> String {
    let key = match queues {
        Queues::Fifo => "fifo",
        Queues::Fair => "fair",
        Queues::Class => "class",
        Queues::Node => "node",
    };
    TEXT.say(key, &[])
}

fn between(between: Between) -> String {
    match between {
        Between::Wire => TEXT.say("wire", &[]),
        Between::Switch => TEXT.say("switch", &[]),
        Between::Relays(relays) => TEXT.say("relays", &[("relays", &relays)]),
    }
}

pub(super) fn beside(beside: Beside) -> String {
    let key = match beside {
        Beside::Udp => "beside-udp",
        Beside::Tcp => "beside-tcp",
        Beside::Own => "beside-own",
    };
    TEXT.say(key, &[])
}

/// A run, for progress and errors.
pub(in super::super) fn name(case: &Case) -> String {
    let [way, over, load] = [
        queues(case.queues),
        between(case.between),
        beside(case.beside),
    ];
    let who = TEXT.say(case.who.key(), &[]);
    format!("{who}, {way}, {over}, {load}")
}

/// All runs of one case, in order of its first.
fn rows(trials: &[(Case, Seen)]) -> Vec<Row> {
    let mut cases: Vec<Case> = Vec::new();
    for (case, _) in trials {
        if !cases.contains(case) {
            cases.push(*case);
        }
    }
    let row = |case: &Case| {
        let own = trials.iter().filter(|(of, _)| of == case);
        let ran = own.filter_map(|(_, seen)| match seen {
            Seen::Ran(outcome) => Some(**outcome),
            Seen::Missing(_) | Seen::Failed(_) => None,
        });
        row(case, &ran.collect::<Vec<_>>())
    };
    cases.iter().filter_map(row).collect()
}

/// `None` where it never ran, of which another sentence tells.
fn row(case: &Case, ran: &[Outcome]) -> Option<Row> {
    let [control, video] = [0, 1].map(|flow| move |outcome: &Outcome| outcome.flows[flow]);
    let [calm, calm_video] = [0, 1].map(|flow| move |outcome: &Outcome| outcome.undisturbed[flow]);
    let spread = |of: &dyn Fn(&Outcome) -> Option<u64>| Spread::of(ran.iter().map(of));
    let latency = |flow: &dyn Fn(&Outcome) -> Judged, place: usize| {
        let nanos = |outcome: &Outcome| Some(flow(outcome).latency?[place].as_nanos());
        let words = |nanos| {
            Span::from_nanos(nanos)
                .rounded(Span::from_micros(1))
                .to_string()
        };
        or(spread(&nanos).map(|all| all.briefly(words)), "–")
    };
    let count = |flow: &dyn Fn(&Outcome) -> Judged, of: fn(&Judged) -> u64| {
        let all = spread(&|outcome| Some(of(&flow(outcome))));
        or(all.map(|all| all.briefly(|count| count.to_string())), "–")
    };
    let rate = spread(&|outcome| Some(outcome.best_effort))?;
    let share = |ppm: Option<Spread>| {
        let all = ppm.map(|all| all.briefly(|ppm| format!("{} %", fixed(ppm / 1_000, 10, 1))));
        or(all, "–")
    };
    let disturbed = |outcome: &Outcome| {
        let [all, calm] = [control(outcome).due, calm(outcome).due];
        ((all - calm) * 1_000_000).checked_div(all)
    };
    let mut row = Origin::Charged.row([
        TEXT.say(case.who.key(), &[]).into(),
        queues(case.queues).into(),
        between(case.between).into(),
        beside(case.beside).into(),
    ]);
    row.extend(Origin::Measured.row([
        latency(&control, 0).into(),
        latency(&control, 1).into(),
        count(&control, |of| of.missed).into(),
        count(&control, |of| of.lost).into(),
        latency(&video, 1).into(),
        count(&video, |of| of.missed).into(),
        count(&video, |of| of.lost).into(),
        rate.briefly(|bits| fixed(bits / 100_000, 10, 1)).into(),
        share(spread(&|outcome| outcome.node_ppm)).into(),
        share(spread(&disturbed)).into(),
        latency(&calm, 1).into(),
        count(&calm, |of| of.missed).into(),
        latency(&calm_video, 1).into(),
        count(&calm_video, |of| of.missed).into(),
    ]));
    Some(row)
}

/// Draws it, says of whoever could not be run why not, once each, and claims what is to be claimed, with what the runs say of themselves.
pub(in super::super) fn judge(draft: &mut Draft<'_>, trials: &[(Case, Seen)], said: Says<'_>) {
    let Some((case, _)) = trials.first() else {
        return;
    };
    let seconds = case.length.as_nanos() / 1_000_000_000;
    draft.table(FIGURE, FIGURE, &[("seconds", &seconds)], rows(trials));
    let mut told = Vec::new();
    for (case, seen) in trials {
        let words = match seen {
            Seen::Ran(_) => continue,
            Seen::Missing(why) => missing(case, why),
            Seen::Failed(why) => failed(case, why),
        };
        if !told.contains(&words) {
            draft.remark(FIGURE, words.clone());
            told.push(words);
        }
    }
    Runs { trials, said }.claim(draft);
}

fn missing(case: &Case, why: &str) -> String {
    let who = TEXT.say(case.who.key(), &[]);
    let what = match case.who.program() {
        Some(_) => who,
        None => format!("{who}, {}", queues(case.queues)),
    };
    TEXT.say(
        "missing",
        &[("what", &what), ("why", &why.trim().trim_end_matches('.'))],
    )
}

fn failed(case: &Case, why: &str) -> String {
    TEXT.say(
        "failed",
        &[
            ("what", &name(case)),
            ("why", &why.trim().trim_end_matches('.')),
        ],
    )
}
