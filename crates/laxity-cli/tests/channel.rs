//! `laxity channel` and plans of networks: what is told of a recording, of keys and of a description, with which exit code.

mod common;
#[path = "../../laxity-linux/tests/links/namespace.rs"]
#[allow(dead_code, reason = "another test has the rest")]
mod namespace;

use std::os::unix::fs::PermissionsExt as _;

use common::{Bench, assert_code, assert_says, json, said, stdout, unbroken};
use laxity::Span;
use laxity::doctor::rights::skip;
use laxity_lab::scenario::{parse_network, units};
use namespace::packet;
use serde_json::Value;

const CAMERA: &str = "10.0.0.1:1000";
const ROBOT: &str = "10.0.0.2:5004";
const FILTER: [&str; 4] = ["udp", "dst", "port", "5004"];
/// Of a video of 25 frames a second, in nanoseconds.
const PERIOD: u64 = 40_000_000;

/// A file of pcap with nanoseconds: each frame at its time since 1970, of which it has so many bytes at the most.
fn pcap(frames: &[(u64, Vec<u8>)], most: usize) -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    for word in [0, 0, most as u32, 1] {
        file.extend(word.to_le_bytes());
    }
    for (at, frame) in frames {
        let kept = &frame[..frame.len().min(most)];
        let second = 1_700_000_000 + (at / 1_000_000_000) as u32;
        let nanos = (at % 1_000_000_000) as u32;
        for word in [second, nanos, kept.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(kept);
    }
    file
}

/// A packet of RTP: of this source and timestamp, with so many bytes in all.
fn rtp(source: u32, timestamp: u32, bytes: usize) -> Vec<u8> {
    let mut payload = vec![0x80, 96, 0, 0];
    payload.extend(timestamp.to_be_bytes());
    payload.extend(source.to_be_bytes());
    payload.resize(bytes, 7);
    packet(CAMERA, ROBOT, 17, &payload)
}

/// Fifty frames of video, of one packet and then of two and so on up to five, a microsecond apart; each tenth comes with the one behind it.
fn video() -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    for number in 0..50_u64 {
        let late = u64::from(number % 10 == 5);
        for part in 0..=number % 5 {
            let at = (number + late) * PERIOD + part * 1_000 + (1 - late) * 10_000;
            frames.push((at, rtp(9, number as u32 * 3_600, 1_000)));
        }
    }
    frames
}

fn written(bench: &Bench, frames: &[(u64, Vec<u8>)], most: usize) {
    std::fs::write(bench.path("in.pcap"), pcap(frames, most)).unwrap();
}

fn fit(bench: &Bench, arguments: &[&str]) -> std::process::Output {
    bench.run(&[&["channel", "fit", "in.pcap"], arguments].concat())
}

fn fitted(bench: &Bench, arguments: &[&str]) -> Value {
    let output = fit(bench, &[arguments, &["--json=out.json"]].concat());
    assert_code(&output, 0);
    json(bench, "out.json")
}

#[test]
fn the_frames_of_a_video_are_its_messages_by_rtp_and_by_gaps() {
    let bench = Bench::new();
    written(&bench, &video(), 65_535);
    let by_rtp = fitted(&bench, &["--message", "rtp"]);
    let by_gap = fitted(&bench, &["--message", "gap=4us"]);
    for all in [&by_rtp, &by_gap] {
        assert_eq!(all["packets"], 150);
        assert_eq!(
            (&all["messages"], &all["packets_max"]),
            (&50.into(), &5.into())
        );
        assert_eq!(
            (&all["bytes"], &all["largest_bytes"]),
            (&150_000.into(), &5_000.into())
        );
        assert_eq!(all["chosen"], by_rtp["chosen"]);
        // Two of them come within ten microseconds, and no third does.
        let first = &all["pairs"][0];
        assert_eq!(
            (&first["burst"], &first["rate"]["period_ns"]),
            (&1.into(), &10_000.into())
        );
        assert_eq!(all["chosen"]["burst"], 2);
    }
    let by_packet = fitted(&bench, &[]);
    assert_eq!(
        (&by_packet["messages"], &by_packet["packets_max"]),
        (&150.into(), &1.into())
    );
    assert_eq!(by_packet["message"], "packet");
    assert_eq!(
        by_packet["filter"],
        "src host 10.0.0.1 and dst host 10.0.0.2 and udp src port 1000 and udp dst port 5004"
    );
}

