//! Interfaces that are bounded: what a plan says of packets, and that no run of the twin shows more.

use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{Plan, VariantPlan, plan};
use laxity_lab::runner::{On, Silent};
use laxity_lab::scenario::{Length, Resolved, parse};

const ON: On = On::Twin { threads: 1 };

fn scenario(interface: &str, packet: &str, rest: &str) -> String {
    format!(
        r#"
[quick]
idle = "2s"
[interfaces.lan]
{interface}
[flows.video]
kind = "video"
period = "40ms"
[clients.viewer]
interface = "lan"
flows = ["video"]
packet = "{packet}"
placement = "thread 24"
{rest}
"#
    )
}

fn resolved(interface: &str, packet: &str, rest: &str, seed: u64) -> Resolved {
    of_text(&scenario(interface, packet, rest), seed)
}

fn of_text(text: &str, seed: u64) -> Resolved {
    let mut resolved = parse(text, "x.toml")
        .expect("a scenario")
        .resolve(Length::Quick);
    resolved.seed = seed;
    resolved
}

fn planned(resolved: &Resolved) -> Plan {
    plan(resolved, (ON, true), &Known::Nothing, &mut Silent).expect("it can be planned")
}

/// What a line says: its bound, and the longest that was seen.
fn line(plan: &VariantPlan, name: &str) -> (Option<u64>, u64) {
    let mut lines = plan.lines.iter();
    let line = lines.find(|line| line.name == name).expect("it has a line");
    (line.bound_ns, line.observed_max_ns.unwrap_or(0))
}

const ALONE: &str = r#"
[variants.one]
clients = ["viewer"]
"#;
/// Beside transfers, and above a task that has what is left.
const BESIDE: &str = r#"
[flows.ftp]
kind = "bulk"
count = 2
pause = "20ms"
[clients.transfers]
interface = "lan"
flows = ["ftp"]
packet = "0.05ms"
placement = "thread 20"
[tasks.below]
kind = "periodic"
service = "5ms"
period = "200ms"
priority = 16
[variants.one]
clients = ["viewer", "transfers"]
tasks = ["below"]
"#;
/// Both ways at 1 Gbit/s, so that a frame's packets come next to at once.
const QUICK: &str =
    "rate = \"1 Gbit/s\"\nduplex = \"full\"\ninterrupt = \"5us\"\npacket = \"5us\"\n";

#[test]
fn no_run_shows_more_than_the_bound_of_a_packet() {
    let most = format!("{QUICK}most = \"8 packets every 2ms\"");
    for seed in 1..=12 {
        let of = planned(&resolved(&most, "1.5ms", BESIDE, seed));
        for name in ["lan", "viewer", "transfers", "below"] {
            let (bound, seen) = line(&of.variants[0], name);
            let bound = bound.unwrap_or_else(|| panic!("{name} has no bound: {of:?}"));
            assert!(seen > 0 && seen <= bound, "{seed} {name}: {seen} {bound}");
        }
        assert!(!of.is_contradicted());
    }
}

/// What comes over a slow wire that is shared, a little at a time: packets wait in the card for a long time, and for no longer.
#[test]
fn packets_that_wait_for_their_driver_keep_within_their_bound() {
    let most = "duplex = \"half\"\nmost = \"3 packets every 4ms\"";
    let mut longest = 0;
    for seed in 1..=12 {
        let of = planned(&resolved(most, "0.3ms", BESIDE, seed));
        let (bound, seen) = line(&of.variants[0], "viewer");
        let bound = bound.unwrap_or_else(|| panic!("no bound: {of:?}"));
        assert!(seen <= bound, "{seed}: {seen} {bound}");
        longest = longest.max(seen);
    }
    // A frame's three packets take 0.9 ms.
    assert!(longest > 8_000_000, "nobody waited: {longest}");
}

/// What comes twice, late or together is more than its sender sends, and no more than the driver takes.
#[test]
fn the_bound_of_a_packet_holds_where_things_go_wrong_on_the_wire() {
    let faults = "loss = \"2 %\"\nduplication = \"20 %\"\nreordering = \"10 %\"\nlate_by = \"60ms\"\ncorruption = \"1 %\"";
    let most = format!("{QUICK}most = \"8 packets every 40ms\"\n{faults}");
    let rest = format!("{ALONE}on = \"twin\"\n");
    for seed in 1..=12 {
        let of = planned(&resolved(&most, "1.5ms", &rest, seed));
        let (bound, seen) = line(&of.variants[0], "viewer");
        let bound = bound.unwrap_or_else(|| panic!("no bound: {of:?}"));
        assert!(seen > 0 && seen <= bound, "{seed}: {seen} {bound}");
        let said = of.variants[0].notes.join("; ");
        assert!(
            said.contains("2 % never arrive, 20 % arrive twice"),
            "{said}"
        );
    }
}

