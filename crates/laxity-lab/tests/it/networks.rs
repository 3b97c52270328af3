//! Networks of scenarios in the twin: same seed, same bytes; and what is judged of flows is what their packets did.

use laxity_lab::evidence::results::RunResults;
use laxity_lab::report::page;
use laxity_lab::report::run::report;
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::Length;
use laxity_lab::scenario::kinds::{
    ARRIVAL_TO_THREAD, BYTES_RECEIVED, FRAME_INTERVAL, PACKETS_IN_EXCESS, PACKETS_LATE,
    PACKETS_LOST, key,
};
use laxity_lab::scenario::parse;
use laxity_model::verify::contract::Outcome;

/// Two seconds of video beside so many connections, with this client of the video.
fn run(connections: u32, viewer: &str, seed: u64) -> RunResults {
    run_over("", connections, viewer, seed)
}

/// The same, over such a wire.
fn run_over(wire: &str, connections: u32, viewer: &str, seed: u64) -> RunResults {
    run_text(&scenario(wire, connections, viewer), seed)
}

fn scenario(wire: &str, connections: u32, viewer: &str) -> String {
    format!(
        r#"
[quick]
idle = "2s"
[interfaces.lan]
{wire}
[flows.video]
kind = "video"
period = "40ms"
[flows.ftp]
kind = "bulk"
count = {connections}
pause = "20ms"
[clients.viewer]
interface = "lan"
flows = ["video"]
{viewer}
[clients.transfers]
interface = "lan"
flows = ["ftp"]
placement = "thread 8"
[contracts.whole]
kind = "video"
limits = [{{ quantity = "packets_lost", at_most = 0 }}]
[variants.one]
on = "twin"
clients = ["viewer", "transfers"]
contracts = ["whole"]
"#
    )
}

fn run_text(text: &str, seed: u64) -> RunResults {
    let mut resolved = parse(text, "x.toml")
        .expect("a scenario")
        .resolve(Length::Quick);
    resolved.seed = seed;
    let on = On::Twin { threads: 1 };
    let finished = runner::run(&resolved, on, Vec::new(), &mut Silent);
    finished.expect("it runs").results
}

/// The largest that was seen of a flow.
fn largest(
    results: &RunResults,
    flow: &str,
    what: laxity_model::verify::contract::Quantity,
) -> u64 {
    let variant = results.variant("one").expect("it was run");
    let mut subjects = variant.subjects.iter();
    let subject = subjects
        .find(|subject| subject.name == flow)
        .expect("a flow");
    subject.quantities[&key(what)]
        .max
        .expect("something was seen")
}

#[test]
fn equal_runs_of_a_network_are_equal() {
    let viewer = "placement = \"thread 24\"";
    let first = run(2, viewer, 1);
    assert_eq!(first.to_json(), run(2, viewer, 1).to_json());
    assert_ne!(first.to_json(), run(2, viewer, 2).to_json());
}

/// The wire is never full: who goes first is as punctual beside two transfers as beside one, and its packets wait for no more than interrupts and one switch.
#[test]
fn a_thread_that_goes_first_has_its_packets_at_once() {
    for connections in [1, 2] {
        let first = run(connections, "placement = \"thread 24\"", 1);
        let equal = run(connections, "placement = \"thread 8\"", 1);
        let [first, equal] = [&first, &equal].map(|run| largest(run, "video", ARRIVAL_TO_THREAD));
        assert!(first < 5_000_000 && equal > 2 * first, "{first} {equal}");
    }
}

/// The first client that demultiplexes late has what is nobody's, and the second one the ports of its connections, however many.
#[test]
fn a_late_client_has_as_many_connections_as_it_likes() {
    let late = "demultiplexing = \"late\"\nthreads = 1";
    let more = "[flows.more]\nkind = \"bulk\"\ncount = 16\npause = \"20ms\"\n[clients.viewer]";
    let both = format!("flows = [\"ftp\", \"more\"]\n{late}");
    let text = scenario("", 16, &format!("placement = \"thread 24\"\n{late}"))
        .replace("[clients.viewer]", more)
        .replace("flows = [\"ftp\"]", &both);
    let results = run_text(&text, 1);
    for flow in ["ftp", "more"] {
        assert!(largest(&results, flow, BYTES_RECEIVED) > 0, "{flow}");
    }
}

/// A viewer that takes longer over a packet than until the next has ever fewer buffers that are empty.
#[test]
fn a_packet_that_finds_no_buffer_is_lost_and_told() {
    let few = "buffers = 1\npacket = \"5ms\"\nplacement = \"thread 24\"";
    let results = run(1, few, 1);
    assert_eq!(results.verdict.result, Some(Outcome::Violated));
    assert_eq!(largest(&results, "video", PACKETS_LOST), 1);
    let all = run(1, "placement = \"thread 24\"", 1);
    assert_eq!(all.verdict.result, Some(Outcome::Met));
    assert_eq!(largest(&all, "video", PACKETS_LOST), 0);
    assert!(largest(&all, "video", FRAME_INTERVAL) < 50_000_000);
}

