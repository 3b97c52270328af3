//! Figure 17: which reservations serve the modem. The study's twelve, and as many again as were never tried, each predicted first.

use laxity_devices::modem::needs::{BLOCK_PERIOD, connected, in_pieces};
use laxity_devices::modem::{Costs, Hypothesis, Timing};
use laxity_lab::bench::{Draft, Holes, Made, Request};
use laxity_lab::report::{Axis, Chart, Compared, Mark, Origin, Row, Series, Value, nanos};
use laxity_lab::runner::RunError;
use laxity_model::analysis::devices::{Device, serves, two_line_model};
use laxity_model::analysis::supply::ExplicitDeadline;
use laxity_model::{Outside, Reservation, Span};
use serde::Deserialize;

use super::calibration::DecidedBy;
use super::transfers::{Attempt, Batch, Place, Setting, statistics, transfers};
use super::verdicts::{Class, class_verdict};
use super::{Modem, TEXT, attempts, tables};

mod claims;

/// Its key.
pub(super) const KEY: &str = "figure-17";

/// The card's clock is made so much faster that within a run its interrupts meet the slots in all phases: a phase goes by in seconds that takes
/// a real crystal a minute. Faster by 0.1 %, which the costs near the line of shares must allow for.
pub(super) const SWEEP_PPB: i32 = 1_000_000;

/// A transfer of 4 s: 500 blocks with the training. In it the sweep goes through 8 ms; only the periods of 8 and 16 ticks repeat
/// against the blocks, in 3.1 ms, and all others meet every phase by themselves within a second.
pub(super) const BYTES: u64 = 20_000;

/// Reservations that the study did not try.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Others {
    clear: Vec<Place>,
    /// Within 5 % of the line of shares.
    near_shares: Vec<Place>,
    /// Within 5 % of the line of gaps.
    near_gaps: Vec<Place>,
}

/// A reservation that was predicted and tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// As the study would call it.
    pub name: String,
    /// In real time.
    pub reservation: Reservation,
    /// Whether the study's two lines predict that it serves: a share of 14.72 %, its 1.84 ms in 12.5.
    pub study_lines: bool,
    /// The same with the cost that the twin is charged, which is calibrated: a lower share.
    pub lines: bool,
    /// Whether the exact analysis of our hypothesis predicts it, at that cost.
    pub exact: bool,
    /// Whether the study tried it too.
    pub in_table_3: bool,
    /// Whether a constant was chosen by it.
    pub chose: bool,
    /// Whether it lies within 5 % of either line.
    pub near: bool,
    /// How many transfers were made, and how many came through at full speed.
    pub made: u32,
    /// See `made`.
    pub at_full_speed: u32,
    /// How many came through at all.
    pub completed: u32,
    /// Blocks whose call began too late, in all transfers.
    pub abandoned: u64,
    /// Output samples sent as garbage.
    pub underrun: u64,
    /// Retrainings.
    pub retrainings: u64,
    /// The longest time from an interrupt to its call, once training began; `None` if it never did.
    pub latest_begin: Option<Span>,
}

impl Tried {
    /// Whether the twin served it: every transfer at full speed.
    pub fn served(&self) -> bool {
        self.at_full_speed == self.made
    }

    /// How it is drawn.
    fn class(&self) -> Class {
        match (self.served(), self.completed) {
            (true, _) => Class::Sufficient,
            (false, 0) => Class::Insufficient,
            (false, _) => Class::Marginal,
        }
    }

    /// Where the exact prediction and the twin differ, what accounts for it; `None`: nothing does, which is a bug of one of the two.
    ///
    /// The analysis leaves out interrupts, ticks, switches, that the cards here are faster by 0.1 %, and the one long call. That is little: it decides only near a line, and delays
    /// less than a block's samples a transfer. A call that began too late is more than that. More than a block a
    /// transfer that error correction makes up for is no little either.
    pub fn accounted_for(&self) -> Option<String> {
        let underrun = self.underrun;
        let at_most_a_block = (1..=BLOCK_SAMPLES * u64::from(self.made)).contains(&underrun);
        let is_little = self.near && self.abandoned == 0 && at_most_a_block;
        let says = |key, holes: Holes<'_>| Some(TEXT.say(key, holes));
        match (self.exact, self.served()) {
            (true, true) | (false, false) => Some("they agree".into()),
            (true, false) if is_little => says("map-little", &[("underrun", &underrun)]),
            // It said that samples come too late; they did, and the transfer made up for so few.
            (false, true) if at_most_a_block => says("map-made-up", &[("underrun", &underrun)]),
            (false, true) if self.near && self.abandoned + underrun == 0 => {
                says("map-not-met", &[("latest", &self.latest_begin?)])
            }
            _ => None,
        }
    }
}

