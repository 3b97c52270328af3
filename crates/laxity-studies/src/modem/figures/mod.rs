//! Figures 1 to 16 of the study, and its stress run. What is drawn and compared in each stands in `data/modem.toml`.
//!
//! * [`runs`]: the runs; [`readings`]: what is read from one; [`disk`]: the twin's disk.
//! * [`reading`]: a number that is read from runs; [`quantity`]: a row that compares it; [`drawing`]: drawings; [`stress`]: the stress run.

pub(super) mod disk;
mod drawing;
mod quantity;
mod reading;
mod readings;
mod runs;
mod stress;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Request};
use laxity_lab::report::{Figure, Origin, Row, Value};
use laxity_lab::runner::conclude::{machine, steal_ns};
use laxity_model::Span;

use super::{Case, Modem, Seen, TEXT};
use crate::or;
use drawing::{Drawing, Look};
use quantity::Quantity;
use reading::{Measure, Runs, said};
pub use readings::Readings;
use readings::Series;
pub use runs::Run;
pub(super) use runs::SCENES;
use stress::Pair;

/// What is drawn and compared in each figure.
struct Plan {
    looks: BTreeMap<Series, Look>,
    drawings: Vec<Drawing>,
    quantities: Vec<Quantity>,
    stress: Vec<Pair>,
    stress_columns: Vec<Measure>,
}

static PLAN: LazyLock<Plan> = LazyLock::new(|| Plan {
    looks: TEXT.quoted("series"),
    drawings: TEXT.quoted("drawings"),
    quantities: TEXT.quoted("quantities"),
    stress: TEXT.quoted("stress"),
    stress_columns: TEXT.quoted("stress-columns"),
});

/// The names of the runs that the figures asked for need.
fn needed(request: &Request) -> Vec<&'static str> {
    let drawings = PLAN.drawings.iter().filter(|of| request.wants(&of.figure));
    let quantities = PLAN.quantities.iter();
    let quantities = quantities.filter(|of| request.wants(&of.figure));
    let stress = PLAN.stress.iter().filter(|_| request.wants("stress"));
    let stress = stress.flat_map(|pair| &pair.runs).map(String::as_str);
    let drawn = drawings.map(|drawing| drawing.run.as_str());
    drawn
        .chain(quantities.flat_map(Quantity::runs))
        .chain(stress)
        .collect()
}

/// The twin's runs of the figures asked for.
pub(super) fn in_twin(request: &Request) -> Vec<Case> {
    let runs = runs::in_twin(&needed(request), request.seed);
    runs.into_iter().map(Case::Run).collect()
}

/// Whether any run is made for the figures that are wanted.
pub(super) fn is_needed(request: &Request) -> bool {
    !needed(request).is_empty()
}

/// The runs on this machine, at the load that was found.
pub(super) fn here(made: &Made<'_, Modem>) -> Vec<Case> {
    let request = made.request;
    let runs = runs::here(&needed(request), request, further_receivers(made));
    runs.into_iter().map(Case::Run).collect()
}

/// Receivers besides the first that make up the load here.
fn further_receivers(made: &Made<'_, Modem>) -> usize {
    made.here.as_ref().map_or(0, |here| here.further_receivers)
}

/// What was seen on a host, by run.
fn seen(trials: &[(Case, Seen)]) -> Runs<'_> {
    let mut runs = Runs::new();
    for trial in trials {
        if let (Case::Run(run), Seen::Run(readings)) = trial {
            let name = run.scene().name.as_str();
            runs.entry(name).or_default().push(readings);
        }
    }
    runs
}

/// Draws the figures asked for, and says what is claimed of their runs.
pub(super) fn draw(made: &Made<'_, Modem>, draft: &mut Draft<'_>) {
    let (twin, live) = (seen(&made.twin), seen(&made.live));
    for text in &TEXT.figures {
        if let Some(figure) = draft.figure(&text.key) {
            fill(&text.key, [&twin, &live], figure);
        }
    }
    claims("whole", &twin, draft);
    claims("whole-live", &live, draft);
    if !live.is_empty() {
        circumstances(made, &live, draft);
    }
}

