//! What a packet takes: policed, entered into its class, and taken by earliest deadline, beside one pop and push of a heap of the standard library.
//!
//! Each of so many channels has one message; a step takes the one that goes, and offers the next one of its channel. A row is the median and the least of
//! many passes, in nanoseconds a packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time;

use laxity_model::base::random::SplitMix64;
use laxity_model::channels::classes::{By, Claim, Classes, Early, Next};
use laxity_model::channels::source::{Excess, Limits, Source};
use laxity_model::nif::urgency::Stated;
use laxity_model::{Instant, Span};

const STEPS: u32 = 1 << 12;
const PASSES: usize = 201;
const ONE: NonZeroU32 = NonZeroU32::MIN;

fn row(name: &str, mut pass: impl FnMut() -> u64) -> f64 {
    let mut one = |_| {
        let begin = time::Instant::now();
        black_box(pass());
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS)
    };
    let mut took: Vec<f64> = (0..PASSES).map(&mut one).collect();
    took.sort_by(f64::total_cmp);
    println!("| {name} | {:.1} | {:.1} |", took[PASSES / 2], took[0]);
    took[PASSES / 2]
}

/// All channels, each with a message in its queue.
struct Node {
    sources: Vec<Source<u32>>,
    classes: Classes,
    now: Instant,
}

impl Node {
    fn new(channels: u32, random: &mut SplitMix64) -> Self {
        let mut one = |_| {
            let (period, delay) = (
                random.draw() % 9_000_000 + 1_000_000,
                random.draw() % 9_000_000,
            );
            let stated = Stated::new(1, Span::from_nanos(period), 4, Span::from_nanos(delay));
            Source::new(Limits {
                stated: stated.expect("a rate"),
                packets: ONE,
                room: NonZeroU32::new(4).expect("room"),
                excess: Excess::Shape,
            })
        };
        let mut node = Self {
            sources: (0..channels).map(&mut one).collect(),
            classes: Classes::new(channels as usize, Early::Last, By::Deadline),
            now: Instant::ZERO,
        };
        (0..channels).for_each(|channel| node.offer(channel));
        node
    }

    /// A message is policed, and its channel wants to go with it.
    fn offer(&mut self, channel: u32) {
        let source = &mut self.sources[channel as usize];
        source.offer(self.now, ONE, channel, |_| {});
        if let Some((_, due)) = source.first() {
            let (logical, deadline) = (due.logical, due.deadline);
            self.classes
                .enter(channel, Claim::RealTime { logical, deadline }, self.now);
        }
    }

    fn step(&mut self) -> u64 {
        let Next::Goes(channel) = self.classes.next(self.now) else {
            return 0;
        };
        self.classes.leave(channel);
        self.now += Span::from_nanos(1_000);
        let mut due = 0;
        self.sources[channel as usize].take(|part| due = part.due.deadline.as_nanos());
        self.offer(channel);
        due
    }
}

fn main() {
    println!("| a packet of | median, ns | least, ns |\n|---|---|---|");
    for channels in [256, 4_096, 16_384] {
        let mut random = SplitMix64::new(7);
        let mut node = Node::new(channels, &mut random);
        let ours = row(
            &format!("{channels} channels, policed, three classes"),
            || (0..STEPS).fold(0, |sum, _| sum ^ node.step()),
        );
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
        println!("| ours to that | {:.2} | |", ours / bare);
    }
}
