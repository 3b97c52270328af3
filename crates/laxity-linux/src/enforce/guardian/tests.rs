//! What is on its list, what it reads, and who takes its place.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::group::{PATH_BYTES, join, whole_lines};
use super::*;
use crate::os::sched::{self, Policy};

fn message(keep: u8, undo: Undo<'_>) -> [u8; MESSAGE_BYTES] {
    let mut message = [keep; MESSAGE_BYTES];
    message[1..].copy_from_slice(&undo.entry().unwrap());
    message
}

#[test]
fn what_was_undone_is_struck() {
    let mut list = [FREE; MOST];
    let group = Undo::Group(Path::new("/sys/fs/cgroup/x"));
    let other = Undo::Group(Path::new("/sys/fs/cgroup/y"));
    assert_eq!(note(&mut list, &message(1, group)), Some(0));
    assert_eq!(note(&mut list, &message(1, other)), Some(1));
    let mut buffer = [0; PATH_BYTES];
    let path = join(&list[0], b"/cgroup.procs", &mut buffer).unwrap();
    assert_eq!(path, c"/sys/fs/cgroup/x/cgroup.procs");
    assert_eq!(note(&mut list, &message(0, group)), Some(0));
    assert_eq!(list.iter().filter(|entry| **entry != FREE).count(), 1);
    assert_eq!(note(&mut list, &message(0, other)), Some(1));
    assert!(list.iter().all(|entry| *entry == FREE));
}

/// A port that is closed may be had again, however late the guardian comes to its turn.
#[test]
fn once_it_is_there_nothing_of_ours_is_open_in_it() {
    for _ in 0..20 {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let _guardian = Guardian::fork().unwrap();
        drop(socket);
        std::net::UdpSocket::bind(address).unwrap();
    }
}

#[test]
fn a_line_that_is_cut_is_nobodys_number_until_its_end_is_there() {
    let lines = |text: &[u8]| {
        let mut found = Vec::new();
        let rest = whole_lines(text, |line| found.push(line.to_vec()));
        (found, rest)
    };
    assert_eq!(
        lines(b"12\n345\n67"),
        (vec![b"12".to_vec(), b"345".to_vec()], 7)
    );
    assert_eq!(lines(b"67"), (Vec::new(), 0));
    assert_eq!(lines(b"678\n"), (vec![b"678".to_vec()], 4));
    assert_eq!(lines(b""), (Vec::new(), 0));
}

/// Longer than one reading, whose end is within a number.
#[test]
fn every_line_of_a_long_file_is_read_whole() {
    let group = tempfile::tempdir().unwrap();
    let all: Vec<String> = (100_000..102_000)
        .map(|number: u32| number.to_string())
        .collect();
    std::fs::write(group.path().join("cgroup.procs"), all.join("\n") + "\n").unwrap();
    let entry = Undo::Group(group.path()).entry().unwrap();
    let mut found = Vec::new();
    for_each_line(&entry, b"/cgroup.procs", |line| {
        found.push(String::from_utf8(line.to_vec()).unwrap());
    });
    assert_eq!(found, all);
}

/// What it cannot give back it does not promise to.
#[test]
fn what_there_is_no_room_for_is_refused() {
    let guardian = Guardian::fork().unwrap();
    let paths = (0..=MOST).map(|number| format!("/nobody/has/this/{number}"));
    let paths: Vec<String> = paths.collect();
    let groups = paths.iter().map(|path| Undo::Group(Path::new(path)));
    let answers: Vec<bool> = groups.map(|group| guardian.watch(group).is_ok()).collect();
    assert_eq!(answers.iter().filter(|taken| **taken).count(), MOST);
    let (first, last) = (Path::new(&paths[0]), Path::new(&paths[MOST]));
    guardian.forget(Undo::Group(first)).unwrap();
    guardian.watch(Undo::Group(last)).unwrap();
}

#[test]
fn a_path_too_long_to_be_kept_is_refused() {
    let long = "x".repeat(size_of::<Entry>());
    assert!(Undo::Group(Path::new(&long)).entry().is_err());
}

/// So many that a pipe does not hold what is told of them.
fn many_groups() -> Vec<String> {
    let numbers = 0..MOST - 1;
    numbers
        .map(|number| format!("/nobody/has/this/{number}"))
        .collect()
}

/// The line of its number in what the kernel tells of our descriptor.
fn number(guardian: &Guardian) -> String {
    let process = guardian.known().reads.process.as_raw_fd();
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{process}")).unwrap();
    let mut lines = told.lines().filter(|line| line.starts_with("Pid:"));
    lines.next().unwrap().to_owned()
}

