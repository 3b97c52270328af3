//! The handlers of an executor under each policy, held against a list that is searched; and the policies' admission, held against
//! the analysis they stand on.

mod multiclass;
mod oracle;

use laxity_model::analysis::supply::{Dedicated, Delayed, ExplicitDeadline, SupplyBound};
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::edf::Edf;
use laxity_model::executor::fcfs::Fcfs;
use laxity_model::executor::multiclass_edf::MulticlassEdf;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::executor::{ExecutorError, ExecutorPolicy, HandlerId, Handlers, Wait};
use laxity_model::policy::three_classes::{self, Early};
use laxity_model::{Instant, PortId, Reservation, Service, Span};
use oracle::{By, Member, Oracle, SOONEST};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Make(Option<u64>),
    End(usize),
    Sleep(u64),
    WaitForPort(Option<u64>),
    Yield,
    Arrive(usize),
    Pass(u64),
    /// To be due so much later, from so much later on.
    Raise(usize, u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => proptest::option::of(1..30_u64).prop_map(Op::Make),
        1 => (0..8_usize).prop_map(Op::End),
        3 => (0..20_u64).prop_map(Op::Sleep),
        2 => proptest::option::of(0..20_u64).prop_map(Op::WaitForPort),
        1 => Just(Op::Yield),
        2 => (0..8_usize).prop_map(Op::Arrive),
        4 => (0..10_u64).prop_map(Op::Pass),
        2 => (0..8_usize, 0..40_u64, 0..20_u64)
            .prop_map(|(which, due, after)| Op::Raise(which, due, after.saturating_sub(5))),
    ]
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// One operation on both; what they answer is the same.
fn apply<P: ExecutorPolicy>(
    handlers: &mut Handlers<P, 6>,
    oracle: &mut Oracle,
    now: &mut u64,
    op: Op,
) -> Result<(), TestCaseError> {
    match op {
        Op::Make(relative) => {
            let relative = relative.map(Span::from_nanos);
            let made = handlers.make(relative, at(*now));
            if oracle.members.len() == 6 {
                prop_assert_eq!(made, Err(ExecutorError::Full));
                return Ok(());
            }
            let id = made.unwrap();
            if oracle.by == By::Deadline {
                let soonest = Span::from_nanos(SOONEST);
                prop_assert_eq!(handlers.declare_raise(id, soonest), Ok(()));
            }
            oracle.members.push(Member {
                id,
                relative,
                job: None,
                wait: None,
                raised: None,
                later: None,
            });
            oracle.release(id, at(*now));
        }
        Op::End(which) => {
            if let Some(member) = oracle.members.get(which).copied() {
                prop_assert_eq!(handlers.end(member.id, at(*now)), Ok(()));
                prop_assert_eq!(
                    handlers.end(member.id, at(*now)),
                    Err(ExecutorError::NoSuchHandler)
                );
                oracle.members.remove(which);
                oracle.running = oracle.running.filter(|running| *running != member.id);
            }
        }
        Op::Sleep(span) => rest(handlers, oracle, *now, None, Some(span))?,
        Op::WaitForPort(span) => rest(handlers, oracle, *now, Some(PortId(3)), span)?,
        Op::Yield => {
            if let Some(running) = oracle.running.take() {
                prop_assert_eq!(handlers.yield_now(running, at(*now)), Ok(()));
                oracle.yielded(running, *now);
            }
        }
        Op::Arrive(which) => {
            let member = oracle.members.get(which).copied();
            if let Some(member) = member.filter(|m| m.wait.is_some_and(|w| w.port.is_some())) {
                prop_assert_eq!(handlers.release(member.id, at(*now), at(*now)), Ok(()));
                oracle.release(member.id, at(*now));
            }
        }
        Op::Raise(which, due, after) => raise(handlers, oracle, *now, (which, due, after))?,
        Op::Pass(span) => {
            *now += span;
            pass(handlers, oracle, at(*now))?;
        }
    }
    Ok(())
}

