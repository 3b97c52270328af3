//! Hosts as they are live, in the calendar: threads that take their time, links full of the kernel's other traffic, clocks that are wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use laxity_model::channels::admission::{ProcessorCosts, Traffic};
use laxity_model::channels::clocks::{Place, Timeliness};
use laxity_model::channels::signalling::LinkId;
use laxity_model::nif::wire::{Faults, Framing};
use laxity_model::{Instant, Span};
use laxity_net::channels::node::Event;
use laxity_net::channels::path::{self, Label};

use super::world::{KERNELS, Manner, RATE, World};
use crate::channels::path::world::message;

/// What live nodes are charged where nothing was measured.
const COSTS: ProcessorCosts = ProcessorCosts::ASSUMED;

/// A relay between two hosts, a control loop and a camera over both links.
struct Robot {
    world: World,
    channels: [Channel; 2],
    begin: Instant,
}

struct Channel {
    ends: [Label; 2],
    bound: Span,
    bytes: u32,
    interval: Span,
}

const LENGTH: Span = Span::from_secs(1);

impl Robot {
    /// Nodes are told what links take unseen: what is out of their reach.
    fn new(seed: u64) -> Self {
        let manner = Manner {
            live: Some(COSTS),
            unseen: Framing::Bare.takes(3 * KERNELS, RATE),
            ..Manner::default()
        };
        let mut world = World::new(3, manner, seed);
        let channels = [(64, 1_000, 10), (20_000, 33_334, 30)];
        let channels = channels.map(|(bytes, micros, within)| {
            let interval = Span::from_micros(micros);
            let traffic = Traffic::new(bytes, (1, interval), 2).expect("traffic");
            let opening = World::opening(0, 2, traffic, Span::from_millis(within));
            let (_, ends, bound) = world.open(opening).expect("granted");
            Channel {
                ends,
                bound,
                bytes,
                interval,
            }
        });
        // Until clocks are known to each other.
        world.run(Span::from_millis(500));
        let begin = world.now();
        for (number, channel) in channels.iter().enumerate() {
            for one in 0..LENGTH.as_nanos() / channel.interval.as_nanos() {
                let at = begin + channel.interval * one;
                let sent = message(number, one, channel.bytes);
                world.sends(at, 0, channel.ends[0], sent);
            }
        }
        Self {
            world,
            channels,
            begin,
        }
    }

    /// A while longer than messages are sent for.
    fn runs(mut self) -> Self {
        self.world.run(LENGTH + Span::from_millis(200));
        self.world.adds_up();
        self
    }

    /// Of each message of a channel that was delivered whether it was in time.
    fn verdicts(&self, channel: usize) -> BTreeMap<u64, Timeliness> {
        let end = self.channels[channel].ends[1];
        let got = self.world.seen[2].got.iter().filter(|one| one.end == end);
        let verdict = |one: &super::world::Got| one.verdict.expect("it is due").timeliness;
        got.map(|one| (one.message, verdict(one))).collect()
    }

    /// What was told of messages that were missed: of each late one who took too long, and which were lost. Nothing is told twice.
    fn missed(&self, channel: usize) -> (BTreeMap<u64, Option<Place>>, Vec<u64>) {
        let (mut late, mut lost) = (BTreeMap::new(), Vec::new());
        for (_, event) in &self.world.seen[2].events {
            match event {
                Event::Missed(end, _) if *end != self.channels[channel].ends[1] => {}
                Event::Missed(
                    _,
                    path::Event::Late {
                        message, guilty, ..
                    },
                ) => {
                    assert_eq!(late.insert(*message, *guilty), None, "told once");
                }
                Event::Missed(_, path::Event::Lost { first, count, .. }) => {
                    lost.extend(*first..*first + *count);
                }
                _ => {}
            }
        }
        (late, lost)
    }

