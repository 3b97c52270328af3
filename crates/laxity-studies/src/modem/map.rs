//! Figure 17: which reservations serve the modem. The study's twelve, and as many again as were never tried, each predicted first.

use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::{Costs, FarProfile, Hypothesis, Timing};
use laxity_model::analysis::devices::{Device, serves, two_line_model};
use laxity_model::analysis::supply::Continuous;
use laxity_model::{Outside, Reservation, Span};
use laxity_sim::Profile;

use super::Made;
use super::quoted_tables;
use super::transfers::{Attempt, Place, Transfer, make_all, simulated, statistics};
use super::verdicts::Class;
use laxity_lab::bench::Request;
use laxity_lab::report::{
    Axis, Cell, Chart, Check, Compared, Figure, Mark, Origin, Series, Table, Value, Verdict,
};
use laxity_lab::runner::{Progress, RunError};

/// The average time from interrupt to interrupt (§6.2.3).
const PERIOD: Span = Span::from_micros(12_500);

/// The card's clock is made so much faster that within a run its interrupts meet the slots in all phases: a phase goes by in seconds that takes
/// a real crystal a minute. Faster by 0.1 %, which the costs near the line of shares must allow for.
const SWEEP_PPB: i32 = 1_000_000;

/// A transfer of 4 s: 500 blocks with the training. In it the sweep goes through 8 ms; only the periods of 8 and 16 ticks repeat
/// against the blocks, in 3.1 ms, and all others meet every phase by themselves within a second.
const BYTES: u64 = 20_000;

/// Reservations outside the study's tables: thousandths of its milliseconds. Periods of 3 to 30, amounts from 0.43; those of the second list
/// lie within 5 % of the line of shares, those of the third within 5 % of the line of gaps.
const CLEAR: [(u64, u64); 24] = [
    (500, 3_000),
    (500, 4_000),
    (800, 5_000),
    (500, 5_000),
    (1_000, 6_000),
    (700, 6_000),
    (1_000, 9_000),
    (1_500, 9_000),
    (2_000, 10_000),
    (2_000, 11_000),
    (2_000, 12_000),
    (3_000, 13_000),
    (1_500, 13_000),
    (3_000, 14_000),
    (4_000, 15_000),
    (2_000, 17_000),
    (4_000, 18_000),
    (8_000, 19_000),
    (5_000, 20_000),
    (12_000, 24_000),
    (5_000, 25_000),
    (14_000, 26_000),
    (10_000, 30_000),
    (18_500, 30_000),
];
const NEAR_SHARE: [(u64, u64); 10] = [
    (430, 3_000),
    (700, 5_000),
    (730, 5_000),
    (840, 6_000),
    (870, 6_000),
    (1_250, 9_000),
    (1_310, 9_000),
    (1_400, 10_000),
    (1_460, 10_000),
    (1_600, 11_000),
];
const NEAR_GAP: [(u64, u64); 10] = [
    (2_500, 15_000),
    (2_100, 15_000),
    (3_500, 16_000),
    (5_000, 18_000),
    (5_600, 18_000),
    (6_000, 19_000),
    (9_500, 22_000),
    (11_000, 24_000),
    (14_000, 27_000),
    (17_500, 30_000),
];

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
    /// The longest time from an interrupt to its call, once training began.
    pub latest_begin: Span,
}

impl Tried {
    /// Whether the twin served it: every transfer at full speed.
    #[must_use]
    pub fn served(&self) -> bool {
        self.at_full_speed == self.made
    }

    /// Where the exact prediction and the twin differ, what accounts for it; `None`: nothing does, which is a bug of one of the two.
    ///
    /// The analysis leaves out interrupts, ticks, switches, uneven blocks and the one long call. That is little: it decides only near a line, and delays
    /// less than a block's samples a transfer. A call that began too late is more than that.
    #[must_use]
    pub fn accounted_for(&self) -> Option<String> {
        let underrun = self.underrun;
        let is_little = self.near
            && self.abandoned == 0
            && (1..=BLOCK_SAMPLES * u64::from(self.made)).contains(&underrun);
        match (self.exact, self.served()) {
            (true, true) | (false, false) => Some("they agree".into()),
            (true, false) if is_little => Some(format!(
                "served but for what the analysis leaves out: {underrun} samples late, no block begun too late"
            )),
            (false, true) if is_little => Some(format!(
                "late as predicted, but error correction made up for it: {underrun} samples"
            )),
            (false, true) if self.near && self.abandoned + underrun == 0 => Some(format!(
                "the worst case was not met: no call began later than {}",
                self.latest_begin
            )),
            _ => None,
        }
    }
}

