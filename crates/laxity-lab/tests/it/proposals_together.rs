//! What is proposed to several devices of a variant: whatever the order in which a file names them, and no more than that serves them all.

use laxity::Twin;
use laxity_lab::evidence::results::VariantResults;
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{DevicePlan, plan};
use laxity_lab::report::run::table;
use laxity_lab::runner::proposal::settled;
use laxity_lab::runner::{self, On, RunError, Silent};
use laxity_lab::scenario::units::format_span;
use laxity_lab::scenario::{Length, Resolved, parse};
use laxity_model::{Host, Reservation, Span};
use proptest::prelude::*;

const TWIN: On = On::Twin { threads: 2 };

/// A device: its name, kind, load in percent, and its placement.
type Device = (&'static str, &'static str, u32, String);

fn scenario(devices: &[Device]) -> Resolved {
    let mut text = "[host]\ntwin = \"win2000-pii450\"\n[quick]\nrepeats = 1\nbytes = 4000\nidle = \"1s\"\nlimit = \"20s\"\n".to_owned();
    for (name, kind, load, _) in devices {
        text.push_str(&format!(
            "[devices.{name}]\nkind = \"{kind}\"\nload = \"{load} %\"\n"
        ));
    }
    text.push_str("[variants.v]\ncontracts = [\"lossless\"]\nexpect = \"any\"\nlost = \"any\"\n[variants.v.placement]\n");
    for (name, _, _, placement) in devices {
        text.push_str(&format!(
            "{name} = {{ placement = \"reserved {placement}\", outside = \"confined\" }}\n"
        ));
    }
    let parsed = parse(&text, "together.toml").unwrap_or_else(|found| {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", found.join("\n"))
    });
    parsed.resolve(Length::Quick)
}

fn device(name: &'static str, kind: &'static str, load: u32, placement: &str) -> Device {
    (name, kind, load, placement.to_owned())
}

/// What is proposed to each by its declared load, by name; or why nothing is.
fn proposed(devices: &[Device]) -> Result<Vec<(String, Reservation)>, String> {
    let resolved = scenario(devices);
    let mut host = Twin::new(resolved.host.profile.machine);
    let supply = host.supply(resolved.host.processors).expect("a twin's");
    let settled = settled(&resolved, &supply, false, |_| None).expect("a program");
    if let Some(why) = settled.open.get(&0) {
        return Err(why.clone());
    }
    let devices = settled.resolved.variants[0].devices.iter();
    let found = devices.map(|device| {
        let request = device.placing.request().expect("all are reserved");
        (device.name.clone(), request.reservation)
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    Ok(found)
}

fn kinds() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["soft-modem", "audio", "dsl", "radio"])
}

fn placements() -> impl Strategy<Value = String> {
    let words = [
        "auto/8ms",
        "auto/5ms",
        "auto/4ms",
        "auto/13ms",
        "auto/auto",
        "1ms/10ms",
    ];
    prop::sample::select(words.map(str::to_owned).to_vec())
}

