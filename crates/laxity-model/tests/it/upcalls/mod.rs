//! Upcalls that come and go as they are told: held against a list of the releases that each must have; and their admission, against the policy that it asks.

mod arrivals;
mod groups;
mod leaving;
mod links;
mod long_chains;
mod machine;
mod pauses;
mod polled;

use std::sync::Arc;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::utilization::{liu_layland, liu_layland_bound};
use laxity_model::analysis::{Doubt, Preemption, Task, Verdict};
use laxity_model::executor::linked::{self, Linked};
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::executor::{ExecutorError, Unschedulable};
use laxity_model::program::upcall::{Call, Epoch, First, Timing, Upcall};
use laxity_model::program::upcalls::{
    Command, Control, Denied, Effect, Overhead, STOP, Standing, admit_among, charged, task, turns,
};
use laxity_model::{Body, Context, Instant, Mark, Service, Span, Step};
use proptest::prelude::*;

use machine::{
    COMMANDS, Calls, DOORBELL, Does, MICRO, PLACES, Virtual, boards, events, keep, order, run,
    timing, us,
};

#[derive(Clone, Copy, Debug)]
struct Asked {
    after: u64,
    place: u16,
    command: Command,
}

fn asked() -> impl Strategy<Value = Asked> {
    let commands = prop_oneof![
        Just(Command::Create),
        Just(Command::Run),
        Just(Command::Run),
        Just(Command::Suspend),
        Just(Command::Close),
    ];
    (0..8_u64, 0..PLACES, commands).prop_map(|(after, place, command)| Asked {
        after,
        place,
        command,
    })
}

/// The obvious account of one upcall: whether it is there, and since when it runs.
#[derive(Clone, Copy, Default)]
struct Account {
    there: bool,
    since: Option<u64>,
}

impl Account {
    /// Whether the command means something; the time in which it ran until now, if it ends now.
    fn told(&mut self, command: Command, now: u64) -> (bool, Option<(u64, u64)>) {
        if (command == Command::Create) == self.there {
            return (false, None);
        }
        let ends = matches!(command, Command::Suspend | Command::Close);
        let ran = self.since.filter(|_| ends).map(|since| (since, now));
        if ends {
            self.since = None;
        }
        match command {
            Command::Create => self.there = true,
            Command::Run => self.since = self.since.or(Some(now)),
            Command::Suspend => {}
            Command::Close => self.there = false,
        }
        (true, ran)
    }
}

