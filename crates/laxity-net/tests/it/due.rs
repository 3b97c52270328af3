//! Clients whose packets are due, and what is recorded of a packet's way.

use laxity_model::nif::qos::{LeastLaxity, Module, Ranks, Terms};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::urgency::{Stated, Unit};
use laxity_model::policy::Rank;
use laxity_model::{ActivityId, EventKind, Instant, PortId, Priority, Service, Span};
use laxity_net::Pool;
use laxity_net::buffers::{PoolSize, Sending};
use laxity_net::client::Effects;
use laxity_net::clients::due::{self, DueClient, DueQueue};
use laxity_net::clients::group::group;
use laxity_net::driver::{Host, Interest, Limits};
use laxity_net::emulated::Faults;
use proptest::prelude::*;

use crate::support::{Counted, Keeper, Pair, circuit, packet, pair};

const CRITICAL: Priority = Priority::HIGHEST;
const WORKAHEAD: Priority = Priority::NORMAL;
const THREAD: Ranks = Ranks::Thread {
    critical: CRITICAL,
    workahead: WORKAHEAD,
};

/// A host of activities that are as urgent as they were made.
#[derive(Default)]
struct Urgent {
    now: Instant,
    ranks: [Option<Rank>; 2],
    arranged: [Option<(Instant, Rank)>; 2],
    recorded: Vec<(EventKind, [u64; 2])>,
}

impl Urgent {
    fn advance(&mut self, now: Instant) {
        self.now = now;
        for (rank, arranged) in self.ranks.iter_mut().zip(&mut self.arranged) {
            if let Some((_, promoted)) = arranged.take_if(|(at, _)| *at <= now) {
                *rank = Some(promoted);
            }
        }
    }
}

impl Effects for Urgent {
    fn put(&mut self, _: PortId, _: [u64; 2]) -> bool {
        false
    }

    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        let whose = activity.index();
        self.arranged[whose] = (at > self.now).then_some((at, rank));
        if at <= self.now {
            self.ranks[whose] = Some(rank);
        }
    }

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        self.recorded.push((kind, args));
    }
}

/// Of one packet every so many microseconds at least, each of which takes so many, and is due 5 ms behind its logical arrival.
fn terms(number: usize, (every, packet): (u64, u64), ranks: Ranks) -> Terms {
    let stated = Stated::new(1, Span::from_micros(every), 4, Span::from_millis(5));
    Terms {
        stated: stated.unwrap(),
        unit: Unit::Packets,
        packet: Service::from_micros(packet),
        activity: ActivityId(number as u16),
        ranks,
    }
}

/// Clients whose packets are due behind a wire without delay.
struct World {
    pair: Pair,
    sender: Pool<Counted>,
    receivers: Vec<(Pool<Counted>, DueQueue<Counted>)>,
    host: Urgent,
}

impl World {
    /// A client for each, of one packet every so many microseconds at least, due 5 ms behind its logical arrival.
    fn new(every: &[u64], ranks: Ranks, unit: Unit) -> Self {
        let terms = every.iter().enumerate().map(|(number, every)| Terms {
            unit,
            ..terms(number, (*every, 0), ranks)
        });
        let all = terms.map(|terms| due::client(32, terms, &Host::default().sleeper));
        Self::of(all.collect())
    }

    /// Clients of one module, each of one packet every so many microseconds at least that takes so many, due as above.
    fn grouped(module: impl Module + 'static, all: &[(u64, u64)]) -> Self {
        let numbered = all.iter().enumerate();
        let terms: Vec<_> = numbered
            .map(|(number, of)| terms(number, *of, THREAD))
            .collect();
        let seats = group(module, &terms).into_iter();
        let all = seats.map(|seat| due::client_in(32, seat, &Host::default().sleeper));
        Self::of(all.collect())
    }

    fn of(all: Vec<(DueClient<Counted>, DueQueue<Counted>)>) -> Self {
        let mut pair = pair(Faults::default(), Limits::default());
        let size = PoolSize::fixed(32);
        let keeper = Keeper::<Counted>::default();
        let sender = pair.near.register(Interest::Nothing, size, keeper).unwrap();
        let receivers = (0..).zip(all).map(|(number, (client, queue))| {
            let interest = Interest::In(&circuit(number));
            let registered = pair.far.register(interest, size, client).unwrap();
            registered.pool.give(32);
            (registered.pool, queue)
        });
        let receivers = receivers.collect();
        Self {
            pair,
            sender: sender.pool,
            receivers,
            host: Urgent::default(),
        }
    }

