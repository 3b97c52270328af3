//! Clients that are found at the hook.

use laxity::Span;
use laxity::net::exchange::Reason;
use laxity::net::{EarlyOptions, Error, Flow, FlowOptions, Interface, Most, Options, Rest};

use super::namespace::pair;
use super::support::{Heard, datagram, eventually, in_namespace, next, send, tells};

const FAR: &str = "10.0.0.1:1000";
const OWN: &str = "10.0.0.2:2000";

fn early(rest: Rest) -> Options {
    Options {
        early: Some(EarlyOptions {
            flows: 2,
            buffers: 8,
            rest,
        }),
        ..Options::default()
    }
}

fn flow(own: &str) -> Flow {
    Flow {
        is_tcp: false,
        own: own.parse().unwrap(),
        far: None,
    }
}

const FOUR: FlowOptions = FlowOptions {
    buffers: 4,
    raises: None,
};

#[test]
fn a_flood_for_others_costs_a_flow_that_is_found_early_nothing() {
    in_namespace(|| {
        pair("near", "far");
        let near = Interface::open("xdp:near", early(Rest::ClientZero)).unwrap();
        let far = Interface::open("packet:far", Options::default()).unwrap();
        let sender = far.sender(32, tells().0).unwrap();
        let queue = near.flow(flow(OWN), &FOUR).unwrap();
        assert!(queue.is_early());
        let greedy = near.flow(flow("10.0.0.2:3000"), &FOUR).unwrap();
        let (rest, of_rest) = tells();
        let rest = near.register("udp dst port 9", 1, rest).unwrap();
        rest.pool.give(1);
        let mut kept = Vec::new();
        for round in 0..200_u64 {
            let ours = datagram(FAR, OWN, &round.to_be_bytes());
            for _ in 0..10 {
                send(&sender.pool, &datagram(FAR, "10.0.0.2:3000", b"flood"), 0);
            }
            send(&sender.pool, &ours, 0);
            assert_eq!(*queue.next(None).unwrap(), ours);
            // So many buffers, so many packets: nobody gives them again.
            kept.extend(std::iter::from_fn(|| greedy.try_next().unwrap()));
        }
        assert_eq!(kept.len(), 4);
        let other = datagram(FAR, "10.0.0.2:9", b"");
        send(&sender.pool, &other, 0);
        assert_eq!(next(&of_rest), Heard::Packet(other));
        let (account, dropped) = queue.counts().unwrap();
        assert_eq!((account.swapped, account.arrived, dropped), (200, 200, 0));
        let (account, dropped) = greedy.counts().unwrap();
        assert_eq!((account.arrived, dropped), (4, 2_000 - 4));
        let counters = near.counters().unwrap();
        assert_eq!(counters.losses.no_room, 2_000 - 4);
        assert_eq!(counters.came(), 2_201);
        // What it gives again it gets packets for.
        drop(kept);
        send(&sender.pool, &datagram(FAR, "10.0.0.2:3000", b"flood"), 0);
        assert!(greedy.next(None).is_ok());
    });
}

/// The hook reads no options of IPv4, so the driver finds such a packet: for a buffer, but for no credit, and none is given for it either.
#[test]
fn what_the_driver_finds_gives_a_flow_no_credit_beyond_its_buffers() {
    in_namespace(|| {
        pair("near", "far");
        let near = Interface::open("xdp:near", early(Rest::ClientZero)).unwrap();
        let far = Interface::open("packet:far", Options::default()).unwrap();
        let sender = far.sender(8, tells().0).unwrap();
        let queue = near.flow(flow(OWN), &FOUR).unwrap();
        let ours = datagram(FAR, OWN, b"");
        let mut found_late = ours.clone();
        // A word of options that say nothing, by which header and packet are longer.
        found_late.splice(34..34, [1; 4]);
        found_late[14] += 1;
        found_late[17] += 4;
        send(&sender.pool, &found_late, 0);
        assert_eq!(*queue.next(None).unwrap(), found_late);
        (0..5).for_each(|_| send(&sender.pool, &ours, 0));
        let _kept = [(); 4].map(|()| queue.next(None).unwrap());
        eventually("all have come", || {
            let (account, dropped) = queue.counts().unwrap();
            account.arrived + dropped == 6
        });
        assert_eq!(queue.counts().unwrap().1, 1, "the fifth found no credit");
    });
}

