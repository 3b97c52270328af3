//! A decision looks at no more than it may: by how often the supply is asked, against a host that may look for as long as it takes, and next to a full link.

use std::cell::Cell;
use std::rc::Rc;

use laxity_model::analysis::supply::{Dedicated, SupplyBound};
use laxity_model::analysis::{self, Fraction, Task, TaskError, Verdict, edf};
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{Costs, Host, MOST_ROWS, Member, Traffic};
use laxity_model::channels::asked::{Asked, Fits, Name, Scarce, Shortage};
use laxity_model::channels::signalling::{Admits, Delays, Hold, LinkId, Place};
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{OVERHEAD, PAYLOAD, channel, link};
use crate::edf_support::cases;

/// All of a link, which counts how often it is asked: once or twice a step of a search, and a few times to begin one.
#[derive(Clone, Default)]
struct Counting(Rc<Cell<u64>>);

impl Counting {
    fn count(&self) {
        self.0.set(self.0.get() + 1);
    }
}

impl SupplyBound for Counting {
    fn least_service(&self, window: Span) -> Service {
        self.count();
        Dedicated.least_service(window)
    }

    fn window_for(&self, service: Service) -> analysis::Result<Span> {
        self.count();
        Dedicated.window_for(service)
    }

    fn rate(&self) -> Fraction {
        Dedicated.rate()
    }

    fn delay(&self) -> Span {
        Dedicated.delay()
    }

    fn is_attained(&self) -> bool {
        Dedicated.is_attained()
    }
}

const PLACE: Place = Place {
    from: None,
    to: Some(LinkId(0)),
};

const fn hold(number: u64) -> Hold {
    Hold {
        channel: channel(number),
        version: 0,
    }
}

fn host<S: SupplyBound>(supply: S, by: By) -> Host<S> {
    let host = Host::new(PAYLOAD, 1 << 40, Span::ZERO);
    let host = host.over(LinkId(0), Costs::Link(link(2, 1_466)), supply, by);
    host.expect("it fits")
}

/// Of the link in the long run, in parts of 10⁹.
fn share(traffic: &Traffic) -> u64 {
    let (bytes, interval) = (traffic.largest().get(), traffic.interval());
    let packets = bytes.div_ceil(PAYLOAD.get());
    u64::from(bytes + packets * OVERHEAD) * 80 * 1_000_000_000 / interval.as_nanos()
}

fn asked(bytes: u32, share_asked: u64) -> Asked {
    let each = |interval| Traffic::new(bytes, (1, interval), 1).expect("traffic");
    let nanos = share(&each(Span::from_secs(1))) * 1_000_000_000;
    Asked {
        name: Name::new("a/channel").expect("a name"),
        traffic: each(Span::from_nanos(nanos / share_asked.max(1) + 1)),
        discard: false,
    }
}

/// About such a share.
fn any_asked(share: u64, random: &mut SplitMix64) -> Asked {
    let bytes = 64 + (random.draw() % 20_000) as u32;
    asked(bytes, share / 2 + random.draw() % share.max(1))
}

fn reserve<S: SupplyBound>(
    host: &mut Host<S>,
    number: u64,
    asked: &Asked,
) -> Result<Span, Shortage> {
    host.reserve(hold(number), PLACE, asked, Span::ZERO)
}

/// With so many channels, which leave so many parts of 10⁹ of the link. Some wait for no longer than they must, others for some intervals.
fn next_to_full<S: SupplyBound>(
    supply: S,
    (channels, left): (u64, u64),
    random: &mut SplitMix64,
) -> Host<S> {
    let mut host = host(supply, By::Deadline).looking_at(u64::MAX);
    let mut free = 1_000_000_000 - left;
    for number in 0..channels {
        let each = free / (channels - number);
        let asked = any_asked(each.max(2), random);
        let traffic = &asked.traffic;
        if share(traffic) > free {
            continue;
        }
        let quote = host.quote(hold(number), PLACE, traffic, Span::ZERO);
        let Ok(least) = quote.map(|held| held.delays.own) else {
            continue;
        };
        let (waits, more) = (random.draw() % 4, random.draw());
        let delay = least + Span::from_nanos(more % (waits * traffic.interval().as_nanos() + 1));
        let granted = host.grant_these(hold(number), PLACE, traffic, Span::ZERO, |_| delay);
        free -= granted.map_or(0, |_| share(traffic));
    }
    host.looking_at(MOST_ROWS)
}

/// One step of a search looks at all channels, and asks the supply twice at the most. Without the limit refusals ask a hundred times as often.
#[test]
fn a_decision_takes_a_bounded_number_of_steps_next_to_a_full_link() {
    const CHANNELS: u64 = 300;
    let most = 2 * 2 * MOST_ROWS / CHANNELS;
    let (mut random, counting) = (SplitMix64::new(3), Counting::default());
    let (mut asked_most, mut refused) = ((0, any_asked(1, &mut random)), 0);
    for left in [1_000_000, 10_000, 100] {
        let full = next_to_full(counting.clone(), (CHANNELS, left), &mut random);
        for share in [600_000_000, 100 * left, 2 * left, left, left / 2, left / 10] {
            let asked = any_asked(share, &mut random);
            let mut host = full.clone();
            counting.0.set(0);
            let answer = reserve(&mut host, CHANNELS, &asked);
            let steps = counting.0.get();
            assert!(steps <= most, "{steps} steps: {asked:?}, {answer:?}");
            refused += u64::from(answer.is_err());
            if answer.is_err() && left == 1_000_000 && steps > asked_most.0 {
                asked_most = (steps, asked);
            }
        }
    }
    assert!(refused > 3);
    let full = next_to_full(
        counting.clone(),
        (CHANNELS, 1_000_000),
        &mut SplitMix64::new(3),
    );
    counting.0.set(0);
    let unbounded = reserve(&mut full.looking_at(u64::MAX), CHANNELS, &asked_most.1);
    println!(
        "{asked_most:?}, unbounded {}: {unbounded:?}",
        counting.0.get()
    );
    assert!(counting.0.get() > 5 * most);
}