/// What is told to people has what a channel needs, and a channel of that covers the recording: its rate is no lower than the exact one.
#[test]
fn the_lines_of_a_channel_are_what_was_found_rounded_up() {
    let bench = Bench::new();
    written(&bench, &video(), 65_535);
    let output = fit(&bench, &["--message", "rtp", "--json=out.json"]);
    assert_code(&output, 0);
    let shown = stdout(&output);
    assert_says(
        &shown,
        &["[channels.NAME]", "max = \"5000 B\"", "burst = 2"],
    );
    let line = shown
        .lines()
        .find_map(|line| line.strip_prefix("rate = "))
        .unwrap();
    let written = units::messages(line.trim_matches('"')).unwrap();
    let all = json(&bench, "out.json");
    let [amount, period] =
        ["messages", "period_ns"].map(|key| all["chosen"]["rate"][key].as_u64().unwrap());
    let exact = laxity_model::channels::fit::Rate::new(amount, Span::from_nanos(period)).unwrap();
    assert!(written >= exact, "{line}: {exact:?}");
    let channel = shown.find("[channels.NAME]").unwrap();
    let said = "# from = \"…\", to = \"…\", within = \"…\": yours to say";
    let lines = shown[channel..].replace("NAME", "video");
    let lines = lines.replace(said, "from = \"robot\"\nto = \"base\"\nwithin = \"40ms\"");
    let hosts = &NETWORK[..NETWORK.find("[channels.").unwrap()];
    let network = parse_network(&format!("{hosts}{lines}"), "network.toml").unwrap();
    let video = &network.channels[0];
    assert_eq!((video.max, video.burst), (5_000, 2));
    let rows = shown.lines().filter(|line| line.contains("Mbit/s"));
    let marked = rows
        .filter(|line| line.trim_start().starts_with('>'))
        .count();
    assert_eq!(marked, 1, "{shown}");
}

#[test]
fn what_a_recording_has_only_the_beginning_of_counts_as_long_as_it_was() {
    let bench = Bench::new();
    written(&bench, &video(), 64);
    let all = fitted(&bench, &["--message", "rtp"]);
    assert_eq!(
        (&all["messages"], &all["bytes"]),
        (&50.into(), &150_000.into())
    );
}

#[test]
fn a_burst_that_is_asked_for_has_its_rate() {
    let bench = Bench::new();
    written(&bench, &video(), 65_535);
    let all = fitted(&bench, &["--message", "rtp", "--burst", "7"]);
    assert_eq!(all["chosen"]["burst"], 7);
    let (late, second) = (&all["chosen"], &all["pairs"][1]);
    assert!(late["early_max_ns"].as_u64() > second["early_max_ns"].as_u64());
}

#[test]
fn of_several_flows_one_has_to_be_named_and_each_is_listed_with_its_filter() {
    let bench = Bench::new();
    let mut frames = video();
    for number in 0..30 {
        let other = packet(ROBOT, CAMERA, 17, &[number; 10]);
        frames.push((u64::from(number) * 10_000_000, other));
    }
    written(&bench, &frames, 65_535);
    let output = fit(&bench, &[]);
    assert_code(&output, 64);
    let told = said(&output);
    assert_says(&told, &["2 flows", "150 packets", "30 packets"]);
    // Each is a filter that finds it.
    let filters = told
        .lines()
        .filter_map(|line| line.trim().split_once("   #"));
    let filters: Vec<&str> = filters.map(|(filter, _)| filter).collect();
    assert_eq!(filters.len(), 2, "{told}");
    for (filter, packets) in filters.into_iter().zip([150, 30]) {
        let words: Vec<&str> = filter.split(' ').collect();
        assert_eq!(fitted(&bench, &words)["packets"], packets, "{filter}");
    }
    // Whoever takes both for one is told.
    let output = fit(&bench, &["udp"]);
    assert_code(&output, 0);
    assert_says(
        &unbroken(&stdout(&output)),
        &["packets of 2 flows, which are taken as one"],
    );
}

