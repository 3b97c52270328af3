//! What is shown of the policies, and what is claimed.

use laxity_model::adaptive::Policy;
use laxity_model::{Service, Span};

use super::driver::Load;
use super::trial::{Outcome, WINDOW, Way};
use super::{CONSTANT_FOR, FIGURES, LIVE_STRETCH, OTHER, Runs, STRETCH, Tried, at_start, steps};
use laxity_lab::bench::Request;
use laxity_lab::sheet::{
    Axis, Cell, Chart, Check, Figure, Mark, Origin, Series, Sheet, Table, Unit, Value,
};

fn cell(value: Value, origin: Origin) -> Option<Cell> {
    Some(Cell { value, origin })
}

/// The whole sheet.
pub(super) fn sheet(request: &Request, runs: &Runs) -> Sheet {
    let figures = FIGURES.iter().filter(|(key, _)| request.wants(key));
    let figures = figures.filter_map(|(key, title)| {
        let (about, table, charts, remarks) = match *key {
            "steps" => (
                ABOUT_STEPS,
                stepped(&runs.steps, STRETCH, Origin::Simulated),
                vec![chart(&runs.steps, STRETCH)],
                &STEP_REMARKS[..],
            ),
            "constant" => (
                ABOUT_CONSTANT,
                constant(&runs.constant),
                Vec::new(),
                &[][..],
            ),
            "admission" => (
                ABOUT_ADMISSION,
                admission(&runs.admission),
                Vec::new(),
                &[][..],
            ),
            _ => {
                let (_, live) = runs.live.as_ref()?;
                let table = stepped(live, LIVE_STRETCH, Origin::Measured);
                (ABOUT_LIVE, table, vec![chart(live, LIVE_STRETCH)], &[][..])
            }
        };
        Some(Figure {
            key: (*key).into(),
            title: (*title).into(),
            about: about.into(),
            charts,
            compared: Vec::new(),
            tables: vec![table],
            remarks: remarks.iter().map(|&remark: &&str| remark.into()).collect(),
        })
    });
    let mut circumstances = vec![
        ("twin", "win2000-pii450".to_owned()),
        ("seed", request.seed.to_string()),
        ("repeats", REPEATS.to_owned()),
        ("charged", "a job every 12.5 ms, due after 12.5 ms: 1.84 ms (Jones, Saroiu §6.6), 3.68 ms and 1.84 ms again, ±10 % each; confined to its reservation, beside a thread that never stops".to_owned()),
    ];
    circumstances.extend(
        runs.live
            .iter()
            .map(|(host, _)| ("measured on", host.clone())),
    );
    Sheet {
        experiment: "adaptive",
        title: "Reservations that follow the load".into(),
        summary: summary(runs),
        circumstances,
        figures: figures.collect(),
        checks: checks(runs),
    }
}

const QUESTION: &str = "A program can base its reservation on the run times it observes, or on whether it finished in time, or on both (Jones, Saroiu §5.4). Here a device's work doubles for a while: which of them follows it, how soon, and is it calm at constant load?";
const IN_TIME: &str = "Whether jobs were in time says when more is needed, but not when less would do: until a job is late, a device whose load halved looks like any other. A policy that goes by that alone can only try, now and then.";

/// The question, and what came of it.
fn summary(runs: &Runs) -> Vec<String> {
    let mut all = vec![QUESTION.to_owned()];
    for (how, outcome) in &runs.steps {
        let share = outcome.mean_share_ppm / 10_000;
        let served = format!("{share} % reserved on average, {} jobs late", outcome.late);
        let Way::Adaptive(policy, _) = *how else {
            all.push(format!("In the twin, {}: {served}.", way(*how)));
            continue;
        };
        let followed = |from, up| {
            let after = outcome.followed(from, from + STRETCH, up);
            let ms = |after: Span| Span::from_millis(after.as_nanos() / 1_000_000);
            after.map_or("not followed".into(), |after| {
                format!("followed after {}", ms(after))
            })
        };
        all.push(format!(
            "In the twin, by {}: a load that doubles is {}, one that halves {}; {served}.",
            policy.name(),
            followed(STRETCH, true),
            followed(STRETCH * 2, false),
        ));
    }
    all.push(IN_TIME.to_owned());
    all
}

/// What is said of `--repeats`.
const REPEATS: &str = "each policy is run once, whatever is asked for: its steps repeat in it";
const ABOUT_STEPS: &str = "30 s each of 1.84, 3.68 and 1.84 ms. The best fixed reservation is the least of all multiples of 0.1 ms in 8 ms with which, and above which, no job is late. `Settled`: from the step to the last change before ten seconds without one.";
const ABOUT_CONSTANT: &str = "1.84 ms for 240 s.";
const ABOUT_ADMISSION: &str = "The same steps beside another holder of 4.5 ms in 8 ms, which leaves 3.5 ms at most: too little for the higher load. Its share is what it received of what it reserved.";
const ABOUT_LIVE: &str =
    "The same steps, 5 s each. The fixed reservation is the twin's best and 0.1 ms.";