proptest! {
    /// Everything is over half a hundred microseconds after each hundred, when commands come: so whoever runs then is called at each release, and nobody else is.
    #[test]
    fn whoever_is_to_run_is_called_at_each_release_and_nobody_else(
        grids in proptest::collection::vec((0..10_u64, 1..6_u64, 1..6_u32, 1..6_u32), usize::from(PLACES)),
        asked in proptest::collection::vec(asked(), 0..40),
    ) {
        let timings = grids.iter().map(|(first, period, batch, quantum)| (timing(first * 100, period * 100, *batch, *quantum), None));
        let keep = keep(timings.collect(), |_| Step::Charge(MICRO));
        let boards = boards();
        let (mut now, mut script, mut ran) = (50, Vec::new(), Vec::new());
        let mut accounts = [Account::default(); PLACES as usize];
        for (ticket, one) in (1..).zip(&asked) {
            now += one.after * 100;
            let (_, over) = accounts[usize::from(one.place)].told(one.command, now);
            ran.extend(over.map(|window| (one.place, window)));
            script.push(order(now, one.place, one.command, ticket));
        }
        let end = now + 1_000;
        let still = (0..PLACES).zip(accounts).filter_map(|(place, account)| Some((place, (account.since?, end))));
        ran.extend(still);
        let mut expected = Vec::new();
        for (place, (since, until)) in ran {
            let (first, period, ..) = grids[usize::from(place)];
            let releases = (0..).map(|k| (first + k * period) * 100).take_while(|release| *release < until);
            expected.extend(releases.filter(|release| *release >= since).map(|release| (place, us(release))));
        }
        run(&keep, &boards, script, end);
        let mut calls = keep.calls.lock().unwrap().clone();
        expected.sort();
        calls.sort();
        prop_assert_eq!(calls, expected);
        prop_assert!(boards.iter().all(|board| board.standing() == Standing::Absent));
    }

    /// Each command is answered as the account says.
    #[test]
    fn what_means_nothing_is_refused_and_changes_nothing(asked in proptest::collection::vec(asked(), 1..20)) {
        let mut accounts = [Account::default(); PLACES as usize];
        for count in 1..=asked.len() {
            let keep = keep(vec![(timing(0, 100, 1, 1), None); usize::from(PLACES)], |_| Step::Charge(MICRO));
            let boards = boards();
            let script = (1..).zip(&asked[..count]).map(|(ticket, one)| order(50 + ticket * 100, one.place, one.command, ticket));
            run(&keep, &boards, script.collect(), 10_000);
            let last = asked[count - 1];
            let (means, _) = accounts[usize::from(last.place)].told(last.command, 0);
            let answer = boards[usize::from(last.place)].answer(count as u64);
            let expected = if means { Ok(()) } else { Err(ExecutorError::NoSuchHandler) };
            prop_assert_eq!(answer, Some(expected), "{:?}", last);
        }
    }

    /// What is admitted the policy admits with all that is charged; what would fit does, and a microsecond more does not, or less than that a nanosecond.
    #[test]
    fn admission_asks_the_policy_and_proposes_the_most_that_fits(
        present in proptest::collection::vec((1..20_u64, 20..200_u64), 0..5),
        (service, period, batch, quantum) in (1..30_u64, 10..200_u64, 1..8_u32, 1..8_u32),
    ) {
        let present: Vec<Linked> = present.iter().map(|(cost, period)| {
            Linked::alone(Task::new(Service::from_millis(*cost), Span::from_millis(*period)).unwrap())
        }).collect();
        let names = vec!["other"; present.len()];
        let with = |own| present.iter().copied().chain([Linked::alone(own)]).collect::<Vec<Linked>>();
        let timing = timing(0, period * 1_000, batch, quantum);
        let ask = |unit| admit_among((&names, &with), ("new", &timing, unit, timing.period), Overhead::default(), &by_rate);
        match ask(Service::from_millis(service)) {
            Ok(own) => prop_assert_eq!(own, task(&timing, Service::from_millis(service), timing.period).unwrap()),
            Err(no) => {
                prop_assert!(["other", "new"].contains(&no.bottleneck.as_str()));
                match no.fits {
                    Some(fits) => {
                        prop_assert!(ask(fits).is_ok());
                        let more = if fits < MICRO { Service::from_nanos(1) } else { MICRO };
                        prop_assert!(ask(fits + more).is_err());
                    }
                    None => prop_assert!(ask(Service::from_nanos(1)).is_err()),
                }
            }
        }
    }
}

/// Four that need 0.8 of a processor together, a fifth each: by Liu and Layland's bound nothing is known of more than 0.756. By exact response times all are in time, with what their executor adds.
#[test]
fn more_is_admitted_than_a_bound_of_utilization_would() {
    assert_eq!(liu_layland_bound(4).ppm(), 756_829);
    let (mut present, mut plain) = (Vec::new(), Vec::new());
    for period_ms in [10, 20, 40, 80] {
        let timing = timing(0, period_ms * 1_000, 100, 1);
        let unit = Service::from_micros(period_ms * 2);
        let asked = ("new", &timing, unit, timing.period);
        let with = |own| {
            let all = present.iter().copied().chain([own]);
            all.map(Linked::alone).collect()
        };
        let names = vec!["other"; present.len()];
        let own = admit_among((&names, &with), asked, Overhead::default(), &by_rate).unwrap();
        plain.push(Task::new(own.cost(), timing.period).unwrap());
        present.push(own);
    }
    let by_bound = liu_layland(&plain);
    assert_eq!(by_bound, Ok(Verdict::Unknown(Doubt::Sufficient)));
}

fn by_rate(all: &[Linked]) -> Result<(), Unschedulable> {
    linked::admit(&Rmdp::<128>::default(), all, &Dedicated).map(drop)
}

proptest! {
    /// Of each call, and of each of its quanta.
    #[test]
    fn what_an_executor_adds_is_charged((batch, quantum, unit) in (1..2_000_u32, 1..200_u32, 1..9_u64), pauses in any::<bool>()) {
        let own = Timing { pauses, ..timing(0, 100_000, batch, quantum) };
        let own = task(&own, MICRO * unit, own.period).unwrap();
        let [each, look] = [2_000, 500].map(Service::from_nanos);
        let overhead = Overhead { late: Span::from_micros(100), each, quantum: look };
        let charged = charged(vec![Linked::alone(own)], overhead)[0].task;
        let quanta = (0..batch).step_by(quantum as usize).count() as u64;
        prop_assert_eq!(charged.cost(), own.cost() + each + look * quanta);
        prop_assert_eq!(charged.jitter(), overhead.late);
        let region = match own.preemption() {
            Preemption::Never => charged.cost(),
            _ => own.longest_region() + each + look,
        };
        prop_assert_eq!(charged.longest_region(), region);
    }
}

