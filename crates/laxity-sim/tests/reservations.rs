//! Reservations: X in every window of Y, with and without timesharing outside; unused time goes back.

mod common;

use common::*;
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, EventKind, Grade, Host, HostError, Instant,
    InterruptLevel, Outside, Placement, Priority, Program, Reservation, ReservationRequest,
    RunRecord, Service, Span, Step,
};
use laxity_sim::{Profile, Twin};

fn reservation(service_us: u64, period_us: u64) -> Reservation {
    Reservation::new(work(service_us), Span::from_micros(period_us)).expect("possible sums")
}

/// The least time that the activity had the processor in any window of this length. It is least where a window begins as a
/// stretch ends, or ends as one begins.
fn least_in_any_window(record: &RunRecord, who: ActivityId, window: Span) -> Service {
    let stretches = stretches(record, who);
    let last_begin = record.end - window;
    let at_ends = stretches.iter().map(|(_, end)| *end);
    let at_begins = stretches.iter().filter_map(|(begin, _)| {
        let begin = begin.as_nanos().checked_sub(window.as_nanos());
        begin.map(Instant::from_nanos)
    });
    let begins = at_ends.chain(at_begins).chain([Instant::ZERO, last_begin]);
    let in_window = |from: Instant| -> Service {
        let to = from + window;
        stretches
            .iter()
            .map(|(begin, end)| (*end).min(to).saturating_since((*begin).max(from)))
            .map(Span::as_full_service)
            .sum()
    };
    let windows = begins.filter(|begin| *begin <= last_begin).map(in_window);
    windows.min().expect("there is at least one window")
}

/// Holders that spin, against a rogue of the highest priority that a slot outranks.
fn holders_and_a_rogue(reservations: &[Reservation], outside: Outside) -> Program {
    let mut program = Program::new(1);
    for reservation in reservations {
        program.push(reserved(8, *reservation, outside, spinner()));
    }
    program.add("rogue", CPU, thread(30), spinner());
    program
}

#[test]
fn a_spinning_holder_gets_its_service_in_every_window() {
    let sets: [&[Reservation]; 5] = [
        &[reservation(2_000, 8_000)],
        &[reservation(1_000, 7_000)],
        &[reservation(2_000, 13_000), reservation(100, 2_500)],
        &[
            reservation(1_000, 4_000),
            reservation(3_000, 16_000),
            reservation(8_000, 20_000),
        ],
        &[reservation(3_000, 4_000)],
    ];
    for set in sets {
        for outside in [Outside::Confined, Outside::Timesharing(Priority::NORMAL)] {
            for profile in [Profile::IDEAL, Profile::WIN2000_PII450] {
                let record = run(profile, holders_and_a_rogue(set, outside), 2_000);
                for (index, reservation) in set.iter().enumerate() {
                    let who = ActivityId(index as u16);
                    let least = least_in_any_window(&record, who, reservation.period());
                    assert!(
                        least >= reservation.service(),
                        "{reservation} of {set:?}, {}: {least} in some window",
                        profile.name
                    );
                    let grant = record.usage[index].grant.clone().expect("it was granted");
                    assert_eq!(
                        (grant.reservation, grant.grade),
                        (*reservation, Grade::Enforced)
                    );
                }
            }
        }
    }
}

#[test]
fn confined_means_the_slots_and_nothing_else_even_on_an_idle_processor() {
    let mut program = Program::new(1);
    let two_of_eight = reservation(2_000, 8_000);
    program.push(reserved(31, two_of_eight, Outside::Confined, spinner()));
    let record = run(Profile::IDEAL, program, 800);
    assert_eq!(record.usage[0].service, Service::from_millis(200));

    let mut program = Program::new(1);
    program.push(reserved(
        31,
        two_of_eight,
        Outside::Timesharing(Priority::NORMAL),
        spinner(),
    ));
    let record = run(Profile::IDEAL, program, 800);
    assert_eq!(record.usage[0].service, Service::from_millis(800));
}

