//! Upcalls that have to do with each other: chains on the machine of virtual time, against their bounds; bounds against another implementation's; and who is late.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::ExecutorPolicy as _;
use laxity_model::executor::linked::{Linked, WAKE, bounds};
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::executor::share::Share;
use laxity_model::program::upcall::{Call, PacedBy, Timing};
use laxity_model::program::upcalls::{Board, Command, Control, Entrant, Keeper, STOP, task, turns};
use laxity_model::{Instant, Service, Span, Step};
use proptest::prelude::*;
use response_time_analysis::{arrival, demand, fixed_priority as rival, time, wcet};

use crate::upcalls::machine::{
    COMMANDS, DOORBELL, MICRO, PLACES, ROOM, Virtual, boards, events, order, timing, us,
};

/// One upcall: what it declares, and what a unit takes.
#[derive(Clone, Debug)]
pub(crate) struct One {
    pub(crate) timing: Timing,
    pub(crate) deadline: Span,
    pub(crate) unit: Service,
    pub(crate) takes: Service,
    pub(crate) after: Option<u16>,
    pub(crate) share: Option<Arc<Share>>,
}

impl One {
    pub(crate) fn new(timing: Timing, unit: Service) -> Self {
        Self {
            deadline: timing.period,
            timing,
            unit,
            takes: unit,
            after: None,
            share: None,
        }
    }

    pub(crate) fn linked(&self) -> Linked {
        Linked {
            after: self.after.map(usize::from),
            ..Linked::alone(task(&self.timing, self.unit, self.deadline).unwrap())
        }
    }
}

/// Each quantum: whose, when it began, how long it took, and what it was told.
pub(crate) type Quanta = Arc<Mutex<Vec<(u16, Instant, Service, Call)>>>;

struct Links {
    all: Vec<One>,
    quanta: Quanta,
}

impl Keeper for Links {
    fn make(&mut self, _: u16) -> bool {
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let one = self.all[usize::from(place)].clone();
        let (quanta, takes) = (Arc::clone(&self.quanta), one.takes);
        Some(Entrant {
            timing: one.timing,
            paced_by: one.after.map(|_| PacedBy {
                port: events(place),
                apart: Span::ZERO,
                room: ROOM,
            }),
            deadline: one.deadline,
            unit: one.unit,
            share: one.share,
            account: None,
            work: Box::new(move |context, call| {
                let took = takes * u64::from(call.now());
                quanta
                    .lock()
                    .unwrap()
                    .push((place, context.now(), took, *call));
                Step::Charge(took)
            }),
        })
    }

    fn after(&self, place: u16) -> Option<u16> {
        self.all[usize::from(place)].after
    }

    fn discard(&mut self, _: u16) {}

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

/// Runs all of them from the beginning on.
pub(crate) fn run(all: Vec<One>, micros: u64) -> (Arc<[Board]>, Quanta) {
    let commands = |place| [Command::Create, Command::Run].map(|what| order(0, place, what, 0));
    let mut script: Vec<_> = (0..all.len() as u16).flat_map(commands).collect();
    script.push((us(micros), COMMANDS, STOP));
    let (boards, quanta) = (boards(), Quanta::default());
    let links = Links {
        all,
        quanta: Arc::clone(&quanta),
    };
    let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), links);
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
    Virtual::new(script).run(&mut *body);
    (boards, quanta)
}

/// So many upcalls of different deadlines, some of which come after one before them.
pub(crate) fn chains() -> impl Strategy<Value = Vec<One>> {
    let one = (
        0..40_u64,
        20..80_u64,
        1..6_u64,
        1..4_u32,
        1..4_u32,
        any::<prop::sample::Index>(),
    );
    let all = proptest::collection::vec((one, any::<bool>(), 5..11_u64), usize::from(PLACES));
    all.prop_map(|all| {
        let mut made: Vec<One> = Vec::new();
        for ((first, period, unit, batch, quantum, before), is_chained, tenths) in all {
            let mut one = One::new(timing(first, period, batch, quantum), MICRO * unit);
            if is_chained && !made.is_empty() {
                let before = before.index(made.len());
                one.after = Some(before as u16);
                one.timing.period = made[before].timing.period;
            }
            // Different ones, so that the order is one line.
            one.deadline = one.timing.period / 10 * tenths + Span::from_nanos(made.len() as u64);
            made.push(one);
        }
        made
    })
}

