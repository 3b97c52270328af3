//! Upcalls that have to do with each other: chains and groups on the machine of virtual time, against their bounds; bounds against another implementation's; and what a quantum took.

use std::sync::{Arc, Mutex};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::ExecutorPolicy as _;
use laxity_model::executor::linked::{Linked, bounds};
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::executor::share::Share;
use laxity_model::program::upcall::{Call, Timing};
use laxity_model::program::upcalls::{Board, Command, Control, Entrant, Keeper, STOP, task, turns};
use laxity_model::{Instant, Service, Span, Step};
use proptest::prelude::*;
use response_time_analysis::{arrival, demand, fixed_priority as rival, time, wcet};

use crate::machine::{
    COMMANDS, DOORBELL, MICRO, PLACES, Virtual, boards, events, order, timing, us,
};

/// One upcall: what it declares, and what a unit takes.
#[derive(Clone, Debug)]
struct One {
    timing: Timing,
    deadline: Span,
    unit: Service,
    takes: Service,
    after: Option<u16>,
    share: Option<Arc<Share>>,
}

impl One {
    fn new(timing: Timing, unit: Service) -> Self {
        Self {
            deadline: timing.period,
            timing,
            unit,
            takes: unit,
            after: None,
            share: None,
        }
    }

    fn linked(&self) -> Linked {
        Linked {
            after: self.after.map(usize::from),
            ..Linked::alone(task(&self.timing, self.unit, self.deadline).unwrap())
        }
    }
}

