//! A halt of the machine, and those who go first when it is over.

use laxity_model::Disturbance;
use laxity_model::request::Work;

use super::*;

/// 5 ms of every 10 go first; alone with them a job of 9 ms is done in 19 of its 20. A halt of 2 ms pushes it into the next of theirs, and so past its deadline and the release after it.
#[test]
fn a_halt_that_pushes_a_job_into_who_goes_first_excuses_all_that_this_costs() {
    let probe = PeriodicProbe {
        period: Span::from_millis(20),
        deadline: Span::from_millis(20),
        service: Service::from_millis(9),
        ..probe()
    };
    let turns = [(27, 30), (35, 40), (45, 46), (65, 70), (75, 79)];
    let mut events = vec![event(20, Wake, [20, 0])];
    for (from, to) in turns {
        events.push(event(from, Dispatch, [0, 0]));
        match from {
            27 => events.push(event(27, EventKind::Mark(RUNS), [20, 27])),
            65 => events.push(event(65, EventKind::Mark(RUNS), [60, 65])),
            _ => {}
        }
        let is_last = [46, 79].contains(&to);
        events.push(event(to, if is_last { Block } else { Preempt }, [0, 0]));
        if to == 46 {
            events.push(event(60, Wake, [60, 0]));
        }
    }
    let convicted = |above: Vec<Work>| {
        let mut record = RunRecord {
            disturbances: vec![still([20, 22])],
            ..record(events.clone(), 80)
        };
        record.usage[0].above = above;
        let run = Run {
            disturbances: laxity_model::Disturbances::of(&record, [&ActivityId(0)]),
            ..Run::of(&record)
        };
        let seen = seen(&probe, &record, run);
        [Quantity::DEADLINE_MISSES, Quantity::RELEASES_MISSED]
            .map(|quantity| seen.whole(quantity).undisturbed.sum())
    };
    let above = Work {
        service: Service::from_millis(5),
        period: Span::from_millis(10),
    };
    assert_eq!(convicted(vec![above]), [0, 0]);
    assert_eq!(convicted(Vec::new()), [2, 1], "by itself it is late");
}

/// That the machine stood still, from then to then.
fn still(span: [u64; 2]) -> Disturbance {
    let [from, to] = span.map(Instant::from_millis);
    Disturbance {
        processor: ProcessorId(0),
        from,
        to,
    }
}

/// How many deadlines were missed, and convict, of jobs that were due and ended then, where the machine stood still from then to then, in milliseconds, and this goes first.
fn missed(jobs: &[(u64, u64)], halts: &[[u64; 2]], above: &[Work]) -> u64 {
    missed_by(&probe(), (jobs, halts), above, (0, 40))
}

/// The same of this task, where somebody looked so often whether it stood still, until the run's end.
fn missed_by(
    probe: &PeriodicProbe,
    course: (&[(u64, u64)], &[[u64; 2]]),
    above: &[Work],
    looked: (u64, u64),
) -> u64 {
    let seen = course_of(probe, course, above, looked);
    let missed = seen.whole(Quantity::DEADLINE_MISSES).undisturbed.sum();
    u64::try_from(missed).expect("few")
}

/// All that is seen of it.
fn course_of(
    probe: &PeriodicProbe,
    (jobs, halts): (&[(u64, u64)], &[[u64; 2]]),
    above: &[Work],
    (looks, end): (u64, u64),
) -> Observations {
    let jobs = jobs.iter().map(|(due, ended)| {
        let run = event(*due, EventKind::Mark(RUNS), [*due, *due]);
        [run, event(*ended, Block, [0, 0])]
    });
    let jobs = jobs
        .flatten()
        .filter(|event| event.at <= Instant::from_millis(end));
    let events: Vec<Event> = jobs.collect();
    let mut record = RunRecord {
        disturbances: halts.iter().copied().map(still).collect(),
        witness_wakeups: looks,
        ..record(events, end)
    };
    record.usage[0].above = above.to_vec();
    let run = Run {
        disturbances: laxity_model::Disturbances::of(&record, [&ActivityId(0)]),
        ..Run::of(&record)
    };
    seen(probe, &record, run)
}

