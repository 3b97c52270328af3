//! What is shown of tables 3 and 4 on this machine, beside the paper and the twin.

use laxity_lab::bench::{Draft, Holes, Made, Said};
use laxity_lab::report::{Compared, Origin, Row, Value, Verdict, fixed};
use laxity_model::Span;
use laxity_model::base::number::upper_median;

use super::super::intervals::{Intervals, square};
use super::super::quoted::Quoted;
use super::super::trial::Way;
use super::super::{BETTER, FURTHER as LESS, Nif, OF_THE_WIRE, Run, TEXT};
use super::{FURTHER, STREAMS, Seen, WAYS};
use crate::or;
use crate::spread::Spread;

/// So much of a processor three streams are to take, in parts per million.
const LOAD_PPM: std::ops::RangeInclusive<u64> = 600_000..=800_000;
/// So much more of the frames of either may be left out than of the control's, in parts per million.
const EXCUSED_PPM: u64 = 20_000;
const PERCENT_PPM: u64 = 10_000;

/// A way beside so many streams.
#[derive(Clone, Copy)]
struct Cell<'a> {
    way: Way,
    streams: u64,
    made: &'a Made<'a, Nif>,
}

impl<'a> Cell<'a> {
    fn of(self, run: &'a (Run, super::super::Seen)) -> Option<&'a Seen> {
        match run {
            (Run::Here(case), super::super::Seen::Here(seen)) => {
                let is_it = case.way == self.way && case.streams == self.streams;
                is_it.then_some(seen)
            }
            _ => None,
        }
    }

    /// Its runs in the twin, by the order of their seeds.
    fn twin(self) -> impl Iterator<Item = &'a Seen> + Clone {
        self.made.twin.iter().filter_map(move |run| self.of(run))
    }

    /// Its runs on this machine, in order.
    fn live(self) -> impl Iterator<Item = &'a Seen> + Clone {
        self.made.live.iter().filter_map(move |run| self.of(run))
    }

    /// How a number of its runs in the twin is spread; `None` where there are none.
    fn spread_in_twin(self, number: impl Fn(&Seen) -> Option<u64>) -> Option<Spread> {
        Spread::of(self.twin().map(number))
    }

    fn median(self, number: impl Fn(&Seen) -> Option<u64>) -> Option<u64> {
        Spread::of(self.live().map(number)).map(|spread| spread.median)
    }

    /// The variance with all frames, in the twin.
    fn variance_in_twin(self) -> Option<u64> {
        let spread = self.spread_in_twin(|seen| seen.all.variance());
        spread.map(|spread| spread.median)
    }

    /// The upper one of two medians: of what is the better the less it is.
    fn upper(self, number: impl Fn(&Seen) -> Option<u64>) -> Option<u64> {
        let all: Option<Vec<u64>> = self.live().map(number).collect();
        upper_median(all?.into_iter())
    }

    /// Whether frames left their sender in one of its runs on this machine and were never shown; the last may be under way at the end.
    fn has_lost(self) -> bool {
        let mut runs = self.live();
        runs.any(|seen| seen.left.0.len() > seen.all.0.len() + 1)
    }

    /// What its runs on this machine say of themselves.
    fn said(self) -> Said {
        let is_it = |run: &Run| matches!(run, Run::Here(case) if case.way == self.way && case.streams == self.streams);
        self.made.said(is_it)
    }

    fn row(self) -> Option<Row> {
        let runs = self.live().count() as u64;
        if runs == 0 && self.twin().next().is_none() {
            return None;
        }
        let simulated = |value: Option<Value>| Origin::Simulated.cell(value?);
        let measured = |value: Option<Value>| Origin::Measured.cell(value?);
        let words = |of: fn(&Seen) -> &Intervals| {
            let variance = self.median(|seen| of(seen).variance());
            measured(variance.map(|variance| square(variance).into()))
        };
        let span = |of: fn(&Intervals) -> Option<Span>| {
            let nanos = self.median(|seen| of(&seen.undisturbed).map(Span::as_nanos));
            measured(nanos.map(|nanos| Span::from_nanos(nanos).into()))
        };
        let mut row =
            Origin::Charged.row([TEXT.say(self.way.key(), &[]).into(), self.streams.into()]);
        let variance = self.spread_in_twin(|seen| seen.all.variance());
        let busy = self.spread_in_twin(|seen| Some(seen.busy_ppm));
        row.extend([
            simulated(variance.map(|spread| spread.briefly(square).into())),
            measured((runs > 0).then(|| runs.into())),
            words(|seen| &seen.all),
            words(|seen| &seen.undisturbed),
            words(|seen| &seen.left),
            span(Intervals::longest),
            span(Intervals::shortest),
            measured(self.median(Seen::excused_ppm).map(Value::share)),
            simulated(busy.map(|busy| Value::share(busy.median))),
            measured(self.median(|seen| Some(seen.busy_ppm)).map(Value::share)),
            measured(self.median(|seen| Some(seen.packets)).map(Value::Count)),
        ]);
        Some(row)
    }

    /// Compares its row of the paper, beside that with one queue.
    fn compare(self, draft: &mut Draft<'_>, row: &Quoted, late: Self) {
        for number in row.numbers(true) {
            let twin = self.twin().zip(late.twin());
            let twin: Vec<_> = twin
                .map(|(own, late)| (number.of)(&own.all, &late.all))
                .collect();
            let live = self.live().zip(late.live());
            let live: Vec<_> = live
                .map(|(own, late)| (number.of)(&own.undisturbed, &late.undisturbed))
                .collect();
            let mut said = self.said();
            if number.what == "improvement" {
                said = said.and(&late.said());
            }
            let live_verdict = match (live.is_empty(), said.doubt()) {
                (true, _) => Verdict::Alone,
                (false, Some(doubt)) => Verdict::Inconclusive(doubt),
                (false, None) => number.verdict(&live),
            };
            if let Some(figure) = draft.figure("here") {
                figure.compared.push(Compared {
                    paper: Origin::Quoted.cell((number.value)(number.paper)),
                    twin: number.cell(Origin::Simulated, &twin),
                    live: number.cell(Origin::Measured, &live),
                    verdict: number.verdict(&twin),
                    live_verdict,
                    ..Compared::new(row.name(&number))
                });
            }
        }
    }
}

