//! Sets like those of an engine control unit.
//!
//! Kramer, Ziegenbein, Hamann, "Real world automotive benchmarks for free", WATERS 2015: periods of the functions (*runnables*), table III;
//! their average execution times, table IV; the factors from average to worst, table V. Runnables that are bound to the crank's angle
//! (15 %) are left out, so the shares make 85.

use laxity_model::analysis::Task;
use laxity_model::{Service, Span};

use super::{Draws, RecipeError};

/// The runnables of one period.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Class {
    /// In milliseconds.
    pub period_ms: u64,
    /// Of all runnables, in percent.
    pub share_percent: u32,
    /// The least, the mean and the greatest of the runnables' average execution times, in nanoseconds.
    pub average_ns: [u64; 3],
    /// The least and the greatest factor from a runnable's average execution time to its worst, in hundredths.
    pub worst_percent: [u32; 2],
}

/// Tables III to V, without the angle-synchronous row.
pub const CLASSES: [Class; 9] = [
    row(1, 3, [340, 5_000, 30_110], [130, 2_911]),
    row(2, 2, [320, 4_200, 40_690], [154, 1_904]),
    row(5, 2, [360, 11_040, 83_380], [113, 1_844]),
    row(10, 25, [210, 10_090, 309_870], [106, 3_003]),
    row(20, 25, [250, 8_740, 291_420], [106, 1_561]),
    row(50, 3, [290, 17_560, 92_980], [113, 776]),
    row(100, 20, [210, 10_530, 420_430], [102, 888]),
    row(200, 1, [220, 2_560, 21_950], [103, 490]),
    row(1_000, 4, [370, 430, 460], [184, 475]),
];

const fn row(
    period_ms: u64,
    share_percent: u32,
    average_ns: [u64; 3],
    worst_percent: [u32; 2],
) -> Class {
    Class {
        period_ms,
        share_percent,
        average_ns,
        worst_percent,
    }
}

impl Class {
    /// The period.
    #[must_use]
    pub const fn period(&self) -> Span {
        Span::from_millis(self.period_ms)
    }

    /// A runnable's average execution time in nanoseconds. The paper gives the least, the mean and the greatest, and says that the
    /// values between follow a Weibull distribution whose parameters it keeps to itself. What is drawn from is the distribution of the
    /// greatest entropy among those with these three figures: exponential, cut at both ends.
    #[must_use]
    pub fn average(&self, draws: &mut Draws) -> f64 {
        let [least, mean, greatest] = self.average_ns.map(|ns| ns as f64);
        let width = greatest - least;
        let decay = decay((mean - least) / width);
        // The inverse of (1 − e^(−decay·x)) / (1 − e^(−decay)).
        let part = -libm::log1p(draws.unit() * libm::expm1(-decay)) / decay;
        least + width * part
    }

    /// A runnable's worst execution time in nanoseconds, whole and at least 1: its average times a factor that is uniform in its range.
    #[must_use]
    pub fn worst(&self, draws: &mut Draws) -> u64 {
        let [least, greatest] = self.worst_percent.map(|percent| f64::from(percent) / 100.0);
        let average = self.average(draws);
        let factor = least + draws.unit() * (greatest - least);
        ((average * factor) as u64).max(1)
    }
}

/// The decay (per width; negative: growth) of an exponential distribution on [0, 1] whose mean is this, by bisection: the mean
/// 1/d − 1/(eᵈ − 1) falls from one half to 0 as d grows from 0.
fn decay(mean: f64) -> f64 {
    if mean > 0.5 {
        return -decay(1.0 - mean);
    }
    // Nearer to 0 the difference is all rounding; the distribution is uniform for all anybody can see.
    let (mut low, mut high) = (1e-4, 1e3);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if 1.0 / middle - 1.0 / libm::expm1(middle) > mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// A class by its share.
pub fn class(draws: &mut Draws) -> &'static Class {
    &CLASSES[draws.weighted(CLASSES.iter().map(|class| class.share_percent))]
}

/// A set with this utilization: runnables are drawn until they need that much, the last one is shortened to make it up, and those of
/// one period are one task, as engine control units run them. So there are at most nine tasks, by period, the shortest first, due when
/// their period ends. The utilization is not above what was asked for, and less than 10⁻⁶ below.
///
/// # Errors
///
/// [`RecipeError::Number`] if `utilization` is not in (0, 1].
pub fn set(utilization: f64, draws: &mut Draws) -> Result<Vec<Task>, RecipeError> {
    if !(utilization > 0.0 && utilization <= 1.0) {
        return Err(RecipeError::Number("the utilization", utilization));
    }
    let mut costs = [0_u64; CLASSES.len()];
    let mut left = utilization;
    loop {
        let chosen = draws.weighted(CLASSES.iter().map(|class| class.share_percent));
        let class = &CLASSES[chosen];
        let worst = class.worst(draws);
        let period = class.period().as_nanos() as f64;
        if worst as f64 / period >= left {
            costs[chosen] += libm::floor(left * period) as u64;
            break;
        }
        costs[chosen] += worst;
        left -= worst as f64 / period;
    }
    let there = CLASSES.iter().zip(costs).filter(|(_, cost)| *cost > 0);
    there
        .map(|(class, cost)| Ok(Task::new(Service::from_nanos(cost), class.period())?))
        .collect()
}
