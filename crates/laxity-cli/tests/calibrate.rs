//! `laxity calibrate`: a machine file that is right, or none; and a machine that is as it was.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::machine::{FIFO, Machine, threads_of};
use common::{Bench, assert_code, assert_says, comes_true, stderr, stdout, unbroken};
use laxity::doctor::rights::{self, Right};
use laxity_lab::machine_file;
use laxity_model::enforce::machine::Figure;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// It begins to measure within moments, and ends within a second of a signal.
const PATIENCE: Duration = Duration::from_secs(20);

/// With a configuration directory of its own.
fn calibrate(bench: &Bench, arguments: &[&str]) -> Command {
    let mut command = bench.command();
    command.arg("calibrate").args(arguments);
    command.env("XDG_CONFIG_HOME", bench.path("config"));
    command
}

#[test]
fn what_is_measured_goes_into_the_file_and_the_json_and_nothing_else_remains() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    let bench = Bench::new();
    let mut command = calibrate(&bench, &["--quick", "--json=out.json", "--html=out.html"]);
    let output = command.output().expect("laxity starts");
    assert_eq!(before.changes(), Vec::<String>::new());
    if output.status.code() == Some(5) {
        // On a processor that others keep busy there may be nothing to measure: then nothing is written.
        assert_says(
            &stderr(&output),
            &["is disturbed", "try again", "nothing was written"],
        );
        assert_eq!(bench.files(), Vec::<String>::new());
        return;
    }
    assert_code(&output, 0);
    assert_says(&stderr(&output), &["context switch", "edges of time slots"]);
    assert_eq!(bench.files(), ["config", "out.html", "out.json"]);
    let text = String::from_utf8(bench.read("config/laxity/machine.toml")).expect("text");
    let found = machine_file::parse(&text, "machine.toml").expect("the file is right");
    assert_eq!(machine_file::render(&found), text);
    let said = stdout(&output);
    // Its lines are as wide as the terminal.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = "What a UDP message takes";
    assert_says(
        &words,
        &[&found.machine.description, message, "machine.toml"],
    );
    let json: Value = serde_json::from_slice(&bench.read("out.json")).expect("this is JSON");
    match &found.udp_message {
        Ok(cost) => assert_eq!(json["udp_message"]["byte_ps"], cost.byte_ps),
        Err(why) => assert_eq!(json["udp_message"]["not_measured"].as_str(), Some(&**why)),
    }
    for (way, cost) in &found.packets {
        let json = &json["packets"][*way];
        match cost {
            Ok(cost) => assert_eq!(json["send_byte_ps"], cost.send.byte_ps),
            Err(why) => assert_eq!(json["not_measured"].as_str(), Some(&**why)),
        }
    }
    assert_eq!(found.packets.len(), 4);
    for figure in Figure::ALL {
        assert_says(&said, &[figure.name()]);
        let points = json["figures"][figure.name()]["quantiles"].as_array();
        let points: Vec<_> = points
            .expect("a list")
            .iter()
            .map(|point| (point["ppm"].as_u64(), point["ns"].as_u64()))
            .collect();
        let expected = found.machine.figure(figure).points().iter();
        let expected: Vec<_> = expected
            .map(|(ppm, span)| (Some(u64::from(*ppm)), Some(span.as_nanos())))
            .collect();
        assert_eq!(points, expected, "{figure:?}");
    }
}

/// Waits until it has real-time threads, and stops it.
fn stop(bench: &Bench, signal: Signal) -> (Child, String) {
    let mut child = calibrate(bench, &["--output=m.toml", "--json=out.json"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("laxity starts");
    let measures = comes_true(PATIENCE, || {
        threads_of(child.id()).iter().any(|t| t.policy == FIFO)
    });
    assert!(measures, "it never began");
    kill_process(Pid::from_child(&child), signal).expect("it is our child, and not waited for");
    let ended = comes_true(PATIENCE, || child.try_wait().expect("our child").is_some());
    assert!(ended, "still there: {:?}", threads_of(child.id()));
    let mut said = String::new();
    let mut pipe = child.stderr.take().expect("it is piped");
    std::io::Read::read_to_string(&mut pipe, &mut said).expect("text");
    (child, said)
}

#[test]
fn a_signal_stops_it_and_leaves_nothing() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let before = Machine::now();
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let bench = Bench::new();
        let (mut child, said) = stop(&bench, signal);
        assert_eq!(
            child.wait().expect("it has ended").code(),
            Some(1),
            "{said}"
        );
        assert_says(
            &said,
            &[&format!("stopped by {name}"), "nothing was written"],
        );
        assert_eq!(bench.files(), Vec::<String>::new());
    }
    let bench = Bench::new();
    let (mut child, _) = stop(&bench, Signal::KILL);
    assert_eq!(child.wait().expect("it has ended").code(), None);
    assert_eq!(bench.files(), Vec::<String>::new());
    assert_eq!(before.changes(), Vec::<String>::new());
}

#[test]
fn without_rights_it_is_refused_with_the_remedy() {
    let (bench, programs) = (Bench::new(), Bench::new());
    let Some(mut command) = bench.command_without_rights(&programs) else {
        return;
    };
    command.args(["calibrate", "--output=m.toml"]);
    let output = command.output().expect("laxity starts");
    assert_code(&output, 4);
    assert_says(&stderr(&output), &["CAP_SYS_NICE", "setcap cap_sys_nice"]);
    assert_eq!(bench.files(), Vec::<String>::new());
}

#[test]
fn help_has_every_exit_code() {
    let help = stdout(&Bench::new().run(&["calibrate", "--help"]));
    let codes = "0 measured; 1 error, or stopped; 4 cannot run here; 5 too disturbed; 64 usage.";
    assert_says(&unbroken(&help), &[codes]);
}

#[test]
fn settings_that_make_no_sense_are_usage_errors() {
    let bench = Bench::new();
    let wrong: [&[&str]; 5] = [
        &["--processor", "first"],
        &["--priority", "0"],
        &["--priority", "98"],
        &["--json", "--output=-"],
        &["--quick=3"],
    ];
    for arguments in wrong {
        let output = calibrate(&bench, arguments)
            .output()
            .expect("laxity starts");
        assert_code(&output, 64);
        assert!(!stderr(&output).is_empty());
    }
    let nowhere = calibrate(&bench, &[])
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("HOME")
        .output();
    let nowhere = nowhere.expect("laxity starts");
    assert_code(&nowhere, 64);
    assert_says(&stderr(&nowhere), &["--output FILE"]);
    assert_eq!(bench.files(), Vec::<String>::new());
}