/// The reservation that is served or not by its seed, two transfers each: its gap is longer than the lead by 0.2 ms, and few of its
/// calls come so late. Nothing is claimed of it.
const BY_SEED: &str = "RES 7/20";

/// Samples of an average block while connected: 12.5 ms at 16 kHz.
const BLOCK_SAMPLES: u64 = 200;

/// The modem while it is connected, at this cost a call.
fn modem(costs: Costs) -> Result<Device, RunError> {
    connected(costs.data).map_err(|error| RunError::CannotRun(error.to_string()))
}

/// What two lines say of a reservation: the share of this device's work, and a gap of the output's lead.
fn lines_serve(modem: &Device, reservation: Reservation) -> bool {
    two_line_model(modem, reservation).is_served()
}

/// X/Y and Y − X against the lines at the twin's cost: within 5 % of either. The study's line of shares lies in that too.
fn is_near(reservation: Reservation) -> bool {
    let close = |a: u128, b: u128| a.abs_diff(b) * 20 <= b;
    let (x, y) = (
        reservation.service().as_nanos(),
        reservation.period().as_nanos(),
    );
    let cost = u128::from(Costs::UNLOGGED.data.as_nanos());
    let share = close(
        u128::from(x) * u128::from(BLOCK_PERIOD.as_nanos()),
        cost * u128::from(y),
    );
    let lead = Hypothesis::STUDY.output_lead;
    share || close(u128::from(y - x), u128::from(lead.as_nanos()))
}

/// All reservations, the study's and those that it did not try.
fn all_places() -> Vec<Place> {
    let study = tables::table_3().rows.iter().map(|row| row.place.clone());
    let others: Others = TEXT.quoted("map");
    let others = [others.clear, others.near_shares, others.near_gaps];
    study.chain(others.into_iter().flatten()).collect()
}

/// Every so many-th of them.
fn places(request: &Request) -> Result<Vec<Place>, RunError> {
    let every = request.option(&TEXT, "every")?;
    Ok(all_places().into_iter().step_by(every as usize).collect())
}

/// Says how many reservations are tried, if that is not all.
fn tell_how_many(request: &Request, draft: &mut Draft<'_>) -> Result<(), RunError> {
    let every = request.option(&TEXT, "every")?;
    let (tried, all) = (places(request)?.len(), all_places().len());
    if tried < all {
        let holes: Holes<'_> = &[("tried", &tried), ("all", &all), ("every", &every)];
        let words = TEXT.say("map-thinned", holes);
        draft.circumstance("reservations tried for figure 17", words);
    }
    Ok(())
}

/// The transfers of all places, after those of INT, by which full speed is measured.
pub(super) fn batch(request: &Request) -> Result<Batch, RunError> {
    let setting = Setting {
        timing: Timing::short(),
        fast_ppb: SWEEP_PPB,
        ..Setting::study(BYTES, Outside::Confined, request.seed)
    };
    let interrupt = [Place::interrupt()].into_iter();
    Ok(Batch {
        places: interrupt.chain(places(request)?).collect(),
        settings: setting.repeated(request.repeats.unwrap_or(2).clamp(1, 2)),
    })
}

/// The reservations that were predicted and tried, in a study of which only this figure was made.
///
/// # Errors
///
/// [`RunError`] if the analysis fails, which is a bug.
pub fn surveyed(made: &Made<'_, Modem>) -> Result<Vec<Tried>, RunError> {
    judged(&batch(made.request)?, &mut attempts(made).as_slice())
}

fn judged(batch: &Batch, attempts: &mut &[Attempt]) -> Result<Vec<Tried>, RunError> {
    let mut by_place = batch.places.iter().zip(batch.taken(attempts));
    let undisturbed = by_place.next().and_then(|(_, int)| statistics(int).times);
    let undisturbed = undisturbed.map_or(Span::ZERO, |times| times.mean);
    let modems = [modem(Costs::STUDY)?, modem(Costs::UNLOGGED)?];
    by_place
        .map(|(place, attempts)| tried(&modems, place, attempts, undisturbed))
        .collect()
}

