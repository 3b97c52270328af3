//! Upcalls on this machine, by counts: what else it does makes them late, and does not make them switch more often.

use std::num::NonZeroU32;

use laxity::doctor::rights::{self, Right};
use laxity::{LiveConfig, LiveHost};
use laxity_lab::bench::{Runner, Said};
use laxity_lab::workload::Draws;
use laxity_model::base::histogram::Histogram;
use laxity_model::{Service, Span};
use laxity_studies::upcalls::beside::{Load, Running};
use laxity_studies::upcalls::trial::{Look, Outcome, Serving, Setup, in_one, processes};

/// 24 upcalls of 40 to 90 ms at 80 %, without a witness, whose wake-ups would count.
fn setup(serving: Serving) -> Setup {
    let sixteen = NonZeroU32::new(16).expect("it is not zero");
    let periods = [40, 50, 60, 70, 80, 90].map(Span::from_millis);
    Setup {
        members: in_one(&processes(4, &periods, sixteen, &mut Draws::new(1, 2))),
        utilization_ppm: 800_000,
        way: (serving, Look::AT_THE_END),
        switch: Service::ZERO,
        length: Span::from_millis(600),
        is_watched: false,
    }
}

#[test]
fn upcalls_of_one_process_switch_a_fourth_as_often_as_a_thread_each() {
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let mut host = LiveHost::new(LiveConfig::detect(1).expect("a processor may be used"));
    let mut said = Said::default();
    let mut run = |serving| -> Outcome {
        let outcome = setup(serving).run(&mut Runner::Live(&mut host, &mut said));
        outcome.expect("it runs")
    };
    let [threads, upcalls, intervals] =
        [Serving::Threads, Serving::ByRate, Serving::Intervals].map(&mut run);
    assert!(upcalls.switches > 0 && upcalls.switches * 4 <= threads.switches);
    for outcome in [threads, upcalls, intervals] {
        let began: u64 = outcome.lateness.iter().map(Histogram::count).sum();
        assert!(outcome.jobs > 0 && began >= outcome.jobs, "{outcome:?}");
        assert_eq!(outcome.lateness.len(), 24);
    }
}

#[test]
fn what_runs_beside_upcalls_runs_until_it_is_ended() {
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let mut host = LiveHost::new(LiveConfig::detect(1).expect("a processor may be used"));
    let mut said = Said::default();
    for load in Load::ALL.into_iter().filter(|load| load.is_there()) {
        let mut runner = Runner::Live(&mut host, &mut said);
        let running = load.start(&runner).expect("it can be started");
        assert_eq!(running.is_none(), load == Load::None);
        setup(Serving::ByRate).run(&mut runner).expect("it runs");
        assert_eq!(
            running.map(Running::end),
            (load != Load::None).then_some(Ok(()))
        );
    }
}