#[test]
fn intervals_between_frames_are_drawn() {
    let results = run(1, "placement = \"thread 24\"", 1);
    let page = page::render(&report(&results, Vec::new())).expect("a page");
    let drawn = page.matches("video: interval between frames: n").count();
    assert_eq!(drawn, 1, "{page}");
    assert!(!page.contains("ftp: interval"), "{page}");
}

/// Nothing was disturbed in the twin: nothing came.
#[test]
fn of_a_wire_that_loses_everything_nothing_was_observed() {
    let lost = "quantity = \"packets_lost\", at_most = 0";
    let shown = "quantity = \"arrival_to_thread\", statistic = \"maximum\", at_most = \"1s\"";
    let text = scenario("loss = \"100 %\"", 1, "placement = \"thread 24\"");
    let results = run_text(&text.replace(lost, shown), 1);
    let told = &results.variants[0].verdict.reasons;
    let wanted = ["whole: video: arrival to thread: nothing was observed"];
    assert_eq!(told[..], wanted.map(str::to_owned));
}

/// How many packets of the video there were, how many of them were lost, and about how many bytes the transfers brought.
fn became(results: &RunResults) -> (u64, u64, u64) {
    let variant = results.variant("one").expect("it was run");
    let of = |flow: &str, what| {
        let mut subjects = variant.subjects.iter();
        let subject = subjects.find(|subject| subject.name == flow);
        let seen = &subject.expect("a flow").quantities[&key(what)];
        let sum: u64 = seen.buckets.iter().map(|(low, count)| low * count).sum();
        (seen.count, sum)
    };
    let (packets, lost) = of("video", PACKETS_LOST);
    (packets, lost, of("ftp", BYTES_RECEIVED).1)
}

/// What goes wrong on the wire is judged, follows from the seed, and of TCP's bytes none is missing for long.
#[test]
fn what_goes_wrong_on_a_wire_is_seen_and_judged() {
    let viewer = "placement = \"thread 24\"";
    let sound = became(&run_over("", 1, viewer, 1));
    assert_eq!((sound.0, sound.1), (150, 0));
    for (wire, loses) in [
        ("loss = \"5 %\"", true),
        ("corruption = \"5 %\"", true),
        ("duplication = \"20 %\"", false),
        ("reordering = \"20 %\"\nlate_by = \"5ms\"", false),
    ] {
        let results = run_over(wire, 1, viewer, 1);
        let verdict = if loses {
            Outcome::Violated
        } else {
            Outcome::Met
        };
        assert_eq!(results.verdict.result, Some(verdict), "{wire}");
        let (packets, lost, bytes) = became(&results);
        assert!(
            packets > 100 && (lost > 0) == loses,
            "{wire}: {lost} of {packets}"
        );
        assert!(bytes > sound.2 / 20, "{wire}: {bytes} of {}", sound.2);
        assert_eq!(results.to_json(), run_over(wire, 1, viewer, 1).to_json());
    }
}