/// A look after each microsecond of a millisecond takes half as long again.
#[test]
fn one_that_looks_often_is_refused_where_its_work_alone_would_fit() {
    let fits = |quantum| {
        let own = timing(0, 1_150, 1_000, quantum);
        let asked = ("new", &own, MICRO, own.period);
        let with = |own| vec![Linked::alone(own)];
        admit_among((&[], &with), asked, Overhead::default(), &by_rate).is_ok()
    };
    assert!(fits(1_000) && fits(50));
    assert!(!fits(1));
}

#[test]
fn a_batch_is_cut_into_quanta_of_which_the_last_is_the_rest() {
    let cut = |batch, quantum| {
        let timing = timing(0, 1_000, batch, quantum);
        task(&timing, MICRO, timing.period).unwrap().preemption()
    };
    let fixed = |longest, last| Preemption::Fixed {
        longest: Service::from_micros(longest),
        last: Service::from_micros(last),
    };
    assert_eq!(cut(16, 4), fixed(4, 4));
    assert_eq!(cut(7, 3), fixed(3, 1));
    assert_eq!(cut(2, 9), Preemption::Never);
}

#[test]
fn one_that_is_more_urgent_goes_before_the_next_quantum_and_commands_before_all() {
    let timings = vec![
        (timing(100, 1_000, 8, 2), None),
        (timing(103, 500, 1, 1), None),
    ];
    let keep = keep(timings, |_| Step::Charge(Service::from_micros(2)));
    let boards = boards();
    let start = |place| [Command::Create, Command::Run].map(|command| order(10, place, command, 0));
    let mut script: Vec<_> = (0..2).flat_map(start).collect();
    script.push(order(106, 0, Command::Suspend, 1));
    run(&keep, &boards, script, 400);
    let calls = keep.calls.lock().unwrap().clone();
    assert_eq!(calls, [(0, us(100)), (1, us(103))]);
    let counts = boards[0].counts();
    // Two quanta, at 100 and 102; then a yield; the third never came, since it was suspended first.
    assert_eq!((counts.calls, counts.units, counts.yields), (1, 4, 1));
    assert_eq!(boards[1].counts().most_late, Span::from_micros(1));
    assert_eq!(boards[1].counts().longest_response, Span::from_micros(3));
}

