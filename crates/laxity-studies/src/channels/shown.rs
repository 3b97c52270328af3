//! What all figures of channels show alike.

use std::fmt::Display;

use laxity_lab::bench::{Draft, Holes};
use laxity_lab::report::{Axis, Chart, Compared, Mark, Origin, Row, Series, Verdict};
use laxity_model::Span;

use super::sender::Way;
use super::tally::{Of, SENDERS, Tally};
use super::workload::BEST_EFFORT;
use super::{Case, TEXT};

/// A run, and what was seen in it.
pub(super) type Trial = (Case, Tally);

/// So many packets of a channel.
type Number = fn(&Of) -> u64;

/// How the host is organised, in words.
pub(super) fn way(way: Way) -> String {
    match way {
        Way::Proposed => TEXT.say("proposed", &[]),
        Way::Unpreemptible(room) => TEXT.say("unpreemptible", &[("room", &room)]),
        Way::Ahead { drains: false } => TEXT.say("ahead", &[]),
        Way::Ahead { drains: true } => TEXT.say("drains", &[]),
        Way::Unshaped => TEXT.say("unshaped", &[]),
    }
}

/// A number of each channel, side by side.
pub(super) fn beside<T: Display>(numbers: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = numbers.into_iter().map(|one| one.to_string()).collect();
    all.join(" / ")
}

/// A span that may be negative, to the microsecond.
pub(super) fn signed(nanos: i64) -> String {
    let span = Span::from_micros(nanos.unsigned_abs() / 1_000);
    let sign = if nanos < 0 { "−" } else { "" };
    format!("{sign}{span}")
}

pub(super) fn rates(tally: &Tally) -> Option<Vec<u64>> {
    tally.of.iter().map(|of| tally.rate(of.sent)).collect()
}

pub(super) fn of_real_time(tally: &Tally) -> &[Of] {
    &tally.of[..BEST_EFFORT]
}

/// So many packets of real time.
pub(super) fn packets(tally: &Tally, number: Number) -> u64 {
    of_real_time(tally).iter().map(number).sum()
}

pub(super) fn missed(of: &Of) -> u64 {
    of.missed
}

pub(super) fn dropped(of: &Of) -> u64 {
    of.dropped
}

pub(super) fn row((case, tally): &Trial) -> Option<Row> {
    let rates = rates(tally)?;
    let laxity = |number: fn(&Of) -> Option<i64>| {
        let all = of_real_time(tally).iter();
        let words = all.map(|of| number(of).map_or_else(|| "–".to_owned(), signed));
        beside(words)
    };
    let mut row = Origin::Charged.row([
        way(case.setup.way).into(),
        tally.rate(tally.of[0].offered)?.into(),
        case.setup.best_effort.into(),
    ]);
    row.extend(Origin::Simulated.row([
        beside(&rates).into(),
        laxity(Of::mean_ns).into(),
        laxity(|of| of.least_ns).into(),
        beside(of_real_time(tally).iter().map(missed)).into(),
        beside(tally.of.iter().map(dropped)).into(),
    ]));
    Some(row)
}

/// What the paper says of a figure, what was seen, and whether that is so: a row and a claim.
pub(super) fn say(draft: &mut Draft<'_>, figure: &str, key: &str, holds: bool, holes: Holes<'_>) {
    compare(draft, figure, key, holds, holes);
    draft.claim(key, holds, holes);
}

/// The row alone.
pub(super) fn compare(
    draft: &mut Draft<'_>,
    figure: &str,
    key: &str,
    holds: bool,
    holes: Holes<'_>,
) {
    let why = TEXT.say(&format!("{key}-by"), holes);
    let compared = Compared {
        paper: Origin::Quoted.cell(TEXT.say(&format!("{key}-paper"), &[])),
        twin: Origin::Simulated.cell(TEXT.say(&format!("{key}-twin"), holes)),
        verdict: match holds {
            true => Verdict::Agrees(why),
            false => Verdict::Disagrees(why),
        },
        ..Compared::new(TEXT.say(key, &[]))
    };
    if let Some(figure) = draft.figure(figure) {
        figure.compared.push(compared);
    }
}

/// A line for each channel, and best effort if `all`.
pub(super) fn lines(
    trials: &[&Trial],
    all: bool,
    x: impl Fn(&Trial) -> Option<u64>,
    y: impl Fn(&Tally, usize) -> Option<i64>,
) -> Vec<Series> {
    let channels = if all { SENDERS } else { BEST_EFFORT };
    let line = |channel: usize| {
        let points = trials
            .iter()
            .filter_map(|trial| Some((i64::try_from(x(trial)?).ok()?, y(&trial.1, channel)?)));
        Series::new(name(channel), Mark::Line, points.collect())
    };
    (0..channels).map(line).collect()
}

pub(super) fn name(channel: usize) -> String {
    match channel {
        BEST_EFFORT => TEXT.say("best-effort", &[]),
        _ => TEXT.say("channel", &[("channel", &channel)]),
    }
}

pub(super) fn load(trial: &Trial) -> Option<u64> {
    Some(trial.0.setup.best_effort)
}

pub(super) fn offered(trial: &Trial) -> Option<u64> {
    trial.1.rate(trial.1.of[0].offered)
}

pub(super) fn rate(tally: &Tally, channel: usize) -> Option<i64> {
    i64::try_from(tally.rate(tally.of[channel].sent)?).ok()
}

pub(super) fn chart(
    draft: &mut Draft<'_>,
    figure: &str,
    key: &str,
    (x, y): (&str, Axis),
    lines: Vec<Series>,
) {
    let axes = (Axis::count(TEXT.say(x, &[])), y);
    draft.chart(figure, Chart::new(TEXT.say(key, &[]), axes, lines));
}

pub(super) fn throughputs(draft: &mut Draft<'_>, figure: &str, all: &[&Trial], x: &str) {
    let at = if x == "best-effort-load" {
        load
    } else {
        offered
    };
    let y = Axis::count(TEXT.say("throughput", &[]));
    chart(
        draft,
        figure,
        "throughputs",
        (x, y),
        lines(all, true, at, rate),
    );
}

/// Packets that missed their deadlines, and that were dropped.
pub(super) fn losses(draft: &mut Draft<'_>, figure: &str, key: &str, all: &[&Trial]) {
    let numbers: [(&str, bool, Number); 2] =
        [("missed", false, missed), ("dropped", true, dropped)];
    for (kind, effort, number) in numbers {
        let count = |tally: &Tally, channel: usize| i64::try_from(number(&tally.of[channel])).ok();
        let y = Axis::count(TEXT.say(kind, &[]));
        let lines = lines(all, effort, load, count);
        chart(
            draft,
            figure,
            &format!("{key}-{kind}"),
            ("best-effort-load", y),
            lines,
        );
    }
}
