//! Random channels on one link or processor: who is admitted is never late in the simulator, who is refused can be.
//!
//! `LAXITY_CASES` multiplies the number of sets: by deadline 10⁶ are `LAXITY_CASES=1250 cargo test --release -p laxity-model --test it channels::admission::sets -- --nocapture`.

use std::num::NonZeroU32;
use std::thread;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{Costs, Demand, Member, ProcessorCosts, Resource, Traffic};
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};

use super::wire::{Early, First, Flow, Message, Rules, Unit, lateness, run};
use super::{OVERHEAD, PAYLOAD, link};
use crate::edf_support::cases;

/// At 100 Mbit/s.
const BYTE: u64 = 80;

fn within(random: &mut SplitMix64, low: u64, high: u64) -> u64 {
    low + random.draw() % (high - low + 1)
}

fn one_of<T: Copy>(random: &mut SplitMix64, all: &[T]) -> T {
    all[(random.draw() % all.len() as u64) as usize]
}

/// A number whose logarithm is anywhere.
fn spread(random: &mut SplitMix64, low: u64, high: u64) -> u64 {
    let octaves = (high / low).ilog2() + 1;
    loop {
        let base = low << (random.draw() % u64::from(octaves));
        let number = within(random, base, 2 * base - 1);
        if number <= high {
            return number;
        }
    }
}

/// A resource of random costs, with what the simulator needs to know of it.
pub(crate) struct Scene {
    pub(crate) costs: Costs,
    pub(crate) resource: Resource<Dedicated>,
    pub(crate) queued: usize,
    pub(crate) best_effort: u64,
    by_rank: bool,
}

/// A channel as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) traffic: Traffic,
    pub(crate) delay: u64,
}

fn processor(random: &mut SplitMix64) -> ProcessorCosts {
    let mut service = |high| Service::from_nanos(within(random, 0, high));
    ProcessorCosts {
        message: service(20_000),
        packet: service(30_000) + Service::from_nanos(1),
        byte_ps: 5_000,
        look: service(2_000),
        switch: service(4_000),
        cache_miss: service(9_000),
        wake_up: service(100_000),
        completion: service(5_000),
        interrupt: service(5_000),
        packets_at_once: NonZeroU32::new(within(random, 1, 8) as u32).unwrap(),
        carries_best_effort: random.draw().is_multiple_of(2),
    }
}

impl Scene {
    fn new(random: &mut SplitMix64, by: By) -> Self {
        let (costs, queued) = match random.draw() % 3 {
            0 => (Costs::Processor(processor(random)), 0),
            _ => {
                let queued = one_of(random, &[0, 0, 1, 2]);
                // Best effort fills what is in order for good with frames as long as any, or longer.
                let sizes: &[u32] = if queued == 0 {
                    &[0, 300, 1_466, 9_066]
                } else {
                    &[1_466, 9_066]
                };
                (
                    Costs::Link(link(queued, one_of(random, sizes))),
                    queued as usize,
                )
            }
        };
        Self::of(costs, queued, by)
    }

    pub(crate) fn of(costs: Costs, queued: usize, by: By) -> Self {
        let never_due = costs.never_due(PAYLOAD).unwrap();
        Self {
            costs,
            resource: Resource::new(Dedicated, by, never_due),
            queued,
            best_effort: never_due.as_nanos() / (queued as u64 + 1),
            by_rank: by == By::Priority,
        }
    }

    pub(crate) fn demand(&self, traffic: &Traffic) -> Demand {
        Demand {
            need: self.costs.need(traffic, PAYLOAD).unwrap(),
            interval: traffic.interval(),
        }
    }

    pub(crate) fn member(&self, channel: u64, asked: &Asked) -> Member {
        Member {
            channel: super::channel(channel),
            demand: self.demand(&asked.traffic),
            delay: Span::from_nanos(asked.delay),
        }
    }

    /// The largest message, packet by packet or block by block.
    fn units(&self, traffic: &Traffic) -> Vec<u64> {
        let bytes = u64::from(traffic.largest().get());
        match self.costs {
            Costs::Link(_) => {
                let payload = u64::from(PAYLOAD.get());
                let packets = bytes.div_ceil(payload);
                let size = |packet| payload.min(bytes - packet * payload);
                (0..packets)
                    .map(|packet| (size(packet) + u64::from(OVERHEAD)) * BYTE)
                    .collect()
            }
            // The constants that are spent once go with the first block, as far as it is allowed to be as long.
            _ => {
                let need = self.demand(traffic).need;
                let (mut left, region) = (need.cost.as_nanos(), need.region.as_nanos());
                let last = need.last.as_nanos().min(region);
                let mut units = Vec::new();
                while left > region.max(last) {
                    let one = region.min(left - last);
                    units.push(one);
                    left -= one;
                }
                units.push(left);
                units
            }
        }
    }

