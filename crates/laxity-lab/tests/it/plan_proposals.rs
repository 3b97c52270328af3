//! What a plan proposes to a device does: the twin of the very reservation loses nothing, whatever the load and the period.

mod uneven_blocks;

use std::collections::BTreeSet;

use laxity_lab::evidence::results::{RunResults, VariantResults};
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{DevicePlan, Plan, plan, render};
use laxity_lab::runner::{self, On, Silent};
use laxity_lab::scenario::units::format_span;
use laxity_lab::scenario::{Length, Resolved, parse};
use laxity_model::Span;

const TWIN: On = On::Twin { threads: 2 };

/// A device alone, with these reservations, and with nothing outside them.
fn scenario(device: &str, reservations: &[(u64, u64)]) -> Resolved {
    let mut text = format!(
        "[host]\ntwin = \"win2000-pii450\"\n[quick]\nrepeats = 1\nbytes = 4000\nlimit = \"40s\"\n[devices.card]\n{device}\n[defaults]\ncontracts = [\"lossless\"]\n"
    );
    for (service, period) in reservations {
        let [x, y] = [*service, *period].map(|nanos| format_span(Span::from_nanos(nanos)));
        text.push_str(&format!(
            "[variants.r{service}-{period}]\nplacement = {{ card = \"reserved {x}/{y}\" }}\noutside = \"confined\"\nexpect = \"any\"\nlost = \"any\"\n"
        ));
    }
    let parsed = parse(&text, "proposals.toml").unwrap_or_else(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", found.join("\n"))
    });
    parsed.resolve(Length::Quick)
}