#[test]
fn what_suspends_or_ends_itself_is_told_apart_from_what_overran() {
    let from = |first, does: Does, on_overrun| {
        let own = Timing {
            first: First::At(first),
            on_overrun,
            ..timing(100, 100, 1, 1)
        };
        let keep = keep(vec![(own, None)], does);
        let boards = boards();
        let script = vec![
            order(10, 0, Command::Create, 0),
            order(10, 0, Command::Run, 0),
        ];
        let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), keep.clone());
        let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
        let mut machine = Virtual::new(script);
        // As far as there is anything to do.
        for _ in 0..40 {
            match body.step(&mut machine) {
                Step::Charge(service) => machine.pass_to(machine.now + service.as_dedicated_span()),
                Step::Wait(port) if machine.script.is_empty() => {
                    assert_eq!(port, DOORBELL);
                    break;
                }
                Step::Wait(port) => machine.wait(port, Instant::MAX),
                Step::WaitUntil(port, until) => machine.wait(port, until),
                Step::EndRun => {
                    assert_eq!(on_overrun, OnOverrun::EndProcess);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        (boards[0].standing(), boards[0].counts().overruns)
    };
    let after = |does, on_overrun| from(us(100), does, on_overrun);
    let skip = OnOverrun::SKIP;
    let long: Does = |_| Step::Charge(Service::from_micros(250));
    let suspends: Does = |_| Step::SleepUntil(Instant::MAX);
    assert_eq!(after(suspends, skip), (Standing::Suspended, 0));
    assert_eq!(after(|_| Step::Finish, skip), (Standing::Ended, 0));
    assert_eq!(after(long, OnOverrun::Suspend), (Standing::Overran, 1));
    assert_eq!(after(long, OnOverrun::End), (Standing::Ended, 1));
    assert_eq!(after(long, OnOverrun::EndProcess), (Standing::Overran, 1));
    // Its grid is past the end of time.
    assert_eq!(from(Instant::MAX, long, skip), (Standing::Ended, 0));
}

#[test]
fn arrivals_release_no_sooner_than_a_period_apart() {
    let keep = keep(vec![(timing(0, 100, 1, 1), Some(events(0)))], |_| {
        Step::Charge(MICRO)
    });
    let boards = boards();
    let mut script: Vec<_> = [200, 230, 260, 900]
        .map(|at| (us(at), events(0), [at, 0]))
        .into();
    script.push(order(10, 0, Command::Create, 0));
    script.push(order(20, 0, Command::Run, 0));
    run(&keep, &boards, script, 2_000);
    let calls = keep.calls.lock().unwrap().clone();
    assert_eq!(calls, [200, 300, 400, 900].map(|at| (0, us(at))));
    assert_eq!(boards[0].counts().most_late, Span::ZERO);
}

/// Those of one epoch are released together: who has its first turn after another's call has not lost what was released by then.
#[test]
fn a_release_that_comes_before_the_first_turn_is_served_late() {
    let (calls, epoch) = (Calls::default(), Epoch::default());
    let one = |who, period| -> Box<dyn Body> {
        let first = First::After(epoch.clone(), Span::ZERO);
        let own = Timing {
            first,
            ..timing(0, period, 1, 1)
        };
        let calls = Arc::clone(&calls);
        let work = move |_: &mut dyn Context, call: &mut Call| {
            calls.lock().unwrap().push((who, call.paced.release));
            if call.paced.release == Instant::ZERO {
                return Step::Charge(MICRO * 250);
            }
            assert_eq!(call.paced.missed, u64::from(who));
            Step::Finish
        };
        Box::new(Upcall::new(own, Mark(0), work))
    };
    let mut both = [(0, 300), (1, 400)].map(|(who, period)| Some((period, one(who, period))));
    let make = move |context: &mut dyn Context| {
        for (period, body) in both.iter_mut().filter_map(Option::take) {
            let deadline = Span::from_micros(period);
            context.make_handler(Some(deadline), body).unwrap();
        }
        Step::Finish
    };
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(make), false);
    Virtual::new(Vec::new()).run(&mut *body);
    let expected = [(0, 0), (1, 0), (0, 300), (1, 800)];
    let expected = expected.map(|(who, at)| (who, us(at)));
    assert_eq!(*calls.lock().unwrap(), expected);
}

/// However often it is suspended and runs again in between.
#[test]
fn arrivals_keep_their_distance_through_a_suspension() {
    let keep = keep(vec![(timing(0, 100, 1, 1), Some(events(0)))], |_| {
        Step::Charge(MICRO)
    });
    let mut script: Vec<_> = [200, 230, 250, 900]
        .map(|at| (us(at), events(0), [at, 0]))
        .into();
    let commands = [Command::Create, Command::Run];
    script.extend(commands.map(|command| order(10, 0, command, 0)));
    for at in [210, 240, 310] {
        script.push(order(at, 0, Command::Suspend, 0));
        script.push(order(at + 5, 0, Command::Run, 0));
    }
    run(&keep, &boards(), script, 2_000);
    let calls = keep.calls.lock().unwrap().clone();
    // What was held when it was suspended is nobody's.
    assert_eq!(calls, [200, 300, 900].map(|at| (0, us(at))));
}

/// It was to be released from when that was asked on: whoever keeps the executor from hearing of it takes no release away.
#[test]
fn a_release_that_comes_before_a_command_is_heard_is_served() {
    let timings = vec![
        (timing(80, 1_000, 1, 1), None),
        (timing(100, 1_000, 1, 1), None),
    ];
    let keep = keep(timings, |_| Step::Charge(MICRO * 50));
    let mut script = vec![order(10, 1, Command::Create, 0)];
    let commands = [Command::Create, Command::Run];
    script.extend(commands.map(|command| order(10, 0, command, 0)));
    script.push(order(95, 1, Command::Run, 0));
    let boards = boards();
    run(&keep, &boards, script, 1_090);
    let calls = keep.calls.lock().unwrap().clone();
    assert_eq!(calls, [(0, us(80)), (1, us(100)), (0, us(1_080))]);
    assert_eq!(boards[1].counts().most_late, Span::from_micros(30));
}

