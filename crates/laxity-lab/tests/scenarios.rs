//! Every shipped scenario to the letter: its table, its JSON and its plan, in the study's twin and in the twin of a Linux machine.
//!
//! The snapshots are in `snapshots-of-scenarios`. `INSTA_FORCE_PASS=1` shows all that differ instead of the first, `INSTA_UPDATE=always`
//! accepts them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use laxity::Twin;
use laxity::observe::observe;
use laxity_devices::modem::CardClock;
use laxity_lab::evidence::results::RunResults;
use laxity_lab::machine_file::Known;
use laxity_lab::observe::Probes;
use laxity_lab::plan::scenario as plan;
use laxity_lab::plan::set as sets;
use laxity_lab::report::run as shown;
use laxity_lab::runner::again::MadeAgain;
use laxity_lab::runner::compose::{Around, RunSpec, compose};
use laxity_lab::runner::conclude::{Circumstances, conclude};
use laxity_lab::runner::proposal::{Settled, settled};
use laxity_lab::runner::{self, On, RunDone, Silent, schedule};
use laxity_lab::scenario::{Length, Loss, Outcome, Resolved, TaskKind, parse};
use laxity_lab::{import, machine_file};
use laxity_model::admission::admit;
use laxity_model::enforce::machine::Machine;
use laxity_model::enforce::{Disturbance, Witness};
use laxity_model::{Enforcer, Host, ProcessorId, Program};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde_json::Value;

const TWIN: On = On::Twin { threads: 0 };
const SEED: u64 = 1;

fn assert_is(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots-of-scenarios");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// JSON with a line for each bucket of a histogram, without what depends on the version of this program and on the machine it runs on.
fn lines(mut json: Value) -> String {
    for of_here in ["laxity_version", "machine"] {
        json.as_object_mut().expect("an object").remove(of_here);
    }
    buckets_as_text(&mut json);
    serde_json::to_string_pretty(&json).expect("JSON")
}

fn buckets_as_text(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            if let Some(Value::Array(buckets)) = fields.get_mut("buckets") {
                for bucket in buckets {
                    *bucket = Value::String(bucket.to_string());
                }
            }
            fields.values_mut().for_each(buckets_as_text);
        }
        Value::Array(values) => values.iter_mut().for_each(buckets_as_text),
        _ => {}
    }
}

