//! Who is registered, for what, and who is not.

use laxity_model::nif::exchange::Reason;
use laxity_model::nif::qos::{Ranks, Terms};
use laxity_model::nif::registry::Fallback;
use laxity_model::nif::urgency::Stated;
use laxity_model::nif::urgency::Unit;
use laxity_model::{ActivityId, Instant, Span};
use laxity_net::buffers::{Message, Pool, PoolSize, Unavailable};
use laxity_net::client::Client;
use laxity_net::clients::{due, early, late};
use laxity_net::driver::{Host, Interest, Limits, RegisterError};
use laxity_net::emulated::Faults;

use crate::support::{Counted, Keeper, Own, Pair, circuit, packet, pair, send};

fn with_sender() -> (Pair, Pool<Counted>) {
    let mut pair = pair(Faults::default(), Limits::default());
    let size = PoolSize::fixed(4);
    let sender = pair
        .near
        .register(Interest::Nothing, size, Keeper::default());
    (pair, sender.unwrap().pool)
}

fn poll(pair: &mut Pair) {
    pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    pair.far.poll(Instant::ZERO, &mut ()).unwrap();
}

#[test]
fn a_filter_and_the_default_are_one_clients_until_it_ends() {
    let (mut pair, _) = with_sender();
    let far = &mut pair.far;
    let size = PoolSize::fixed(1);
    let keeper = Keeper::<Counted>::default;
    let first = far
        .register(Interest::In(&circuit(1)), size, keeper())
        .unwrap();
    let again = far.register(Interest::In(&circuit(1)), size, keeper());
    assert!(matches!(again, Err(RegisterError::Refused(_))));
    let default = far.register(Interest::Default, size, keeper()).unwrap();
    let again = far.register(Interest::Default, size, keeper());
    assert!(matches!(again, Err(RegisterError::DefaultTaken(id)) if id == default.id));
    assert_eq!(far.fallback(), Fallback::Client(default.id));
    assert!(far.leave_default(false).is_err());
    assert!(far.unregister(first.id).is_some() && far.unregister(default.id).is_some());
    assert!(far.unregister(first.id).is_none());
    assert_eq!(far.fallback(), Fallback::Nobody);
    assert_eq!(far.leave_default(true), Err(RegisterError::NotShared));
    let third = far
        .register(Interest::In(&circuit(1)), size, keeper())
        .unwrap();
    assert!(far.add_filter(third.id, &circuit(2)).is_ok());
    assert!(far.add_filter(first.id, &circuit(3)).is_err() || first.id == third.id);
}

#[test]
fn what_nobody_registered_for_is_the_defaults_or_is_counted() {
    let (mut pair, sender) = with_sender();
    send(&sender, &packet(9, 1, 60));
    poll(&mut pair);
    assert_eq!(pair.far.account().dropped(Reason::Nobodys), 1);
    let keeper = Keeper::default();
    let default = pair
        .far
        .register(Interest::Default, PoolSize::fixed(1), keeper.clone());
    default.unwrap().pool.give(1);
    send(&sender, &packet(9, 2, 60));
    send(&sender, &[1, 2]);
    poll(&mut pair);
    assert_eq!(keeper.bytes(), [packet(9, 2, 60)]);
    assert_eq!(pair.far.account().dropped(Reason::Malformed), 1);
    assert!(pair.far.malformed().is_some());
}

/// What of four packets a client of four buffers had, and how many were counted as had and as refused.
fn of_four<T>(
    client: impl Client<Counted> + 'static,
    next: impl FnMut() -> Option<T>,
) -> (usize, u64, u64) {
    let (mut pair, sender) = with_sender();
    let size = PoolSize {
        buffers: 1,
        most: 4,
    };
    let registered = pair.far.register(Interest::Default, size, client).unwrap();
    assert_eq!(pair.far.grow(registered.id, 3).unwrap(), 3);
    assert_eq!(registered.pool.give(4), 4);
    (0..4).for_each(|fill| send(&sender, &packet(1, fill, 60)));
    (0..3).for_each(|_| poll(&mut pair));
    let got = std::iter::from_fn(next).count();
    let account = pair.far.account_of(registered.id).unwrap();
    assert_eq!(account, pair.far.account());
    (got, account.swapped, account.dropped(Reason::Refused))
}

