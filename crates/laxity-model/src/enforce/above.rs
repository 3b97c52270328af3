//! Who goes first where somebody runs: a halt of the machine that pushes a job into what these do next costs it that as well.

use alloc::vec;
use alloc::vec::Vec;

use super::ranks;
use crate::analysis::Task;
use crate::request::Work;
use crate::{Activity, ActivityId, Enforcer, Placement, Program, Span};

/// Above whatever has a `SCHED_FIFO` priority.
const BY_DEADLINE: u8 = 100;

/// By [`ActivityId`](crate::ActivityId): the work that is declared of those that may go first where it runs, and of those that take turns with it on an executor. Of who has a
/// reservation nothing: it has what is reserved.
#[must_use]
pub fn above(program: &Program) -> Vec<Vec<Work>> {
    let each = program.numbered().map(|(own, activity)| {
        let beside = match activity.placement {
            Placement::On { executor, .. } => Some(executor),
            _ => None,
        };
        let host = program.executors().find(|(id, _)| Some(*id) == beside);
        let thread = host.map_or(own, |(_, thread)| thread);
        let place = &program.activities[thread.index()];
        if place.reservation.is_some() {
            return Vec::new();
        }
        let others = program.work.iter().filter(|(other, _)| {
            let is_above = |one| goes_first((one, program.at_highest(*other)), place);
            *other != thread && program.activities.get(other.index()).is_some_and(is_above)
        });
        let above = others.flat_map(|(other, together)| each_of(program, *other, *together));
        let turns = beside.into_iter().flat_map(|on| program.tasks_on(on));
        let turns = turns.filter(|(other, _)| *other != own);
        above.chain(turns.map(|(_, task)| work(&task))).collect()
    });
    each.collect()
}

/// What is declared of an activity; of an executor where more is known what each does that takes turns on it, as often as that comes.
fn each_of(program: &Program, activity: ActivityId, together: Work) -> Vec<Work> {
    let mut executors = program.executors();
    let host = executors.find(|(_, thread)| *thread == activity);
    let host = host.filter(|(id, _)| program.undeclared_on(*id).next().is_none());
    let tasks = host.into_iter().flat_map(|(id, _)| program.tasks_on(id));
    let each: Vec<Work> = tasks.map(|(_, task)| work(&task)).collect();
    if each.is_empty() {
        vec![together]
    } else {
        each
    }
}

fn work(task: &Task) -> Work {
    Work {
        service: task.cost(),
        period: task.period(),
    }
}

/// Equals may; who may be raised counts as if he were.
fn goes_first((one, highest): (&Activity, Option<Placement>), own: &Activity) -> bool {
    let is_outside = |of: &Activity| matches!(of.placement, Placement::External);
    // The kernel's reservations keep to no processor.
    let is_here = one.processor == own.processor || is_by_deadline(one);
    let meet = is_here && !is_outside(one) && !is_outside(own);
    meet && rank(one, highest.unwrap_or(one.placement)) >= rank(own, own.placement)
}

fn is_by_deadline(activity: &Activity) -> bool {
    let request = activity.reservation;
    request.is_some_and(|request| request.enforcer == Enforcer::Deadline)
}

/// What takes turns on an executor goes by the executor's rank, and has no work of its own to be told of.
fn rank(activity: &Activity, placement: Placement) -> Option<u8> {
    let own = match placement {
        Placement::On { .. } => None,
        placement => ranks::of_placement(placement).real_time(),
    };
    let reserved = activity.reservation.map(|request| match request.enforcer {
        Enforcer::Slots => ranks::OCCUPANT,
        Enforcer::Deadline => BY_DEADLINE,
    });
    own.max(reserved)
}

/// Nobody is late by more because of one halt: those for whom that came out take all there is, and the halt is not why.
const MOST: Span = Span::from_secs(10);