/// A call that has begun is not begun again: not even by one who asked before its release.
#[test]
fn no_release_is_called_twice() {
    let timings = vec![(timing(100, 1_000, 1, 1), None)];
    let keep = keep(timings, |_| Step::Charge(Service::ZERO));
    let commands = [Command::Create, Command::Run];
    let mut script: Vec<_> = commands.map(|command| order(10, 0, command, 0)).into();
    let boards = boards();
    let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), keep.clone());
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
    let again = [Command::Suspend, Command::Run].map(|command| order(100, 0, command, 0));
    script.push((us(1_050), COMMANDS, STOP));
    let mut machine = Virtual::new(script);
    let mut again = Some(again);
    loop {
        match body.step(&mut machine) {
            Step::Charge(_) => {}
            Step::Finish => break,
            Step::Wait(port) => machine.wait(port, Instant::MAX),
            Step::WaitUntil(port, until) => machine.wait(port, until),
            other => panic!("{other:?}"),
        }
        if boards[0].counts().calls == 1
            && let Some(again) = again.take()
        {
            for (_, port, payload) in again {
                machine.put(port, payload);
            }
        }
    }
    assert_eq!(*keep.calls.lock().unwrap(), [(0, us(100))]);
}

/// The first call takes two distances and a half; of what arrived meanwhile becomes what was chosen.
#[test]
fn arrivals_that_a_call_overran_have_the_consequence_that_was_chosen() {
    let called = |on_overrun| {
        let own = Timing {
            on_overrun,
            ..timing(0, 100, 1, 1)
        };
        let keep = keep(vec![(own, Some(events(0)))], |call| match call {
            1 => Step::Charge(MICRO * 250),
            _ => Step::Charge(MICRO),
        });
        let mut script: Vec<_> = [200, 210, 220, 230, 900]
            .map(|at| (us(at), events(0), [at, 0]))
            .into();
        script.push(order(10, 0, Command::Create, 0));
        script.push(order(20, 0, Command::Run, 0));
        let boards = boards();
        run(&keep, &boards, script, 2_000);
        let counts = boards[0].counts();
        let calls = keep.calls.lock().unwrap().clone();
        let calls = calls.into_iter().map(|(_, release)| release);
        (calls.collect::<Vec<_>>(), counts.missed, counts.overruns)
    };
    let at = |releases: &[u64]| releases.iter().copied().map(us).collect::<Vec<_>>();
    // Released 200, 300, 400, 500, and 900.
    assert_eq!(called(OnOverrun::SKIP), (at(&[200, 500, 900]), 2, 1));
    let once = at(&[200, 400, 500, 900]);
    assert_eq!(called(OnOverrun::ONCE_LATE), (once, 1, 1));
    let all = at(&[200, 300, 400, 500, 900]);
    let catch_up = OnOverrun::CatchUp { at_most: 5 };
    assert_eq!(called(catch_up), (all, 0, 2));
    assert_eq!(called(OnOverrun::Suspend), (at(&[200]), 0, 1));
    assert_eq!(called(OnOverrun::End), (at(&[200]), 0, 1));
}

#[test]
fn what_arrived_for_one_that_was_closed_releases_nobody_after_it() {
    let keep = keep(vec![(timing(0, 100, 1, 1), Some(events(0)))], |_| {
        Step::Charge(MICRO)
    });
    let script = vec![
        order(10, 0, Command::Create, 0),
        (us(20), events(0), [0; 2]),
        order(30, 0, Command::Close, 0),
        order(40, 0, Command::Create, 0),
        order(50, 0, Command::Run, 1),
        (us(900), events(0), [0; 2]),
    ];
    run(&keep, &boards(), script, 2_000);
    assert_eq!(*keep.calls.lock().unwrap(), [(0, us(900))]);
}

#[test]
fn a_command_means_the_same_whatever_was_asked_before() {
    use Standing::{Absent, Active, Ended, Overran, Panicked, Suspended};
    let made = [Suspended, Active, Overran, Ended, Panicked];
    assert_eq!(Absent.asked(Command::Create), Ok(Effect::Make));
    for standing in made {
        assert_eq!(standing.asked(Command::Create), Err(Denied));
        assert_eq!(standing.asked(Command::Close), Ok(Effect::Discard));
    }
    for standing in [Ended, Panicked, Absent] {
        assert_eq!(standing.asked(Command::Run), Err(Denied));
    }
}