/// A queue that was made for fewer packets than its client comes to have buffers.
#[test]
fn what_a_queue_has_no_room_for_is_counted_as_dropped() {
    let sleeper = Host::default().sleeper;
    let terms = Terms {
        stated: Stated::new(1, Span::from_millis(1), 4, Span::from_millis(5)).unwrap(),
        unit: Unit::Packets,
        packet: laxity_model::Service::ZERO,
        activity: ActivityId(0),
        ranks: Ranks::Handler,
    };
    for (most, refused) in [(1, 3), (4, 0)] {
        let expected = (most, most as u64, refused);
        let (client, queue) = early::client(most, None, &sleeper);
        let got = of_four(client, || queue.try_next().unwrap());
        assert_eq!(got, expected);
        let (client, queue) = late::client(most, &sleeper);
        let got = of_four(client, || queue.try_next().unwrap());
        assert_eq!(got, expected);
        let (client, mut queue) = due::client(most, terms, &sleeper);
        let next = || queue.try_next(Instant::ZERO, &mut ()).unwrap();
        assert_eq!(of_four(client, next), expected);
    }
}

#[test]
fn a_client_with_memory_of_its_own_gets_its_own_and_a_peeking_one_none() {
    let (mut pair, sender) = with_sender();
    let keeper = Keeper::<Own>::default();
    let own = vec![Own([7; Own::ROOM])];
    let interest = Interest::In(&circuit(1));
    let registered = pair
        .far
        .register_own(interest, own, PoolSize::fixed(0), keeper.clone());
    let owning = registered.unwrap();
    let own = &owning.own;
    own.give(1);
    let looker = Keeper::<Own>::default();
    let interest = Interest::In(&circuit(2));
    let peeking = pair
        .far
        .register_peek(interest, PoolSize::fixed(0), looker.clone());
    let peeking = peeking.unwrap();
    send(&sender, &packet(1, 3, Own::ROOM + 1));
    send(&sender, &packet(1, 4, 60));
    send(&sender, &packet(2, 5, 1000));
    poll(&mut pair);
    poll(&mut pair);
    let got = keeper.pop().unwrap();
    assert_eq!(
        (got.bytes(), got.room()),
        (&packet(1, 4, 60)[..], Own::ROOM)
    );
    let account = pair.far.account_of(owning.id).unwrap();
    assert_eq!((account.copied, account.dropped(Reason::TooLong)), (1, 1));
    assert_eq!(looker.bytes(), [packet(2, 5, 1000)]);
    assert_eq!(pair.far.account_of(peeking.id).unwrap().peeked, 1);
    let back = got.send(Default::default()).unwrap_err();
    assert_eq!(back.why, Unavailable::NoInterface);
}

#[test]
fn a_linear_buffer_has_a_room_and_a_length() {
    let (_pair, sender) = with_sender();
    let empty = sender.take().unwrap();
    let room = empty.room();
    let Err(back) = empty.fill(&vec![0; room + 1]) else {
        panic!("more than fits");
    };
    assert!(matches!(back.why, Unavailable::TooLong { .. }));
    let mut filled = back.buffer.fill(&[1, 2, 3]).unwrap();
    assert_eq!(
        (filled.length(), filled.contiguous()),
        (3, Some(&[1, 2, 3][..]))
    );
    filled.set_length(2).unwrap();
    filled.bytes_mut()[0] = 9;
    assert_eq!((filled.bytes(), filled.arrived()), (&[9, 2][..], None));
    assert!(filled.set_length(room + 1).is_err());
}