/// `modems`: at the study's cost and at the twin's.
fn tried(
    [study, modem]: &[Device; 2],
    place: &Place,
    attempts: &[Attempt],
    undisturbed: Span,
) -> Result<Tried, RunError> {
    let cannot = |what: String| RunError::CannotRun(what);
    let reservation = place.reservation();
    let reservation = reservation.ok_or_else(|| cannot(format!("{} is none", place.name())))?;
    let pieces = in_pieces(*modem).map_err(|error| cannot(error.to_string()))?;
    let exact = serves(&pieces, &ExplicitDeadline::continuous(reservation));
    let exact = exact.map_err(|error| cannot(error.to_string()))?;
    let sum = |count: fn(&Attempt) -> u64| attempts.iter().map(count).sum();
    let full_speed =
        |attempt: &&Attempt| Class::of(&statistics(&[**attempt]), undisturbed) == Class::Sufficient;
    let mut of_the_study = tables::table_3().rows.iter();
    Ok(Tried {
        name: place.name().to_owned(),
        reservation,
        study_lines: lines_serve(study, reservation),
        lines: lines_serve(modem, reservation),
        exact: exact.is_served(),
        in_table_3: of_the_study.any(|row| row.place == *place),
        chose: DecidedBy::of(place, true) == Some(DecidedBy::Itself),
        near: is_near(reservation),
        made: attempts.len() as u32,
        at_full_speed: attempts.iter().filter(full_speed).count() as u32,
        completed: attempts
            .iter()
            .filter(|attempt| attempt.took.is_some())
            .count() as u32,
        abandoned: sum(|a| a.abandoned),
        underrun: sum(|a| a.underrun),
        retrainings: sum(|a| a.retrainings),
        latest_begin: attempts.iter().filter_map(|a| a.latest_begin).max(),
    })
}

/// Figure 17, redone: the study's map with its two lines, and 44 reservations that it did not try.
///
/// # Errors
///
/// [`RunError`] if the analysis fails, which is a bug.
pub(super) fn draw(
    request: &Request,
    attempts: &mut &[Attempt],
    draft: &mut Draft<'_>,
) -> Result<(), RunError> {
    let batch = batch(request)?;
    let all = judged(&batch, attempts)?;
    tell_how_many(request, draft)?;
    if let Some(figure) = draft.figure(KEY) {
        let holes: Holes<'_> = &[
            ("each", &transfers(batch.settings.len() as u32, "short ")),
            ("bytes", &BYTES),
            ("study", &share(Costs::STUDY)),
            ("charged", &share(Costs::UNLOGGED)),
        ];
        figure.about = TEXT.say("map", holes);
        figure.charts.push(chart(&all));
        figure.compared = compared(&all).into();
        figure.compared.extend(of_the_study(&all));
        figure.remarks = remarks(&all);
    }
    draft.table(KEY, "map", &[], all.iter().map(row));
    for claim in claims::claims(&all) {
        claim.tell(draft);
    }
    Ok(())
}

/// The share of the processor that calls of this cost take: `14.72 %`.
fn share(costs: Costs) -> String {
    let period = BLOCK_PERIOD.as_nanos();
    let hundredths = (costs.data.as_nanos() * 10_000 + period / 2) / period;
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Whether somebody said beforehand that a reservation serves.
type Prediction = fn(&Tried) -> bool;

/// How many of the reservations that the study did not try each prediction has right.
fn compared(all: &[Tried]) -> [Compared; 3] {
    let (study, calibrated) = (share(Costs::STUDY), share(Costs::UNLOGGED));
    let holes: Holes<'_> = &[("study", &study), ("charged", &calibrated)];
    let predicted: [(&str, Prediction); 3] = [
        ("map-study", |tried| tried.study_lines),
        ("map-calibrated", |tried| tried.lines),
        ("map-exact", |tried| tried.exact),
    ];
    predicted.map(|(by, predicted)| {
        let others = all.iter().filter(|tried| !tried.in_table_3);
        let of = others.clone().count();
        let right = others
            .filter(|tried| predicted(tried) == tried.served())
            .count();
        let quantity = TEXT.say("map-row", &[("by", &TEXT.say(by, holes))]);
        Compared {
            twin: match of {
                0 => None,
                of => Origin::Simulated.cell(format!("{right} of {of}")),
            },
            ..Compared::new(quantity)
        }
    })
}

/// The study's twelve points, each in the class of its table 3 and in the one in which it is drawn here.
fn of_the_study(all: &[Tried]) -> Vec<Compared> {
    let table = tables::table_3();
    let full_speed = tables::full_speed(table);
    let drawn = all.iter().filter_map(|tried| {
        let mut rows = table.rows.iter();
        let row = rows.find(|row| row.place.name() == tried.name)?;
        let classes = [Class::of(&row.attempts(), full_speed), tried.class()];
        Some(Compared {
            paper: Origin::Quoted.cell(classes[0].name()),
            twin: Origin::Simulated.cell(classes[1].name()),
            verdict: class_verdict(&row.place, classes),
            ..Compared::new(TEXT.say("map-of-the-study", &[("name", &tried.name)]))
        })
    });
    drawn.collect()
}

fn remarks(all: &[Tried]) -> Vec<String> {
    let Hypothesis {
        output_lead,
        pieces,
        ..
    } = Hypothesis::STUDY;
    let mut remarks = vec![
        TEXT.say("map-counts", &[]),
        TEXT.say("map-pieces", &[("pieces", &pieces)]),
        TEXT.say("map-phases", &[("gap", &output_lead)]),
    ];
    if all.iter().any(|tried| tried.name == BY_SEED) {
        let holes: Holes<'_> = &[("by-seed", &TEXT.say("by-seed", &[]))];
        remarks.push(TEXT.say("map-not-counted", holes));
    }
    if all.iter().all(|tried| tried.near) {
        remarks.push(TEXT.say("map-none-far", &[]));
    }
    remarks.extend(between(all));
    remarks.extend(disagreements(all));
    remarks
}

/// What the twin serves although the study's line of shares says that it fails, and why that is no finding.
fn between(all: &[Tried]) -> Option<String> {
    let others = all.iter().filter(|tried| !tried.in_table_3);
    let wrong = others.filter(|tried| tried.served() && tried.lines && !tried.study_lines);
    let names: Vec<&str> = wrong.map(|tried| tried.name.as_str()).collect();
    let holes: Holes<'_> = &[
        ("count", &names.len()),
        ("names", &names.join(", ")),
        ("charged", &Costs::UNLOGGED.data),
        ("study", &Costs::STUDY.data),
    ];
    (!names.is_empty()).then(|| TEXT.say("map-between", holes))
}