/// Draws the figure, if anything of it was run.
pub(in super::super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Nif>) {
    let cell = |way, streams| Cell { way, streams, made };
    let cells = WAYS.into_iter();
    let cells = cells.flat_map(|way| (0..=STREAMS).map(move |streams| cell(way, streams)));
    let further = FURTHER.map(|way| cell(way, STREAMS));
    let cells = cells.chain(further);
    let rows: Vec<Row> = cells.filter_map(Cell::row).collect();
    if rows.is_empty() {
        return;
    }
    draft.table("here", "here", &[], rows);
    for row in Quoted::all() {
        let way = WAYS.into_iter().find(|way| row.is_of(*way, row.streams));
        if let Some(way) = way {
            let late = cell(Way::Late, row.streams);
            cell(way, row.streams).compare(draft, &row, late);
        }
    }
    let all = WAYS.map(|way| cell(way, STREAMS));
    if all.iter().all(|cell| cell.twin().next().is_some()) {
        claim_in_twin(draft, all);
        claim_further(draft, all, further, false);
    }
    if all.iter().all(|cell| cell.live().next().is_some()) {
        claim_here(draft, all);
        claim_further(draft, all, further, true);
    }
}

fn times(late: u64, early: u64) -> Option<u64> {
    (late * 1_000).checked_div(early)
}

fn tenths(thousandths: u64) -> String {
    fixed(thousandths, 1_000, 1)
}

fn percent(ppm: u64) -> String {
    format!("{} %", fixed(ppm, PERCENT_PPM, 1))
}

fn load_holes() -> [String; 2] {
    [LOAD_PPM.start(), LOAD_PPM.end()].map(|ppm| (ppm / PERCENT_PPM).to_string())
}

/// Beside all streams, in the twin.
fn claim_in_twin(draft: &mut Draft<'_>, all: [Cell<'_>; 3]) {
    let busy = all.map(|cell| {
        let spread = cell.spread_in_twin(|seen| Some(seen.busy_ppm));
        spread.map_or(0, |busy| busy.median)
    });
    let [late, _, early] = all;
    let both = late.twin().zip(early.twin());
    let better =
        Spread::of(both.map(|(late, early)| times(late.all.variance()?, early.all.variance()?)));
    let [least, most] = load_holes();
    let nothing = "nothing was shown";
    let holes: Holes<'_> = &[
        ("least", &least),
        ("most", &most),
        ("load", &busy.map(percent).join(", ")),
        ("better", &BETTER),
        (
            "times",
            &or(better.map(|times| times.briefly(tenths)), nothing),
        ),
    ];
    let is_loaded = busy.iter().all(|ppm| LOAD_PPM.contains(ppm));
    draft.claim("tcp-load", is_loaded, holes);
    let is_better = better.is_some_and(|times| times.median >= BETTER * 1_000);
    draft.claim("tcp-much-less", is_better, holes);
}

/// What the runs of all of these say of themselves.
fn said_of<'a>(all: impl IntoIterator<Item = Cell<'a>> + Clone) -> Said {
    let each = all.clone().into_iter();
    let said = each.fold(Said::default(), |said, cell| said.and(&cell.said()));
    let lost = all.into_iter().any(Cell::has_lost);
    let why = "frames were lost, and what comes after one is later for it";
    said.but(lost.then(|| why.to_owned()))
}

