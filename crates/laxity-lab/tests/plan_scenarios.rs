//! Plans of scenarios: what the twin shows of every variant is within its bound, and the shipped scenario's plan to the letter.
//!
//! `LAXITY_CASES` multiplies the number of seeds (default 1: two seeds); above 1, the shipped scenario is looked at in its full length too.

use laxity_lab::runner::plan::{Plan, plan, render};
use laxity_lab::runner::{On, Silent};
use laxity_lab::scenario::{Length, Resolved, parse};

const TWIN: On = On::Twin { threads: 0 };

fn resolved(text: &str) -> Resolved {
    parse(text, "test.toml")
        .expect("a scenario")
        .resolve(Length::Quick)
}

fn whole(resolved: &Resolved) -> Plan {
    let admitted = plan(resolved, TWIN).expect("a plan");
    let bounded = admitted.bounded(resolved, TWIN).expect("bounds");
    bounded.observed(resolved, &mut Silent).expect("observed")
}

/// How many bounds there are that something was seen of, all of it within.
fn within(plan: &Plan) -> usize {
    let mut compared = 0;
    for variant in &plan.variants {
        for line in &variant.activities {
            assert!(
                line.bound_ns.is_some() != line.no_bound.is_some(),
                "{line:?}"
            );
            if let (Some(bound), Some(seen)) = (line.bound_ns, line.observed_max_ns) {
                assert!(seen <= bound, "{}: {line:?}", variant.name);
                assert!(line.observed_jobs > 0);
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn the_shipped_scenario_keeps_its_bounds_and_has_this_plan() {
    let resolved = resolved(include_str!("../../../scenarios/soft-modem.toml"));
    let plan = whole(&resolved);
    assert!(within(&plan) >= 35, "{}", within(&plan));
    insta::assert_snapshot!("soft_modem", render(&plan));
}

/// Placements, priorities, tasks and reservations that the shipped scenarios do not have.
const OTHERS: &str = r#"
[tasks.cothread]
kind = "periodic"
period = "3ms"
service = "0.4ms"
priority = 20

[tasks.urgent]
kind = "periodic"
period = "5ms"
service = "0.3ms"
priority = 31

[tasks.rogue]
kind = "rogue"
burst = "7ms"
every = "40ms"
priority = 26

[tasks.spinners]
kind = "spinner"
count = 3
priority = 8

[devices.modem]
kind = "soft-modem"

[defaults]
contracts = []

[variants.interrupt]
placement = "interrupt"
tasks = ["spinners", "cothread"]

[variants.interrupt-rogue]
placement = "interrupt"
tasks = ["rogue", "urgent"]

[variants.deferred-rogue]
placement = "deferred"
tasks = ["spinners", "cothread", "rogue"]

[variants.thread-equal]
placement = "thread 20"
tasks = ["spinners", "cothread"]

[variants.thread-above]
placement = "thread 28"
tasks = ["spinners", "cothread", "rogue"]

[variants.slots]
placement = "reserved 1ms/4ms"
tasks = ["spinners", "cothread"]

[variants.slots-confined]
placement = "reserved 3ms/10ms"
outside = "confined"
tasks = ["spinners", "urgent", "rogue"]

[variants.connected]
placement = "reserved 2ms/8ms"
start = "connected"
tasks = ["spinners", "cothread"]
"#;

fn factor() -> u64 {
    let factor = std::env::var("LAXITY_CASES").ok();
    factor.and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn other_scenarios_keep_their_bounds_too() {
    for seed in 1..=2 * factor() {
        let mut resolved = resolved(OTHERS);
        resolved.seed = seed;
        let plan = whole(&resolved);
        assert!(plan.admitted());
        assert!(within(&plan) >= 25, "{}", within(&plan));
    }
    if factor() > 1 {
        let text = include_str!("../../../scenarios/soft-modem.toml");
        let scenario = parse(text, "soft-modem.toml").expect("a scenario");
        assert!(within(&whole(&scenario.resolve(Length::Full))) >= 35);
    }
}

#[test]
fn what_never_stops_has_no_bound_and_takes_it_from_its_equals() {
    let text = "[tasks.spin]\nkind = \"spinner\"\ncount = 2\n[tasks.work]\nkind = \"periodic\"\nperiod = \"10ms\"\npriority = 8\n[variants.a]\nplacement = \"absent\"\n";
    let text = text.replace("placement = \"absent\"\n", "tasks = [\"spin\", \"work\"]\n");
    let resolved = resolved(&text);
    let plan = plan(&resolved, TWIN).expect("a plan");
    let plan = plan.bounded(&resolved, TWIN).expect("bounds");
    let why = |name: &str| {
        let line = plan.variants[0]
            .activities
            .iter()
            .find(|line| line.activity == name);
        line.and_then(|line| line.no_bound.clone())
            .expect("a reason")
    };
    assert!(why("spin").contains("never stops"));
    assert!(
        why("work").contains("shares its priority with `spin`"),
        "{}",
        why("work")
    );
}