const STEP_REMARKS: [&str; 2] = [
    "Late jobs after the first step are the price of not knowing in advance: jobs that were released before the larger reservation came into force.",
    "Mean shares count a change from the instant from which it holds.",
];

fn way(way: Way) -> String {
    match way {
        Way::Fixed(service) => format!("fixed {service}/{WINDOW}"),
        Way::Adaptive(policy, _) => format!("adaptive: {}", policy.name()),
    }
}

fn common(tried: &Tried, origin: Origin) -> Vec<Option<Cell>> {
    let (how, outcome) = tried;
    let share = u32::try_from(outcome.mean_share_ppm).unwrap_or(u32::MAX);
    vec![
        cell(Value::Text(way(*how)), Origin::Charged),
        cell(Value::Count(outcome.jobs), origin),
        cell(Value::Count(outcome.late), origin),
        cell(Value::Count(outcome.lost), origin),
        cell(Value::Share(share), origin),
        cell(Value::Count(outcome.changes.len() as u64), origin),
    ]
}

fn table(caption: &str, more: &[&str], rows: Vec<Vec<Option<Cell>>>) -> Table {
    let columns = [
        "reservation",
        "jobs",
        "late",
        "lost",
        "mean share",
        "changes",
    ];
    Table {
        caption: caption.into(),
        columns: columns
            .iter()
            .chain(more)
            .map(|&column| column.into())
            .collect(),
        rows,
    }
}

fn stepped(tried: &[Tried], stretch: Span, origin: Origin) -> Table {
    let rows = tried.iter().map(|tried| {
        let mut row = common(tried, origin);
        let up = tried.1.settled(stretch, stretch * 2);
        let down = tried.1.settled(stretch * 2, stretch * 3);
        let adapts = matches!(tried.0, Way::Adaptive(..));
        let if_adaptive = |value| adapts.then_some(Cell { value, origin });
        row.push(if_adaptive(Value::Span(up.after)));
        row.push(if_adaptive(Value::Span(down.after)));
        let later = up.later_changes.max(down.later_changes);
        row.push(if_adaptive(Value::Count(later)));
        row
    });
    let more = ["settled up", "settled down", "most changes in 10 s after"];
    table("Steps", &more, rows.collect())
}

fn constant(tried: &[Tried]) -> Table {
    let rows = tried.iter().map(|tried| common(tried, Origin::Simulated));
    table("A constant load", &[], rows.collect())
}

fn admission(tried: &[Tried]) -> Table {
    let rows = tried.iter().map(|tried| {
        let mut row = common(tried, Origin::Simulated);
        row.push(cell(Value::Count(tried.1.refused), Origin::Simulated));
        let other = tried.1.other_ppm.unwrap_or(0);
        let other = u32::try_from(other).unwrap_or(u32::MAX);
        row.push(cell(Value::Share(other), Origin::Simulated));
        row
    });
    table(
        "Admission",
        &["refused", "the other's share"],
        rows.collect(),
    )
}

fn chart(tried: &[Tried], stretch: Span) -> Chart {
    let end = stretch * 3;
    let load = steps(stretch);
    let mut series = vec![load_series(&load, stretch)];
    series.extend(tried.iter().map(|(how, outcome)| Series {
        name: way(*how),
        mark: Mark::Line,
        points: held(*how, outcome, end),
    }));
    let axis = |label: &str| Axis {
        label: label.into(),
        unit: Unit::Nanoseconds,
        logarithmic: false,
        range: None,
    };
    Chart {
        caption: "reserved in every 8 ms, and the work of a job".into(),
        x: axis("time"),
        y: axis("processor time"),
        series,
        lines: Vec::new(),
    }
}

fn point(at: Span, service: Service) -> (i64, i64) {
    (at.as_nanos() as i64, service.as_nanos() as i64)
}

fn load_series(load: &Load, stretch: Span) -> Series {
    let corners = (0..3).flat_map(|n| {
        let mean = load.mean(stretch * n);
        [point(stretch * n, mean), point(stretch * (n + 1), mean)]
    });
    Series {
        name: "work of a job".into(),
        mark: Mark::Line,
        points: corners.collect(),
    }
}