fn fill(key: &str, [twin, live]: [&Runs<'_>; 2], figure: &mut Figure) {
    if key == "stress" {
        stress::draw(&PLAN, [twin, live], figure);
    }
    for (runs, is_live) in [(twin, false), (live, true)] {
        for drawing in PLAN.drawings.iter().filter(|of| of.figure == key) {
            if let Some(runs) = runs.get(drawing.run.as_str()) {
                let look = &PLAN.looks[&drawing.series];
                figure.charts.push(drawing.chart(look, runs, is_live));
                if is_live && drawing.series == Series::Gaps {
                    figure.tables.push(TEXT.table("rounds", &[], rounds(runs)));
                    figure.remarks.push(TEXT.say("live-gaps", &[]));
                }
            }
        }
    }
    let quantities = PLAN.quantities.iter().filter(|of| of.figure == key);
    let printed = quantity::sources(quantities.clone());
    figure
        .remarks
        .extend(printed.map(|places| TEXT.say("printed", &[("where", &places)])));
    for quantity in quantities {
        if let Some(row) = quantity.compared(twin, live) {
            figure.remarks.extend(quantity.remark(&row));
            figure.compared.push(row);
        }
    }
    if !live.is_empty() && matches!(key, "figure-7" | "figure-9" | "figure-12" | "stress") {
        figure.remarks.push(TEXT.say(&format!("live-{key}"), &[]));
    }
}

/// The rounds of a callback on this machine, one by one.
fn rounds(runs: &[&Readings]) -> Vec<Row> {
    let row = |(index, run): (usize, &&Readings)| {
        let gaps = run.points(Series::Gaps);
        let fair = gaps.iter().filter(|gap| !gap.disturbed);
        let mut fair: Vec<u64> = fair.map(|gap| gap.value).collect();
        fair.sort_unstable();
        let at = |ppm: usize| {
            let rank = (fair.len() * ppm).div_ceil(1_000_000).checked_sub(1)?;
            fair.get(rank).copied()
        };
        let span = |nanos: Option<u64>| Origin::Measured.cell(Span::from_nanos(nanos?));
        let mut row = Origin::Measured.row([(index + 1).into(), gaps.len().into()]);
        row.extend([span(at(990_000)), span(at(999_000)), span(at(1_000_000))]);
        row.push(span(gaps.iter().map(|gap| gap.value).max()));
        let disturbed = run.said.disturbed_ppm();
        row.push(disturbed.and_then(|ppm| Origin::Measured.cell(Value::share(ppm.into()))));
        row
    };
    runs.iter().enumerate().map(row).collect()
}

/// What must hold of a host's runs while nothing disturbs them: a thread of priority 8 is there to fail. Nothing is claimed of what was not run.
fn claims(key: &str, runs: &Runs<'_>, draft: &mut Draft<'_>) {
    let scenes = SCENES.variants.iter();
    for scene in scenes.filter(|scene| !scene.devices.is_empty() && scene.name != "thr-8") {
        let Some(runs) = runs.get(scene.name.as_str()) else {
            continue;
        };
        let lost = runs.iter().flat_map(|run| run.points(Series::Damage));
        let fair = lost.clone().filter(|lost| !lost.disturbed);
        let damage: u64 = fair.map(|lost| lost.value).sum();
        let all: u64 = lost.map(|lost| lost.value).sum();
        let has_calls = |run: &&Readings| !run.points(Series::Calls).is_empty();
        let goes_on = |run: &&Readings| run.outcome.is_none();
        let is_served = runs.iter().all(|run| has_calls(run) && goes_on(run));
        // What no halt excuses is beyond doubt, and so is that nothing was lost at all.
        let is_certain = damage > 0 || (all == 0 && is_served);
        let calls = match runs.len() {
            1 => "one call".to_owned(),
            10 => "ten calls".to_owned(),
            many => format!("{many} calls"),
        };
        let seen: Holes<'_> = &[
            ("run", &scene.about),
            ("damage", &damage),
            ("calls", &calls),
        ];
        draft.claim_here(
            key,
            (damage == 0 && is_served, is_certain),
            seen,
            &said(runs.iter().copied()),
        );
    }
}

