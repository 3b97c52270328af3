//! The acceptance-ratio study: of N random task sets, how many does each test accept? Over the utilization, the length of non-preemptive
//! regions, and the range of periods.
//!
//! * [`compared`]: the tests.
//!
//! The same settings give the same bytes on every machine and with any number of threads.

pub mod compared;

use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Request, Round, Runner, Study, Text};
use laxity_lab::report::{
    Axis, Chart, Compared, Mark, Origin, Row, Series, Table, Unit, Value, Verdict,
};
use laxity_lab::runner::RunError;
use laxity_lab::workload::{Draws, Periods, Recipe, RecipeError};
use laxity_model::{HostError, Span};
use serde::Deserialize;

use compared::{Answer, COUNT, Test, Variants};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/acceptance.toml")));
static QUOTED: LazyLock<Vec<QuotedRow>> = LazyLock::new(|| TEXT.quoted("rows"));
static COURSES: LazyLock<Vec<Course>> = LazyLock::new(|| TEXT.quoted("courses"));
static LABELS: LazyLock<Vec<Label>> = LazyLock::new(|| TEXT.quoted("tests"));
static ORDERS: LazyLock<Vec<Order>> = LazyLock::new(|| TEXT.quoted("orders"));

/// The shortest period that any set may have.
const PERIOD_MIN: Span = Span::from_millis(10);
/// All periods are multiples of this.
const GRAIN: Span = Span::from_micros(1);
/// A quoted figure agrees that is no further from ours than so many standard errors.
const FARTHEST: f64 = 3.6;

/// The experiment.
pub struct Acceptance;

/// A row of the quoted table.
#[derive(Clone, Debug, Deserialize)]
struct QuotedRow {
    #[serde(flatten)]
    point: Point,
    /// Percent of sets accepted, by test.
    percent: Vec<(Test, f64)>,
}

/// A parameter that varies, the others fixed.
#[derive(Clone, Debug, Deserialize)]
struct Course {
    figure: String,
    axis: String,
    varies: Parameter,
    #[serde(flatten)]
    point: Point,
    values: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Parameter {
    Utilization,
    Region,
    Ratio,
}

/// What a test is called.
#[derive(Clone, Debug, Deserialize)]
struct Label {
    key: Test,
    /// Over its column.
    heading: String,
    label: String,
    /// How it takes regions.
    regions: String,
    /// Whose it is.
    source: String,
}

/// What one test accepts, another accepts too.
#[derive(Clone, Debug, Deserialize)]
struct Order {
    weaker: Test,
    stronger: Test,
    reason: String,
}

/// What the sets of a point have in common.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Point {
    /// Of each set.
    pub utilization: f64,
    /// q/C.
    pub region: f64,
    /// Tmax/Tmin, a whole number.
    pub ratio: f64,
}

impl Point {
    const fn of(&mut self, parameter: Parameter) -> &mut f64 {
        match parameter {
            Parameter::Utilization => &mut self.utilization,
            Parameter::Region => &mut self.region,
            Parameter::Ratio => &mut self.ratio,
        }
    }
}

/// Where a point lies, and how many sets are drawn there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// The figure that it belongs to, by its number: 0 is the quoted one, then come the courses.
    pub figure: usize,
    /// What its sets have in common.
    pub point: Point,
    /// Sets drawn.
    pub sets: u64,
    /// Tasks of each.
    pub tasks: usize,
    /// Of the draws.
    pub seed: u64,
}

/// How the answers for the sets of a point come out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// By test.
    pub accepted: [u64; COUNT],
    /// By test: given up, or not made for these sets; not accepted.
    pub undecided: [u64; COUNT],
    /// By order: sets that the weaker accepts and the stronger does not.
    pub against: Vec<u64>,
}

