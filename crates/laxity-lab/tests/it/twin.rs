//! The main scenario in the twin: what the study found, from protocol, rates and the charged costs alone.

use laxity_lab::evidence::results::{RunResults, VariantResults};
use laxity_lab::evidence::subjects::ModemFigures;
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::plan;
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::{self, Length, Resolved};
use laxity_model::verify::contract::Outcome;

fn resolved(length: Length) -> Resolved {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/soft-modem.toml"
    );
    let text = std::fs::read_to_string(file).unwrap();
    scenario::parse(&text, "soft-modem.toml")
        .unwrap()
        .resolve(length)
}

fn run(resolved: &Resolved, threads: usize) -> RunResults {
    runner::run(resolved, On::Twin { threads }, Vec::new(), &mut Silent)
        .unwrap()
        .results
}

fn variant<'a>(results: &'a RunResults, name: &str) -> &'a VariantResults {
    results.variant(name).unwrap()
}

fn modem<'a>(results: &'a RunResults, name: &str) -> &'a ModemFigures {
    variant(results, name).modems().next().unwrap().1
}

fn longest_gap(results: &RunResults, name: &str) -> u64 {
    let (_, task) = variant(results, name).periodic().next().unwrap();
    task.cothread_gap_ns
        .as_ref()
        .and_then(|gap| gap.all.max)
        .unwrap()
}

/// The study's phases and file, once.
fn full() -> RunResults {
    let mut resolved = resolved(Length::Full);
    resolved.run.repeats = 1;
    run(&resolved, 2)
}

/// Figures 10 to 13 and 16: the co-thread's longest gap.
fn gaps_are_as_the_study_found(results: &RunResults) {
    let none = longest_gap(results, "none");
    for name in ["thread-24", "reserved-slots"] {
        assert!(
            longest_gap(results, name).abs_diff(none) * 20 <= none,
            "{name}"
        );
    }
    let (deferred, interrupt) = (
        longest_gap(results, "deferred"),
        longest_gap(results, "interrupt"),
    );
    // Two ticks and the one long call at most; which of the two comes closer is chance.
    let limits = none + 1_000_000..none + 3_400_000;
    for gap in [deferred, interrupt] {
        assert!(limits.contains(&gap), "{none}, {deferred}, {interrupt}");
    }
}

/// Figures 5 and 6: never more than 30 samples pending, and none lost.
fn nothing_is_lost_where_nobody_ranks_above(results: &RunResults) {
    for name in ["interrupt", "deferred", "thread-24"] {
        let variant = modem(results, name);
        assert!(
            variant.device.samples_pending_max <= 30,
            "{name}: {}",
            variant.device.samples_pending_max
        );
        nothing_is_lost(variant, name);
    }
}

fn nothing_is_lost(variant: &ModemFigures, name: &str) {
    let lost = variant.device.samples_overwritten + variant.device.samples_underrun;
    assert_eq!(lost, 0, "{name}");
    assert!(
        variant.transfer.completed && variant.transfer.checksum_ok,
        "{name}"
    );
}

/// Figure 7: the ring overflows, and the number is not dialled.
fn a_normal_thread_never_connects(results: &RunResults) {
    let normal = modem(results, "thread-8");
    assert!(
        normal.device.samples_overwritten >= 512,
        "{}",
        normal.device.samples_overwritten
    );
    assert!(!normal.transfer.completed);
    assert!(
        normal.phases.iter().all(|phase| phase.name != "training"),
        "{:?}",
        normal.phases
    );
}

/// Figure 14: more pending with a reservation, far under the ring's 512. Figure 15: 6 to 8 ms at times.
fn a_reserved_modem_waits_for_its_slots(results: &RunResults) {
    let reserved = modem(results, "reserved-slots");
    assert!(
        (31..300).contains(&reserved.device.samples_pending_max),
        "{}",
        reserved.device.samples_pending_max
    );
    let of_data = reserved.device.processing_ns.p99.unwrap();
    assert!((6_000_000..8_000_000).contains(&of_data), "{of_data} ns");
    // The one call of 3.3 ms needs a second slot and may need a third.
    let longest = reserved.device.processing_ns.max.unwrap();
    assert!((7_000_000..15_200_000).contains(&longest), "{longest} ns");
}

