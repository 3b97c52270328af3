//! The modem's blocks are of 210, 210 and 180 samples, and behind one of 210 and one of 180 the next is due sooner than on average: what a plan says is served
//! loses nothing in the twin, and what would be served if all were alike is not said to be.

use laxity_lab::scenario::units::format_span;
use laxity_lab::scenario::{Length, Resolved, parse};
use laxity_model::Span;

use super::{lost, planned, run};

/// A connected modem of this load, in percent, with these reservations, in microseconds, and with nothing outside them.
fn connected(load: u64, reservations: &[(u64, u64)]) -> Resolved {
    let mut text = format!(
        "[quick]\nrepeats = 1\nbytes = 16_000\nlimit = \"120s\"\n[devices.modem]\nkind = \"soft-modem\"\nload = \"{load} %\"\n"
    );
    for (service, period) in reservations {
        let [x, y] = [*service, *period].map(|us| format_span(Span::from_micros(us)));
        text.push_str(&format!(
            "[variants.r{service}-{period}]\nplacement = \"reserved {x}/{y}\"\noutside = \"confined\"\nstart = \"connected\"\nexpect = \"any\"\nlost = \"any\"\n"
        ));
    }
    let parsed = parse(&text, "uneven.toml");
    parsed.expect("a scenario").resolve(Length::Quick)
}

/// The least X that the plan calls served at these periods, in microseconds: of who asks for next to nothing.
fn least(load: u64, periods: &[u64]) -> Vec<(u64, u64)> {
    let asked: Vec<_> = periods.iter().map(|period| (20, *period)).collect();
    let plan = planned(&connected(load, &asked));
    let least = plan.variants.iter().zip(periods).map(|(variant, period)| {
        let least = variant.devices[0].least_service_ns;
        (least.expect("one serves") / 1_000, *period)
    });
    least.collect()
}

#[test]
fn what_is_said_to_be_served_loses_nothing_whatever_the_load() {
    for load in [10, 55, 70] {
        let mut resolved = connected(load, &least(load, &[6_000, 24_166, 30_000]));
        for variant in planned(&resolved).variants {
            let device = &variant.devices[0];
            assert!(device.is_served(), "{load} %: {device:?}");
        }
        for seed in [1, 3] {
            resolved.seed = seed;
            for variant in &run(&resolved).variants {
                let lost = lost(variant);
                assert_eq!(lost, 0, "{load} %: {} at seed {seed}", variant.name);
            }
        }
    }
}

/// On average of the blocks each of these has a tenth of a millisecond to spare, and each loses samples with every seed.
#[test]
fn what_only_equal_blocks_would_be_served_by_is_not_said_to_serve() {
    for (load, reservation) in [(55, (14_500, 26_000)), (50, (12_350, 24_166))] {
        let resolved = connected(load, &[reservation]);
        let device = &planned(&resolved).variants[0].devices[0];
        assert_eq!(device.answer, "too late", "{device:?}");
        assert!(lost(&run(&resolved).variants[0]) > 0, "{load} %");
        let (asked, period) = reservation;
        let least = least(load, &[period]);
        assert!((asked + 1..asked + 500).contains(&least[0].0), "{least:?}");
        let proposed = connected(load, &least);
        assert_eq!(lost(&run(&proposed).variants[0]), 0, "{load} %: {least:?}");
    }
}