type Requests = demand::RBF<arrival::Sporadic, wcet::Scalar>;

/// What the other says of one with a known last region, from its release; each task has the jitter that it has.
fn theirs(tasks: &[Task], place: usize) -> Option<u64> {
    let requests = |task: &Task| {
        let jitter = time::Duration::from(task.jitter().as_nanos());
        let arrivals = arrival::Sporadic::new(task.period().as_nanos().into(), jitter);
        demand::RBF::new(arrivals, wcet::Scalar::new(task.cost().as_nanos().into()))
    };
    let own = &tasks[place];
    let (mut before, mut blocking): (Vec<Requests>, u64) = (Vec::new(), 0);
    for other in tasks
        .iter()
        .filter(|other| other.deadline() != own.deadline())
    {
        match other.deadline() < own.deadline() {
            true => before.push(requests(other)),
            // On an executor it may have begun in the very instant of the release.
            false => blocking = blocking.max(other.longest_region().as_nanos()),
        }
    }
    let last = match own.preemption() {
        Preemption::Fixed { last, .. } => last,
        Preemption::Never => own.cost(),
        _ => panic!("an upcall says which region is its last"),
    };
    let Requests {
        wcet,
        arrival_bound,
        ..
    } = &requests(own);
    let under = rival::limited_preemptive::TaskUnderAnalysis {
        wcet: *wcet,
        arrivals: arrival_bound,
        last_np_segment: last.as_nanos().into(),
        blocking_bound: blocking.into(),
    };
    let limit = time::Duration::from(1_000_000_000);
    let found = rival::limited_preemptive::dedicated_uniproc_rta(&under, &before, limit);
    found.ok().map(u64::from)
}

/// The bounds of chains by the other's response times, jitter by jitter; `None` where somebody is late.
fn holistic(all: &[One]) -> Option<Vec<Span>> {
    let mut tasks: Vec<Task> = all.iter().map(|one| one.linked().task).collect();
    loop {
        let bound = |place: usize| {
            let bound = tasks[place].jitter() + Span::from_nanos(theirs(&tasks, place)?);
            (bound <= tasks[place].deadline()).then_some(bound)
        };
        let bounds: Vec<Span> = (0..tasks.len()).map(bound).collect::<Option<_>>()?;
        let before = tasks.clone();
        for (task, one) in tasks.iter_mut().zip(all) {
            if let Some(after) = one.after {
                *task = task.with_jitter(bounds[usize::from(after)]);
            }
        }
        if tasks == before {
            return Some(bounds);
        }
    }
}