/// Whoever keeps its thread from the processor until the end has it shown nothing for so long, though nothing is over.
#[test]
fn what_is_still_awaited_at_the_end_convicts() {
    let text = r#"
[quick]
idle = "2s"
[interfaces.lan]
[flows.video]
kind = "video"
period = "40ms"
[clients.viewer]
interface = "lan"
flows = ["video"]
placement = "thread 20"
[tasks.hog]
kind = "periodic"
priority = 31
phase = "1s"
service = "3s"
period = "6s"
[contracts.even]
subject = "video"
limits = [{ quantity = "frame_interval", statistic = "maximum", at_most = "150ms" }]
[contracts.prompt]
subject = "video"
limits = [{ quantity = "arrival_to_thread", statistic = "maximum", at_most = "150ms" }]
[variants.even]
clients = ["viewer"]
tasks = ["hog"]
contracts = ["even"]
[variants.prompt]
clients = ["viewer"]
tasks = ["hog"]
contracts = ["prompt"]
[variants.alone]
clients = ["viewer"]
tasks = []
contracts = ["even", "prompt"]
"#;
    let resolved = parse(text, "x.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    let on = On::Twin { threads: 1 };
    let finished = runner::run(&resolved, on, Vec::new(), &mut Silent);
    let results = finished.expect("it runs").results;
    let of = |name: &str| {
        let variant = results.variant(name).expect("it was run");
        let mut contracts = variant.contracts.iter();
        let is_met = contracts.all(|contract| contract.verdict.result == Outcome::Met);
        (is_met, variant.contracts.len())
    };
    assert_eq!(
        ["even", "prompt", "alone"].map(of),
        [(false, 1), (false, 1), (true, 2)]
    );
}

/// Sixteen packets together, which are one every 10 ms to who states so, beside one every 20 ms of somebody else's, in the middle of them.
fn beside_a_burst(stated: &str) -> RunResults {
    run_text(
        &format!(
            r#"
[quick]
idle = "2s"
[interfaces.lan]
rate = "1 Gbit/s"
interrupt = "5us"
packet = "5us"
[flows.bursts]
kind = "video"
period = "160ms"
packets = 16
[flows.even]
kind = "video"
period = "20ms"
packets = 1
jitter = "10ms"
[clients.early]
interface = "lan"
flows = ["bursts"]
packet = "2ms"
{stated}
[clients.current]
interface = "lan"
flows = ["even"]
packet = "2ms"
placement = "thread 24"
[contracts.in-time]
subject = "bursts"
limits = [{{ quantity = "packets_late", at_most = 0 }}]
[contracts.as-stated]
subject = "bursts"
limits = [{{ quantity = "packets_in_excess", at_most = 0 }}]
[variants.one]
on = "twin"
clients = ["early", "current"]
contracts = ["in-time", "as-stated"]
expect = "any"
"#
        ),
        1,
    )
}

#[test]
fn packets_that_come_before_their_time_do_not_delay_current_ones_of_another_client() {
    let waited = |stated: &str| largest(&beside_a_burst(stated), "even", ARRIVAL_TO_THREAD);
    let stated = "rate = \"1 packets every 10ms\"\nburst = 16\nplacement = \"thread 8\"\n";
    let due = format!("{stated}critical = 24");
    // Behind no more than the one packet that is current.
    assert!(waited(&due) < 2_500_000, "{}", waited(&due));
    // All of them are current as soon as they come, or nothing is stated.
    let all_current = due.replace("every 10ms", "every 1us");
    for together in [&all_current, "placement = \"thread 24\""] {
        assert!(waited(together) > 10_000_000, "{}", waited(together));
    }
}

#[test]
fn what_a_client_states_is_held_against_what_comes_and_when_it_is_done() {
    let of = |delay: &str, burst: u32| {
        let results = beside_a_burst(&format!(
            "rate = \"1 packets every 10ms\"\nburst = {burst}\ndelay = \"{delay}\"\ncritical = 24\nplacement = \"thread 8\""
        ));
        [PACKETS_LATE, PACKETS_IN_EXCESS].map(|what| largest(&results, "bursts", what))
    };
    // Of sixteen at a time one more may come a little sooner than ten milliseconds after the last.
    assert_eq!(of("10ms", 17), [0, 0]);
    assert_eq!(of("1ms", 17), [1, 0]);
    assert_eq!(of("10ms", 15), [0, 1]);
}

/// A flow alone over such a wire, and what its verdict is.
fn alone(wire: &str, flow: &str, client: &str, (idle, seed): (&str, u64)) -> Option<Outcome> {
    let text = format!(
        r#"
[quick]
idle = "{idle}"
[interfaces.lan]
{wire}
[flows.video]
kind = "video"
{flow}
[clients.viewer]
interface = "lan"
flows = ["video"]
placement = "thread 24"
{client}
[contracts.whole]
kind = "video"
limits = [
    {{ quantity = "packets_lost", at_most = 0 }},
    {{ quantity = "frame_interval", statistic = "maximum", at_most = "1s" }},
]
[variants.one]
on = "twin"
clients = ["viewer"]
contracts = ["whole"]
"#
    );
    run_text(&text, seed).verdict.result
}

/// Of three packets one buffer takes the first, and the others are lost, which the next frame tells; of an only frame nobody knows.
#[test]
fn what_a_short_run_loses_is_not_met() {
    let flow = |period| format!("period = \"{period}\"\npackets = 3");
    let of = |period, buffers, idle| alone("", &flow(period), buffers, (idle, 1));
    let one = "buffers = 1\npacket = \"5ms\"";
    assert_eq!(of("10ms", one, "900ms"), Some(Outcome::Violated));
    assert_eq!(of("500ms", one, "400ms"), Some(Outcome::Inconclusive));
    assert_eq!(of("10ms", "", "900ms"), Some(Outcome::Met));
    for seed in 1..=5 {
        let few = "period = \"100ms\"\npackets = 1";
        let lossy = alone("loss = \"30 %\"", few, "", ("1s", seed));
        assert_ne!(lossy, Some(Outcome::Met), "seed {seed}");
    }
}

/// Both ends know each other before the first frame leaves, however long the wire is.
#[test]
fn no_frame_waits_for_an_address() {
    let flow = "period = \"20ms\"\npackets = 2";
    for delay in ["80ms", "700ms"] {
        let wire = format!("rate = \"100 Mbit/s\"\nduplex = \"full\"\ndelay = \"{delay}\"");
        let seen = alone(&wire, flow, "packet = \"0.2ms\"", ("10s", 1));
        assert_eq!(seen, Some(Outcome::Met), "{delay}");
    }
}