/// Samples of an average block while connected: 12.5 ms at 16 kHz.
const BLOCK_SAMPLES: u64 = 200;

/// The modem while it is connected, at this cost a call; on average of its uneven blocks.
fn modem(costs: Costs) -> Result<Device, RunError> {
    let hypothesis = Hypothesis::STUDY;
    let blocks = Setting::CONNECTED.blocks;
    let block = blocks.iter().sum::<u64>() / blocks.len() as u64;
    let lead = hypothesis.lead_samples(Setting::CONNECTED);
    let device = Device::duplex(costs.data, PERIOD, block, RING_SAMPLES, lead);
    let device = device.and_then(|device| device.in_pieces(u64::from(hypothesis.pieces)));
    device.map_err(|error| RunError::CannotRun(error.to_string()))
}

/// What two lines say of a reservation: the share of this device's work, and a gap of the output's lead.
fn lines_serve(modem: &Device, reservation: Reservation) -> bool {
    let modem = modem.called_every(Hypothesis::STUDY.output_lead);
    two_line_model(&modem, reservation).is_served()
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
        u128::from(x) * u128::from(PERIOD.as_nanos()),
        cost * u128::from(y),
    );
    let lead = Hypothesis::STUDY.output_lead;
    share || close(u128::from(y - x), u128::from(lead.as_nanos()))
}

fn candidates(every: usize) -> Vec<(Place, bool)> {
    let study = quoted_tables::table_3()
        .rows
        .into_iter()
        .map(|row| (row.place, true));
    let others = CLEAR.iter().chain(&NEAR_SHARE).chain(&NEAR_GAP);
    let others = others.map(|(amount, period)| Place::Reserved {
        amount: *amount,
        period: *period,
    });
    study
        .chain(others.map(|place| (place, false)))
        .step_by(every.max(1))
        .collect()
}