proptest! {
    /// The crate's own analysis of chains (`ros2::rta_processing_chain`) is of an executor that takes what is ready in rounds, without priorities, so it is none of this order; what is held against
    /// it are the response times, with jitter, of which bounds of chains can be made: none is longer than those.
    #[test]
    fn bounds_of_chains_are_no_longer_than_by_another_implementation(all in chains()) {
        let linked: Vec<Linked> = all.iter().map(One::linked).collect();
        let ours = bounds(&linked, &Dedicated);
        if let Some(theirs) = holistic(&all) {
            let ours = ours.unwrap();
            prop_assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| ours <= theirs), "{:?} {:?}", ours, theirs);
        }
    }

    /// A chain of one urgency is to itself and to others as one task, and each that comes later in it is no matter to who comes before.
    #[test]
    fn a_chain_is_as_one_task_by_another_implementation_to_the_tick(
        (period, chain) in (60..120_u64, prop::collection::vec((1..4_u64, 1..4_u32, 1..4_u32), 1..7)),
        others in prop::array::uniform2((20..200_u64, 1..8_u64, 1..4_u32)),
    ) {
        let one = |(place, (unit, batch, quantum)): (usize, &(u64, u32, u32))| One {
            after: place.checked_sub(1).map(|before| before as u16),
            ..One::new(timing(0, period, *batch, *quantum), MICRO * *unit)
        };
        let mut all: Vec<One> = chain.iter().enumerate().map(one).collect();
        // Of another urgency than the chain and each other.
        let other = |(place, (period, unit, batch)): (u64, (u64, u64, u32))| {
            let mut one = One::new(timing(0, period, batch, 1), MICRO * unit);
            one.deadline += Span::from_nanos(place);
            one
        };
        all.extend((1..).zip(others).map(other));
        let tasks: Vec<Task> = all.iter().map(|one| one.linked().task).collect();
        let longest = tasks[..chain.len()].iter().map(Task::longest_region).max().unwrap();
        let merged = |upto: usize, last: Option<Service>| {
            let cost = tasks[..=upto].iter().map(|task| task.cost().as_nanos()).sum();
            let last = last.unwrap_or(tasks[upto].tail() + Service::from_nanos(1));
            let own = tasks[upto].with_cost(Service::from_nanos(cost)).unwrap();
            let own = own.with_preemption(Preemption::Fixed { longest: longest.min(own.cost()), last }).unwrap();
            [&[own], &tasks[chain.len()..]].concat()
        };
        let whole = merged(chain.len() - 1, None);
        // Else two of its calls may come in one busy window.
        let floats = merged(chain.len() - 1, Some(Service::from_nanos(1)));
        prop_assume!(theirs(&floats, 0).is_some_and(|window| window <= period * 1_000));
        let theirs = |place: usize| match place.checked_sub(chain.len()) {
            Some(other) => theirs(&whole, 1 + other),
            None => theirs(&merged(place, None), 0),
        };
        let theirs: Option<Vec<Span>> = (0..tasks.len()).map(|place| theirs(place).map(Span::from_nanos)).collect();
        let in_time = |theirs: &Vec<Span>| theirs.iter().zip(&tasks).all(|(bound, task)| *bound <= task.deadline());
        let linked: Vec<Linked> = all.iter().map(One::linked).collect();
        prop_assert_eq!(bounds(&linked, &Dedicated).ok(), theirs.filter(in_time));
    }

    /// Whatever the phases, and where units take less than was declared, too.
    #[test]
    fn no_chain_takes_longer_than_its_bound(mut all in chains(), less in prop::collection::vec(any::<bool>(), usize::from(PLACES))) {
        let linked: Vec<Linked> = all.iter().map(One::linked).collect();
        let Ok(bounds) = bounds(&linked, &Dedicated) else {
            return Ok(());
        };
        for (one, less) in all.iter_mut().zip(less) {
            one.takes = if less { MICRO } else { one.unit };
        }
        let (boards, quanta) = run(all.clone(), 4_000);
        for (place, bound) in bounds.iter().enumerate() {
            let counts = boards[place].counts();
            prop_assert!(counts.longest_end_to_end <= *bound, "{} of {}: {:?}", place, bound, counts);
            prop_assert_eq!((counts.overruns, counts.dropped, counts.over_service, counts.late), (0, 0, 0, 0));
            let before = all[place].after.map(|before| boards[usize::from(before)].counts().calls);
            // The last may still be at work at the end.
            prop_assert!(before.is_none_or(|before| before - counts.calls <= 1));
        }
        for (place, began, _, call) in quanta.lock().unwrap().iter() {
            let one = &all[usize::from(*place)];
            prop_assert!(call.origin <= call.paced.release && call.paced.release <= *began);
            prop_assert!(one.after.is_some() || call.origin == call.paced.release);
        }
    }

    /// Without links it is the policy's own admission.
    #[test]
    fn without_links_it_is_the_policy(all in chains()) {
        let mut linked: Vec<Linked> = all.iter().map(One::linked).collect();
        for linked in &mut linked {
            linked.after = None;
        }
        let tasks: Vec<Task> = linked.iter().map(|linked| linked.task).collect();
        let policy = Rmdp::<128>::default().admit(&tasks, &Dedicated);
        prop_assert_eq!(bounds(&linked, &Dedicated).map(drop), policy);
    }
}

