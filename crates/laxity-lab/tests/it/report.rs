//! What a person and a program get of a run, from results made up for the purpose.

use std::collections::BTreeMap;

use laxity_lab::evidence::histogram::*;
use laxity_lab::evidence::results::*;
use laxity_lab::evidence::subjects::*;
use laxity_lab::report::run::{report, table};
use laxity_lab::report::{Timeline, page};
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::{Expectation, Observed, Outcome};
use laxity_model::{ActivityId, Span};
use serde_json::Value;

/// Tables fit here.
const WIDTH: usize = 80;

#[path = "../../src/evidence/trace/samples.rs"]
mod samples;

/// Numbers that look random and are the same everywhere.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Near `center`, seldom further than `width` from it, once in a thousand much larger.
    fn around(&mut self, center: u64, width: u64) -> u64 {
        let bell = (0..4).map(|_| self.below(width)).sum::<u64>() / 2;
        let tail = match self.below(1000) {
            0 => self.below(4 * width),
            _ => 0,
        };
        (center + bell + tail).saturating_sub(width)
    }
}

fn histogram(seed: u64, n: u64, center: u64, width: u64) -> Histogram {
    let (mut noise, mut histogram) = (Noise(seed), Histogram::new());
    (0..n).for_each(|_| histogram.record(noise.around(center, width)));
    histogram
}

fn gap_figures(gap: &Histogram) -> GapFigures {
    let p = |ppm| gap.percentile(ppm).unwrap();
    GapFigures {
        p99_ns: p(990_000),
        p999_ns: p(999_000),
        undisturbed_max_ns: gap.max().unwrap(),
        max_ns: gap.max().unwrap(),
    }
}

/// A transfer that completes.
fn arrived() -> Transfer {
    Transfer {
        completed: true,
        checksum_ok: true,
        bytes: 8_000,
        duration_ns: Some(1_470_000_000),
        failure: None,
        rate_down_bit_s: 50_667,
        rate_up_bit_s: 31_200,
        retransmissions: 0,
        retrainings: 0,
    }
}

fn modem(placement: &str) -> ModemFigures {
    let pending = histogram(5, 1_600, 14, 8);
    ModemFigures {
        device: DeviceFigures {
            placement: placement.into(),
            samples_pending_max: pending.max().unwrap(),
            samples_pending: HistogramJson::new("samples", &pending),
            processing_ns: HistogramJson::new("ns", &histogram(6, 1_600, 1_840_000, 300_000)),
            cpu_share: Some(0.1473),
            context_switches: 41_250,
            context_switches_involuntary: 1_204,
            ..DeviceFigures::default()
        },
        receivers: 38,
        transfer: arrived(),
        phases: ["on-hook", "dialing", "training", "connected"]
            .into_iter()
            .enumerate()
            .map(|(i, name)| PhaseTime {
                name: name.into(),
                start_ns: i as u64 * 1_000_000_000,
                duration_ns: 1_000_000_000,
            })
            .collect(),
        ..ModemFigures::default()
    }
}

fn undisturbed(values: &Histogram) -> Observed {
    Observed {
        undisturbed: values.clone(),
        ..Observed::default()
    }
}

fn cothread(gap_width: u64) -> PeriodicFigures {
    let gap = histogram(3, 20_000, 1_000_000, gap_width);
    let control = histogram(4, 20_000, 1_000_000, 60_000);
    PeriodicFigures {
        task_period_ns: Some(1_000_000),
        task_deadline_ns: None,
        job_service_ns: None,
        gap_repeats: vec![
            GapRepeat {
                variant: gap_figures(&gap),
                control: gap_figures(&control)
            };
            5
        ],
        further_controls: Vec::new(),
        cothread_gap_ns: Some(GapJson::of(&undisturbed(&gap))),
        control_gap_ns: Some(GapJson::of(&undisturbed(&control))),
    }
}

fn subject((name, kind): (&str, &str), figures: Figures) -> SubjectResults {
    SubjectResults {
        name: name.into(),
        kind: kind.into(),
        figures,
        grade: None,
        grade_reason: None,
        windows: Vec::new(),
        quantities: BTreeMap::new(),
    }
}

