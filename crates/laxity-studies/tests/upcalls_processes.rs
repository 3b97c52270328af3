//! A set whose upcalls are in several processes, on this machine: this test starts them, each of which is this test once more.

use std::num::NonZeroU32;

use laxity::doctor::rights::{self, Right};
use laxity::{HostError, LiveConfig, LiveHost};
use laxity_lab::bench::{Runner, Said};
use laxity_lab::workload::Draws;
use laxity_model::base::histogram::Histogram;
use laxity_model::{Service, Span};
use laxity_studies::upcalls::trial::{Look, Outcome, Serving, Setup, processes};

/// Nine upcalls of three processes, at a third of the processor.
fn run(serving: Serving) -> Result<Outcome, HostError> {
    let periods = [20, 30, 40].map(Span::from_millis);
    let four = NonZeroU32::new(4).expect("it is not zero");
    let setup = Setup {
        members: processes(3, &periods, four, &mut Draws::new(1, 0)),
        utilization_ppm: 333_333,
        way: (serving, Look::AtOnce),
        switch: Service::ZERO,
        length: Span::from_millis(400),
        is_watched: serving == Serving::ByRate,
    };
    let mut host = LiveHost::new(LiveConfig::detect(1)?);
    setup.run(&mut Runner::Live(&mut host, &mut Said::default()))
}

fn main() {
    let told: Vec<String> = std::env::args().collect();
    if let [_, peer, experiment, part] = &told[..]
        && peer == "peer"
    {
        if let Err(why) = laxity_studies::peer(experiment, part) {
            eprintln!("{why}");
            std::process::exit(1);
        }
        return;
    }
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    for serving in [Serving::ByRate, Serving::Threads, Serving::Intervals] {
        let outcome = run(serving).expect("it runs");
        // Nobody has more releases than there are in 300 ms.
        let began = outcome.lateness.iter().map(Histogram::count);
        assert_eq!(outcome.lateness.len(), 9);
        assert!(
            outcome.jobs > 0 && outcome.jobs <= 3 * (15 + 10 + 8),
            "{outcome:?}"
        );
        assert!(began.sum::<u64>() <= outcome.jobs, "{outcome:?}");
        // Each process has waited for its turn.
        assert!(
            outcome.switches >= 3 && outcome.besides_ppm.is_some(),
            "{outcome:?}"
        );
    }
    // One that cannot do its part ends, and the others with it.
    let refused = run(Serving::ByDeadline).expect_err("processes take turns by rate only");
    assert!(
        refused
            .to_string()
            .contains("process 1 ended before its time"),
        "{refused}"
    );
}