/// What of a quantity of such a job convicts at most, where the machine stood still for 2 ms of its period, until the run's end.
fn most(quantity: Quantity, job: (u64, u64), end: u64) -> u64 {
    let seen = course_of(&probe(), (&[job], &[[12, 14]]), &[], (0, end));
    seen.whole(quantity).undisturbed.max().unwrap_or_default()
}

/// An overrun is the machine's where it made the job longer by as much as that.
#[test]
fn a_halt_excuses_an_overrun_as_it_excuses_a_miss() {
    for quantity in [Quantity::JOB_OVERRUNS, Quantity::DEADLINE_MISSES] {
        assert_eq!(most(quantity, (10, 32), 40), 1, "{quantity:?}");
        assert_eq!(most(quantity, (10, 21), 29), 0, "{quantity:?}");
    }
}

/// A job of 6 ms behind one of 3 ms of every 10, as above: its response is no longer than that, too, but for the halt before it was due.
#[test]
fn a_halt_before_a_job_was_due_excuses_its_response_and_its_overrun_as_its_miss() {
    let above = [Work {
        service: Service::from_millis(3),
        period: Span::from_millis(10),
    }];
    let jobs = [(10, 15), (20, 31)];
    let seen = course_of(&probe(), (&jobs, &[[17, 19]]), &above, (0, 40));
    for quantity in [Quantity::JOB_OVERRUNS, Quantity::DEADLINE_MISSES] {
        assert_eq!(seen.whole(quantity).undisturbed.sum(), 0, "{quantity:?}");
    }
    let response = seen.whole(Quantity::RESPONSE_TIME).undisturbed.max();
    assert!(
        response.is_some_and(|most| most < 6_000_000),
        "{response:?}"
    );
}

/// What the run's end finds at work, or waiting, is excused by as much as what was over.
#[test]
fn a_short_halt_excuses_nothing_of_a_long_wait_that_the_runs_end_finds() {
    let open = most(Quantity::RESPONSE_TIME, (10, 400), 300);
    assert!(open > 280_000_000, "{open}");
    // The next has not begun.
    for quantity in [
        Quantity::WAKEUP_GAP,
        Quantity::WAKEUP_LATENCY,
        Quantity::SERVICE_GAP,
        Quantity::RESPONSE_TIME,
    ] {
        let halts = [[22, 23]];
        let seen = course_of(&probe(), (&[(10, 12)], &halts), &[], (0, 300));
        let open = seen.whole(quantity).undisturbed.max().unwrap_or_default();
        assert!(open > 270_000_000, "{quantity:?} {open}");
    }
}

/// A job of 6 ms that is due at 20 ms behind one of 3 ms of every 10 ends at 29, and at 31 where a halt of 2 ms ends just before it is due: what goes first has yet to do its work then.
#[test]
fn a_halt_that_is_over_as_a_job_is_due_excuses_it_where_others_are_behind() {
    let above = [Work {
        service: Service::from_millis(3),
        period: Span::from_millis(10),
    }];
    let jobs = [(10, 15), (20, 31)];
    assert_eq!(missed(&jobs, &[[17, 19]], &above), 0);
    // And the release at 30 ms as well.
    assert_eq!(missed(&jobs, &[[17, 19]], &[]), 2, "nobody is behind");
    assert_eq!(
        missed(&jobs, &[[14, 15]], &above),
        2,
        "all is done by 18 ms"
    );
}

/// Two of 9 ms: a halt of 3 ms in the first makes that end at 22 and the second at 31. Behind a first one that was in time the second was late of itself.
#[test]
fn a_halt_excuses_the_job_that_its_own_one_before_kept_waiting() {
    assert_eq!(missed(&[(10, 22), (20, 31)], &[[13, 16]], &[]), 0);
    assert_eq!(missed(&[(10, 19), (20, 31)], &[[13, 16]], &[]), 2);
}

/// A halt of 1 ms in the first: where each takes 11 ms of every 10 they are late all the same, and where each takes 10 all are because of it, also that due at 30 ms, which finds the last at work.
#[test]
fn a_halt_excuses_no_more_of_those_after_it_than_they_waited_for_it() {
    assert_eq!(missed(&[(0, 12), (10, 23), (20, 34)], &[[3, 4]], &[]), 4);
    assert_eq!(missed(&[(0, 11), (10, 21), (20, 31)], &[[3, 4]], &[]), 0);
}