/// One is raised, to be due so much later, from so much later on.
fn raise<P: ExecutorPolicy>(
    handlers: &mut Handlers<P, 6>,
    oracle: &mut Oracle,
    now: u64,
    (which, due, after): (usize, u64, u64),
) -> Result<(), TestCaseError> {
    let Some(id) = oracle.members.get(which).map(|member| member.id) else {
        return Ok(());
    };
    let (due, from) = (now + due, now + after);
    let raised = handlers.raise(id, at(due), at(from), at(now));
    if oracle.by != By::Deadline {
        let refused = ExecutorError::NotInState("declared to be raised");
        prop_assert_eq!(raised, Err(refused));
        return Ok(());
    }
    prop_assert_eq!(raised, Ok(()));
    oracle.of(id).later = (after > 0).then_some((from, due));
    if after == 0 {
        oracle.become_due(id, due);
    }
    Ok(())
}

/// It is later: whoever waited until then is released.
fn pass<P: ExecutorPolicy>(
    handlers: &mut Handlers<P, 6>,
    oracle: &mut Oracle,
    now: Instant,
) -> Result<(), TestCaseError> {
    let mut released = Vec::new();
    handlers.release_due(now, |release| released.push(release));
    // By place, each raised before it is released.
    let mut members: Vec<HandlerId> = oracle.members.iter().map(|m| m.id).collect();
    members.sort_by_key(|id| id.place());
    for id in members {
        if let Some((_, due)) = oracle.of(id).later.take_if(|(from, _)| at(*from) <= now) {
            oracle.become_due(id, due);
        }
        let Some(release) = released.iter().find(|release| release.handler == id) else {
            continue;
        };
        let wait = oracle.of(id).wait.unwrap();
        prop_assert_eq!(release.release, wait.until);
        prop_assert_eq!(release.timed_out, wait.port.is_some());
        oracle.release(id, release.release);
    }
    let late = |m: &&Member| m.wait.is_some_and(|wait| wait.until <= now);
    prop_assert_eq!(oracle.members.iter().filter(late).count(), 0);
    Ok(())
}

/// The running job is over.
fn rest<P: ExecutorPolicy>(
    handlers: &mut Handlers<P, 6>,
    oracle: &mut Oracle,
    now: u64,
    port: Option<PortId>,
    span: Option<u64>,
) -> Result<(), TestCaseError> {
    let until = span.map_or(Instant::MAX, |span| at(now + span));
    let wait = Wait { port, until };
    if let Some(running) = oracle.running.take() {
        prop_assert_eq!(handlers.wait(running, wait, at(now)), Ok(()));
        let member = oracle.of(running);
        (member.job, member.wait) = (None, Some(wait));
        (member.raised, member.later) = (None, None);
    }
    Ok(())
}

fn follows<P: ExecutorPolicy>(
    policy: P,
    by: By,
    ops: Vec<(Op, bool)>,
) -> Result<(), TestCaseError> {
    let mut handlers: Handlers<P, 6> = Handlers::new(policy);
    let mut oracle = Oracle {
        by,
        members: Vec::new(),
        running: None,
        order: 0,
    };
    let mut now = 100;
    for (op, decides) in ops {
        apply(&mut handlers, &mut oracle, &mut now, op)?;
        prop_assert!(handlers.is_conserved());
        let next = oracle.members.iter().filter_map(|m| m.wait);
        let next = next.map(|wait| wait.until).min().unwrap_or(Instant::MAX);
        prop_assert_eq!(handlers.next_release(), next);
        if decides {
            prop_assert_eq!(handlers.decide(at(now)), Ok(oracle.decide()));
        }
        prop_assert_eq!(handlers.must_yield(at(now)), Ok(oracle.must_yield()));
        prop_assert_eq!(handlers.until(at(now)), oracle.until());
    }
    Ok(())
}

proptest! {
    #[test]
    fn first_come_first_served_is_the_order_of_release(
        ops in proptest::collection::vec((op(), any::<bool>()), 0..120),
    ) {
        follows(Fcfs::<6>::with_room(), By::Release, ops)?;
    }

    #[test]
    fn earliest_deadline_first_is_the_order_of_deadlines(
        ops in proptest::collection::vec((op(), any::<bool>()), 0..120),
    ) {
        follows(Edf::<6>::with_room(), By::Deadline, ops)?;
    }

    /// Nobody inherits anything, so nobody is early, and who is never due is best effort.
    #[test]
    fn multi_class_is_the_same_where_nothing_is_early(
        ops in proptest::collection::vec((op(), any::<bool>()), 0..120),
    ) {
        follows(MulticlassEdf::with_room(6, Early::Last, three_classes::By::Deadline), By::Deadline, ops)?;
    }

    #[test]
    fn rate_monotonic_is_the_order_of_rates_and_the_rest_of_a_job_keeps_its_turn(
        ops in proptest::collection::vec((op(), any::<bool>()), 0..120),
    ) {
        follows(Rmdp::<6>::with_room(), By::Rate, ops)?;
    }
}

