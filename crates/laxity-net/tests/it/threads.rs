//! Clients' threads beside their driver's.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use laxity_model::nif::exchange::Reason;
use laxity_model::nif::link::Link;
use laxity_model::nif::registry::{Circuits, Demultiplex};
use laxity_model::policy::Rank;
use laxity_model::{ActivityId, Instant, PortId, Priority};
use laxity_net::Driver;
use laxity_net::buffers::{PoolSize, Sending};
use laxity_net::client::Effects;
use laxity_net::clients::{NoPacket, Queue, early, late};
use laxity_net::driver::{Handle, Host, Interest, Limits, Registered};
use laxity_net::emulated::{End, Faults, Null, Wire};

use crate::support::{Keeper, Own, circuit, packet, send};

/// Polls until it is told to end.
fn serve<L: Link, D: Demultiplex>(mut driver: Driver<L, D>, ended: &AtomicBool) -> Driver<L, D> {
    while !ended.load(Ordering::SeqCst) {
        driver.poll(Instant::ZERO, &mut ()).unwrap();
        thread::yield_now();
    }
    driver
}

/// The sum of the numbers in all packets that this thread gets.
fn take(queue: &Queue<Box<[u8]>>, taken: &AtomicU32) -> u64 {
    let mut sum = 0;
    while let Ok(packet) = queue.next(None) {
        let number = packet.bytes()[4..8].try_into().unwrap();
        sum += u64::from(u32::from_be_bytes(number));
        packet.emptied().give().ok();
        taken.fetch_add(1, Ordering::SeqCst);
    }
    sum
}

/// Registers one client after the other, and unregisters each.
fn register(handle: &Handle<End, Circuits>) {
    for channel in 10..60 {
        let (client, _) = late::client(1, &Host::default().sleeper);
        let registered = handle.ask(move |driver| {
            let interest = Interest::In(&circuit(channel));
            let registered = driver.register(interest, PoolSize::fixed(1), client);
            registered.unwrap().id
        });
        let id = registered.wait().unwrap();
        let ended = handle.ask(move |driver| driver.unregister(id));
        assert!(ended.wait().unwrap().is_some());
    }
}

#[test]
fn threads_of_a_late_client_share_its_queue_while_others_register_and_no_packet_is_lost() {
    const PACKETS: u32 = 20_000;
    let (_wire, near, far) = Wire::new(Faults::default(), 1);
    let driver = |end| Driver::new(end, Circuits::default(), Limits::default(), Host::default());
    let (mut near, mut far) = (driver(near).unwrap(), driver(far).unwrap());
    let (client, queue) = late::client(32, &Host::default().sleeper);
    let (interest, size) = (Interest::In(&circuit(1)), PoolSize::fixed(32));
    let receiver = far.register(interest, size, client).unwrap();
    receiver.pool.give(32);
    let size = PoolSize::fixed(8);
    let sender = near.register(Interest::Nothing, size, Keeper::default());
    let sender = sender.unwrap().pool;
    let (handle, ended) = (far.handle(), AtomicBool::new(false));
    let taken = AtomicU32::new(0);
    thread::scope(|scope| {
        let far = scope.spawn(|| serve(far, &ended));
        let near = scope.spawn(|| serve(near, &ended));
        let takers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| take(&queue, &taken)))
            .collect();
        let registrar = scope.spawn(|| register(&handle));
        for number in 0..PACKETS {
            // No more on their way than buffers are given: so none finds none.
            while number - taken.load(Ordering::SeqCst) >= 32 {
                thread::yield_now();
            }
            let mut bytes = packet(1, 0, 60);
            bytes[4..8].copy_from_slice(&number.to_be_bytes());
            let filled = sender.wait(None).unwrap().fill(&bytes).unwrap();
            filled.send(Sending::default()).unwrap();
        }
        registrar.join().unwrap();
        while taken.load(Ordering::SeqCst) < PACKETS {
            thread::yield_now();
        }
        ended.store(true, Ordering::SeqCst);
        near.join().unwrap();
        let far = far.join().unwrap();
        let account = *far.account_of(receiver.id).unwrap();
        let packets = u64::from(PACKETS);
        assert_eq!((account.swapped, account.arrived), (packets, packets));
        drop(far);
        let sums = takers.into_iter().map(|taker| taker.join().unwrap());
        assert_eq!(sums.sum::<u64>(), packets * (packets - 1) / 2);
        assert_eq!(receiver.pool.census().free, 32);
    });
}