fn devices() -> impl Strategy<Value = Vec<Device>> {
    prop::collection::vec((kinds(), 3_u32..35, placements()), 2..4).prop_map(|devices| {
        let named = ["a", "b", "c"].into_iter().zip(devices);
        let named = named.map(|(name, (kind, load, placement))| (name, kind, load, placement));
        named.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_order_of_devices_decides_nothing((one, other) in devices().prop_flat_map(|devices| {
        (Just(devices.clone()), Just(devices).prop_shuffle())
    })) {
        prop_assert_eq!(proposed(&one), proposed(&other));
    }

    /// A plan's own test says so: of who asks for next to nothing beside another.
    #[test]
    fn the_least_does_and_a_grain_less_does_not(
        kind in kinds(),
        load in 5_u32..35,
        period_ms in 4_u32..14,
        other in kinds(),
        beside in prop::sample::select(vec!["1.3ms/6ms", "2ms/8ms", "1ms/9ms"]),
    ) {
        let planned = |asked: &str| {
            let devices = [device("a", kind, load, asked), device("b", other, 10, beside)];
            let plan = plan(&scenario(&devices), (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan");
            plan.variants[0].clone()
        };
        let least = planned(&format!("0.05ms/{period_ms}ms")).devices[0].least_service_ns;
        if let Some(least) = least {
            let answer = |service_ns: u64| {
                let asked = format!("{}us/{period_ms}ms", service_ns / 1_000);
                let planned = planned(&asked);
                // By what is sure of its slots, whatever its rank beside them or the bound of its calls.
                let device = &planned.devices[0];
                let others = ["by its slots alone", "by what is sure of them in every window"];
                let by_slots = !others.iter().any(|other| device.detail.contains(other));
                planned.admitted && device.is_served() && by_slots
            };
            prop_assert!(answer(least), "{least}");
            prop_assert!(least == 50_000 || !answer(least - 50_000), "{least}");
        }
    }
}

/// What a plan calls served.
const SERVED: &str = "served: complete before its card's ring is full or dry";

/// What a run says that was proposed, in the words of a plan.
fn told_by_a_run(variant: &VariantResults) -> Vec<String> {
    let modems = variant.modems();
    let modems = modems.map(|(name, modem)| (name, &modem.device));
    let streams = variant.streams();
    let streams = streams.map(|(subject, stream)| (subject.name.as_str(), &stream.device));
    let told = modems.chain(streams).map(|(name, device)| {
        let proposed = device.proposed.as_ref().expect("it was open");
        let (x, y) = (
            Span::from_nanos(proposed.service_ns),
            Span::from_nanos(proposed.period_ns),
        );
        format!(
            "`{name}` is proposed {}/{}: {}; {SERVED}",
            format_span(x),
            format_span(y),
            proposed.why
        )
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

/// One of these orders was refused once, and what the other proposed had been looked at without those behind it.
#[test]
fn in_every_order_the_same_runs_and_loses_nothing() {
    let sets = [
        [
            device("a", "soft-modem", 30, "auto/8ms"),
            device("b", "dsl", 30, "auto/5ms"),
        ],
        [
            device("a", "audio", 20, "auto/8ms"),
            device("b", "dsl", 20, "auto/5ms"),
        ],
        [
            device("a", "soft-modem", 10, "auto/auto"),
            device("b", "radio", 10, "auto/auto"),
        ],
    ];
    for [one, other] in sets {
        let words = [[&one, &other], [&other, &one]].map(|order| {
            let resolved = scenario(&order.map(Clone::clone));
            let plan =
                plan(&resolved, (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan");
            let variant = &plan.variants[0];
            assert!(variant.admitted, "{variant:?}");
            assert!(
                variant.devices.iter().all(DevicePlan::is_served),
                "{variant:?}"
            );
            let run = runner::run(&resolved, TWIN, Vec::new(), &mut Silent);
            let run = run.expect("what is proposed is granted").results;
            let variant_run = &run.variants[0];
            let modems = variant_run.modems().map(|(_, modem)| modem.device.lost());
            let streams = variant_run
                .streams()
                .map(|(_, stream)| stream.device.lost());
            assert_eq!(
                modems.chain(streams).sum::<u64>(),
                0,
                "{:?}",
                variant.proposals
            );
            let mut words = variant.proposals.clone();
            words.sort();
            assert_eq!(
                words,
                told_by_a_run(variant_run),
                "a plan says what a run does"
            );
            // What is reckoned afterwards is beside the others, like what was proposed.
            let shown = table(&run, 100_000, None);
            let beside = "would have served it beside what the others had: x 1.";
            assert_eq!(shown.matches(beside).count(), 2, "{shown}");
            words
        });
        assert_eq!(words[0], words[1]);
        for word in &words[0] {
            assert!(
                word.contains("beside what is proposed to the others; "),
                "{word}"
            );
        }
    }
}

/// No order makes room where there is none, and whoever reads why is told of all.
#[test]
fn what_does_not_fit_is_refused_in_every_order_alike() {
    let (one, other) = (
        device("a", "dsl", 60, "auto/4ms"),
        device("b", "audio", 50, "auto/8ms"),
    );
    let orders = [[one.clone(), other.clone()], [other, one]];
    let whys = orders.map(|order| {
        let run = runner::run(&scenario(&order), TWIN, Vec::new(), &mut Silent);
        match run.map(|_| ()) {
            Err(RunError::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(whys[0], whys[1]);
    assert!(whys[0].contains("`a` and `b` together"), "{}", whys[0]);
}

/// Who has room on a processor of its own has nothing to do with those who have none on another.
#[test]
fn a_refusal_names_the_devices_of_the_processor_on_which_there_is_no_room() {
    let text = "host = { processors = 2 }
[devices]
alone = { kind = \"soft-modem\" }
a = { kind = \"soft-modem\", load = \"60 %\", processor = 1 }
b = { kind = \"soft-modem\", load = \"50 %\", processor = 1 }
[variants.v.placement]
alone = \"reserved auto/8ms\"
a = \"reserved auto/8ms\"
b = \"reserved auto/8ms\"
";
    let parsed = parse(text, "two.toml").expect("a scenario");
    let resolved = parsed.resolve(Length::Quick);
    let mut host = Twin::new(resolved.host.profile.machine);
    let supply = host.supply(resolved.host.processors).expect("a twin's");
    let settled = settled(&resolved, &supply, false, |_| None).expect("a program");
    let why = &settled.open[&0];
    let words = [
        "nothing can be proposed for `a` and `b` together",
        "of processor 1 so",
    ];
    assert!(words.iter().all(|word| why.contains(word)), "{why}");
    assert!(!why.contains("`alone`"), "{why}");
}

/// Of one whose calls go before the slots of the other, too, it is told what would have done there.
#[test]
fn what_would_have_served_is_beside_what_the_others_had() {
    let beside = "reserved auto/6ms\", before = 31, outside = \"confined\" }";
    let text = format!(
        "[quick]\nrepeats = 1\nbytes = 4000\nidle = \"1s\"\nlimit = \"20s\"\n[devices]\nz0 = {{ kind = \"soft-modem\" }}\nz1 = {{ kind = \"soft-modem\" }}\n[variants.v]\ncontracts = [\"lossless\"]\nexpect = \"any\"\nlost = \"any\"\n[variants.v.placement]\nz0 = {{ placement = \"{beside}\nz1 = {{ placement = \"reserved auto/6ms\", outside = \"confined\" }}\n"
    );
    let resolved = parse(&text, "before.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    let run = runner::run(&resolved, TWIN, Vec::new(), &mut Silent).expect("it is granted");
    for (name, modem) in run.results.variants[0].modems() {
        let proposed = modem.device.proposed.as_ref().expect("it was open");
        let times = proposed.times_least_ppm.expect("something would have done");
        assert!(
            (1_000_000..=1_300_000).contains(&times),
            "{name}: {proposed:?}"
        );
    }
}
