//! Pacing against a list of all releases, taken one by one.

use std::num::NonZeroU32;

use laxity_model::analysis::Preemption;
use laxity_model::base::port::Arrival;
use laxity_model::executor::pacing::{Arriving, Next, OnOverrun, Paced, Pacing};
use laxity_model::program::upcall::Timing;
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;

/// Every release, in order, with nothing but comparisons.
struct Oracle {
    grid: std::collections::VecDeque<u64>,
    late: u32,
}

impl Oracle {
    fn new(first: u64, period: u64) -> Self {
        let grid = (0..2_000).map(|k| first + k * period).collect();
        Self { grid, late: 0 }
    }

    fn call(&mut self, missed: u64, overrun: bool) -> Next {
        let release = Instant::from_nanos(self.grid.pop_front().expect("a long grid"));
        Next::Call(Paced {
            release,
            missed,
            overrun,
        })
    }

    fn resume(&mut self, now: u64) -> Next {
        while self.grid[0] < now {
            self.grid.pop_front();
        }
        self.late = 0;
        self.call(0, false)
    }

    fn after(&mut self, ended: u64, on_overrun: OnOverrun) -> Next {
        if self.grid[0] >= ended {
            self.late = 0;
            return self.call(0, false);
        }
        let at_most = match on_overrun {
            OnOverrun::Suspend => return Next::Suspended,
            OnOverrun::End => return Next::Ended,
            OnOverrun::EndProcess => return Next::EndProcess,
            OnOverrun::CatchUp { at_most } => at_most,
        };
        let room = at_most.saturating_sub(self.late) as usize;
        let mut missed = 0;
        while self.grid.iter().filter(|at| **at < ended).count() > room {
            self.grid.pop_front();
            missed += 1;
        }
        self.late = if self.grid[0] < ended {
            self.late + 1
        } else {
            0
        };
        self.call(missed, true)
    }
}

fn policies() -> impl Strategy<Value = OnOverrun> {
    prop_oneof![
        (0_u32..5).prop_map(|at_most| OnOverrun::CatchUp { at_most }),
        Just(OnOverrun::Suspend),
        Just(OnOverrun::End),
        Just(OnOverrun::EndProcess),
    ]
}