fn shipped(file: &str) -> String {
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn resolved(name: &str, length: Length) -> Resolved {
    let file = format!("scenarios/{name}.toml");
    let mut resolved = parse(&shipped(&file), &file)
        .expect("a scenario")
        .resolve(length);
    resolved.seed = SEED;
    resolved
}

fn assert_results(name: &str, results: &RunResults) {
    assert_is(&format!("{name}.table"), &shown::table(results, 110, None));
    let json = serde_json::from_slice(&results.to_json()).expect("JSON");
    assert_is(&format!("{name}.json"), &lines(json));
}

fn in_the_studys_twin(name: &str, resolved: &Resolved) {
    let finished = runner::run(resolved, TWIN, Vec::new(), &mut Silent).expect("results");
    assert_results(&format!("{name}.study"), &finished.results);
}

fn planned_for_the_studys_twin(name: &str, resolved: &Resolved) {
    let plan = plan::plan(resolved, (TWIN, true), &Known::Nothing, &mut Silent).expect("a plan");
    assert_is(&format!("{name}.study.plan"), &plan::render(&plan, 100));
    let json = serde_json::to_value(&plan).expect("JSON");
    assert_is(&format!("{name}.study.plan.json"), &lines(json));
}

/// A machine of two processors that was measured.
fn machine() -> Machine {
    let file = "docs/results/epyc-2-processors/machine.toml";
    let measured = machine_file::parse(&shipped(file), file);
    measured.expect("a machine file").machine
}

fn linux(machine: &Machine, resolved: &Resolved, seed: u64) -> Twin {
    Twin::linux(machine, seed)
        .on_processors(resolved.host.processors + 1)
        .watched_by(Witness::new(ProcessorId(0)))
}

/// The program of a run in that twin.
fn composed(resolved: &Resolved, run: schedule::PlannedRun) -> ((Program, Probes), u64) {
    let spec = RunSpec {
        seed: resolved.seed + u64::from(run.repeat),
        mss_bytes: resolved.mss_bytes,
        further_receivers: 0,
        start: run.start,
        gaps_only: run.gaps_only,
        clock: CardClock::default(),
    };
    let variant = &resolved.variants[run.variant];
    let composed = compose(
        variant,
        resolved.host.processors,
        &resolved.run,
        Around {
            seed: spec.seed,
            ..Around::default()
        },
        |_| spec,
    );
    (composed.expect("a program"), spec.seed)
}

/// The scenario for a live host, with what is proposed in the twin of that machine.
fn settled_for_linux(machine: &Machine, name: &str) -> Resolved {
    let resolved = resolved(name, Length::Quick);
    let supply = linux(machine, &resolved, SEED).supply(resolved.host.processors);
    let resolved = settled(&resolved, &supply.expect("a twin's"), true, |_| None);
    let resolved = resolved.and_then(Settled::whole);
    resolved.expect("what is left open is proposed")
}

/// These runs in the twin of a Linux machine; commands are outside every twin.
fn made_for_linux(
    machine: &Machine,
    resolved: &Resolved,
    planned: Vec<schedule::PlannedRun>,
) -> (Vec<RunDone>, Circumstances) {
    let made = planned.into_par_iter().map(|planned| {
        let ((program, probes), seed) = composed(resolved, planned);
        let variant = &resolved.variants[planned.variant];
        let mut twin = linux(machine, resolved, seed);
        let record = twin.admit_and_run(program, planned.length).expect("a run");
        RunDone {
            observations: observe(&record, &probes.0, &variant.judged_by()),
            trace: None,
            commands: Vec::new(),
            speed: Vec::new(),
            planned,
            record,
            probes,
        }
    });
    let supply = linux(machine, resolved, SEED).supply(resolved.host.processors);
    let circumstances = Circumstances {
        failed: BTreeMap::new(),
        made_again: MadeAgain::default(),
        host: linux(machine, resolved, SEED).describe(),
        live: false,
        supply: supply.expect("a twin's"),
        receivers: BTreeMap::new(),
        notices: Vec::new(),
    };
    (made.collect(), circumstances)
}

/// All that the scenario has for a live host, in the twin of a Linux machine.
fn in_the_twin_of_linux(name: &str) {
    let machine = machine();
    let resolved = settled_for_linux(&machine, name);
    let planned = schedule::schedule(&resolved, true).expect("runs");
    let plan = planned_for_linux(&machine, &resolved, &planned);
    assert_is(&format!("{name}.linux.plan"), &plan);
    let (runs, circumstances) = made_for_linux(&machine, &resolved, planned);
    let results = conclude(&resolved, &runs, Vec::new(), circumstances);
    assert_results(&format!("{name}.linux"), &results);
}

/// The machine stands still for one such part of a run.
fn stand_still(run: &mut RunDone, part: u64) {
    let (from, length) = (
        run.record.start,
        run.record.end.saturating_since(run.record.start),
    );
    run.record.disturbances.push(Disturbance {
        processor: ProcessorId(0),
        from,
        to: from + length / part,
    });
}

/// The soft modem's control, one that is to be unnoticed beside it and one that is not, with two runs of each.
fn three_variants(machine: &Machine) -> (Resolved, Vec<schedule::PlannedRun>, [usize; 3]) {
    let resolved = settled_for_linux(machine, "soft-modem");
    let planned = schedule::schedule(&resolved, true).expect("runs");
    let wanted = ["none", "thread-24", "interrupt"].map(|name| {
        let mut variants = resolved.variants.iter();
        variants
            .position(|one| one.name == name)
            .expect("a variant")
    });
    let planned = planned.into_iter();
    let planned = planned.filter(|one| one.repeat < 2 && wanted.contains(&one.variant));
    let planned = planned.collect();
    (resolved, planned, wanted)
}

/// What is to be made again, and what is told of it.
fn next(
    resolved: &Resolved,
    runs: &[RunDone],
    circumstances: &Circumstances,
) -> (Vec<usize>, MadeAgain) {
    let mut again = MadeAgain::default();
    (again.next(resolved, runs, circumstances), again)
}

/// It is made again for one that is compared with it.
#[test]
fn a_control_that_is_made_again_is_told_of_all_that_are_judged_by_it() {
    let machine = machine();
    let (resolved, planned, [control, thread, interrupt]) = three_variants(&machine);
    let (mut runs, circumstances) = made_for_linux(&machine, &resolved, planned);
    let mut spoiled = Vec::new();
    for (index, run) in runs.iter_mut().enumerate() {
        if run.planned.variant == control {
            stand_still(run, 1);
            let judged_by = resolved.variants[control].judged_by();
            run.observations = observe(&run.record, &run.probes.0, &judged_by);
            spoiled.push(index);
        }
    }
    let (made_again, again) = next(&resolved, &runs, &circumstances);
    assert_eq!(made_again, spoiled);
    let count = spoiled.len();
    let told = |variant| again.notice(&resolved, variant).expect("it says so");
    let own = format!("{count} runs were made again, as the machine had left other variants open");
    assert_eq!(told(control), own);
    let of_control = format!(
        "{count} runs of its control `none` were made again, and what it is compared with is new, as the machine had left"
    );
    for variant in [thread, interrupt] {
        let told = told(variant);
        assert!(told.starts_with(&of_control), "{told}");
    }
}

#[test]
fn what_the_machine_spoiled_is_made_again_and_what_convicts_is_not() {
    let machine = machine();
    let (mut resolved, planned, [_, thread, interrupt]) = three_variants(&machine);
    let (mut runs, mut circumstances) = made_for_linux(&machine, &resolved, planned);
    let undisturbed = next(&resolved, &runs, &circumstances);
    assert!(undisturbed.0.is_empty(), "nothing stood still");
    assert_eq!(undisturbed.1.notice(&resolved, thread), None);

    let of = |variant: usize| {
        let mut runs = runs.iter();
        runs.position(|run| run.planned.variant == variant)
            .expect("a run")
    };
    let (spoiled, convicting) = (of(thread), of(interrupt));
    stand_still(&mut runs[spoiled], 20);
    let (made_again, again) = next(&resolved, &runs, &circumstances);
    assert_eq!(made_again, [spoiled], "the one in which it did");
    let notice = again.notice(&resolved, thread).expect("it says so");
    assert!(notice.starts_with("1 run was made again, "), "{notice}");
    assert!(
        notice.contains("unnoticed was to be met and is inconclusive"),
        "{notice}"
    );
    assert_eq!(again.notice(&resolved, interrupt), None);
    circumstances.made_again = again;
    let results = conclude(&resolved, &runs, Vec::new(), circumstances);
    let told = results.variants.iter().flat_map(|one| &one.verdict.reasons);
    assert!(
        told.into_iter().any(|reason| *reason == notice),
        "in the results"
    );

    // What lost its transfer, and nothing that the machine could have been, is an answer.
    let (runs, circumstances) = {
        let circumstances = made_for_linux(&machine, &resolved, Vec::new()).1;
        stand_still(&mut runs[convicting], 20);
        resolved.variants[interrupt].expect.lost = Loss::Some;
        resolved.variants[thread].expect.transfer = Outcome::Fails;
        (runs, circumstances)
    };
    let (made_again, _) = next(&resolved, &runs, &circumstances);
    assert!(
        !made_again.contains(&spoiled),
        "it was to fail, and did not"
    );
    assert!(
        !made_again.contains(&convicting),
        "it was to lose, and lost nothing"
    );
}

/// What every enforcer of that twin would make of every request. Nothing is charged for what runs above the slots.
fn planned_for_linux(
    machine: &Machine,
    resolved: &Resolved,
    runs: &[schedule::PlannedRun],
) -> String {
    let mut plan = String::new();
    for run in runs.iter().filter(|run| run.repeat == 0) {
        let variant = &resolved.variants[run.variant].name;
        let mut program = composed(resolved, *run).0.0;
        program.work.clear();
        let supply = linux(machine, resolved, SEED).supply(resolved.host.processors);
        let admitted = admit(program, &supply.expect("a twin's")).expect("all is granted");
        let _ = writeln!(plan, "{variant}: granted {}", admitted.granted());
        for request in &admitted.requests {
            let (activity, asked) = admitted.asker(request);
            let mut answers = [
                (asked.enforcer, &request.asked),
                (asked.enforcer.other(), &request.other),
            ];
            answers.sort_by_key(|(enforcer, _)| *enforcer == Enforcer::Deadline);
            for (enforcer, answer) in answers {
                let is = answer.as_ref().expect("either could");
                let answer = format!(
                    "{}, {}, a gap of {}, in theory {}, here {}\n    {}",
                    is.keeps,
                    is.grade,
                    is.promised_gap,
                    is.theory_gap,
                    is.longest_gap,
                    is.notes.join("\n    ")
                );
                let (name, asked) = (&activity.name, asked.reservation);
                let _ = writeln!(plan, "  {name} {asked} {enforcer}: {answer}");
            }
        }
    }
    plan
}

#[test]
fn a_reserved_modem_beside_spinners() {
    let quick = resolved("reserved-minimal", Length::Quick);
    in_the_studys_twin("reserved-minimal", &quick);
    planned_for_the_studys_twin("reserved-minimal", &quick);
    in_the_twin_of_linux("reserved-minimal");
}

#[test]
fn a_soft_modem_in_the_studys_twin() {
    let quick = resolved("soft-modem", Length::Quick);
    in_the_studys_twin("soft-modem", &quick);
    planned_for_the_studys_twin("soft-modem", &quick);
}

#[test]
fn a_soft_modem_in_the_studys_twin_at_full_length() {
    let mut full = resolved("soft-modem", Length::Full);
    full.run.repeats = 2;
    in_the_studys_twin("soft-modem-full", &full);
}

#[test]
fn a_soft_modem_in_the_twin_of_linux() {
    in_the_twin_of_linux("soft-modem");
}

/// For some seconds; in the study's twin without the commands, which are why the scenario has it for Linux only.
#[test]
fn one_hour_made_short() {
    let mut quick = resolved("one-hour", Length::Quick);
    for variant in &mut quick.variants {
        variant.twin = true;
        let is_command = |kind: &TaskKind| matches!(kind, TaskKind::Command { .. });
        variant.tasks.retain(|task| !is_command(&task.kind));
    }
    in_the_studys_twin("one-hour", &quick);
    planned_for_the_studys_twin("one-hour", &quick);
    in_the_twin_of_linux("one-hour");
}

#[test]
fn tasks_that_take_turns() {
    let quick = resolved("turns", Length::Quick);
    in_the_studys_twin("turns", &quick);
    planned_for_the_studys_twin("turns", &quick);
    in_the_twin_of_linux("turns");
}

#[test]
fn video_beside_bulk_transfers() {
    let quick = resolved("video-and-ftp", Length::Quick);
    in_the_studys_twin("video-and-ftp", &quick);
    planned_for_the_studys_twin("video-and-ftp", &quick);
    in_the_twin_of_linux("video-and-ftp");
}

#[test]
fn a_chain_beside_a_group() {
    let quick = resolved("upcalls-chain", Length::Quick);
    in_the_studys_twin("upcalls-chain", &quick);
    planned_for_the_studys_twin("upcalls-chain", &quick);
    in_the_twin_of_linux("upcalls-chain");
}

#[cfg(feature = "v22bis")]
#[test]
fn a_modem_of_v22bis() {
    let quick = resolved("v22bis", Length::Quick);
    in_the_studys_twin("v22bis", &quick);
    planned_for_the_studys_twin("v22bis", &quick);
}

#[test]
fn task_sets() {
    for name in ["rt-app.json", "upcalls-12.csv"] {
        let file = format!("scenarios/{name}");
        let text = shipped(&file);
        let format = import::Format::of(&file, &text).expect("a task set");
        let set = import::read(&text, &file, format).expect("tasks");
        let plan = sets::plan(&set, &sets::Options::default()).expect("a plan");
        assert_is(&format!("{name}.plan"), &sets::render(&plan, 100));
        let json = serde_json::to_value(&plan).expect("JSON");
        assert_is(&format!("{name}.plan.json"), &lines(json));
    }
}
