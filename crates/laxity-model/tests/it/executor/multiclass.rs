//! Multi-class earliest deadline first against a list that is searched, and its admission.

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::executor::multiclass_edf::MulticlassEdf;
use laxity_model::executor::{ExecutorPolicy, HandlerId, Handlers, Job, Wait};
use laxity_model::policy::Policy;
use laxity_model::policy::three_classes::{By, Early};
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;

use super::{at, task};

const PLACES: u64 = 5;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// The running one inherits: so much later it is current, and so much after that due.
    Inherit(u64, Option<u64>),
    Yield,
    Sleep(u64),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..20_u64, proptest::option::weighted(0.7, 0..20_u64)).prop_map(|(logical, due)| Op::Inherit(logical, due)),
        2 => Just(Op::Yield),
        1 => (0..9_u64).prop_map(Op::Sleep),
        3 => (0..6_u64).prop_map(Op::Pass),
    ]
}

fn early() -> impl Strategy<Value = Early> {
    prop_oneof![
        (0..9_u64).prop_map(|nanos| Early::Held {
            horizon: Span::from_nanos(nanos)
        }),
        Just(Early::Last),
        Just(Early::BeforeBestEffort),
    ]
}

/// Of one that is released: logical arrival and deadline, if it is ever due, and how many had entered before.
#[derive(Clone, Copy, Debug)]
struct Released {
    who: u16,
    due: Option<(u64, u64)>,
    came: u64,
}

/// The oracle's place of one now: its class, and what counts there; `None` if it is held.
fn place(one: &Released, early: Early, by: By, now: u64) -> Option<(u8, u64)> {
    let Some((logical, deadline)) = one.due else {
        return Some((2, 0));
    };
    let horizon = match early {
        Early::Held { horizon } => horizon.as_nanos(),
        _ => 0,
    };
    let from = logical.saturating_sub(horizon);
    match (early, by) {
        (_, By::Deadline) if from <= now => Some((0, deadline)),
        (_, By::Priority) if from <= now => Some((0, deadline - logical)),
        (Early::Held { .. }, _) => None,
        (Early::Last, _) => Some((3, from)),
        (Early::BeforeBestEffort, _) => Some((1, from)),
    }
}

proptest! {
    #[test]
    fn current_by_deadline_then_best_effort_and_early_by_logical_arrival(
        early in early(),
        by in prop_oneof![Just(By::Deadline), Just(By::Priority)],
        ops in proptest::collection::vec(op(), 0..150),
    ) {
        let policy = MulticlassEdf::with_room(PLACES as usize, early, by);
        let mut handlers: Handlers<_, 5> = Handlers::new(policy);
        let mut now = 100;
        let mut came = 0;
        let mut released: Vec<Released> = Vec::new();
        let mut asleep: Vec<(u16, u64)> = Vec::new();
        let mut ids = Vec::new();
        // The first is never due, nor is what it does; the others are, so much later.
        let default = |who: u16, at: u64| (who > 0).then(|| (at, at + 10 * u64::from(who)));
        for who in 0..PLACES as u16 {
            let deadline = default(who, 0).map(|(_, due)| Span::from_nanos(due));
            ids.push(handlers.make(deadline, at(now)).unwrap());
            released.push(Released { who, due: default(who, now), came });
            came += 1;
        }
        for op in ops {
            let runs = handlers.running().map(|(id, _)| id);
            if runs.is_none() {
                // Whoever became current at different instants is behind no equal for it.
                let goes = handlers.decide(at(now)).unwrap();
                let placed = released.iter().filter_map(|one| Some((place(one, early, by, now)?, one)));
                let least = placed.clone().map(|(place, _)| place).min();
                let of_goes = placed.clone().find(|(_, one)| Some(one.who) == goes.map(HandlerId::place));
                prop_assert_eq!(of_goes.map(|(place, _)| place), least);
                if let (Some((2, _)), Some((_, goes))) = (least, of_goes) {
                    let first = placed.filter(|(place, _)| place.0 == 2).map(|(_, one)| one.came).min();
                    prop_assert_eq!(Some(goes.came), first);
                }
            }
            let Some(id) = handlers.running().map(|(id, _)| id) else {
                if let Op::Pass(nanos) = op { now += nanos; }
                let next = asleep.iter().map(|(_, until)| *until).chain([handlers.reorders(at(now)).as_nanos()]).min();
                if let Some(next) = next.filter(|next| *next != u64::MAX) { now = now.max(next); }
                wake(&mut handlers, &mut asleep, &mut released, &mut came, now, default);
                continue;
            };
            let own = released.iter().position(|one| one.who == id.place()).unwrap();
            let mine = place(&released[own], early, by, now);
            let others = released.iter().filter(|one| one.who != id.place());
            let first = others.filter_map(|one| place(one, early, by, now)).min();
            let is_first = |first: (u8, u64)| mine.is_none_or(|mine| first < mine);
            prop_assert_eq!(handlers.must_yield(at(now)).ok(), Some(first.is_some_and(is_first)).filter(|_| mine.is_some() || first.is_some()));
            match op {
                Op::Inherit(later, due) => {
                    let due = due.map(|due| (now + later, now + later + due));
                    let told = due.map_or((at(now), Instant::MAX), |(logical, due)| (at(logical), at(due)));
                    prop_assert_eq!(handlers.inherit(id, told, at(now)), Ok(()));
                    released[own] = Released { who: id.place(), due, came };
                    came += 1;
                }
                Op::Yield => {
                    prop_assert_eq!(handlers.yield_now(id, at(now)), Ok(()));
                    released[own].came = came;
                    came += 1;
                }
                Op::Sleep(nanos) => {
                    let wait = Wait { port: None, until: at(now + nanos) };
                    prop_assert_eq!(handlers.wait(id, wait, at(now)), Ok(()));
                    released.remove(own);
                    asleep.push((id.place(), now + nanos));
                    asleep.sort_unstable();
                }
                Op::Pass(nanos) => now += nanos,
            }
            wake(&mut handlers, &mut asleep, &mut released, &mut came, now, default);
            prop_assert!(handlers.is_conserved());
        }
    }
}

