//! What it takes to admit a channel to a link that has 300 already: one exact test, the least delay by an exact search among all and as it is found, where lines on a grid of times go before that, to admit one and remove it again,
//! and to refuse one and say what would be granted instead; and what a host decides upon next to a full link, granted or refused.
//!
//! Each channel's rate, size and delay are drawn so that about four fifths of the link are taken. A row is the median and the least of many passes, in
//! microseconds a request; a ratio is that of the medians, and of the least.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::time;

use laxity_model::Span;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Task, edf};
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{Costs, Demand, Host, LinkCosts, Member, Traffic};
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::signalling::{Admits, ChannelId, Hold, HostId, LinkId, Place};
use laxity_model::policy::multiclass::By;

const REQUESTS: usize = 64;
const DECISIONS: usize = 8;
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

const PLACE: Place = Place {
    from: None,
    to: Some(LinkId(0)),
};

const fn named(number: u32) -> Hold {
    let channel = ChannelId {
        origin: HostId(0),
        generation: 0,
        number,
    };
    Hold {
        channel,
        version: 0,
    }
}

/// A channel of about so many parts per million of the link.
fn traffic(share_ppm: u64, random: &mut SplitMix64) -> Traffic {
    let bytes = 64 + (random.draw() % 20_000) as u32;
    let each = |interval| Traffic::new(bytes, (1, interval), 1).expect("traffic");
    let any = each(Span::from_millis(1));
    let need = costs().need(&any, payload()).expect("fits");
    let interval = need.cost.as_nanos() * 1_000_000 / share_ppm;
    each(Span::from_nanos(interval / 2 + random.draw() % interval))
}

fn filled(channels: u64, random: &mut SplitMix64) -> Host<Dedicated> {
    let host = Host::new(payload(), u64::MAX, Span::ZERO);
    let host = host.over(LinkId(0), costs(), Dedicated, By::Deadline);
    let mut host = host.expect("it fits");
    for channel in 0..channels {
        let traffic = traffic(750_000 / channels, random);
        let least = least(&host, &traffic);
        let delay = least * 2 + Span::from_nanos(random.draw() % traffic.interval().as_nanos());
        let hold = named(channel as u32);
        let granted = host.grant_these(hold, PLACE, &traffic, Span::ZERO, |_| delay);
        granted.expect("there is room");
    }
    host
}

fn demand(host: &Host<Dedicated>, traffic: &Traffic) -> Demand {
    host.demand(0, traffic).expect("fits")
}

fn least(host: &Host<Dedicated>, traffic: &Traffic) -> Span {
    let resource = host.stages()[0].resource();
    let least = resource.least_delay(&demand(host, traffic));
    least.expect("there is room")
}

fn task(member: &Member) -> Task {
    let Demand { need, interval } = member.demand;
    need.task(interval, member.delay).expect("a task")
}

fn row(name: &str, requests: usize, mut pass: impl FnMut()) -> [f64; 2] {
    let mut one = |_| {
        let begin = time::Instant::now();
        pass();
        begin.elapsed().as_secs_f64() * 1e6 / requests as f64
    };
    let mut took: Vec<f64> = (0..PASSES).map(&mut one).collect();
    took.sort_by(f64::total_cmp);
    let [median, least] = [took[PASSES / 2], took[0]];
    println!("| {name} | {median:.2} | {least:.2} |");
    [median, least]
}

/// The least delay, among all and as it is found.
fn searches(host: &Host<Dedicated>, requests: &[Demand]) {
    let resource = host.stages()[0].resource();
    let tasks: Vec<Task> = resource.members().map(task).collect();
    let channels = tasks.len();
    let never_due = resource.never_due();
    row(
        &format!("{channels} channels, one exact test of all"),
        REQUESTS,
        || {
            for _ in 0..REQUESTS {
                let met = edf::test_beside(black_box(&tasks), never_due, &Dedicated);
                black_box(met.expect("fits"));
            }
        },
    );
    let newcomers: Vec<Task> = requests
        .iter()
        .map(|one| one.need.task(one.interval, one.interval).expect("a task"))
        .collect();
    let all = row(
        &format!("{channels} channels, the least delay by a search among all"),
        REQUESTS,
        || {
            for newcomer in &newcomers {
                let least = edf::least_deadline(&tasks, black_box(newcomer), never_due, &Dedicated);
                black_box(least.expect("fits").found());
            }
        },
    );
    let quick = row(
        &format!("{channels} channels, the least delay"),
        REQUESTS,
        || {
            for demand in requests {
                let least = resource.least_delay(black_box(demand));
                black_box(least.expect("there is room"));
            }
        },
    );
    let [median, least] = [quick[0] / all[0], quick[1] / all[1]];
    println!("| … to the search among all | {median:.2} | {least:.2} |");
}

