//! The run queue and the deadline server against the rules of the kernel.

use laxity_model::policy::Policy;
use laxity_model::policy::classes::{RunQueue, Scheduling, Slices};
use laxity_model::policy::deadline::Server;
use laxity_model::{Instant, Reservation, Service, Span};
use proptest::prelude::*;

const TICK: Span = Span::from_millis(4);

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn fifo_runs_the_first_until_it_blocks_and_a_preempted_one_goes_on_first() {
    let policies = [
        Scheduling::Fifo(50),
        Scheduling::Fifo(50),
        Scheduling::Fifo(60),
    ];
    let mut queue = RunQueue::new(Slices::usual(TICK, 2), &policies);
    for thread in 0..2 {
        queue.enter(thread, (), ms(0));
    }
    assert_eq!(queue.decide(ms(0)).who, Some(0));
    queue.enter(2, (), ms(1));
    assert_eq!(queue.decide(ms(1)).who, Some(2));
    queue.leave(2, ms(2));
    assert_eq!(queue.decide(ms(2)).who, Some(0), "preemption costs no turn");
    for tick in 1..100 {
        queue.tick(ms(4 * tick));
    }
    assert_eq!(queue.decide(ms(400)).who, Some(0), "and no slice ends");
    queue.yield_now(0, ms(401));
    assert_eq!(queue.decide(ms(401)).who, Some(1));
    queue.schedule(0, Scheduling::Fifo(40), ms(402));
    queue.schedule(1, Scheduling::Fifo(40), ms(403));
    assert_eq!(
        queue.decide(ms(403)).who,
        Some(1),
        "whose priority falls goes before his new equals"
    );
}

#[test]
fn round_robin_goes_round_in_slices_of_whole_ticks() {
    let policies = [Scheduling::RoundRobin(50); 3];
    let mut queue = RunQueue::new(Slices::usual(TICK, 2), &policies);
    (0..3).for_each(|thread| queue.enter(thread, (), ms(0)));
    let mut turns = Vec::new();
    for tick in 1..=75 {
        let running = queue.decide(ms(4 * tick - 4)).who;
        if turns.last().is_none_or(|(who, _)| *who != running) {
            turns.push((running, 4 * tick - 4));
        }
        queue.tick(ms(4 * tick));
    }
    assert_eq!(turns, [(Some(0), 0), (Some(1), 100), (Some(2), 200)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Nobody who is always ready is ever ahead of its share by more than a tick and a slice of all, or behind by more than that for each
    /// other.
    #[test]
    fn nobody_falls_behind_its_share(nices in prop::collection::vec(-10..10_i8, 1..8), ticks in 20..200_u64) {
        let policies: Vec<Scheduling> = nices.iter().map(|nice| Scheduling::Fair { nice: *nice }).collect();
        let slices = Slices::usual(TICK, 2);
        let mut queue = RunQueue::new(slices, &policies);
        (0..).zip(&policies).for_each(|(thread, _)| queue.enter(thread, (), ms(0)));
        let mut received = vec![0_u64; policies.len()];
        for tick in 1..=ticks {
            let running = queue.decide(ms(4 * tick - 4)).who.expect("all are ready");
            received[running as usize] += 4;
            queue.tick(ms(4 * tick));
        }
        let weight = |nice: i8| 1.25_f64.powi(-i32::from(nice));
        let load: f64 = nices.iter().map(|nice| weight(*nice)).sum();
        for (nice, received) in nices.iter().zip(received) {
            let share = weight(*nice) / load * (4 * ticks) as f64;
            // The kernel's weights are 1.25 to the power of the nice value to within 2 %.
            let slack = 8.0 * nices.len() as f64 + 0.03 * share;
            prop_assert!((received as f64 - share).abs() <= slack, "nice {}: {} ms of {}", nice, received, share);
        }
    }
}

#[test]
fn a_server_that_owes_waits_as_many_periods_as_it_owes() {
    let reservation = Reservation::new(Service::from_millis(1), Span::from_millis(10));
    let mut server = Server::new(reservation.expect("a reservation"), ms(0));
    server.charge(Service::from_micros(4_800));
    assert!(server.look(ms(5)));
    server.replenish(ms(10));
    assert_eq!(
        (server.deadline(), server.left()),
        (ms(50), Service::from_micros(200))
    );
    // A sleeper comes back in time to go on, or too late: then it begins anew.
    server.wake(ms(48));
    assert_eq!(server.deadline(), ms(50));
    server.wake(ms(49));
    assert_eq!(
        (server.deadline(), server.left()),
        (ms(59), Service::from_millis(1))
    );
}