fn pacing(first: u64, period: u64, on_overrun: OnOverrun) -> Pacing {
    let (first, period) = (Instant::from_nanos(first), Span::from_nanos(period));
    Pacing::new(first, period, on_overrun).expect("a period")
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

proptest! {
    /// A handler that is called when its release comes, and takes what it takes.
    #[test]
    fn every_call_is_the_one_that_a_list_of_releases_gives(
        (first, began) in (0_u64..30, 0_u64..40),
        period in 1_u64..12,
        on_overrun in policies(),
        takes in prop::collection::vec(0_u64..40, 1..40),
    ) {
        let mut paced = pacing(first, period, on_overrun);
        let mut oracle = Oracle::new(first, period);
        let (mut now, mut late) = (began, 0);
        let mut next = paced.resume(at(now));
        prop_assert_eq!(next, oracle.resume(now));
        for takes in takes {
            let Next::Call(call) = next else {
                now += 7;
                next = paced.resume(at(now));
                prop_assert_eq!(next, oracle.resume(now));
                continue;
            };
            let release = call.release.as_nanos();
            prop_assert!(release >= first && (release - first) % period == 0, "on the grid");
            late = if release < now { late + 1 } else { 0 };
            if let OnOverrun::CatchUp { at_most } = on_overrun {
                prop_assert!(late <= at_most, "no burst");
            }
            now = now.max(release) + takes;
            next = paced.after(at(now));
            prop_assert_eq!(next, oracle.after(now, on_overrun));
        }
    }

    /// Every release is called or missed, each once.
    #[test]
    fn no_release_is_lost_and_none_comes_twice(
        at_most in 0_u32..4,
        takes in prop::collection::vec(0_u64..40, 1..40),
    ) {
        let mut paced = pacing(0, 10, OnOverrun::CatchUp { at_most });
        let (mut now, mut expected) = (0, 0);
        let mut next = paced.resume(at(0));
        for takes in takes {
            let Next::Call(call) = next else { panic!("it goes on") };
            expected += call.missed * 10;
            prop_assert_eq!(call.release, at(expected));
            expected += 10;
            now = now.max(call.release.as_nanos()) + takes;
            next = paced.after(at(now));
        }
    }
}

/// A handler that arrivals release, in its port's hands.
struct Fed {
    arriving: Arriving,
    /// What has not been taken, with the number of each.
    to_come: std::collections::VecDeque<(u64, u64)>,
}

impl Fed {
    fn new(distance: u64, on_overrun: OnOverrun, arrivals: impl Iterator<Item = u64>) -> Self {
        Self {
            arriving: Arriving::new(Span::from_nanos(distance), on_overrun),
            to_come: arrivals.zip(0..).collect(),
        }
    }

    /// What comes next, and the number of what arrived with it, for a body that began then, and waits as long as it must.
    fn after(&mut self, began: u64, ended: Option<u64>) -> (Next, u64) {
        let now = ended.unwrap_or(began);
        let arrival = |(nanos, number)| Arrival {
            at: at(nanos),
            payload: [number, 0],
        };
        loop {
            let to_come = &mut self.to_come;
            let take = || {
                to_come.front().filter(|(nanos, _)| *nanos <= now)?;
                to_come.pop_front().map(arrival)
            };
            if let Some((next, [number, _])) = self.arriving.after(ended.map(at), take) {
                return (next, number);
            }
            let next = self.to_come.pop_front().expect("enough arrivals");
            self.arriving.arrives(arrival(next));
        }
    }
}

proptest! {
    /// Arrivals on a grid are called as a timer on that grid would call, whatever is chosen for overruns.
    #[test]
    fn arrivals_on_a_grid_are_a_timer(
        first in 0_u64..30,
        period in 1_u64..12,
        on_overrun in policies(),
        takes in prop::collection::vec(0_u64..40, 1..40),
    ) {
        let grid = (0..2_000).map(|k| first + k * period);
        let (mut fed, mut paced) = (Fed::new(period, on_overrun, grid), pacing(first, period, on_overrun));
        let (mut next, mut now) = (paced.resume(at(0)), 0);
        let mut arrived = fed.after(0, None);
        for takes in takes {
            prop_assert_eq!(arrived.0, next);
            let Next::Call(call) = next else { break };
            prop_assert_eq!(at(first + arrived.1 * period), call.release);
            now = now.max(call.release.as_nanos()) + takes;
            next = paced.after(at(now));
            arrived = fed.after(0, Some(now));
        }
    }

    /// However they come, and whenever it begins: not before that, no sooner than the distance apart, in order, each called or missed once, and no more calls in a row late than may be.
    #[test]
    fn arrivals_are_called_or_missed_each_once_and_never_in_a_burst(
        distance in 0_u64..12,
        at_most in 0_u32..5,
        began in prop_oneof![Just(0_u64), 0_u64..600],
        gaps in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..30], 40),
        takes in prop::collection::vec(1_u64..40, 39),
    ) {
        let mut last = 0;
        let arrivals = gaps.into_iter().map(|gap| { last += gap; last });
        let arrivals: Vec<u64> = arrivals.chain((0..100).map(|far| 10_000 + 100 * far)).collect();
        let mut fed = Fed::new(distance, OnOverrun::CatchUp { at_most }, arrivals.iter().copied());
        fed.arriving.follow(None, at(began));
        let (mut ended, mut expected, mut late, mut before) = (None, 0, 0, None);
        for takes in takes {
            let (Next::Call(call), number) = fed.after(began, ended) else { panic!("it goes on") };
            expected += call.missed;
            prop_assert_eq!(number, expected);
            expected += 1;
            let release = call.release.as_nanos();
            prop_assert!(release >= arrivals[number as usize].max(began));
            prop_assert!(before.is_none_or(|before| release >= before + distance));
            before = Some(release);
            late = if ended.is_some_and(|ended| release < ended) { late + 1 } else { 0 };
            prop_assert!(late <= at_most);
            prop_assert_eq!(call.overrun, late > 0 || call.missed > 0);
            ended = Some(ended.unwrap_or(0).max(release) + takes);
        }
    }
}