fn task(cost_us: u64, period_us: u64, deadline_us: u64) -> Task {
    let task = Task::new(Service::from_micros(cost_us), Span::from_micros(period_us)).unwrap();
    task.with_deadline(Span::from_micros(deadline_us)).unwrap()
}

#[test]
fn a_set_is_admitted_up_to_its_last_microsecond() {
    // Together 10 ms of work may be released at once.
    let fits = [task(4_000, 40_000, 10_000), task(6_000, 30_000, 20_000)];
    assert_eq!(Fcfs::new().admit(&fits, &Dedicated), Ok(()));
    let one_more = [fits[0], task(6_001, 30_000, 20_000)];
    let refused = Fcfs::new().admit(&one_more, &Dedicated).unwrap_err();
    assert_eq!(refused.bottleneck, Some(0));
    assert!(refused.reason.contains("10.001ms"), "{refused}");
    // What the index is called, only the program knows.
    assert!(!refused.reason.contains("task 0"), "{refused}");
    assert_eq!(Fcfs::new().admit(&[], &Dedicated), Ok(()));
}

#[test]
fn a_handler_that_never_looks_keeps_the_urgent_waiting() {
    let urgent = task(1_000, 10_000, 3_000);
    let long = task(8_000, 40_000, 40_000);
    let mut edf = Edf::default();
    // It has not said that it looks, so it counts as one that does not: 8 ms are too long.
    let refused = edf.admit(&[urgent, long], &Dedicated).unwrap_err();
    assert_eq!(refused.bottleneck, Some(0));
    assert!(!refused.reason.contains("task 0"), "{refused}");
    let looks = |micros| {
        let longest = Service::from_micros(micros);
        long.with_preemption(Preemption::Floating { longest })
            .unwrap()
    };
    assert_eq!(edf.admit(&[urgent, looks(2_000)], &Dedicated), Ok(()));
    assert!(edf.admit(&[urgent, looks(2_001)], &Dedicated).is_err());
    // The same by slots: X in every window, after Y − X at most.
    let half = Reservation::new(Service::from_micros(500), Span::from_millis(1)).unwrap();
    let half: &dyn SupplyBound = &ExplicitDeadline::continuous(half);
    assert!(edf.admit(&[urgent, looks(1_999)], half).is_err());
    assert_eq!(edf.admit(&[urgent, looks(400)], half), Ok(()));
    edf = Edf::new();
    let jitter = urgent.with_jitter(Span::MAX);
    assert!(edf.admit(&[jitter], &Dedicated).is_err());
}

/// On slots a nanosecond more may be a whole pause more: a region that begins in the very instant of an arrival blocks for all of its length.
#[test]
fn a_region_blocks_for_all_of_its_length() {
    let task = |cost, period, deadline| {
        let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period)).unwrap();
        task.with_deadline(Span::from_nanos(deadline)).unwrap()
    };
    let one = Service::from_nanos(1);
    let looks = task(1, 12, 8).with_preemption(Preemption::Floating { longest: one });
    let stubborn = task(1, 10, 22);
    let slots = Reservation::new(one, Span::from_nanos(5)).unwrap();
    let slots: &dyn SupplyBound = &ExplicitDeadline::continuous(slots);
    let refused = Edf::new().admit(&[looks.unwrap(), stubborn], slots);
    assert!(refused.is_err(), "it may be done at 10");
    let later = task(1, 12, 10);
    assert_eq!(Edf::new().admit(&[later, stubborn], slots), Ok(()));
}

#[test]
fn first_come_first_served_asks_of_nobody_the_jitter_of_others() {
    let (regular, late) = (task(1, 10, 10), task(1, 100, 100));
    let late = late.with_jitter(Span::from_micros(50));
    assert_eq!(Fcfs::new().admit(&[regular, late], &Dedicated), Ok(()));
    let too_late = late.with_jitter(Span::from_micros(99));
    let refused = Fcfs::new().admit(&[regular, too_late], &Dedicated);
    assert_eq!(refused.unwrap_err().bottleneck, Some(1));
}