    fn arrive(&mut self, channel: u16, fill: u8) {
        let filled = self.sender.take().unwrap().fill(&packet(channel, fill, 60));
        let sending = Sending {
            tag: u64::from(fill),
            ..Sending::default()
        };
        filled.unwrap().send(sending).unwrap();
        let now = self.host.now;
        self.pair.near.poll(now, &mut self.host).unwrap();
        self.pair.far.poll(now, &mut self.host).unwrap();
        self.pair.near.poll(now, &mut self.host).unwrap();
    }

    /// The next packet's fill, if there is one, for which another buffer is given.
    fn take(&mut self, which: usize) -> Option<u8> {
        let (pool, queue) = &mut self.receivers[which];
        let taken = queue.try_next(self.host.now, &mut self.host).unwrap()?;
        let fill = taken.packet.bytes().last().copied();
        drop(taken);
        pool.give(1);
        fill
    }
}

#[test]
fn a_packet_before_its_time_is_workahead_until_then_and_one_in_its_time_critical_at_once() {
    let mut world = World::new(&[1_000], THREAD, Unit::Packets);
    let (critical, workahead) = (Rank::Priority(CRITICAL), Rank::Priority(WORKAHEAD));
    world.arrive(0, 1);
    assert_eq!(world.host.ranks[0], Some(critical));
    assert_eq!(world.take(0), Some(1));
    world.host.advance(Instant::from_micros(100));
    world.arrive(0, 2);
    // The one before it is still at work, and is not held up.
    assert_eq!(world.host.ranks[0], Some(critical));
    assert_eq!(world.take(0), Some(2));
    assert_eq!(world.host.ranks[0], Some(workahead));
    world.host.advance(Instant::from_micros(999));
    assert_eq!(world.host.ranks[0], Some(workahead));
    world.host.advance(Instant::from_micros(1_000));
    assert_eq!(world.host.ranks[0], Some(critical));
}

#[test]
fn a_handler_goes_by_the_deadline_of_its_packet_and_behind_all_deadlines_before_its_time() {
    let mut world = World::new(&[1_000], Ranks::Handler, Unit::Packets);
    let rank = |at| Some(Rank::Deadline(at));
    world.arrive(0, 1);
    assert_eq!(world.host.ranks[0], rank(Instant::from_millis(5)));
    world.arrive(0, 2);
    assert_eq!(world.take(0), Some(1));
    assert_eq!(world.host.ranks[0], rank(Instant::from_millis(5)));
    assert_eq!(world.take(0), Some(2));
    assert_eq!(world.host.ranks[0], rank(Instant::MAX));
    world.host.advance(Instant::from_millis(1));
    assert_eq!(world.host.ranks[0], rank(Instant::from_millis(6)));
}

#[test]
fn what_a_client_states_in_bytes_is_counted_in_bytes() {
    let mut world = World::new(&[10], THREAD, Unit::Bytes);
    world.arrive(0, 1);
    world.arrive(0, 2);
    assert_eq!((world.take(0), world.take(0)), (Some(1), Some(2)));
    let (at, _) = world.host.arranged[0].unwrap();
    assert_eq!(at, Instant::from_micros(60 * 10));
}

/// Half milliseconds until the packet of the second client is done that arrives in the second of them, where the first client's packets, one of which
/// is in its time, all came at once. Each takes two. Who is more urgent has the processor, and among equals who has it already.
fn done_beside_a_burst(every: u64) -> u64 {
    let mut world = World::new(&[every, 10_000], THREAD, Unit::Packets);
    let mut left = [0; 2];
    let mut running = 0;
    for _ in 0..10 {
        world.arrive(0, 1);
    }
    for step in 0..100 {
        world.host.advance(Instant::from_micros(step * 500));
        if step == 1 {
            world.arrive(1, 2);
        }
        for (which, left) in left.iter_mut().enumerate() {
            if *left == 0 && world.take(which).is_some() {
                *left = 2;
            }
        }
        let urgent = |which: usize| (left[which] > 0).then_some(world.host.ranks[which]);
        let priority = |which| match urgent(which) {
            Some(Some(Rank::Priority(priority))) => Some(priority),
            _ => None,
        };
        if priority(1 - running) > priority(running) {
            running = 1 - running;
        }
        left[running] -= u32::from(left[running] > 0);
        if running == 1 && left[1] == 0 {
            return step + 1;
        }
    }
    panic!("it is never done");
}

