//! What is cut, and by whom.

use std::io::Write as _;
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::common::machine::threads_of;
use super::common::{Bench, assert_code, assert_says, comes_true, eventually, said};
use super::namespace::{ip, pair};
use super::{addresses, capturing, frame, in_namespace, pcap, written, written_far_apart};

/// What it said, though it may have had to be killed.
fn ended(mut child: Child) -> Output {
    comes_true(Duration::from_secs(20), || {
        child.try_wait().unwrap().is_some()
    });
    child.kill().ok();
    child.wait_with_output().unwrap()
}

/// A pipe that nobody has opened.
fn fifo(bench: &Bench) {
    let made = Command::new("mkfifo").arg(bench.path("fifo")).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_capture_into_a_pipe_that_nobody_has_opened_is_refused() {
    let bench = Bench::new();
    fifo(&bench);
    let mut capture = bench.command();
    let udp = "udp:127.0.0.1:0-127.0.0.1:9";
    capture.args(["net", "capture", udp, "--write", "fifo"]);
    let output = ended(capture.stderr(Stdio::piped()).spawn().unwrap());
    assert_code(&output, 1);
    assert_says(&said(&output), &["cannot write fifo", "nobody reads it"]);
}

/// Whatever comes, and whoever does not read.
#[test]
fn a_capture_into_a_pipe_that_nobody_reads_ends_when_it_is_stopped_and_says_what_is_cut() {
    let bench = Bench::new();
    let frames: Vec<_> = (0..100).map(|number| frame(number, 1_000)).collect();
    written(&bench, &frames);
    let [a, b] = addresses();
    let [near, far] = [format!("udp:{a}-{b}"), format!("udp:{b}-{a}")];
    let mut capture = bench.command();
    capture.args(["net", "capture", &near, "--write", "-"]);
    capture.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut capture = capture.spawn().unwrap();
    let unread = capture.stdout.take().unwrap();
    let (mut before, mut stands) = (0, 0);
    // Of its pages the last bytes may be left.
    eventually("the pipe is full", || {
        bench.run(&["net", "replay", "in.pcap", &far, "--as-fast"]);
        let now = rustix::io::ioctl_fionread(&unread).unwrap();
        let is_same = now > 40_000 && now == before;
        (before, stands) = (now, if is_same { stands + 1 } else { 0 });
        stands >= 3
    });
    kill_process(Pid::from_child(&capture), Signal::INT).unwrap();
    eventually("it ends", || capture.try_wait().unwrap().is_some());
    let output = capture.wait_with_output().unwrap();
    assert_code(&output, 1);
    assert_says(&said(&output), &["missed", "took no more", "that waited"]);
}

#[test]
fn a_replay_whose_interface_is_deleted_says_which_frames_were_not_sent() {
    in_namespace(|| {
        pair("near", "far");
        let bench = Bench::new();
        written_far_apart(&bench);
        let first = capturing(&bench, &["far", "udp", "--count", "1"], "first.pcapng");
        let mut replay = bench.command();
        let replay = replay.args(["net", "replay", "in.pcap", "near"]);
        let replay = replay.stderr(Stdio::piped()).spawn().unwrap();
        assert_code(&first.wait_with_output().unwrap(), 0);
        assert!(ip("link del near"));
        let output = replay.wait_with_output().unwrap();
        assert_code(&output, 1);
        let words = ["the interface was deleted; from frame 2 on the file was not sent"];
        assert_says(&said(&output), &words);
    });
}

/// Before anything comes, behind the header, and when all that came was sent.
#[test]
fn a_replay_that_waits_for_more_of_a_pipe_ends_when_it_is_stopped() {
    let bench = Bench::new();
    fifo(&bench);
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let name = format!("udp:127.0.0.1:0-{}", far.local_addr().unwrap());
    let file = pcap(&[frame(1, 40), frame(2, 40)], 1);
    let nothing = ": interrupted by SIGTERM while it was read";
    for (from, bytes, sent, words) in [
        ("fifo", 0, 0, ["fifo", nothing]),
        ("-", 0, 0, ["standard input", nothing]),
        (
            "-",
            24,
            0,
            ["0 of the first 0 frames", "interrupted by SIGTERM"],
        ),
        (
            "-",
            file.len(),
            2,
            ["2 of the first 2 frames", "interrupted by SIGTERM"],
        ),
    ] {
        let mut replay = bench.command();
        replay.args(["net", "replay", from, &name]);
        replay.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut replay = replay.spawn().unwrap();
        let mut input = replay.stdin.take().unwrap();
        input.write_all(&file[..bytes]).unwrap();
        for _ in 0..sent {
            far.recv(&mut [0; 100]).unwrap();
        }
        comes_true(Duration::from_secs(20), || match bytes {
            0 => catches(Signal::TERM, &replay),
            _ => threads_of(replay.id()).len() > 1,
        });
        kill_process(Pid::from_child(&replay), Signal::TERM).unwrap();
        let output = ended(replay);
        assert_code(&output, 1);
        assert_says(&said(&output), &words);
    }
}

fn catches(signal: Signal, child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.split_once("SigCgt:").unwrap().1.lines().next();
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & 1 << (signal.as_raw() - 1) != 0
}
