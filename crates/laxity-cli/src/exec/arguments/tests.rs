//! What is asked for by a command line, and what is refused.

use clap::Parser;

use super::*;
use crate::arguments::{Arguments, Command};

/// What is asked for by these words.
fn asked_by(words: &[&str]) -> Result<Asked, String> {
    let words = [&["laxity", "exec"][..], words].concat();
    let arguments = Arguments::try_parse_from(words).map_err(|error| error.to_string())?;
    match arguments.command {
        Command::Exec(exec) => exec.asked(),
        other => panic!("{other:?}"),
    }
}

/// The same for a program that is started.
fn asked(options: &[&str]) -> Result<Asked, String> {
    asked_by(&[options, &["--", "true"]].concat())
}

/// Each of chrt's, and an affinity alone.
const POLICIES: [&[&str]; 9] = [
    &["-f", "50"],
    &["-r", "10"],
    &["-o"],
    &["-b", "-n", "5"],
    &["-i"],
    &["-n", "5"],
    &["-a", "0"],
    &["-f", "50", "-a", "0-1"],
    &["-d", "-T", "2ms", "-D", "4ms", "-P", "8ms"],
];

#[test]
fn what_has_no_force_with_a_policy_is_refused() {
    let of_a_reservation = [
        "--enforcer=slots",
        "--enforcer=deadline",
        "--confine=quota",
        "--threads=audio",
        "--threads=all",
        "--follow=none",
        "--follow=children",
        "--contract=c",
        "--judge",
        "--json=j",
        "--html=h",
    ];
    for policy in POLICIES {
        let alone = asked(&[policy, &["--status-json=s", "--quiet"]].concat());
        assert!(matches!(alone, Ok(Asked::Policy(..))), "{policy:?}");
        for option in of_a_reservation {
            let Err(why) = asked(&[policy, &[option]].concat()) else {
                panic!("{option} is dropped beside {policy:?}");
            };
            let name = option.split('=').next().unwrap();
            let is_told = why.contains(name) && why.contains("--reserve");
            assert!(is_told, "{policy:?} {option}: {why}");
        }
    }
}

#[test]
fn by_chrts_names_a_reservation_takes_what_has_force_by_the_kernel() {
    let with_and_without: [&[&str]; 2] = [&["-D", "8ms"], &[]];
    for rest in with_and_without {
        let deadline = [&["-d", "-T", "2ms", "-P", "8ms"][..], rest].concat();
        for (option, has_force) in [
            ("--enforcer=deadline", true),
            ("--threads=audio", true),
            ("--follow=none", true),
            ("--contract=c", true),
            ("--judge", true),
            ("--json=j", true),
            ("--enforcer=slots", false),
            ("--confine=quota", false),
            ("--processor=0", false),
        ] {
            let asked = asked(&[&deadline[..], &[option]].concat());
            let is_taken = matches!(&asked, Ok(Asked::Reservation { request, .. })
                if request.hold.enforcer == laxity::Enforcer::Deadline);
            assert_eq!(is_taken, has_force, "{option}");
            let name = option.split('=').next().unwrap();
            assert!(asked.err().is_none_or(|why| why.contains(name)));
        }
    }
}

#[test]
fn of_several_policies_none_is_dropped() {
    for policy in [&["-f", "50"][..], &["-n", "5"], &["-i"]] {
        for more in [
            &["-T", "2ms", "-P", "8ms"][..],
            &["-T", "2ms"],
            &["-D", "4ms"],
        ] {
            let why = asked(&[policy, more].concat()).err();
            let is_told = why.is_some_and(|why| why.contains("--deadline"));
            assert!(is_told, "{policy:?} {more:?}");
        }
    }
}

/// A reason of the verdict begins with it, or has it within.
#[test]
fn a_programs_name_is_a_part_of_a_line() {
    let words = ["--reserve=2ms/8ms", "--", "n\nlaxity: as reserved met"];
    let Ok(Asked::Reservation { request, .. }) = asked_by(&words) else {
        panic!("a reservation is asked for");
    };
    assert_eq!(request.hold.name, r"n\nlaxity: as reserved met");
}

#[test]
fn whom_a_reservation_is_for_is_as_it_is_said_or_refused() {
    let choice = |words: &[&str]| -> Result<Choice, String> {
        let words = [&["--reserve=2ms/8ms"][..], words].concat();
        match asked_by(&words)? {
            Asked::Reservation { request, .. } => Ok(request.choice),
            Asked::Policy(..) => Err("a policy".to_owned()),
        }
    };
    let program = choice(&["--pid=7"]).unwrap();
    assert!(program.new_threads && program.children && program.names.is_empty());
    let some = choice(&["--pid=7", "--threads=audio,gui", "--follow=threads"]).unwrap();
    assert_eq!(some.names, ["audio", "gui"]);
    assert!(some.new_threads && !some.children);
    let with_and_without: [&[&str]; 2] = [&["--follow=none"], &[]];
    for follow in with_and_without {
        let thread = choice(&[&["--tid=7"][..], follow].concat()).unwrap();
        assert_eq!(thread.only, Some(Tid(7)));
        assert!(!thread.new_threads && !thread.children);
    }
    let wrong: [(&[&str], &str); 7] = [
        (&["--tid=7", "--follow=threads"], "--pid in place of --tid"),
        (&["--tid=7", "--follow=children"], "--pid in place of --tid"),
        (&["--pid=7", "--threads=a-name-of-16-byt"], "15 bytes"),
        (&["--pid=7", "--threads="], "empty name"),
        (&["--pid=7", "--threads=x,,y"], "empty name"),
        (&["--pid=0"], "--pid"),
        (&["--tid=2147483648"], "--tid"),
    ];
    for (words, why) in wrong {
        let told = choice(words).unwrap_err();
        assert!(told.contains(why), "{told}");
    }
}