#[test]
fn packets_that_came_before_their_time_do_not_delay_one_that_is_current() {
    // One more of its packets comes every 10 ms: only that which is current goes first.
    assert_eq!(done_beside_a_burst(10_000), 4);
    // All of them are current from the first millisecond on.
    assert_eq!(done_beside_a_burst(1), 22);
}

/// The second has more to do with a packet, until the first has more of them.
#[test]
fn of_a_group_who_has_least_to_spare_is_above_whoever_reports() {
    let mut world = World::grouped(LeastLaxity, &[(1, 1_000), (1_000, 3_000)]);
    let second = Priority::new(CRITICAL.level() - 1).unwrap();
    let [first, second] = [CRITICAL, second].map(|of| Some(Rank::Priority(of)));
    world.arrive(0, 1);
    assert_eq!(world.host.ranks, [first, None]);
    world.arrive(1, 1);
    assert_eq!(world.host.ranks, [second, first]);
    world.host.advance(Instant::from_micros(10));
    (0..3).for_each(|_| world.arrive(0, 1));
    assert_eq!(world.host.ranks, [first, second]);
    // Three are left, and their deadlines are a little later.
    world.host.advance(Instant::from_micros(20));
    assert_eq!((world.take(0), world.take(0)), (Some(1), Some(1)));
    assert_eq!(world.host.ranks, [second, first]);
    // What comes before its time waits for whatever is critical.
    assert_eq!(world.take(1), Some(1));
    world.arrive(1, 1);
    assert_eq!(world.take(1), Some(1));
    assert_eq!(world.host.ranks, [first, Some(Rank::Priority(WORKAHEAD))]);
    world.host.advance(Instant::from_micros(1_000));
    assert_eq!(world.host.ranks[1], second);
}

proptest! {
    /// The oracle has all packets, and looks at the one that is at work or would be next.
    #[test]
    fn the_activity_is_at_each_instant_as_urgent_as_the_packet_it_is_at_work_on_or_takes_next(
        steps in prop::collection::vec((0_u64..1_500, any::<bool>()), 1..200),
    ) {
        let mut world = World::new(&[700], THREAD, Unit::Packets);
        let (mut now, mut next) = (Instant::ZERO, Instant::ZERO);
        let (mut open, mut is_at_work) = (std::collections::VecDeque::new(), false);
        for (gap, arrives) in steps {
            now += Span::from_micros(gap);
            world.host.advance(now);
            if arrives && open.len() < 30 {
                let logical = now.max(next);
                next = logical + Span::from_micros(700);
                world.arrive(0, 1);
                open.push_back(logical);
            } else {
                if std::mem::take(&mut is_at_work) {
                    open.pop_front();
                }
                is_at_work = world.take(0).is_some();
                prop_assert_eq!(is_at_work, !open.is_empty());
            }
            if let Some(logical) = open.front() {
                let is = if *logical <= now { CRITICAL } else { WORKAHEAD };
                prop_assert_eq!(world.host.ranks[0], Some(Rank::Priority(is)));
            }
        }
    }
}

#[test]
fn each_station_of_a_packets_way_is_recorded_with_who_says_when_it_arrived() {
    let mut world = World::new(&[1_000], THREAD, Unit::Packets);
    world.host.advance(Instant::from_micros(3));
    world.arrive(0, 9);
    assert_eq!(world.take(0), Some(9));
    let client = u64::from(ClientId(0).0);
    let (at, by_the_wire) = (3_000, 3 << 32 | 60);
    let way = [
        (EventKind::Transmit, [client, 9]),
        (EventKind::Arrive, [at, by_the_wire]),
        (EventKind::Receive, [client, 60]),
        (EventKind::Complete, [client, 9]),
        (EventKind::Deliver, [at, 60]),
    ];
    assert_eq!(world.host.recorded, way);
    // One more than there are buffers.
    world.host.recorded.clear();
    for _ in 0..33 {
        world.arrive(0, 9);
    }
    let is_left_out = |event: &&(EventKind, [u64; 2])| event.0 == EventKind::NoBuffer;
    let left_out: Vec<_> = world.host.recorded.iter().filter(is_left_out).collect();
    assert_eq!(left_out, [&(EventKind::NoBuffer, [client, 60])]);
}
