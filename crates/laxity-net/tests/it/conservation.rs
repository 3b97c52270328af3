//! The sum never changes: random operations, each beside its definition.

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::exchange::Reason;
use laxity_net::buffers::{Pool, PoolSize};
use laxity_net::driver::{Interest, Limits};
use laxity_net::emulated::Faults;
use proptest::prelude::*;

use crate::support::{Counted, Keeper, circuit, packet, pair, send};
use crate::world::World;

/// Ten million where the optimizer has been.
const OPERATIONS: u64 = if cfg!(debug_assertions) {
    1_000_000
} else {
    10_000_000
};

#[test]
fn whatever_happens_no_buffer_is_lost_and_every_packet_is_its_clients_own() {
    let (mut world, mut random) = (World::new(), SplitMix64::new(12));
    for _ in 0..OPERATIONS {
        let drawn = random.draw().to_le_bytes();
        world.step((drawn[0], drawn[1], drawn[2].into()));
    }
    // All that can happen has happened, and often.
    let account = world.account();
    let often = OPERATIONS / 1000;
    assert!(
        account.swapped > often && account.copied > often,
        "{account:?}"
    );
    // These clients have room for all that they have buffers for.
    let others = Reason::ALL.iter().filter(|why| **why != Reason::Refused);
    let is_often = |why: &Reason| account.dropped(*why) > often;
    assert!(others.into_iter().all(is_often), "{account:?}");
}

proptest! {
    /// The same, in short stories that can be made shorter still.
    #[test]
    fn no_short_story_loses_a_buffer(
        steps in proptest::collection::vec(any::<(u8, u8, u32)>(), 0..60),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}

#[test]
fn so_many_buffers_given_are_so_many_packets_received() {
    let mut pair = pair(Faults::default(), Limits::default());
    let nothing = Interest::Nothing;
    let sender = pair
        .near
        .register(nothing, PoolSize::fixed(40), Keeper::default());
    let sender: Pool<Counted> = sender.unwrap().pool;
    let keeper = Keeper::default();
    let interest = Interest::In(&circuit(1));
    let receiver = pair
        .far
        .register(interest, PoolSize::fixed(10), keeper.clone());
    let receiver = receiver.unwrap();
    assert_eq!(receiver.pool.give(10), 10);
    for number in 0..40 {
        send(&sender, &packet(1, number, 60));
    }
    for _ in 0..40 {
        pair.near
            .poll(laxity_model::Instant::ZERO, &mut ())
            .unwrap();
        pair.far.poll(laxity_model::Instant::ZERO, &mut ()).unwrap();
    }
    let got = keeper.bytes();
    let expected: Vec<_> = (0..10).map(|number| packet(1, number, 60)).collect();
    assert_eq!(got, expected);
    let account = pair.far.account_of(receiver.id).unwrap();
    assert_eq!((account.arrived, account.swapped), (40, 10));
}