/// All wake whose instant has come, by their places.
fn wake(
    handlers: &mut Handlers<MulticlassEdf, 5>,
    asleep: &mut Vec<(u16, u64)>,
    released: &mut Vec<Released>,
    came: &mut u64,
    now: u64,
    default: impl Fn(u16, u64) -> Option<(u64, u64)>,
) {
    handlers.release_due(at(now), |_| {});
    asleep.retain(|(who, until)| {
        if *until > now {
            return true;
        }
        released.push(Released {
            who: *who,
            due: default(*who, *until),
            came: *came,
        });
        *came += 1;
        false
    });
}

#[test]
fn who_is_raised_is_current_though_he_was_early_or_never_due() {
    for deadline in [Instant::MAX, at(500)] {
        let mut policy = MulticlassEdf::with_room(2, Early::Last, By::Deadline);
        let job = |logical, deadline| Job {
            release: at(0),
            logical,
            deadline,
        };
        policy.enter(0, job(at(0), at(40)), at(0));
        policy.enter(1, job(at(400), deadline), at(0));
        assert_eq!(policy.decide(at(0)).who, Some(0));
        policy.raise(1, laxity_model::policy::Rank::Deadline(at(30)), at(0));
        assert_eq!(policy.decide(at(0)).who, Some(1));
    }
}

#[test]
fn the_order_changes_by_itself_when_one_becomes_current() {
    let mut policy = MulticlassEdf::with_room(2, Early::Last, By::Deadline);
    let job = |logical: u64, deadline| Job {
        release: at(0),
        logical: at(logical),
        deadline,
    };
    policy.enter(0, job(0, Instant::MAX), at(0));
    policy.enter(1, job(70, at(90)), at(0));
    let decision = policy.decide(at(0));
    assert_eq!((decision.who, decision.until), (Some(0), at(70)));
    assert_eq!(policy.decide(at(70)).who, Some(1));
}

/// Where nothing is early, a region blocks those only who are due sooner than its handler; and where it may be in what is early, everybody.
#[test]
fn what_works_ahead_blocks_everybody_with_its_longest_region() {
    let looks = |task: Task, micros| {
        let longest = Service::from_micros(micros);
        let looks = task.with_preemption(Preemption::Floating { longest });
        looks.unwrap()
    };
    let urgent = looks(task(1_000, 10_000, 3_000), 1_000);
    let long = looks(task(2_500, 40_000, 3_500), 1_000);
    let short_region = looks(task(2_500, 40_000, 3_500), 10);
    let held = Early::Held {
        horizon: Span::ZERO,
    };
    for by in [By::Deadline, By::Priority] {
        let admits = |early, tasks: &[Task]| {
            let policy = MulticlassEdf::new(early, by);
            policy.admit(tasks, &Dedicated).is_ok()
        };
        assert!(admits(held, &[urgent, long]), "{by:?}");
        for early in [
            Early::Last,
            Early::BeforeBestEffort,
            Early::Held {
                horizon: Span::from_nanos(1),
            },
        ] {
            // 1 and 2.5 ms are due within 3.5, and nothing is left for the region of an early job.
            assert!(!admits(early, &[urgent, long]), "{by:?}, {early:?}");
            let short = looks(task(1_000, 10_000, 3_000), 10);
            let less = looks(task(2_400, 40_000, 3_500), 10);
            assert!(admits(early, &[short, less]), "{by:?}, {early:?}");
        }
        assert!(admits(held, &[urgent, short_region]), "{by:?}");
    }
}
