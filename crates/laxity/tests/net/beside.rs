//! Slots on a processor that has a driver of this process.

use std::time::{Duration, Instant};

use laxity::doctor::rights::{self, Right};
use laxity::net::buffers::{Buffer, Filled};
use laxity::net::client::{Client, Context};
use laxity::net::{AnyMemory, Costs, Most, Options};
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

/// A client that works on each packet for so long, in the driver's thread.
struct Works(Duration);

impl Client<AnyMemory> for Works {
    fn receive(&mut self, packet: Buffer<AnyMemory, Filled>, _: &mut Context<'_>) {
        let until = Instant::now() + self.0;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        packet.emptied().give().ok();
    }
}

/// A driver that is admitted below slots with 5 us for each packet, whose client takes so long over it, in a flood: why the slots are not enforced when so many have been taken, and why those are not that
/// are asked for afterwards; as soon as there is a reason for the former.
fn beside_a_client_that_takes(each: Duration, packets: u64) -> Option<[String; 2]> {
    let usable = sched::affinity(Tid::current()).unwrap();
    let processor = usable.iter().next()?;
    let options = Options {
        processor: Some(processor),
        most: Most::new(4, Span::from_millis(8)),
        costs: Some(Costs {
            interrupt: Service::from_micros(80),
            packet: Service::from_micros(5),
            ..Costs::default()
        }),
        ..Options::default()
    };
    let (interface, far) = over_udp(options);
    let client = interface.register("udp dst port 5004", 64, Works(each));
    client.unwrap().pool.give(64);
    let request = Request::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    let request = request.by(Enforcer::Slots).on(processor);
    let of_driver = |grade: Grade| {
        let reasons = grade.reason().unwrap_or_default().split("; ");
        let of_driver: Vec<_> = reasons.filter(|one| one.contains("udp:")).collect();
        of_driver.join("; ")
    };
    let reserved = request.reserve().unwrap();
    assert_eq!(of_driver(reserved.grade()), "");
    let mut sent = 0;
    eventually("they are taken, or too long", || {
        let arrived = interface.counters().unwrap().account.arrived;
        // The kernel has room for more than these.
        while sent < packets && sent < arrived + 64 {
            far.send(&datagram(FAR, OWN, b"")).unwrap();
            sent += 1;
        }
        arrived == packets || !of_driver(reserved.grade()).is_empty()
    });
    let found = of_driver(reserved.grade());
    drop(reserved);
    let later = request.reserve().unwrap();
    Some([found, of_driver(later.grade())])
}

/// By some thirty looks at it, on a machine that halts us as it likes.
#[test]
fn slots_beside_a_client_that_keeps_to_what_was_said_stay_enforced() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let found = beside_a_client_that_takes(Duration::ZERO, 1_200);
    assert_eq!(found.unwrap(), ["", ""]);
}

#[test]
fn slots_beside_a_client_that_takes_longer_than_was_said_become_unenforced_by_its_drivers_name() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let found = beside_a_client_that_takes(Duration::from_micros(200), 8_000);
    let [while_held, afterwards] = found.unwrap();
    assert!(
        while_held.starts_with("network driver of udp:")
            && while_held.contains("takes longer than was said of it"),
        "{while_held}"
    );
    assert!(
        afterwards.contains("nobody bounds what it takes"),
        "{afterwards}"
    );
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