/// By how much a halt of this length delays whoever these go before: the least d for which d = h + Σ ⌈d / T⌉ C, as a response time is found (Joseph, Pandya, "Finding Response Times in a
/// Real-Time System", 1986).
pub(super) fn behind(halted: Span, above: &[Work]) -> Span {
    let mut delayed = halted;
    loop {
        let meanwhile = above.iter().map(|work| {
            let jobs = delayed.as_nanos().div_ceil(work.period.as_nanos().max(1));
            work.service.as_dedicated_span() * jobs
        });
        let next = meanwhile.fold(halted, |all, one| all + one);
        if next >= MOST {
            // They leave nothing: who waits for them is late with and without the halt.
            return halted;
        }
        if next <= delayed {
            return next;
        }
        delayed = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    use crate::executor::fcfs::Fcfs;
    use crate::policy::classes::Scheduling;
    use crate::{Context, Outside, ProcessorId, Reservation, ReservationRequest, Service, Step};

    fn fifo(priority: u8) -> Placement {
        Placement::Linux(Scheduling::Fifo(priority))
    }

    /// Of these, each on a processor and perhaps with a reservation, and each with work that comes once in a millisecond more than that of the one before: how often that
    /// comes which goes before each, in milliseconds.
    fn goes_before(all: &[(Placement, u16, Option<Enforcer>)]) -> Vec<Vec<u64>> {
        let (service, period) = (Service::from_millis(1), Span::from_millis(10));
        let mut program = Program::new(2);
        for (ms, (placement, processor, enforcer)) in (1..).zip(all) {
            let reservation = Reservation::new(service, period).expect("it fits");
            let id = program.push(Activity {
                name: "it".into(),
                processor: ProcessorId(*processor),
                placement: *placement,
                reservation: enforcer.map(|enforcer| ReservationRequest {
                    reservation,
                    enforcer,
                    outside: Outside::AsPlaced,
                    begins_at_start: true,
                }),
                body: Box::new(|_: &mut dyn Context| Step::Finish),
            });
            let period = Span::from_millis(ms);
            program.declare_work(id, Work { service, period });
        }
        let period_ms = |work: &Work| work.period.as_nanos() / 1_000_000;
        let above = above(&program).into_iter();
        let each = above.map(|all| all.iter().map(period_ms).collect());
        each.collect()
    }

    #[test]
    fn who_ranks_as_high_on_the_same_processor_may_go_first_and_nobody_else() {
        let here = |priority| (fifo(priority), 0, None);
        assert_eq!(goes_before(&[here(50)]), [[0; 0]], "its own work");
        assert_eq!(goes_before(&[here(50), here(50)]), [[2], [1]], "equals");
        let ranks = goes_before(&[here(51), here(50), here(52)]);
        assert_eq!(ranks, [vec![3], vec![1, 3], vec![]]);
        let elsewhere = (fifo(99), 1, None);
        assert_eq!(goes_before(&[here(50), elsewhere]), [[0; 0]; 2]);
        let outside = (Placement::External, 0, None);
        assert_eq!(goes_before(&[here(50), outside]), [[0; 0]; 2]);
        let anywhere = (fifo(1), 1, Some(Enforcer::Deadline));
        assert_eq!(goes_before(&[here(50), anywhere])[0], [2]);
    }

    /// Two take turns on an executor beside a thread above it, and one below: 1 ms every 5 and 3 ms every 20, which were declared as 4 ms every 5.
    #[test]
    fn on_an_executor_what_goes_first_is_not_its_own() {
        let ms = Service::from_millis;
        let of = |service_ms, period_ms| Work {
            service: ms(service_ms),
            period: Span::from_millis(period_ms),
        };
        let mut program = Program::new(1);
        let here = ProcessorId(0);
        let on = program.executor("turns", (here, fifo(50)), None, Fcfs::default());
        let mut push = |placement, work: Work| {
            let id = program.push(Activity {
                name: "it".into(),
                processor: here,
                placement,
                reservation: None,
                body: Box::new(|_: &mut dyn Context| Step::Finish),
            });
            if !matches!(placement, Placement::On { .. }) {
                program.declare_work(id, work);
            }
        };
        let turn = |work: Work| Placement::On {
            executor: on,
            task: Some(Task::new(work.service, work.period).expect("it fits")),
        };
        let [often, seldom, high, low] = [of(1, 5), of(3, 20), of(2, 10), of(4, 40)];
        push(turn(often), often);
        push(turn(seldom), seldom);
        push(fifo(60), high);
        push(fifo(40), low);
        program.declare_work(ActivityId(0), of(4, 5));
        for _ in ["before bodies are placed", "and then"] {
            let found = above(&program);
            assert_eq!(found[0], [high], "the executor");
            assert_eq!(found[1], [high, seldom]);
            assert_eq!(found[2], [high, often]);
            assert_eq!(found[3], []);
            let mut below = found[4].clone();
            below.sort_by_key(|work| work.period);
            assert_eq!(below, [often, high, seldom]);
            program.place_bodies();
        }
    }

    /// What only some of them are declared to do is less than what was declared of the executor.
    #[test]
    fn of_an_executor_with_one_of_which_nothing_is_known_its_own_work_counts() {
        let (service, period) = (Service::from_millis(4), Span::from_millis(5));
        let together = Work { service, period };
        let mut program = Program::new(1);
        let on = program.executor("turns", (ProcessorId(0), fifo(50)), None, Fcfs::default());
        let known = Task::new(Service::from_millis(1), period).expect("it fits");
        let turns = [Some(known), None].map(|task| Placement::On { executor: on, task });
        for placement in turns.into_iter().chain([fifo(40)]) {
            program.push(Activity {
                name: "it".into(),
                processor: ProcessorId(0),
                placement,
                reservation: None,
                body: Box::new(|_: &mut dyn Context| Step::Finish),
            });
        }
        program.declare_work(ActivityId(0), together);
        assert_eq!(above(&program)[3], [together]);
    }

    #[test]
    fn before_who_has_a_reservation_nobody_goes_who_is_not_reckoned_with() {
        let low = |enforcer| (fifo(1), 0, enforcer);
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            let found = goes_before(&[low(Some(enforcer)), (fifo(99), 0, None), low(None)]);
            let by_rank = match enforcer {
                Enforcer::Slots => vec![],
                Enforcer::Deadline => vec![1],
            };
            assert_eq!(found, [vec![], by_rank, vec![1, 2]], "{enforcer:?}");
        }
    }

    #[test]
    fn a_halt_that_pushes_a_job_into_what_goes_first_costs_that_too() {
        let of = |service_ms, period_ms| Work {
            service: Service::from_millis(service_ms),
            period: Span::from_millis(period_ms),
        };
        let ms = Span::from_millis;
        let table = [
            (&[][..], 2, 2),
            (&[of(5, 10)], 2, 7),
            (&[of(5, 10)], 6, 16),
            (&[of(2, 5), of(1, 20)], 1, 4),
            (&[of(10, 10)], 1, 1),
            (&[of(6, 5)], 1, 1),
            (&[of(1, 5)], 20_000, 20_000),
            (&[of(5, 10)], 0, 0),
        ];
        for (above, halted, expected) in table {
            assert_eq!(
                behind(ms(halted), above),
                ms(expected),
                "{above:?} {halted}"
            );
        }
    }
}