#[test]
fn pieces_of_fragmented_packets_that_a_filter_of_ports_does_not_find_are_told() {
    let bench = Bench::new();
    let mut frames = video();
    let mut piece = packet(CAMERA, ROBOT, 17, &[0; 24]);
    // More pieces follow.
    piece[20] = 0x20;
    frames.push((5, piece));
    written(&bench, &frames, 65_535);
    let output = fit(&bench, &FILTER);
    assert_code(&output, 0);
    assert_says(
        &unbroken(&stdout(&output)),
        &["pieces of fragmented packets that were passed over: 1"],
    );
    let all = fitted(&bench, &["udp", "and", "src", "host", "10.0.0.1"]);
    assert_eq!(
        (&all["packets"], &all["fragments_passed_over"]),
        (&151.into(), &0.into())
    );
}

#[test]
fn what_is_wrong_is_said_with_its_exit_code() {
    let bench = Bench::new();
    written(&bench, &video(), 65_535);
    let refused = |code: i32, words: &[&str], arguments: &[&str]| {
        let output = fit(&bench, arguments);
        assert_code(&output, code);
        assert_says(&said(&output), words);
    };
    refused(64, &["none of its 150 packets matches"], &["tcp"]);
    refused(64, &["column 1"], &["not", "udp"]);
    refused(64, &["`2` has no unit"], &["--message", "gap=2"]);
    refused(64, &["such as `gap=2ms`"], &["--message", "frames"]);
    refused(64, &["same file as the input"], &["--json=in.pcap"]);
    refused(1, &["one message"], &["--message", "gap=10s"]);
    let both = [
        (0, rtp(1, 1, 100)),
        (0, rtp(1, 2, 100)),
        (9, rtp(1, 3, 100)),
    ];
    written(&bench, &both, 65_535);
    refused(
        64,
        &["2 messages come at one instant", "write 2"],
        &["--burst", "1"],
    );
    written(&bench, &[(0, packet(CAMERA, ROBOT, 17, &[0; 20]))], 65_535);
    refused(64, &["packet 1 is not one of RTP"], &["--message", "rtp"]);
    refused(1, &["one message"], &[]);
    bench.write("in.pcap", "no capture at all, though long enough");
    refused(1, &["in.pcap: ", "pcap or pcapng"], &[]);
    let output = bench.run(&["channel", "fit", "none.pcap"]);
    assert_code(&output, 1);
    assert_says(&said(&output), &["none.pcap"]);
    assert_eq!(bench.files(), ["in.pcap"]);
}

/// Of a protocol that has none.
#[test]
fn packets_without_ports_are_of_no_flow_and_are_found_by_a_filter() {
    let bench = Bench::new();
    let icmp = |number: u64| (number * PERIOD, packet(CAMERA, ROBOT, 1, &[7; 40]));
    let mut frames: Vec<_> = (0..9).map(icmp).collect();
    written(&bench, &frames, 65_535);
    let output = fit(&bench, &[]);
    assert_code(&output, 64);
    assert_says(&said(&output), &["no ports", "such as `host 10.0.0.1`"]);
    assert_eq!(fitted(&bench, &["icmp"])["packets"], 9);
    frames.extend(video());
    written(&bench, &frames, 65_535);
    let output = fit(&bench, &[]);
    assert_code(&output, 64);
    assert_says(&said(&output), &["one flow, and others", "150 packets"]);
}