impl Study for Acceptance {
    type Case = Case;
    type Seen = Tally;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        if round.live {
            return Ok(Vec::new());
        }
        let [sets, tasks] = settings(made.request)?;
        let quoted = QUOTED.iter().map(|row| (0, row.point));
        let courses = (1..).zip(COURSES.iter()).flat_map(|(figure, course)| {
            course.values.iter().map(move |value| {
                let mut point = course.point;
                *point.of(course.varies) = *value;
                (figure, point)
            })
        });
        let cases = quoted.chain(courses).map(|(figure, point)| Case {
            figure,
            point,
            sets,
            tasks: tasks as usize,
            seed: made.request.seed,
        });
        let wanted = |case: &Case| made.request.wants(key(case.figure));
        Ok(cases.filter(wanted).collect())
    }

    fn name(&self, case: &Case) -> String {
        key(case.figure).into()
    }

    fn run(&self, case: &Case, _: &mut Runner<'_>) -> Result<Tally, HostError> {
        tally(case).map_err(|error| HostError::Failed(error.to_string()))
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let [sets, tasks] = settings(made.request)?;
        draft.circumstance("sets a point", sets.to_string());
        draft.circumstance("sets", TEXT.say("generator", &[("tasks", &tasks)]));
        // The largest standard error is that of a half.
        let error = format!("{:.1}", 50.0 / (sets as f64).sqrt());
        draft.say("error", &[("sets", &sets), ("error", &error)]);
        let compared = compared_with_quoted(made, sets, tasks);
        if let Some(farthest) = compared.iter().map(|(_, far)| *far).reduce(f64::max) {
            let farthest = format!("{farthest:.1}");
            draft.say(
                "farthest",
                &[("figures", &compared.len()), ("farthest", &farthest)],
            );
        }
        for number in 0..=COURSES.len() {
            draw(draft, number, made, sets);
        }
        if let Some(figure) = draft.figure("quoted") {
            figure.compared = compared.into_iter().map(|(row, _)| row).collect();
            figure.remarks = LABELS.iter().map(told).collect();
        }
        let tallies = || made.twin.iter().map(|(_, tally)| tally);
        let undecided: u64 = tallies().flat_map(|tally| tally.undecided).sum();
        if undecided > 0 {
            draft.say("undecided", &[("undecided", &undecided)]);
        }
        for (number, order) in ORDERS.iter().enumerate() {
            let against: u64 = tallies().map(|tally| tally.against[number]).sum();
            let seen: Holes<'_> = &[
                ("weaker", &label(order.weaker)),
                ("stronger", &label(order.stronger)),
                ("reason", &order.reason),
                ("against", &against),
                ("sets", &(sets * made.twin.len() as u64)),
            ];
            draft.claim("order", against == 0, seen);
        }
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

/// How many sets a point, and how many tasks a set.
fn settings(request: &Request) -> Result<[u64; 2], RunError> {
    Ok([
        request.option(&TEXT, "sets")?,
        request.option(&TEXT, "tasks")?,
    ])
}

fn told(label: &Label) -> String {
    let (name, regions, source) = (&label.label, &label.regions, &label.source);
    let holes: Holes<'_> = &[("label", name), ("regions", regions), ("source", source)];
    TEXT.say("sources", holes)
}

fn label(test: Test) -> &'static str {
    &LABELS[test as usize].label
}

/// The key of a figure by its number: the quoted one, and then the courses.
fn key(figure: usize) -> &'static str {
    let course = figure.checked_sub(1).and_then(|course| COURSES.get(course));
    course.map_or("quoted", |course| &course.figure)
}

/// Asks all tests for all sets of a point. Set i is drawn with the same random numbers at every point.
fn tally(case: &Case) -> Result<Tally, RecipeError> {
    let most = PERIOD_MIN.as_nanos() * case.point.ratio as u64;
    let recipe = Recipe {
        tasks: case.tasks,
        utilization: case.point.utilization,
        periods: Periods {
            least: PERIOD_MIN,
            most: Span::from_nanos(most),
            grain: GRAIN,
        },
    };
    let mut tally = Tally {
        against: vec![0; ORDERS.len()],
        ..Tally::default()
    };
    for set in 0..case.sets {
        let tasks = recipe.draw(&mut Draws::new(case.seed, set))?;
        let set = Variants::new(tasks, case.point.region)?;
        let answers: Vec<Answer> = LABELS.iter().map(|test| test.key.ask(&set)).collect();
        for (test, answer) in answers.iter().enumerate() {
            tally.accepted[test] += u64::from(*answer == Answer::Accepts);
            tally.undecided[test] += u64::from(*answer == Answer::Undecided);
        }
        let accepts = |test: Test| answers[test as usize] == Answer::Accepts;
        for (against, order) in tally.against.iter_mut().zip(ORDERS.iter()) {
            *against += u64::from(accepts(order.weaker) && !accepts(order.stronger));
        }
    }
    Ok(tally)
}