fn rows(channels: u64) {
    let mut random = SplitMix64::new(7);
    let mut host = filled(channels, &mut random);
    let traffics: Vec<Traffic> = (0..REQUESTS)
        .map(|_| traffic(100_000 / channels, &mut random))
        .collect();
    let requests: Vec<Demand> = traffics.iter().map(|one| demand(&host, one)).collect();
    searches(&host, &requests);
    // Content with more than the least, and with what is left of the link for all.
    let member = |traffic| Member {
        channel: named(u32::MAX).channel,
        demand: demand(&host, traffic),
        delay: least(&host, traffic) * 4 + Span::from_millis(20),
    };
    let members: Vec<Member> = traffics.iter().map(member).collect();
    let mut resource = host.stages()[0].resource().clone();
    row(
        &format!("{channels} channels, admitted and removed again"),
        REQUESTS,
        || {
            for member in &members {
                black_box(resource.admit(*member)).expect("granted");
                resource.remove(member.channel);
            }
        },
    );
    // More than there is.
    let too_much = |_| asked(traffic(600_000, &mut random));
    decisions(
        &format!("{channels} channels, refused, with what would be granted"),
        &mut host,
        &(0..DECISIONS).map(too_much).collect::<Vec<_>>(),
    );
}

fn asked(traffic: Traffic) -> Asked {
    Asked {
        name: Name::new("a/channel").expect("a name"),
        traffic,
        discard: false,
    }
}

/// What a host decides and gives back, whatever that is.
fn decisions(name: &str, host: &mut Host<Dedicated>, all: &[Asked]) {
    let hold = named(u32::MAX);
    let mut granted = |asked: &Asked| {
        let answer = black_box(host.reserve(hold, PLACE, asked, Span::ZERO));
        host.release(hold);
        answer.is_ok()
    };
    let count = all.iter().filter(|asked| granted(asked)).count();
    row(
        &format!("{name} ({count} of {} granted)", all.len()),
        all.len(),
        || {
            for asked in all {
                granted(asked);
            }
        },
    );
}

/// The same next to a full link, of which so many parts per million are left.
fn next_to_full(channels: u64, left_ppm: u64) {
    let mut random = SplitMix64::new(7);
    let mut host = filled(channels, &mut random);
    for number in channels as u32.. {
        let used: f64 = share(&host);
        let left = ((1.0 - used) * 1e6) as u64;
        if left <= left_ppm {
            break;
        }
        let one = traffic((left / 2).max(1), &mut random);
        let granted = host.grant(named(number), PLACE, &one, Span::ZERO);
        if granted.is_err() {
            break;
        }
    }
    let mut any = |share| {
        (0..DECISIONS)
            .map(|_| asked(traffic(share, &mut random)))
            .collect::<Vec<_>>()
    };
    let (fits, too_much) = (any((left_ppm / 4).max(1)), any(600_000));
    let name = format!("{channels} channels, {left_ppm} ppm of the link left");
    decisions(&format!("{name}: what may fit"), &mut host, &fits);
    decisions(&format!("{name}: too much"), &mut host, &too_much);
}

/// What all take of the link.
fn share(host: &Host<Dedicated>) -> f64 {
    let members = host.stages()[0].resource().members();
    let each = members
        .map(|one| one.demand.need.cost.as_nanos() as f64 / one.demand.interval.as_nanos() as f64);
    each.sum()
}

fn main() {
    println!("| a request beside | median, us | least, us |\n|---|---|---|");
    for channels in [100, 300, 1_000, 4_096, 10_000] {
        rows(channels);
    }
    for channels in [300, 4_096] {
        for left_ppm in [100_000, 10_000, 1_000, 100] {
            next_to_full(channels, left_ppm);
        }
    }
}