fn planned(resolved: &Resolved) -> Plan {
    plan(resolved, (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan")
}

/// The least at each of these periods, and the cheapest of all: of who asks for next to nothing.
fn proposals(device: &str, periods_us: &[u64]) -> Vec<(u64, u64)> {
    let asked: Vec<_> = periods_us.iter().map(|us| (20_000, us * 1_000)).collect();
    let plan = planned(&scenario(device, &asked));
    let devices = plan.variants.iter().map(|variant| &variant.devices[0]);
    let mut found = Vec::new();
    for device in devices {
        let least = device.least_service_ns;
        found.extend(least.map(|least| (least, device.asked_period_ns)));
        let cheapest = device.cheapest.expect("one serves");
        found.push((cheapest.service_ns, cheapest.period_ns));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn lost(variant: &VariantResults) -> u64 {
    let modems = variant.modems().map(|(_, modem)| modem.device.lost());
    let streams = variant.streams().map(|(_, stream)| stream.device.lost());
    modems.chain(streams).sum()
}

fn run(resolved: &Resolved) -> RunResults {
    let run = runner::run(resolved, TWIN, Vec::new(), &mut Silent);
    run.expect("a run").results
}

/// Whatever is proposed is served by the plan's own test, and loses nothing in the twin.
fn proposals_do(device: &str, periods_us: &[u64]) {
    let proposed = proposals(device, periods_us);
    assert!(!proposed.is_empty());
    let mut resolved = scenario(device, &proposed);
    let plan = planned(&resolved);
    for variant in &plan.variants {
        let device = &variant.devices[0];
        assert!(device.is_served(), "{device:?}");
        assert!(device.least_service_ns.is_none() && device.cheapest.is_none());
    }
    for seed in [1, 2] {
        resolved.seed = seed;
        for variant in &run(&resolved).variants {
            assert_eq!(
                lost(variant),
                0,
                "{device}: {} at seed {seed}",
                variant.name
            );
        }
    }
}

const PERIODS: [u64; 4] = [8_000, 13_000, 14_000, 18_000];

#[test]
fn what_is_proposed_to_a_modem_of_the_studys_load_serves_it() {
    proposals_do("kind = \"soft-modem\"", &PERIODS);
}

#[test]
fn what_is_proposed_to_a_modem_of_little_load_serves_it() {
    proposals_do("kind = \"soft-modem\"\nload = \"5 %\"", &PERIODS);
}

#[test]
fn what_is_proposed_to_a_modem_of_much_load_serves_it() {
    proposals_do("kind = \"soft-modem\"\nload = \"40 %\"", &PERIODS);
}

#[test]
fn what_is_proposed_to_other_devices_serves_them() {
    for kind in ["radio", "audio", "dsl"] {
        proposals_do(&format!("kind = \"{kind}\""), &[1_000, 4_000]);
    }
}

/// A task above slots, of which the files that name devices have one besides.
fn above(service: &str, period: &str) -> String {
    format!(
        "kind = \"soft-modem\"\n[tasks.above]\nkind = \"periodic\"\nperiod = \"{period}\"\nservice = \"{service}\"\npriority = 31"
    )
}

#[test]
fn what_is_proposed_beside_work_above_slots_serves_it() {
    proposals_do(&above("2ms", "20ms"), &[8_000, 13_000]);
}

#[test]
fn slots_under_work_that_takes_them_whole_serve_nobody() {
    for (service, period) in [("40ms", "100ms"), ("9ms", "20ms")] {
        let (device, words, _) = only(&above(service, period), (2_000_000, 8_000_000));
        assert_eq!(device.answer, "too late", "{device:?}");
        let headline = "not sure to be served in time: `modem thread`";
        let unbroken = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(headline), "{words}");
        let offer = "1.953ms less what runs above, which may be all of it";
        assert!(words.contains(offer), "{words}");
    }
}

/// An audio player in 2ms/8ms and nothing else, beside another device, and perhaps tasks.
fn player_beside(other: &str, besides: &str) -> (Plan, RunResults) {
    let text = format!(
        "[quick]\nidle = \"1500ms\"\n[devices.q0]\nkind = \"dsl\"\nload = \"50 %\"\n[devices.q1]\nkind = \"audio\"\nload = \"10 %\"\n{besides}\n[variants.v]\ncontracts = []\nlost = \"any\"\nplacement = {{ q0 = {other}, q1 = {{ placement = \"reserved 2ms/8ms\", outside = \"confined\" }} }}\n"
    );
    let parsed = parse(&text, "beside.toml").expect("a scenario");
    let resolved = parsed.resolve(Length::Quick);
    (planned(&resolved), run(&resolved))
}

fn of<'a>(plan: &'a Plan, device: &str) -> &'a DevicePlan {
    let mut devices = plan.variants[0].devices.iter();
    let found = devices.find(|plan| plan.activity.starts_with(device));
    found.expect("its line")
}

fn lost_by(run: &RunResults, device: &str) -> u64 {
    let mut streams = run.variants[0].streams();
    let found = streams.find(|(subject, _)| subject.name == device);
    found.expect("its results").1.device.lost()
}

/// Who competes above slots takes from those of others whatever it needs, and not from its own.
#[test]
fn reservations_that_compete_above_slots_take_as_threads_do() {
    let reserved = |priority: u8| {
        let placement = format!("{{ placement = \"reserved 1ms/16ms\", priority = {priority} }}");
        player_beside(&placement, "")
    };
    let (above, seen) = reserved(31);
    assert!(lost_by(&seen, "q1") > 0);
    assert_eq!(of(&above, "q1").answer, "too late");
    let (below, seen) = reserved(30);
    assert_eq!(lost_by(&seen, "q1"), 0);
    assert_eq!(of(&below, "q1").answer, "served");
    // Its own slots give it the same either way.
    let by_slots = |plan| {
        let detail = of(plan, "q0").detail.split_once("; ");
        detail.expect("by its rank, and by its slots alone").1
    };
    assert_eq!(by_slots(&above), by_slots(&below));
    let (thread, _) = player_beside("\"thread 31\"", "");
    assert_eq!(of(&above, "q1").detail, of(&thread, "q1").detail);
}

#[test]
fn executors_that_compete_above_slots_take_as_threads_do() {
    let on = |placement: &str| {
        let besides = format!(
            "[executors.x]\npolicy = \"fcfs\"\n{placement}\n[tasks.t]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"9ms\"\non = \"x\""
        );
        let (plan, seen) = player_beside("\"absent\"", &besides);
        (of(&plan, "audio").clone(), lost_by(&seen, "q1"))
    };
    let (thread, lost) = on("placement = \"thread 31\"");
    assert!(thread.answer == "too late" && lost > 0, "{thread:?}");
    let (reserved, lost) = on("placement = \"reserved 10ms/20ms\"\npriority = 31");
    assert!(lost > 0);
    assert_eq!(reserved.detail, thread.detail);
    let (below, lost) = on("placement = \"reserved 10ms/20ms\"\npriority = 30");
    assert_eq!((below.answer.as_str(), lost), ("served", 0));
}

/// A player beside a modem in a thread above its slots, which dials and once takes more than in any other call.
fn player_beside_a_call((service, period): (u64, u64)) -> Resolved {
    let [x, y] = [service, period].map(|nanos| format_span(Span::from_nanos(nanos)));
    let text = format!(
        "[quick]\nrepeats = 1\nbytes = 1000\n[devices.modem]\nkind = \"soft-modem\"\n[devices.player]\nkind = \"audio\"\nload = \"10 %\"\n[variants.v]\ncontracts = []\nlost = \"any\"\nplacement = {{ modem = \"thread 31\", player = {{ placement = \"reserved {x}/{y}\", outside = \"confined\" }} }}\n"
    );
    let parsed = parse(&text, "answer.toml").expect("a scenario");
    parsed.resolve(Length::Quick)
}

#[test]
fn the_call_that_recognises_an_answer_above_slots_is_charged_to_others() {
    let mut asked = player_beside_a_call((3_000_000, 10_000_000));
    let plan = planned(&asked);
    let player = of(&plan, "player");
    let least = (player.least_service_ns).map(|least| (least, player.asked_period_ns));
    let cheapest = player.cheapest.map(|one| (one.service_ns, one.period_ns));
    let proposed: Vec<_> = least.into_iter().chain(cheapest).collect();
    assert!(!player.is_served() && !proposed.is_empty(), "{player:?}");
    asked.seed = 4;
    assert_eq!(lost_by(&run(&asked), "player"), 206);
    for reservation in proposed {
        let mut again = player_beside_a_call(reservation);
        assert!(of(&planned(&again), "player").is_served());
        for seed in 1..=6 {
            again.seed = seed;
            assert_eq!(
                lost_by(&run(&again), "player"),
                0,
                "{reservation:?}, {seed}"
            );
        }
    }
}

/// A player beside another device's slots and a task above them.
fn crowded((service, period): (u64, u64)) -> Resolved {
    let [x, y] = [service, period].map(|nanos| format_span(Span::from_nanos(nanos)));
    let text = format!(
        "[devices.a0]\nkind = \"dsl\"\nload = \"26 %\"\nring = 4\n[devices.z1]\nkind = \"audio\"\nload = \"8 %\"\nring = 4\nahead = 1\n[tasks.p0]\nkind = \"periodic\"\nperiod = \"57ms\"\nservice = \"3032us\"\npriority = 31\n[variants.v]\ncontracts = []\nlost = \"any\"\nplacement = {{ a0 = {{ placement = \"reserved 3556us/12ms\", priority = 14 }}, z1 = {{ placement = \"reserved {x}/{y}\", outside = \"confined\" }} }}\n"
    );
    let parsed = parse(&text, "again.toml").expect("a scenario");
    parsed.resolve(Length::Quick)
}

/// What a device has in a table of its own may be late beside others, and is then not proposed to it, whatever it asked for.
#[test]
fn what_would_be_late_beside_others_is_not_proposed() {
    let mut followed = BTreeSet::new();
    for grains in 60..90 {
        let asked = grains * 50_000;
        let plan = planned(&crowded((asked, 10_000_000)));
        let player = of(&plan, "z1");
        let least = player.least_service_ns.map(|x| (x, player.asked_period_ns));
        let cheapest = player.cheapest.map(|one| (one.service_ns, one.period_ns));
        for (service, period) in least.into_iter().chain(cheapest) {
            let is_more = service > asked || period < player.asked_period_ns;
            assert!(is_more, "{asked}: {player:?}");
            followed.insert((service, period));
        }
        let words = render(&plan, 1_000);
        let is_said = words.contains("beside the others here");
        assert_eq!(is_said, player.no_more_found, "{words}");
    }
    // What it needs in a table of its own is late here, and more of it is not.
    assert!(followed.len() > 1, "{followed:?}");
    for proposed in followed {
        let again = planned(&crowded(proposed));
        let player = of(&again, "z1");
        assert!(
            again.admitted() && player.is_served(),
            "{proposed:?}: {player:?}"
        );
    }
}

/// Work above slots, and what a processor keeps for the rest, leave less than what would serve: whatever is proposed all the same is granted.
#[test]
fn what_is_proposed_is_granted_beside_all_else() {
    let mut left = 0;
    let radio = "kind = \"radio\"\nload = \"5 %\"".to_owned();
    let works = [("9ms", "20ms"), ("8.58ms", "50ms"), ("5ms", "50ms")];
    let modems = works.map(|(service, period)| above(service, period));
    for device in modems.into_iter().chain([radio]) {
        for asked in [(100_000, 11_000_000), (10_200_000, 11_000_000)] {
            let (found, words, _) = only(&device, asked);
            let least = found.least_service_ns.map(|x| (x, found.asked_period_ns));
            let cheapest = found.cheapest.map(|one| (one.service_ns, one.period_ns));
            for proposed in least.into_iter().chain(cheapest) {
                let (again, words, plan) = only(&device, proposed);
                assert!(plan.admitted(), "{device}: {words}");
                assert!(again.is_served(), "{device}: {words}");
                left += 1;
            }
            let none = words.contains("nothing that is left would do");
            assert_eq!(none, found.nothing_left, "{words}");
            assert!(!none || (least, cheapest) == (None, None), "{words}");
        }
    }
    assert!(left > 0);
    let (found, words, _) = only(&above("9ms", "20ms"), (7_350_000, 8_000_000));
    assert!(found.nothing_left, "{words}");
}

/// As plans, so `auto`: what is proposed is granted, or that nothing is left is said.
#[test]
fn what_is_open_is_proposed_of_what_is_left() {
    let found = |service: &str, modem: &str, radio: &str| {
        let text = format!(
            "[devices.modem]\nkind = \"soft-modem\"\n[devices.other]\nkind = \"radio\"\n[tasks.above]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"{service}\"\npriority = 31\n[variants.v]\nplacement = {{ modem = \"{modem}\", other = \"{radio}\" }}\ntasks = [\"above\"]\nexpect = \"any\"\nlost = \"any\"\n"
        );
        let parsed = parse(&text, "open.toml").expect("a scenario");
        planned(&parsed.resolve(Length::Quick))
    };
    let (mut granted, mut taken) = (0, 0);
    for service in ["1ms", "3ms", "9ms"] {
        for modem in ["auto/8ms", "auto/auto"] {
            for radio in ["absent", "auto/8ms", "reserved 2ms/8ms"] {
                let radio = radio.replace("auto/8ms", "reserved auto/8ms");
                let plan = found(service, &format!("reserved {modem}"), &radio);
                if plan.admitted() {
                    granted += 1;
                    continue;
                }
                let why = render(&plan, 300);
                let is_taken = why.contains("nothing that is left would do");
                assert!(is_taken || why.contains("no such reservation"), "{why}");
                taken += u32::from(is_taken);
            }
        }
    }
    assert!(granted > 0 && taken > 0, "{granted}, {taken}");
}

#[test]
fn nothing_is_proposed_at_a_period_of_nothing_but_edges() {
    let (device, words, _) = only("kind = \"soft-modem\"", (20_000, 100_000));
    assert_eq!(device.least_service_ns, None);
    let cheapest = device.cheapest.expect("one serves");
    assert!(cheapest.period_ns >= 1_000_000, "{cheapest:?}");
    assert!(
        words.contains("is too short a period to propose"),
        "{words}"
    );
}

/// Neither is called every so often, and one has no input, the other no output.
#[test]
fn what_a_device_does_not_have_is_not_said_of_it() {
    let lines = |kind: &str| {
        let (device, words, _) = only(&format!("kind = \"{kind}\""), (2_000_000, 4_000_000));
        assert!(!words.contains("0ns"), "{words}");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        (device.device, words)
    };
    let (audio, words) = lines("audio");
    assert_eq!((audio.ring_samples, audio.lead_samples), (None, Some(480)));
    let said = "device: 1ms for each 480 samples, every 10ms; the output 480 ahead";
    assert!(words.contains(said), "{words}");
    assert!(words.contains("Y - X 1.953ms <= 10ms"), "{words}");
    let (radio, words) = lines("radio");
    assert!(radio.ring_samples.is_some() && radio.lead_samples.is_none());
    assert!(words.contains("in the ring two lines:"), "{words}");
}

fn only(device: &str, reservation: (u64, u64)) -> (DevicePlan, String, Plan) {
    let plan = planned(&scenario(device, &[reservation]));
    (
        plan.variants[0].devices[0].clone(),
        render(&plan, 100),
        plan,
    )
}

/// It has enough, and waits for longer than its output is ahead: every deadline of a whole call is kept, and it is dead.
#[test]
fn the_headline_says_that_the_exact_test_says_no() {
    let (device, words, plan) = only("kind = \"soft-modem\"", (7_000_000, 20_000_000));
    assert_eq!(device.answer, "too late");
    assert!(plan.variants[0].admitted);
    let text = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let open = "admitted; 3 deadlines are not known to be met: `modem thread` (dialing), `modem thread` (answer), `modem thread` (connected); not sure to be served in time: `modem thread`";
    assert!(text.contains(open), "{text}");
    let why = "no proof: `modem thread`: the last piece of a call's output is in time; earlier ones may not be";
    assert!(text.contains(why), "{text}");
    let (device, words, _) = only("kind = \"soft-modem\"", (2_000_000, 8_000_000));
    assert!(device.is_served(), "{device:?}");
    assert!(!words.contains("not sure"), "{words}");
}

#[test]
fn a_gap_that_nothing_bounds_is_no_time() {
    let (_, words, plan) = only("kind = \"radio\"", (20_000, 300_000));
    let offer = &plan.variants[0].requests[0].offers[0];
    assert!(offer.promised_gap_ns.is_some() && offer.longest_gap_ns.is_none());
    assert!(!words.contains("18446744073"), "{words}");
    assert!(words.contains("promised, none is sure here"), "{words}");
}

/// A call that took longer than it may is not only a number in a column.
#[test]
fn what_was_seen_late_is_said() {
    let resolved = scenario("kind = \"soft-modem\"", &[(1_000_000, 8_000_000)]);
    let plan = plan(&resolved, (TWIN, true), &Known::Nothing, &mut Silent).expect("a plan");
    let late = |line: &&laxity_lab::plan::Line| line.observed_max_ns > line.deadline_ns;
    assert!(plan.variants[0].lines.iter().any(|line| late(&line)));
    let words = render(&plan, 100);
    assert!(
        words
            .contains("seen late in the twin: `modem thread` (answer), `modem thread` (connected)"),
        "{words}"
    );
}

/// What can be proposed to one variant is not kept back because nothing can be to another, in any order; all of it is refused together.
#[test]
fn a_variant_without_a_proposal_is_named_beside_the_others() {
    let text = "[devices.card]\nkind = \"radio\"\n[variants.never]\nplacement = \"reserved auto/8ms\"\n[variants.served]\nplacement = \"reserved auto/1ms\"\n[variants.thread]\nplacement = \"thread 24\"\n";
    let resolved = parse(text, "open.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    for observe in [false, true] {
        let plan = plan(&resolved, (TWIN, observe), &Known::Nothing, &mut Silent).expect("a plan");
        let [never, served, thread] = &plan.variants[..] else {
            panic!("{plan:?}");
        };
        assert!(!plan.admitted() && !never.admitted);
        assert!(never.refusals[0].contains("nothing can be proposed for `card`"));
        assert!(served.admitted && thread.admitted);
        assert!(served.proposals[0].contains("is proposed"), "{served:?}");
        assert!(!thread.lines.is_empty());
        let text = render(&plan, 100);
        assert!(text.contains("never: REFUSED\n  nothing can be"), "{text}");
    }
    // A run makes all of a scenario, or nothing.
    let run = runner::run(&resolved, TWIN, Vec::new(), &mut Silent);
    let refused = run.err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.starts_with("variant `never` is not admitted")));
}