/// How the live runs were made.
fn circumstances(made: &Made<'_, Modem>, live: &Runs<'_>, draft: &mut Draft<'_>) {
    let runs = || live.values().flatten();
    let machine = machine(steal_ns(runs().map(|run| run.steal)));
    let late = runs().filter_map(|run| run.said.disturbed_ppm()).max();
    let receivers = further_receivers(made) + 1;
    let all = [
        (
            "processor",
            format!("{} × {}", machine.cpus, machine.cpu_model),
        ),
        (
            "hypervisor",
            machine.hypervisor.unwrap_or_else(|| "none".into()),
        ),
        (
            "frequency governor",
            machine.governor.unwrap_or_else(|| "none".into()),
        ),
        ("clock source", machine.clock_source),
        (
            "receivers for 14.7 % of a processor",
            format!("{receivers} (calibrated)"),
        ),
        (
            "rounds of the callback",
            runs::rounds(made.request).to_string(),
        ),
        (
            "steal time",
            or(machine.steal_ns.map(Span::from_nanos), "unknown"),
        ),
        (
            "disturbed, worst run",
            late.map_or_else(|| "no witness".into(), |ppm| format!("{ppm} ppm")),
        ),
    ];
    for (name, value) in all {
        draft.circumstance(name, value);
    }
}

#[cfg(test)]
mod tests {
    use laxity::Twin;
    use laxity::observe::observe;
    use laxity::study::Profile;
    use laxity_lab::bench::{Runner, judge};
    use laxity_lab::report::Verdict;
    use laxity_lab::runner::tasks::Spinner;
    use laxity_lab::scenario::kinds::{SAMPLES_LOST, SAMPLES_OVERWRITTEN, SAMPLES_UNDERRUN};
    use laxity_model::verify::contract::Quantity;
    use laxity_model::{Disturbance, Instant, Placement, Priority, ProcessorId};

    use super::*;
    use crate::disturbed;

    #[test]
    fn what_the_data_names_is_there() {
        let figures: Vec<&str> = TEXT.figures.iter().map(|of| of.key.as_str()).collect();
        let drawings = PLAN.drawings.iter().map(|drawing| &drawing.figure);
        let quantities = PLAN.quantities.iter().map(|quantity| &quantity.figure);
        for figure in drawings.chain(quantities) {
            assert!(figures.contains(&figure.as_str()), "{figure}");
        }
        let scenes: Vec<&str> = SCENES.variants.iter().map(|of| of.name.as_str()).collect();
        let needed = needed(&Request::default());
        assert!(needed.iter().all(|run| scenes.contains(run)), "{needed:?}");
        assert!(
            scenes.iter().all(|scene| needed.contains(scene)),
            "{scenes:?}"
        );
        for drawing in &PLAN.drawings {
            assert!(PLAN.looks.contains_key(&drawing.series), "{drawing:?}");
        }
    }

    /// What contracts are judged by, and the series of the same.
    const LOSSES: [(Quantity, Series); 3] = [
        (SAMPLES_LOST, Series::Damage),
        (SAMPLES_OVERWRITTEN, Series::Overwritten),
        (SAMPLES_UNDERRUN, Series::Underrun),
    ];

    /// A dial-up of this name in the study's twin, beside a spinner of this priority, as the machine stood still for 0.15 ms so many times, every 53 ms from
    /// 0.1 s on: its readings, and of each of [`LOSSES`] what contracts are judged by.
    fn beside(name: &str, rogue: Option<u8>, still: u64) -> (Case, Readings, [u128; 3]) {
        of(Profile::WIN2000_PII450, name, rogue, still)
    }

    /// The same in this twin.
    pub(super) fn of(
        profile: Profile,
        name: &str,
        rogue: Option<u8>,
        still: u64,
    ) -> (Case, Readings, [u128; 3]) {
        let run = runs::in_twin(&[name], 1)[0];
        let mut twin = Twin::new(profile);
        let recorded = run.record(&mut Runner::Twin(&mut twin), |program| {
            if let Some(level) = rogue {
                let priority = Priority::new(level).expect("a priority");
                let placement = Placement::Thread(priority);
                program.add("rogue", ProcessorId(0), placement, Spinner);
            }
        });
        let (mut record, probes) = recorded.expect("the twin runs everywhere");
        let still = (0..still).map(|number| Instant::from_millis(100 + 53 * number));
        let still = still.map(|from| Disturbance {
            processor: ProcessorId(0),
            from,
            to: from + Span::from_micros(150),
        });
        record.disturbances = still.collect();
        let seen = observe(&record, &probes.0, &[]);
        let lost = LOSSES.map(|(quantity, _)| {
            let whole = seen.iter().map(|seen| seen.quantities.whole(quantity));
            whole.map(|of| of.undisturbed.sum()).sum()
        });
        let readings = Readings::of(&record, &probes).expect("the driver is gone");
        (Case::Run(run), readings, lost)
    }

