//! Lines of hosts on which nothing goes wrong but what the test says.

use laxity_model::Span;
use laxity_model::channels::asked::Scarce;
use laxity_model::channels::signalling::{
    Cause, ChannelId, HostId, LinkId, Node, NotNow, Refusal, Terms,
};
use laxity_model::nif::wire::Faults;
use laxity_sim::nodes::Network;

use super::admission::asked;
use super::world::{Manner, SHARE, World};

const WITHIN: Span = Span::from_millis(10);
const SOON: Span = Span::from_millis(20);

/// A line on which all have heard of each other.
fn line(hosts: u32) -> World {
    let mut world = World::line(hosts);
    world.run(SOON);
    world
}

#[test]
fn what_is_left_of_the_bound_is_spread_over_the_hops() {
    let mut world = line(4);
    let channel = world
        .open(0, 3, asked(SHARE), WITHIN)
        .expect("host 0 lives");
    world.run(SOON);
    world.settled();
    let book = world.book_of(0, channel);
    let [(_, bounds, propagation)] = book.opened.as_slice() else {
        panic!("{book:?}")
    };
    assert_eq!(*propagation, Span::from_micros(150));
    // A message takes 10 µs of each processor and link: 70 in all. What is left of 10 ms is 9,780 µs, a quarter of which each hop has.
    assert_eq!(*bounds, [2_465, 2_465, 2_465, 2_455].map(Span::from_micros));
    for host in 0..4 {
        let node = world.network.node(HostId(host)).expect("it lives");
        let listed = node.channels().next().expect("it is there");
        let own = listed.delays.map(|delays| delays.own);
        assert_eq!(own, Some(bounds[host as usize]));
    }
}

#[test]
fn who_has_no_buffers_for_its_share_takes_less_and_so_does_the_hop_before() {
    let mut world = line(3);
    world.size = [1_000_000, 1_000_000, 3];
    world.start(HostId(1));
    world.run(SOON);
    let channel = world
        .open(0, 2, asked(SHARE), WITHIN)
        .expect("host 0 lives");
    world.run(SOON);
    world.settled();
    let bounds = &world.book_of(0, channel).opened[0].1;
    // Three hops share what 50 µs leave of 9.9 ms. In the middle three messages of one a millisecond fit, so that both hops have less than 3 ms together.
    assert_eq!(bounds[1], Span::from_nanos(3_000_000 - 20_000 - 1));
    assert_eq!(bounds[0], Span::from_micros(20));
    assert_eq!(bounds[2], Span::from_nanos(10_000 + 3_283_334));
}