/// A variant with this modem, whose co-thread's gaps are so wide.
fn variant(name: &str, modem: ModemFigures, gap_width: u64) -> VariantResults {
    VariantResults {
        about: String::new(),
        subjects: vec![
            subject(("modem", "soft-modem"), Figures::SoftModem(Box::new(modem))),
            subject(
                ("cothread", "periodic"),
                Figures::Periodic(Box::new(cothread(gap_width))),
            ),
        ],
        contracts: vec![ContractResults {
            name: "pc99".into(),
            expected: Expectation::Met,
            as_expected: true,
            verdict: VerdictJson {
                result: Outcome::Met,
                reasons: Vec::new(),
            },
        }],
        failures: Vec::new(),
        failures_are_open: false,
        speed: None,
        surprises: Vec::new(),
        is_certain: false,
        name: name.into(),
        grade: None,
        grade_reason: None,
        repeats: 5,
        steal_ns: Some(3_200_000),
        disturbed: Disturbed {
            count: 3,
            witness_wakeups: 20_000,
            total_ns: 21_400_000,
            crawled_ns: 12_000_000,
            share_ppm: 150,
            by_processor: Vec::new(),
        },
        events_recorded: 1_284_311,
        events_lost: 0,
        expected: Expectation::Met,
        expected_besides: Vec::new(),
        as_expected: true,
        verdict: summary(Outcome::Met, None),
    }
}

fn summary(result: Outcome, reason: Option<&str>) -> SummaryJson {
    SummaryJson {
        result: Some(result),
        reasons: reason.map(str::to_owned).into_iter().collect(),
    }
}

fn variants() -> Vec<VariantResults> {
    let violated = |reason: &str| summary(Outcome::Violated, Some(reason));
    let interrupt = VariantResults {
        expected: Expectation::Violated,
        verdict: violated("interrupt-time maximum 2.21ms is above 100us in phase connected"),
        ..variant("interrupt", modem("interrupt"), 1_900_000)
    };
    let dead = ModemFigures {
        transfer: Transfer {
            failure: Some("NO CARRIER: retraining failed too often".into()),
            retransmissions: 212,
            retrainings: 4,
            ..Transfer::default()
        },
        device: DeviceFigures {
            samples_overwritten: 40_112,
            samples_underrun: 38_407,
            samples_lost_undisturbed: 78_519,
            samples_pending_max: 594,
            samples_pending: HistogramJson::new("samples", &histogram(9, 900, 320, 200)),
            processing_ns: HistogramJson::new("ns", &histogram(8, 900, 24_000_000, 9_000_000)),
            cpu_share: Some(0.058),
            ..modem("thread 8").device
        },
        ..modem("thread 8")
    };
    let normal = VariantResults {
        expected: Expectation::Violated,
        verdict: violated("samples-lost total 40112 is above 0"),
        ..variant("thread normal", dead, 65_000)
    };
    let reserved = || {
        let mut modem = modem("reserved 2ms/8ms");
        modem.device.enforcer = Some("slots".into());
        modem
    };
    let slots = VariantResults {
        grade: Some("enforced".into()),
        ..variant("reserved 2/8 by slots", reserved(), 61_000)
    };
    let rogue = VariantResults {
        grade: Some("unenforced".into()),
        grade_reason: Some("the thread <rogue> holds FIFO 90, above the slot's 80".into()),
        as_expected: false,
        verdict: violated("reserved: the grant is unenforced"),
        ..variant("rogue above the slot", reserved(), 64_000)
    };
    vec![
        interrupt,
        variant("thread real-time", modem("thread 24"), 62_000),
        normal,
        slots,
        rogue,
    ]
}