#[test]
fn one_that_somebody_stopped_goes_on_when_it_is_to_read() {
    let guardian = Guardian::fork().unwrap();
    let before = number(&guardian);
    let stop = || pidfd_send_signal(&guardian.known().reads.process, Signal::STOP).unwrap();
    stop();
    let unknown = message(0, Undo::Group(Path::new("/nobody/has/this")));
    while rustix::io::write(&guardian.known().reads.pipe, &unknown).is_ok() {}
    // Each waits, and the machine may stand still for longer.
    assert!((0..100).any(|_| guardian.known().reads.goes_on().unwrap()));
    stop();
    let begun = std::time::Instant::now();
    for group in &many_groups() {
        guardian.watch(Undo::Group(Path::new(group))).unwrap();
    }
    for group in &many_groups() {
        guardian.forget(Undo::Group(Path::new(group))).unwrap();
    }
    let took = begun.elapsed();
    assert!(guardian.known().list.is_empty());
    let is_the_same = number(&guardian) == before;
    assert!(
        is_the_same || took >= Duration::from_millis(100),
        "{took:?}"
    );
}

/// Whoever waited for one that never reads would wait for ever, and who takes its place must know what was told before.
#[test]
fn another_with_the_whole_list_takes_the_place_of_one_that_does_not_read() {
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let before = sched::policy(thread).unwrap();
    let restore = Restore::of(thread).unwrap();
    let guardian = Guardian::fork().unwrap();
    guardian.watch(Undo::Thread(&restore)).unwrap();
    let (_never_read, pipe) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    fcntl_setfl(&pipe, OFlags::NONBLOCK).unwrap();
    // The one that was there sees its pipe's end, and gives back what nobody has changed yet.
    drop(std::mem::replace(
        &mut guardian.known().reads.pipe,
        File::from(pipe),
    ));
    for group in &many_groups() {
        guardian.watch(Undo::Group(Path::new(group))).unwrap();
    }
    sched::set_policy(thread, Policy::Batch { nice: 0 }).unwrap();
    // It is not to give it back itself.
    std::mem::forget(restore);
    drop(guardian);
    let is_given_back = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        sched::policy(thread) == Ok(before)
    });
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(is_given_back);
}

/// What a process is told that opens few files, and all that it starts: who that is for.
const FEW: &str = "LAXITY_TEST_FEW_FILES_OF";

/// How many guardians a process has that was told so.
fn guardians(told: &str) -> usize {
    let told = format!("{FEW}={told}");
    let is_one = |process: &Path| {
        let read = |name| std::fs::read(process.join(name)).unwrap_or_default();
        let environment = read("environ");
        let mut words = environment.split(|byte| *byte == 0);
        words.any(|word| word == told.as_bytes())
            && read("comm").trim_ascii_end() == claim::GUARDIAN.to_bytes()
    };
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter(|one| is_one(&one.as_ref().unwrap().path()))
        .count()
}

#[test]
fn where_no_other_can_take_its_place_it_stays_and_nothing_is_given_back() {
    let Some(told) = std::env::var_os(FEW) else {
        // The limit is a whole process's.
        let name = "where_no_other_can_take_its_place_it_stays_and_nothing_is_given_back";
        let mut few = Command::new(std::env::current_exe().unwrap());
        few.arg(name).env(FEW, std::process::id().to_string());
        let output = few.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("1 passed"), "{output:?}");
        return;
    };
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let restore = Restore::of(thread).unwrap();
    let guardian = Guardian::fork().unwrap();
    guardian.watch(Undo::Thread(&restore)).unwrap();
    sched::set_policy(thread, Policy::Batch { nice: 0 }).unwrap();
    let before = number(&guardian);
    // All numbers below the last of these are taken.
    let taken: Vec<File> = (0..64).map(|_| File::open("/dev/null").unwrap()).collect();
    let next = taken.last().unwrap().as_raw_fd().cast_unsigned() + 1;
    let limit = getrlimit(Resource::Nofile);
    // Without a pipe for the other, and with one and nothing to know it by.
    let replaced = [0, 2].map(|more| {
        let current = Some(u64::from(next + more));
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
        let replaced = guardian.known().replace();
        setrlimit(Resource::Nofile, limit).unwrap();
        replaced.map_err(|error| error.raw_os_error())
    });
    let is_alone = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        guardians(told.to_str().unwrap()) == 1
    });
    let has = sched::policy(thread);
    let is_there = !has_no_reader(&guardian.known().reads.pipe).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    std::mem::forget(restore);
    assert_eq!(replaced, [Err(Some(libc::EMFILE)); 2]);
    assert!(is_alone && is_there && number(&guardian) == before);
    assert_eq!(has, Ok(Policy::Batch { nice: 0 }));
}