#[test]
fn a_refusal_names_the_hop_the_resource_and_the_amount() {
    let mut world = line(4);
    world.size = [25_000, 1_000_000, 1_000];
    world.start(HostId(2));
    world.run(SOON);
    for _ in 0..2 {
        let channel = world
            .open(0, 3, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(SOON);
        assert_eq!(world.book_of(0, channel).opened.len(), 1);
    }
    let channel = world
        .open(0, 3, asked(SHARE), WITHIN)
        .expect("host 0 lives");
    world.run(SOON);
    world.settled();
    let refused = world.book_of(0, channel).refused;
    let Refusal::Short { at, short } = refused[0].1 else {
        panic!("{refused:?}")
    };
    // A share of 5,000 millionths is left, and as much is missing of each millisecond.
    assert_eq!(
        (at, short.of, short.lacks),
        (HostId(2), Scarce::Processor, 5_000)
    );
    let size = short.fits.size.expect("a smaller one fits").get();
    let fits = world.open(0, 3, asked(size), WITHIN).expect("host 0 lives");
    world.run(SOON);
    assert_eq!(world.book_of(0, fits).opened.len(), 1);
    assert!(world.book_of(3, channel).asked.is_empty());
}

#[test]
fn a_bound_below_the_smallest_delays_is_refused_where_it_is_passed() {
    let mut world = line(4);
    let within = Span::from_micros(215);
    let channel = world
        .open(0, 3, asked(SHARE), within)
        .expect("host 0 lives");
    world.run(SOON);
    world.settled();
    let refused = world.book_of(0, channel).refused;
    let at = HostId(3);
    let lacks = Span::from_micros(5);
    assert_eq!(refused[0].1, Refusal::Time { at, lacks });
    assert!(world.is_empty());
}

#[test]
fn a_far_end_may_decline_or_say_nothing() {
    for (manner, after) in [
        (Manner::Declines, SOON),
        (Manner::Sleeps, Span::from_millis(1_020)),
    ] {
        let mut world = line(3);
        world.manner = manner;
        let channel = world
            .open(0, 2, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(after);
        world.settled();
        assert!(world.is_empty());
        let refused = world.book_of(0, channel).refused;
        let expected = match manner {
            Manner::Declines => Refusal::Declined(7),
            _ => Refusal::Ended(Cause::Unanswered(HostId(2))),
        };
        assert_eq!(refused[0].1, expected);
    }
}

#[test]
fn a_change_is_beside_what_is_there_until_all_have_agreed_and_what_is_late_of_before_is_through() {
    let mut world = line(3);
    world.size = [100_000, 100_000, 1_000];
    (0..3).for_each(|host| world.start(HostId(host)));
    world.run(SOON);
    let channel = world
        .open(0, 2, asked(SHARE), WITHIN)
        .expect("host 0 lives");
    world.run(SOON);
    let more = asked(80_000);
    // Together they were more than there is; only the greater of the two counts.
    let hold = world.change(channel, more, WITHIN * 2).expect("it is open");
    world.run(Span::from_millis(5));
    assert_eq!(world.book_of(0, channel).opened[1].0, hold);
    let again = world.network.call(HostId(0), |node, now, out| {
        node.change(now, channel, asked(SHARE), WITHIN, out)
    });
    assert_eq!(again, Some(Err(NotNow::Changing)));
    world.run(SOON);
    world.settled();
    let too_much = asked(110_000);
    let refused = world
        .change(channel, too_much, WITHIN)
        .expect("it is settled");
    world.run(SOON);
    world.settled();
    let book = world.book_of(0, channel);
    assert_eq!(book.refused[0].0, refused);
    assert!(book.ended.is_empty());
    let less = world
        .change(channel, asked(SHARE), WITHIN)
        .expect("it is open");
    world.run(Span::from_millis(50));
    world.settled();
    assert_eq!(world.book_of(0, channel).opened[2].0, less);
    let other = asked(90_000);
    world.open(0, 2, other, WITHIN);
    world.run(SOON);
    world.settled();
}

#[test]
fn either_end_closes_and_both_are_told() {
    for (host, has_died) in [(0, false), (3, false), (0, true), (3, true)] {
        let mut world = line(4);
        let channel = world
            .open(0, 3, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(SOON);
        world.close(HostId(host), channel, has_died);
        world.run(SOON);
        world.settled();
        assert!(world.is_empty());
        let expected = match has_died {
            true => Cause::Died(HostId(host)),
            false => Cause::Closed(HostId(host)),
        };
        for end in [0, 3] {
            assert_eq!(world.book_of(end, channel).ended[0].1, expected);
        }
    }
}

/// Both ends are told of the hop within 250 ms, whoever dies, and at whichever moment between two heartbeats.
#[test]
fn a_death_is_told_to_both_ends_within_250_ms() {
    for moment in (0..50).step_by(7) {
        for dead in 0..5 {
            let mut world = line(5);
            let channel = world
                .open(0, 4, asked(SHARE), WITHIN)
                .expect("host 0 lives");
            world.run(SOON + Span::from_millis(moment));
            let died = world.network.now();
            world.kill(HostId(dead));
            world.run(Span::from_millis(250));
            for (end, by) in [(0, dead.wrapping_sub(1)), (4, dead + 1)] {
                if end == dead {
                    continue;
                }
                let ended = world.book_of(end, channel).ended;
                let (by, silent) = (HostId(by), HostId(dead));
                assert_eq!(ended.len(), 1, "host {dead} died, and {end} was not told");
                assert_eq!(ended[0].1, Cause::Lost { by, silent });
                assert!(ended[0].0 <= died + Span::from_millis(250));
            }
            world.settled();
            assert!(world.is_empty());
        }
    }
}

#[test]
fn a_link_that_is_cut_is_told_by_both_of_its_ends() {
    for cut in 0..3 {
        let mut world = line(4);
        let channel = world
            .open(0, 3, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(SOON);
        world.network.cut(HostId(cut), HostId(cut + 1), true);
        world.run(Span::from_millis(250));
        for (end, by, silent) in [(0, cut, cut + 1), (3, cut + 1, cut)] {
            let (by, silent) = (HostId(by), HostId(silent));
            let ended = world.book_of(end, channel).ended;
            assert_eq!(ended[0].1, Cause::Lost { by, silent });
        }
        world.network.cut(HostId(cut), HostId(cut + 1), false);
        world.run(Span::from_millis(100));
        let channel = world
            .open(0, 3, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(SOON);
        world.settled();
        assert_eq!(world.book_of(0, channel).opened.len(), 1);
    }
}

#[test]
fn a_node_that_stood_still_accuses_nobody() {
    for still in 0..4 {
        for length in [100, 400, 5_000] {
            let mut world = line(4);
            let channel = world
                .open(0, 3, asked(SHARE), WITHIN)
                .expect("host 0 lives");
            world.run(SOON);
            world
                .network
                .stand_still(HostId(still), Span::from_millis(length));
            world.run(Span::from_millis(length + 300));
            world.settled();
            for end in [0, 3] {
                for (_, cause) in world.book_of(end, channel).ended {
                    let Cause::Lost { by, silent } = cause else {
                        panic!("{cause:?}")
                    };
                    assert_eq!(silent, HostId(still), "{by} accuses {silent}");
                }
            }
            // Three heartbeats were not missed.
            assert_eq!(world.is_empty(), length > 175, "{still} {length}");
        }
    }
}

/// A clock of three is set by an hour while a channel is opened, or after that; their rates are up to 200 ppm apart.
fn set_by_an_hour(host: u32, is_back: bool, opens: bool) {
    let hour = Span::from_secs(3_600);
    let mut world = line(3);
    for (host, ppb) in [(0, 100_000), (1, -100_000), (2, 50_000)] {
        let says = world.network.clock(HostId(host)) + hour * 3;
        world.network.set_clock(HostId(host), says, ppb);
    }
    world.run(SOON);
    let channel = world
        .open(0, 2, asked(SHARE), WITHIN)
        .expect("host 0 lives");
    if !opens {
        world.run(SOON);
    }
    let says = world.network.clock(HostId(host));
    let says = if is_back { says - hour } else { says + hour };
    world.network.set_clock(HostId(host), says, 0);
    world.run(Span::from_secs(2));
    world.settled();
    assert_eq!(world.book_of(0, channel).opened.len(), 1);
    assert!(world.book_of(0, channel).ended.is_empty());
    let node = world.network.node(HostId(1)).expect("it lives");
    let link = LinkId(u16::from(host == 2));
    let clocks = node.clocks(link).expect("it has two links");
    let there = HostId(if host == 2 { 2 } else { 0 });
    let now = world.network.clock(HostId(1));
    let offset = clocks.offset(now).expect("they have spoken since");
    let truth = i128::from(world.network.clock(there).as_nanos()) - i128::from(now.as_nanos());
    assert!(offset.holds(truth), "{offset:?} {truth}");
    assert!(offset.error() < Span::from_micros(100), "{offset:?}");
}

#[test]
fn a_clock_that_is_set_by_an_hour_costs_nobody_anything() {
    for host in 0..3 {
        for (is_back, opens) in [(false, false), (false, true), (true, false), (true, true)] {
            set_by_an_hour(host, is_back, opens);
        }
    }
}

#[test]
fn a_route_that_is_none_is_refused() {
    let mut world = line(3);
    let to = |hosts: &[u32]| hosts.iter().copied().map(HostId).collect();
    let routes = [
        (to(&[0]), Refusal::Nonsense { at: HostId(0) }),
        (to(&[0, 1, 0]), Refusal::Nonsense { at: HostId(0) }),
        (to(&[1, 2]), Refusal::Nonsense { at: HostId(0) }),
        (
            to(&[0, 1, 7]),
            Refusal::NoLink {
                at: HostId(1),
                to: HostId(7),
            },
        ),
    ];
    for (route, expected) in routes {
        let opened =
            |node: &mut Node<_>, now, out: &mut _| node.open(now, asked(SHARE), route, WITHIN, out);
        let channel = world.network.call(HostId(0), opened).expect("it lives");
        world.run(SOON);
        world.listen();
        assert_eq!(world.book_of(0, channel).refused[0].1, expected);
    }
    assert!(world.is_empty());
}

#[test]
fn what_the_wire_loses_is_said_again_and_no_link_is_lost_for_it() {
    let mut world = line(4);
    world.network.faults.lost = 100_000;
    for _ in 0..5 {
        let channel = world
            .open(0, 3, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(Span::from_millis(120));
        let book = world.book_of(0, channel);
        assert_eq!((book.opened.len(), book.ended.len()), (1, 0));
    }
}

/// Index and generation by which each host knows a channel.
fn labels(world: &World, channel: ChannelId) -> Vec<(u32, u32)> {
    let hosts = (0..world.hosts).filter_map(|host| world.network.node(HostId(host)));
    let all = hosts.flat_map(Node::channels);
    let meant = all.filter(|one| one.channel == channel);
    meant
        .map(|one| (one.label.index, one.label.generation))
        .collect()
}

#[test]
fn a_label_is_used_again_with_another_generation_only() {
    let mut world = line(3);
    let open = |world: &mut World| {
        let channel = world
            .open(0, 2, asked(SHARE), WITHIN)
            .expect("host 0 lives");
        world.run(SOON);
        channel
    };
    let [first, second, third] = [0; 3].map(|_| open(&mut world));
    assert_eq!(labels(&world, second), [(1, 0); 3]);
    world.close(HostId(2), second, false);
    world.run(SOON);
    let fourth = open(&mut world);
    for (channel, label) in [(first, (0, 0)), (third, (2, 0)), (fourth, (1, 1))] {
        assert_eq!(labels(&world, channel), [label; 3]);
    }
    world.change(fourth, asked(SHARE * 2), WITHIN);
    world.run(SOON * 2);
    assert_eq!(labels(&world, fourth), [(1, 1); 3]);
    world.settled();
    for channel in [first, third, fourth] {
        world.close(HostId(0), channel, false);
    }
    world.run(SOON);
    world.settled();
    assert!(world.is_empty());
}

#[test]
fn a_host_takes_no_more_channels_than_it_has_labels_for() {
    let terms = Terms {
        channels: 1,
        ..Terms::default()
    };
    let network = Network::new(3, terms, Faults::default(), 1);
    let mut world = World::on(network, &[0, 0, 1], [1_000_000; 3]);
    world.run(SOON);
    let mut open = |from, to| {
        let channel = world
            .open(from, to, asked(SHARE), WITHIN)
            .expect("it lives");
        world.run(SOON);
        world.settled();
        (
            channel,
            world
                .book_of(from, channel)
                .refused
                .first()
                .map(|one| one.1),
        )
    };
    let (first, refused) = open(1, 2);
    assert_eq!(refused, None);
    let busy = Some(Refusal::Busy { at: HostId(1) });
    assert_eq!(open(0, 1).1, busy);
    world.close(HostId(1), first, false);
    world.run(SOON);
    let channel = world.open(0, 1, asked(SHARE), WITHIN).expect("it lives");
    world.run(SOON);
    // Host 0 has given its own back when host 1 refused.
    assert_eq!(labels(&world, channel), [(0, 1); 2]);
}