/// Each quantum: whose, when it began, how long it took, and what it was told.
type Quanta = Arc<Mutex<Vec<(u16, Instant, Service, Call)>>>;

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
            paced_by: one.after.map(|_| (events(place), Span::ZERO)),
            deadline: one.deadline,
            unit: one.unit,
            share: one.share,
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
fn run(all: Vec<One>, micros: u64) -> (Arc<[Board]>, Quanta) {
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
fn chains() -> impl Strategy<Value = Vec<One>> {
    let one = (
        0..40_u64,
        20..80_u64,
        1..6_u64,
        1..4_u32,
        1..4_u32,
        any::<prop::sample::Index>(),
    );
    let all = proptest::collection::vec((one, any::<bool>()), usize::from(PLACES));
    all.prop_map(|all| {
        let mut made: Vec<One> = Vec::new();
        for ((first, period, unit, batch, quantum, before), is_chained) in all {
            let mut one = One::new(timing(first, period, batch, quantum), MICRO * unit);
            if is_chained && !made.is_empty() {
                let before = before.index(made.len());
                one.after = Some(before as u16);
                one.timing.period = made[before].timing.period;
            }
            // Different ones, so that the order is one line.
            one.deadline = one.timing.period + Span::from_nanos(made.len() as u64);
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
    /// it are the response times, with jitter, of which the bounds of chains are made.
    #[test]
    fn bounds_of_chains_agree_with_another_implementation_to_the_tick(all in chains()) {
        let linked: Vec<Linked> = all.iter().map(One::linked).collect();
        prop_assert_eq!(bounds(&linked, &Dedicated).ok(), holistic(&all));
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
            prop_assert_eq!((counts.overruns, counts.dropped, counts.over_service), (0, 0, 0));
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

    /// Two that share a budget, however much they want, and two others: the two have no more than the budget in a period, and the others are in time.
    #[test]
    fn a_group_has_no_more_than_its_budget_and_others_are_in_time(
        (budget, period) in (3..12_u64, 20..60_u64),
        members in prop::array::uniform2((0..40_u64, 5..40_u64, 1..4_u64, 1..6_u32)),
        others in prop::array::uniform2((0..40_u64, 15..90_u64, 1..12_u64, 1..4_u32)),
    ) {
        let share = Share::new(MICRO * budget, Span::from_micros(period), Instant::ZERO).unwrap();
        let share = Arc::new(share);
        let member = |(first, period, unit, batch)| One {
            deadline: share.period(),
            share: Some(Arc::clone(&share)),
            ..One::new(timing(first, period, batch, 1), MICRO * unit)
        };
        let other = |(first, period, unit, batch)| One::new(timing(first, period, batch, 1), MICRO * unit);
        let group: Vec<One> = members.into_iter().map(member).collect();
        let others: Vec<One> = others.into_iter().map(other).collect();
        let region = group.iter().map(|one| one.unit).max().unwrap();
        let whole = Task::new(share.budget(), share.period()).unwrap();
        let whole = Linked {
            defers: true,
            ..Linked::alone(whole.with_preemption(Preemption::Floating { longest: region }).unwrap())
        };
        let linked: Vec<Linked> = others.iter().map(One::linked).chain([whole]).collect();
        let Ok(bounds) = bounds(&linked, &Dedicated) else {
            return Ok(());
        };
        let (boards, quanta) = run(others.into_iter().chain(group).collect(), 4_000);
        for (board, bound) in boards.iter().zip(&bounds[..2]) {
            prop_assert!(board.counts().longest_response <= *bound, "{} {:?}", bound, board.counts());
        }
        let mut used = vec![0; 4_100 / period as usize + 2];
        for (place, began, took, _) in quanta.lock().unwrap().iter() {
            let began = began.as_nanos() / 1_000;
            for micro in began..began + took.as_nanos() / 1_000 {
                used[(micro / period) as usize] += u64::from(*place >= 2);
            }
        }
        prop_assert!(used.iter().all(|used| *used <= budget), "{:?}", used);
        prop_assert_eq!(share.counts().used, Span::from_micros(used.iter().sum()));
    }
}

/// The bound of a chain of two is met in the worst case, so it is no idle number.
#[test]
fn the_bound_of_a_chain_is_reached() {
    let head = One::new(timing(0, 100, 10, 10), MICRO);
    let tail = One {
        after: Some(0),
        deadline: Span::from_micros(90),
        ..One::new(timing(0, 100, 1, 1), MICRO * 20)
    };
    let all = vec![head, tail];
    let linked: Vec<Linked> = all.iter().map(One::linked).collect();
    let bounds = bounds(&linked, &Dedicated).unwrap();
    let (boards, _) = run(all, 1_000);
    // 10 alone, and 20 after it; that the tail of the call before might be in the way is what makes the bound longer than that.
    assert_eq!(boards[1].counts().longest_end_to_end, Span::from_micros(30));
    assert!(bounds[0] >= Span::from_micros(10) && bounds[1] >= Span::from_micros(30));
    assert_eq!(boards[1].counts().calls, boards[0].counts().calls);
}

/// A group that keeps its budget to the end of a period, and has the next at once, is as much in another's way as its bound says.
#[test]
fn the_bound_beside_a_group_is_reached() {
    let share = Share::new(MICRO * 10, Span::from_micros(40), Instant::ZERO).unwrap();
    let share = Arc::new(share);
    let other = One::new(timing(30, 60, 20, 1), MICRO);
    let member = One {
        deadline: share.period(),
        share: Some(Arc::clone(&share)),
        ..One::new(timing(30, 80, 20, 1), MICRO)
    };
    let whole = Task::new(share.budget(), share.period()).unwrap();
    let whole = Linked {
        defers: true,
        ..Linked::alone(whole)
    };
    let bounds = bounds(&[other.linked(), whole], &Dedicated).unwrap();
    let (boards, _) = run(vec![other, member], 79);
    assert_eq!(bounds[0], Span::from_micros(40));
    assert_eq!(boards[0].counts().longest_response, bounds[0]);
}

/// A quantum that takes three budgets has its group wait until they are paid, and is told of with its name; who is in no group goes on.
#[test]
fn who_takes_more_than_it_declared_is_told_and_its_group_pays() {
    let share = Share::new(MICRO * 10, Span::from_micros(100), Instant::ZERO).unwrap();
    let share = Arc::new(share);
    let liar = One {
        takes: MICRO * 30,
        share: Some(Arc::clone(&share)),
        ..One::new(timing(0, 100, 1, 1), MICRO * 5)
    };
    let honest = One::new(timing(50, 100, 2, 1), MICRO);
    let (boards, quanta) = run(vec![liar, honest], 1_000);
    let began: Vec<(u64, bool)> = quanta
        .lock()
        .unwrap()
        .iter()
        .filter(|(place, ..)| *place == 0)
        .map(|(_, began, _, call)| (began.as_nanos() / 1_000, call.over_service))
        .collect();
    // 20 are owed at 30, so that 10 are there again at 300; what was released meanwhile is missed, or had begun to wait.
    assert_eq!(began, [(0, false), (300, true), (600, true), (900, true)]);
    let counts = boards[0].counts();
    assert_eq!(counts.longest_quantum, Span::from_micros(30));
    assert_eq!((counts.over_service, counts.calls), (4, 4));
    assert_eq!(share.counts().waits, 3);
    let counts = boards[1].counts();
    assert_eq!(
        (counts.over_service, counts.calls, counts.missed),
        (0, 10, 0)
    );
    assert_eq!(counts.longest_quantum, MICRO.as_dedicated_span());
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

/// What no budget can be is none.
#[test]
fn a_share_has_a_budget_that_fits_its_period() {
    let share = |budget, period| Share::new(MICRO * budget, Span::from_micros(period), us(0));
    assert!(share(0, 10).is_none() && share(11, 10).is_none());
    let share = share(10, 10).unwrap();
    assert_eq!(
        (share.budget(), share.period()),
        (MICRO * 10, Span::from_micros(10))
    );
}
