//! The live interfaces: each does what every interface must, and what stands against opening one is told apart.
//!
//! Traffic is in network namespaces that the tests make, and on the loop.

mod bare;
#[path = "../common/mod.rs"]
mod common;
mod early;
mod filtered;
mod live;
mod namespace;
mod owned;
mod pair;
mod refused;
mod unfinished;
mod world;

use laxity_conformance::links::{LinkCase, Wire, link_cases};
use laxity_linux::doctor::rights;
use libtest_mimic::{Arguments, Failed, Trial};

/// A test in a network namespace of its own; skipped where none can be had.
fn in_namespace(name: impl Into<String>, run: fn()) -> Trial {
    Trial::test(name, move || {
        if namespace::in_own(run).is_none() {
            rights::lacks("no network namespace of one's own with interfaces in it");
        }
        Ok(())
    })
}

/// The cases of the suite, over wires that this makes.
fn suite<W: Wire + 'static>(name: &str, wire: fn() -> W) -> Vec<Trial> {
    let trial = |case: LinkCase<W>| {
        Trial::test(format!("{name}::{}", case.name), move || {
            let failed = namespace::in_own(|| (case.run)(&mut wire()).err());
            match failed {
                Some(Some(failure)) => Err(Failed::from(failure.to_string())),
                Some(None) => Ok(()),
                None => {
                    rights::lacks("no network namespace of one's own with interfaces in it");
                    Ok(())
                }
            }
        })
    };
    link_cases::<W>().into_iter().map(trial).collect()
}

fn main() {
    owned::own_and_wait();
    world::make_and_wait();
    let mut arguments = Arguments::from_args();
    // What is left behind is counted for the whole process.
    arguments.test_threads = Some(1);
    let mut trials = suite("udp", live::udp);
    trials.extend(suite("tap", live::tap));
    trials.extend(suite("tun", live::tun));
    trials.extend(suite("packet", live::packet));
    trials.extend(suite("xdp", live::xdp));
    trials.extend(suite("xdp-native", live::xdp_native));
    trials.extend(suite("any", live::any));
    trials.extend(live::trials());
    trials.extend(early::trials());
    trials.extend(filtered::trials());
    trials.extend(unfinished::trials());
    trials.push(Trial::test(
        "what_is_sent_into_a_pair_comes_out_of_it",
        || {
            pair::crosses();
            Ok(())
        },
    ));
    trials.extend(owned::trials());
    trials.extend(world::trials());
    trials.extend(refused::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
