//! The live host does what every host must do.
//!
//! Needs the rights of a live host and two processors; about half a minute. Everything is judged by order, counts and service, and
//! reservations apart from what the witness saw disturbed.

mod common;

use laxity_conformance::{Tolerance, cases};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::enforce::Witness;
use laxity_model::{ProcessorId, Service, Span};

const PROCESSORS: u16 = 2;

/// By design, and not by how a machine happens to do:
///
/// * a run ends when its threads have seen that it is over, which the slowest step decides;
/// * a slot is kept within 5 %, and a piece of work may be cut by two switches;
/// * one period in five may miss something that no witness saw: it wakes once a millisecond and reports from 100 µs, and less than that takes
///   a whole slot of 100 µs. What a quiet machine reaches is measured elsewhere; a slot that is short or late by rule fails every period;
/// * half of the periods may be disturbed, as one stall spoils three of them; the rest still shows how the host keeps its promises.
fn tolerance() -> Tolerance {
    Tolerance {
        processors: PROCESSORS,
        lateness: Span::from_millis(500),
        service_ppm: 50_000,
        service_each: Service::from_micros(20),
        kept_ppm: 800_000,
        disturbed_ppm: 500_000,
    }
}

fn host(processors: u16) -> LiveHost {
    let config = LiveConfig::detect(processors).expect("so many processors may be used");
    LiveHost::new(LiveConfig {
        witness: Some(Witness::new(ProcessorId(0))),
        ..config
    })
}

#[test]
fn linux_conforms() {
    let _lock = common::live_lock();
    let wanted = [Right::RealTime, Right::Processors(usize::from(PROCESSORS))];
    let Some(_turn) = rights::require(&wanted) else {
        return;
    };
    let (mut one, mut two) = (host(1), host(2));
    let mut failures = Vec::new();
    for case in cases(PROCESSORS) {
        let host = if case.processors == 1 {
            &mut one
        } else {
            &mut two
        };
        if let Err(failure) = (case.run)(host, &tolerance()) {
            failures.push(format!("{} ({}): {failure}", case.name, case.shows));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
