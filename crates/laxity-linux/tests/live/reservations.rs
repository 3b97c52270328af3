//! Holders of reservations: what of them and of others only a real machine shows.

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
        let reason = grant.grade.reason().unwrap_or_default();
        assert_eq!(reason.contains("greedy"), named, "{reason}");
    }
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
fn what_memory_has_no_room_for_is_refused_and_nothing_started() {
    let Some(_turn) = turn(&[Right::RealTime]) else {
        return;
    };
    let mut config = config();
    // Rings of 2 TiB.
    config.ring_capacity = 1 << 36;
    let ran = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&ran);
    let mut program = Program::new(1);
    program.add("any", CPU0, NORMAL, move |_: &mut dyn Context| {
        seen.fetch_add(1, Ordering::SeqCst);
        Step::Finish
    });
    let before = footprint();
    let error = LiveHost::new(config)
        .admit_and_run(program, ms(50))
        .unwrap_err();
    assert!(matches!(error, HostError::Refused(_)), "{error}");
    assert!(error.to_string().contains("MiB are available"), "{error}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(before, footprint());
}

#[test]
fn a_deadline_reservation_is_granted_and_given_back() {
    let Some(_turn) = turn(&[Right::RealTime, Right::Deadline, Right::Processors(2)]) else {
        return;
    };
    let before = footprint();
    let mut config = config();
    config.witnesses = vec![Witness::new(CPU0)];
    let mut host = LiveHost::new(config);
    let mut undisturbed = 0;
    for _ in 0..5 {
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
        let as_long = ms(1)..=ms(9);
        let mut disturbances = record.disturbances.iter();
        undisturbed +=
            usize::from(!disturbances.any(|halt| as_long.contains(&(halt.to - halt.from))));
        let policies = policies.lock().unwrap();
        assert!(matches!(policies[0], Policy::Deadline(_)), "{policies:?}");
        assert_eq!(policies[2], Policy::Other { nice: 0 });
    }
    // A machine may stand still as long as that in some of the runs, the thread is there in all.
    assert!(
        undisturbed > 0,
        "a deadline thread outranks the witness, and is no disturbance"
    );
    assert_eq!(before, footprint());
}

/// What slots cost is measured before they are granted, by a thread that is ordinary outside them: beside so many it had no turn to begin with.
#[test]
fn slots_are_granted_on_a_processor_that_many_keep_busy() {
    let Some(_turn) = turn(&[Right::RealTime]) else {
        return;
    };
    let here = config().processors[0];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let spin = || {
            sched::set_affinity(Tid::current(), &CpuSet::single(here)).unwrap();
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        (0..200).for_each(|_| drop(scope.spawn(spin)));
        let held = std::panic::catch_unwind(strangers::hold);
        over.store(true, Ordering::Relaxed);
        assert!(held.is_ok());
    });
}

/// How many witnesses this process has just now.
fn witnesses() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("witness/")).count()
}

#[test]
fn every_processor_has_a_witness_where_a_reservation_keeps_to_none() {
    let Some(_turn) = turn(&[Right::RealTime, Right::Deadline, Right::Processors(2)]) else {
        return;
    };
    let mut config = config();
    config.witnesses = vec![Witness::new(CPU0)];
    let everywhere = config.all_processors().count();
    assert!(everywhere > config.processors.len());
    for (enforcer, expected) in [(Enforcer::Slots, 1), (Enforcer::Deadline, everywhere)] {
        let mut program = Program::new(1);
        let found = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&found);
        let request = reserved(1_000, 10_000, enforcer, Outside::AsPlaced);
        let body = move |_: &mut dyn Context| {
            seen.store(witnesses() as u64, Ordering::SeqCst);
            Step::EndRun
        };
        with_reservation(&mut program, "reserved", request, body);
        let mut host = LiveHost::new(config.clone());
        let record = host.admit_and_run(program, Span::from_secs(10));
        assert!(record.expect("granted").witness_wakeups > 0);
        assert_eq!(
            found.load(Ordering::SeqCst),
            expected as u64,
            "{enforcer:?}"
        );
    }
}