/// As `tcpdump` writes it.
#[test]
fn what_tcpdump_writes_again_is_fitted_the_same() {
    let bench = Bench::new();
    written(&bench, &video(), 65_535);
    let mut tcpdump = std::process::Command::new("tcpdump");
    tcpdump.args(["-r", "in.pcap", "-w", "again.pcap", "--nano"]);
    tcpdump
        .current_dir(bench.path(""))
        .stderr(std::process::Stdio::null());
    if !tcpdump.status().is_ok_and(|status| status.success()) {
        return skip("there is no tcpdump here");
    }
    let ours = fitted(&bench, &["--message", "rtp"]);
    std::fs::rename(bench.path("again.pcap"), bench.path("in.pcap")).unwrap();
    assert_eq!(fitted(&bench, &["--message", "rtp"]), ours);
}

const NETWORK: &str = include_str!("../../../docs/network.toml");

/// The command, without what was measured or made by whoever runs this.
fn alone(bench: &Bench, arguments: &[&str]) -> std::process::Output {
    let mut command = bench.command();
    command.env("XDG_CONFIG_HOME", bench.path("config"));
    command.args(arguments).output().expect("laxity starts")
}

#[test]
fn a_plan_of_a_network_says_what_each_hop_grants_with_its_exit_code() {
    let bench = Bench::new();
    bench.write("network.toml", NETWORK);
    let output = alone(&bench, &["plan", "network.toml", "--json=plan.json"]);
    assert_code(&output, 0);
    assert_says(
        &stdout(&output),
        &[
            "(2 channels): admitted",
            "camera",
            "backbone",
            "<= 33 ms",
            "enforced",
        ],
    );
    let plan = json(&bench, "plan.json");
    let hops = &plan["channels"][1]["hops"];
    assert_eq!(
        (&hops[0]["link"], &hops[2]["link"]),
        (&"mast".into(), &Value::Null)
    );
    assert!(hops[2]["processor_ns"].is_u64());
    let hurried = NETWORK.replace("within = \"33ms\"", "within = \"2ms\"");
    bench.write("network.toml", &hurried);
    let output = alone(&bench, &["plan", "network.toml"]);
    assert_code(&output, 3);
    assert_says(
        &stdout(&output),
        &[
            "`camera` is refused by the link `mast` at `robot`",
            "would be granted: within = ",
        ],
    );
    bench.write("network.toml", &NETWORK.replace("33ms", "33"));
    let output = alone(&bench, &["plan", "network.toml"]);
    assert_code(&output, 64);
    assert_says(&said(&output), &["network.toml:", "has no unit", "1 error"]);
    let output = alone(&bench, &["plan", "network.toml", "--on", "twin"]);
    assert_code(&output, 64);
    assert_says(&said(&output), &["--on is not for networks"]);
}

/// As it was measured on another day, when packets were not.
const MEASURED: &str = include_str!("../../../docs/results/epyc-2-processors/machine.toml");

