//! Admission on the machine the project was measured on, and at its edges.

mod above;
mod deadline;
mod executors;
mod impossible;
mod random;

use core::num::NonZeroU16;
use core::ops::Deref;

use laxity_model::admission::{
    Admission, DeadlineSupply, Keeps, ProcessorSupply, Rejected, RequestAdmission, SlotSupply,
    Supply, Why, admit,
};
use laxity_model::analysis::multiprocessor::{
    Bandwidth, DeadlineRequest, KernelLimits, kernel_admits,
};
use laxity_model::base::port::PortKind;
use laxity_model::policy::slots::Change;
use laxity_model::request::{Shortage, Stranger, Strangers, Work};
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, Grade, HostError, InterruptLevel, Outside, Placement,
    Priority, ProcessorId, Program, Reservation, ReservationRequest, Scheduling, Service, Span,
    Step,
};
use proptest::prelude::*;

const TWO: NonZeroU16 = NonZeroU16::new(2).unwrap();

fn every(service_us: u64, period_us: u64) -> Reservation {
    Reservation::new(
        Service::from_micros(service_us),
        Span::from_micros(period_us),
    )
    .unwrap()
}

fn slots() -> SlotSupply {
    SlotSupply {
        max_share_ppm: 940_000,
        used_ppm: 0,
        per_slot: Service::from_micros(50),
        shortest_slot: Span::from_micros(50),
        jitter: Span::from_micros(200),
        switch: Service::ZERO,
        clock: None,
        threads_above: Priority::new(31),
    }
}

/// Two processors, HZ = 250, no timer for the end of a budget.
fn machine() -> Supply {
    let processor = |n| ProcessorSupply {
        processor: ProcessorId(n),
        number: n.into(),
        slots: Ok(slots()),
        outranking: Strangers::default(),
        drivers: Vec::new(),
    };
    Supply {
        host: "test".into(),
        processors: vec![processor(0), processor(1)],
        deadline: Ok(DeadlineSupply {
            processors: TWO,
            limits: KernelLimits::WITH_FAIR_SERVER,
            servers: KernelLimits::WITH_FAIR_SERVER.servers,
            granted: Bandwidth::ZERO,
            unseen: None,
            tick: Span::from_millis(4),
        }),
        timer_grain: Span::ZERO,
        linux_classes: Ok(()),
    }
}

fn activity(name: &str, placement: Placement) -> Activity {
    Activity {
        name: name.into(),
        processor: ProcessorId(1),
        placement,
        reservation: None,
        body: Box::new(|_: &mut dyn Context| Step::Finish),
    }
}

fn reserved(name: &str, reservation: Reservation, enforcer: Enforcer) -> Activity {
    Activity {
        reservation: Some(ReservationRequest {
            reservation,
            enforcer,
            outside: Outside::Timesharing(Priority::NORMAL),
            begins_at_start: true,
        }),
        ..activity(name, Placement::Thread(Priority::NORMAL))
    }
}

fn program(activities: Vec<Activity>) -> Program {
    let mut program = Program::new(2);
    program.activities = activities;
    program
}

type Found = Box<dyn Deref<Target = Admission>>;

/// What admission finds of a program that is right, granted or not.
fn found(program: Program, supply: &Supply) -> Found {
    match admit(program, supply) {
        Ok(admitted) => Box::new(admitted),
        Err(Rejected::Refused(admission)) => Box::new(admission),
        Err(Rejected::Impossible(error)) => panic!("{error}"),
    }
}

/// What it finds of a number of reservations.
fn found_of(activities: Vec<Activity>) -> Found {
    found(program(activities), &machine())
}

fn asked(service_us: u64, period_us: u64, enforcer: Enforcer) -> Found {
    found_of(vec![reserved(
        "modem",
        every(service_us, period_us),
        enforcer,
    )])
}