    /// All that came of it, for people.
    fn report(&self) -> String {
        let mut text = String::new();
        for (number, channel) in self.channels.iter().enumerate() {
            let got = self.world.seen[2].got.iter();
            let got: Vec<_> = got.filter(|one| one.end == channel.ends[1]).collect();
            let took =
                |one: &&super::world::Got| one.at - (self.begin + channel.interval * one.message);
            let (late, lost) = self.missed(number);
            let took: Vec<Span> = got.iter().map(took).collect();
            let sum: u64 = took.iter().map(|took| took.as_nanos()).sum();
            writeln!(
                text,
                "channel {number}: bound {}, {} delivered, longest {}, sum {sum} ns, late {late:?}, lost {lost:?}",
                channel.bound,
                got.len(),
                took.iter().max().expect("some came"),
            )
            .expect("a string");
        }
        for (host, link) in [(0, 0), (1, 0), (1, 1), (2, 0)] {
            let link = LinkId(link);
            let counts = self
                .world
                .hosts
                .node(host)
                .and_then(|node| node.link_counts(link));
            let frames = self.world.hosts.bulk_frames(host, link);
            let counts = counts.expect("it lives");
            writeln!(
                text,
                "host {host}, {link}: {} handed, {} came, {frames} of the kernel's, at work for {}",
                counts.handed,
                counts.came,
                self.world.hosts.worked(host),
            )
            .expect("a string");
        }
        text
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let report = |seed| {
        let mut robot = Robot::new(seed);
        robot.world.hosts.faults(1).lost = 20_000;
        robot.runs().report()
    };
    let first = report(7);
    assert_eq!(first, report(7));
    assert_ne!(first, report(8));
    insta::assert_snapshot!(first);
}

/// Both links are full of frames that cannot be interrupted, and threads wake late.
#[test]
fn beside_the_kernels_traffic_bounds_hold_and_the_link_is_full() {
    let robot = Robot::new(1).runs();
    for (number, channel) in robot.channels.iter().enumerate() {
        let got = robot.world.seen[2].got.iter();
        let got: Vec<_> = got.filter(|one| one.end == channel.ends[1]).collect();
        assert_eq!(
            got.len() as u64,
            LENGTH.as_nanos() / channel.interval.as_nanos()
        );
        for one in got {
            let due = robot.begin + channel.interval * one.message + channel.bound;
            assert!(one.at <= due, "channel {number}, message {}", one.message);
        }
        let verdicts = robot.verdicts(number);
        assert!(verdicts.values().all(|one| *one == Timeliness::InTime));
    }
    // Of 100 Mbit/s the control loop has 1.5, and the camera 5.2.
    let bits = |frames: u64| frames * KERNELS as u64 * 8;
    let passed = (robot.world.now() - Instant::from_secs(1)).as_nanos();
    let all = RATE * (passed / 1_000_000) / 1_000;
    for host in [0, 1] {
        let link = LinkId(host as u16);
        let share = bits(robot.world.hosts.bulk_frames(host, link)) * 100 / all;
        assert!((93..=97).contains(&share), "{share} % by host {host}");
        let worked = robot.world.hosts.worked(host);
        assert!(worked > Span::ZERO && worked < (robot.world.now() - Instant::ZERO) / 5);
    }
}

#[test]
fn what_is_late_is_told_once_with_the_link_that_took_too_long() {
    for link in 0..2 {
        let mut robot = Robot::new(3);
        let faults = robot.world.hosts.faults(link);
        *faults = Faults {
            late: 20_000,
            late_by: Span::from_millis(40),
            ..*faults
        };
        let robot = robot.runs();
        for channel in 0..2 {
            let (late, lost) = robot.missed(channel);
            let verdicts = robot.verdicts(channel);
            let is_late = |one: &u64| verdicts.get(one) == Some(&Timeliness::Late);
            assert!(
                verdicts
                    .keys()
                    .filter(|one| is_late(one))
                    .eq(late.keys().filter(|one| verdicts.contains_key(*one)))
            );
            assert!(late.len() + lost.len() >= 5, "{late:?}, {lost:?}");
            let guilty = Some(Place::Link(link as u8));
            assert!(late.values().all(|one| *one == guilty), "{late:?}");
        }
    }
}

#[test]
fn a_host_that_stands_still_is_guilty_of_what_is_late_by_it() {
    let mut robot = Robot::new(3);
    robot.world.run(Span::from_millis(300));
    robot.world.hosts.stand_still(1, Span::from_millis(20));
    let robot = robot.runs();
    let (late, lost) = robot.missed(0);
    assert!((5..20).contains(&late.len()), "{late:?}");
    assert_eq!(lost, []);
    let is_guilty = |one: &Option<Place>| *one == Some(Place::Host(1));
    assert!(late.values().all(is_guilty), "{late:?}");
    let verdicts = robot.verdicts(0);
    let late: Vec<u64> = late.into_keys().collect();
    let judged = verdicts.iter().filter(|(_, one)| **one == Timeliness::Late);
    assert!(judged.map(|(message, _)| *message).eq(late));
}

#[test]
fn what_is_lost_is_told_once() {
    for link in 0..2 {
        let mut robot = Robot::new(4);
        robot.world.hosts.faults(link).lost = 10_000;
        robot.world.run(LENGTH - Span::from_millis(150));
        robot.world.hosts.faults(link).lost = 0;
        let robot = robot.runs();
        for channel in 0..2 {
            let (late, lost) = robot.missed(channel);
            let verdicts = robot.verdicts(channel);
            let all = LENGTH.as_nanos() / robot.channels[channel].interval.as_nanos();
            let missing: Vec<u64> = (0..all).filter(|one| !verdicts.contains_key(one)).collect();
            assert!(late.is_empty() && !lost.is_empty());
            assert_eq!(lost, missing, "each of them once, and in order");
        }
    }
}

/// When clocks are changed.
const CHANGED: Span = Span::from_millis(300);

/// All that is told of messages, where a host's clock is changed while they are sent.
fn with_clock(host: usize, change: impl Fn(Instant) -> (Instant, i32)) -> Robot {
    let mut robot = Robot::new(5);
    robot.world.run(CHANGED);
    let (says, ppb) = change(robot.world.local(host));
    robot.world.hosts.set_clock(host, says, ppb);
    let robot = robot.runs();
    for seen in &robot.world.seen {
        let ends = seen.events.iter();
        assert!(
            ends.clone()
                .all(|(_, event)| !matches!(event, Event::Ended(..) | Event::Down(..)))
        );
    }
    robot
}

/// The control loop's messages that were not in time, as far as is told.
fn not_in_time(robot: &Robot) -> Vec<u64> {
    let verdicts = robot.verdicts(0);
    let all = 0..LENGTH.as_nanos() / robot.channels[0].interval.as_nanos();
    all.filter(|one| verdicts.get(one) != Some(&Timeliness::InTime))
        .collect()
}

/// How fast hosts' clocks are is nothing to messages, which are all in time.
#[test]
fn a_clock_that_gains_or_loses_changes_no_verdict() {
    for host in 0..3 {
        for ppb in [200_000, -200_000] {
            let robot = with_clock(host, |says| (says, ppb));
            assert_eq!(not_in_time(&robot), [], "host {host}, {ppb} ppb");
        }
    }
}

/// No channel ends by it; and what is told is right again as soon as neighbours have heard from each other, which they do each 50 ms. Keys are agreed on anew, for which what leaves meanwhile is lost.
#[test]
fn a_clock_that_is_set_ahead_by_an_hour_changes_no_verdict_behind_the_next_heartbeat() {
    let hour = Span::from_secs(3_600);
    let [changed, settled] =
        [CHANGED, CHANGED + Span::from_millis(60)].map(|span| span.as_nanos() / 1_000_000);
    for host in 0..3 {
        let wrong = not_in_time(&with_clock(host, |says| (says + hour, 0)));
        let is_meanwhile = |one: &u64| (changed - 1..settled).contains(one);
        assert!(wrong.iter().all(is_meanwhile), "host {host}: {wrong:?}");
    }
}