/// Why the twin refuses the first variant of a scenario.
fn refusal(text: &str) -> String {
    let resolved = parse(text, "open.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    let plan = plan(&resolved, (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan");
    plan.variants[0].refusals[0].clone()
}

/// Whoever goes before slots, and leaves too little of them, is named; who does not is not.
#[test]
fn who_leaves_too_little_for_any_proposal_is_named() {
    let text = "[devices.modem]\nkind = \"soft-modem\"\n[tasks]\ntop = { kind = \"periodic\", period = \"5ms\", service = \"4ms\", priority = 31 }\nlow = { kind = \"spinner\", count = 2, priority = 8 }\n[variants.v]\nplacement = \"reserved auto/8ms\"\ntasks = [\"top\", \"low\"]\n";
    let why = refusal(text);
    let words = "would do without `top`, before which it does not go";
    assert!(why.contains(words), "{why}");
}

/// What there is not enough of, where, and how much of it.
#[test]
fn of_two_who_ask_for_more_than_a_processor_it_is_told_what_is_short() {
    let text = "devices = { a = { kind = \"soft-modem\", load = \"60 %\" }, b = { kind = \"soft-modem\", load = \"50 %\" } }\n[variants.v]\nplacement = { a = \"reserved auto/8ms\", b = \"reserved auto/8ms\" }\n";
    let why = refusal(text);
    for words in [
        "nothing can be proposed for `a` and `b` together",
        "; they ask for 141.3 % of processor 0 so",
        "; without the others would fit: `a` with ",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
}

/// The card begins at a time that the seed says; of a radio a thousand calls take no longer than that, and are seen all the same.
#[test]
fn a_thousand_calls_are_seen_of_every_device_whenever_its_card_begins() {
    for kind in ["radio", "audio", "dsl", "soft-modem"] {
        let text = format!(
            "[devices.card]\nkind = \"{kind}\"\n[variants.v]\nplacement = \"reserved auto/auto\"\n"
        );
        let mut resolved = parse(&text, "open.toml")
            .expect("a scenario")
            .resolve(Length::Quick);
        for seed in 1..=8 {
            resolved.seed = seed;
            let plan = plan(&resolved, (TWIN, false), &Known::Nothing, &mut Silent);
            let plan = plan.unwrap_or_else(|error| panic!("{kind}, seed {seed}: {error}"));
            assert!(
                plan.variants[0].proposals[0].contains("longest of 10"),
                "{plan:?}"
            );
        }
    }
}