/// Predicts and tries every `every`-th reservation of the map, each so often.
///
/// # Errors
///
/// [`RunError`] if the twin or the analysis fails, which is a bug.
pub fn survey(
    every: usize,
    transfers_each: u32,
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<Vec<Tried>, RunError> {
    let places = candidates(every);
    let transfer = |place, repeat: u32| Transfer {
        place,
        outside: Outside::Confined,
        far: FarProfile::DATAFIRE,
        timing: Timing::short(),
        costs: Costs::UNLOGGED,
        profile: Profile::WIN2000_PII450,
        bytes: BYTES,
        fast_ppb: SWEEP_PPB,
        seed: request.seed.wrapping_mul(1_000) + u64::from(repeat),
    };
    let interrupt = [Place::Interrupt].into_iter();
    let all = interrupt.chain(places.iter().map(|(place, _)| *place));
    let transfers: Vec<Transfer> = all
        .flat_map(|place| (0..transfers_each).map(move |repeat| transfer(place, repeat)))
        .collect();
    let attempts = make_all(&transfers, request, progress)?;
    let mut by_place = attempts.chunks(transfers_each as usize);
    let undisturbed = by_place.next().map(statistics).and_then(|seen| seen.times);
    let undisturbed = undisturbed.map_or(Span::ZERO, |times| times.mean);
    let modems = [modem(Costs::STUDY)?, modem(Costs::UNLOGGED)?];
    places
        .into_iter()
        .zip(by_place)
        .map(|((place, in_table_3), attempts)| {
            tried(&modems, place, in_table_3, attempts, undisturbed)
        })
        .collect()
}

/// `modems`: at the study's cost and at the twin's.
fn tried(
    [study, modem]: &[Device; 2],
    place: Place,
    in_table_3: bool,
    attempts: &[Attempt],
    undisturbed: Span,
) -> Result<Tried, RunError> {
    let cannot = |what: String| RunError::CannotRun(what);
    let reservation = place.reservation();
    let reservation = reservation.ok_or_else(|| cannot(format!("{} is none", place.name())))?;
    let exact = serves(modem, &Continuous::new(reservation));
    let exact = exact.map_err(|error| cannot(error.to_string()))?;
    let sum = |count: fn(&Attempt) -> u64| attempts.iter().map(count).sum();
    let full_speed =
        |attempt: &&Attempt| Class::of(&statistics(&[**attempt]), undisturbed) == Class::Sufficient;
    Ok(Tried {
        name: place.name(),
        reservation,
        study_lines: lines_serve(study, reservation),
        lines: lines_serve(modem, reservation),
        exact: exact.is_served(),
        in_table_3,
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
        latest_begin: attempts
            .iter()
            .map(|a| a.latest_begin)
            .max()
            .unwrap_or_default(),
    })
}

/// Figure 17, redone: the study's map with its two lines, and 44 reservations that it did not try.
///
/// # Errors
///
/// [`RunError`] if the twin or the analysis fails, which is a bug.
pub fn figure_17(request: &Request, progress: &mut dyn Progress) -> Result<Made, RunError> {
    let each = request.repeats.unwrap_or(2).clamp(1, 2);
    let all = survey(1, each, request, progress)?;
    let transfers = match each {
        1 => "one short transfer".to_owned(),
        many => format!("{many} short transfers"),
    };
    let figure = Figure {
        key: "figure-17".into(),
        title: "Figure 17: which reservations serve the modem".into(),
        about: format!(
            "Amount over period. A reservation outside which the modem's thread does not run; {transfers} of {BYTES} bytes each, \
             the card's clock 0.1 % fast so that all phases are met. Two lines of shares: the study's, {}, and that of the cost that the twin \
             is charged here, {}, which is calibrated.",
            share(Costs::STUDY),
            share(Costs::UNLOGGED)
        ),
        charts: vec![chart(&all)],
        compared: compared(&all).into(),
        tables: vec![table(&all)],
        remarks: remarks(&all),
        ..Figure::default()
    };
    Ok(Made {
        checks: checks(&all).into(),
        figure,
    })
}

/// The share of the processor that calls of this cost take: `14.72 %`.
fn share(costs: Costs) -> String {
    let period = PERIOD.as_nanos();
    let hundredths = (costs.data.as_nanos() * 10_000 + period / 2) / period;
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Whether somebody said beforehand that a reservation serves.
type Prediction = fn(&Tried) -> bool;

/// How many of the reservations that the study did not try each prediction has right.
fn compared(all: &[Tried]) -> [Compared; 3] {
    let (study, calibrated) = (share(Costs::STUDY), share(Costs::UNLOGGED));
    let predicted: [(String, Prediction); 3] = [
        (format!("the study's two lines ({study})"), |tried| {
            tried.study_lines
        }),
        (
            format!("two lines at the calibrated cost ({calibrated})"),
            |tried| tried.lines,
        ),
        (
            "the exact analysis, at the calibrated cost".into(),
            |tried| tried.exact,
        ),
    ];
    predicted.map(|(by, predicted)| {
        let others = all.iter().filter(|tried| !tried.in_table_3);
        let of = others.clone().count();
        let right = others
            .filter(|tried| predicted(tried) == tried.served())
            .count();
        Compared {
            quantity: format!(
                "predicted by {by} as the twin has it, of the reservations that the study did not try"
            ),
            paper: None,
            twin: Some(simulated(Value::Text(format!("{right} of {of}")))),
            predicted: None,
            live: None,
            verdict: Verdict::Alone,
        }
    })
}

fn checks(all: &[Tried]) -> [Check; 2] {
    let far = || all.iter().filter(|tried| !tried.near);
    let plain =
        |tried: &&Tried| tried.study_lines == tried.served() && tried.exact == tried.served();
    let (right, of) = (far().filter(plain).count(), far().count());
    let differ = all.iter().filter(|tried| tried.exact != tried.served());
    let (differing, unexplained) = (
        differ.clone().count(),
        differ.filter(|tried| tried.accounted_for().is_none()),
    );
    let unexplained: Vec<&str> = unexplained.map(|tried| tried.name.as_str()).collect();
    let told = match unexplained.is_empty() {
        true => format!("{differing} differ"),
        false => format!("not accounted for: {}", unexplained.join(", ")),
    };
    [
        Check {
            claim: "twin, figure 17: further than 5 % from both lines each reservation does what the study's lines and the exact analysis say".into(),
            held: right == of && of > 0,
            seen: format!("{right} of {of}"),
        },
        Check {
            claim: "twin, figure 17: elsewhere too the exact analysis is right, or a counter accounts for the difference".into(),
            held: unexplained.is_empty() && !all.is_empty(),
            seen: told,
        },
    ]
}

fn remarks(all: &[Tried]) -> Vec<String> {
    let gap = Hypothesis::STUDY.output_lead;
    let pieces = Hypothesis::STUDY.pieces;
    let mut remarks = vec![
        format!(
            "Of 1/7 and 2/14, which have the same share, lines say the same: the study's that neither works, those at the calibrated cost that both do. The exact analysis does not: a piece of a block whose computing \
             is cut short by the end of a slot waits for the whole gap and has a {pieces}th of the lead less. At so nearly full a load that comes to pass; \
             with a gap of 6 ticks it does no harm, with one of 12 it does."
        ),
        format!(
            "The twin's runs last 500 blocks. They suffice because the card's clock is made 0.1 % fast: every phase between slots and interrupts is met \
             in them, and a gap that exceeds {gap} spoils a block each time. 11/24 and the like complete now and then: few of their phases are bad."
        ),
    ];
    remarks.extend(between(all));
    remarks.extend(disagreements(all));
    remarks
}

/// What the twin serves although the study's line of shares says that it fails, and why that is no finding.
fn between(all: &[Tried]) -> Option<String> {
    let others = all.iter().filter(|tried| !tried.in_table_3);
    let wrong = others.filter(|tried| tried.served() && tried.lines && !tried.study_lines);
    let names: Vec<&str> = wrong.map(|tried| tried.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The study's lines say of {} that it did not try that they fail, and the twin serves them: {}. They lie between the two lines of shares. The twin serves them because its calls cost \
             {} and not {}, which was chosen by 1/7 and 2/14: no finding about the study's modem.",
            names.len(),
            names.join(", "),
            Costs::UNLOGGED.data,
            Costs::STUDY.data
        )
    })
}

