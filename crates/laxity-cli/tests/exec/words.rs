//! What a command line of `exec` means: policies by chrt's names, and a command without `--` before it.

use std::process::Command;

use crate::common::{Bench, said};
use crate::{exec, live, shell};

#[test]
fn policies_are_given_by_chrts_names() {
    let Some(_live) = live() else { return };
    let bench = Bench::new();
    let cases: [(&[&str], &str); 8] = [
        (&["-b", "-n", "5"], "SCHED_BATCH"),
        (
            &["-d", "-T", "1000000", "-D", "5ms", "-P", "20ms"],
            "1000000/5000000/20000000",
        ),
        (&["-f", "50"], "SCHED_FIFO"),
        (&["-r", "7"], "SCHED_RR"),
        (&["-i"], "SCHED_IDLE"),
        (&["-n", "5"], "SCHED_OTHER"),
        (&["-f", "50", "-a", "0"], "SCHED_FIFO"),
        (&["-d", "-T", "1000000", "-P", "20ms"], "SCHED_DEADLINE"),
    ];
    for (options, policy) in cases {
        let output = exec(&bench, options, &shell("chrt -p $$; nice; taskset -cp $$"));
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(out.contains(policy), "{options:?}: {out}{}", said(&output));
        if options.contains(&"-n") {
            assert!(out.contains("\n5\n"), "{out}");
        }
        if options.contains(&"-a") {
            assert!(out.contains("affinity list: 0\n"), "{out}");
        }
    }
}

/// What this command line prints under another policy or nice value than ours; `laxity` in it is the command.
fn under(line: &str) -> String {
    let line = line.replace("laxity", env!("CARGO_BIN_EXE_laxity"));
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_nobody_asked_for_is_as_it_was() {
    let Some(_live) = live() else { return };
    let nicer = under("nice -n 10 nice");
    for options in ["-a 0", "-o", "-b", "-b -a 0"] {
        let line = format!("nice -n 10 laxity exec {options} -- nice");
        assert_eq!(under(&line), nicer, "{options}");
    }
    assert_eq!(under("nice -n 10 laxity exec -o -n 3 -- nice"), "3\n");
    let told = under("chrt -f 50 laxity exec -a 0 -- sh -c 'chrt -p $$; taskset -cp $$'");
    for part in ["SCHED_FIFO", "priority: 50\n", "affinity list: 0\n"] {
        assert!(told.contains(part), "{told}");
    }
    let told = under("chrt -f 50 nice -n 10 laxity exec -o -- sh -c 'chrt -p $$; nice'");
    assert!(told.contains("SCHED_OTHER"), "{told}");
    assert!(told.ends_with(&nicer), "{told}");
}

#[test]
fn before_a_command_without_dashes_it_is_said_where_they_belong() {
    let bench = Bench::new();
    let cases: [(&[&str], bool); 5] = [
        (&["--reserve=2ms/8ms", "sleep", "1"], true),
        (&["-f", "50", "sleep", "-x"], true),
        // Where that would not be right either, or it is another's place.
        (&["--reserve=2/8", "sleep", "1"], false),
        (&["--no-such", "sleep"], false),
        (&["sleep", "--", "1"], false),
    ];
    for (words, is_said) in cases {
        let output = bench.run(&[&["exec"], words].concat());
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        let said = said(&output);
        assert_eq!(said.contains("behind `--`: '-- sleep'"), is_said, "{said}");
    }
}