#[test]
fn slots_keep_every_window() {
    for (x, y) in [
        (1_000, 10_000),
        (100, 2_500),
        (2_000, 8_000),
        (2_000, 13_000),
    ] {
        let admission = asked(x, y, Enforcer::Slots);
        assert!(admission.granted());
        let prediction = admission.requests[0].asked.as_ref().unwrap();
        assert_eq!(prediction.longest_gap, Span::from_micros(y - x + 200));
        assert_eq!(prediction.keeps, Keeps::EveryWindow);
        assert_eq!(prediction.grade, Grade::Enforced);
        let [plan] = &admission.slots[..] else {
            panic!("{:?}", admission.slots);
        };
        assert_eq!(plan.processor, ProcessorId(1));
        assert_eq!(
            (&plan.owners[..], &plan.held[..]),
            (&[ActivityId(0)][..], &[every(x, y)][..])
        );
    }
}

#[test]
fn the_enforcer_not_asked_for_is_assessed_too() {
    let admission = asked(2_000, 8_000, Enforcer::Deadline);
    assert!(admission.granted());
    let slots = admission.requests[0].other.as_ref().unwrap();
    assert_eq!(slots.keeps, Keeps::EveryWindow);
    assert_eq!(slots.grade, Grade::Enforced);
    assert!(admission.slots.is_empty());
}

#[test]
fn work_above_the_slots_is_charged_and_lengthens_gaps() {
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let handler = activity("card", Placement::Interrupt(InterruptLevel(3)));
    let cothread = activity("cothread", Placement::Thread(Priority::HIGHEST));
    let below = activity("below", Placement::Thread(Priority::NORMAL));
    let work = |service_us, period_us| Work {
        service: Service::from_micros(service_us),
        period: Span::from_micros(period_us),
    };
    let mut whole = program(vec![modem, handler, cothread, below]);
    whole.declare_work(ActivityId(1), work(900, 1_000));
    // What is said last counts.
    whole.declare_work(ActivityId(1), work(16, 12_500));
    whole.declare_work(ActivityId(2), work(5, 1_000));
    whole.declare_work(ActivityId(3), work(900, 1_000));
    let admission = found(whole, &machine());
    assert_eq!(admission.slots[0].costs.other_ppm, 1_280 + 5_000);
    let prediction = admission.requests[0].asked.as_ref().unwrap();
    // From 8 ms: two calls of the handler, nine of the co-thread.
    let less = Service::from_micros(2 * 16 + 9 * 5);
    assert_eq!(prediction.keeps, Keeps::EveryWindowLess(less));
    // From 6 ms and a little: two and eight.
    let gap = Span::from_micros(6_000 + 2 * 16 + 8 * 5 + 200);
    assert_eq!(prediction.longest_gap, gap);
    assert_eq!(prediction.notes.len(), 2);
}

#[test]
fn work_of_unknown_length_is_named() {
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let handler = activity("card", Placement::Interrupt(InterruptLevel(3)));
    let admission = found_of(vec![modem, handler]);
    let prediction = admission.requests[0].asked.as_ref().unwrap();
    assert_eq!(prediction.keeps, Keeps::LongRun);
    assert!(prediction.notes[0].contains("`card`"));
}

#[test]
fn whoever_outranks_a_slot_makes_its_grant_unenforced() {
    let grade_with = |other: Activity| {
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        let admission = found_of(vec![modem, other]);
        assert!(admission.granted());
        let prediction = admission.requests[0].asked.as_ref().unwrap();
        prediction.grade.clone()
    };
    let rogue = |fifo| activity("rogue", Placement::Linux(Scheduling::Fifo(fifo)));
    assert_eq!(grade_with(rogue(79)), Grade::Enforced);
    for outranking in [
        rogue(80),
        rogue(90),
        reserved("rogue", every(1_000, 10_000), Enforcer::Deadline),
    ] {
        let Grade::Unenforced { reason } = grade_with(outranking) else {
            panic!("the rogue is not noticed");
        };
        assert!(reason.contains("rogue (SCHED_"), "{reason}");
    }
    let elsewhere = Activity {
        processor: ProcessorId(0),
        ..rogue(90)
    };
    assert_eq!(grade_with(elsewhere), Grade::Enforced);
}

