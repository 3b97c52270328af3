//! Taps see what they were granted, and nothing else.

use laxity_model::Instant;
use laxity_net::buffers::PoolSize;
use laxity_net::driver::{Interest, Limits, Scope};
use laxity_net::emulated::Faults;

use crate::support::{Counted, Keeper, Own, circuit, packet, pair, send};

#[test]
fn a_tap_sees_all_it_was_granted_both_ways_and_nothing_else() {
    let mut pair = pair(Faults::default(), Limits::default());
    let size = PoolSize::fixed(4);
    let keeper = Keeper::<Counted>::default;
    let near = pair
        .near
        .register(Interest::Nothing, size, keeper())
        .unwrap();
    let video = pair
        .far
        .register(Interest::In(&circuit(1)), size, keeper())
        .unwrap();
    let (all, some) = (Keeper::<Own>::default(), Keeper::<Own>::default());
    let all_id = pair.far.tap(Scope::All, all.clone());
    pair.far.tap(Scope::In(circuit(1)), some.clone());
    let (in_1, in_2, out_1) = (packet(1, 1, 60), packet(2, 2, 60), packet(1, 3, 60));
    send(&near.pool, &in_1);
    send(&near.pool, &in_2);
    send(&video.pool, &out_1);
    for _ in 0..2 {
        pair.near.poll(Instant::ZERO, &mut ()).unwrap();
        pair.far.poll(Instant::ZERO, &mut ()).unwrap();
    }
    let mut seen = all.bytes();
    seen.sort();
    assert_eq!(seen, [in_1.clone(), out_1.clone(), in_2]);
    let mut seen = some.bytes();
    seen.sort();
    assert_eq!(seen, [in_1, out_1]);
    // Whose it was is as without taps.
    let account = pair.far.account_of(video.id).unwrap();
    assert_eq!((account.arrived, pair.far.account().arrived), (1, 2));

    assert!(pair.far.remove_tap(all_id) && !pair.far.remove_tap(all_id));
    some.panics.store(true, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..2 {
        send(&near.pool, &packet(1, 4, 60));
        pair.near.poll(Instant::ZERO, &mut ()).unwrap();
        pair.far.poll(Instant::ZERO, &mut ()).unwrap();
        pair.near.poll(Instant::ZERO, &mut ()).unwrap();
    }
    assert_eq!(pair.far.account().arrived, 4);
    assert!(all.bytes().is_empty() && some.bytes().is_empty());
}