fn disagreements(all: &[Tried]) -> Vec<String> {
    let differ = all.iter().filter(|tried| tried.exact != tried.served());
    let words = differ.map(|tried| {
        let reason = tried.accounted_for();
        let reason = reason.unwrap_or_else(|| "not accounted for".into());
        format!("{}: {reason}.", tried.name)
    });
    words.collect()
}

fn chart(all: &[Tried]) -> Chart {
    let points = |class: fn(&Tried) -> bool| {
        let chosen = all.iter().filter(|tried| class(tried));
        let mut points: Vec<(i64, i64)> = chosen
            .map(|tried| {
                let (x, y) = (tried.reservation.service(), tried.reservation.period());
                (y.as_nanos() as i64, x.as_nanos() as i64)
            })
            .collect();
        points.sort_unstable();
        points
    };
    let series = |name: &str, mark, class| Series {
        name: name.into(),
        mark,
        points: points(class),
    };
    let lead = Hypothesis::STUDY.output_lead.as_nanos() as i64;
    let longest = 30_000_000_i64;
    let line = |whose: &str, costs: Costs| {
        let at_longest = longest * costs.data.as_nanos() as i64 / PERIOD.as_nanos() as i64;
        let name = format!("{}, {whose}", share(costs));
        (name, (0, 0), (longest, at_longest))
    };
    Chart {
        caption: "sufficient, marginal and insufficient reservations".into(),
        x: Axis::time("period"),
        y: Axis::time("amount"),
        series: vec![
            series("sufficient", Mark::Filled, Tried::served),
            series("marginal", Mark::Half, |tried| {
                !tried.served() && tried.completed > 0
            }),
            series("insufficient", Mark::Empty, |tried| tried.completed == 0),
        ],
        lines: vec![
            line("the study's share", Costs::STUDY),
            line("calibrated", Costs::UNLOGGED),
            (
                "gap of one lead".into(),
                (lead, 0),
                (longest, longest - lead),
            ),
        ],
    }
}

