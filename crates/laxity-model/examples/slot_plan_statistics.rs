//! How well random sets of reservations are planned: `cargo run --release -p laxity-model --example slot_plan_statistics [sets] [seed] [population]`.
//!
//! Prints, for each population of sets and each kind of costs, how many are planned, how many within 5 % over-allocation, the
//! over-allocation, the slot edges a second beside those of one slot of X in every Y for each request, the entries, and the time.

use std::time::Instant;

use laxity_model::policy::slots::{MAX_ENTRIES, PlanCosts, plan};
use laxity_model::{Reservation, Service, Span};

#[path = "../tests/it/slot_sets/mod.rs"]
mod slot_sets;

use slot_sets::{Random, edges_per_1000_s};

/// Switches cost nothing.
const FREE: PlanCosts = PlanCosts {
    per_slot: Service::ZERO,
    max_share_ppm: 1_000_000,
    other_ppm: 0,
    granularity: Span::from_micros(1),
};

/// What the live dispatcher is charged.
const LIVE: PlanCosts = PlanCosts {
    per_slot: Service::from_micros(50),
    max_share_ppm: 940_000,
    other_ppm: 0,
    granularity: Span::from_micros(50),
};

#[derive(Default)]
struct Statistics {
    sets: usize,
    /// Sets that no table of single slots at their periods could fit.
    hopeless: usize,
    within: usize,
    over_ppm: Vec<u64>,
    /// Edges a second beside 2/Y, in parts per thousand.
    edges_permille: Vec<u64>,
    entries: usize,
    planned_us: Vec<u64>,
    /// Of sets of five.
    five_us: Vec<u64>,
    refused_us: Vec<u64>,
}

impl Statistics {
    fn add(&mut self, requests: &[Reservation], costs: &PlanCosts) {
        self.sets += 1;
        self.hopeless += usize::from(hopeless(requests, costs));
        let begun = Instant::now();
        let planned = plan(requests, costs);
        let took = begun.elapsed().as_micros() as u64;
        let Ok(table) = planned else {
            self.refused_us.push(took);
            return;
        };
        self.planned_us.push(took);
        if requests.len() == 5 {
            self.five_us.push(took);
        }
        assert!(table.keeps(requests), "{requests:?}");
        assert!(table.slots().len() <= MAX_ENTRIES);
        let over = table.over_allocation_ppm(requests);
        self.over_ppm.push(over);
        self.within += usize::from(over <= 50_000);
        let exact: f64 = requests
            .iter()
            .map(|r| 2e12 / r.period().as_nanos() as f64)
            .sum();
        self.edges_permille
            .push((1e3 * edges_per_1000_s(&table) as f64 / exact) as u64);
        self.entries = self.entries.max(table.slots().len());
    }

    fn print(&mut self, name: &str) {
        let percent = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        let planned = self.planned_us.len();
        println!("{name}");
        println!(
            "  sets {}; planned {:.3} %, within 5 % {:.3} %; could not be {:.3} %",
            self.sets,
            percent(planned, self.sets),
            percent(self.within, self.sets),
            percent(self.hopeless, self.sets)
        );
        let (mean, median, p99, most) = summary(&mut self.over_ppm);
        println!(
            "  over-allocation %: mean {:.3}, median {:.3}, p99 {:.3}, max {:.3}",
            mean / 1e4,
            median as f64 / 1e4,
            p99 as f64 / 1e4,
            most as f64 / 1e4
        );
        let (mean, median, p99, most) = summary(&mut self.edges_permille);
        println!(
            "  edges a second / sum 2/Y: mean {:.4}, median {:.3}, p99 {:.3}, max {:.3}",
            mean / 1e3,
            median as f64 / 1e3,
            p99 as f64 / 1e3,
            most as f64 / 1e3
        );
        println!("  entries: max {}", self.entries);
        for (what, times) in [
            ("planned", &mut self.planned_us),
            ("five planned", &mut self.five_us),
            ("refused", &mut self.refused_us),
        ] {
            let (mean, median, p99, most) = summary(times);
            println!("  us {what}: mean {mean:.0}, median {median}, p99 {p99}, max {most}");
        }
    }
}

/// Mean, median, 99th percentile, maximum.
fn summary(values: &mut [u64]) -> (f64, u64, u64, u64) {
    values.sort_unstable();
    let Some(last) = values.len().checked_sub(1) else {
        return (0.0, 0, 0, 0);
    };
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    (
        mean,
        values[last / 2],
        values[last * 99 / 100],
        values[last],
    )
}

/// Whether not even one slot of X in every Y for each would fit, if they never met.
fn hopeless(requests: &[Reservation], costs: &PlanCosts) -> bool {
    let cost = costs.per_slot.as_nanos();
    let load = requests
        .iter()
        .map(|r| (r.service().as_nanos() + cost) as f64 / r.period().as_nanos() as f64);
    load.sum::<f64>() * 1e6 > f64::from(costs.max_share_ppm)
}

/// The costs, by name, and whether four fifths of the processor are asked for exactly.
const POPULATIONS: [(&str, PlanCosts, bool); 4] = [
    ("FREE, sum of X/Y <= 0.8", FREE, false),
    ("FREE, sum of X/Y = 0.8", FREE, true),
    ("LIVE, sum of X/Y <= 0.8", LIVE, false),
    ("LIVE, sum of X/Y = 0.8", LIVE, true),
];

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|n| n.parse::<u64>().expect("a number"));
    let sets = arguments.next().unwrap_or(10_000);
    let seed = arguments.next().unwrap_or(1);
    let only = arguments.next();
    for (number, (name, costs, exactly)) in (0..).zip(POPULATIONS) {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let shortest = Service::from_nanos(costs.granularity.as_nanos());
        let mut random = Random(seed);
        let mut statistics = Statistics::default();
        for _ in 0..sets {
            let requests = if exactly {
                random.four_fifths(shortest)
            } else {
                random.up_to_four_fifths(shortest)
            };
            statistics.add(&requests, &costs);
        }
        statistics.print(name);
    }
}
