//! Programs on the live host: what they see, and that nothing of them remains.
#![allow(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;
mod reservations;
mod strangers;

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::clock;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::idle::{LATENCY_FILE, LIGHT_SLEEP_US};
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_linux::os::signals;
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::enforce::Witness;
use laxity_model::{
    Activity, ActivityId, Context, Disturbance, Enforcer, Event, EventKind, Grade, Host, HostError,
    Instant, Outside, Placement, Priority, ProcessorId, Program, Reservation, ReservationRequest,
    RunEnd, RunRecord, Scheduling, Service, Span, Step,
};

use common::footprint;

const CPU0: ProcessorId = ProcessorId(0);
const NORMAL: Placement = Placement::Thread(Priority::NORMAL);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn thread(level: u8) -> Placement {
    Placement::Thread(Priority::new(level).expect("a priority below 32"))
}

fn turn(rights: &[Right]) -> Option<LiveTest> {
    rights::require(rights)
}

fn live() -> Option<(LiveTest, LiveHost)> {
    let turn = turn(&[Right::RealTime, Right::Processors(2)])?;
    Some((turn, LiveHost::new(config())))
}

fn config() -> LiveConfig {
    LiveConfig::detect(1).expect("one processor and one more")
}

fn spinner() -> impl FnMut(&mut dyn Context) -> Step + Send {
    |_: &mut dyn Context| Step::Burn(Service::from_millis(1))
}

fn reserved(x_us: u64, y_us: u64, enforcer: Enforcer, outside: Outside) -> ReservationRequest {
    ReservationRequest {
        reservation: Reservation::new(Service::from_micros(x_us), Span::from_micros(y_us))
            .expect("a possible reservation"),
        enforcer,
        outside,
        begins_at_start: true,
    }
}

fn with_reservation(
    program: &mut Program,
    name: &str,
    request: ReservationRequest,
    body: impl FnMut(&mut dyn Context) -> Step + Send + 'static,
) -> ActivityId {
    program.push(Activity {
        name: name.to_owned(),
        processor: CPU0,
        placement: NORMAL,
        reservation: Some(request),
        body: Box::new(body),
    })
}

fn of(record: &RunRecord, id: ActivityId, kind: EventKind) -> Vec<Event> {
    record
        .events
        .iter()
        .filter(|event| event.activity == id && event.kind == kind)
        .copied()
        .collect()
}

#[test]
fn a_periodic_thread_wakes_at_every_instant_and_never_before_it() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let before = footprint();
    let mut program = Program::new(1);
    let mut next = None;
    let periodic = program.add(
        "periodic",
        CPU0,
        thread(31),
        move |context: &mut dyn Context| {
            let due: Instant = next.map_or_else(|| context.now(), |due: Instant| due + ms(1));
            next = Some(due);
            Step::SleepUntil(due)
        },
    );
    let record = host.admit_and_run(program, ms(50)).expect("it runs");
    assert_eq!(record.ended_by, RunEnd::Length);
    assert_eq!(record.events_lost, 0);
    let wakes = of(&record, periodic, EventKind::Wake);
    let meant: Vec<u64> = wakes.iter().map(|wake| wake.args[0]).collect();
    assert!(wakes.iter().all(|wake| wake.at.as_nanos() >= wake.args[0]));
    assert!(
        meant[2..]
            .windows(2)
            .all(|pair| pair[1] - pair[0] == 1_000_000)
    );
    assert!((40..=52).contains(&meant.len()), "{} wake-ups", meant.len());
    assert_eq!(before, footprint());
}

/// What wake-ups may be late by, of all that is asked of the kernel, in microseconds.
fn tolerated_us() -> i32 {
    let mut value = [0; 4];
    let mut file = std::fs::File::open(LATENCY_FILE).expect("root may read it");
    file.read_exact(&mut value).expect("a number");
    i32::from_ne_bytes(value)
}

#[test]
fn idle_processors_do_not_sleep_deeply_while_it_runs() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    if std::fs::File::options()
        .write(true)
        .open(LATENCY_FILE)
        .is_err()
    {
        return rights::lacks("how deeply processors sleep may not be told to the kernel");
    }
    let before = tolerated_us();
    let meanwhile = Arc::new(AtomicU64::new(u64::MAX));
    let seen = Arc::clone(&meanwhile);
    let mut program = Program::new(1);
    program.add("looks", CPU0, NORMAL, move |_: &mut dyn Context| {
        seen.store(tolerated_us().unsigned_abs().into(), Ordering::SeqCst);
        Step::Finish
    });
    let record = host.admit_and_run(program, ms(20)).expect("it runs");
    assert!(meanwhile.load(Ordering::SeqCst) <= LIGHT_SLEEP_US.into());
    assert_eq!(tolerated_us(), before);
    assert_eq!(record.notices, [""; 0]);
}

