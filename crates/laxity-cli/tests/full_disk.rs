//! A disk that fills up while a result is written that was there before, and one that is large enough.

mod common;

use std::fs;
use std::path::PathBuf;

use common::disk::disk;
use common::{Bench, assert_code, names, shipped};

const DISK_BYTES: u32 = 16 * 1024;
const OPTIONS: [&str; 3] = ["html", "trace", "json"];

/// Runs a scenario in the twin, each output where it is told; exit code and standard error.
fn run(bench: &Bench, places: &[(&str, PathBuf)]) -> std::process::Output {
    let mut command = bench.command();
    command.args(["run", "--on", "twin"]);
    for (option, path) in places {
        command.arg(format!("--{option}={}", path.display()));
    }
    command.arg(shipped("soft-modem.toml"));
    command.output().expect("laxity starts")
}

#[test]
fn what_stood_on_a_full_disk_before_still_does() {
    let Some(disk) = disk(DISK_BYTES) else {
        return;
    };
    let bench = Bench::new();
    let before = disk.root().join("html");
    fs::write(&before, "last week's report").expect("there is room for that");
    let output = run(&bench, &[("html", before.clone())]);
    assert_code(&output, 1);
    assert_eq!(names(&disk.root()), ["html"]);
    let kept = fs::read_to_string(&before).expect("it can be read");
    assert_eq!(kept, "last week's report");
}

#[test]
fn the_same_disk_holds_everything_when_it_is_large_enough() {
    let Some(disk) = disk(64 << 20) else {
        return;
    };
    let bench = Bench::new();
    let places = OPTIONS.map(|option| (option, disk.root().join(option)));
    assert_code(&run(&bench, &places), 0);
    assert_eq!(names(&disk.root()), ["html", "json", "trace"]);
    for option in OPTIONS {
        let bytes = fs::metadata(disk.root().join(option)).expect("it is there");
        // Or the tests above would have filled no disk.
        assert!(bytes.len() > u64::from(DISK_BYTES), "{option}: {bytes:?}");
    }
}