#[test]
fn who_competes_above_slots_outranks_those_of_others() {
    let grade_beside = |placement, outside, begins_at_start| {
        let mut other = reserved("other", every(1_000, 8_000), Enforcer::Slots);
        other.placement = placement;
        let request = other.reservation.as_mut().unwrap();
        (request.outside, request.begins_at_start) = (outside, begins_at_start);
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        let admission = found_of(vec![modem, other]);
        let grade_of = |at: usize| {
            let prediction = admission.requests[at].asked.as_ref().unwrap();
            prediction.grade.clone()
        };
        assert_eq!(grade_of(1), Grade::Enforced);
        grade_of(0)
    };
    let above = Placement::Linux(Scheduling::Fifo(85));
    let below = Placement::Linux(Scheduling::Fair { nice: 0 });
    let beside = Outside::Timesharing;
    let highest = Priority::HIGHEST;
    for (placement, outside, begins_at_start) in [
        (above, Outside::Confined, true),
        (below, Outside::AsPlaced, true),
        (below, Outside::Confined, false),
        (above, beside(Priority::NORMAL), true),
    ] {
        let grade = grade_beside(placement, outside, begins_at_start);
        assert_eq!(grade, Grade::Enforced, "{placement:?} {outside:?}");
    }
    for (placement, outside, begins_at_start, name) in [
        (
            above,
            Outside::AsPlaced,
            true,
            "other (SCHED_FIFO priority 85)",
        ),
        // Beside its slots it is above those of others; or before it has any.
        (below, beside(highest), true, "other"),
        (
            above,
            Outside::Confined,
            false,
            "other (SCHED_FIFO priority 85)",
        ),
        (
            Placement::Thread(highest),
            beside(Priority::NORMAL),
            false,
            "other",
        ),
    ] {
        let grade = grade_beside(placement, outside, begins_at_start);
        let Grade::Unenforced { reason } = grade else {
            panic!("the holder above is not noticed: {placement:?} {outside:?}");
        };
        assert!(reason.contains(name), "{reason}");
    }
}

#[test]
fn threads_of_others_that_outrank_are_named() {
    let mut machine = machine();
    machine.processors[1].outranking.seen = vec![Stranger {
        name: "pipewire-rt".into(),
        had: None,
    }];
    let modem = |enforcer| reserved("modem", every(2_000, 8_000), enforcer);
    let by = |enforcer| {
        let admission = found(program(vec![modem(enforcer)]), &machine);
        admission.requests[0].asked.as_ref().unwrap().grade.clone()
    };
    assert_eq!(by(Enforcer::Deadline), Grade::Enforced);
    assert!(
        matches!(by(Enforcer::Slots), Grade::Unenforced { reason } if reason.ends_with("processor: pipewire-rt"))
    );
    // What they do is for the host to see that runs it.
    let program = program(vec![modem(Enforcer::Slots)]);
    let launch = admit(program, &machine).unwrap().launch(&machine.host);
    assert_eq!(launch.unwrap().grades, [Some(Grade::Enforced)]);
}

/// Who is started with a program is no stranger: it was asked for, with its rank, and sleeping in one run it need not in the next.
#[test]
fn who_is_started_with_a_program_counts_by_rank_before_a_run_and_in_it() {
    let mut machine = machine();
    machine.processors[1].outranking.started = vec!["idle (SCHED_FIFO priority 95)".into()];
    let reason = "ranked above the slot on its processor: idle (SCHED_FIFO priority 95)";
    let unenforced = Grade::Unenforced {
        reason: reason.into(),
    };
    let asks = || {
        program(vec![reserved(
            "modem",
            every(2_000, 8_000),
            Enforcer::Slots,
        )])
    };
    let promised = found(asks(), &machine);
    let asked = promised.requests[0].asked.as_ref();
    assert_eq!(asked.unwrap().grade, unenforced);
    let launch = admit(asks(), &machine).unwrap().launch(&machine.host);
    assert_eq!(launch.unwrap().grades, [Some(unenforced)]);
}

#[test]
fn who_was_seen_to_sleep_is_told_from_who_took_something() {
    let seen = |all: &[(&str, Option<u64>)]| Strangers {
        seen: all
            .iter()
            .map(|(name, micros)| Stranger {
                name: (*name).into(),
                had: micros.map(Service::from_micros),
            })
            .collect(),
        ..Strangers::default()
    };
    let before = seen(&[
        ("idle", Some(700)),
        ("busy", Some(700)),
        ("dark", None),
        ("new", Some(700)),
        ("gone", Some(1)),
    ]);
    let after = seen(&[
        ("idle", Some(800)),
        ("busy", Some(801)),
        ("dark", None),
        ("new", Some(699)),
        ("came", Some(0)),
    ]);
    let active: Vec<&str> = after.active_since(&before).collect();
    assert_eq!(active, ["busy", "dark", "new", "came"]);
}