/// What a machine file says is charged, and told as calibrated; all else is told as assumed.
#[test]
fn what_processors_are_charged_is_calibrated_or_said_to_be_assumed() {
    let bench = Bench::new();
    bench.write("network.toml", NETWORK);
    bench.write("old.toml", MEASURED);
    let packets = "[packets.udp]\nwake = \"9us\"\nreceive = \"2us\"\nreceive_byte_ps = 70\nsend = \"3us\"\nsend_byte_ps = 50\n";
    bench.write("new.toml", &format!("{MEASURED}\n{packets}"));
    let costs = |machine: &str| {
        let arguments = [
            "plan",
            "network.toml",
            "--machine",
            machine,
            "--json=plan.json",
        ];
        assert_code(&alone(&bench, &arguments), 0);
        let plan = json(&bench, "plan.json");
        let costs = plan["costs"].as_array().expect("a list").clone();
        let cost = |of: &str| {
            let mut all = costs.iter();
            let found = all.find(|cost| cost["of"].as_str().is_some_and(|all| all.starts_with(of)));
            let found = found.unwrap_or_else(|| panic!("{of}: {costs:?}"));
            let cost = [&found["cost_ns"], &found["byte_ps"]].map(Value::as_u64);
            (
                found["calibrated"] == true,
                cost[0].or(cost[1]).expect("a number"),
            )
        };
        let kinds = [
            "a packet",
            "a byte (received",
            "a look for",
            "a wake-up",
            "a message",
            "a byte (opened",
        ];
        kinds.map(cost)
    };
    let none = costs("none");
    assert!(none.iter().all(|(calibrated, _)| !calibrated), "{none:?}");
    let [_, _, _, wake_up, ..] = costs("old.toml");
    assert_eq!(wake_up, (true, 98_935));
    let [packet, byte, look, ..] = costs("new.toml");
    assert_eq!(
        (packet, byte, look),
        ((true, 5_000), (true, 120), (true, 9_000))
    );
    assert_eq!(costs("old.toml")[..3], none[..3]);
    assert_eq!(costs("new.toml")[4..], none[4..]);
    let shown = alone(&bench, &["plan", "network.toml", "--machine", "new.toml"]);
    let shown = unbroken(&stdout(&shown));
    assert_says(
        &shown,
        &[
            "calibrated (laxity 0.1.0 calibrate on 2026-11-20",
            "assumed (`laxity calibrate` does not measure it): a message",
            "is of one machine, and is taken for every host",
        ],
    );
    let without = unbroken(&stdout(&alone(&bench, &["plan", "network.toml"])));
    assert_says(&without, &["assumed (nobody measured it here"]);
    assert!(!without.contains("calibrated ("), "{without}");
}

#[test]
fn a_key_is_made_once_and_shown_as_a_network_has_it() {
    let bench = Bench::new();
    let made = alone(&bench, &["channel", "key"]);
    assert_code(&made, 0);
    assert_says(&said(&made), &["config/laxity/channel.key"]);
    let key = stdout(&made);
    // As it is, below a host's name.
    let old = NETWORK
        .lines()
        .find(|line| line.starts_with("key = "))
        .expect("a key");
    let network = NETWORK.replace(old, key.trim_end());
    assert!(parse_network(&network, "network.toml").is_ok(), "{network}");
    let shown = alone(&bench, &["channel", "key", "--show"]);
    assert_code(&shown, 0);
    assert_eq!((stdout(&shown), said(&shown)), (key.clone(), String::new()));
    let again = alone(&bench, &["channel", "key"]);
    assert_code(&again, 1);
    assert_says(
        &said(&again),
        &["there already", "never written over", "--show"],
    );
    let other = alone(&bench, &["channel", "key", "other.key"]);
    assert_code(&other, 0);
    assert_ne!(stdout(&other), key);
    let path = bench.path("other.key");
    let mode =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let open = alone(&bench, &["channel", "key", "--show", "other.key"]);
    assert_code(&open, 1);
    assert_says(
        &said(&open),
        &["may be read or written by others (mode 644)", "chmod 600"],
    );
    assert_eq!(stdout(&open), "");
    mode(0o600);
    bench.write("other.key", "no key");
    let none = alone(&bench, &["channel", "key", "--show", "other.key"]);
    assert_code(&none, 1);
    assert_says(
        &said(&none),
        &[
            "other.key is no file of a private key",
            "64 hexadecimal digits",
        ],
    );
    let missing = alone(&bench, &["channel", "key", "--show", "missing.key"]);
    assert_code(&missing, 1);
    assert_says(
        &said(&missing),
        &["missing.key", "`laxity channel key` makes one"],
    );
    let nowhere = alone(&bench, &["channel", "key", "nowhere/other.key"]);
    assert_code(&nowhere, 1);
    assert_says(&said(&nowhere), &["its directory must exist"]);
    let stream = alone(&bench, &["channel", "key", "-"]);
    assert_code(&stream, 64);
    assert_says(&said(&stream), &["not in a stream"]);
}