/// Of 12 upcalls at 0.8 of a processor Liu and Layland's bound accepts none; exact response times do, up to a quantum that is too long.
/// The oracle: a job is complete after its own work, that of all who are no less urgent, as often as they come by then, and one region of
/// somebody less urgent.
fn is_in_time(periods_us: &[u64], share: u64, quantum_us: u64) -> bool {
    let is_met = |own: &u64| {
        let blocking = match periods_us.iter().any(|other| other > own) {
            true => quantum_us,
            false => 0,
        };
        let mut response = 0;
        loop {
            let before = periods_us.iter().filter(|other| *other <= own);
            let work: u64 = before
                .map(|period| response.max(1_u64).div_ceil(*period) * (period / share))
                .sum();
            let next = blocking + work;
            if next > *own || next == response {
                return next <= *own;
            }
            response = next;
        }
    };
    periods_us.iter().all(is_met)
}

#[test]
fn rate_monotonic_admits_what_response_times_allow() {
    let periods: Vec<u64> = (0..12).map(|place| 40_000 + 5_000 * (place % 11)).collect();
    let mut outcomes = [0; 2];
    for (share, quantum_us) in (13..30).flat_map(|share| (1..20).map(move |n| (share, n * 130))) {
        let longest = Service::from_micros(quantum_us);
        let preemption = Preemption::Floating { longest };
        let set = periods.iter().map(|period| {
            let task = task(period / share, *period, *period);
            task.with_preemption(preemption).ok()
        });
        // A region is no longer than its job.
        let Some(set) = set.collect::<Option<Vec<Task>>>() else {
            continue;
        };
        let admitted = Rmdp::new().admit(&set, &Dedicated).is_ok();
        assert_eq!(
            admitted,
            is_in_time(&periods, share, quantum_us),
            "1/{share}, {quantum_us} us"
        );
        outcomes[usize::from(admitted)] += 1;
    }
    assert!(outcomes.iter().all(|times| *times > 20), "{outcomes:?}");
}

#[test]
fn equals_wait_for_each_other_and_the_less_urgent_for_all() {
    // Both at one rate: either may come first, so each is complete after both.
    let pair = [task(3_000, 10_000, 10_000), task(4_000, 10_000, 10_000)];
    assert_eq!(Rmdp::new().admit(&pair, &Dedicated), Ok(()));
    let tight = [task(3_000, 10_000, 6_999), task(4_000, 10_000, 6_999)];
    assert_eq!(
        Rmdp::new()
            .admit(&tight, &Dedicated)
            .unwrap_err()
            .bottleneck,
        Some(0)
    );
    let just = [task(3_000, 10_000, 7_000), task(4_000, 10_000, 7_000)];
    assert_eq!(Rmdp::new().admit(&just, &Dedicated), Ok(()));
    // A less urgent one that never looks blocks for all of its length.
    let long = task(3_000, 40_000, 40_000);
    let just = [task(4_000, 10_000, 7_000), long];
    assert_eq!(Rmdp::new().admit(&just, &Dedicated), Ok(()));
    let refused = Rmdp::new().admit(&[task(4_000, 10_000, 6_999), long], &Dedicated);
    let refused = refused.unwrap_err();
    assert_eq!(refused.bottleneck, Some(0));
    assert!(
        refused.reason.contains("3ms of it for the less urgent"),
        "{refused}"
    );
}

/// Whoever is refused is told in time what there is, and what its job waits for besides others.
#[test]
fn what_there_is_and_what_a_job_waits_for_is_told_in_time() {
    let nine = Reservation::new(Service::from_millis(9), Span::from_millis(10)).unwrap();
    let (whole, nine) = (&Dedicated, &ExplicitDeadline::continuous(nine));
    let late = &Delayed::new(Dedicated, Span::from_millis(1));
    let tight = task(5_000, 10_000, 5_500);
    let refused: [(Task, &dyn SupplyBound, &str); 4] = [
        (
            task(11_000, 10_000, 10_000),
            whole,
            "more than a whole processor",
        ),
        (
            task(9_500, 10_000, 10_000),
            nine,
            "more than 9ms of every 10ms",
        ),
        (
            tight.with_jitter(Span::from_micros(600)),
            whole,
            ", 600us before it is released, and",
        ),
        (tight, late, ", 1ms until it has the processor, and"),
    ];
    for (task, supply, why) in refused {
        let refused = Rmdp::new().admit(&[task], supply).unwrap_err();
        assert!(refused.reason.contains(why), "{refused}");
    }
}