fn disagreements(all: &[Tried]) -> Vec<String> {
    let differ = all.iter().filter(|tried| tried.exact != tried.served());
    let words = differ.map(|tried| {
        let reason = tried.accounted_for();
        let reason = reason.unwrap_or_else(|| {
            let key = match tried.name == BY_SEED {
                true => "map-by-seed",
                false => "map-unexplained",
            };
            let by_seed = TEXT.say("by-seed", &[]);
            TEXT.say(key, &[("underrun", &tried.underrun), ("by-seed", &by_seed)])
        });
        format!("{}: {reason}.", tried.name)
    });
    words.collect()
}

/// What the study's modem took in its interrupt handler: 1.84 ms of each 12.5 (§6.6).
fn actual() -> (i64, i64) {
    let cost = Costs::STUDY.data.as_dedicated_span();
    (nanos(BLOCK_PERIOD), nanos(cost))
}

fn chart(all: &[Tried]) -> Chart {
    let series = |name: &str, mark, class: fn(&Tried) -> bool| {
        let chosen = all.iter().filter(|tried| class(tried));
        let points = chosen.map(|tried| {
            let amount = tried.reservation.service().as_dedicated_span();
            (nanos(tried.reservation.period()), nanos(amount))
        });
        let mut points: Vec<(i64, i64)> = points.collect();
        points.sort_unstable();
        Series::new(name, mark, points)
    };
    let lead = nanos(Hypothesis::STUDY.output_lead);
    let longest = 30_000_000_i64;
    let line = |whose: &str, costs: Costs| {
        let at_longest = longest * nanos(costs.data.as_dedicated_span()) / nanos(BLOCK_PERIOD);
        let name = format!("{}, {whose}", share(costs));
        (name, (0, 0), (longest, at_longest))
    };
    let series = vec![
        series("sufficient", Mark::Filled, |tried| {
            tried.class() == Class::Sufficient
        }),
        series("marginal", Mark::Half, |tried| {
            tried.class() == Class::Marginal
        }),
        series("insufficient", Mark::Empty, |tried| {
            tried.class() == Class::Insufficient
        }),
        series("the study's own", Mark::Ring, |tried| tried.in_table_3),
        Series::new("the study's actual", Mark::Cross, vec![actual()]),
    ];
    let caption = "sufficient, marginal and insufficient reservations";
    let mut chart = Chart::new(
        caption,
        (Axis::time("period"), Axis::time("amount")),
        series,
    );
    chart.lines = vec![
        line("the study's share", Costs::STUDY),
        line("calibrated", Costs::UNLOGGED),
        (
            "gap of one lead".into(),
            (lead, 0),
            (longest, longest - lead),
        ),
    ];
    chart
}

/// A reservation's row of the table.
fn row(tried: &Tried) -> Row {
    let who = if tried.in_table_3 { "table 3" } else { "" };
    let serves = |predicted| Value::from(if predicted { "serves" } else { "does not" });
    let mut row = Origin::Charged.row([tried.name.as_str().into()]);
    row.push(Origin::Quoted.cell(who));
    row.extend(Origin::Predicted.row([tried.study_lines, tried.lines, tried.exact].map(serves)));
    row.extend(Origin::Simulated.row([
        u64::from(tried.at_full_speed).into(),
        u64::from(tried.completed).into(),
        tried.abandoned.into(),
        tried.underrun.into(),
        tried.retrainings.into(),
    ]));
    let latest = tried.latest_begin;
    row.push(latest.and_then(|latest| Origin::Simulated.cell(latest)));
    row
}

#[cfg(test)]
mod tests;