#[test]
fn the_studys_findings_come_out() {
    let results = full();
    assert_eq!(
        results.verdict.result,
        Some(Outcome::Met),
        "{:?}",
        results.verdict.reasons
    );
    nothing_is_lost_where_nobody_ranks_above(&results);
    // Table 2: 36.4 s. Here from the rate, HDLC, LAPM, PPP and TCP/IP with an MSS of 536 alone.
    let took = modem(&results, "interrupt").transfer.duration_ns.unwrap();
    assert!(
        took.abs_diff(36_400_000_000) * 20 <= 36_400_000_000,
        "{took} ns"
    );
    a_normal_thread_never_connects(&results);
    gaps_are_as_the_study_found(&results);
    a_reserved_modem_waits_for_its_slots(&results);

    // Section 6.3.4: no priority is safe from a higher one; a reservation is (§6.4.1).
    let killed = modem(&results, "rogue-thread");
    assert!(
        killed.device.samples_overwritten + killed.device.samples_underrun > 0
            && !killed.transfer.completed
    );
    nothing_is_lost(modem(&results, "rogue-slots"), "rogue-slots");

    // Charged, so a check of consistency: 1.778 ms in 12.5, and 3.3 ms.
    let charged = modem(&results, "interrupt");
    assert!(
        (charged.device.cpu_share).is_some_and(|share| (0.1415..0.1435).contains(&share)),
        "{:?}",
        charged.device.cpu_share
    );
    assert_eq!(charged.device.processing_ns.max.unwrap() / 10_000, 330);
}

#[test]
fn one_spinner_is_enough_to_stop_a_normal_thread() {
    let mut resolved = resolved(Length::Quick);
    resolved.keep(|variant| variant.name == "thread-8");
    for task in resolved
        .variants
        .iter_mut()
        .flat_map(|variant| &mut variant.tasks)
    {
        if let scenario::TaskKind::Spinner { count, .. } = &mut task.kind {
            *count = 1;
        }
    }
    let results = run(&resolved, 1);
    let normal = modem(&results, "thread-8");
    assert!(normal.device.samples_overwritten >= 512 && !normal.transfer.completed);
    // All its calls come in one burst: what it took is of the whole time.
    let share = normal.device.cpu_share;
    let is_little = share.is_some_and(|share| share > 0.0 && share < 0.05);
    assert!(is_little, "{share:?}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let resolved = resolved(Length::Quick);
    assert_eq!(run(&resolved, 1).to_json(), run(&resolved, 2).to_json());
}

/// Slots under work that takes all of them are called so by plan and run alike, and what they lose is put down to that work.
#[test]
fn slots_of_which_work_above_leaves_nothing_are_not_called_enforced() {
    let text = r#"
[quick]
limit = "5s"
bytes = 20_000
[devices.modem]
kind = "soft-modem"
[tasks.busy]
kind = "spinner"
priority = 30
[tasks.above]
kind = "periodic"
period = "20ms"
service = "9ms"
priority = 31
[contracts.lossless]
limits = [{ quantity = "samples_lost", at_most = 0 }]
[variants.r]
placement = "reserved 2ms/8ms"
reserve_from = "start"
tasks = ["above", "busy"]
contracts = ["lossless"]
"#;
    let resolved = scenario::parse(text, "above.toml").unwrap();
    let resolved = resolved.resolve(Length::Quick);
    let named = "ranked above the slot on its processor: above (9.";
    let plan = plan(
        &resolved,
        (On::Twin { threads: 1 }, false),
        &Known::Nothing,
        &mut Silent,
    );
    let plan = plan.unwrap();
    let offer = &plan.variants[0].requests[0].offers[0];
    assert_eq!(offer.grade.as_deref(), Some("unenforced"));
    let reason = offer.grade_reason.as_deref().unwrap();
    assert!(reason.starts_with(named), "{reason}");
    let results = run(&resolved, 1);
    let found = variant(&results, "r");
    assert_eq!(found.grade.as_deref(), Some("unenforced"));
    let reason = found.grade_reason.as_deref().unwrap();
    assert!(reason.starts_with(named), "{reason}");
    let device = &modem(&results, "r").device;
    assert!(device.samples_overwritten + device.samples_underrun > 0);
    let why = device.lost_because.as_deref().unwrap();
    assert!(why.contains(named), "{why}");
    assert_eq!(results.verdict.result, Some(Outcome::Violated));
}
