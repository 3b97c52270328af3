//! The tests that are compared, and the orders among them.

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{
    Doubt, Overflow, Search, Task, Verdict, edf, fixed_priority, utilization,
};

use laxity_lab::workload::{RecipeError, Regions};

/// One task set by rate, the shortest period first, in each of the ways that a test may take its regions.
#[derive(Clone, Debug)]
pub struct Variants {
    /// Preemptible anywhere.
    preemptive: Vec<Task>,
    /// With regions of up to q, wherever they are.
    floating: Vec<Task>,
    /// Cut into regions of q; the last is one of them.
    cut: Vec<Task>,
}

impl Variants {
    /// A set with regions of this part of each execution time; none for a part of zero.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Number`] for a part outside [0, 1].
    pub fn new(mut tasks: Vec<Task>, part: f64) -> Result<Self, RecipeError> {
        tasks.sort_by_key(Task::period);
        let [floating, cut] = if part > 0.0 {
            [Regions::Floating(part), Regions::Cut(part)]
        } else {
            [Regions::None; 2]
        };
        Ok(Self {
            floating: floating.apply(&tasks)?,
            cut: cut.apply(&tasks)?,
            preemptive: Regions::None.apply(&tasks)?,
        })
    }
}

/// What a test says of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Schedulable.
    Accepts,
    /// Not schedulable, or not so as far as a sufficient test can tell.
    Rejects,
    /// The set is not what the test is made for, or the search was given up, or a number did not fit.
    Undecided,
}

/// How a test takes non-preemptive regions. Figures draw each in a way of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// There are none.
    Preemptive,
    /// They float: none is longer than q.
    Floating,
    /// Jobs are cut into regions of q, the last of which is not preempted either.
    Cut,
    /// The test chooses a last region for each task.
    Chosen,
}

impl Model {
    /// For people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Preemptive => "no regions",
            Self::Floating => "floating regions of q",
            Self::Cut => "regions of q, also the last",
            Self::Chosen => "last regions of its own choice",
        }
    }
}

/// A test of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Its name in JSON.
    pub key: &'static str,
    /// Over its column: two short lines.
    pub heading: [&'static str; 2],
    /// Its name for people.
    pub label: &'static str,
    /// How it takes regions.
    pub model: Model,
    /// Whose it is.
    pub source: &'static str,
    /// Asks it.
    pub ask: fn(&Variants) -> Answer,
}

/// So many are compared.
pub const COUNT: usize = 13;

/// The tests, in the order of columns.
pub const TESTS: [Test; COUNT] = [
    Test {
        key: "liu_layland",
        heading: ["LL", ""],
        label: "Liu-Layland",
        model: Model::Preemptive,
        source: "Liu, Layland 1973, theorem 5",
        ask: |set| verdict(utilization::liu_layland(&set.preemptive)),
    },
    Test {
        key: "hyperbolic",
        heading: ["hyp.", ""],
        label: "hyperbolic bound",
        model: Model::Preemptive,
        source: "Bini, Buttazzo, Buttazzo 2003",
        ask: |set| verdict(utilization::hyperbolic(&set.preemptive)),
    },
    Test {
        key: "blocking_summed",
        heading: ["Sha", "summed"],
        label: "blocking, summed",
        model: Model::Floating,
        source: "Sha, Rajkumar, Lehoczky 1990, in the form of Gopalakrishnan, Parulkar 1995, §5.3",
        ask: |set| verdict(utilization::blocking_summed(&set.floating)),
    },
    Test {
        key: "rmdp",
        heading: ["RMDP", ""],
        label: "RMDP",
        model: Model::Floating,
        source: "Gopalakrishnan, Parulkar 1995, §5.3",
        ask: |set| verdict(utilization::rmdp(&set.floating)),
    },
    Test {
        key: "blocking_per_task",
        heading: ["Sha", "p.task"],
        label: "blocking, task by task",
        model: Model::Floating,
        source: "Sha, Rajkumar, Lehoczky 1990",
        ask: |set| verdict(utilization::blocking_per_task(&set.floating)),
    },
    Test {
        key: "hyperbolic_with_blocking",
        heading: ["hyp.", "+ B"],
        label: "hyperbolic with blocking",
        model: Model::Floating,
        source: "Bini, Buttazzo, Buttazzo 2003, with blocking",
        ask: |set| verdict(utilization::hyperbolic_with_blocking(&set.floating)),
    },
    Test {
        key: "fp_floating",
        heading: ["FP", "float."],
        label: "fixed priority, floating regions",
        model: Model::Floating,
        source: "response times; Joseph, Pandya 1986, with blocking",
        ask: |set| verdict(fixed_priority::test(&set.floating, &Dedicated)),
    },
    Test {
        key: "fp_last_region",
        heading: ["FP", "last"],
        label: "fixed priority, fixed last region",
        model: Model::Cut,
        source: "response times; Bril, Lukkien, Verhaegh 2009",
        ask: |set| verdict(fixed_priority::test(&set.cut, &Dedicated)),
    },
    Test {
        key: "fp_last_region_best_order",
        heading: ["FP l.", "Auds."],
        label: "fixed last region, best priorities",
        model: Model::Cut,
        source: "Audsley 2001 over response times",
        ask: |set| exists(&fixed_priority::best_order(&set.cut, &Dedicated)),
    },
    Test {
        key: "fp_preemptive",
        heading: ["FP", "preem."],
        label: "fixed priority, preemptive",
        model: Model::Preemptive,
        source: "response times; Joseph, Pandya 1986",
        ask: |set| verdict(fixed_priority::test(&set.preemptive, &Dedicated)),
    },
    Test {
        key: "fp_final_regions",
        heading: ["FNR", "-PA"],
        label: "best final regions and priorities (FNR-PA)",
        model: Model::Chosen,
        source: "Davis, Bertogna 2012",
        ask: |set| {
            let order = fixed_priority::best_order_with_final_regions(&set.preemptive, &Dedicated);
            exists(&order)
        },
    },
    Test {
        key: "edf_floating",
        heading: ["EDF", "float."],
        label: "earliest deadline first, floating regions",
        model: Model::Floating,
        source: "demand; Baruah 2005",
        ask: |set| verdict(edf::test(&set.floating, &Dedicated)),
    },
    Test {
        key: "edf_preemptive",
        heading: ["EDF", "preem."],
        label: "earliest deadline first, preemptive",
        model: Model::Preemptive,
        source: "demand; Zhang, Burns 2009",
        ask: |set| verdict(edf::test(&set.preemptive, &Dedicated)),
    },
];