fn results() -> RunResults {
    let measured = Provenance::Measured {
        on: "this machine, CLOCK_MONOTONIC".into(),
    };
    let calibrated = Provenance::Calibrated {
        to: "14.7 % of a processor (Jones, Saroiu §6.2)".into(),
    };
    RunResults {
        file: "soft-modem.toml".into(),
        file_version: FILE_VERSION,
        laxity_version: "0.1.0".into(),
        scenario: "soft-modem".into(),
        contract: "pc99".into(),
        host: "linux 6.18.44".into(),
        seed: 1,
        machine: Some(Machine {
            kernel: "6.18.44".into(),
            cpu_model: "AMD EPYC 9R45".into(),
            cpus: 2,
            governor: None,
            clock_source: "kvm-clock".into(),
            hypervisor: Some("KVM".into()),
            steal_ns: Some(14_000_000),
            speed: Some(Speed {
                reference_block_ns: 3_600_000,
                shortest_ns: 3_500_000,
                longest_ns: 28_000_000,
                blocks: 216,
            }),
        }),
        provenance: BTreeMap::from([
            ("cothread_gap_ns".into(), measured.clone()),
            ("processing_ns".into(), measured),
            ("receivers".into(), calibrated),
        ]),
        notices: vec![
            "Phases are shortened and the file has 8000 bytes; --full has the study's.".into(),
        ],
        variants: variants(),
        skipped: vec![Skipped {
            name: "reserved 2/8 by deadline".into(),
            reason: "cannot run here: no bandwidth for SCHED_DEADLINE is left".into(),
            has_failed: false,
        }],
        verdict: summary(
            Outcome::Violated,
            Some("rogue above the slot: violated, expected met"),
        ),
        exit_code: 2,
    }
}

fn rendered(results: &RunResults, timelines: Vec<Timeline>) -> String {
    page::render(&report(results, timelines)).unwrap()
}

fn page() -> String {
    let trace = samples::busy(6_500);
    let shown = [0, 1, 2].map(ActivityId);
    let view = Timeline::representative(&trace, Span::from_millis(60), &shown);
    rendered(&results(), vec![view])
}

#[test]
fn the_page_stands_alone_and_is_small() {
    let page = page();
    // Kept for a look with a browser.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html"), &page).unwrap();
    assert!(page.len() <= 300_000, "{} bytes", page.len());
    for outside in [
        "http:", "https:", "src=", "<script", "@import", "url(", "<link",
    ] {
        assert!(
            !page.contains(outside),
            "refers to the outside by {outside}"
        );
    }
    assert_eq!(page, self::page(), "the same results give the same bytes");
}

#[test]
fn the_page_tells_every_variant_and_every_reason() {
    let (page, results) = (page(), results());
    for variant in &results.variants {
        let heading = format!("<h2>{}</h2>", variant.name);
        assert!(page.contains(&heading), "{heading}");
        for reason in &variant.verdict.reasons {
            assert!(page.contains(reason), "{reason}");
        }
    }
    assert!(page.contains("no bandwidth for SCHED_DEADLINE is left"));
    assert!(page.contains("expected met"));
    // 12 ms of each.
    assert!(page.contains("Here it crawled for 60ms in all"));
    assert!(page.contains("AMD EPYC 9R45") && page.contains("What “disturbed” means"));
    // Names come from scenarios and other people's threads.
    assert!(!page.contains("<rogue>") && page.contains("&#60;rogue&#62;"));
    // Three pictures a variant and the timeline.
    assert_eq!(page.matches("<svg").count(), 3 * results.variants.len() + 1);
}

#[test]
fn ten_variants_with_wide_histograms_still_fit() {
    let mut results = results();
    results.variants.extend(variants());
    let page = rendered(&results, vec![]);
    assert!(page.len() <= 300_000, "{} bytes", page.len());
}

