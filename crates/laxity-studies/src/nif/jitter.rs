//! What is shown of tables 3 and 4 in the twin: each number is the median of runs from several seeds.

use laxity_lab::bench::{Draft, Holes};
use laxity_lab::report::{Axis, Chart, Compared, Mark, Origin, Row, Series, Value, fixed, nanos};
use laxity_model::Span;

use super::intervals::{Intervals, square};
use super::quoted::Quoted;
use super::segment::FRAME_PERIOD;
use super::trial::{Outcome, Way};
use super::{BETTER, Case, OF_THE_WIRE, STREAMS, TEXT};
use crate::spread::Spread;

/// So many times less it has to be in each further way in which the video does not wait for all that came before it. In slots it is 2.8 times less, as a frame's packets wait for one each.
const FURTHER: u64 = 2;

/// A run of the tables, and what was seen in it.
pub(super) type Trial<'a> = (&'a Case, &'a Outcome);

/// Draws both tables.
pub(super) fn judge(trials: &[Trial<'_>], draft: &mut Draft<'_>) {
    let quoted = Quoted::all();
    let ways = Way::ALL.into_iter();
    let cells = ways.flat_map(|way| (0..=STREAMS).map(move |streams| (way, streams)));
    let rows = cells.map(|(way, streams)| {
        let mut quoted = quoted.iter();
        let paper = quoted.find(|row| row.is_of(way, streams));
        row((way.key(), streams), paper, &of(trials, way, streams))
    });
    let wire = row(("wire", STREAMS), None, &of_the_wire(trials));
    draft.table("jitter", "jitter", &[], rows.chain([wire]));
    draft.chart("jitter", chart(trials));
    for row in &quoted {
        compare(draft, row, trials);
    }
    claims(draft, trials);
}

/// What was seen in this way beside so many streams, by the order of the seeds.
fn of<'a>(trials: &[Trial<'a>], way: Way, streams: u64) -> Vec<&'a Outcome> {
    let all = trials.iter().filter(|(case, _)| {
        !case.is_wire && case.setup.way == way && case.setup.senders.streams == streams
    });
    all.map(|(_, seen)| *seen).collect()
}

fn of_the_wire<'a>(trials: &[Trial<'a>]) -> Vec<&'a Outcome> {
    let all = trials.iter().filter(|(case, _)| case.is_wire);
    all.map(|(_, seen)| *seen).collect()
}

fn spread(seen: &[&Outcome], number: impl Fn(&Intervals) -> Option<u64>) -> Option<Spread> {
    Spread::of(seen.iter().map(|seen| number(&seen.intervals)))
}

fn variance(seen: &[&Outcome]) -> Option<u64> {
    spread(seen, Intervals::variance).map(|spread| spread.median)
}

fn row((name, streams): (&str, u64), paper: Option<&Quoted>, seen: &[&Outcome]) -> Row {
    let mut row = Origin::Charged.row([TEXT.say(name, &[]).into(), streams.into()]);
    let both = |paper: Option<Value>, twin: Option<String>| {
        [
            paper.and_then(|value| Origin::Quoted.cell(value)),
            twin.and_then(|value| Origin::Simulated.cell(value)),
        ]
    };
    let ms = |ms: u64| Value::from(Span::from_millis(ms));
    let twin = |number: fn(&Intervals) -> Option<Span>| {
        let spread = spread(seen, |all| number(all).map(Span::as_nanos));
        spread.map(|spread| spread.briefly(|nanos| Span::from_nanos(nanos).to_string()))
    };
    row.extend(both(
        paper.map(|row| square(row.variance * 1_000).into()),
        spread(seen, Intervals::variance).map(|spread| spread.briefly(square)),
    ));
    row.extend(both(
        paper.map(|row| ms(row.longest_ms)),
        twin(Intervals::longest),
    ));
    row.extend(both(
        paper.map(|row| ms(row.shortest_ms)),
        twin(Intervals::shortest),
    ));
    let busy = Spread::of(seen.iter().map(|seen| Some(seen.busy_ppm)));
    row.push(busy.and_then(|busy| Origin::Simulated.cell(Value::share(busy.median))));
    row
}