fn verdict(answer: Result<Verdict, Overflow>) -> Answer {
    match answer {
        Ok(Verdict::Schedulable) => Answer::Accepts,
        Ok(Verdict::NotSchedulable(_) | Verdict::Unknown(Doubt::Sufficient)) => Answer::Rejects,
        Ok(Verdict::Unknown(Doubt::OutOfScope | Doubt::TooLong)) | Err(_) => Answer::Undecided,
    }
}

fn exists<T>(answer: &Result<Search<T>, Overflow>) -> Answer {
    match answer {
        Ok(Search::Found(_)) => Answer::Accepts,
        Ok(Search::None) => Answer::Rejects,
        Ok(Search::Unknown(_)) | Err(_) => Answer::Undecided,
    }
}

/// Theory says that whatever one test accepts, another accepts too: a single set for which that is not so would show a defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The key of the test that accepts less.
    pub weaker: &'static str,
    /// The key of the one that accepts no less.
    pub stronger: &'static str,
    /// Why.
    pub reason: &'static str,
}

const fn order(weaker: &'static str, stronger: &'static str, reason: &'static str) -> Order {
    Order {
        weaker,
        stronger,
        reason,
    }
}

/// Every test for fixed priorities tells of a system that the choice of final regions includes: no region before the last only helps, a
/// last region of one tick is none, and rate monotonic priorities are one order among all.
const INCLUDED: &str = "its last regions and its priorities are among those to choose from";
const EXACT: &str = "a bound is sufficient, response times are exact";

/// The orders that are checked on every set.
pub const ORDERS: [Order; 21] = [
    order("liu_layland", "fp_final_regions", INCLUDED),
    order("hyperbolic", "fp_final_regions", INCLUDED),
    order("blocking_summed", "fp_final_regions", INCLUDED),
    order("rmdp", "fp_final_regions", INCLUDED),
    order("blocking_per_task", "fp_final_regions", INCLUDED),
    order("hyperbolic_with_blocking", "fp_final_regions", INCLUDED),
    order("fp_floating", "fp_final_regions", INCLUDED),
    order("fp_last_region", "fp_final_regions", INCLUDED),
    order("fp_last_region_best_order", "fp_final_regions", INCLUDED),
    order("fp_preemptive", "fp_final_regions", INCLUDED),
    order("liu_layland", "hyperbolic", "Bini, Buttazzo, Buttazzo 2003"),
    order("hyperbolic", "fp_preemptive", EXACT),
    order(
        "blocking_summed",
        "blocking_per_task",
        "the sum takes the worst of all tasks",
    ),
    order(
        "rmdp",
        "blocking_per_task",
        "who blocks needs as much in each of its periods",
    ),
    order(
        "blocking_per_task",
        "hyperbolic_with_blocking",
        "a product accepts what its sum does",
    ),
    order("hyperbolic_with_blocking", "fp_floating", EXACT),
    order(
        "fp_floating",
        "fp_last_region",
        "the last region is not delayed",
    ),
    order(
        "fp_last_region",
        "fp_last_region_best_order",
        "rate monotonic is one order of all",
    ),
    order(
        "fp_final_regions",
        "edf_preemptive",
        "earliest deadline first is optimal",
    ),
    order(
        "fp_last_region_best_order",
        "edf_floating",
        "whatever the priorities, all that is due by t must be served by t",
    ),
    order(
        "edf_floating",
        "edf_preemptive",
        "without regions nobody is blocked",
    ),
];

/// The place of a test in [`TESTS`].
///
/// # Panics
///
/// If no test has this key, which is a mistake in a table here.
#[must_use]
pub fn index(key: &str) -> usize {
    let found = TESTS.iter().position(|test| test.key == key);
    found.unwrap_or_else(|| panic!("no test is called {key}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_and_orders_fit() {
        let keys: BTreeSet<_> = TESTS.iter().map(|test| test.key).collect();
        assert_eq!(keys.len(), COUNT);
        for order in ORDERS {
            assert_ne!(index(order.weaker), index(order.stronger));
        }
        let dominated = ORDERS.iter().filter(|o| o.stronger == "fp_final_regions");
        let fixed_priority = keys.iter().filter(|key| !key.starts_with("edf_"));
        assert_eq!(dominated.count() + 1, fixed_priority.count());
    }
}