fn table(all: &[Tried]) -> Table {
    let columns = [
        "reservation",
        "the study",
        "the study's lines",
        "lines, calibrated",
        "exact",
        "at full speed",
        "completed",
        "begun too late",
        "samples late",
        "retrainings",
        "latest begin",
    ];
    let cell = |value, origin| Some(Cell { value, origin });
    let yes = |predicted: bool| {
        let word = if predicted { "serves" } else { "does not" };
        cell(Value::Text(word.into()), Origin::Predicted)
    };
    let count = |n: u64| cell(Value::Count(n), Origin::Simulated);
    let rows = all.iter().map(|tried| {
        let who = if tried.in_table_3 { "table 3" } else { "" };
        vec![
            cell(Value::Text(tried.name.clone()), Origin::Charged),
            cell(Value::Text(who.into()), Origin::Quoted),
            yes(tried.study_lines),
            yes(tried.lines),
            yes(tried.exact),
            count(u64::from(tried.at_full_speed)),
            count(u64::from(tried.completed)),
            count(tried.abandoned),
            count(tried.underrun),
            count(tried.retrainings),
            cell(Value::Span(tried.latest_begin), Origin::Simulated),
        ]
    });
    Table {
        caption: "each reservation, predicted and tried".into(),
        columns: columns.map(String::from).into(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Service;

    use super::*;

    /// How many of table 3's rows the exact analysis has right with this lead and cost, for a call that delivers in so many pieces; 2/14, which is
    /// marginal, counts as not served.
    fn right(lead: u64, cost: Service, pieces: u64) -> usize {
        let device = Device::duplex(cost, PERIOD, 200, RING_SAMPLES, lead).unwrap();
        let device = device.in_pieces(pieces).unwrap();
        let rows = quoted_tables::table_3().rows;
        let right = rows.iter().filter(|row| {
            let supply = Continuous::new(row.place.reservation().unwrap());
            let served = serves(&device, &supply).unwrap().is_served();
            served == (row.attempts().succeeded == 10)
        });
        right.count()
    }

    #[test]
    fn one_lead_explains_all_of_table_3_if_a_call_delivers_in_pieces() {
        let cost = Costs::UNLOGGED.data;
        assert_eq!(right(200, cost, 8), 12);
        let explaining: Vec<u64> = (150..300)
            .filter(|lead| right(*lead, cost, 8) == 12)
            .collect();
        assert_eq!(explaining, (192..=206).collect::<Vec<u64>>());
        // Delivered at the end of a call, a lead explains ten rows at most.
        let best = (150..400).map(|lead| right(lead, cost, 1)).max();
        assert!(best < Some(12), "{best:?}");
    }

    fn tried(near: bool, exact: bool, served: bool, late: [u64; 2]) -> Tried {
        let [abandoned, underrun] = late;
        let place = Place::Reserved {
            amount: 2_000,
            period: 14_000,
        };
        Tried {
            name: place.name(),
            reservation: place.reservation().unwrap(),
            study_lines: exact,
            lines: exact,
            exact,
            in_table_3: false,
            near,
            made: 1,
            at_full_speed: u32::from(served),
            completed: u32::from(served),
            abandoned,
            underrun,
            retrainings: 0,
            latest_begin: Span::from_millis(11),
        }
    }

    #[test]
    fn only_little_that_is_late_near_a_line_accounts_for_a_difference() {
        let accounted =
            |near, exact, served, late| tried(near, exact, served, late).accounted_for().is_some();
        assert!(accounted(true, true, false, [0, 120]));
        assert!(accounted(true, false, true, [0, 120]));
        assert!(accounted(true, false, true, [0, 0]));
        // Far from the lines, more than a block, a block begun too late, nothing late at all.
        assert!(!accounted(false, true, false, [0, 120]));
        assert!(!accounted(false, false, true, [0, 0]));
        assert!(!accounted(true, true, false, [0, 201]));
        assert!(!accounted(true, true, false, [1, 120]));
        assert!(!accounted(true, false, true, [1, 120]));
        assert!(!accounted(true, true, false, [0, 0]));
    }

    #[test]
    fn claims_fail_with_what_nothing_accounts_for() {
        let held = |all: &[Tried]| checks(all).map(|check| check.held);
        let good = tried(false, true, true, [0, 0]);
        assert_eq!(held(std::slice::from_ref(&good)), [true, true]);
        let far = tried(false, true, false, [9, 900]);
        assert_eq!(held(&[good.clone(), far]), [false, false]);
        let near = tried(true, true, false, [9, 900]);
        assert_eq!(held(&[good, near]), [true, false]);
        assert_eq!(held(&[]), [false, false]);
    }

    #[test]
    fn the_studys_line_lies_above_that_of_the_calibrated_cost() {
        let shares = [Costs::STUDY, Costs::UNLOGGED].map(|costs| modem(costs).unwrap());
        let served = |amount, period| {
            let reservation = Place::Reserved { amount, period }.reservation().unwrap();
            shares
                .each_ref()
                .map(|modem| lines_serve(modem, reservation))
        };
        assert_eq!(served(1_460, 10_000), [false, true]);
        assert_eq!(served(1_480, 10_000), [true, true]);
        assert_eq!(served(1_420, 10_000), [false, false]);
    }

    #[test]
    fn a_dozen_reservations_and_more_lie_near_the_lines() {
        let reservations = |of: &[(u64, u64)]| -> Vec<Reservation> {
            let places = of.iter().map(|(amount, period)| Place::Reserved {
                amount: *amount,
                period: *period,
            });
            places.filter_map(Place::reservation).collect()
        };
        assert!(reservations(&NEAR_SHARE).into_iter().all(is_near));
        assert!(reservations(&NEAR_GAP).into_iter().all(is_near));
        assert!(NEAR_SHARE.len() + NEAR_GAP.len() >= 12);
        assert!(CLEAR.len() + NEAR_SHARE.len() + NEAR_GAP.len() >= 40);
    }
}