    fn damage(readings: &Readings, series: Series) -> u64 {
        let points = readings.points(series).iter();
        let judged = points.filter(|point| !point.disturbed);
        judged.map(|point| point.value).sum()
    }

    #[test]
    fn figures_and_contracts_count_the_same_losses() {
        for still in [0, 1, 500] {
            for (name, rogue) in [("int", None), ("thr-8", None), ("thr-24", Some(30))] {
                let (_, readings, lost) = beside(name, rogue, still);
                let own = LOSSES.map(|(_, series)| u128::from(damage(&readings, series)));
                assert_eq!(own, lost, "{name}, {still}");
            }
        }
    }

    /// In figure 7 the ring runs over. Where the modem's equal lets go of the processor in time for what comes in, and too late for what is due to go out, it does
    /// not, however much is sent as garbage.
    #[test]
    fn garbage_that_is_sent_is_no_overflow() {
        let request = Request {
            figures: vec!["figure-7".into()],
            live: true,
            ..Request::default()
        };
        let mut brief = Profile::WIN2000_PII450;
        brief.bands.quantum = Span::from_millis(30);
        for (profile, overflows) in [(brief, false), (Profile::WIN2000_PII450, true)] {
            let (case, readings, [lost, overwritten, _]) = of(profile, "thr-8", None, 0);
            assert!(lost > 10_000, "{lost}");
            assert_eq!(overwritten > 0, overflows, "{overwritten} overwritten");
            let made = Made {
                live: vec![(case, Seen::Run(Box::new(readings)))],
                ..Made::nothing(&request)
            };
            let report = judge(&Modem, &made).expect("it is judged");
            let mut rows = report.figures[0].compared.iter();
            let overflow = Origin::Quoted.cell("overflow");
            let row = rows
                .find(|row| row.paper == overflow)
                .expect("it is compared");
            let agrees = matches!(row.live_verdict, Verdict::Agrees(_));
            assert_eq!(agrees, overflows, "{row:?}");
        }
    }

    #[test]
    fn a_modem_that_is_never_served_holds_nothing() {
        let request = Request {
            figures: vec!["figure-6".into()],
            ..Request::default()
        };
        let (case, readings, _) = beside("thr-24", Some(30), 0);
        let lost = damage(&readings, Series::Damage);
        assert!(lost > 400_000, "{lost}");
        let nothing = Readings::default();
        for readings in [readings, nothing] {
            let made = Made {
                twin: vec![(case.clone(), Seen::Run(Box::new(readings)))],
                ..Made::nothing(&request)
            };
            let report = judge(&Modem, &made).expect("it is judged");
            let held = report.checks.iter().map(|check| check.held);
            assert_eq!(held.collect::<Vec<_>>(), [Some(false)]);
            let mut rows = report.figures[0].compared.iter();
            let lost = rows.find(|row| row.quantity.starts_with("samples lost"));
            let lost = lost.expect("it is compared");
            assert!(matches!(lost.verdict, Verdict::Disagrees(_)), "{lost:?}");
        }
    }

    #[test]
    fn what_is_lost_where_too_much_was_disturbed_is_not_judged() {
        let request = Request {
            figures: vec!["figure-6".into()],
            live: true,
            ..Request::default()
        };
        let (case, starved, _) = beside("thr-24", Some(30), 0);
        // Of which nothing is known, and of which it is beyond doubt that samples were lost; and how much of it was disturbed.
        for (mut readings, disturbed_ppm, held) in [
            (Readings::default(), 10_001, vec![None]),
            (Readings::default(), 10_000, vec![Some(false)]),
            (starved, 10_001, vec![Some(false)]),
        ] {
            readings.said = disturbed(disturbed_ppm);
            let made = Made {
                live: vec![(case.clone(), Seen::Run(Box::new(readings)))],
                ..Made::nothing(&request)
            };
            let report = judge(&Modem, &made).expect("it is judged");
            let checks = report.checks.iter().map(|check| check.held);
            assert_eq!(checks.collect::<Vec<_>>(), held);
        }
    }
}