#[test]
fn the_table_is_short_and_narrow() {
    let text = table(&results(), WIDTH, None);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= WIDTH, "{widest} columns:\n{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_json_has_the_keys_that_programs_rely_on() {
    let results = results();
    let json: Value = serde_json::from_slice(&results.to_json()).unwrap();
    for key in [
        "file_version",
        "host",
        "seed",
        "machine",
        "provenance",
        "verdict",
        "exit_code",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    let keys = [
        "name",
        "placement",
        "enforcer",
        "transfer/completed",
        "transfer/checksum_ok",
        "transfer/duration_ns",
        "transfer/bytes",
        "samples_lost",
        "samples_underrun",
        "samples_pending_max",
        "processing_ns/p50",
        "processing_ns/max",
        "cpu_share",
        "cothread_gap_ns/p50",
        "cothread_gap_ns/p99",
        "cothread_gap_ns/p999",
        "cothread_gap_ns/max",
        "cothread_gap_ns/undisturbed_max",
        "context_switches",
        "steal_ns",
        "disturbed/count",
        "grade",
        "expected",
        "verdict/result",
        "verdict/reasons",
        "events_lost",
    ];
    for variant in json["variants"].as_array().unwrap() {
        for key in keys {
            assert!(variant.pointer(&format!("/{key}")).is_some(), "{key}");
        }
        for key in ["processing_ns", "cothread_gap_ns", "samples_pending"] {
            let buckets = variant[key]["buckets"].as_array().unwrap();
            let sum: u64 = buckets.iter().map(|b| b[1].as_u64().unwrap()).sum();
            let overflow = variant[key]["overflow"].as_u64().unwrap();
            assert_eq!(Some(sum + overflow), variant[key]["count"].as_u64());
        }
    }
    assert_eq!(json["variants"][0]["verdict"]["result"], "violated");
    assert_eq!(json["variants"][0]["subjects"][1]["kind"], "periodic");
    assert_eq!(serde_json::from_value::<RunResults>(json).unwrap(), results);
}

/// A number beside a verdict is one that it rests on.
#[test]
fn what_is_not_judged_stands_in_brackets() {
    let mut results = results();
    let [modem, task] = &mut results.variants[1].subjects[..] else {
        panic!("a modem and its co-thread");
    };
    let (Figures::SoftModem(modem), Figures::Periodic(task)) =
        (&mut modem.figures, &mut task.figures)
    else {
        panic!("a modem and its co-thread");
    };
    modem.device.samples_underrun = 101;
    let mut halts = Histogram::new();
    (0..300).for_each(|_| halts.record(27_103_000));
    let gaps = Observed {
        undisturbed: histogram(3, 20_000, 1_000_000, 62_000),
        disturbed: halts,
        ..Observed::default()
    };
    task.cothread_gap_ns = Some(GapJson::of(&gaps));
    let text = table(&results, 130, None);
    let line = text
        .lines()
        .find(|line| line.starts_with("thread real-time"));
    let line = line.unwrap();
    assert!(line.contains(" 0 (and 101) "), "{text}");
    // Of 300 among 20,300 the 99th percentile of all would be one.
    assert_eq!(line.matches("27.1").count(), 1, "{text}");
    assert!(line.contains(" (and 27.1"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("in brackets: where the machine stood still, not judged"));
}

/// Two modems and two tasks in one variant: every figure has a line, and the file's names of one of each are not there.
#[test]
fn several_of_a_kind_each_have_a_line() {
    let mut results = results();
    let both = &mut results.variants[0];
    both.subjects.insert(
        1,
        subject(
            ("second", "soft-modem"),
            Figures::SoftModem(Box::new(modem("thread 8"))),
        ),
    );
    both.subjects.push(subject(
        ("slow", "periodic"),
        Figures::Periodic(Box::new(cothread(90_000))),
    ));
    let text = table(&results, 120, None);
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
    for name in ["second", "slow"] {
        let lines = text
            .lines()
            .filter(|line| line.contains(&format!("  {name}  ")));
        assert_eq!(lines.count(), 1, "{name}:\n{text}");
    }
    let page = rendered(&results, vec![]);
    for chart in ["second: Processing, wall time", "slow: gap between"] {
        assert!(page.contains(chart), "{chart}");
    }
    let json: Value = serde_json::from_slice(&results.to_json()).unwrap();
    let variant = &json["variants"][0];
    for key in ["transfer", "samples_lost", "cothread_gap_ns"] {
        assert!(variant.get(key).is_none(), "{key}");
    }
    assert_eq!(variant["subjects"][1]["transfer"]["completed"], true);
    assert_eq!(serde_json::from_value::<RunResults>(json).unwrap(), results);
}