    fn random_traffic(&self, random: &mut SplitMix64) -> Asked {
        let bytes = spread(random, 16, 60_000) as u32;
        let interval = spread(random, 300_000, 40_000_000);
        let burst = within(random, 1, 4) as u32;
        let traffic = Traffic::new(bytes, (1, Span::from_nanos(interval)), burst).unwrap();
        let least =
            self.demand(&traffic).need.cost.as_nanos() + self.resource.never_due().as_nanos();
        let delay = match random.draw() % 3 {
            0 => spread(random, least, 2 * least),
            1 => spread(random, least, 8 * least),
            _ => within(random, least, least + 2 * interval),
        };
        Asked { traffic, delay }
    }
}

/// When messages come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    /// All at 0, each as soon as it may.
    pub(crate) synchronous: bool,
    /// Whether messages come before their logical arrivals.
    pub(crate) early: bool,
}

pub(crate) fn flow(
    scene: &Scene,
    (rank, asked): (u64, &Asked),
    (phases, until): (Phases, u64),
    random: &mut SplitMix64,
) -> Flow {
    let interval = asked.traffic.interval().as_nanos();
    let units = scene.units(&asked.traffic);
    let mut logical = if phases.synchronous {
        0
    } else {
        within(random, 0, interval - 1)
    };
    let mut came = 0;
    let mut messages = Vec::new();
    while logical < until {
        // A burst is ahead of its logical arrivals by so much at the most.
        let ahead = interval * u64::from(asked.traffic.burst().get() - 1);
        let early = if phases.early {
            within(random, 0, ahead)
        } else {
            0
        };
        came = logical.saturating_sub(early).max(came);
        messages.push(Message {
            logical,
            due: logical + asked.delay,
            units: units
                .iter()
                .map(|takes| Unit {
                    from: came,
                    takes: *takes,
                })
                .collect(),
        });
        logical += interval;
        if !phases.synchronous && random.draw().is_multiple_of(4) {
            logical += within(random, 0, interval);
        }
    }
    Flow { messages, rank }
}

/// How late anybody is at the worst.
fn worst(
    scene: &Scene,
    set: &[Asked],
    (phases, until): (Phases, u64),
    rules: Rules,
    random: &mut SplitMix64,
) -> i64 {
    let ranked = set.iter().enumerate();
    let flows: Vec<Flow> = ranked
        .map(|(rank, asked)| flow(scene, (rank as u64, asked), (phases, until), random))
        .collect();
    let gone = run(&flows, rules);
    lateness(&flows, &gone)
        .into_iter()
        .max()
        .unwrap_or(i64::MIN)
}

fn rules(scene: &Scene) -> Rules {
    Rules {
        queued: scene.queued,
        best_effort: scene.best_effort,
        first: if scene.best_effort > 0 {
            First::BestEffort
        } else {
            First::Nobody
        },
        is_saturated: false,
        early: Early::Held,
        by_rank: scene.by_rank,
        chooses_first: true,
    }
}

/// As long as all deadlines that count, and some more.
fn long_enough(set: &[Asked]) -> u64 {
    let longest = set
        .iter()
        .map(|asked| asked.delay + 2 * asked.traffic.interval().as_nanos());
    2 * longest.max().unwrap_or(0)
}

/// No phases, no early arrivals and no best effort make anybody late.
fn is_never_late(scene: &Scene, set: &[Asked], random: &mut SplitMix64) {
    let until = long_enough(set);
    for run in 0..5 {
        let phases = Phases {
            synchronous: run < 2,
            early: run % 2 == 1,
        };
        let early = if scene.by_rank {
            Early::Held
        } else {
            one_of(random, &[Early::Mixed, Early::Mixed, Early::Last])
        };
        let rules = Rules {
            is_saturated: run > 2,
            early,
            chooses_first: run != 4,
            ..rules(scene)
        };
        let late = worst(scene, set, (phases, until), rules, random);
        assert!(
            late <= 0,
            "{late} late: {set:?}, {:?}, {phases:?}, {rules:?}",
            scene.costs
        );
    }
}

