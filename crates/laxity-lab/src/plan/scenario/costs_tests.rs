//! A machine file that was measured, as a plan for that machine counts it.

use laxity::Twin;
use laxity::calibrate::{Calibration, Circumstances};
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Quantiles};

use super::*;
use crate::machine_file;
use crate::plan::Deadline;
use crate::runner::Silent;
use crate::runner::admit::supply;
use crate::scenario::{Length, parse};

/// As `laxity calibrate` left it on a virtual machine.
pub(super) const EPYC: &str =
    include_str!("../../../../../docs/results/epyc-2-processors/machine.toml");
const SOFT_MODEM: &str = include_str!("../../../../../scenarios/soft-modem.toml");

fn measured() -> Calibration {
    machine_file::parse(EPYC, "machine.toml").expect("it is right")
}

/// What a plan for a machine says that was measured so, taken for one in these circumstances.
fn plan_of(text: &str, calibration: Calibration, here: &Circumstances) -> Plan {
    let scenario = parse(text, "scenario.toml").expect("a scenario");
    let resolved = scenario.resolve(Length::Quick);
    let mut host = Twin::linux(&calibration.machine, 1);
    let supply = supply(&mut host, &resolved).expect("a supply");
    let of = ("a machine".to_owned(), supply);
    let known = Known::of(calibration, here);
    plan_for(&resolved, of, (On::Linux, false), &known, &mut Silent).expect("a plan")
}

fn soft_modem() -> Plan {
    let calibration = measured();
    let here = calibration.circumstances.clone();
    plan_of(SOFT_MODEM, calibration, &here)
}

fn line<'p>(plan: &'p Plan, variant: &str, name: &str) -> &'p Line {
    let mut variants = plan.variants.iter();
    let variant = variants.find(|found| found.name == variant);
    let mut lines = variant.expect("it is planned").lines.iter();
    lines.find(|line| line.name == name).expect("it has a line")
}

