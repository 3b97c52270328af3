//! What the lookout says of itself, and when it looks.

use laxity_model::{ActivityId, Service};

use super::*;
use crate::doctor::rights::{self, Right};
use crate::host::sighting::worker::Worker;
use crate::os::sched::{Policy, Tid};
use crate::run::own::{Kept, Ought};
use crate::run::port::Ports;

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// What it says of itself that looks so much later than it was to, and waited for so long, or was stopped while witnesses stood still for so long: sure, and
/// in doubt.
fn told(late: Span, waited: Option<Span>, stopped: Option<Span>) -> [Option<String>; 2] {
    let mut lookout = Lookout::at_own();
    lookout.stopped = stopped.is_some();
    assert_eq!(lookout.due(0), lookout.last + EVERY);
    lookout.begin_to_look(lookout.due(0) + late, waited, Span::ZERO);
    // A witness may wake after it.
    lookout.doubt_standstill(stopped.unwrap_or_default());
    [lookout.seen.unseen, lookout.seen.doubted]
}

#[test]
fn who_was_kept_from_looking_says_so() {
    let of_either = |late, waited: Option<u64>, both: [&str; 2]| {
        let found = told(ms(late), waited.map(ms), None).map(Option::unwrap_or_default);
        assert_eq!(found, both, "{late} {waited:?}");
    };
    let said = |late, waited, why| of_either(late, waited, [why, ""]);
    let doubted = |late, waited, why| of_either(late, waited, ["", why]);
    // Nobody counts to be in time.
    said(0, Some(0), "");
    // While the machine stood still, strangers did too; somebody else's processor may not have.
    said(500, Some(0), "");
    let stood = "nobody looked for 501ms: those who look stood still";
    doubted(501, Some(200), stood);
    // Somebody held the processor: as long as lies between two looks anybody may come and go.
    said(100, Some(100), "");
    let held = "nobody looked for 101ms: somebody held the processor of those who look";
    doubted(101, Some(80), held);
    let untold = "nobody looked for 101ms: those who look were kept from it";
    doubted(101, None, untold);
    // As nobody's neighbour does.
    let long = "nobody looked for 501ms: somebody held the processor of those who look";
    said(501, Some(480), long);
}

/// As where a debugger stops the thread that looks, and nobody else, while a stranger comes and goes. A halt of its processor alone is the machine's.
#[test]
fn a_stop_that_no_witness_met_is_doubted() {
    let alone = |late| {
        let why = "somebody stopped those who look, and no witness";
        Some(format!("nobody looked for {late}ms: {why}"))
    };
    let doubted = |late, stood| told(ms(late), Some(ms(0)), Some(ms(stood)));
    assert_eq!(told(ms(300), Some(ms(0)), None), [None, None]);
    assert_eq!(doubted(300, 0), [None, alone(300)]);
    assert_eq!(doubted(100, 0), [None, None]);
    // For so long they were stopped too.
    assert_eq!(doubted(300, 199), [None, alone(300)]);
    assert_eq!(doubted(300, 200), [None, None]);
}

#[test]
fn who_slept_more_than_once_was_stopped() {
    let give_up = || thread::sleep(std::time::Duration::from_millis(1));
    let mut lookout = Lookout::at_own();
    lookout.start();
    give_up();
    assert!(!lookout.woke());
    give_up();
    give_up();
    assert!(lookout.woke());
    give_up();
    assert!(!lookout.woke());
    assert!(lookout.stopped, "until it looks");
}

#[test]
fn who_rests_longer_than_was_promised_says_so() {
    let rested = |took, waited| {
        let mut lookout = Lookout::at_own();
        lookout.took = [ms(took); 2];
        let due = lookout.due(0);
        lookout.begin_to_look(due, Some(ms(waited)), Span::ZERO);
        (due.saturating_since(lookout.last), lookout.seen.unseen)
    };
    assert_eq!(rested(4, 0), (EVERY, None));
    // As long as somebody may hold the processor without a word, it may rest.
    assert_eq!(rested(8, 0), (ms(200), None));
    let told = |late| {
        let blind = format!("nobody looked for {late}ms: there are too many threads to look at");
        Some(blind)
    };
    assert_eq!(rested(9, 0), (ms(225), told(125)));
    assert_eq!(rested(40, 900), (ms(1_000), told(900)));
}