#[test]
fn outside_its_slot_a_timesharing_holder_has_the_priority_it_asked_for() {
    let share_as = |placed, outside| {
        let mut program = Program::new(1);
        let two_of_eight = reservation(2_000, 8_000);
        program.push(reserved(placed, two_of_eight, outside, spinner()));
        program.add("competitor", CPU, thread(8), spinner());
        run(Profile::IDEAL, program, 8_000).usage[0]
            .service
            .as_nanos()
            / 80_000_000
    };
    let share = |level| {
        let outside = Outside::Timesharing(Priority::new(level).unwrap());
        // Its priority before it had the reservation does not matter any more.
        let share = share_as(31, outside);
        assert_eq!(share, share_as(level, Outside::AsPlaced));
        share
    };
    assert_eq!(share(7), 25);
    assert_eq!(share(9), 100);
    // Half of the rest: 25 + 37.5.
    assert_eq!(share(8), 62);
}

#[test]
fn time_that_a_holder_does_not_use_goes_back() {
    let mut program = Program::new(1);
    let mut release = Instant::ZERO;
    let mut working = false;
    let light = move |_: &mut dyn Context| {
        working = !working;
        if working {
            return Step::Charge(work(500));
        }
        release += Span::from_millis(8);
        Step::SleepUntil(release)
    };
    let two_of_eight = reservation(2_000, 8_000);
    program.push(reserved(8, two_of_eight, Outside::Confined, light));
    program.add("spinner", CPU, thread(8), spinner());
    let record = run(Profile::IDEAL, program, 800);
    assert_eq!(record.usage[0].service, Service::from_millis(50));
    assert_eq!(record.usage[1].service, Service::from_millis(750));
}

/// Where the table puts the first slot of a program's only reservation.
fn first_slot(reservation: Reservation) -> (Instant, Instant) {
    let program = holders_and_a_rogue(&[reservation], Outside::Confined);
    let record = run(Profile::IDEAL, program, 100);
    let edge = |kind| {
        let event = record.events.iter().find(|event| event.kind == kind);
        Instant::from_nanos(event.expect("slots are recorded").args[0])
    };
    (edge(EventKind::SlotBegin), edge(EventKind::SlotEnd))
}

#[test]
fn a_holder_that_wakes_inside_its_slot_gets_the_rest_at_once() {
    let two_of_eight = reservation(2_000, 8_000);
    let (begin, end) = first_slot(two_of_eight);
    let inside = begin + Span::from_micros(700);
    let mut program = Program::new(1);
    let body = script(&[Step::SleepUntil(inside), Step::Charge(work(5_000))]);
    // The holder's priority is below the rogue's, so it needs its slot to fall asleep too: in the slot before.
    program.push(reserved(
        31,
        two_of_eight,
        Outside::Timesharing(Priority::NORMAL),
        body,
    ));
    program.add("rogue", CPU, thread(30), spinner());
    let record = run(Profile::IDEAL, program, 100);
    let stretches = stretches(&record, ActivityId(0));
    let awake = stretches.iter().find(|(from, _)| *from >= inside);
    assert_eq!(awake, Some(&(inside, end)));
}

#[test]
fn a_reservation_can_begin_and_end_while_the_thread_runs() {
    let mut program = Program::new(1);
    let steps = [
        Step::Charge(work(1_000)),
        Step::BeginReservation,
        Step::Charge(work(4_000)),
        Step::EndReservation,
        Step::Charge(work(1_000)),
    ];
    let mut holder = reserved(
        24,
        reservation(1_000, 10_000),
        Outside::Confined,
        script(&steps),
    );
    holder.reservation = holder.reservation.map(|request| ReservationRequest {
        begins_at_start: false,
        ..request
    });
    program.push(holder);
    let record = run(Profile::IDEAL, program, 100);
    let begun = occurrences(&record, EventKind::ReservationBegin);
    assert_eq!(begun, [(1_000, 0)]);
    let ended = occurrences(&record, EventKind::ReservationEnd);
    let (slots_begun, slots_ended) = (
        occurrences(&record, EventKind::SlotBegin),
        occurrences(&record, EventKind::SlotEnd),
    );
    assert_eq!(slots_begun.len(), slots_ended.len());
    // Four slots of 1 ms, one every 10 ms; then at once the rest.
    assert!((30_000..=41_000).contains(&ended[0].0), "{ended:?}");
    let finished = occurrences(&record, EventKind::Finish);
    assert_eq!(finished, [(ended[0].0 + 1_000, 0)]);
}