/// A switch took 82 us once in 40,000: twice that and more, each millisecond, is nothing that was seen. Live all of these were in time.
#[test]
fn what_only_the_largest_costs_each_time_would_miss_is_not_known_to_be_met() {
    let plan = soft_modem();
    for (variant, name) in [
        ("none", "cothread"),
        ("thread-24", "cothread"),
        ("thread-24", "modem thread"),
        ("thread-8", "cothread"),
        ("reserved-slots", "cothread"),
        ("rogue-slots", "cothread"),
        ("none-cothread-reserved", "reserved-cothread"),
    ] {
        let found = line(&plan, variant, name);
        assert_eq!(
            found.deadline,
            Some(Deadline::NotKnown),
            "{variant}: {found:?}"
        );
        let why = found.no_proof.as_deref().expect("a reason");
        let cost =
            "`context_switch` took up to 82.053us, and 999 times of 1,000 no more than 1.232us";
        assert!(why.ends_with(cost), "{variant}: {why}");
        if name != "reserved-cothread" {
            assert!(found.usual_bound_ns <= found.deadline_ns, "{found:?}");
            assert!(
                why.starts_with("in time if nothing costs more than 99.9 %"),
                "{why}"
            );
        }
    }
    let text = render(&plan, 1_000);
    for said in [
        "none: nothing to admit; 1 deadline is not known to be met: `cothread`\n",
        "thread-24: nothing to admit; 2 deadlines are not known to be met: `modem thread` (connected), `cothread`\n",
        "  no proof: `cothread`: in time if nothing costs more than 99.9 % of what was measured",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let json = serde_json::to_value(&plan.variants).expect("JSON");
    for variant in json.as_array().expect("a list") {
        let name = variant["name"].as_str().expect("a name");
        let is_late = variant["lines"].to_string().contains("can be missed");
        let expected = ["interrupt", "deferred", "rogue-thread", "rogue-above-slots"];
        assert_eq!(is_late, expected.contains(&name), "{variant:#}");
    }
}

/// A call of 1.84 ms above a callback each millisecond makes that late whatever the machine takes.
#[test]
fn what_the_least_costs_miss_can_be_missed() {
    let plan = soft_modem();
    for variant in ["interrupt", "deferred"] {
        let found = line(&plan, variant, "cothread");
        assert_eq!(found.deadline, Some(Deadline::CanBeMissed), "{found:?}");
        assert_eq!(found.no_proof, None);
        let mut variants = plan.variants.iter();
        let of = variants.find(|found| found.name == variant);
        let worst = of
            .and_then(|of| of.bottleneck.clone())
            .expect("one is late");
        let driver = worst.contributor.expect("somebody");
        assert!(driver.starts_with("modem "), "{driver}");
    }
}

/// 3 + 5 ms for 7.9: that is missed by little, and the largest costs each time would be more than there is.
pub(super) const LATE_BY_LITTLE: &str = r#"
[tasks.b]
kind = "periodic"
service = "3ms"
period = "10ms"
priority = 30
[tasks.c]
kind = "periodic"
service = "5ms"
period = "20ms"
deadline = "7.9ms"
priority = 20
[variants.v]
"#;

#[test]
fn who_is_late_by_little_at_the_least_costs_is_not_later_and_later() {
    let calibration = measured();
    let here = calibration.circumstances.clone();
    let text = render(&plan_of(LATE_BY_LITTLE, calibration, &here), 1_000);
    assert!(text.contains("1 deadline can be missed: `c`\n"), "{text}");
    for part in [
        "ask for more than there is",
        ", if everything costs the largest",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// Costs that are all the same leave no doubt, and the largest alone decides whether a bound is met.
#[test]
fn usual_bounds_are_within_bounds_and_change_no_answer_but_that_it_can_be_missed() {
    let plan = soft_modem();
    let mut compared = 0;
    for found in plan.variants.iter().flat_map(|variant| &variant.lines) {
        if let Some((usual, bound)) = found.usual_bound_ns.zip(found.bound_ns) {
            assert!(usual <= bound, "{found:?}");
            compared += 1;
        }
        if found.deadline == Some(Deadline::Met) {
            assert!(
                found
                    .bound_ns
                    .is_none_or(|bound| Some(bound) <= found.deadline_ns)
            );
        }
    }
    assert!(compared > 20, "{compared}");
    let mut constant = measured();
    for figure in Figure::ALL {
        let most = constant.machine.figure(figure).at(1_000_000);
        *constant.machine.figure_mut(figure) = Quantiles::constant(most);
    }
    let here = constant.circumstances.clone();
    let plan = plan_of(SOFT_MODEM, constant, &here);
    let found = line(&plan, "none", "cothread");
    assert_eq!(found.deadline, Some(Deadline::CanBeMissed), "{found:?}");
    assert_eq!(
        found.bound_ns,
        line(&soft_modem(), "none", "cothread").bound_ns
    );
}

#[test]
fn what_was_measured_on_another_machine_is_said_to_be() {
    let text = "[tasks.one]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"1ms\"\npriority = 20\n[variants.v]\n";
    let here = measured().circumstances;
    let said = |calibration| {
        let plan = plan_of(text, calibration, &here);
        let json = serde_json::to_value(&plan).expect("JSON");
        (render(&plan, 1_000), json["machine"]["elsewhere"].clone())
    };
    let (own, elsewhere) = said(measured());
    assert!(own.contains("for what was measured of this machine (laxity 0.1.0 calibrate"));
    assert!(elsewhere.is_null());
    let edited = EPYC.replace("model = \"AMD EPYC\"", "model = \"ARM Cortex\"");
    let edited = edited.replace("\nprocessors = 2\n", "\nprocessors = 64\n");
    let edited = machine_file::parse(&edited, "machine.toml").expect("it is right");
    let (other, elsewhere) = said(edited);
    let words =
        "measured on another machine: ARM Cortex, here AMD EPYC; 64 processors, here 2 processors";
    assert!(
        other.contains(&format!("and for what was {words} (laxity")),
        "{other}"
    );
    assert_eq!(elsewhere, words);
    let mut kernel = measured();
    kernel.circumstances.kernel = "4.4".to_owned();
    let (kernel, _) = said(kernel);
    let words = "measured under another kernel: Linux 4.4, here Linux 6.18.44-fc-v657";
    assert!(kernel.contains(words), "{kernel}");
}

/// The margin of a plan is no place for a picture of the file.
#[test]
fn why_a_file_cannot_be_read_is_one_line() {
    let errors = machine_file::parse("bad", "machine.toml").expect_err("it is wrong");
    let line = errors[0].in_one_line();
    assert!(line.starts_with("machine.toml:1:4: not TOML: "), "{line}");
    assert!(!line.contains('\n') && !line.contains("-->"), "{line}");
    let known = Known::Unreadable(line.clone());
    let supply = {
        let scenario = parse("[variants.v]\n", "scenario.toml").expect("a scenario");
        let resolved = scenario.resolve(Length::Quick);
        supply(&mut Twin::linux(&measured().machine, 1), &resolved).expect("a supply")
    };
    let plan = VariantPlan {
        lines: vec![Line {
            bound_ns: Some(Span::from_millis(1).as_nanos()),
            ..Line::default()
        }],
        ..VariantPlan::default()
    };
    let note = Live::of(&supply, &known).note(&plan).expect("a note");
    assert!(note.ends_with(&line), "{note}");
}