/// Who states how fast its packets come is bounded as who waits for all that is current, and charged to others as if it always were.
#[test]
fn who_is_raised_is_charged_at_its_highest_and_bounded_at_its_lowest() {
    const STATED: &str = "rate = \"1 packets every 2ms\"\ncritical = 24";
    let beside = BESIDE.replace("priority = 16", "priority = 12").replace(
        "packet = \"0.05ms\"",
        &format!("packet = \"0.5ms\"\n{STATED}"),
    );
    let beside = beside.replace("placement = \"thread 20\"", "placement = \"thread 8\"");
    let most = format!("{QUICK}most = \"8 packets every 8ms\"");
    for seed in 1..=6 {
        let of = planned(&resolved(&most, "0.5ms", &beside, seed));
        for name in ["viewer", "transfers", "below"] {
            let (bound, seen) = line(&of.variants[0], name);
            let bound = bound.unwrap_or_else(|| panic!("{name} has no bound: {of:?}"));
            assert!(seen > 0 && seen <= bound, "{seed} {name}: {seen} {bound}");
        }
    }
    // It is charged to who is between, and to itself all that is between.
    let bounds = |text: &str| {
        let of = planned(&resolved(&most, "0.5ms", text, 1));
        ["transfers", "below"].map(|name| line(&of.variants[0], name).0)
    };
    let [own, between] = bounds(&beside);
    let [lowest, alone] = bounds(&beside.replace(STATED, ""));
    assert!(
        own == lowest && between > alone,
        "{own:?} {lowest:?} {between:?} {alone:?}"
    );
}

/// A frame's three packets come together, and their thread is done with the last one when it has worked on all.
#[test]
fn the_bound_of_a_packet_is_next_to_what_happens() {
    let most = format!("{QUICK}most = \"16 packets every 40ms\"");
    let of = planned(&resolved(&most, "1.5ms", ALONE, 1));
    let (bound, seen) = line(&of.variants[0], "viewer");
    let bound = bound.expect("it is known how many come");
    assert!(seen <= bound && seen * 100 > bound * 90, "{seen} {bound}");
}

/// Where a frame may be on the wire until the next one, that is what is short; and either of what is proposed is enough.
#[test]
fn a_wire_that_may_hold_a_frame_for_a_period_is_told_with_what_would_fit() {
    let said = |rate: &str, period: &str| {
        let most = format!("rate = \"{rate}\"\nmost = \"64 packets every 10ms\"");
        let text = scenario(&most, "1.5ms", ALONE).replace("40ms", period);
        let plan = planned(&of_text(&text, 1));
        let mut lines = plan.variants[0].lines.iter();
        let line = lines.find(|line| line.name == "viewer").expect("a line");
        line.no_bound.clone().unwrap_or_default()
    };
    let slow = said("5 Mbit/s", "40ms");
    assert!(slow.contains("on the wire for"), "{slow}");
    let (_, rate) = slow.split_once("a `rate` of ").expect("it is said");
    let (rate, period) = rate.split_once(", or a `period` of ").expect("it is, too");
    let (period, _) = period.split_once(',').expect("it ends");
    assert_eq!([said(rate, "40ms"), said("5 Mbit/s", period)], ["", ""]);
}

/// Who has a queue for all takes more than its frames: whoever asks for an address is worked on there, too.
#[test]
fn who_takes_what_is_for_nobody_has_more_than_its_flows() {
    const LATE: &str = r#"demultiplexing = "late"
[tasks.below]
kind = "periodic"
service = "1ms"
period = "200ms"
priority = 12
[variants.one]
clients = ["viewer"]
tasks = ["below"]
"#;
    for (most, packet) in [
        ("64 packets every 2ms", "13ms"),
        ("2 packets every 40ms", "13ms"),
    ] {
        let most = format!("{QUICK}most = \"{most}\"");
        let of = planned(&resolved(&most, packet, LATE, 1));
        assert!(!of.is_contradicted(), "{of:?}");
        let (bound, seen) = line(&of.variants[0], "below");
        assert!(
            seen > 0 && bound.is_none_or(|bound| seen <= bound),
            "{seen} {bound:?}"
        );
    }
}