/// The first is worked off by 15 ms, and the second costs the job that is due at 20 ms its own millisecond. The release at 30 ms finds that at work.
#[test]
fn a_halt_excuses_nothing_by_another_that_was_over_and_done_with() {
    let jobs = [(10, 12), (20, 33)];
    assert_eq!(missed(&jobs, &[[12, 15], [25, 26]], &[]), 2);
}

/// What nobody saw of a halt lies before it: one that ends at 19 ms by a look, and began up to a millisecond before another one, was over when the job was due.
#[test]
fn a_halt_ends_when_it_was_seen_to() {
    let jobs = [(10, 12), (20, 31)];
    assert_eq!(missed_by(&probe(), (&jobs, &[[15, 19]]), &[], (40, 40)), 2);
    assert_eq!(missed_by(&probe(), (&jobs, &[[15, 21]]), &[], (40, 40)), 0);
}

/// One that is called late, and has not begun at the run's end, waited as well for its own one before.
#[test]
fn a_halt_excuses_the_job_that_its_own_one_before_kept_from_ever_beginning() {
    let probe = PeriodicProbe {
        on_overrun: OnOverrun::CatchUp { at_most: 2 },
        ..probe()
    };
    let convicts = |ended, end| {
        let jobs = [(10, ended)];
        missed_by(&probe, (&jobs, &[[13, 16]]), &[], (0, end))
    };
    // The first would have been late by itself by 9 ms, and kept the other waiting for 12.
    assert_eq!(convicts(32, 33), 1);
    assert_eq!(convicts(32, 34), 2);
}

/// What a job waited for its own one before, and its own halt besides: 2 ms of 3, and 2.
#[test]
fn a_job_is_behind_by_what_it_waited_and_by_its_own_halt() {
    let halts = [[13, 16], [25, 27]];
    assert_eq!(missed(&[(10, 22), (20, 33)], &halts, &[]), 0);
}

/// A halt of 5 ms keeps the next job waiting for 2 ms, and that takes 11 by itself: it is late, and so is the release at 30 ms.
#[test]
fn a_job_waited_for_no_longer_than_its_own_one_before_was_at_work() {
    assert_eq!(missed(&[(10, 22), (20, 33)], &[[12, 17]], &[]), 2);
}

/// A job that is at work as the next is released is late for both, whatever comes after that and costs however much behind others.
#[test]
fn a_halt_excuses_nothing_that_was_late_before_it() {
    let above = [Work {
        service: Service::from_millis(3),
        period: Span::from_millis(10),
    }];
    assert_eq!(missed(&[(10, 22)], &[[21, 22]], &above), 2);
}

/// Of a halt that is seen from a release on, or from a deadline on, what is unseen lies before that: a millisecond here. A job that it kept until then is in time without it.
#[test]
fn a_halt_that_is_seen_from_a_release_on_may_have_begun_before() {
    let seen = |ended| {
        let seen = course_of(&probe(), (&[(10, ended)], &[[20, 22]]), &[], (40, 40));
        let those = [
            Quantity::DEADLINE_MISSES,
            Quantity::JOB_OVERRUNS,
            Quantity::RELEASES_MISSED,
        ];
        those.map(|quantity| seen.whole(quantity).undisturbed.sum())
    };
    assert_eq!(seen(22), [0; 3]);
    assert_eq!(seen(24)[1], 1, "it was at work without the halt, too");
}

/// Who never begins waits for the whole run, and a halt of a moment is not why.
#[test]
fn a_release_that_never_came_to_anything_is_excused_no_more_than_its_miss() {
    let seen = course_of(&probe(), (&[], &[[11, 12]]), &[], (0, 29));
    for quantity in [Quantity::DEADLINE_MISSES, Quantity::RELEASES_MISSED] {
        assert_eq!(seen.whole(quantity).undisturbed.sum(), 1, "{quantity:?}");
    }
}
