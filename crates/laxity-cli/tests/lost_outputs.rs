//! What cannot be written costs nothing else, whichever command writes it and whatever the trouble is: the table and the verdict are told, other outputs
//! are there, the exit code says that something is missing, and no part of a file is left.

mod common;

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::disk::disk;
use common::{Bench, assert_code, assert_says, comes_true, names, shipped, stderr, stdout};
use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, setrlimit};

/// A command that needs no rights, the options that name its outputs, and what it tells in any case.
struct Writes {
    arguments: &'static [&'static str],
    options: &'static [&'static str],
    tells: &'static str,
}

const SCENARIO: &str = "soft-modem.toml";

const ALL: [Writes; 4] = [
    Writes {
        arguments: &["run", "--on=twin", "--variant=none", SCENARIO],
        options: &["--html", "--trace", "--json", "--trace-summary"],
        tells: "verdict: as expected",
    },
    Writes {
        arguments: &["plan", "--on=twin", "--no-observe", SCENARIO],
        options: &["--json"],
        tells: "admitted",
    },
    Writes {
        arguments: &["lab", "modem", "figure-10", "--on=twin"],
        options: &["--html", "--json"],
        tells: "verdict: nothing was claimed",
    },
    Writes {
        arguments: &["doctor"],
        options: &["--json"],
        tells: "kernel",
    },
];

impl Writes {
    /// To be run with `troubled` at this place, and every other output here.
    fn command(&self, bench: &Bench, troubled: &str, place: &Path) -> Command {
        let mut command = bench.command();
        for argument in self.arguments {
            match *argument {
                SCENARIO => command.arg(shipped(SCENARIO)),
                argument => command.arg(argument),
            };
        }
        for option in self.options {
            let named = bench.path(option.trim_start_matches('-'));
            let place = if *option == troubled { place } else { &named };
            command.arg(format!("{option}={}", place.display()));
        }
        command
    }

    /// The names of what it leaves, but for one.
    fn left(&self, troubled: &str) -> Vec<String> {
        let mut left: Vec<String> = self
            .options
            .iter()
            .filter(|option| **option != troubled)
            .map(|option| option.trim_start_matches('-').to_owned())
            .collect();
        left.sort();
        left
    }
}

/// So much is on a disk, and nothing besides.
const FULL: u32 = 64 * 1024;

/// Runs every command with each of its outputs in trouble; `run` starts what it is given, and `own` is what the trouble itself has there.
fn with_each(
    own: &[&str],
    place: impl Fn(&Bench) -> std::path::PathBuf,
    run: impl Fn(Command) -> Output,
    words: &[&str],
) {
    for writes in &ALL {
        for troubled in writes.options {
            let bench = Bench::new();
            let place = place(&bench);
            let output = run(writes.command(&bench, troubled, &place));
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{:?} {troubled}: {said}",
                writes.arguments
            );
            assert_says(&said, &[&["cannot write"], words].concat());
            assert_says(&stdout(&output), &[writes.tells]);
            let mut left = writes.left(troubled);
            left.extend(own.iter().map(|name| (*name).to_owned()));
            left.sort();
            assert_eq!(bench.files(), left, "{:?} {troubled}", writes.arguments);
        }
    }
}

fn output(mut command: Command) -> Output {
    command.output().expect("laxity starts")
}

#[test]
fn a_device_that_is_full_costs_nothing_else() {
    with_each(
        &[],
        |_| "/dev/full".into(),
        output,
        &["/dev/full", "No space left"],
    );
}

#[test]
fn a_disk_that_is_full_costs_nothing_else_and_keeps_no_part_of_a_file() {
    let Some(disk) = disk(FULL) else {
        return;
    };
    let root = disk.root();
    fs::write(root.join("before"), [0; FULL as usize]).expect("it just fits");
    let words = ["No space left", "free some space"];
    with_each(&[], |_| root.join("result"), output, &words);
    assert_eq!(names(&root), ["before"]);
}

fn fifo(bench: &Bench) -> std::path::PathBuf {
    let path = bench.path("fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo runs").success());
    path
}

#[test]
fn a_pipe_that_nobody_reads_keeps_nothing_back() {
    with_each(&["fifo"], fifo, output, &["fifo", "nobody reads it"]);
}

#[test]
fn who_reads_a_pipe_gets_all_of_it_however_slowly() {
    let bench = Bench::new();
    let path = fifo(&bench);
    let mut reader = OpenOptions::new();
    let reader = reader
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let mut reader = reader.open(&path).expect("it is there");
    let mut command = bench.command();
    command
        .args(["run", "--on=twin", "--json=fifo"])
        .arg(shipped(SCENARIO));
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .expect("laxity starts");
    let mut bytes = Vec::new();
    let ended = comes_true(Duration::from_secs(300), || {
        let is_over = child.try_wait().expect("our child").is_some();
        // Until there is nothing more just now.
        let _ = reader.read_to_end(&mut bytes);
        is_over
    });
    assert!(ended, "{} bytes came", bytes.len());
    assert!(
        bytes.len() > 100_000,
        "more than a pipe holds: {}",
        bytes.len()
    );
    let _: serde_json::Value = serde_json::from_slice(&bytes).expect("this is JSON");
    assert_eq!(child.wait().expect("it has ended").code(), Some(0));
}

/// No file may be larger than a few bytes.
fn limited(mut command: Command) -> Output {
    let limit = Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    // SAFETY: one system call between fork and exec.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(move || Ok(setrlimit(Resource::Fsize, limit)?));
    }
    output(command)
}

