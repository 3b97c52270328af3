//! The points of the study, and a run over all of them.

use laxity_model::Span;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::compared::{Answer, COUNT, ORDERS, TESTS, Variants, index};
use super::quoted;
use super::results::{Comparison, Point, Results, Sweep};
use laxity_lab::workload::{
    Deadlines, Draws, Generator, Jitter, Periods, Recipe, RecipeError, Regions, Shares,
};

/// The shortest period that any set may have.
const PERIOD_MIN: Span = Span::from_millis(10);
/// All periods are multiples of this.
const GRAIN: Span = Span::from_micros(1);
/// Tmax/Tmin where it does not vary.
const DECADE: f64 = 10.0;
/// q/C where it does not vary.
const QUARTER: f64 = 0.25;

/// The most sets a point.
pub const SETS_MAX: u32 = 1_000_000;
/// The most tasks a set.
pub const TASKS_MAX: usize = 64;

/// What may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Sets drawn for each point, from 1 to a million.
    pub sets: u32,
    /// Tasks of a set, from 1 to 64.
    pub tasks: usize,
    /// Everything random follows from it.
    pub seed: u64,
    /// Threads; 0: one a processor. The results do not depend on it.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sets: 2_000,
            tasks: 10,
            seed: 1,
            threads: 0,
        }
    }
}

/// Why there is no study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A setting is out of its range.
    #[error("{what}: {value} is not from 1 to {most}")]
    Settings {
        /// Which one.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// The most there can be.
        most: u64,
    },
    /// Sets cannot be drawn.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The system gives no threads.
    #[error("no threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What is computed.
    pub what: &'static str,
    /// Points that are done.
    pub done: usize,
    /// Points there are.
    pub points: usize,
}

/// Where a point lies.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Case {
    utilization: f64,
    /// q/C.
    region: f64,
    /// Tmax/Tmin, a whole number.
    ratio: f64,
}

/// A parameter that varies.
struct Course {
    key: &'static str,
    title: &'static str,
    axis: &'static str,
    fixed: &'static str,
    logarithmic: bool,
    in_table: bool,
    values: &'static [f64],
    case: fn(f64) -> Case,
}

const UTILIZATIONS: [f64; 20] = [
    0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.725, 0.75, 0.775, 0.80, 0.825, 0.85,
    0.875, 0.90, 0.925, 0.95, 0.975,
];
const REGIONS: [f64; 14] = [
    0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
];
const RATIOS: [f64; 12] = [
    1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0,
];

/// Regions and periods vary twice: where the utilization bounds are at their limit, and where response times are.
const COURSES: [Course; 5] = [
    Course {
        key: "utilization",
        title: "Over the utilization",
        axis: "utilization U",
        fixed: "q = C/4, Tmax/Tmin = 10",
        logarithmic: false,
        in_table: true,
        values: &UTILIZATIONS,
        case: |utilization| case(utilization, QUARTER, DECADE),
    },
    Course {
        key: "region_at_0_85",
        title: "Over the length of regions",
        axis: "region length q/C",
        fixed: "U = 0.85, Tmax/Tmin = 10",
        logarithmic: false,
        in_table: true,
        values: &REGIONS,
        case: |region| case(0.85, region, DECADE),
    },
    Course {
        key: "region_at_0_70",
        title: "Over the length of regions, at a lower utilization",
        axis: "region length q/C",
        fixed: "U = 0.70, Tmax/Tmin = 10",
        logarithmic: false,
        in_table: false,
        values: &REGIONS,
        case: |region| case(0.70, region, DECADE),
    },
    Course {
        key: "period_range_at_0_85",
        title: "Over the range of periods",
        axis: "range of periods Tmax/Tmin",
        fixed: "U = 0.85, q = C/4",
        logarithmic: true,
        in_table: true,
        values: &RATIOS,
        case: |ratio| case(0.85, QUARTER, ratio),
    },
    Course {
        key: "period_range_at_0_70",
        title: "Over the range of periods, at a lower utilization",
        axis: "range of periods Tmax/Tmin",
        fixed: "U = 0.70, q = C/4",
        logarithmic: true,
        in_table: false,
        values: &RATIOS,
        case: |ratio| case(0.70, QUARTER, ratio),
    },
];

const fn case(utilization: f64, region: f64, ratio: f64) -> Case {
    Case {
        utilization,
        region,
        ratio,
    }
}