/// What is quoted beside what was counted, and how far they are apart in standard errors of the difference of two samples. Nothing is
/// quoted for sets of another size.
pub fn compared_with_quoted(
    made: &Made<'_, Acceptance>,
    sets: u64,
    tasks: u64,
) -> Vec<(Compared, f64)> {
    if tasks != TEXT.quoted::<u64>("quoted_tasks") {
        return Vec::new();
    }
    let (here, there) = (sets as f64, TEXT.quoted::<u64>("quoted_sets") as f64);
    let points = made.twin.iter().filter(|(case, _)| case.figure == 0);
    let rows = points.zip(QUOTED.iter()).flat_map(|((_, tally), row)| {
        row.percent.iter().map(move |(test, percent)| {
            let accepted = tally.accepted[*test as usize];
            let (counted, quoted) = (accepted as f64 / here, percent / 100.0);
            let joint = (counted * here + quoted * there) / (here + there);
            let error = (joint * (1.0 - joint) * (1.0 / here + 1.0 / there)).sqrt();
            // Without an error both are 0 or both are 1.
            let apart = if error > 0.0 {
                (counted - quoted).abs() / error
            } else {
                0.0
            };
            let words = format!("{apart:.1} standard errors apart");
            let name = format!(
                "{}, q = {} C, U = {:.2}",
                label(*test),
                row.point.region,
                row.point.utilization
            );
            let compared = Compared {
                paper: Origin::Quoted.cell(Value::share((percent * 10_000.0).round() as u64)),
                predicted: Origin::Predicted.cell(share(accepted, sets)),
                verdict: match apart <= FARTHEST {
                    true => Verdict::Agrees(words),
                    false => Verdict::Disagrees(words),
                },
                ..Compared::new(name)
            };
            (compared, apart)
        })
    });
    rows.collect()
}

fn share(accepted: u64, sets: u64) -> Value {
    Value::share((accepted * 1_000_000 + sets / 2) / sets)
}

/// The points of a figure: a table, and curves where something varies.
fn draw(draft: &mut Draft<'_>, number: usize, made: &Made<'_, Acceptance>, sets: u64) {
    let of = |trial: &&(Case, Tally)| trial.0.figure == number;
    let points: Vec<&(Case, Tally)> = made.twin.iter().filter(of).collect();
    let course = number.checked_sub(1).map(|number| &COURSES[number]);
    let Some(figure) = draft.figure(key(number)) else {
        return;
    };
    let place = |mut point: Point| match course.map(|course| course.varies) {
        Some(parameter) => point.of(parameter).to_string(),
        None => format!("{} C, {:.2}", point.region, point.utilization),
    };
    let row = |(case, tally): &&(Case, Tally)| -> Row {
        let mut row = Origin::Charged.row([place(case.point).into()]);
        row.extend(Origin::Predicted.row(tally.accepted.map(|accepted| share(accepted, sets))));
        row
    };
    let first = course.map_or("q, U", |course| &course.axis);
    let columns = LABELS.iter().map(|label| label.heading.as_str());
    figure.tables.push(Table {
        caption: TEXT.say("table", &[]),
        columns: std::iter::once(first)
            .chain(columns)
            .map(Into::into)
            .collect(),
        rows: points.iter().map(row).collect(),
    });
    figure
        .charts
        .extend(course.map(|course| curves(course, &points, sets)));
}

fn curves(course: &Course, points: &[&(Case, Tally)], sets: u64) -> Chart {
    let (unit, scale) = match course.varies {
        Parameter::Ratio => (Unit::Count, 1.0),
        _ => (Unit::PartsPerMillion, 1e6),
    };
    let curve = |(test, label): (usize, &Label)| {
        let points = course.values.iter().zip(points).map(|(value, (_, tally))| {
            let share = tally.accepted[test] * 1_000_000 / sets;
            ((value * scale).round() as i64, share as i64)
        });
        Series::new(label.label.as_str(), Mark::Line, points.collect())
    };
    let x = Axis {
        logarithmic: course.varies == Parameter::Ratio,
        ..Axis::new(course.axis.as_str(), unit)
    };
    let y = Axis::new(TEXT.say("share", &[]), Unit::PartsPerMillion);
    let series = LABELS.iter().enumerate().map(curve).collect();
    Chart::new(course.axis.as_str(), (x, y), series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_orders_fit() {
        // A test is the index of its label, of its column and of what is counted of it.
        let keys: Vec<usize> = LABELS.iter().map(|label| label.key as usize).collect();
        assert!(keys.into_iter().eq(0..COUNT));
        for order in ORDERS.iter() {
            assert_ne!(order.weaker, order.stronger);
        }
        let dominated = ORDERS.iter().filter(|o| o.stronger == Test::FpFinalRegions);
        let fixed_priority = LABELS.iter().filter(|label| label.key < Test::EdfFloating);
        assert_eq!(dominated.count() + 1, fixed_priority.count());
        let declared = TEXT.figures.iter().map(|figure| figure.key.as_str());
        assert!(declared.eq((0..=COURSES.len()).map(key)));
    }
}
