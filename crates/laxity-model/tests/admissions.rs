//! Admission on the machine the project was measured on, and at its edges.

use core::num::NonZeroU16;

use laxity_model::admission::{
    Admission, DeadlineSupply, Keeps, ProcessorSupply, Rejected, RequestAdmission, SlotSupply,
    Supply, Why, admit,
};
use laxity_model::analysis::multiprocessor::{
    Bandwidth, DeadlineRequest, KernelLimits, kernel_admits,
};
use laxity_model::base::port::PortKind;
use laxity_model::policy::slots::Change;
use laxity_model::request::{Shortage, Work};
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
        occupant_fifo: 80,
        threads_above: Priority::new(31),
    }
}

/// Two processors, HZ = 250, no timer for the end of a budget.
fn machine() -> Supply {
    let processor = |n| ProcessorSupply {
        processor: ProcessorId(n),
        slots: Ok(slots()),
        outranking: Ok(Vec::new()),
    };
    Supply {
        host: "test".into(),
        processors: vec![processor(0), processor(1)],
        deadline: Ok(DeadlineSupply {
            processors: TWO,
            limits: KernelLimits::WITH_FAIR_SERVER,
            granted: Bandwidth::ZERO,
            tick: Span::from_millis(4),
        }),
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

/// What admission finds of a program that is right, granted or not.
fn found(program: Program, supply: &Supply) -> Admission {
    match admit(program, supply) {
        Ok(admitted) => admitted.into_admission(),
        Err(Rejected::Refused(admission)) => *admission,
        Err(Rejected::Impossible(error)) => panic!("{error}"),
    }
}

/// What it finds of a number of reservations.
fn found_of(activities: Vec<Activity>) -> Admission {
    found(program(activities), &machine())
}

fn asked(service_us: u64, period_us: u64, enforcer: Enforcer) -> Admission {
    found_of(vec![reserved(
        "modem",
        every(service_us, period_us),
        enforcer,
    )])
}

#[test]
fn predicted_deadline_gaps_cover_what_was_measured() {
    // X, Y, the largest gap of a reserved spinner against four others, in µs.
    for (x, y, measured) in [
        (1_000, 10_000, 38_000),
        (2_000, 8_000, 12_200),
        (100, 2_500, 98_000),
        (2_000, 13_000, 24_000),
    ] {
        let admission = asked(x, y, Enforcer::Deadline);
        let prediction = admission.requests[0].asked.as_ref().unwrap();
        assert_eq!(prediction.theory_gap, Span::from_micros(2 * (y - x)));
        let predicted = prediction.longest_gap.as_micros();
        assert!(
            (measured..2 * measured).contains(&predicted),
            "{x}/{y}: {predicted}"
        );
        assert_eq!(prediction.keeps, Keeps::LongRun);
        assert!(prediction.notes[0].contains("less than the kernel's tick of 4ms"));
    }
}

#[test]
fn without_a_tick_deadline_keeps_its_theory() {
    let mut machine = machine();
    machine.deadline.as_mut().unwrap().tick = Span::ZERO;
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Deadline);
    let admission = found(program(vec![modem]), &machine);
    let prediction = admission.requests[0].asked.as_ref().unwrap();
    assert_eq!(prediction.longest_gap, Span::from_millis(12));
    assert_eq!(prediction.keeps, Keeps::EveryPeriod);
    assert!(prediction.notes.is_empty());
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
fn reservations_by_deadline_need_room_on_every_processor_with_slots() {
    let slots = |x| reserved("slots", every(x, 10_000), Enforcer::Slots);
    let deadline = || Activity {
        processor: ProcessorId(0),
        ..reserved("deadline", every(4_000, 10_000), Enforcer::Deadline)
    };
    let admission = |x| found_of(vec![slots(x), deadline()]);
    // 94 % less 40 % less 50 µs in 10 ms.
    assert!(admission(5_350).granted());
    assert!(!admission(5_351).granted());
    assert_eq!(admission(5_350).slots[0].costs.other_ppm, 400_000);
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
fn a_thread_above_slots_whose_work_is_known_is_charged_and_not_named() {
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let above = activity("above", Placement::Linux(Scheduling::Fifo(90)));
    let mut program = program(vec![modem, above]);
    let (service, period) = (Service::from_micros(100), Span::from_millis(8));
    program.declare_work(ActivityId(1), Work { service, period });
    let admission = found(program, &machine());
    let prediction = admission.requests[0].asked.as_ref().unwrap();
    assert_eq!(prediction.grade, Grade::Enforced);
    // Two of its jobs fall into a period.
    let less = Service::from_micros(200);
    assert_eq!(prediction.keeps, Keeps::EveryWindowLess(less));
}

#[test]
fn who_competes_as_it_is_placed_outranks_the_slots_of_others_from_there() {
    let grade_beside = |placement, outside| {
        let mut other = reserved("other", every(1_000, 8_000), Enforcer::Slots);
        other.placement = placement;
        other.reservation.as_mut().unwrap().outside = outside;
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
    assert_eq!(grade_beside(above, Outside::Confined), Grade::Enforced);
    assert_eq!(grade_beside(below, Outside::AsPlaced), Grade::Enforced);
    let Grade::Unenforced { reason } = grade_beside(above, Outside::AsPlaced) else {
        panic!("the holder above is not noticed");
    };
    assert!(
        reason.contains("other (SCHED_FIFO priority 85)"),
        "{reason}"
    );
}

#[test]
fn threads_of_others_that_outrank_are_named() {
    let mut machine = machine();
    machine.processors[1].outranking = Ok(vec!["pipewire-rt".into()]);
    let modem = |enforcer| reserved("modem", every(2_000, 8_000), enforcer);
    let by = |enforcer| {
        let admission = found(program(vec![modem(enforcer)]), &machine);
        admission.requests[0].asked.as_ref().unwrap().grade.clone()
    };
    assert_eq!(by(Enforcer::Deadline), Grade::Enforced);
    assert!(
        matches!(by(Enforcer::Slots), Grade::Unenforced { reason } if reason.ends_with("processor: pipewire-rt"))
    );
}

#[test]
fn slots_are_unenforced_where_it_cannot_be_seen_who_outranks_them() {
    let mut machine = machine();
    machine.processors[1].outranking = Err("/proc: Permission denied".into());
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let admission = found(program(vec![modem]), &machine);
    let grade = &admission.requests[0].asked.as_ref().unwrap().grade;
    let reason = "cannot see who outranks the slot: /proc: Permission denied".into();
    assert_eq!(*grade, Grade::Unenforced { reason });
}

#[test]
fn deadline_bandwidth_that_is_missing_is_told_with_what_fits() {
    let whole = || {
        program(vec![
            reserved("a", every(9_000, 10_000), Enforcer::Deadline),
            reserved("b", every(8_000, 10_000), Enforcer::Deadline),
            reserved("c", every(2_000, 8_000), Enforcer::Deadline),
        ])
    };
    let admission = found(whole(), &machine());
    let refusals: Vec<_> = admission.refusals().collect();
    let [(request, denial)] = refusals[..] else {
        panic!("{refusals:?}");
    };
    assert_eq!(admission.asker(request).0.name, "c");
    assert_eq!(
        denial.why,
        Why::DeadlineBandwidth {
            needed_ppm: 250_000,
            // 1,887,438 units of 2⁻²⁰ on two processors, less 943,718 and 838,860.
            free_ppm: 100_002
        }
    );
    assert_eq!(
        admission.explain()[0],
        "`c` (2ms/8ms by deadline on processor 1): deadline bandwidth: 25.00 % needed, 10.00 % free, 15.00 % missing; \
         would fit: 800us/8ms for `c`; or 2ms/20ms for `c`; or 7.500ms/10ms for `a`; or 6.500ms/10ms for `b`"
    );
    for advice in &denial.nearest {
        assert!(
            found(following(whole(), &advice.requests), &machine()).granted(),
            "{advice:?}"
        );
    }
}

/// What is booked for others is taken; a kernel without a limit does not make more of the machine than there is.
#[test]
fn deadline_admission_follows_what_the_kernel_is_set_to() {
    let with = |change: fn(&mut DeadlineSupply), numbers: &[[u64; 2]]| {
        let mut machine = machine();
        change(machine.deadline.as_mut().unwrap());
        let holders = numbers
            .iter()
            .map(|[x, y]| reserved("r", every(*x, *y), Enforcer::Deadline));
        let refusals = found(program(holders.collect()), &machine)
            .explain()
            .into_iter();
        let why = refusals.map(|text| text.split_once("): ").unwrap().1.to_owned());
        why.collect::<Vec<String>>()
    };
    let foreign = |supply: &mut DeadlineSupply| {
        supply.granted = Bandwidth::of(Service::from_millis(13), Span::from_millis(10));
    };
    assert_eq!(with(foreign, &[[5_000, 10_000]]), [""; 0]);
    assert_eq!(
        with(foreign, &[[6_000, 10_000]]),
        [
            "deadline bandwidth: 60.00 % needed, 50.00 % free, 10.00 % missing; would fit: 5ms/10ms for `r`; \
             or 6ms/12ms for `r`"
        ]
    );
    let no_limit = |supply: &mut DeadlineSupply| supply.limits.rt_runtime = None;
    assert_eq!(with(no_limit, &[[9_500, 10_000]; 2]), [""; 0]);
    assert_eq!(with(no_limit, &[[9_500, 10_000]; 3]).len(), 1);
    let nothing = |supply: &mut DeadlineSupply| supply.limits.rt_runtime = Some(Service::ZERO);
    assert_eq!(
        with(nothing, &[[1_000, 10_000]]),
        ["not available: EPERM: kernel.sched_rt_runtime_us leaves nothing to deadline threads"]
    );
    let coarse = |supply: &mut DeadlineSupply| supply.limits.shortest_period = Span::from_millis(1);
    assert_eq!(
        with(coarse, &[[100, 500]]),
        ["deadline period: 500us is not within 1ms to 4.194s; would fit: 100us/1ms for `r`"]
    );
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
fn the_kernels_ranges_are_known_before_it_is_asked() {
    let why = |x_ns: u64, y_ns: u64| {
        let asked = Reservation::new(Service::from_nanos(x_ns), Span::from_nanos(y_ns)).unwrap();
        let modem = || program(vec![reserved("modem", asked, Enforcer::Deadline)]);
        let admission = found(modem(), &machine());
        let denial = admission.requests[0].asked.clone().err();
        if let Some(denial) = &denial {
            let advice = &denial.nearest[0];
            assert!(found(following(modem(), &advice.requests), &machine()).granted());
        }
        denial.map(|denial| denial.why)
    };
    assert_eq!(why(1_024, 100_000), None);
    assert!(matches!(why(1_023, 100_000), Some(Why::Runtime { .. })));
    assert!(matches!(why(2_000, 99_999), Some(Why::Period { .. })));
    assert_eq!(why(1_000_000, 4_194_304_000), None);
    assert!(matches!(
        why(1_000_000, 4_194_304_001),
        Some(Why::Period { .. })
    ));
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

#[test]
fn several_deadline_reservations_on_several_processors_may_be_late() {
    // Dhall's effect: light ones delay a heavy one.
    let with = |count: usize, light: Reservation| {
        let mut activities = vec![reserved("heavy", every(9_000, 10_000), Enforcer::Deadline)];
        activities.extend((0..count).map(|_| reserved("light", light, Enforcer::Deadline)));
        let mut machine = machine();
        machine.deadline.as_mut().unwrap().tick = Span::ZERO;
        let admission = found(program(activities), &machine);
        assert!(admission.granted());
        admission.requests[0].asked.as_ref().unwrap().keeps
    };
    assert_eq!(with(1, every(4_000, 10_000)), Keeps::EveryPeriod);
    assert_eq!(with(2, every(2_000, 10_000)), Keeps::LongRun);
    // ΣU = 1.1 = 2 − 0.9, the edge of the density test.
    assert_eq!(with(2, every(1_000, 10_000)), Keeps::EveryPeriod);
}

/// What is wrong with a program is said before anything else is looked at, each by its own words.
#[test]
fn wrong_programs_are_told_what_is_wrong() {
    let modem = |change: fn(&mut Activity)| {
        let mut modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        change(&mut modem);
        program(vec![modem])
    };
    let with = |change: fn(&mut Program)| {
        let mut program = modem(|_| ());
        change(&mut program);
        program
    };
    let cases = [
        (
            modem(|a| a.processor = ProcessorId(7)),
            "`modem` is on processor 7",
        ),
        (modem(|a| a.placement = Placement::Deferred), "is no thread"),
        (
            modem(|a| a.placement = Placement::Linux(Scheduling::Fifo(100))),
            "SCHED_FIFO priority 100",
        ),
        (
            modem(|a| a.placement = Placement::Linux(Scheduling::Fair { nice: -21 })),
            "SCHED_OTHER nice -21",
        ),
        (
            modem(|a| a.placement = Placement::Interrupt(InterruptLevel(32))),
            "interrupt level 32",
        ),
        (with(|p| p.processors = 0), "no processor"),
        (
            with(|p| p.marks = vec![String::new(); 0x8001]),
            "32769 marks",
        ),
        (
            with(|p| p.ports = vec![PortKind::Queue { capacity: 1 }; 65_537]),
            "65537 ports",
        ),
        (
            with(|p| p.constrained.push(ActivityId(1))),
            "time constraints",
        ),
        (
            with(|p| {
                let (service, period) = (Service::from_millis(1), Span::from_millis(2));
                p.declare_work(ActivityId(1), Work { service, period });
            }),
            "work is declared for activity 1",
        ),
    ];
    for (program, words) in cases {
        match admit(program, &machine()) {
            Err(Rejected::Impossible(HostError::BadProgram(text))) => {
                assert!(text.contains(words), "{text}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
    let mut not_linux = machine();
    not_linux.linux_classes = Err("nobody has here".into());
    let scheduled = || program(vec![activity("rogue", Placement::Linux(Scheduling::Idle))]);
    assert!(admit(scheduled(), &machine()).is_ok());
    let too_many = with(|p| p.processors = 3);
    for (program, words) in [(scheduled(), "nobody has here"), (too_many, "3 processors")] {
        match admit(program, &not_linux) {
            Err(Rejected::Impossible(HostError::CannotRun(text))) => {
                assert!(text.contains(words), "{text}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
}

/// Who may only ask for time constraints comes after those who hold, and makes a table necessary where nobody holds anything.
#[test]
fn guests_are_owners_of_no_slots() {
    let thread = || activity("guest", Placement::Thread(Priority::NORMAL));
    let holder = || reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let with_guest = |activities: Vec<Activity>, guest| {
        let mut program = program(activities);
        program.constrained.push(ActivityId(guest));
        let mut admission = found(program, &machine());
        assert!(admission.granted());
        admission.slots.pop().expect("a table")
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

/// A reservation as it is written: `7.500ms/10ms`.
fn read(text: &str) -> Reservation {
    let nanos = |text: &str| {
        let unit = text.find(char::is_alphabetic).unwrap();
        let scale: u64 = match &text[unit..] {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            other => panic!("{other}"),
        };
        let (whole, rest) = text[..unit].split_once('.').unwrap_or((&text[..unit], "0"));
        whole.parse::<u64>().unwrap() * scale + rest.parse::<u64>().unwrap() * scale / 1_000
    };
    let (service, period) = text.split_once('/').unwrap();
    Reservation::new(
        Service::from_nanos(nanos(service)),
        Span::from_nanos(nanos(period)),
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What is granted is what the kernel lets in, one after the other, without those that it refuses; a refusal lacks something, and what
    /// is written of its advice is taken.
    #[test]
    fn by_deadline_the_kernel_decides(
        numbers in prop::collection::vec((100_u64..50_000, 1_u64..1_000), 1..8),
        granted in 0_u64..1_900_000,
        count in 1_u16..4,
    ) {
        let processors = NonZeroU16::new(count).unwrap();
        let granted = Bandwidth::from_units(granted);
        let mut machine = machine();
        let supply = machine.deadline.as_mut().unwrap();
        (supply.processors, supply.granted) = (processors, granted);
        let limits = supply.limits;
        let requests: Vec<Reservation> = numbers
            .iter()
            .map(|(period, permille)| every((period * permille / 1_000).max(2), *period))
            .collect();
        let whole = program(requests.iter().map(|r| reserved("r", *r, Enforcer::Deadline)).collect());
        let admission = found(whole, &machine);

        let mut booked = granted;
        for (asked, found) in requests.iter().zip(&admission.requests) {
            let answer = limits.check(processors, booked, DeadlineRequest::from(*asked));
            prop_assert_eq!(found.asked.is_ok(), answer.is_ok(), "{}: {:?}", asked, answer);
            booked = [booked, answer.unwrap_or_default()].into_iter().sum();
        }
        if granted == Bandwidth::ZERO {
            prop_assert_eq!(admission.granted(), kernel_admits(&requests.iter().map(|r| (*r).into()).collect::<Vec<_>>(), processors, &limits).is_ok());
        }
        for (_, denial) in admission.refusals() {
            if let Why::DeadlineBandwidth { needed_ppm, free_ppm } = denial.why {
                prop_assert!(needed_ppm > free_ppm, "{:?}", denial);
            }
            for (_, advised) in denial.nearest.iter().flat_map(|advice| &advice.requests) {
                prop_assert_eq!(&read(&advised.to_string()), advised);
            }
        }
    }

    /// Of any mix of requests, the advice on the first refusal of each enforcer, when followed, makes that refusal go away.
    #[test]
    fn advice_that_is_followed_is_granted(requests in prop::collection::vec((300_u64..20_000, 1_u64..900, any::<bool>()), 1..6)) {
        let whole = || program(requests.iter().enumerate().map(|(i, (period, permille, by_slots))| {
            let enforcer = if *by_slots { Enforcer::Slots } else { Enforcer::Deadline };
            reserved(&format!("r{i}"), every((period * permille / 1_000).max(60), *period), enforcer)
        }).collect());
        let admission = found(whole(), &machine());
        let by = |admission: &Admission, request: &RequestAdmission| admission.asker(request).1.enforcer;
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            let first = admission.refusals().find(|(request, _)| by(&admission, request) == enforcer);
            let Some((_, denial)) = first else { continue; };
            for advice in &denial.nearest {
                let followed = found(following(whole(), &advice.requests), &machine());
                let refused = |admission: &Admission| admission.refusals().filter(|(r, _)| by(admission, r) == enforcer).count();
                prop_assert!(refused(&followed) < refused(&admission), "{:?}: {:?}", denial, advice);
                if enforcer == Enforcer::Slots {
                    prop_assert_eq!(refused(&followed), 0);
                }
            }
            let missing = !matches!(denial.why, Why::Slots(Shortage::ProcessorTime { needed_ppm, available_ppm }) if needed_ppm <= available_ppm);
            prop_assert!(missing);
            prop_assert!(denial.nearest.iter().all(|advice| advice.change == Change::AllShrink || advice.requests.len() == 1));
        }
    }
}