/// How the answers for one or more sets come out.
#[derive(Clone, Copy, Default)]
struct Tally {
    accepted: [u32; COUNT],
    undecided: [u32; COUNT],
    /// By order: sets that the weaker accepts and the stronger does not.
    against: [u32; ORDERS.len()],
}

impl Tally {
    fn of(set: &Variants) -> Self {
        let answers = TESTS.map(|test| (test.ask)(set));
        let accepts = |key| answers[index(key)] == Answer::Accepts;
        Self {
            accepted: answers.map(|answer| u32::from(answer == Answer::Accepts)),
            undecided: answers.map(|answer| u32::from(answer == Answer::Undecided)),
            against: ORDERS
                .map(|order| u32::from(accepts(order.weaker) && !accepts(order.stronger))),
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        let add = |sums: &mut [u32], more: &[u32]| {
            sums.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        };
        add(&mut self.accepted, &other.accepted);
        add(&mut self.undecided, &other.undecided);
        add(&mut self.against, &other.against);
        self
    }
}

impl Case {
    fn generator(&self, tasks: usize) -> Result<Generator, RecipeError> {
        let most = PERIOD_MIN.as_nanos() * self.ratio as u64;
        let recipe = Recipe {
            tasks,
            utilization: self.utilization,
            shares: Shares::Any,
            periods: Periods::LogUniform {
                least: PERIOD_MIN,
                most: Span::from_nanos(most),
                grain: GRAIN,
            },
            deadlines: Deadlines::Implicit,
            jitter: Jitter::None,
            regions: Regions::None,
        };
        recipe.generator()
    }

    /// Asks all tests for all sets. Set i is drawn with the same random numbers at every point.
    fn tally(&self, settings: &Settings) -> Result<Tally, RecipeError> {
        let generator = self.generator(settings.tasks)?;
        let one = |index: u32| {
            let mut draws = Draws::new(settings.seed, u64::from(index));
            let tasks = generator.draw(&mut draws)?;
            Ok(Tally::of(&Variants::new(tasks, self.region)?))
        };
        // Sums of counts: their order does not matter.
        let sets = (0..settings.sets).into_par_iter();
        sets.map(one)
            .try_reduce(Tally::default, |a, b| Ok(a.plus(&b)))
    }
}

/// Runs the whole study; tells before each point how far it is.
///
/// # Errors
///
/// [`StudyError`]: settings out of range, or no threads.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(Step)) -> Result<Results, StudyError> {
    check(settings)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build()?;
    let points = quoted::ROWS.len() + COURSES.iter().map(|c| c.values.len()).sum::<usize>();
    let mut total = Tally::default();
    let mut done = 0;
    let mut compute = |what: &'static str, case: Case| {
        tell(Step { what, done, points });
        done += 1;
        let tally = pool.install(|| case.tally(settings))?;
        total = total.plus(&tally);
        Ok::<_, RecipeError>(tally)
    };
    let mut comparison = Vec::new();
    for row in &quoted::ROWS {
        let case = case(row.utilization, row.region, DECADE);
        let tally = compute("the quoted table", case)?;
        let point = point(row.utilization, &tally);
        comparison.push(Comparison::new(row, point, settings.tasks));
    }
    let mut sweeps = Vec::new();
    for course in &COURSES {
        let mut points = Vec::new();
        for &value in course.values {
            let tally = compute(course.axis, (course.case)(value))?;
            points.push(point(value, &tally));
        }
        sweeps.push(Sweep {
            key: course.key,
            title: course.title,
            axis: course.axis,
            fixed: course.fixed,
            logarithmic: course.logarithmic,
            in_table: course.in_table,
            points,
        });
    }
    let sets = settings.sets * u32::try_from(points).expect("some dozens");
    Ok(Results::new(
        settings,
        comparison,
        sweeps,
        (sets, total.against),
    ))
}

fn point(value: f64, tally: &Tally) -> Point {
    Point {
        value,
        accepted: tally.accepted.to_vec(),
        undecided: tally.undecided.to_vec(),
    }
}

fn check(settings: &Settings) -> Result<(), StudyError> {
    let tasks = settings.tasks as u64;
    let limits = [
        ("sets", u64::from(settings.sets), u64::from(SETS_MAX)),
        ("tasks", tasks, TASKS_MAX as u64),
    ];
    for (what, value, most) in limits {
        if !(1..=most).contains(&value) {
            return Err(StudyError::Settings { what, value, most });
        }
    }
    Ok(())
}
