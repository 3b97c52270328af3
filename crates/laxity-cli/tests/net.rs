//! `laxity net`, over UDP, for which nobody needs a right, and in network namespaces that the tests make.

mod common;
#[path = "net/cut.rs"]
mod cut;
#[path = "net/host.rs"]
mod host;
#[path = "../../laxity-linux/tests/links/namespace.rs"]
#[allow(dead_code, reason = "another test has the rest")]
mod namespace;

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::machine::{Scheduling, threads_of};
use common::{Bench, assert_code, assert_says, eventually, said, stdout};
use laxity::doctor::rights::{lacks, skip, turn};
use namespace::{in_own, ip, packet, pair, shown};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Runs this in a network namespace of its own; skipped where none can be had.
fn in_namespace(run: impl FnOnce() + Send) {
    let _turn = turn();
    if in_own(run).is_none() {
        lacks("no network namespace of one's own with interfaces in it");
    }
}

/// An Ethernet frame with a UDP datagram of so many bytes.
fn frame(number: u8, payload: usize) -> Vec<u8> {
    packet("10.0.0.1:1000", "10.0.0.2:2000", 17, &vec![number; payload])
}

/// A file of pcap with a frame each millisecond.
fn pcap(frames: &[Vec<u8>], link_type: u32) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, 65_535, link_type] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in (0_u32..).zip(frames) {
        let length = frame.len() as u32;
        for word in [1_700_000_000, number * 1_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn written(bench: &Bench, frames: &[Vec<u8>]) {
    std::fs::write(bench.path("in.pcap"), pcap(frames, 1)).unwrap();
}

/// A capture that runs, and records by now.
fn capturing(bench: &Bench, arguments: &[&str], file: &str) -> Child {
    let mut command = bench.command();
    command.args(["net", "capture", "--write", file]);
    command.args(arguments).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    has_begun(&bench.path(file));
    child
}

fn has_begun(file: &Path) {
    eventually("it records", || {
        std::fs::metadata(file).is_ok_and(|there| there.len() > 0)
    });
}

fn interrupted(child: Child) -> Output {
    let number = Pid::from_child(&child);
    kill_process(number, Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

/// What `tcpdump` reads of a file: each packet's fields and bytes.
fn read(bench: &Bench, file: &str) -> String {
    let mut command = Command::new("tcpdump");
    command.args(["-t", "-n", "-e", "-vv", "-xx", "-r"]);
    let output = command.arg(bench.path(file)).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    stdout(&output)
}

fn has_tcpdump() -> bool {
    let found = Command::new("tcpdump").arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        skip("there is no tcpdump here");
    }
    is_there
}

#[test]
fn tcpdump_and_capture_agree_on_each_packet_and_a_replay_is_byte_for_byte() {
    if !has_tcpdump() {
        return;
    }
    in_namespace(|| {
        pair("near", "far");
        let bench = Bench::new();
        let frames: Vec<_> = (0..100)
            .map(|n| frame(n, 18 + 14 * usize::from(n)))
            .collect();
        written(&bench, &frames);
        let mut tcpdump = Command::new("tcpdump");
        tcpdump.args(["-i", "near", "-U", "-w", "dumped.pcap", "-c", "100", "udp"]);
        tcpdump.current_dir(bench.path("")).stderr(Stdio::null());
        let mut tcpdump = tcpdump.spawn().unwrap();
        has_begun(&bench.path("dumped.pcap"));
        let capture = capturing(&bench, &["near", "udp", "--count", "100"], "ours.pcapng");
        assert_code(&bench.run(&["net", "replay", "in.pcap", "far"]), 0);
        let output = capture.wait_with_output().unwrap();
        assert_code(&output, 0);
        assert_says(
            &said(&output),
            &["100 packets in ", ", written to ours.pcapng; 0 missed"],
        );
        assert!(tcpdump.wait().unwrap().success());
        let original = read(&bench, "in.pcap");
        assert_eq!(read(&bench, "ours.pcapng"), original);
        assert_eq!(read(&bench, "dumped.pcap"), original);
        // What tcpdump recorded, and what we did, arrive as they were.
        for (file, again) in [
            ("dumped.pcap", "again.pcapng"),
            ("ours.pcapng", "third.pcapng"),
        ] {
            let capture = capturing(&bench, &["near", "--count", "100"], again);
            assert_code(
                &bench.run(&["net", "replay", file, "xdp:far", "--as-fast"]),
                0,
            );
            assert_code(&capture.wait_with_output().unwrap(), 0);
            assert_eq!(read(&bench, again), original);
        }
    });
}

#[test]
fn who_is_killed_leaves_the_interface_as_it_was() {
    in_namespace(|| {
        pair("near", "far");
        let bench = Bench::new();
        for _ in 0..3 {
            let mut capture = capturing(&bench, &["xdp:near"], "killed.pcapng");
            assert!(shown("near").contains("xdp"), "{}", shown("near"));
            capture.kill().unwrap();
            capture.wait().unwrap();
            // At once: that its queue is still taken is waited out.
            let output = bench.run(&["net", "show", "xdp:near", "--for", "1ms"]);
            assert_code(&output, 0);
            std::fs::remove_file(bench.path("killed.pcapng")).unwrap();
        }
        assert!(!shown("near").contains("xdp"), "{}", shown("near"));
    });
}

/// Whichever way it was opened, and by which command: the interface is as it was, one that was made is gone, and the next command has it at once.
#[test]
fn whatever_opened_an_interface_and_is_killed_leaves_nothing_of_it() {
    in_namespace(|| {
        pair("near", "far");
        let before = shown("near");
        let bench = Bench::new();
        let frames: Vec<_> = (0..2_000).map(|number| frame(number as u8, 100)).collect();
        written(&bench, &frames);
        for name in ["packet:near", "xdp:near", "tap:laxity0"] {
            let commands: [&[&str]; 3] = [
                &["capture", name, "--write", "killed.pcapng"],
                &["show", name, "--for", "60s"],
                &["replay", "in.pcap", name, "--speed", "0.1"],
            ];
            for command in commands {
                let mut child = bench.command();
                let child = child.arg("net").args(command).stderr(Stdio::null());
                let mut child = child.stdout(Stdio::null()).spawn().unwrap();
                let mut ended = None;
                eventually("it is open", || {
                    ended = child.try_wait().unwrap();
                    let threads = threads_of(child.id());
                    let is_driver = |thread: &Scheduling| thread.name == name;
                    ended.is_some() || threads.iter().any(is_driver)
                });
                assert_eq!(ended, None, "{command:?}");
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        assert_eq!(shown("laxity0"), "");
        assert_eq!(shown("near"), before);
    });
}

#[test]
fn an_interface_that_is_deleted_ends_a_capture_which_keeps_what_it_has() {
    in_namespace(|| {
        pair("near", "far");
        let bench = Bench::new();
        written(&bench, &[frame(1, 100)]);
        let capture = capturing(&bench, &["packet:near", "udp"], "cut.pcapng");
        let empty = std::fs::metadata(bench.path("cut.pcapng")).unwrap().len();
        assert_code(&bench.run(&["net", "replay", "in.pcap", "far"]), 0);
        eventually("it is written", || {
            std::fs::metadata(bench.path("cut.pcapng")).unwrap().len() > empty
        });
        assert!(ip("link del near"));
        let output = capture.wait_with_output().unwrap();
        assert_code(&output, 1);
        assert_says(
            &said(&output),
            &["1 packet in ", "the interface was deleted"],
        );
        if has_tcpdump() {
            assert_eq!(read(&bench, "cut.pcapng"), read(&bench, "in.pcap"));
        }
    });
}

/// Two addresses of the loop that nobody has.
fn addresses() -> [String; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().to_string())
}

#[test]
fn without_rights_packets_go_through_udp_and_counters_add_up() {
    let bench = Bench::new();
    let frames: Vec<_> = (0..20).map(|n| frame(n, 40)).collect();
    written(&bench, &frames);
    let [a, b] = addresses();
    let [near, far] = [format!("udp:{a}-{b}"), format!("udp:{b}-{a}")];
    let mut show = bench.command();
    show.args(["net", "show", &near, "--for", "60s", "--json=shown.json"]);
    let show = show
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut replayed = 0;
    // Until the other end is there to hear it nobody refuses what is sent, or the loop does.
    eventually("it is there", || {
        let output = bench.run(&[
            "net",
            "replay",
            "in.pcap",
            &far,
            "--speed",
            "10",
            "--json=sent.json",
        ]);
        let sent: Value = serde_json::from_slice(&bench.read("sent.json")).unwrap();
        replayed += 1;
        assert_eq!(sent["frames"], 20);
        assert_eq!(sent["interrupted"], Value::Null);
        output.status.success() && replayed >= 3
    });
    let output = interrupted(show);
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["came", "the kernel's", "nobody's "]);
    let shown: Value = serde_json::from_slice(&bench.read("shown.json")).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let sum = |value: &Value| value.as_object().unwrap().values().map(number).sum::<u64>();
    let [came, kernels] = ["came", "kernels"].map(|key| number(&shown[key]));
    let delivered: u64 = ["swapped", "copied", "peeked"]
        .map(|key| number(&shown[key]))
        .iter()
        .sum();
    assert_eq!(
        came,
        delivered + kernels + sum(&shown["dropped"]) + sum(&shown["lost_below"])
    );
    assert!(came >= 20, "{shown}");
}

#[test]
fn a_capture_that_is_stopped_ends_well_and_says_whose_each_packet_was() {
    let bench = Bench::new();
    written(&bench, &[frame(1, 40), frame(2, 40)]);
    let [a, b] = addresses();
    let [near, far] = [format!("udp:{a}-{b}"), format!("udp:{b}-{a}")];
    let capture = capturing(&bench, &[&near, "udp", "port", "2000"], "ours.pcapng");
    let empty = bench.read("ours.pcapng").len();
    assert_code(&bench.run(&["net", "replay", "in.pcap", &far]), 0);
    eventually("it is written", || {
        bench.read("ours.pcapng").len() > empty + 200
    });
    let output = interrupted(capture);
    assert_code(&output, 0);
    assert_says(&said(&output), &["2 packets in "]);
    let file = bench.read("ours.pcapng");
    let has = |words: &[u8]| file.windows(words.len()).any(|window| window == words);
    assert!(has(b"nobody's") && has(b"udp port 2000"));
}

/// However long it takes to open one.
#[test]
fn what_lasts_so_long_counts_from_when_packets_can_be_seen() {
    let bench = Bench::new();
    let udp = "udp:127.0.0.1:0-127.0.0.1:9";
    let lasts = ["--for", "1ms", "--quiet"];
    let show = ["net", "show", udp, "--json=shown.json"];
    assert_code(&bench.run(&[&show[..], &lasts].concat()), 0);
    let shown: Value = serde_json::from_slice(&bench.read("shown.json")).unwrap();
    assert!(shown["lasted_ns"].as_u64().unwrap() >= 1_000_000, "{shown}");
    let capture = ["net", "capture", udp, "--write", "x.pcapng", "--for", "1ms"];
    let output = bench.run(&capture);
    assert_code(&output, 0);
    let told = said(&output);
    let lasted = told.split_once("0 packets in ").unwrap().1;
    let lasted = laxity_lab::scenario::units::span(lasted.split_once(',').unwrap().0);
    assert!(lasted.unwrap() >= laxity::Span::from_millis(1), "{told}");
}

/// Two frames, an hour from each other.
fn written_far_apart(bench: &Bench) {
    let mut file = pcap(&[frame(1, 40), frame(2, 40)], 1);
    let second = 24 + 16 + frame(1, 40).len();
    file[second..second + 4].copy_from_slice(&1_700_003_600_u32.to_le_bytes());
    std::fs::write(bench.path("in.pcap"), file).unwrap();
}

#[test]
fn a_replay_that_is_stopped_sends_nothing_before_its_time() {
    let bench = Bench::new();
    written_far_apart(&bench);
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let name = format!("udp:127.0.0.1:0-{}", far.local_addr().unwrap());
    let mut replay = bench.command();
    replay.args(["net", "replay", "in.pcap", &name, "--json=sent.json"]);
    let replay = replay.stderr(Stdio::piped()).spawn().unwrap();
    let mut bytes = [0; 100];
    far.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(far.recv(&mut bytes).unwrap(), frame(1, 40).len());
    let output = interrupted(replay);
    assert_code(&output, 1);
    let words = [
        "1 of the first 1 frame sent",
        "0 late",
        "interrupted by SIGINT",
    ];
    assert_says(&said(&output), &words);
    let sent: Value = serde_json::from_slice(&bench.read("sent.json")).unwrap();
    assert_eq!(sent["interrupted"], "SIGINT");
    far.set_nonblocking(true).unwrap();
    assert!(far.recv(&mut bytes).is_err(), "the second was not due");
}

#[test]
fn frames_that_do_not_leave_are_told_with_the_cause() {
    in_namespace(|| {
        pair("near", "far");
        assert!(ip("link set near down"));
        let bench = Bench::new();
        written(&bench, &[frame(1, 40), frame(2, 40)]);
        let output = bench.run(&["net", "replay", "in.pcap", "near"]);
        assert_code(&output, 1);
        assert_says(&said(&output), &["2 frames not sent: 2 ", "is down"]);
    });
}

#[test]
fn a_capture_that_cannot_be_written_says_what_the_system_says() {
    let bench = Bench::new();
    let full = ["--write", "/dev/full", "--for", "60s"];
    let udp = ["net", "capture", "udp:127.0.0.1:0-127.0.0.1:9"];
    let output = bench.run(&[&udp[..], &full].concat());
    assert_code(&output, 1);
    assert_says(&said(&output), &["/dev/full", "No space left"]);
    assert!(!said(&output).contains("reading"), "{}", said(&output));
}

#[test]
fn what_is_wrong_is_said_with_its_exit_code() {
    let bench = Bench::new();
    written(&bench, &[frame(1, 3_000)]);
    let refused = |code: i32, words: &[&str], arguments: &[&str]| {
        let output = bench.run(&[&["net"], arguments].concat());
        assert_code(&output, code);
        assert_says(&said(&output), words);
    };
    let udp = "udp:127.0.0.1:0-127.0.0.1:9";
    let filter = ["capture", udp, "not", "udp", "--write", "x"];
    refused(64, &["column 1"], &filter);
    refused(64, &["remedy", "packet:NAME"], &["show", "a:b:c"]);
    refused(64, &["no `/`, `:`, `%`"], &["show", "tap:%d"]);
    let mixed = "udp:127.0.0.1:47102-[::1]:47103";
    refused(64, &["both addresses are of IPv4"], &["show", mixed]);
    refused(64, &["factor"], &["replay", "in.pcap", udp, "--speed", "0"]);
    let too_long = ["1 frame not sent: 1 too long"];
    refused(1, &too_long, &["replay", "in.pcap", udp]);
    written(&bench, &[vec![0; 5], Vec::new(), frame(1, 3_000)]);
    let each = [
        "3 frames not sent: 1 too long for the interface, or cut in the file; ",
        "2 refused, the last: a frame of 0 bytes",
    ];
    refused(1, &each, &["replay", "in.pcap", udp]);
    refused(1, &["none.pcap"], &["replay", "none.pcap", udp]);
    bench.write("text.pcap", "no capture at all, though long enough");
    refused(1, &["pcap or pcapng"], &["replay", "text.pcap", udp]);
    std::fs::write(bench.path("other.pcap"), pcap(&[vec![0; 20]], 101)).unwrap();
    refused(1, &["ETHERNET"], &["replay", "other.pcap", udp]);
    // A packet in a block of before 2009.
    let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    let packet = [2, 32, 0, 0, 0, 0, 0, 32].map(u32::to_le_bytes).concat();
    let old = [section.map(u32::to_le_bytes).concat(), packet].concat();
    std::fs::write(bench.path("old.pcapng"), old).unwrap();
    let output = bench.run(&["net", "replay", "old.pcapng", udp]);
    assert_code(&output, 1);
    let told = said(&output);
    assert!(
        told.contains("obsolete") && !told.contains("sent"),
        "{told}"
    );
    let files = ["in.pcap", "old.pcapng", "other.pcap", "text.pcap"];
    assert_eq!(bench.files(), files, "nothing was begun");
    let programs = Bench::new();
    if let Some(mut command) = bench.command_without_rights(&programs) {
        let shown = ["net", "show", udp, "--for", "1ms"];
        let output = command.args(shown).output().unwrap();
        assert_code(&output, 0);
        assert_says(&stdout(&output), &["the driver is unenforced: "]);
    }
    if let Some(mut command) = bench.command_without_rights(&programs) {
        let output = command.args(["net", "show", "eth0"]).output().unwrap();
        assert_code(&output, 4);
        assert_says(&said(&output), &["CAP_NET_RAW", "remedy"]);
    }
    if let Some(mut command) = bench.command_without_rights(&programs) {
        let output = command.args(["net", "show"]).output().unwrap();
        let shown = stdout(&output);
        let row = shown.lines().find(|line| line.starts_with("tap"));
        assert!(!row.unwrap_or_default().contains("ok"), "{shown}");
    }
}

#[test]
fn of_an_interface_that_is_down_that_is_said() {
    in_namespace(|| {
        pair("near", "far");
        let bench = Bench::new();
        for (state, is_down) in [("up", false), ("down", true)] {
            assert!(ip(&format!("link set near {state}")));
            let lasts = ["near", "--for", "1ms"];
            let json = ["--json=shown.json"];
            let output = bench.run(&[&["net", "show"], &lasts[..], &json].concat());
            assert_code(&output, 0);
            assert_eq!(stdout(&output).contains("is down"), is_down);
            let shown: Value = serde_json::from_slice(&bench.read("shown.json")).unwrap();
            assert_eq!(shown["state"], state, "{shown}");
            let capture = ["net", "capture", "--write", "x.pcapng"];
            let output = bench.run(&[&capture, &lasts[..]].concat());
            assert_code(&output, 0);
            assert_eq!(said(&output).contains("is down"), is_down);
        }
    });
}

/// In a network namespace whose `/sys` is still another's, too.
#[test]
fn interfaces_are_shown_of_the_network_namespace_that_this_is() {
    in_namespace(|| {
        pair("near", "far");
        assert!(ip("link set far mtu 1234"));
        let bench = Bench::new();
        let output = bench.run(&["net", "show"]);
        assert_code(&output, 0);
        let shown = stdout(&output);
        let far = shown.lines().find(|line| line.starts_with("far "));
        let far = far.unwrap_or_default();
        assert!(far.contains("up ") && far.contains("MTU 1234"), "{shown}");
        assert_says(&shown, &["through ", "checksums"]);
    });
}

#[test]
fn the_ways_that_there_are_are_shown_with_what_each_lacks() {
    let bench = Bench::new();
    let output = bench.run(&["net", "show"]);
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["lo ", "packet-sockets", "xdp", "tap"]);
    let output = bench.run(&["net", "show", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["ways"].as_array().unwrap().len(), 4);
    let mut names = all["interfaces"].as_array().unwrap().iter();
    assert!(names.any(|there| there["name"] == "lo"), "{all}");
}