/// Whoever is released by what a thread puts costs those more urgent than itself, too.
#[test]
fn a_wake_goes_before_all() {
    let task = |micros, millis| {
        let task = Task::new(Service::from_micros(micros), Span::from_millis(millis));
        Linked::alone(task.unwrap())
    };
    let both = |wakes| {
        let fed = Linked {
            wakes,
            ..task(200, 10)
        };
        bounds(&[task(100, 5), fed], &Dedicated).unwrap()
    };
    // One came as soon as the call before was over, and another one now.
    let wakes = WAKE.as_dedicated_span() * 2;
    for (with, without) in both(1).into_iter().zip(both(0)) {
        let more = with.saturating_sub(without);
        assert!(more >= wakes && more <= wakes * 2, "{more}");
    }
    let all = Linked {
        wakes: 250,
        ..task(200, 10)
    };
    let refused = bounds(&[all], &Dedicated).unwrap_err();
    assert!(refused.reason.contains("wakes"), "{}", refused.reason);
}

/// The bounds of a chain are met, so they are no idle numbers: alone each is what all up to it take.
/// Two at once of the first are two at once of the second, which jitter does not tell.
#[test]
fn what_comes_in_bursts_has_no_successors_with_a_bound() {
    let task = Task::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
    let twice = task.with_burst(NonZeroU64::new(2).unwrap());
    let after = Linked {
        after: Some(0),
        ..Linked::alone(task)
    };
    let refused = bounds(&[Linked::alone(twice), after], &Dedicated).unwrap_err();
    assert_eq!(refused.bottleneck, Some(0));
    assert!(refused.reason.contains("bursts"), "{}", refused.reason);
    let apart = [Linked::alone(twice), Linked::alone(task)];
    assert!(bounds(&apart, &Dedicated).is_ok());
    assert!(bounds(&[Linked::alone(task), after], &Dedicated).is_ok());
}

#[test]
fn the_bounds_of_a_chain_are_reached() {
    for urgency in [[100, 90, 80, 70], [90; 4], [100, 70, 80, 70]] {
        let one = |place: u16| One {
            after: place.checked_sub(1),
            deadline: Span::from_micros(urgency[usize::from(place)]),
            ..One::new(timing(0, 100, 10, 10), MICRO * u64::from(place + 1) / 2)
        };
        let all: Vec<One> = (0..4).map(one).collect();
        let linked: Vec<Linked> = all.iter().map(One::linked).collect();
        let bounds = bounds(&linked, &Dedicated).unwrap();
        let (boards, _) = run(all, 1_000);
        let longest = boards.iter().map(|board| board.counts().longest_end_to_end);
        assert_eq!(longest.collect::<Vec<_>>(), bounds, "{urgency:?}");
        assert_eq!(bounds, [5, 15, 30, 50].map(Span::from_micros));
        assert_eq!(boards[3].counts().calls, boards[0].counts().calls);
    }
}

/// As many as an executor has: each waits for those before it once, and for those after it never.
#[test]
fn a_long_chain_alone_takes_what_its_members_take() {
    let one = |place: u16| One {
        after: place.checked_sub(1),
        ..One::new(timing(0, 127, 1, 1), MICRO)
    };
    let linked: Vec<Linked> = (0..127).map(|place| one(place).linked()).collect();
    let sums = (1..=127).map(Span::from_micros);
    assert_eq!(bounds(&linked, &Dedicated), Ok(sums.collect()));
}

/// What released it while it was suspended, or before that, releases it no more.
#[test]
fn one_of_a_chain_that_was_suspended_goes_on_with_the_next_call_before_it() {
    let head = One::new(timing(100, 100, 1, 1), MICRO);
    let tail = One {
        after: Some(0),
        deadline: Span::from_micros(150),
        ..One::new(timing(0, 100, 6, 1), MICRO * 30)
    };
    let (quanta, boards) = (Quanta::default(), boards());
    let links = Links {
        all: vec![head, tail],
        quanta: Arc::clone(&quanta),
    };
    let begin = |place| [Command::Create, Command::Run].map(|what| order(10, place, what, 0));
    let mut script: Vec<_> = (0..2).flat_map(begin).collect();
    script.push(order(250, 1, Command::Suspend, 0));
    script.push(order(350, 1, Command::Run, 0));
    script.push((us(450), COMMANDS, STOP));
    let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), links);
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
    Virtual::new(script).run(&mut *body);
    let quanta = quanta.lock().unwrap();
    let begun = quanta
        .iter()
        .filter(|(place, .., call)| *place == 1 && call.done() == 0);
    let begun: Vec<Instant> = begun.map(|(_, began, ..)| *began).collect();
    assert_eq!(begun, [us(101), us(401)]);
}