/// Beside all streams, on this machine: late, the control, and early.
fn claim_here(draft: &mut Draft<'_>, all: [Cell<'_>; 3]) {
    let [late, _, early] = all;
    let said = said_of(all);
    let busy = all.map(|cell| cell.median(|seen| Some(seen.busy_ppm)).unwrap_or(0));
    let excused = all.map(|cell| cell.upper(Seen::excused_ppm).unwrap_or(0));
    let better = |of: fn(&Seen) -> &Intervals| {
        let rounds = late.live().zip(early.live());
        Spread::of(rounds.map(|(late, early)| {
            let [late, early] = [late, early].map(|seen| of(seen).variance());
            times(late?, early?)
        }))
    };
    let (raw, apart) = (better(|seen| &seen.all), better(|seen| &seen.undisturbed));
    let variance = |cell: Cell<'_>| cell.median(|seen| seen.undisturbed.variance());
    let variances = all.map(variance);
    let at_worst = early.upper(|seen| seen.undisturbed.variance());
    let left = late.upper(|seen| seen.left.variance());
    let [least, most] = load_holes();
    let nothing = "nothing was shown";
    let in_words = |spread: Option<Spread>| or(spread.map(|one| one.briefly(tenths)), nothing);
    let holes: Holes<'_> = &[
        ("least", &least),
        ("most", &most),
        ("load", &busy.map(percent).join(", ")),
        ("better", &BETTER),
        ("times", &in_words(apart)),
        ("raw", &in_words(raw)),
        (
            "variances",
            &variances.map(|one| or(one.map(square), nothing)).join(", "),
        ),
        ("left", &or(left.map(square), nothing)),
        ("of-the-wire", &OF_THE_WIRE),
        ("excused", &excused.map(percent).join(", ")),
        ("more", &percent(EXCUSED_PPM)),
    ];
    let is_loaded = busy.iter().all(|ppm| LOAD_PPM.contains(ppm));
    draft.claim_here("here-load", (is_loaded, false), holes, &said);
    let is_better = apart.is_some_and(|one| one.median >= BETTER * 1_000);
    draft.claim_here("here-much-less", (is_better, false), holes, &said);
    let [late_is, control_is, _] = variances;
    let is_first = |other: Option<u64>| {
        other
            .zip(at_worst)
            .is_some_and(|(other, early)| early < other)
    };
    let is_first = is_first(late_is) && is_first(control_is);
    draft.claim_here("here-first", (is_first, false), holes, &said);
    let sends = left
        .zip(late_is)
        .is_some_and(|(left, late)| left * 100 <= late * OF_THE_WIRE);
    draft.claim_here("here-sender", (sends, false), holes, &said);
    let is_fair = |cell: usize| excused[cell] <= excused[1] + EXCUSED_PPM;
    draft.claim_here(
        "here-excused",
        (is_fair(0) && is_fair(2), false),
        holes,
        &said,
    );
    draft.say("found-here", holes);
}

/// Of the further ways, beside all streams: that BSD's is as one queue, and that in all others the video does not wait for what came before it.
fn claim_further(
    draft: &mut Draft<'_>,
    [late, _, early]: [Cell<'_>; 3],
    further: [Cell<'_>; 7],
    is_live: bool,
) {
    let variance = |cell: Cell<'_>| match is_live {
        true => cell.median(|seen| seen.undisturbed.variance()),
        false => cell.variance_in_twin(),
    };
    // What was not run there is not claimed of.
    let is_there = |cell: &Cell<'_>| is_live || cell.twin().next().is_some();
    // The kernel's sockets stand beside them: what they do is the kernel's affair.
    let [bsd, others @ .., _, _] = further;
    let others: Vec<Cell<'_>> = others.into_iter().filter(is_there).collect();
    let words = |cell: &Cell<'_>| {
        let seen = or(variance(*cell).map(square), "nothing was shown");
        format!("{seen} {}", TEXT.say(cell.way.key(), &[]))
    };
    let others_in_words: Vec<String> = others.iter().map(words).collect();
    let host = if is_live { "here-host" } else { "twin-host" };
    let holes: Holes<'_> = &[
        ("host", &TEXT.say(host, &[])),
        ("better", &BETTER),
        ("less", &LESS),
        ("late", &words(&late)),
        ("early", &words(&early)),
        ("bsd", &words(&bsd)),
        ("others", &others_in_words.join(", ")),
    ];
    let is_times_less = |less: Cell<'_>, than: Cell<'_>, times: u64| {
        let both = variance(less).zip(variance(than));
        both.is_some_and(|(less, than)| less * times <= than)
    };
    let as_late = is_times_less(early, bsd, BETTER);
    let mut all = others.iter();
    let are_less = all.all(|cell| is_times_less(*cell, late, LESS));
    let mut claim = |key: &str, holds: bool, cells: &[Cell<'_>]| match is_live {
        true => draft.claim_here(key, (holds, false), holes, &said_of(cells.iter().copied())),
        false => draft.claim(key, holds, holes),
    };
    claim("further-bsd", as_late, &[early, bsd]);
    claim("further-others", are_less, &[&[late], &others[..]].concat());
}