#[test]
fn what_one_look_alone_took_delays_no_other() {
    let mut lookout = Lookout::at_own();
    lookout.took = [ms(40), ms(2)];
    assert_eq!(lookout.due(0), lookout.last + EVERY);
    lookout.took = [ms(2), ms(40)];
    assert_eq!(lookout.due(1), lookout.last + ms(10));
}

/// Whoever holds the processor and steps down before the alarm is raised would be there at no look, if each that an alarm asks for put off the next.
#[test]
fn no_alarm_puts_off_the_look_that_comes_by_itself() {
    let run = Run::new(1, 0, Ports::default());
    let mut lookout = Lookout::at_own();
    lookout.regular = Unforeseen::new(clock::now() + Span::from_secs(3_600), 0);
    let due = lookout.due(0);
    run.raise_alarm();
    lookout.look_at_own(&run, || false);
    assert_eq!(lookout.due(run.alarm()), due);
    lookout.took = [ms(4); 2];
    run.raise_alarm();
    assert_eq!(lookout.due(run.alarm()), lookout.last + ms(20));
}

/// It is raised, or let loose of its processor, so that it ends.
#[test]
fn what_becomes_of_who_works_on_long_after_its_run_is_nobodys_doing() {
    let other = Policy::Fifo(98);
    let tampered = |run: &Run| {
        run.register(Own {
            tid: Tid::current(),
            who: "a thread".to_owned(),
            role: Role::Activity(ActivityId(0)),
            cpu: 0,
            may_wander: true,
            ought: Ought::Kept(Arc::new(Kept::new(Tid::current(), other))),
        });
        let mut lookout = Lookout::at_own();
        lookout.look_at_own(run, || false);
        lookout.seen.tampered.len()
    };
    assert_eq!(tampered(&Run::that_ended(Instant::from_nanos(1))), 0);
    assert_eq!(tampered(&Run::that_ended(clock::now())), 1);
    assert_eq!(tampered(&Run::new(1, 0, Ports::default())), 1);
}

/// As one whose number came long before it could be found by it.
#[test]
fn the_last_look_misses_nobody_who_was_overlooked() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let stranger = Worker::start();
    sched::set_policy(stranger.tid, Policy::Fifo(90)).unwrap();
    let is_it = |thread: &RealTimeThread| thread.tid == stranger.tid;
    let run = Run::new(1, 0, Ports::default());
    let mut lookout = Lookout::begin(Vec::new(), |_| false);
    lookout.census.overlook(stranger.tid);
    let seen = [false, true].map(|is_over| {
        lookout.look(&run, || is_over, is_it);
        lookout.seen.strangers.len()
    });
    stranger.end();
    assert_eq!(seen, [0, 1]);
}

/// Each of them has less than half of what goes unnoticed, waking up included.
#[test]
fn who_each_take_little_of_a_processor_between_two_looks_are_seen_together() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let usable = sched::affinity(Tid::current()).unwrap();
    let cpu = usable.iter().next().unwrap();
    let all = [(); 8].map(|()| Worker::ranked(Policy::Fifo(90), cpu));
    let is_one = |thread: &RealTimeThread| all.iter().any(|one| one.tid == thread.tid);
    let run = Run::new(1, 0, Ports::default());
    let mut lookout = Lookout::begin(vec![cpu], is_one);
    let mut idle = |count: usize| {
        for one in &all[..count] {
            one.work_for(Service::from_micros(20));
        }
        lookout.look(&run, || false, is_one);
        let strangers = lookout.seen.strangers.iter();
        strangers.filter(|one| one.is_idle(cpu)).count()
    };
    let found = [idle(1), idle(8)];
    all.into_iter().for_each(Worker::end);
    // The one that worked alone may have had more, as where the machine stood still.
    assert!(matches!(found, [7 | 8, 0]), "{found:?}");
}