#[test]
fn a_flow_that_ends_makes_room_for_another_and_gets_none_of_its_packets() {
    in_namespace(|| {
        pair("near", "far");
        let near = Interface::open("xdp:near", early(Rest::ClientZero)).unwrap();
        let far = Interface::open("packet:far", Options::default()).unwrap();
        let sender = far.sender(8, tells().0).unwrap();
        let first = near.flow(flow(OWN), &FOUR).unwrap();
        let second = near.flow(flow("10.0.0.2:2001"), &FOUR).unwrap();
        let third = near.flow(flow("10.0.0.2:2002"), &FOUR);
        assert!(matches!(third, Err(Error::TooManyFlows)));
        let id = first.id();
        drop(first);
        let third = near.flow(flow("10.0.0.2:2002"), &FOUR).unwrap();
        assert_eq!(third.id(), id, "its number is another's now");
        send(&sender.pool, &datagram(FAR, OWN, b"the first's"), 0);
        let frame = datagram(FAR, "10.0.0.2:2002", b"the third's");
        send(&sender.pool, &frame, 0);
        assert_eq!(*third.next(None).unwrap(), frame);
        assert!(second.try_next().unwrap().is_none() && third.try_next().unwrap().is_none());
        let account = near.counters().unwrap().account;
        assert_eq!(account.dropped(Reason::Nobodys), 1);
    });
}

/// Where a driver is bounded, packets wait in the interface for longer than a number rests.
#[test]
fn what_waited_for_a_bounded_driver_is_not_the_next_clients() {
    in_namespace(|| {
        pair("near", "far");
        let bounded = Options {
            early: Some(EarlyOptions {
                flows: 1,
                buffers: 16,
                rest: Rest::ClientZero,
            }),
            most: Most::new(1, Span::from_millis(100)),
            ..Options::default()
        };
        let near = Interface::open("xdp:near", bounded).unwrap();
        let far = Interface::open("packet:far", Options::default()).unwrap();
        let sender = far.sender(32, tells().0).unwrap();
        let sixteen = FlowOptions {
            buffers: 16,
            ..FOUR
        };
        let first = near.flow(flow(OWN), &sixteen).unwrap();
        for _ in 0..20 {
            send(&sender.pool, &datagram(FAR, OWN, b"the first's"), 0);
        }
        eventually("all have come", || first.counts().unwrap().1 == 4);
        drop(first);
        drop(near.flow(flow("10.0.0.2:2001"), &sixteen).unwrap());
        let mut third = None;
        eventually("a number has rested", || {
            third = near.flow(flow("10.0.0.2:2002"), &sixteen).ok();
            third.is_some()
        });
        let third = third.unwrap();
        let frame = datagram(FAR, "10.0.0.2:2002", b"the third's");
        send(&sender.pool, &frame, 0);
        assert_eq!(*third.next(None).unwrap(), frame);
        assert_eq!(third.counts().unwrap().1, 0, "what others lost is not its");
    });
}

#[test]
fn who_is_more_specific_than_a_flow_at_the_hook_is_refused_with_both_names() {
    in_namespace(|| {
        pair("near", "far");
        let near = Interface::open("xdp:near", early(Rest::ClientZero)).unwrap();
        let wide = near.flow(flow(OWN), &FOUR).unwrap();
        let names = [
            "`dst host 10.0.0.2 and udp dst port 2000`",
            "`udp dst port 2000 and dst host 10.0.0.2 and src net 10.0.0.0/8`",
        ];
        let narrower = names[1].trim_matches('`');
        let refused = near.peek(narrower, tells().0).unwrap_err().to_string();
        assert!(names.iter().all(|name| refused.contains(name)), "{refused}");
        near.peek("udp", tells().0).unwrap();
        // The hook tells flows apart.
        let exact = Flow {
            far: Some(FAR.parse().unwrap()),
            ..flow(OWN)
        };
        let exact = near.flow(exact, &FOUR).unwrap();
        drop((wide, exact));
        near.peek(narrower, tells().0).unwrap();
        let refused = near.flow(flow(OWN), &FOUR).err().unwrap().to_string();
        assert!(names.iter().all(|name| refused.contains(name)), "{refused}");
    });
}

#[test]
fn where_the_kernel_has_the_rest_only_flows_are_clients() {
    in_namespace(|| {
        pair("near", "far");
        let near = Interface::open("xdp:near", early(Rest::Kernel)).unwrap();
        let refused = near.register("ip", 1, tells().0);
        assert!(matches!(refused, Err(Error::OnlyFlows)));
        let beside = Interface::open("packet:near", Options::default()).unwrap();
        let (tap, of_kernel) = tells();
        beside.tap("", tap).unwrap();
        let far = Interface::open("packet:far", Options::default()).unwrap();
        let sender = far.sender(8, tells().0).unwrap();
        let queue = near.flow(flow(OWN), &FOUR).unwrap();
        let [ours, kernels] = [OWN, "10.0.0.2:9"].map(|own| datagram(FAR, own, b""));
        send(&sender.pool, &ours, 0);
        send(&sender.pool, &kernels, 0);
        assert_eq!(*queue.next(None).unwrap(), ours);
        assert_eq!(next(&of_kernel), Heard::Packet(kernels));
        eventually("all is posted", || {
            near.counters().unwrap().account.arrived == 1
        });
    });
}
