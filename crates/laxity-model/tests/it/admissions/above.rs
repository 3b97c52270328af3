//! Slots below work of which it is known how much there is.

use laxity_model::admission::Driver;
use laxity_model::nif::most::{Costs, Most};
use laxity_model::request::ONCE;

use super::*;

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

/// Of a handler it is taken for granted that its work is short, unless it is said that nobody bounds it, as of an interface's.
#[test]
fn a_handler_that_nobody_bounds_is_named() {
    for is_unbounded in [false, true] {
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        let lan = activity("lan", Placement::Interrupt(InterruptLevel(1)));
        let mut program = program(vec![modem, lan]);
        if is_unbounded {
            program.declare_unbounded(ActivityId(1));
        }
        let admission = found(program, &machine());
        let asked = admission.requests[0].asked.as_ref().unwrap();
        let reason =
            "ranked above the slot on its processor: lan, of which nobody bounds what it takes";
        let expected = match is_unbounded {
            false => Grade::Enforced,
            true => Grade::Unenforced {
                reason: reason.into(),
            },
        };
        assert_eq!(asked.grade, expected);
    }
}

#[test]
fn nothing_is_promised_of_slots_that_what_runs_above_may_take_whole() {
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let above = activity("above", Placement::Linux(Scheduling::Fifo(90)));
    let mut program = program(vec![modem, above]);
    let (service, period) = (Service::from_millis(40), Span::from_millis(100));
    program.declare_work(ActivityId(1), Work { service, period });
    let admission = found(program, &machine());
    let prediction = admission.requests[0].asked.as_ref().unwrap();
    assert_eq!(prediction.keeps, Keeps::Nothing);
    assert_eq!(prediction.longest_gap, Span::MAX);
    // What is worth nothing is not called enforced, and a run is told so, too.
    let why =
        "ranked above the slot on its processor: above (40ms every 100ms, which may be all of it)";
    for grade in [&prediction.grade, &prediction.apart] {
        let Grade::Unenforced { reason } = grade else {
            panic!("{grade:?}");
        };
        assert_eq!(reason, why);
    }
}

/// A driver whose longest call comes once is one of those who take all, with what it does again and again and what it does once more.
#[test]
fn what_comes_once_is_told_as_that_where_work_above_takes_all_of_the_slots() {
    let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
    let above = activity("above", Placement::Linux(Scheduling::Fifo(90)));
    let mut program = program(vec![modem, above]);
    // A hair less than the slots are, so that what comes once counts.
    for (service_us, period) in [(1_999, Span::from_millis(8)), (20_000, ONCE)] {
        let service = Service::from_micros(service_us);
        program.declare_more_work(ActivityId(1), Work { service, period });
    }
    let admission = found(program, &machine());
    let prediction = admission.requests[0].asked.as_ref().unwrap();
    let Grade::Unenforced { reason } = &prediction.grade else {
        panic!("{prediction:?}");
    };
    let why = "above (1.999ms every 8ms and 20ms once more, which may be all of it)";
    assert_eq!(
        reason,
        &format!("ranked above the slot on its processor: {why}")
    );
    let noted = "`above` runs above the slots and may take 20ms once more from them";
    let notes = &prediction.notes;
    assert!(notes.iter().any(|note| note == noted), "{notes:?}");
}

/// Work that may take all of one period leaves something in the long run, and what is shorter than a slot leaves some of it, however often it comes.
#[test]
fn slots_of_which_some_is_left_are_enforced() {
    for (asked, work, is_sure) in [
        (every(2_000, 8_000), every(1_000, 20_000), true),
        (every(100, 1_000), every(32, 300), false),
    ] {
        let above = activity("above", Placement::Linux(Scheduling::Fifo(90)));
        let mut program = program(vec![reserved("modem", asked, Enforcer::Slots), above]);
        let (service, period) = (work.service(), work.period());
        program.declare_work(ActivityId(1), Work { service, period });
        let admission = found(program, &machine());
        let prediction = admission.requests[0].asked.as_ref().unwrap();
        assert_eq!(prediction.keeps, Keeps::Nothing);
        assert_eq!(prediction.longest_gap < Span::MAX, is_sure);
        assert_eq!(prediction.grade, Grade::Enforced);
    }
}

/// A driver of the process is charged as work of the program is; one of which nobody says what it takes makes slots unenforced, in a run too.
#[test]
fn a_driver_of_the_process_is_charged_where_it_is_bounded_and_named_where_not() {
    let asks = || {
        program(vec![reserved(
            "modem",
            every(2_000, 8_000),
            Enforcer::Slots,
        )])
    };
    let most = Most::new(32, Span::from_millis(1)).unwrap();
    let costs = Costs {
        interrupt: Service::from_micros(3),
        packet: Service::from_micros(2),
        ..Costs::default()
    };
    let beside = |work| {
        let mut machine = machine();
        let name = "network driver of eth0".into();
        machine.processors[1].drivers = vec![Driver { name, work }];
        let admission = found(asks(), &machine);
        let shares = admission.slots[0].costs.other_ppm;
        let asked = admission.requests[0].asked.clone().unwrap();
        let launch = admit(asks(), &machine).unwrap().launch(&machine.host);
        assert_eq!(launch.unwrap().grades, [Some(asked.grade.clone())]);
        (shares, asked)
    };
    let (shares, asked) = beside(Some(most.work(costs, 1_514)));
    assert_eq!((shares, asked.grade), (160_000, Grade::Enforced));
    assert_eq!(
        asked.notes,
        ["`network driver of eth0` runs above the slots and may take 160us every 1ms from them"]
    );
    assert!(asked.longest_gap > Span::from_micros(6_200));
    let (shares, asked) = beside(None);
    let reason = "ranked above the slot on its processor: network driver of eth0, of which nobody bounds what it takes";
    let reason = reason.into();
    assert_eq!((shares, asked.grade), (0, Grade::Unenforced { reason }));
    // On another processor it is nobody's business.
    let mut elsewhere = machine();
    elsewhere.processors[0].drivers = vec![Driver {
        name: "network driver of eth0".into(),
        work: None,
    }];
    let admission = found(asks(), &elsewhere);
    let asked = admission.requests[0].asked.as_ref();
    assert_eq!(asked.unwrap().grade, Grade::Enforced);
}
