//! Programs on the live host: what they see, and that nothing of them remains.
#![allow(unsafe_code)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::clock;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_linux::os::signals;
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::enforce::Witness;
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, Event, EventKind, Grade, Host, HostError, Instant,
    Outside, Placement, Priority, ProcessorId, Program, Reservation, ReservationRequest, RunEnd,
    RunRecord, Scheduling, Service, Span, Step,
};

const CPU0: ProcessorId = ProcessorId(0);
const NORMAL: Placement = Placement::Thread(Priority::NORMAL);

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn thread(level: u8) -> Placement {
    Placement::Thread(Priority::new(level).expect("a priority below 32"))
}

/// The turn of a live test among those of this machine.
struct Turn {
    _among_tests: common::LiveLock,
    _live: LiveTest,
}

fn turn(rights: &[Right]) -> Option<Turn> {
    let among_tests = common::live_lock();
    Some(Turn {
        _live: rights::require(rights)?,
        _among_tests: among_tests,
    })
}

fn live() -> Option<(Turn, LiveHost)> {
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

/// What must be the same after a run as before it.
fn footprint() -> (Policy, CpuSet, usize, Option<u64>) {
    let own = Tid::current();
    (
        sched::policy(own).expect("own policy"),
        sched::affinity(own).expect("own affinity"),
        laxity_linux::os::proc::threads_of(std::process::id())
            .expect("own threads")
            .into_iter()
            .filter(|tid| sched::policy(*tid).is_ok_and(Policy::is_real_time))
            .count(),
        laxity_linux::os::proc::locked_memory_kib(),
    )
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
fn deferred_calls_run_in_the_order_they_were_queued_and_to_completion() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let mut program = Program::new(1);
    let semaphores: Vec<_> = (0..3).map(|_| program.semaphore(0)).collect();
    let calls: Vec<ActivityId> = semaphores
        .iter()
        .map(|semaphore| {
            let semaphore = *semaphore;
            let mut burnt = true;
            program.add(
                "call",
                CPU0,
                Placement::Deferred,
                move |_: &mut dyn Context| {
                    burnt = !burnt;
                    if burnt {
                        Step::Burn(Service::from_micros(300))
                    } else {
                        Step::Wait(semaphore)
                    }
                },
            )
        })
        .collect();
    let queue_order = [1, 2, 0];
    let mut rounds = 0;
    program.add(
        "device",
        CPU0,
        Placement::Interrupt(laxity_model::InterruptLevel(5)),
        move |context: &mut dyn Context| {
            if rounds > 0 {
                for index in queue_order {
                    context.signal(semaphores[index]);
                }
            }
            rounds += 1;
            if rounds > 10 {
                return Step::Finish;
            }
            Step::SleepUntil(context.now() + ms(4))
        },
    );
    let record = host.admit_and_run(program, ms(80)).expect("it runs");
    let sequence: Vec<(EventKind, u16)> = record
        .events
        .iter()
        .filter(|event| {
            matches!(
                event.kind,
                EventKind::DeferredEnter | EventKind::DeferredExit
            )
        })
        .map(|event| (event.kind, event.activity.0))
        .collect();
    // After the first entry of each at the start.
    let served: Vec<_> = sequence.chunks(2).skip(3).collect();
    assert_eq!(served.len(), 30);
    for (index, pair) in served.iter().enumerate() {
        let call = calls[queue_order[index % 3]].0;
        assert_eq!(
            **pair,
            [
                (EventKind::DeferredEnter, call),
                (EventKind::DeferredExit, call)
            ],
            "pair {index}"
        );
    }
}

#[test]
fn a_burn_receives_what_it_asked_for_beside_a_competitor() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let mut program = Program::new(1);
    let mut burns = 0;
    let burner = program.add("burner", CPU0, NORMAL, move |_: &mut dyn Context| {
        burns += 1;
        if burns <= 10 {
            Step::Burn(Service::from_millis(2))
        } else {
            Step::EndRun
        }
    });
    program.add("competitor", CPU0, NORMAL, spinner());
    let record = host
        .admit_and_run(program, Span::from_secs(20))
        .expect("it runs");
    assert_eq!(record.ended_by, RunEnd::EndRun);
    let service = record.usage[burner.index()].service;
    assert!(service >= Service::from_millis(20), "{service}");
    assert!(service < Service::from_millis(22), "{service}");
}

#[test]
fn time_out_and_signal_are_told_apart() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let mut program = Program::new(1);
    let semaphore = program.semaphore(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let answers = Arc::clone(&seen);
    let mut turns = 0;
    program.add(
        "waiter",
        CPU0,
        thread(20),
        move |context: &mut dyn Context| {
            turns += 1;
            if turns > 1 {
                answers.lock().unwrap().push(context.timed_out());
            }
            if turns > 3 {
                return Step::Finish;
            }
            Step::WaitUntil(semaphore, context.now() + ms(3))
        },
    );
    host.admit_and_run(program, Span::from_secs(5))
        .expect("it runs");
    assert_eq!(*seen.lock().unwrap(), [false, true, true]);
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
        external: 0,
        witness: None,
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
    config.witness = Some(Witness::new(CPU0));
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
    assert!(record.witness_wakeups <= 102);
    let noted = record
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Disturbed)
        .count();
    assert_eq!(noted, record.disturbances.len());
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

