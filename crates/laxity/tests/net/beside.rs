//! Slots on a processor that has a driver of this process.

use laxity::doctor::rights::{self, Right};
use laxity::net::{Costs, Most, Options};
use laxity::{Enforcer, Grade, Request, Service, Span};
use laxity_linux::os::sched::{self, Tid};

use super::support::{datagram, eventually, over_udp};

const FAR: &str = "10.0.0.1:4000";
const OWN: &str = "10.0.0.2:5004";

/// How slots are granted beside a driver that is opened so, on its processor; and when it has taken so many packets.
fn granted_beside(bounded: Option<(Most, Costs)>, packets: u64) -> Option<[Grade; 2]> {
    let usable = sched::affinity(Tid::current()).unwrap();
    let processor = usable.iter().next()?;
    let options = Options {
        processor: Some(processor),
        most: bounded.map(|(most, _)| most),
        costs: bounded.map(|(_, costs)| costs),
        ..Options::default()
    };
    let (interface, far) = over_udp(options);
    let request = Request::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    let request = request.by(Enforcer::Slots).on(processor);
    let reserved = request.reserve().unwrap();
    let granted = reserved.grade();
    for _ in 0..packets {
        far.send(&datagram(FAR, OWN, b"")).unwrap();
    }
    eventually("they are taken", || {
        interface.counters().unwrap().account.arrived == packets
    });
    Some([granted, reserved.grade()])
}

/// Nobody has seen the driver take anything yet.
#[test]
fn slots_beside_a_driver_that_nobody_bounds_are_unenforced_from_the_start() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let Some(Grade::Unenforced { reason }) = granted_beside(None, 0).map(|[granted, _]| granted)
    else {
        panic!("nobody says what it takes");
    };
    let named = "network driver of udp:";
    assert!(
        reason.contains(named) && reason.contains("nobody bounds what it takes"),
        "{reason}"
    );
}

#[test]
fn slots_beside_a_driver_that_is_bounded_are_admitted_below_it() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let most = Most::new(4, Span::from_millis(8)).unwrap();
    let costs = Costs {
        interrupt: Service::from_micros(20),
        packet: Service::from_micros(5),
        ..Costs::default()
    };
    // In a quarter of a second, which is more than goes unnoticed of one that nobody admitted.
    for grade in granted_beside(Some((most, costs)), 120).unwrap() {
        let reason = grade.reason().unwrap_or_default();
        assert!(!reason.contains("udp:"), "{reason}");
    }
}