/// Though its next release is far: alone from its own release, in a chain from the first one's. A call that is over as it is due is in time.
#[test]
fn a_call_that_ends_after_its_deadline_is_late() {
    let late = |deadlines: [u64; 2], takes: [u64; 2]| {
        let one = |place: usize, after| One {
            after,
            deadline: Span::from_micros(deadlines[place]),
            ..One::new(timing(0, 100, 1, 1), MICRO * takes[place])
        };
        let (boards, _) = run(vec![one(0, None), one(1, Some(0))], 399);
        let counts = [0, 1].map(|place: usize| boards[place].counts());
        for counts in counts {
            assert_eq!((counts.calls, counts.overruns, counts.missed), (4, 0, 0));
        }
        counts.map(|counts| counts.late)
    };
    assert_eq!(late([20, 30], [20, 10]), [0, 0]);
    assert_eq!(late([19, 29], [20, 10]), [4, 4]);
    // From the end of the first on it takes but ten.
    assert_eq!(late([20, 25], [20, 10]), [0, 4]);
}

/// Who is suspended at work was in time until it was due.
#[test]
fn a_call_that_is_cut_off_is_late_once_it_was_due() {
    let late = |suspended: u64| {
        let one = One {
            deadline: Span::from_micros(10),
            ..One::new(timing(0, 100, 10, 1), MICRO * 5)
        };
        let (boards, quanta) = (boards(), Quanta::default());
        let links = Links {
            all: vec![one],
            quanta,
        };
        let commands = [Command::Create, Command::Run].map(|what| order(0, 0, what, 0));
        let mut script: Vec<_> = commands.into();
        script.push(order(suspended, 0, Command::Suspend, 0));
        script.push((us(90), COMMANDS, STOP));
        let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), links);
        let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
        Virtual::new(script).run(&mut *body);
        boards[0].counts().late
    };
    assert_eq!([6, 16].map(late), [0, 1]);
}

/// Who is closed or suspended is not released, and nobody else at its place.
#[test]
fn a_chain_ends_with_whoever_of_it_is_closed() {
    let head = One::new(timing(0, 100, 1, 1), MICRO);
    let tail = |after| One {
        after,
        ..One::new(timing(0, 100, 1, 1), MICRO)
    };
    let (quanta, boards) = (Quanta::default(), boards());
    let links = Links {
        all: vec![head, tail(Some(0)), tail(Some(1))],
        quanta: Arc::clone(&quanta),
    };
    let begin = |place| [Command::Create, Command::Run].map(|what| order(10, place, what, 0));
    let mut script: Vec<_> = (0..3).flat_map(begin).collect();
    script.push(order(350, 2, Command::Suspend, 0));
    script.push(order(550, 2, Command::Run, 0));
    script.push(order(750, 1, Command::Close, 0));
    script.push((us(1_000), COMMANDS, STOP));
    let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), links);
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
    Virtual::new(script).run(&mut *body);
    let calls = |who: u16| {
        let quanta = quanta.lock().unwrap();
        let own = quanta.iter().filter(|(place, ..)| *place == who);
        own.map(|(_, began, ..)| began.as_nanos() / 1_000)
            .collect::<Vec<_>>()
    };
    assert_eq!(calls(0), (1..10).map(|k| k * 100).collect::<Vec<_>>());
    assert_eq!(calls(1), (1..8).map(|k| k * 100 + 1).collect::<Vec<_>>());
    assert_eq!(calls(2), [1, 2, 3, 6, 7].map(|k| k * 100 + 2));
}