mod reservations {
    use super::*;

    pub(super) fn two_of_eight() -> ReservationRequest {
        reserved(2_000, 8_000, Enforcer::Slots, Outside::Confined)
    }

    /// A body that reads the clock all the time and keeps the stretches in which it could not.
    fn observer(
        gaps: &Arc<Mutex<Vec<(Instant, Instant)>>>,
    ) -> impl FnMut(&mut dyn Context) -> Step + Send + use<> {
        let gaps = Arc::clone(gaps);
        let mut last: Option<Instant> = None;
        move |context: &mut dyn Context| {
            let until = context.now() + Span::from_micros(100);
            loop {
                let now = context.now();
                if let Some(last) = last
                    && now.saturating_since(last) > Span::from_micros(20)
                {
                    gaps.lock().unwrap().push((last, now));
                }
                last = Some(now);
                if now >= until {
                    return Step::Charge(Service::ZERO);
                }
            }
        }
    }

    #[test]
    fn a_confined_thread_runs_in_its_slots_only() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        let before = footprint();
        let gaps = Arc::new(Mutex::new(Vec::with_capacity(10_000)));
        let mut program = Program::new(1);
        let request = two_of_eight();
        let confined = with_reservation(&mut program, "confined", request, observer(&gaps));
        let record = host.admit_and_run(program, ms(400)).expect("it runs");
        // Nobody competes: what it does not get, confinement keeps from it.
        let service = record.usage[confined.index()].service;
        assert!(service < Service::from_millis(115), "{service} of 100 ms");
        let begins = of(&record, confined, EventKind::SlotBegin);
        let ends = of(&record, confined, EventKind::SlotEnd);
        // Slots that a standing machine has missed are not made up for.
        assert!((30..=51).contains(&begins.len()), "{} slots", begins.len());
        // The first may have begun before its holder sat down.
        for pair in begins[1..].windows(2) {
            assert_eq!((pair[1].args[0] - pair[0].args[0]) % 8_000_000, 0);
        }
        assert!(ends.len().abs_diff(begins.len()) <= 1);
        assert_eq!(before, footprint());
    }

    #[test]
    fn a_timesharing_thread_runs_outside_its_slots_too() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        let mut program = Program::new(1);
        let request = reserved(
            1_000,
            10_000,
            Enforcer::Slots,
            Outside::Timesharing(Priority::NORMAL),
        );
        let id = with_reservation(&mut program, "sharing", request, spinner());
        program.add("spinner", CPU0, NORMAL, spinner());
        let record = host.admit_and_run(program, ms(400)).expect("it runs");
        // Its slots alone would be 40 ms; half of the rest is its fair share.
        let service = record.usage[id.index()].service;
        assert!(service > Service::from_millis(100), "{service}");
        let grant = record.usage[id.index()].grant.as_ref().expect("a grant");
        assert_eq!(grant.enforcer, Enforcer::Slots);
    }

    #[test]
    fn a_reservation_begins_and_ends_when_its_holder_says() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        let mut program = Program::new(1);
        let mut request = two_of_eight();
        request.begins_at_start = false;
        let mut turns = 0;
        let id = with_reservation(
            &mut program,
            "sometimes",
            request,
            move |_: &mut dyn Context| {
                turns += 1;
                match turns {
                    1 | 3 | 5 => Step::Burn(Service::from_millis(5)),
                    2 => Step::BeginReservation,
                    4 => Step::EndReservation,
                    _ => Step::EndRun,
                }
            },
        );
        let record = host
            .admit_and_run(program, Span::from_secs(10))
            .expect("it runs");
        assert_eq!(record.ended_by, RunEnd::EndRun);
        let begin = of(&record, id, EventKind::ReservationBegin);
        let end = of(&record, id, EventKind::ReservationEnd);
        assert_eq!((begin.len(), end.len()), (1, 1));
        assert_eq!(begin[0].args, [2_000_000, 8_000_000]);
        // 5 ms of service take three slots of 2 ms, so at least two periods lie between.
        assert!(
            end[0].at - begin[0].at >= ms(9),
            "{:?}",
            end[0].at - begin[0].at
        );
        let slots = of(&record, id, EventKind::SlotBegin);
        assert!(
            slots
                .iter()
                .all(|slot| slot.at >= begin[0].at && slot.at <= end[0].at)
        );
    }

    #[test]
    fn a_confined_thread_that_waits_is_woken_in_its_slot() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        let mut program = Program::new(1);
        let semaphore = program.semaphore(0);
        let mark = program.mark("served");
        let request = two_of_eight();
        let mut first = true;
        with_reservation(
            &mut program,
            "server",
            request,
            move |context: &mut dyn Context| {
                if !std::mem::take(&mut first) {
                    context.mark(mark, [0, 0]);
                }
                Step::Wait(semaphore)
            },
        );
        let mut due = None;
        program.add(
            "client",
            CPU0,
            thread(31),
            move |context: &mut dyn Context| {
                if due.is_some() {
                    context.signal(semaphore);
                }
                let next = due.map_or_else(|| context.now() + ms(1), |due| due + ms(3));
                due = Some(next);
                Step::SleepUntil(next)
            },
        );
        let record = host.admit_and_run(program, ms(200)).expect("it runs");
        let served = record
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Mark(mark))
            .count();
        let signals = record
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Signal)
            .count();
        assert!(signals >= 60, "{signals}");
        assert!(served + 4 >= signals, "{served} of {signals}");
    }

    #[test]
    fn a_rogue_above_the_slot_makes_the_grant_unenforced_by_name() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        for (fifo, named) in [(85, true), (70, false)] {
            let mut program = Program::new(1);
            let request = two_of_eight();
            let id = with_reservation(&mut program, "modem", request, spinner());
            program.add(
                "greedy",
                CPU0,
                Placement::Linux(Scheduling::Fifo(fifo)),
                |context: &mut dyn Context| Step::SleepUntil(context.now() + ms(10)),
            );
            let record = host.admit_and_run(program, ms(30)).expect("it runs");
            let grant = record.usage[id.index()].grant.clone().expect("a grant");
            let reason = match grant.grade {
                Grade::Enforced => String::new(),
                Grade::Unenforced { reason } => reason,
            };
            assert_eq!(reason.contains("greedy"), named, "{reason}");
        }
    }

    #[test]
    fn a_stranger_above_the_slot_is_named_with_its_process() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        let mut stranger = laxity_linux::host::command::RunningCommand::start(
            std::process::Command::new("sleep").arg("1000"),
        )
        .expect("sleep starts");
        sched::set_policy(stranger.id(), Policy::Fifo(85)).expect("a policy for a child");
        let mut program = Program::new(1);
        let request = two_of_eight();
        let id = with_reservation(&mut program, "modem", request, spinner());
        let record = host.admit_and_run(program, ms(20)).expect("it runs");
        let grant = record.usage[id.index()].grant.clone().expect("a grant");
        let Grade::Unenforced { reason } = grant.grade else {
            panic!("process {} went unnoticed", stranger.id());
        };
        assert!(reason.contains("SCHED_FIFO priority 85"), "{reason}");
        assert!(reason.contains(&stranger.id().to_string()), "{reason}");
        stranger.kill().expect("it can be killed");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_started() {
        let Some((_turn, mut host)) = live() else {
            return;
        };
        let before = footprint();
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            let ran = Arc::new(AtomicU64::new(0));
            let mut program = Program::new(1);
            for _ in 0..3 {
                let ran = Arc::clone(&ran);
                let request = reserved(8_000, 10_000, enforcer, Outside::Confined);
                with_reservation(
                    &mut program,
                    "greedy",
                    request,
                    move |_: &mut dyn Context| {
                        ran.fetch_add(1, Ordering::SeqCst);
                        Step::Finish
                    },
                );
            }
            let error = host.admit_and_run(program, ms(50)).unwrap_err();
            assert!(matches!(error, HostError::Refused(_)), "{error}");
            assert_eq!(ran.load(Ordering::SeqCst), 0);
            assert_eq!(before, footprint());
        }
    }

    #[test]
    fn a_deadline_reservation_is_granted_and_given_back() {
        let Some(_turn) = turn(&[Right::RealTime, Right::Deadline, Right::Processors(2)]) else {
            return;
        };
        let before = footprint();
        let mut config = config();
        config.witness = Some(Witness::new(CPU0));
        let mut host = LiveHost::new(config);
        for _ in 0..3 {
            let mut program = Program::new(1);
            let request = reserved(9_000, 10_000, Enforcer::Deadline, Outside::Confined);
            let policies = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&policies);
            let mut turns = 0;
            let id = with_reservation(
                &mut program,
                "reserved",
                request,
                move |_: &mut dyn Context| {
                    seen.lock()
                        .unwrap()
                        .push(sched::policy(Tid::current()).unwrap());
                    turns += 1;
                    match turns {
                        1 => Step::Burn(Service::from_millis(2)),
                        2 => Step::EndReservation,
                        _ => Step::EndRun,
                    }
                },
            );
            let record = host
                .admit_and_run(program, Span::from_secs(10))
                .expect("granted");
            assert_eq!(
                record.usage[id.index()]
                    .grant
                    .as_ref()
                    .map(|grant| &grant.grade),
                Some(&Grade::Enforced)
            );
            assert!(record.witness_wakeups > 0);
            let budget = Span::from_millis(9);
            assert!(
                record
                    .disturbances
                    .iter()
                    .all(|halt| halt.to - halt.from > budget),
                "a deadline thread outranks the witness, and is no disturbance: {:?}",
                record.disturbances
            );
            let policies = policies.lock().unwrap();
            assert!(
                matches!(policies[0], Policy::Deadline { .. }),
                "{policies:?}"
            );
            assert_eq!(policies[2], Policy::Other { nice: 0 });
        }
        assert_eq!(before, footprint());
    }
}
