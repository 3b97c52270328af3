//! What an interface does while it is open, over UDP.

use std::sync::mpsc::channel;

use laxity::net::buffers::{Buffer, Filled, Gathered, Sending};
use laxity::net::capture::recorder;
use laxity::net::client::{Client, Context};
use laxity::net::driver::Handed;
use laxity::net::exchange::{Outcome, Reason};
use laxity::net::filter::Filter;
use laxity::net::registry::Fallback;
use laxity::net::{AnyMemory, Error, Flow, FlowOptions, Interface, Options};
use laxity::study::Priority;
use laxity::{ActivityId, Grade, SemaphoreId, now};
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_model::PortId;

use super::support::{Heard, datagram, eventually, next, over_udp, send, tells};

const FAR: &str = "10.0.0.1:1000";
const OWN: &str = "10.0.0.2:2000";

#[test]
fn a_packet_goes_to_the_client_whose_filter_is_most_specific_and_all_are_counted() {
    let (interface, far) = over_udp(Options::default());
    let (one, of_one) = tells();
    let one = interface.register("udp dst port 2000", 5, one).unwrap();
    assert_eq!(one.pool.give(4), 4);
    let (all, of_all) = tells();
    interface.peek("ip", all).unwrap();
    let (tap, of_tap) = tells();
    interface.tap("", tap).unwrap();
    let ours = datagram(FAR, OWN, b"ours");
    let other = datagram(FAR, "10.0.0.2:2001", b"other");
    let nobodys = [[2; 12].as_slice(), &[8, 6], &[0; 46]].concat();
    for frame in [&ours, &other, &nobodys] {
        far.send(frame).unwrap();
    }
    assert_eq!(next(&of_one), Heard::Packet(ours.clone()));
    assert_eq!(next(&of_all), Heard::Packet(other.clone()));
    for frame in [&ours, &other, &nobodys] {
        assert_eq!(next(&of_tap), Heard::Packet(frame.clone()));
    }
    send(&one.pool, &other, 7);
    let mut sent = [0; 100];
    let length = far.recv(&mut sent).unwrap();
    assert_eq!(sent[..length], other);
    assert_eq!(next(&of_one), Heard::Sent(7, Ok(())));
    assert_eq!(next(&of_tap), Heard::Packet(other));
    let counters = interface.counters().unwrap();
    let account = counters.account;
    assert_eq!(
        (counters.came(), account.swapped, account.peeked),
        (3, 1, 1)
    );
    // An ARP packet of zeros is no other's.
    assert_eq!(account.dropped(Reason::Nobodys), 1);
    assert_eq!(one.pool.census().total(), 5);
}

/// Over UDP nobody copies a frame before the kernel has it, in how many pieces ever it lies.
#[test]
fn what_is_gathered_leaves_from_where_it_is() {
    let (interface, far) = over_udp(Options::default());
    let client = interface.register("udp", 1, tells().0).unwrap();
    let frame = datagram(FAR, OWN, b"in three pieces");
    let (header, rest) = frame.split_at(20);
    let (address, payload) = rest.split_at(9);
    let filled = client.pool.take().unwrap().fill(header).unwrap();
    let behind = Gathered::default()
        .with(address.to_vec())
        .with(payload.to_vec());
    filled.send_gathered(behind, Sending::default()).unwrap();
    let mut sent = [0; 100];
    let length = far.recv(&mut sent).unwrap();
    assert_eq!(sent[..length], frame);
    let handed = Handed {
        frames: 1,
        gathered: 1,
        copies: 0,
    };
    assert_eq!(interface.counters().unwrap().handed, handed);
}

#[test]
fn refusals_say_what_is_wrong() {
    let (interface, _far) = over_udp(Options::default());
    let refused = |filter: &str| interface.peek(filter, tells().0).unwrap_err().to_string();
    assert!(
        refused("udp and not port 1").contains("column 9"),
        "{}",
        refused("udp and not port 1")
    );
    interface.peek("udp port 5", tells().0).unwrap();
    let overlap = refused("udp src port 5");
    assert!(
        overlap.contains("`udp src port 5` and `udp port 5`") || overlap.is_empty(),
        "{overlap}"
    );
    assert!(interface.leave_rest(Fallback::Kernel).is_err());
    interface.leave_rest(Fallback::Nobody).unwrap();
    let early = laxity::net::EarlyOptions {
        flows: 1,
        buffers: 1,
        rest: laxity::net::Rest::Kernel,
    };
    let options = Options {
        early: Some(early),
        ..Options::default()
    };
    let refused = Interface::open("udp:127.0.0.1:0-127.0.0.1:9", options);
    assert!(matches!(refused, Err(Error::NotEarly(_))));
    assert!(matches!(
        Interface::open("a:b:c", Options::default()),
        Err(Error::Open(_))
    ));
}