#[test]
fn ten_who_have_little_of_a_processor_are_as_bad_as_one_who_has_much() {
    let go_unnoticed =
        |had: &[u64]| Strangers::go_unnoticed(had.iter().copied().map(Service::from_micros));
    assert!(go_unnoticed(&[]) && go_unnoticed(&[100]) && go_unnoticed(&[10; 10]));
    assert!(!go_unnoticed(&[101]) && !go_unnoticed(&[50, 51]) && !go_unnoticed(&[11; 10]));
}

#[test]
fn slots_are_unenforced_where_it_cannot_be_seen_who_outranks_them() {
    let mut machine = machine();
    machine.processors[1].outranking.unseen = Some("/proc: Permission denied".into());
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let admission = found(program(vec![modem]), &machine);
    let grade = &admission.requests[0].asked.as_ref().unwrap().grade;
    let reason = "cannot see who outranks the slot: /proc: Permission denied".into();
    assert_eq!(*grade, Grade::Unenforced { reason });
}

/// The program with these reservations instead of those it asks for.
fn following(mut program: Program, changes: &[(ActivityId, Reservation)]) -> Program {
    for (activity, reservation) in changes {
        let asked = program.activities[activity.index()].reservation.as_mut();
        asked.unwrap().reservation = *reservation;
    }
    program
}

#[test]
fn what_is_missing_says_why() {
    let mut machine = machine();
    machine.deadline = Err("no CAP_SYS_NICE: run as root".into());
    machine.processors[1].slots = Err("RLIMIT_RTPRIO is 0".into());
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let rejected = admit(program(vec![modem]), &machine).unwrap_err();
    let Rejected::Refused(admission) = &rejected else {
        panic!("{rejected}");
    };
    let request = &admission.requests[0];
    assert_eq!(
        [&request.asked, &request.other].map(|by| by.as_ref().unwrap_err().why.to_string()),
        [
            "not available: RLIMIT_RTPRIO is 0",
            "not available: no CAP_SYS_NICE: run as root"
        ]
    );
    // What another machine could enforce is not refused: it cannot be run here.
    assert!(matches!(rejected.into(), HostError::CannotRun(_)));
}

/// Who may only ask for time constraints comes after those who hold, and makes a table necessary where nobody holds anything.
#[test]
fn guests_are_owners_of_no_slots() {
    let thread = || activity("guest", Placement::Thread(Priority::NORMAL));
    let holder = || reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let with_guest = |activities: Vec<Activity>, guest| {
        let mut program = program(activities);
        program.constrained.push(ActivityId(guest));
        let admission = found(program, &machine());
        assert!(admission.granted());
        admission.slots[0].clone()
    };
    let plan = with_guest(vec![thread(), holder()], 0);
    assert_eq!(plan.owners, [ActivityId(1), ActivityId(0)]);
    assert_eq!(plan.held, [every(2_000, 8_000)]);
    let plan = with_guest(vec![thread()], 0);
    assert_eq!(
        (plan.owners.len(), plan.held.len(), plan.table.slots().len()),
        (1, 0, 0)
    );
    // A holder that may ask for constraints has its place already.
    assert_eq!(with_guest(vec![holder()], 0).owners, [ActivityId(0)]);
}

#[test]
fn what_is_admitted_runs_where_it_was_admitted_and_nowhere_else() {
    let admitted = || {
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        admit(
            program(vec![modem, activity("other", Placement::External)]),
            &machine(),
        )
        .unwrap()
    };
    let launch = admitted().launch("test").unwrap();
    assert_eq!(launch.grades, [Some(Grade::Enforced), None]);
    assert_eq!(launch.slots.len(), 1);
    assert!(matches!(
        admitted().launch("elsewhere"),
        Err(HostError::BadProgram(_))
    ));
}