/// Whoever ends it may be the one who serves: what comes in until somebody sees that is not owed.
#[test]
fn a_run_is_over_when_a_body_ends_it_however_late_that_is_seen() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let external = config().external;
    let (wanted, holds) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let told = Arc::clone(&wanted);
    let mut program = Program::new(1);
    program.add(
        "ends",
        CPU0,
        thread(20),
        move |context: &mut dyn Context| {
            let held = Arc::clone(&holds);
            std::thread::spawn(move || {
                sched::set_affinity(Tid::current(), &CpuSet::single(external))
                    .expect("there is one");
                sched::set_policy(Tid::current(), Policy::Fifo(99)).expect("it may");
                held.store(true, Ordering::SeqCst);
                let until = clock::now() + ms(100);
                while clock::now() < until {}
            });
            while !holds.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            told.store(context.now().as_nanos(), Ordering::SeqCst);
            Step::EndRun
        },
    );
    let record = host.admit_and_run(program, ms(10_000)).expect("it runs");
    assert_eq!(record.ended_by, RunEnd::EndRun);
    let late = record.end.as_nanos() - wanted.load(Ordering::SeqCst);
    assert!(late < 50_000_000, "it ended {late} ns late");
}

#[test]
fn ranks_run_in_the_order_of_the_map() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let mut program = Program::new(1);
    let mark = program.mark("ran");
    // One thread of each rank waits for its own semaphore; the highest signals all of them, the lowest first.
    let placements = [
        thread(16),
        thread(30),
        thread(31),
        Placement::Deferred,
        Placement::Interrupt(laxity_model::InterruptLevel(5)),
    ];
    let mut semaphores = Vec::new();
    for (rank, placement) in placements.into_iter().enumerate() {
        let semaphore = program.semaphore(0);
        semaphores.push(semaphore);
        let mut woken = false;
        program.add(
            "ranked",
            CPU0,
            placement,
            move |context: &mut dyn Context| {
                if woken {
                    context.mark(mark, [rank as u64, 0]);
                    return Step::Finish;
                }
                woken = true;
                Step::Wait(semaphore)
            },
        );
    }
    let mut begun = false;
    program.add(
        "starter",
        CPU0,
        Placement::Linux(Scheduling::Fifo(98)),
        move |context: &mut dyn Context| {
            if !begun {
                begun = true;
                return Step::SleepUntil(context.now() + ms(5));
            }
            for semaphore in &semaphores {
                context.signal(*semaphore);
            }
            Step::Finish
        },
    );
    let record = host
        .admit_and_run(program, Span::from_secs(5))
        .expect("it runs");
    assert_eq!(record.ended_by, RunEnd::AllFinished);
    let order: Vec<u64> = record
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Mark(mark))
        .map(|event| event.args[0])
        .collect();
    assert_eq!(order, [4, 3, 2, 1, 0]);
}

#[test]
fn starved_threads_do_not_delay_the_end() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let before = footprint();
    let mut program = Program::new(1);
    for _ in 0..3 {
        program.add("starved", CPU0, NORMAL, spinner());
    }
    program.add("hog", CPU0, thread(20), spinner());
    let record = host.admit_and_run(program, ms(100)).expect("it runs");
    let over = clock::now().saturating_since(record.start + ms(100));
    // The kernel lets ordinary threads run 50 ms in a second beside a hog; waiting for that would take far longer than this.
    assert!(over < ms(500), "{over} after the end");
    assert_eq!(before, footprint());
}

#[test]
fn a_panic_in_a_body_ends_the_run_and_restores_everything() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let before = footprint();
    let mut program = Program::new(1);
    program.add("spinner", CPU0, NORMAL, spinner());
    program.add("faulty", CPU0, thread(20), |_: &mut dyn Context| -> Step {
        panic!("a defect in the body")
    });
    let error = host
        .admit_and_run(program, Span::from_secs(30))
        .unwrap_err();
    let HostError::Failed(text) = &error else {
        panic!("{error:?}");
    };
    assert!(
        text.contains("faulty") && text.contains("a defect in the body"),
        "{text}"
    );
    assert_eq!(before, footprint());
}

#[test]
fn sigint_and_sigterm_interrupt_the_run_and_restore_everything() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let before = footprint();
    let mut program = Program::new(1);
    program.add("spinner", CPU0, NORMAL, spinner());
    program.add("killer", CPU0, thread(20), |_: &mut dyn Context| {
        // SAFETY: a signal to this process, which the run's watch takes.
        unsafe { libc::kill(libc::getpid(), libc::SIGINT) };
        Step::Finish
    });
    let error = host
        .admit_and_run(program, Span::from_secs(30))
        .unwrap_err();
    assert_eq!(error, HostError::Interrupted("SIGINT"));
    assert_eq!(before, footprint());

    let mut confined = Program::new(1);
    let request = reservations::two_of_eight();
    with_reservation(&mut confined, "confined", request, spinner());
    confined.add("killer", CPU0, thread(31), |context: &mut dyn Context| {
        // SAFETY: as above.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
        Step::SleepUntil(context.now() + ms(1_000))
    });
    let error = host
        .admit_and_run(confined, Span::from_secs(30))
        .unwrap_err();
    assert_eq!(error, HostError::Interrupted("SIGTERM"));
    assert_eq!(before, footprint());
    // The watch is over: a new one begins without the old signal.
    assert_eq!(signals::Watch::begin().caught(), None);
}

