//! Reservations by deadline: what they get, and what the kernel has room for.

use super::*;

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

/// A program of one processor has its number 0, whichever of the machine's it was given.
#[test]
fn a_refusal_names_the_processor_as_the_machine_does() {
    let mut machine = machine();
    machine.processors[1].number = 7;
    let modem = reserved("modem", every(9_900, 10_000), Enforcer::Slots);
    let refusal = found(program(vec![modem]), &machine).refusal();
    let text = refusal.to_string();
    assert!(text.contains("by slots on processor 7)"), "{text}");
}

/// Measured on Linux 6.18: of three reservations of 8 ms in 10 on two processors it admits two, and all three without a limit, who then all are late.
#[test]
fn a_kernel_that_admits_more_than_there_is_enforces_nothing() {
    let reason = |limited: bool| {
        let mut machine = machine();
        if !limited {
            machine.deadline.as_mut().unwrap().limits.rt_runtime = None;
        }
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Deadline);
        let admission = found(program(vec![modem]), &machine);
        let granted = admission.requests[0].asked.clone().unwrap();
        assert_eq!(granted.grade, granted.apart);
        granted.grade.reason().map(str::to_owned)
    };
    assert_eq!(reason(true), None);
    assert_eq!(reason(false).as_deref(), Some(KernelLimits::UNLIMITED));
}

/// Measured on Linux 6.18: 8 ms of 8 beside busy loops stood still for 52 ms every two seconds, when the kernel's fair server ran.
#[test]
fn what_the_kernel_keeps_for_ordinary_threads_is_nobodys() {
    let why = |x_us: u64, servers: bool| {
        let mut machine = machine();
        if !servers {
            machine.deadline.as_mut().unwrap().servers = Bandwidth::ZERO;
        }
        let modem = reserved("modem", every(x_us, 8_000), Enforcer::Deadline);
        let admission = found(program(vec![modem]), &machine);
        let answer = admission.requests[0].asked.clone();
        answer.err()
    };
    assert_eq!(why(7_600, true), None);
    assert_eq!(why(8_000, false), None);
    let refused = why(8_000, true).unwrap();
    let words = "deadline bandwidth: 100.00 % needed, 95.00 % free, 5.00 % missing";
    assert_eq!(refused.why.to_string(), words);
    let asked = refused.nearest.iter().flat_map(|advice| &advice.requests);
    let would_fit = asked.map(|(_, one)| one.service()).max();
    assert!(
        would_fit >= Some(Service::from_micros(7_590)),
        "{refused:?}"
    );
    let mut nearest = refused.nearest.iter();
    let rarer = nearest.find(|advice| advice.change == Change::ShortestPeriod);
    let all = rarer.into_iter().flat_map(|advice| &advice.requests);
    let all: Vec<_> = all.map(|(_, one)| (one.service(), one.period())).collect();
    let (least, most) = (Span::from_micros(8_421), Span::from_micros(8_500));
    assert!(
        matches!(all[..], [(x, y)] if x == Service::from_millis(8) && y >= least && y <= most),
        "{refused:?}"
    );
}

/// What the kernel keeps of each processor nobody else can give up.
#[test]
fn nobody_is_to_give_up_what_the_kernel_keeps_for_ordinary_threads() {
    let whole = || {
        let other = reserved("other", every(2_000, 10_000), Enforcer::Deadline);
        let modem = reserved("modem", every(8_000, 8_000), Enforcer::Deadline);
        program(vec![other, modem])
    };
    let admission = found(whole(), &machine());
    let (_, denial) = admission.refusals().next().unwrap();
    assert!(!denial.nearest.is_empty());
    for advice in &denial.nearest {
        assert_ne!(advice.change, Change::OtherGivesUp, "{denial:?}");
        assert!(found(following(whole(), &advice.requests), &machine()).granted());
    }
}

/// What slower processors lack is not kept of the others, of which one may have all that the servers leave, as long as all together have as much.
#[test]
fn of_unlike_processors_one_may_have_what_the_servers_leave_of_it() {
    let refused = |shares: &[u64]| {
        let mut machine = machine();
        // Two, one of which is half as fast: 1.425 of a processor, less two servers.
        let lacking = Bandwidth::of(Service::from_micros(287_500), Span::from_secs(1));
        machine.deadline.as_mut().unwrap().limits.servers = lacking;
        let holders = shares.iter();
        let holders = holders.map(|x| reserved("r", every(*x, 10_000), Enforcer::Deadline));
        let admission = found(program(holders.collect()), &machine);
        admission.refusals().count()
    };
    assert_eq!([refused(&[9_500]), refused(&[9_600])], [0, 1]);
    let both = [refused(&[4_000, 9_200]), refused(&[4_000, 9_300])];
    assert_eq!(both, [0, 1]);
}

/// Whom one cannot see may hold what is asked for, and is not counted as nobody. What the kernel has let in it enforces all the same.
#[test]
fn where_others_are_not_seen_it_is_not_known_what_the_kernel_will_say() {
    let granted = |unseen: Option<&str>| {
        let mut machine = machine();
        machine.deadline.as_mut().unwrap().unseen = unseen.map(str::to_owned);
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Deadline);
        let admission = found(program(vec![modem]), &machine);
        admission.requests[0].asked.clone().unwrap()
    };
    let (seen, unseen) = (granted(None), granted(Some("no /proc")));
    let reason = "cannot see what others hold, so the kernel may refuse it: no /proc";
    let uncertain = Grade::Uncertain {
        reason: reason.to_owned(),
    };
    assert_eq!([&seen.grade, &unseen.grade], [&Grade::Enforced, &uncertain]);
    assert_eq!(seen.apart, unseen.apart);
    assert!(seen.longest_gap < unseen.longest_gap);
    let many = unseen.notes.iter().any(|note| note.contains("of others"));
    assert!(many, "{:?}", unseen.notes);
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
