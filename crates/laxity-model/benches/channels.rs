//! What a packet takes: policed, entered into its class, and taken by earliest deadline, beside one pop and push of a heap of the standard library.
//!
//! Each of so many channels has one message; a step takes the one that goes, and offers the next one of its channel, which keeps its promise. How often there is a step
//! decides what a packet goes through. Where the link is much slower than all channels together would be, each message comes when it is current: then all are in one queue, by deadline, as
//! in the heap beside it. Where it is nearly as fast, each comes early, and is in one queue by logical arrival and then in another by deadline: two times what the heap does. A row is the
//! median and the least of many passes, in nanoseconds a packet; a ratio is that of the medians, and of the least.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time;

use laxity_model::base::random::SplitMix64;
use laxity_model::channels::source::{Excess, Limits, Source};
use laxity_model::nif::urgency::{Due, Stated};
use laxity_model::policy::three_classes::{By, Claim, Classes, Early, Next};
use laxity_model::{Instant, Span};

const STEPS: u32 = 1 << 12;
const PASSES: usize = 201;
const ONE: NonZeroU32 = NonZeroU32::MIN;

fn row(name: &str, mut pass: impl FnMut() -> u64) -> [f64; 2] {
    let mut one = |_| {
        let begin = time::Instant::now();
        black_box(pass());
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS)
    };
    let mut took: Vec<f64> = (0..PASSES).map(&mut one).collect();
    took.sort_by(f64::total_cmp);
    let [median, least] = [took[PASSES / 2], took[0]];
    println!("| {name} | {median:.1} | {least:.1} |");
    [median, least]
}

/// All channels, each with a message in its queue.
struct Node {
    sources: Vec<Source<u32>>,
    classes: Classes,
    now: Instant,
    /// From one packet to the next.
    slot: Span,
    /// How many messages were early when they came.
    early: u32,
}

impl Node {
    /// All channels together are so many hundredths as fast as the link.
    fn new(channels: u32, load_percent: u64, random: &mut SplitMix64) -> Self {
        let mut per_second = 0;
        let mut one = |_| {
            let (period, delay) = (
                random.draw() % 9_000_000 + 1_000_000,
                random.draw() % 9_000_000,
            );
            per_second += 1_000_000_000 / period;
            let stated = Stated::new(1, Span::from_nanos(period), 4, Span::from_nanos(delay));
            Source::new(Limits {
                stated: stated.expect("a rate"),
                packets: ONE,
                room: NonZeroU32::new(4).expect("room"),
                excess: Excess::Shape,
            })
        };
        let sources = (0..channels).map(&mut one).collect();
        let mut node = Self {
            sources,
            classes: Classes::new(channels as usize, Early::Last, By::Deadline),
            now: Instant::ZERO,
            slot: Span::from_nanos(10_000_000 * load_percent / per_second),
            early: 0,
        };
        (0..channels).for_each(|channel| node.offer(channel));
        node
    }

    /// A message is policed, and its channel goes on with it.
    fn offer(&mut self, channel: u32) {
        let source = &mut self.sources[channel as usize];
        source.offer(self.now, ONE, channel, |_| {});
        let Some((_, due)) = source.first() else {
            return self.classes.leave(channel);
        };
        let Due {
            logical, deadline, ..
        } = due;
        self.early += u32::from(logical > self.now);
        let claim = Claim::RealTime { logical, deadline };
        self.classes.renew(channel, claim, self.now);
    }

    fn step(&mut self) -> u64 {
        let Next::Goes(channel) = self.classes.next(self.now) else {
            return 0;
        };
        self.now += self.slot;
        let mut due = 0;
        self.sources[channel as usize].take(|part| due = part.due.deadline.as_nanos());
        self.offer(channel);
        due
    }
}

/// Rows of so many channels.
fn rows(channels: u32) {
    let mut random = SplitMix64::new(7);
    let mut ours = |load_percent, name: &str| {
        let mut node = Node::new(channels, load_percent, &mut random);
        let name = format!("{channels} channels, policed, three classes, {name}");
        let took = row(&name, || (0..STEPS).fold(0, |sum, _| sum ^ node.step()));
        let shaped: u64 = node.sources.iter().map(|one| one.counts().shaped).sum();
        let early = 100 * u64::from(node.early) / (u64::from(STEPS) * PASSES as u64);
        println!("| … of which early, %; messages that broke the promise | {early} | {shaped} |");
        took
    };
    let one_queue = ours(400, "current as they come");
    let two_queues = ours(102, "early as they come");
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> = (0..channels)
        .map(|who| Reverse((random.draw() % 9_000_000, who)))
        .collect();
    let bare = row(&format!("{channels} in a standard heap"), || {
        let mut sum = 0;
        for _ in 0..STEPS {
            let Some(Reverse((due, who))) = heap.pop() else {
                break;
            };
            heap.push(Reverse((due + random.draw() % 9_000_000 + 1_000_000, who)));
            sum ^= due;
        }
        sum
    });
    for (name, took) in [("current", one_queue), ("early", two_queues)] {
        let [median, least] = [took[0] / bare[0], took[1] / bare[1]];
        println!("| {name} ones to one pop and push of that | {median:.2} | {least:.2} |");
    }
}

fn main() {
    println!("| a packet of | median, ns | least, ns |\n|---|---|---|");
    for channels in [256, 4_096, 16_384] {
        rows(channels);
    }
}
