//! The modem's blocks are of 210, 210 and 180 samples, and one of 180 behind one of 210 is due sooner than their mean: what a plan says is served loses nothing in the twin.

use laxity_lab::scenario::units::format_span;
use laxity_lab::scenario::{Length, Resolved, parse};
use laxity_model::Span;

use super::{lost, planned, run};

/// A modem of this load, connected, which fetches so much, with these reservations, in microseconds, and with nothing outside them.
fn connected(load: u64, bytes: u64, reservations: &[(u64, u64)]) -> Resolved {
    let mut text = format!(
        "[quick]\nrepeats = 1\nbytes = {bytes}\nlimit = \"120s\"\n[devices.modem]\nkind = \"soft-modem\"\nload = \"{load} %\"\n"
    );
    for (service, period) in reservations {
        let [x, y] = [*service, *period].map(|us| format_span(Span::from_micros(us)));
        text.push_str(&format!(
            "[variants.r{service}-{period}]\nplacement = \"reserved {x}/{y}\"\noutside = \"confined\"\nstart = \"connected\"\nexpect = \"any\"\nlost = \"any\"\n"
        ));
    }
    parse(&text, "uneven.toml")
        .expect("a scenario")
        .resolve(Length::Quick)
}

#[test]
fn print() {
    for load in [10, 25, 40, 50, 55, 60, 70] {
        let ys = [6_000, 9_300, 13_000, 17_000, 20_000, 24_166, 26_000, 30_000];
        let asked = ys.map(|y| (20, y));
        let plan = planned(&connected(load, 20_000, &asked));
        let least = plan.variants.iter().map(|v| v.devices[0].least_service_ns);
        println!("{load}: {:?}", least.collect::<Vec<_>>());
    }
}