/// Whether somebody is late in the worst case: all at once, behind best effort or somebody's region.
fn is_late_at_worst(scene: &Scene, set: &[Asked], random: &mut SplitMix64) -> bool {
    let phases = Phases {
        synchronous: true,
        early: false,
    };
    let plain = rules(scene);
    let firsts = (0..set.len()).map(First::Flow);
    [plain.first].into_iter().chain(firsts).any(|first| {
        let rules = Rules { first, ..plain };
        let mut until = long_enough(set);
        // What is too much in the long run is late in the long run.
        for _ in 0..4 {
            if worst(scene, set, (phases, until), rules, random) > 0 {
                return true;
            }
            until *= 3;
        }
        false
    })
}

/// What came of so many sets.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    sets: u32,
    admitted: u32,
    /// Least delays that were asked for and granted, and refused with one tick less.
    offered: u32,
    /// Refusals that were looked at in the simulator, and those of them with a miss.
    refused: u32,
    late: u32,
}

impl Counts {
    /// Somebody is refused beside these.
    fn refuses(&mut self, scene: &Scene, (set, asked): (&[Asked], Asked), random: &mut SplitMix64) {
        let with: Vec<Asked> = set.iter().copied().chain([asked]).collect();
        self.refused += 1;
        self.late += u32::from(is_late_at_worst(scene, &with, random));
    }

    fn and(self, other: Self) -> Self {
        Self {
            sets: self.sets + other.sets,
            admitted: self.admitted + other.admitted,
            offered: self.offered + other.offered,
            refused: self.refused + other.refused,
            late: self.late + other.late,
        }
    }

    /// Of each set no more than so many refusals are looked at: they take longest. By priority none are, since that is not exact.
    fn one_set(&mut self, by: By, random: &mut SplitMix64) {
        let mut scene = Scene::new(random, by);
        let mut set: Vec<Asked> = Vec::new();
        let mut left = match by {
            By::Deadline => 4,
            By::Priority => 0,
        };
        for channel in 0..within(random, 1, 14) {
            let mut asked = scene.random_traffic(random);
            // At times it is content with the least, of which a tick less is refused.
            let least = scene.resource.least_delay(&scene.demand(&asked.traffic));
            let least = least.ok().filter(|_| random.draw().is_multiple_of(3));
            if let Some(least) = least.map(Span::as_nanos) {
                asked.delay = least - 1;
                let less = scene.resource.admit(scene.member(channel, &asked));
                assert!(less.is_err(), "a tick less than {least} is granted");
                if left > 2 {
                    left -= 1;
                    self.refuses(&scene, (&set, asked), random);
                }
                asked.delay = least;
                self.offered += 1;
            }
            if scene.resource.admit(scene.member(channel, &asked)).is_ok() {
                let is_new = |one: &Member| one.channel == super::channel(channel);
                let place = scene.resource.members().position(is_new);
                set.insert(place.unwrap(), asked);
                self.admitted += 1;
                continue;
            }
            assert!(least.is_none(), "the least delay is refused");
            if left > 0 {
                left -= 1;
                self.refuses(&scene, (&set, asked), random);
            }
        }
        assert_eq!(scene.resource.is_met(), Ok(true));
        is_never_late(&scene, &set, random);
        self.sets += 1;
    }
}

/// In so many threads, each with a seed of its own.
fn judge(by: By, sets: u32) -> Counts {
    const PARTS: u32 = 8;
    let part = |seed: u32| {
        let mut random = SplitMix64::new(u64::from(seed));
        let mut counts = Counts::default();
        (0..sets / PARTS).for_each(|_| counts.one_set(by, &mut random));
        counts
    };
    let counts = thread::scope(|scope| {
        let parts: Vec<_> = (0..PARTS)
            .map(|seed| scope.spawn(move || part(seed)))
            .collect();
        let parts = parts.into_iter().map(|part| part.join().unwrap());
        parts.fold(Counts::default(), Counts::and)
    });
    println!("{by:?}: {counts:?}");
    counts
}

#[test]
fn by_deadline_nobody_who_is_admitted_is_late_and_who_is_refused_can_be() {
    let counts = judge(By::Deadline, cases(800));
    let (late, refused) = (u64::from(counts.late), u64::from(counts.refused));
    assert!(
        counts.refused > counts.sets / 2 && late * 100 >= refused * 95,
        "{counts:?}"
    );
}

#[test]
fn by_priority_nobody_who_is_admitted_is_late() {
    let counts = judge(By::Priority, cases(400));
    assert!(counts.admitted > counts.sets, "{counts:?}");
}