#[test]
fn a_flows_threads_take_its_packets_and_are_raised_at_arrival() {
    let (interface, far) = over_udp(Options::default());
    let (activity, low) = (ActivityId(5), Priority::new(6).unwrap());
    let flow = Flow {
        is_tcp: false,
        own: OWN.parse().unwrap(),
        far: Some(FAR.parse().unwrap()),
    };
    let options = FlowOptions {
        buffers: 2,
        raises: Some((activity, low)),
    };
    let queue = interface.flow(flow, &options).unwrap();
    assert!(!queue.is_early());
    assert!(interface.raises(activity, Some(Tid::current())));
    let before = sched::policy(Tid::current()).unwrap();
    let frames = [b"1", b"2", b"3"].map(|payload| datagram(FAR, OWN, payload));
    far.send(&datagram("10.0.0.1:1001", OWN, b"another flow's"))
        .unwrap();
    for frame in &frames {
        far.send(frame).unwrap();
    }
    let first = queue.next(None).unwrap();
    let raised = Ok(Policy::Other { nice: 4 });
    eventually("it is raised", || sched::policy(Tid::current()) == raised);
    assert!(first.arrived().is_some());
    let second = queue.next(None).unwrap();
    assert_eq!([&*first, &*second], [&frames[0][..], &frames[1]]);
    eventually("the third finds no buffer", || {
        queue.counts().unwrap().0.dropped(Reason::NoBuffer) == 1
    });
    assert!(queue.try_next().unwrap().is_none());
    assert_eq!(queue.pool().census().held, 2);
    drop((first, second));
    assert_eq!(queue.pool().census().given, 2);
    far.send(&frames[2]).unwrap();
    assert_eq!(*queue.next(None).unwrap(), frames[2]);
    interface.raises(activity, None);
    sched::set_policy(Tid::current(), before).ok();
    // Its filter is free again when it is gone.
    let id = queue.id();
    drop(queue);
    let again = interface.flow(flow, &options).unwrap();
    assert_eq!(again.id(), id);
}

/// Puts what arrives into a port.
struct Puts;

impl Client<AnyMemory> for Puts {
    fn receive(&mut self, packet: Buffer<AnyMemory, Filled>, context: &mut Context<'_>) {
        context.put(PortId(3), [packet.bytes().len() as u64, 0]);
        let missing: SemaphoreId = PortId(4);
        context.signal(missing);
    }
}

#[test]
fn what_a_client_puts_arrives_at_the_port() {
    let (tell, told) = channel();
    let put = move |payload: [u64; 2]| tell.send(payload).is_ok();
    let options = Options {
        ports: vec![(PortId(3), Box::new(put))],
        ..Options::default()
    };
    let (interface, far) = over_udp(options);
    let client = interface.register("ip", 1, Puts).unwrap();
    client.pool.give(1);
    far.send(&datagram(FAR, OWN, &[0; 100])).unwrap();
    assert_eq!(told.recv().unwrap(), [142, 0]);
}

#[test]
fn what_a_tap_records_says_whose_it_is_and_what_became_of_it() {
    let (interface, far) = over_udp(Options::default());
    let client = interface
        .register("udp dst port 2000", 1, tells().0)
        .unwrap();
    let (recorder, mut recording) = recorder(4, 64);
    interface.tap("udp", recorder).unwrap();
    let long = datagram(FAR, OWN, &[7; 100]);
    far.send(&long).unwrap();
    client.pool.give(1);
    far.send(&datagram(FAR, "10.0.0.2:1", b"")).unwrap();
    let until = Some(now() + laxity::Span::from_secs(20));
    let first = recording.next(until).unwrap();
    assert_eq!((first.length, &first.bytes[..]), (142, &long[..64]));
    assert_eq!(first.whose, Some(client.id));
    assert!(matches!(
        first.outcome,
        Some(Outcome::Dropped(Reason::NoBuffer) | Outcome::Swapped)
    ));
    let second = recording.next(until).unwrap();
    assert_eq!(
        (second.whose, second.outcome),
        (None, Some(Outcome::Dropped(Reason::Nobodys)))
    );
    // Four may wait, of which two are in our hands.
    for _ in 0..5 {
        far.send(&long).unwrap();
    }
    eventually("three are missed", || recording.missed() == 3);
    recording.done(first);
    far.send(&long).unwrap();
    eventually("it is recorded", || recording.next(Some(now())).is_ok());
    drop(interface);
    while let Ok(captured) = recording.next(None) {
        recording.done(captured);
    }
}

#[test]
fn no_more_packets_are_taken_in_a_time_than_may_be() {
    let every = laxity::Span::from_millis(40);
    let mut options = Options {
        most: laxity::net::Most::new(5, every),
        ..Options::default()
    };
    options.limits.per_poll = 1;
    let (interface, far) = over_udp(options);
    let (recorder, mut recording) = recorder(64, 64);
    interface.tap("", recorder).unwrap();
    for _ in 0..20 {
        far.send(&datagram(FAR, OWN, b"")).unwrap();
    }
    let mut reads = Vec::new();
    while reads.len() < 20 {
        reads.push(recording.next(None).unwrap().at);
    }
    // Over UDP a packet arrives when it is read.
    for six in reads.windows(6) {
        assert!(six[5] >= six[0] + every, "{reads:?}");
    }
}

#[test]
fn a_driver_without_the_right_runs_and_says_why_it_is_not_enforced() {
    use laxity_linux::doctor::rights::{self, Right};
    let (interface, far) = over_udp(Options::default());
    match (interface.grade(), rights::missing(Right::RealTime)) {
        (Grade::Enforced, None) => {}
        (Grade::Unenforced { reason }, Some(_)) => assert!(!reason.is_empty()),
        (grade, missing) => panic!("{grade}, {missing:?}"),
    }
    far.send(&datagram(FAR, OWN, b"")).unwrap();
    eventually("it arrives", || {
        interface.counters().unwrap().account.arrived == 1
    });
    assert!(Filter::parse("", None).is_ok());
}