fn chart(trials: &[Trial<'_>]) -> Chart {
    let series = Way::ALL.map(|way| {
        let points = (0..=STREAMS).filter_map(|streams| {
            let seen = of(trials, way, streams);
            let longest = spread(&seen, |all| all.longest().map(Span::as_nanos))?;
            let longest = Span::from_nanos(longest.median).saturating_sub(FRAME_PERIOD);
            Some((streams.try_into().ok()?, nanos(longest)))
        });
        Series::new(TEXT.say(way.key(), &[]), Mark::Line, points.collect())
    });
    let axes = (
        Axis::count("bulk streams"),
        Axis::time("longest interval beyond 100 ms"),
    );
    Chart::new(TEXT.say("chart", &[]), axes, series.into())
}

fn compare(draft: &mut Draft<'_>, row: &Quoted, trials: &[Trial<'_>]) {
    let way = Way::ALL.into_iter().find(|way| way.key() == row.way);
    let own = way.map_or_else(Vec::new, |way| of(trials, way, row.streams));
    let late = of(trials, Way::Late, row.streams);
    for number in row.numbers(false) {
        let both = own.iter().zip(&late);
        let seen = both.map(|(own, late)| (number.of)(&own.intervals, &late.intervals));
        let seen: Vec<Option<u64>> = seen.collect();
        if let Some(figure) = draft.figure("jitter") {
            figure.compared.push(Compared {
                paper: Origin::Quoted.cell((number.value)(number.paper)),
                twin: number.cell(Origin::Simulated, &seen),
                verdict: number.verdict(&seen),
                ..Compared::new(row.name(&number))
            });
        }
    }
}

/// How many times less the variance is, in thousandths, from seed to seed.
fn times(late: &[&Outcome], early: &[&Outcome]) -> Option<Spread> {
    let both = late.iter().zip(early);
    Spread::of(both.map(|(late, early)| {
        let [late, early] = [late, early].map(|seen| seen.intervals.variance());
        (late? * 1_000).checked_div(early?)
    }))
}

fn claims(draft: &mut Draft<'_>, trials: &[Trial<'_>]) {
    let all = |way: Way| {
        let all = (0..=STREAMS).map(|streams| variance(&of(trials, way, streams)));
        all.collect::<Option<Vec<u64>>>().unwrap_or_default()
    };
    let [late, bsd, alike, early] = [Way::Late, Way::Bsd, Way::EarlyAlike, Way::Early].map(all);
    let further = [Way::BsdFirst, Way::Slots, Way::Due].map(all);
    let words = |all: &[u64]| {
        let words: Vec<String> = all.iter().map(|one| square(*one)).collect();
        words.join(", ")
    };
    let wire = variance(&of_the_wire(trials));
    let last = |all: &[u64]| all.last().copied();
    let of_late = wire.zip(last(&late));
    let of_late = of_late.and_then(|(wire, late)| (wire * 100_000).checked_div(late));
    let [queued, first] = [Way::Late, Way::Early].map(|way| of(trials, way, STREAMS));
    let times = times(&queued, &first);
    let tenths = |thousandths: u64| fixed(thousandths, 1_000, 1);
    let or = |seen: Option<String>| crate::or(seen, "nothing was shown");
    let least = further.each_ref().map(|all| last(all));
    let holes: Holes<'_> = &[
        ("late", &words(&late)),
        ("bsd", &words(&bsd)),
        ("alike", &words(&alike)),
        ("early", &words(&early)),
        ("wire", &or(wire.map(square))),
        ("last", &or(last(&late).map(square))),
        ("of-late", &or(of_late.map(tenths))),
        ("further", &least.map(|one| or(one.map(square))).join(", ")),
        ("less", &FURTHER),
        ("of-the-wire", &OF_THE_WIRE),
        ("better", &BETTER),
        ("times", &or(times.map(|times| times.briefly(tenths)))),
    ];
    let grows = late.len() > 1 && late.windows(2).all(|pair| pair[0] < pair[1]);
    draft.claim("grows", grows, holes);
    let is_little = of_late.is_some_and(|share| share <= OF_THE_WIRE * 1_000);
    draft.claim("wire-is-little", is_little, holes);
    let pairs = || late.iter().zip(&early).skip(1);
    let are_less = pairs().len() > 0 && pairs().all(|(late, early)| early < late);
    draft.claim("early-is-less", are_less, holes);
    let is_better = times.is_some_and(|times| times.median >= BETTER * 1_000);
    draft.claim("much-less", is_better, holes);
    let is_less = |one: &Option<u64>| {
        let both = last(&late).zip(*one);
        both.is_some_and(|(late, one)| one * FURTHER <= late)
    };
    draft.claim("further-is-less", least.iter().all(is_less), holes);
    draft.say("found", holes);
}