#[test]
fn interrupts_come_before_slots() {
    let mut program = holders_and_a_rogue(&[reservation(2_000, 8_000)], Outside::Confined);
    let storm = script(&[Step::SleepUntil(ms(20)), Step::Charge(work(80_000))]);
    program.add("storm", CPU, Placement::Interrupt(InterruptLevel(3)), storm);
    let record = run(Profile::IDEAL, program, 100);
    assert!(record.usage[0].service <= Service::from_millis(6));
    assert_eq!(record.usage[2].service, Service::from_millis(80));
}

#[test]
fn too_much_is_refused_before_anything_runs() {
    let too_much = [reservation(6_000, 8_000), reservation(4_000, 8_000)];
    let mut program = holders_and_a_rogue(&too_much, Outside::Confined);
    program.add("never", CPU, thread(8), |_: &mut dyn Context| {
        panic!("it was started")
    });
    let refused = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_secs(1));
    assert!(matches!(refused, Err(HostError::Refused(_))), "{refused:?}");
}

#[test]
fn each_processor_has_a_table_of_its_own() {
    let mut program = Program::new(2);
    for cpu in 0..2 {
        let three_quarters = reservation(6_000, 8_000);
        let mut holder = reserved(8, three_quarters, Outside::Confined, spinner());
        holder.processor = laxity_model::ProcessorId(cpu);
        program.push(holder);
    }
    let record = run(Profile::IDEAL, program, 800);
    for who in 0..2 {
        assert_eq!(record.usage[who].service, Service::from_millis(600));
    }
}

#[test]
fn the_kernel_s_enforcer_is_not_here() {
    let mut program = Program::new(1);
    let mut holder: Activity = reserved(8, reservation(1, 8), Outside::Confined, spinner());
    holder.reservation = holder.reservation.map(|request| ReservationRequest {
        enforcer: Enforcer::Deadline,
        ..request
    });
    program.push(holder);
    let outcome = Twin::new(Profile::WIN2000_PII450).admit_and_run(program, Span::from_secs(1));
    assert!(matches!(outcome, Err(HostError::CannotRun(text)) if text.contains("deadline")));
}

#[test]
fn a_reservation_that_has_not_begun_gives_nothing() {
    let mut program = holders_and_a_rogue(
        &[reservation(2_000, 8_000)],
        Outside::Timesharing(Priority::NORMAL),
    );
    let declared = &mut program.activities[0].reservation;
    *declared = declared.map(|request| ReservationRequest {
        begins_at_start: false,
        ..request
    });
    let record = run(Profile::IDEAL, program, 100);
    assert_eq!(record.usage[0].service, Service::ZERO);
    assert_eq!(occurrences(&record, EventKind::SlotBegin), []);
}

#[test]
fn a_confined_thread_that_wakes_outside_its_slot_waits_for_the_next() {
    let two_of_eight = reservation(2_000, 8_000);
    let (_, end) = first_slot(two_of_eight);
    let outside = end + Span::from_millis(1);
    let mut program = Program::new(1);
    let body = script(&[Step::SleepUntil(outside), Step::Charge(work(100))]);
    program.push(reserved(31, two_of_eight, Outside::Confined, body));
    let record = run(Profile::IDEAL, program, 100);
    // Nobody else wants the processor, and still it is not given.
    let next_slot = record
        .events
        .iter()
        .find(|event| event.kind == EventKind::SlotBegin && event.at > outside)
        .expect("slots go on");
    let finished = next_slot.at.as_micros() + 100;
    assert_eq!(occurrences(&record, EventKind::Finish), [(finished, 0)]);
}