/// What was held, with a corner before and after each change.
fn held(how: Way, outcome: &Outcome, end: Span) -> Vec<(i64, i64)> {
    let (Way::Fixed(mut service) | Way::Adaptive(_, mut service)) = how;
    let mut points = vec![point(Span::ZERO, service)];
    for (at, next) in &outcome.changes {
        points.push(point(*at, service));
        service = *next;
        points.push(point(*at, service));
    }
    points.push(point(end, service));
    points
}

fn check(claim: String, held: bool, seen: String) -> Check {
    Check { claim, held, seen }
}

/// The bound on settling.
const SOON: Span = Span::from_secs(2);

fn checks(runs: &Runs) -> Vec<Check> {
    let mut checks = Vec::new();
    let best = runs
        .steps
        .first()
        .map_or(0, |(_, best)| best.mean_share_ppm);
    for (how, outcome) in &runs.steps {
        if let Way::Adaptive(policy, _) = *how {
            checks.extend(step_checks(policy, outcome, best));
        }
    }
    for (how, outcome) in &runs.constant {
        checks.push(constant_check(*how, outcome));
    }
    for (how, outcome) in &runs.admission {
        let most = outcome.changes.iter().map(|(_, service)| *service).max();
        let most = most.unwrap_or_else(at_start);
        let other = outcome.other_ppm.unwrap_or(0);
        checks.push(check(
            format!(
                "{}: never beyond admission, and the other holder loses nothing",
                way(*how)
            ),
            most + OTHER <= WINDOW.as_full_service() && other >= 990_000,
            format!(
                "{most} at most, {} refused; the other received {} ppm",
                outcome.refused, other
            ),
        ));
    }
    for (how, outcome) in runs.live.iter().flat_map(|(_, tried)| tried) {
        checks.extend(live_check(*how, outcome));
    }
    checks
}

/// By run times nothing changes twice in ten seconds. By timeliness a try, its undoing and another raise may come close together.
fn constant_check(how: Way, outcome: &Outcome) -> Check {
    let in_time = matches!(how, Way::Adaptive(Policy::InTime, _));
    let (most, words) = if in_time {
        (3, "three changes in any 10 s, and one in 10 s on average,")
    } else {
        (1, "one change in any 10 s")
    };
    let seen = outcome.most_changes(Span::ZERO, CONSTANT_FOR);
    let all = outcome.changes.len() as u64;
    check(
        format!("{}: at most {words} at constant load", way(how)),
        seen <= most && all <= CONSTANT_FOR / Span::from_secs(10) && outcome.jobs > 0,
        format!("{seen} in 10 s, {all} in {CONSTANT_FOR}"),
    )
}

/// On this machine: the load is followed up, and down by those who can tell.
fn live_check(how: Way, outcome: &Outcome) -> Option<Check> {
    let Way::Adaptive(policy, _) = how else {
        return None;
    };
    let after = |from: Span, up| outcome.followed(from, from + LIVE_STRETCH, up);
    let soon = |after: Option<Span>| after.is_some_and(|after| after <= SOON);
    let words = |after: Option<Span>| after.map_or("never".into(), |after| after.to_string());
    let (up, down) = (after(LIVE_STRETCH, true), after(LIVE_STRETCH * 2, false));
    let rest = format!(
        "{} jobs, {} late, {} lost",
        outcome.jobs, outcome.late, outcome.lost
    );
    Some(if policy == Policy::InTime {
        check(
            format!(
                "here, {}: more within 2 s of a load that doubles",
                policy.name()
            ),
            soon(up),
            format!("{}; {rest}", words(up)),
        )
    } else {
        check(
            format!(
                "here, {}: more within 2 s of a load that doubles, less within 2 s of one that halves",
                policy.name()
            ),
            soon(up) && soon(down),
            format!("{} and {}; {rest}", words(up), words(down)),
        )
    })
}

fn step_checks(policy: Policy, outcome: &Outcome, best_ppm: u64) -> Vec<Check> {
    let name = policy.name();
    let up = outcome.settled(STRETCH, STRETCH * 2);
    let down = outcome.settled(STRETCH * 2, STRETCH * 3);
    let mut checks = vec![check(
        format!("{name}: settled within 2 s of a load that doubles"),
        up.after <= SOON && up.after > Span::ZERO,
        up.after.to_string(),
    )];
    if policy == Policy::InTime {
        return checks;
    }
    let later = up.later_changes.max(down.later_changes);
    checks.push(check(
        format!(
            "{name}: settled within 2 s of a load that halves, then at most one change in 10 s"
        ),
        down.after <= SOON && down.after > Span::ZERO && later <= 1,
        format!("{}, then {later}", down.after),
    ));
    checks.push(check(
        format!("{name}: reserves less on average than the best fixed reservation"),
        outcome.mean_share_ppm < best_ppm,
        format!("{} ppm, {best_ppm} ppm", outcome.mean_share_ppm),
    ));
    checks
}