/// What comes back or goes needs no search: not even a host that may look at nothing keeps it.
#[test]
fn what_is_longer_or_goes_is_not_searched() {
    let counting = Counting::default();
    let mut host = host(counting.clone(), By::Deadline);
    let mut random = SplitMix64::new(5);
    for number in 0..100 {
        let granted = reserve(&mut host, number, &any_asked(9_000_000, &mut random));
        granted.expect("there is room");
    }
    let mut host = host.looking_at(0);
    counting.0.set(0);
    for number in 0..100 {
        let own = host.held(channel(number))[0].delays.own;
        let offered = Delays {
            before: Span::ZERO,
            own: own * 2,
        };
        assert_eq!(host.relax(hold(number), offered), offered);
        host.release(hold(number));
    }
    assert_eq!((counting.0.get(), host.channels().count()), (0, 0));
}

/// Who is there, as the exact test has them.
fn is_late(host: &Host<Dedicated>) -> bool {
    let resource = host.stages()[0].resource();
    let task = |one: &Member| one.demand.need.task(one.demand.interval, one.delay);
    let tasks: analysis::Result<Vec<Task>, TaskError> = resource.members().map(task).collect();
    let verdict = edf::test_beside(&tasks.expect("tasks"), resource.never_due(), &Dedicated);
    matches!(verdict.expect("it fits"), Verdict::NotSchedulable(_))
}

/// What is offered is granted.
fn is_offered(host: &Host<Dedicated>, asked: &Asked, offered: Fits) {
    let Fits { interval, size, .. } = offered;
    let slower = interval.and_then(|interval| asked.traffic.with_interval(interval));
    let smaller = size.map(|size| asked.traffic.with_largest(size));
    for traffic in slower.into_iter().chain(smaller) {
        let granted = host.clone().grant(hold(1_000), PLACE, &traffic, Span::ZERO);
        assert!(granted.is_ok(), "{offered:?} is offered: {granted:?}");
    }
}

/// A host that looks at so many rows, beside one that looks at many more.
fn grants_what_is_sure(rows: u64, by: By, all: &[(u32, u64, bool)]) {
    let mut host = host(Dedicated, by).looking_at(rows);
    let mut sum = 0;
    for (number, (bytes, of_link, goes)) in (0..).zip(all) {
        let asked = asked(*bytes, *of_link);
        let (before, mut exact) = (host.clone(), host.clone().looking_at(16 * MOST_ROWS));
        let said = reserve(&mut host, number, &asked);
        let exactly = reserve(&mut exact, number, &asked);
        sum += share(&asked.traffic);
        match (said, exactly) {
            _ if rows == MOST_ROWS && sum < 900_000_000 => assert_eq!(said, exactly),
            (Ok(_), _) => assert_eq!(said, exactly),
            (Err(said), Ok(_)) => assert_eq!(said.of, Scarce::Search),
            (Err(said), Err(exact)) => assert!([exact.of, Scarce::Search].contains(&said.of)),
        }
        match said {
            Ok(_) => assert!(by == By::Priority || !is_late(&host)),
            Err(said) => is_offered(&before, &asked, said.fits),
        }
        if *goes {
            host.release(hold(number / 2));
        }
    }
}

/// Whatever it may look at: what it grants is exact, what is refused for another reason than that is refused by a host that may look at more, and what it offers it grants. Of what hosts may look at there is enough
/// for a link that is not next to full: there nothing differs.
#[test]
fn what_is_granted_is_exact_and_what_is_offered_is_granted() {
    let share = prop_oneof![1..40_000_000_u64, 1..400_000_000_u64];
    let all = prop::collection::vec((64_u32..20_000, share, prop::bool::weighted(0.2)), 1..30);
    let rows = prop_oneof![Just(MOST_ROWS), 0..4_000_u64, 0..100_000_u64];
    let by = prop_oneof![3 => Just(By::Deadline), 1 => Just(By::Priority)];
    let mut runner = TestRunner::new(ProptestConfig {
        cases: cases(64),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let ran = runner.run(&(rows, by, all), |(rows, by, all)| {
        grants_what_is_sure(rows, by, &all);
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
}

/// How many of so many that fit next to a full link are refused by the limit. Of more channels than 300 only where more cases are asked for.
#[test]
fn next_to_a_full_link_few_are_refused_by_the_limit() {
    let all = if cases(1) > 1 {
        &[300, 1_000, 4_096][..]
    } else {
        &[300]
    };
    for channels in all {
        for left in [100_000_000, 10_000_000, 1_000_000, 10_000] {
            let mut random = SplitMix64::new(channels + left);
            let full = next_to_full(Dedicated, (*channels, left), &mut random);
            let (mut fit, mut unknown) = (0, 0);
            for _ in 0..40 {
                let asked = any_asked(left / 2, &mut random);
                let grant = |rows| {
                    let mut host = full.clone().looking_at(rows);
                    host.grant(hold(*channels), PLACE, &asked.traffic, Span::ZERO)
                };
                let is_granted = grant(MOST_ROWS).is_ok();
                let fits = is_granted || grant(u64::MAX).is_ok();
                fit += u32::from(fits);
                unknown += u32::from(fits && !is_granted);
            }
            let there = full.channels().count();
            println!(
                "{there} channels, {left} parts of 10^9 left: {fit} of 40 fit, {unknown} of these refused"
            );
            assert!(*channels > 300 || unknown == 0);
        }
    }
}