#[test]
fn a_file_size_limit_is_told_by_every_command_and_costs_no_table() {
    for writes in &ALL {
        let bench = Bench::new();
        let output = limited(writes.command(&bench, "", Path::new("")));
        assert_code(&output, 1);
        let said = stderr(&output);
        assert_eq!(
            said.matches("cannot write").count(),
            writes.options.len(),
            "{said}"
        );
        assert_says(&said, &["ulimit -f"]);
        assert_says(&stdout(&output), &[writes.tells]);
        assert_eq!(bench.files(), [""; 0]);
    }
}

#[test]
fn what_is_wrong_from_the_start_is_told_before_anything_starts() {
    for writes in &ALL {
        for troubled in writes.options {
            let bench = Bench::new();
            fs::create_dir(bench.path("directory")).expect("our directory");
            symlink("missing/there", bench.path("dangling")).expect("a link");
            for (place, words) in [
                ("directory", "Is a directory"),
                ("missing/there", "its directory must exist"),
                ("dangling", "its directory must exist"),
            ] {
                let output = output(writes.command(&bench, troubled, &bench.path(place)));
                assert_code(&output, 1);
                assert_says(&stderr(&output), &[troubled, words, "nothing was started"]);
                assert_eq!(stdout(&output), "");
                assert_eq!(bench.files(), ["dangling", "directory"]);
            }
        }
    }
}

/// Runs `laxity exec` with these options and a program that leaves a file; whether it ran, and what was said.
fn exec(options: &[&str], code: i32) -> (bool, String) {
    let bench = Bench::new();
    bench.write(
        "contract",
        "limits = [{ quantity = \"overruns\", at_most = 3 }]",
    );
    let arguments = [&["exec"], options, &["--", "touch", "ran"]].concat();
    let output = bench.run(&arguments);
    assert_code(&output, code);
    (bench.files().contains(&"ran".to_owned()), stderr(&output))
}

#[test]
fn exec_looks_at_its_outputs_before_it_starts_a_program() {
    let reserved = ["--reserve=2ms/8ms", "--json=a"];
    let wrong: [(&[&str], &str); 6] = [
        (&["--html=a"], "--html names the same file as --json"),
        (&["--html=missing/a"], "its directory must exist"),
        (
            &["--status-json=./a"],
            "--status-json names the same file as --json",
        ),
        (
            &["--contract=contract", "--html=contract"],
            "the same file as the input",
        ),
        (&["--html=/proc/a"], "cannot write /proc/a"),
        (&["--html=/"], "Is a directory"),
    ];
    for (options, words) in wrong {
        let (ran, said) = exec(&[&reserved, options].concat(), 125);
        assert!(!ran, "{said}");
        assert_says(&said, &[words, "nothing was started"]);
    }
    // A policy delivers nothing that could be told, or judged: a file that is never written would be looked for in vain.
    for option in ["--html=a", "--json=a", "--judge", "--contract=contract"] {
        let (ran, said) = exec(&["--nice=5", option], 125);
        assert!(!ran, "{said}");
        let name = option.split('=').next().expect("a name");
        let told = format!("{name} is for a reservation");
        assert_says(&said, &[&told, "--reserve X/Y"]);
    }
}

#[test]
fn exec_mixes_nothing_with_what_the_program_writes() {
    for option in ["--json", "--json=-", "--html=-", "--status-json=-"] {
        let (ran, said) = exec(&["--reserve=2ms/8ms", option], 125);
        assert!(!ran, "{said}");
        let name = option.trim_end_matches("=-");
        let told = format!("{name} would be mixed with what the program writes");
        assert_says(&said, &[&told, &format!("{name}=FILE")]);
    }
}

#[test]
fn exec_tells_where_its_status_could_not_be_written() {
    let (ran, said) = exec(&["--nice=5", "--status-json=/dev/full"], 125);
    assert!(ran, "{said}");
    assert_says(&said, &["cannot write /dev/full", "No space left"]);
}

#[test]
fn calibrate_looks_at_its_outputs_before_it_measures() {
    for (options, code, words) in [
        (
            ["--output=m", "--json=m"],
            64,
            "--json names the same file as --output",
        ),
        (
            ["--output=m", "--html=missing/a"],
            1,
            "its directory must exist",
        ),
        (["--output=/", "--json=m"], 1, "Is a directory"),
        (["--output=m", "--json=/proc/a"], 1, "cannot write /proc/a"),
    ] {
        let bench = Bench::new();
        let output = bench.run(&[&["calibrate"], &options[..]].concat());
        assert_code(&output, code);
        assert_says(&stderr(&output), &[words, "nothing was started"]);
        assert_eq!(bench.files(), [""; 0]);
    }
}

/// That somebody may not run on Linux is no less so where an output cannot be written; what runs all the same has failed.
#[test]
fn without_rights_linux_is_refused_wherever_the_outputs_are_to_go() {
    let (bench, programs) = (Bench::new(), Bench::new());
    bench.write(SCENARIO, &common::shipped_text(SCENARIO));
    let cases: [(&[&str], i32, &str); 4] = [
        (&["run", "--on=linux", SCENARIO], 4, "CAP_SYS_NICE"),
        (&["run", "--on=twin", SCENARIO], 1, "cannot write /proc/x"),
        (&["lab", "modem", "--on=linux"], 4, "CAP_SYS_NICE"),
        (&["lab", "modem", "--on=twin"], 1, "cannot write /proc/x"),
    ];
    for (arguments, code, words) in cases {
        let Some(mut command) = bench.command_without_rights(&programs) else {
            return;
        };
        command.args(arguments).arg("--html=/proc/x.html");
        let output = output(command);
        assert_code(&output, code);
        assert_says(&stderr(&output), &[words]);
        assert_eq!(bench.files(), [SCENARIO]);
    }
}
