//! What a live driver records of packets is what a run records of them, over the same story.

use laxity::net::buffers::{Buffer, Filled, PoolSize, Sending};
use laxity::net::client::{Client, Context, Effects, Rank};
use laxity::net::driver::{Driver, Host, Interest, Limits};
use laxity::net::{EventLog, Flow, FlowOptions, Frames, Options};
use laxity_model::nif::filter::Filter;
use laxity_model::nif::link::{Link as _, Memory};
use laxity_model::{ActivityId, Event, EventKind, Instant, PortId, ProcessorId};
use laxity_net::clients::early;
use laxity_net::emulated::{Faults, Wire};

use super::support::{datagram, eventually, next, over_udp, send, tells};

const TO: &str = "10.0.0.2:7";
const BUFFERS: u32 = 2;
const DRIVER: ActivityId = ActivityId(3);
const THREAD: ActivityId = ActivityId(4);

/// So many packets to a client with fewer buffers, of lengths that tell them apart.
fn arriving() -> Vec<Vec<u8>> {
    (0..3)
        .map(|more| datagram("10.0.0.1:9", TO, &vec![0; 18 + more]))
        .collect()
}

/// What can be the same on every host: neither instants, nor who says when a packet arrived.
fn story(events: &[(EventKind, [u64; 2])]) -> Vec<(EventKind, [u64; 2])> {
    let told = events.iter().map(|(kind, args)| match kind {
        EventKind::Arrive | EventKind::Deliver => (*kind, [0, args[1] & 0xffff_ffff]),
        _ => (*kind, *args),
    });
    told.collect()
}

/// As a program's driver and threads record it.
#[derive(Default)]
struct Recorded(Vec<(EventKind, [u64; 2])>);

impl Effects for Recorded {
    fn put(&mut self, _: PortId, _: [u64; 2]) -> bool {
        false
    }

    fn raise(&mut self, _: ActivityId, _: Rank, _: Instant) {}

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        self.0.push((kind, args));
    }
}

struct Sends;

impl<M: Memory> Client<M> for Sends {
    fn receive(&mut self, _: Buffer<M, Filled>, _: &mut Context<'_>) {}
}

/// The story as a run of the twin tells it, where one packet comes after the other is done.
fn emulated() -> Vec<(EventKind, [u64; 2])> {
    let (_wire, near, mut far) = Wire::new(Faults::default(), 1);
    let mut recorded = Recorded::default();
    let mut driver = Driver::new(
        near,
        Frames::new(None, 1),
        Limits::default(),
        Host::default(),
    )
    .unwrap();
    let host = Host::default();
    let (client, queue) = early::client(BUFFERS as usize, None, &host.sleeper);
    let filter = Filter::parse("udp dst port 7", None).unwrap();
    let size = PoolSize::fixed(BUFFERS);
    let registered = driver
        .register(Interest::In(&filter), size, client)
        .unwrap();
    registered.pool.give(BUFFERS);
    let sender = driver
        .register(Interest::Nothing, PoolSize::fixed(1), Sends)
        .unwrap();
    for packet in arriving() {
        let mut memory = far.allocate(1).unwrap().remove(0);
        memory[..packet.len()].copy_from_slice(&packet);
        far.send(memory, packet.len(), Instant::ZERO).unwrap();
        driver.poll(Instant::ZERO, &mut recorded).unwrap();
    }
    while let Some(packet) = queue.try_next().unwrap() {
        recorded.record(EventKind::Deliver, [0, packet.bytes().len() as u64]);
    }
    let filled = sender.pool.take().unwrap().fill(&arriving()[0]).unwrap();
    let sending = Sending {
        tag: 5,
        ..Sending::default()
    };
    filled.send(sending).unwrap();
    driver.poll(Instant::ZERO, &mut recorded).unwrap();
    driver.poll(Instant::ZERO, &mut recorded).unwrap();
    recorded.0
}

#[test]
fn a_live_driver_records_a_packets_way_as_a_run_does() {
    let log = |activity| EventLog::new(64, activity, ProcessorId(0));
    let ((events, mut driver), (taken, mut thread)) = (log(DRIVER), log(THREAD));
    let (interface, far) = over_udp(Options {
        events: Some(events),
        ..Options::default()
    });
    let flow = Flow {
        is_tcp: false,
        own: ([10, 0, 0, 2], 7).into(),
        far: None,
    };
    let options = FlowOptions {
        buffers: BUFFERS,
        raises: None,
    };
    let mut queue = interface.flow(flow, &options).unwrap();
    queue.record(taken);
    let (client, told) = tells();
    let sender = interface.sender(1, client).unwrap();
    for (before, packet) in (0..).zip(arriving()) {
        far.send(&packet).unwrap();
        eventually("it came", || interface.counters().unwrap().came() > before);
    }
    // Their buffers would be given again, which is no part of the story.
    let kept: Vec<_> = std::iter::from_fn(|| queue.try_next().unwrap()).collect();
    send(&sender.pool, &arriving()[0], 5);
    next(&told);
    assert_eq!(kept.len(), BUFFERS as usize);
    let (mut events, mut delivered) = (Vec::new(), Vec::new());
    driver.drain(&mut events);
    thread.drain(&mut delivered);
    let sent = events
        .iter()
        .position(|event| event.kind == EventKind::Transmit);
    events.splice(sent.unwrap()..sent.unwrap(), delivered);
    let is_in_order = events.is_sorted_by_key(|event: &Event| event.at);
    assert!(is_in_order && driver.lost() + thread.lost() == 0);
    let own = |event: &Event| match event.kind {
        EventKind::Deliver => THREAD,
        _ => DRIVER,
    };
    assert!(events.iter().all(|event| event.activity == own(event)));
    let live: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.args))
        .collect();
    assert_eq!(story(&live), story(&emulated()));
    // When it arrived is an instant of this machine's.
    assert!(events[0].args[0] > 0 && events[0].args[0] <= events[0].at.as_nanos());
}

/// Whoever does not read loses events, and is told how many; the driver goes on.
#[test]
fn events_that_find_no_room_are_counted_and_no_packet_is() {
    let (events, mut reader) = EventLog::new(2, DRIVER, ProcessorId(0));
    let (interface, far) = over_udp(Options {
        events: Some(events),
        ..Options::default()
    });
    let (client, _told) = tells();
    let _client = interface.register("udp", 8, client).unwrap();
    for (before, packet) in (0..).zip(arriving()) {
        far.send(&packet).unwrap();
        eventually("it came", || interface.counters().unwrap().came() > before);
    }
    drop(interface);
    let mut read = Vec::new();
    assert_eq!((reader.drain(&mut read), reader.lost()), (2, 4));
}
