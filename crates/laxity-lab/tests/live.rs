//! The main scenario on this machine. What is asserted holds on a noisy machine too: counts, order, and factors far from one.

use laxity::doctor::rights::{self, Right};
use laxity_lab::evidence::results::{RunResults, VariantResults};
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::{self, Length};
use laxity_model::verify::contract::Outcome;

fn run(names: &[&str]) -> RunResults {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/soft-modem.toml"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let mut resolved = scenario::parse(&text, "soft-modem.toml")
        .unwrap()
        .resolve(Length::Quick);
    resolved.keep(|variant| names.contains(&variant.name.as_str()));
    runner::run(&resolved, On::Linux, Vec::new(), &mut Silent)
        .unwrap()
        .results
}

fn variant<'a>(results: &'a RunResults, name: &str) -> &'a VariantResults {
    results.variant(name).unwrap()
}

#[test]
fn the_gap_check_fails_for_a_modem_in_the_interrupt_handler() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let results = run(&["interrupt"]);
    let interrupt = variant(&results, "interrupt");
    assert_eq!(interrupt.repeats, 5);
    let (_, modem) = interrupt.modems().next().unwrap();
    let (_, cothread) = interrupt.periodic().next().unwrap();
    assert_eq!(
        cothread.gap_repeats.len(),
        5,
        "the control runs between the variant's runs"
    );
    let unnoticed = interrupt
        .contracts
        .iter()
        .find(|c| c.name == "unnoticed")
        .unwrap();
    assert_eq!(
        unnoticed.verdict.result,
        Outcome::Violated,
        "{:?}",
        unnoticed.verdict.reasons
    );
    // The 99th percentile grows by about the processing time, 1.8 ms: to more than twice the control's, on any machine.
    let [p99, ..] = cothread.gap_ratios_ppm().unwrap();
    assert!(p99 > 1_500_000, "{p99} millionths of the control's");
    // Load is what the scenario asks for, made up of receivers that all decide the same bits.
    assert!(modem.receivers > 1);
    assert!(
        (0.05..0.30).contains(&modem.cpu_share),
        "{}",
        modem.cpu_share
    );
    assert_eq!(modem.receiver_bit_errors, 0);
    assert_eq!(modem.samples_undelivered, 0);
}

#[test]
fn a_rogue_breaks_a_thread_and_an_outranked_slot_says_so() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let results = run(&["rogue-thread", "rogue-above-slots"]);
    let (_, thread) = variant(&results, "rogue-thread").modems().next().unwrap();
    // A burst is three times the ring's 32 ms.
    assert!(
        thread.samples_overwritten >= 512,
        "{}",
        thread.samples_overwritten
    );
    assert!(thread.samples_underrun > 0);
    let outranked = variant(&results, "rogue-above-slots");
    assert_eq!(outranked.grade.as_deref(), Some("unenforced"));
    let reason = outranked.grade_reason.as_deref().unwrap();
    assert!(reason.contains("rogue-above"), "{reason}");
    assert_eq!(outranked.verdict.result, Outcome::Violated);
    assert!(
        outranked
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.contains("unenforced"))
    );
}
