//! Interfaces that go down, and come up, and are deleted; drivers that end; clients that panic.

use std::sync::atomic::Ordering;

use laxity_model::nif::exchange::Reason;
use laxity_model::nif::link::{LinkError, Memory};
use laxity_model::nif::most::Costs;
use laxity_model::policy::Rank;
use laxity_model::{
    ActivityId, Host as _, Instant, InterruptLevel, Placement, PortId, ProcessorId, Program,
    SemaphoreId, Span, Step,
};
use laxity_net::bodies::{Handler, Interrupt, Signalling};
use laxity_net::buffers::{Buffer, Filled, PoolSize, Sending, Unavailable};
use laxity_net::client::{Client, Context, Effects, News};
use laxity_net::clients::{Queue, early};
use laxity_net::driver::{DriverError, Host, Interest, Limits, NoAnswer, Registered};
use laxity_net::emulated::Faults;
use laxity_sim::{Profile, Twin};

use crate::support::{Counted, Keeper, Pair, circuit, packet, pair, send};

/// A wire so slow that what is sent stays below.
fn slow() -> (Pair, Keeper<Counted>, Registered<Counted>) {
    let faults = Faults {
        rate: 1000,
        ..Faults::default()
    };
    let mut pair = pair(faults, Limits::default());
    let keeper = Keeper::default();
    let size = PoolSize::fixed(6);
    let client = pair
        .near
        .register(Interest::In(&circuit(1)), size, keeper.clone());
    (pair, keeper, client.unwrap())
}

fn send_tagged(client: &Registered<Counted>, tag: u64) {
    let filled = client.pool.take().unwrap().fill(&[0; 60]).unwrap();
    let sending = Sending {
        tag,
        ..Sending::default()
    };
    filled.send(sending).unwrap();
}

#[test]
fn a_deleted_interface_ends_its_driver_and_every_buffer_comes_home() {
    let (mut pair, keeper, client) = slow();
    client.pool.give(1);
    (0..4).for_each(|tag| send_tagged(&client, tag));
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    let census = client.pool.census();
    assert_eq!((census.given, census.sending, census.free), (1, 4, 1));
    pair.wire.delete();
    for _ in 0..2 {
        let polled = pair.near.poll(Instant::ZERO, &mut ());
        assert_eq!(polled, Err(DriverError::Link(LinkError::Gone)));
    }
    assert_eq!(client.pool.census().free, 6);
    let mut sent = keeper.sent();
    sent.sort_by_key(|(tag, _)| *tag);
    let gone = |tag| (tag, Err(LinkError::Gone));
    assert_eq!(sent, [gone(0), gone(1), gone(2), gone(3)]);
    assert_eq!(keeper.news(), [News::Gone]);
    assert!(matches!(client.pool.take(), Err(Unavailable::Closed)));
    let again = pair
        .near
        .register(Interest::Nothing, PoolSize::fixed(0), keeper);
    assert!(again.is_err());
}

/// Nothing is lost of what comes no more.
#[test]
fn a_run_whose_interface_is_deleted_fails() {
    let Pair { wire, near, .. } = pair(Faults::default(), Limits::default());
    let mut program = Program::new(1);
    let [raised, doorbell] = [(); 2].map(|()| program.semaphore(0));
    let interrupt = Interrupt {
        raised,
        doorbell,
        unmask: Box::new(|_| {}),
        costs: Costs::default(),
        most: None,
    };
    let (on, level) = (ProcessorId(0), Placement::Interrupt(InterruptLevel(5)));
    program.add("driver", on, level, Handler::new(near, interrupt));
    let deletes = move |context: &mut dyn laxity_model::Context| {
        wire.delete();
        context.signal(raised);
        Step::Finish
    };
    program.add("administrator", on, Placement::External, deletes);
    let ran = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_millis(5));
    let why = ran.expect_err("its interface is gone").to_string();
    assert!(why.contains("a network driver is gone"), "{why}");
}

#[test]
fn a_driver_that_is_dropped_leaves_every_buffer_at_home_or_where_it_is_held() {
    let (pair, keeper, client) = slow();
    let handle = pair.near.handle();
    let mut pair = pair;
    client.pool.give(2);
    send_tagged(&client, 7);
    send_tagged(&client, 8);
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    send_tagged(&client, 9);
    let held = client.pool.take().unwrap();
    drop(pair);
    assert_eq!(
        (client.pool.census().free, client.pool.census().held),
        (5, 1)
    );
    assert_eq!(keeper.news(), [News::Gone]);
    assert_eq!(keeper.sent().len(), 3);
    let back = held.give().unwrap_err();
    assert_eq!(back.why, Unavailable::Closed);
    let filled = back.buffer.fill(&[1]).unwrap();
    assert_eq!(
        filled.send(Sending::default()).unwrap_err().why,
        Unavailable::Closed
    );
    assert_eq!(client.pool.census().free, 6);
    assert_eq!(handle.ask(|_| ()).wait(), Err(NoAnswer));
}

/// It had not been told yet when the driver ended.
#[test]
fn what_has_left_is_told_so_though_its_driver_ends() {
    let mut pair = pair(Faults::default(), Limits::default());
    let keeper = Keeper::default();
    let size = PoolSize::fixed(1);
    let client = pair.near.register(Interest::Nothing, size, keeper.clone());
    let client = client.unwrap();
    send_tagged(&client, 7);
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    assert_eq!(keeper.sent(), []);
    drop(pair);
    assert_eq!(keeper.sent(), [(7, Ok(()))]);
}

