//! What it takes to admit a channel to a link that has 300 already: one exact test, the least delay, and to admit one and remove it again, by the grid of deadlines where that answers.
//!
//! Each channel's rate, size and delay are drawn so that about four fifths of the link are taken. A row is the median and the least of many passes, in
//! microseconds a request.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::time;

use laxity_model::Span;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Task, edf};
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{Costs, Demand, LinkCosts, Member, Resource, Traffic};
use laxity_model::channels::signalling::{ChannelId, HostId};
use laxity_model::policy::multiclass::By;

const REQUESTS: usize = 64;
const PASSES: usize = 101;

fn payload() -> NonZeroU32 {
    NonZeroU32::new(1_400).expect("a payload")
}

fn costs() -> Costs {
    Costs::Link(LinkCosts {
        rate: NonZeroU64::new(1_000_000_000).expect("a rate"),
        overhead: 66,
        queued: 2,
        best_effort: 1_466,
    })
}

const fn named(number: u32) -> ChannelId {
    ChannelId {
        origin: HostId(0),
        generation: 0,
        number,
    }
}

/// A channel of about so many parts per million of the link.
fn demand(share_ppm: u64, random: &mut SplitMix64) -> Demand {
    let bytes = 64 + (random.draw() % 20_000) as u32;
    let any = Traffic::new(bytes, (1, Span::from_millis(1)), 1).expect("traffic");
    let need = costs().need(&any, payload()).expect("fits");
    let interval = need.cost.as_nanos() * 1_000_000 / share_ppm;
    let spread = interval / 2 + random.draw() % interval;
    Demand {
        need,
        interval: Span::from_nanos(spread),
    }
}

fn filled(channels: u64, random: &mut SplitMix64) -> Resource<Dedicated> {
    let never_due = costs().never_due(payload()).expect("fits");
    let mut resource = Resource::new(Dedicated, By::Deadline, never_due);
    for channel in 0..channels {
        let demand = demand(750_000 / channels, random);
        let least = resource.least_delay(&demand).expect("there is room");
        let delay = least * 2 + Span::from_nanos(random.draw() % demand.interval.as_nanos());
        let member = Member {
            channel: named(channel as u32),
            demand,
            delay,
        };
        resource.admit(member).expect("there is room");
    }
    resource
}

fn row(name: &str, mut pass: impl FnMut()) {
    let mut one = |_| {
        let begin = time::Instant::now();
        pass();
        begin.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64
    };
    let mut took: Vec<f64> = (0..PASSES).map(&mut one).collect();
    took.sort_by(f64::total_cmp);
    println!("| {name} | {:.2} | {:.2} |", took[PASSES / 2], took[0]);
}

fn main() {
    println!("| a request beside | median, us | least, us |\n|---|---|---|");
    for channels in [100, 300, 1_000] {
        let mut random = SplitMix64::new(7);
        let mut resource = filled(channels, &mut random);
        let requests: Vec<Demand> = (0..REQUESTS)
            .map(|_| demand(100_000 / channels, &mut random))
            .collect();
        let task = |member: &Member| {
            member
                .demand
                .need
                .task(member.demand.interval, member.delay)
        };
        let tasks: Vec<Task> = resource
            .members()
            .map(|member| task(member).expect("a task"))
            .collect();
        let never_due = resource.never_due();
        row(
            &format!("{channels} channels, one exact test of all"),
            || {
                for _ in 0..REQUESTS {
                    black_box(
                        edf::test_beside(black_box(&tasks), never_due, &Dedicated).expect("fits"),
                    );
                }
            },
        );
        row(&format!("{channels} channels, the least delay"), || {
            for demand in &requests {
                black_box(
                    resource
                        .least_delay(black_box(demand))
                        .expect("there is room"),
                );
            }
        });
        // Content with more than the least, and with what is left of the link for all.
        let delays: Vec<Span> = requests
            .iter()
            .map(|demand| {
                resource.least_delay(demand).expect("there is room") * 4 + Span::from_millis(20)
            })
            .collect();
        let newcomer = named(u32::MAX);
        row(
            &format!("{channels} channels, admitted and removed again"),
            || {
                for (demand, delay) in requests.iter().zip(&delays) {
                    let member = Member {
                        channel: newcomer,
                        demand: *demand,
                        delay: *delay,
                    };
                    black_box(resource.admit(member)).expect("granted");
                    resource.remove(newcomer);
                }
            },
        );
    }
}
