//! What is told before an executor's thread runs: what would end it, and what makes it less than it might be.

use std::process::Command;

use laxity::doctor::{Cause, Machine, Status};
use laxity::upcalls::{Guard, Options, Rank, Region, Upcalls};
use laxity::{Request, Service, Span};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::sched::{self, Tid};
use laxity_model::program::together::Terms;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// In a process of its own, since the limit is a process's.
#[test]
fn a_limit_that_ends_fifo_threads_is_told_before_it_does() {
    const NAME: &str = "a_limit_that_ends_fifo_threads_is_told_before_it_does";
    const OWN: &str = "LAXITY_TEST_RTTIME";
    let Some(limit_us) = std::env::var_os(OWN) else {
        if rights::missing(Right::RealTime).is_some() {
            return rights::skip("FIFO is refused for another reason");
        }
        for limit_us in ["0", "200000"] {
            let mut own = Command::new(std::env::current_exe().unwrap());
            own.args(["--exact", NAME]).env(OWN, limit_us);
            assert!(own.status().unwrap().success(), "{limit_us}");
        }
        return;
    };
    let limit_us = limit_us.into_string().unwrap().parse().unwrap();
    let limits = getrlimit(Resource::Rttime);
    let current = Some(limit_us);
    setrlimit(Resource::Rttime, Rlimit { current, ..limits }).unwrap();
    let refused = Upcalls::start(Options::default()).map(drop).unwrap_err();
    let told = refused.diagnosis().expect("it is told");
    assert_eq!(told.cause, Cause::RealTimeTimeLimited { limit_us });
    assert!(told.remedy.contains("--rttime=unlimited"), "{told}");
    // Nothing ends an ordinary thread for that.
    drop(
        Upcalls::start(Options {
            rank: Rank::Fair,
            ..Options::default()
        })
        .unwrap(),
    );
}

#[test]
fn each_rank_is_told_what_of_the_machine_concerns_it() {
    let mut machine = Machine::probe();
    machine.kernel.hrtick = Ok(false);
    machine.rights.rttime_us = Some(200_000);
    machine.kernel.slice_extension = Ok(Some(Span::from_micros(20)));
    let told = |rank: &Rank| {
        let findings = rank.cautions(&machine);
        assert!(findings.iter().all(|finding| finding.status != Status::Ok));
        findings
            .iter()
            .map(|finding| finding.name)
            .collect::<Vec<_>>()
    };
    let fifo = told(&Options::default().rank);
    let request = Request::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    let reserved = told(&Rank::Reserved(request));
    assert!(fifo.contains(&"rt-time-limit") && !fifo.contains(&"deadline-granularity"));
    assert!(!reserved.contains(&"rt-time-limit") && reserved.contains(&"deadline-granularity"));
    assert!(
        [&fifo, &reserved]
            .iter()
            .all(|told| told.contains(&"slice-extension"))
    );
    assert_eq!(told(&Rank::Fair), [""; 0]);
}

/// Elsewhere it would never be taken off, or would take the guards' processor from them.
#[test]
fn only_an_executor_that_its_guards_can_judge_takes_a_seat() {
    let region = Region::create().unwrap();
    let guard = Guard::without_threads(&region);
    let seat = guard.give(std::process::id()).unwrap();
    let at = |rank| {
        let seat = Some(seat.clone());
        let (together, options) = (seat, Options::default());
        let started = Upcalls::start(Options {
            rank,
            together: together.map(Into::into),
            ..options
        });
        started.map(drop).map_err(|error| error.to_string())
    };
    let here = sched::affinity(Tid::current()).unwrap();
    let processor = here.iter().last().unwrap();
    let terms = |priority| Terms {
        priority,
        processor: processor as u32,
        longest: Service::from_millis(1),
        tolerance: Service::ZERO,
    };
    region.limit(terms(1));
    let refused = at(Rank::Fair).unwrap_err();
    let wanted = format!("FIFO priority 1 on processor {processor} alone");
    assert!(refused.contains(&wanted), "{refused}");
    assert!(refused.contains("SCHED_OTHER"), "{refused}");
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let fifo = |priority, processor| Rank::Fifo {
        priority,
        processor,
    };
    let refused = at(fifo(2, Some(processor))).unwrap_err();
    assert!(refused.contains("SCHED_FIFO priority 2"), "{refused}");
    if here.len() > 1 {
        let refused = at(fifo(1, None)).unwrap_err();
        assert!(refused.contains(&format!("on {here}")), "{refused}");
    }
    assert_eq!(at(fifo(1, Some(processor))), Ok(()));
}