proptest! {
    /// However many are to be called late, no more is held than there is room for where they wait, and none is lost that was there.
    #[test]
    fn what_waits_is_no_more_than_there_is_room_for(
        (distance, at_most, room) in (0_u64..12, prop_oneof![0_u32..8, Just(u32::MAX)], 1_u32..6),
        gaps in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..30], 40),
        takes in prop::collection::vec(1_u64..40, 40),
    ) {
        let mut last = 0;
        let arrivals: Vec<u64> = gaps.into_iter().map(|gap| { last += gap; last }).collect();
        let arriving = Arriving::new(Span::from_nanos(distance), OnOverrun::CatchUp { at_most });
        let mut arriving = arriving.in_room(room);
        let mut to_come = arrivals.iter().copied().peekable();
        let (mut waits, mut dropped) = (std::collections::VecDeque::new(), 0);
        let (mut ended, mut taken, mut told) = (None, 0, 0);
        for takes in takes {
            let now = ended.unwrap_or(0);
            while let Some(nanos) = to_come.next_if(|nanos| *nanos <= now) {
                if waits.len() < room as usize {
                    waits.push_back(Arrival { at: at(nanos), payload: [0; 2] });
                } else {
                    dropped += 1;
                }
            }
            let mut take = || { taken += u64::from(!waits.is_empty()); waits.pop_front() };
            let mut next = arriving.after(ended.map(at), &mut take);
            if next.is_none() && let Some(nanos) = to_come.next() {
                taken += 1;
                arriving.arrives(Arrival { at: at(nanos), payload: [0; 2] });
                next = arriving.after(ended.map(at), || None);
            }
            let Some((Next::Call(call), _)) = next else { break };
            told += call.missed + 1;
            prop_assert!(taken - told <= u64::from(room), "{taken} {told}");
            prop_assert!(at_most < u32::MAX || call.missed == 0);
            ended = Some(now.max(call.release.as_nanos()) + takes);
        }
        prop_assert_eq!(taken + waits.len() as u64 + dropped + to_come.count() as u64, 40);
    }
}

/// However a batch is cut, its quanta are together what it takes, and none is longer than its task's longest region, or the last shorter than that says.
#[test]
fn the_quanta_of_a_batch_are_the_regions_of_its_task() {
    let units = |units| NonZeroU32::new(units).unwrap();
    for (batch, quantum, nanos) in [
        (12, 5, 1_000),
        (7, 3, 1_001),
        (16, 1, 65),
        (3, 2, 1),
        (4, 4, 10),
        (1, 9, 10),
    ] {
        let timing = Timing {
            batch: units(batch),
            quantum: units(quantum),
            ..Timing::each(Span::from_micros(10))
        };
        let service = Service::from_nanos(nanos);
        let shares: Vec<Service> = (0..batch)
            .step_by(quantum as usize)
            .map(|done| timing.share(service, done, quantum))
            .collect();
        let all = shares.iter().fold(Service::ZERO, |all, share| all + *share);
        assert_eq!(all, service);
        let task = timing.task(service, Span::from_micros(9)).unwrap();
        assert_eq!(
            (task.cost(), task.deadline()),
            (service, Span::from_micros(9))
        );
        assert!(shares.iter().all(|share| *share <= task.longest_region()));
        if quantum < batch {
            let Preemption::Fixed { last, .. } = task.preemption() else {
                panic!("it looks: {task:?}");
            };
            assert!(*shares.last().unwrap() >= last, "{shares:?} {last}");
        } else {
            assert_eq!(task.preemption(), Preemption::Never);
        }
    }
}

#[test]
fn a_grid_ends_with_time_and_has_a_period() {
    let zero = Pacing::new(at(0), Span::ZERO, OnOverrun::SKIP);
    assert_eq!(zero, None);
    let mut paced = pacing(u64::MAX - 15, 10, OnOverrun::ONCE_LATE);
    let call = |release: u64| {
        Next::Call(Paced {
            release: at(release),
            missed: 0,
            overrun: false,
        })
    };
    assert_eq!(paced.resume(at(3)), call(u64::MAX - 15));
    assert_eq!(paced.after(at(u64::MAX - 12)), call(u64::MAX - 5));
    assert_eq!(paced.after(at(u64::MAX - 4)), Next::Ended);
    assert_eq!(paced.resume(at(u64::MAX)), Next::Ended);
    let mut never = pacing(u64::MAX, 10, OnOverrun::SKIP);
    assert_eq!(never.resume(at(3)), Next::Ended);
}