/// Below, or where there was no room for it in the queue.
#[test]
fn nobody_is_told_of_a_frame_of_whoever_had_his_number_before() {
    let faults = Faults {
        rate: 1000,
        ..Faults::default()
    };
    let limits = Limits {
        queue: 1,
        ..Limits::default()
    };
    let mut pair = pair(faults, limits);
    let [first, second] = [(); 2].map(|()| Keeper::<Counted>::default());
    let size = PoolSize::fixed(3);
    let ends = pair.near.register(Interest::Nothing, size, first.clone());
    let ends = ends.unwrap();
    (0..3).for_each(|tag| send_tagged(&ends, tag));
    let polled = pair.near.poll_at_most(Instant::ZERO, &mut (), 1).unwrap();
    assert_eq!((polled.sent, polled.refused), (1, 0));
    pair.near.unregister(ends.id);
    let begins = pair.near.register(Interest::Nothing, size, second.clone());
    let begins = begins.unwrap();
    assert_eq!(begins.id, ends.id);
    for _ in 0..3 {
        pair.near.poll(Instant::MAX, &mut ()).unwrap();
    }
    assert_eq!((ends.pool.census().free, begins.pool.census().free), (3, 3));
    assert!(first.sent().is_empty() && second.sent().is_empty());
}

#[test]
fn while_an_interface_is_down_frames_come_back_unsent_and_clients_are_told_once() {
    let (mut pair, keeper, client) = slow();
    send_tagged(&client, 0);
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    pair.wire.go_down();
    send_tagged(&client, 1);
    for _ in 0..3 {
        pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    }
    assert_eq!(keeper.news(), [News::Down]);
    // What was below when it went down is not known to be lost.
    assert_eq!(keeper.sent(), [(0, Ok(())), (1, Err(LinkError::Down))]);
    pair.wire.go_up();
    send_tagged(&client, 2);
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    pair.near.poll(Instant::MAX, &mut ()).unwrap();
    assert_eq!(keeper.news(), [News::Up]);
    assert_eq!(keeper.sent(), [(2, Ok(()))]);
    assert_eq!(client.pool.census().free, 6);
}

#[test]
fn a_client_that_panics_ends_and_others_go_on() {
    let mut pair = pair(Faults::default(), Limits::default());
    let keeper = Keeper::<Counted>::default;
    let size = PoolSize::fixed(4);
    let sender = pair
        .near
        .register(Interest::Nothing, size, keeper())
        .unwrap();
    let (bad, good) = (keeper(), keeper());
    let first = pair
        .far
        .register(Interest::In(&circuit(1)), size, bad.clone())
        .unwrap();
    let second = pair
        .far
        .register(Interest::In(&circuit(2)), size, good.clone())
        .unwrap();
    assert_eq!((first.pool.give(4), second.pool.give(4)), (4, 4));
    bad.panics.store(true, Ordering::SeqCst);
    for channel in [1, 2, 1] {
        send(&sender.pool, &packet(channel, 1, 60));
    }
    for _ in 0..3 {
        pair.near.poll(Instant::ZERO, &mut ()).unwrap();
        pair.far.poll(Instant::ZERO, &mut ()).unwrap();
    }
    assert_eq!(good.bytes().len(), 1);
    assert_eq!(first.pool.census().free, 4);
    assert!(pair.far.account_of(first.id).is_none());
    let account = pair.far.account();
    let dropped = [Reason::Panicked, Reason::Nobodys].map(|reason| account.dropped(reason));
    assert_eq!((dropped, account.swapped), ([1, 1], 1));
    // Whether it panics over news or over what was sent is all the same.
    good.panics.store(true, Ordering::SeqCst);
    pair.wire.go_down();
    pair.far.poll(Instant::ZERO, &mut ()).unwrap();
    assert!(pair.far.account_of(second.id).is_none());
}

/// A client that queues nothing, as it panics first.
struct Panics<C>(#[allow(dead_code, reason = "its queue ends with it")] C);

impl<M: Memory, C: Send> Client<M> for Panics<C> {
    fn receive(&mut self, _: Buffer<M, Filled>, _: &mut Context<'_>) {
        panic!("as a module of its group may");
    }
}

/// Of each signal, whether the queue was at its end when it came.
struct Woken(Queue<Counted>, Vec<bool>);

impl Effects for Woken {
    fn put(&mut self, _: PortId, _: [u64; 2]) -> bool {
        self.1.push(self.0.try_next().is_err());
        true
    }

    fn raise(&mut self, _: ActivityId, _: Rank, _: Instant) {}
}

#[test]
fn all_who_wait_for_a_client_that_panics_are_woken_and_find_that_nothing_comes_any_more() {
    let mut pair = pair(Faults::default(), Limits::default());
    let size = PoolSize::fixed(4);
    let keeper = Keeper::<Counted>::default();
    let sender = pair.near.register(Interest::Nothing, size, keeper).unwrap();
    let (client, queue) = early::client(4, None, &Host::default().sleeper);
    let client = Signalling::new(Panics(client), SemaphoreId(0), 3);
    let client = pair.far.register(Interest::In(&circuit(1)), size, client);
    client.unwrap().pool.give(4);
    let mut woken = Woken(queue, vec![]);
    send(&sender.pool, &packet(1, 1, 60));
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    pair.far.poll(Instant::ZERO, &mut woken).unwrap();
    assert_eq!(woken.1, [true; 3]);
}