/// Without a bound nothing is charged, and the plan says so; with one, slots are admitted below the interrupts.
#[test]
fn slots_are_charged_for_packets_where_it_is_known_how_many_come() {
    const RESERVED: &str = r#"
[devices.modem]
kind = "soft-modem"
[variants.one]
placement = "reserved 2ms/8ms"
clients = ["viewer"]
"#;
    let told = |interface: &str| {
        let resolved = resolved(interface, "1.5ms", RESERVED, 1);
        let plan = plan(&resolved, (ON, false), &Known::Nothing, &mut Silent);
        let plan = plan.expect("it can be planned");
        let variant = &plan.variants[0];
        let offer = &variant.requests[0].offers[0];
        let said = variant.notes.join("; ");
        (
            offer.notes.join("; "),
            offer.longest_gap_ns,
            said,
            line(variant, "viewer").0,
        )
    };
    let (charged, _, said, bound) = told("");
    assert!(charged.contains("`lan` runs above the slots, and nobody keeps it to an amount"));
    assert!(said.contains("nobody says how many packets come") && bound.is_none());
    let (charged, gap, said, _) = told("most = \"4 packets every 10ms\"");
    let taken = "`lan` runs above the slots and may take 400us every 10ms from them";
    assert!(charged.contains(taken), "{charged}");
    assert!(
        said.contains("`lan` takes no more than 4 packets every 10ms"),
        "{said}"
    );
    assert!(gap > Some(6_400_000));
}

/// As it was measured before packets were.
const MACHINE: &str = include_str!("../../../../docs/results/epyc-2-processors/machine.toml");
const DEAR: &str = "[packets.packet]\nwake = \"100us\"\nreceive = \"60us\"\nreceive_byte_ps = 100000\nsend = \"20us\"\nsend_byte_ps = 200000\n";
const UNSTATED: &str = "rate = \"1 Gbit/s\"\nduplex = \"full\"\nmost = \"8 packets every 20ms\"\n";

fn measured(packets: &str) -> Known {
    Known::read(&format!("{MACHINE}{packets}"), "machine.toml").expect("it is right")
}

#[test]
fn what_was_measured_of_packets_is_charged_where_a_file_does_not_state_it() {
    let mut resolved = resolved(UNSTATED, "0.5ms", ALONE, 1);
    let (_, assumed) = line(&planned(&resolved).variants[0], "lan");
    let told = resolved.charge_packets(&measured(DEAR), false);
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    for words in [
        "`interrupt` 100us and `packet` 60us and 200000 ps a byte",
        "is calibrated",
    ] {
        assert!(told.contains(words), "{told}");
    }
    let of = planned(&resolved);
    let (bound, seen) = line(&of.variants[0], "lan");
    // One packet of 1,474 bytes, of the dearer way: 100 + 60 + 294.8 us.
    assert!(seen >= 454_800 && seen > assumed, "{seen} {assumed}");
    assert!(bound.is_some_and(|bound| seen <= bound), "{bound:?} {seen}");
    assert!(format!("{of:?}").contains("(calibrated)"));
}

#[test]
fn what_a_file_states_stays_and_what_nobody_measured_is_assumed_and_said() {
    let told = |interface: &str, known: &Known, is_live: bool| {
        let mut resolved = resolved(interface, "0.5ms", ALONE, 1);
        resolved.charge_packets(known, is_live).join("\n")
    };
    let stated = format!("{UNSTATED}interrupt = \"7us\"\n");
    let one = told(&stated, &measured(DEAR), false);
    assert!(
        one.contains("`packet` 60us") && !one.contains("`interrupt`"),
        "{one}"
    );
    let both = format!("{stated}packet = \"3us\"\n");
    assert_eq!(told(&both, &measured(DEAR), true), "");
    // Nobody is charged, or nobody asks.
    assert_eq!(told("rate = \"1 Gbit/s\"\n", &measured(DEAR), true), "");
    assert_eq!(told(UNSTATED, &Known::Nothing, false), "");
    let refused = "[packets.packet]\nnot_measured = \"no right; run as root\"\n";
    for (known, why) in [
        (
            Known::Nothing,
            "nobody measured it here, and `laxity calibrate` measures it; or state it",
        ),
        (Known::LeftOut, "`--machine none` leaves out"),
        (
            measured(""),
            "of a version that did not measure it; `laxity calibrate` measures it",
        ),
        (
            measured(refused),
            "no right; run as root; `laxity calibrate`",
        ),
    ] {
        let said = told(UNSTATED, &known, true);
        let assumed = "`interrupt` 50us and `packet` 50us, is assumed: ";
        assert!(said.contains(assumed) && said.contains(why), "{said}");
    }
}