#[test]
fn bad_programs_start_nothing() {
    let mut host = LiveHost::new(LiveConfig {
        processors: vec![0],
        others: Vec::new(),
        external: 0,
        witnesses: Vec::new(),
        lock_memory: false,
        ring_capacity: 16,
    });
    let ran = Arc::new(AtomicU64::new(0));
    let counted = |ran: &Arc<AtomicU64>| {
        let ran = Arc::clone(ran);
        move |_: &mut dyn Context| {
            ran.fetch_add(1, Ordering::SeqCst);
            Step::Finish
        }
    };
    let mut two = Program::new(2);
    two.add("a", CPU0, NORMAL, counted(&ran));
    assert!(matches!(
        host.admit_and_run(two, ms(1)),
        Err(HostError::CannotRun(_))
    ));

    let mut elsewhere = Program::new(1);
    elsewhere.add("a", ProcessorId(1), NORMAL, counted(&ran));
    assert!(matches!(
        host.admit_and_run(elsewhere, ms(1)),
        Err(HostError::BadProgram(_))
    ));

    let mut fifo = Program::new(1);
    fifo.add(
        "a",
        CPU0,
        Placement::Linux(Scheduling::Fifo(0)),
        counted(&ran),
    );
    assert!(matches!(
        host.admit_and_run(fifo, ms(1)),
        Err(HostError::BadProgram(_))
    ));

    let mut handler = Program::new(1);
    let request = reservations::two_of_eight();
    let id = with_reservation(&mut handler, "a", request, counted(&ran));
    handler.activities[id.index()].placement =
        Placement::Interrupt(laxity_model::InterruptLevel(1));
    assert!(matches!(
        host.admit_and_run(handler, ms(1)),
        Err(HostError::BadProgram(_))
    ));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[test]
fn the_witness_wakes_every_period() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let mut config = config();
    config.witnesses = vec![Witness::new(CPU0)];
    let mut program = Program::new(1);
    program.add("spinner", CPU0, NORMAL, spinner());
    let record = LiveHost::new(config)
        .admit_and_run(program, ms(100))
        .expect("it runs");
    // Wake-ups that a standing machine swallowed are not repeated; each of them lies inside a disturbance.
    let swallowed: u64 = record
        .disturbances
        .iter()
        .map(|d| (d.to - d.from) / ms(1))
        .sum();
    assert!(record.witness_wakeups + swallowed >= 99, "{record:?}");
    // A run lasts longer where its end comes late.
    let most = (record.end - record.start) / ms(1) + 2;
    assert!(record.witness_wakeups <= most, "{record:?}");
    // It stood still, or crawled.
    let was_disturbed =
        |event: &&Event| matches!(event.kind, EventKind::Disturbed | EventKind::Crawled);
    let noted = record.events.iter().filter(was_disturbed);
    let noted = Disturbance::joined(noted.map(Disturbance::of));
    assert_eq!(noted, record.disturbances);
}

#[test]
fn too_many_events_are_counted_as_lost() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let mut config = config();
    config.ring_capacity = 16;
    let mut program = Program::new(1);
    let mark = program.mark("flood");
    let mut left = 100;
    program.add(
        "flood",
        CPU0,
        thread(31),
        move |context: &mut dyn Context| {
            for _ in 0..1_000 {
                context.mark(mark, [0, 0]);
            }
            left -= 1;
            if left == 0 { Step::Finish } else { Step::Yield }
        },
    );
    let record = LiveHost::new(config)
        .admit_and_run(program, Span::from_secs(20))
        .expect("it runs");
    assert!(record.events_lost > 0);
    let marks = record
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Mark(mark))
        .count() as u64;
    // The other events are the first wake and dispatch, and the last block and finish, any of which may be lost too.
    let emitted = marks + record.events_lost;
    assert!((100_000..=100_004).contains(&emitted), "{emitted}");
}

/// Who is at work when a run ends sees that late; until then nobody is owed anything any more.
#[test]
fn a_run_is_over_before_its_threads_have_seen_that() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    const LENGTH: Span = Span::from_millis(20);
    let mut program = Program::new(1);
    let done = program.mark("done");
    program.add(
        "absorbed",
        CPU0,
        NORMAL,
        move |context: &mut dyn Context| {
            let until = context.now() + LENGTH * 20;
            while clock::now() < until {}
            context.mark(done, [0; 2]);
            Step::Finish
        },
    );
    let record = host.admit_and_run(program, LENGTH).unwrap();
    assert_eq!(record.ended_by, RunEnd::Length);
    let mut events = record.events.iter();
    let done = events.find(|event| event.kind == EventKind::Mark(done));
    assert!(done.is_some_and(|done| done.at > record.end), "{record:?}");
}