/// A driver of an interface that loses what is sent, and its client.
fn with_one_buffer() -> (Driver<Null, Circuits>, Registered<Box<[u8]>>) {
    let (key, limits) = (Circuits::default(), Limits::default());
    let mut driver = Driver::new(Null::new(0), key, limits, Host::default()).unwrap();
    let (size, keeper) = (PoolSize::fixed(1), Keeper::default());
    let client = driver.register(Interest::Nothing, size, keeper).unwrap();
    (driver, client)
}

#[test]
fn whoever_sends_and_waits_gets_the_buffer_back_even_from_a_driver_that_ends() {
    let (driver, client) = with_one_buffer();
    let (ended, filled) = (
        AtomicBool::new(false),
        client.pool.take().unwrap().fill(&[1; 60]),
    );
    let filled = filled.unwrap();
    let empty = thread::scope(|scope| {
        let server = scope.spawn(|| serve(driver, &ended));
        let sent = filled.send_and_wait(Sending::default()).unwrap();
        assert_eq!(sent.outcome, Ok(()));
        let mut filled = sent.buffer.filled(60).unwrap();
        // One is sent after the other, and the driver ends at any of them.
        let waiter = scope.spawn(move || {
            loop {
                match filled.send_and_wait(Sending::default()) {
                    Ok(sent) if sent.outcome.is_ok() => filled = sent.buffer.filled(60).unwrap(),
                    Ok(sent) => return sent.buffer,
                    Err(back) => return back.buffer.emptied(),
                }
            }
        });
        ended.store(true, Ordering::SeqCst);
        drop(server.join().unwrap());
        waiter.join().unwrap()
    });
    assert_eq!(client.pool.census().held, 1);
    drop(empty);
    assert_eq!(client.pool.census().free, 1);
}

#[test]
fn whoever_waits_for_a_buffer_is_woken_by_one_that_is_let_go_of_and_by_the_end() {
    let (mut driver, client) = with_one_buffer();
    let held = client.pool.take().unwrap();
    assert!(client.pool.wait(Some(Instant::ZERO)).is_err());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.pool.wait(None).is_ok());
        drop(held);
        assert!(waiter.join().unwrap());
        let _held = client.pool.take().unwrap();
        let waiter = scope.spawn(|| client.pool.wait(None).is_err());
        driver.unregister(client.id);
        assert!(waiter.join().unwrap());
    });
}

/// What clients ask of the host.
#[derive(Default)]
struct Raised(Vec<(ActivityId, Rank, Instant)>);

impl Effects for Raised {
    fn put(&mut self, _: PortId, _: [u64; 2]) -> bool {
        true
    }

    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        self.0.push((activity, rank, at));
    }
}

#[test]
fn an_early_client_has_its_own_buffers_and_raises_its_activity_when_its_first_packet_arrives() {
    let (_wire, near, far) = Wire::new(Faults::default(), 1);
    let driver = |end| Driver::new(end, Circuits::default(), Limits::default(), Host::default());
    let (mut near, mut far) = (driver(near).unwrap(), driver(far).unwrap());
    let raises = Some((ActivityId(3), Priority::REAL_TIME));
    let (client, queue) = early::client(2, raises, &Host::default().sleeper);
    let own = (0..2).map(|_| Own([0; Own::ROOM])).collect();
    let interest = Interest::In(&circuit(5));
    let registered = far.register_own(interest, own, PoolSize::fixed(0), client);
    let registered = registered.unwrap();
    let own = &registered.own;
    own.give(2);
    let size = PoolSize::fixed(8);
    let sender = near
        .register(Interest::Nothing, size, Keeper::default())
        .unwrap();
    let mut raised = Raised::default();
    let at = Instant::from_micros;
    let mut round = |time| {
        for fill in 0..2 {
            send(&sender.pool, &packet(5, fill, 60));
        }
        near.poll(at(time), &mut ()).unwrap();
        far.poll(at(time + 1), &mut raised).unwrap();
        near.poll(at(time + 1), &mut ()).unwrap();
    };
    round(10);
    assert_eq!(queue.try_next().unwrap().unwrap().bytes(), packet(5, 0, 60));
    own.give(1);
    round(20);
    let rank = Rank::Priority(Priority::REAL_TIME);
    assert_eq!(raised.0, [(ActivityId(3), rank, at(10))]);
    assert_eq!(queue.try_next().unwrap().unwrap().bytes(), packet(5, 1, 60));
    assert!(queue.try_next().unwrap().is_some() && queue.try_next().unwrap().is_none());
    let account = far.unregister(registered.id).unwrap();
    assert_eq!((account.copied, account.dropped(Reason::NoBuffer)), (3, 1));
    assert!(matches!(queue.next(None), Err(NoPacket::Over)));
}
