//! A disk that fills up while results are written: an error that says what to do, and no part of a file.

mod common;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use common::{Bench, assert_code, assert_says, lacks, names, shipped, stderr};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

/// A small file system in memory that is mounted nowhere: it is gone when this process is, whatever ends that.
struct Disk(OwnedFd);

impl Disk {
    fn new(bytes: u32) -> io::Result<Self> {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let size = CString::new(bytes.to_string()).expect("digits");
        fsconfig_set_string(&context, "size", &size)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        Ok(Self(fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?))
    }

    /// Its root, by a path that our children can use too.
    fn root(&self) -> PathBuf {
        let file = self.0.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{file}", std::process::id()))
    }
}

/// A disk of so many bytes; `None`, with the reason said, where we may not have one.
fn disk(bytes: u32) -> Option<Disk> {
    match Disk::new(bytes) {
        Ok(disk) => Some(disk),
        Err(error) => {
            lacks(&format!("no file system can be made in memory: {error}"));
            None
        }
    }
}

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
fn a_full_disk_keeps_no_part_of_a_file() {
    let Some(disk) = disk(DISK_BYTES) else {
        return;
    };
    for full in OPTIONS {
        let bench = Bench::new();
        let places = OPTIONS.map(|option| {
            let path = bench.path(option);
            let on_disk = disk.root().join(option);
            (option, if option == full { on_disk } else { path })
        });
        let output = run(&bench, &places);
        assert_code(&output, 1);
        let place = disk.root().join(full).display().to_string();
        let said = stderr(&output);
        assert_says(
            &said,
            &["cannot write", &place, "No space left", "free some space"],
        );
        assert_eq!(names(&disk.root()), [""; 0]);
        assert!(!bench.files().contains(&full.to_owned()));
    }
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
