use laxity_model::Service;
use laxity_model::base::ring::{self, Producer};
use laxity_model::enforce::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY};

use super::super::subject::{Part, State, Subject};
use super::super::{How, Observer};
use super::*;
use crate::os::fact::Unknown;
use crate::run::port::Ports;

mod strangers;

/// Beside the kernel, looked at now.
fn by_kernel(seen: &Arc<Seen>) -> Watcher {
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    let start = WatcherStart {
        reservation,
        held: Held::ByKernel,
        stops: false,
        slots_on: None,
        is_holders: Box::new(|_| false),
        witnessed: Vec::new(),
        cpu: None,
        keeps_stretches: false,
        consumers: Vec::new(),
    };
    let now = clock::now();
    let looks = Looks::new(now, reservation.period(), BESIDE_KERNEL);
    Watcher::new(start, Arc::clone(seen), Lookout::at_own(), (now, looks))
}

#[test]
fn where_nobody_records_halts_that_is_told() {
    let seen = Seen::new(Grade::Enforced);
    by_kernel(&seen).look(false);
    assert!(seen.delivery().unwrap().halts_unseen);
}

/// The dispatcher could not go on, say: nobody enforces anything from then on, whatever is seen of it.
#[test]
fn where_one_of_our_threads_fails_nothing_is_enforced() {
    let seen = Seen::new(Grade::Enforced);
    let run = Run::new(1, 0, Ports::default());
    run.fail(HostError::CannotRun("the dispatcher has gone".to_owned()));
    by_kernel(&seen).look_out(&run);
    let reason = seen.grade().reason().map(str::to_owned);
    assert!(reason.is_some_and(|why| why.contains("the dispatcher has gone")));
}

/// Nobody is convicted by a limit of laxity's own, whoever tells first; and the first reason stays, as it tells what helps.
#[test]
fn where_no_more_files_may_be_open_nothing_is_known() {
    let seen = Seen::new(Grade::Enforced);
    let run = Arc::new(Run::new(1, 0, Ports::default()));
    let too_many = std::io::Error::from_raw_os_error(libc::EMFILE);
    run.fail(HostError::CannotRun(too_many.to_string()));
    let observer = Observer {
        holder: Tid::current(),
        is_watched: true,
        seen: Arc::clone(&seen),
        how: How::Slots(0, Arc::clone(&run)),
    };
    let told = |grade: &Grade| match grade {
        Grade::Uncertain { reason } => reason.contains("ulimit -n"),
        _ => false,
    };
    let asked = observer.grade();
    assert!(told(&asked), "{asked:?}");
    by_kernel(&seen).look_out(&run);
    let both = [seen.grade(), observer.grade()];
    assert!(both.iter().all(told), "{both:?}");
    seen.observe(Err(Unknown("too late".to_owned())));
    let why = seen.delivery().unwrap_err().to_string();
    assert!(why.contains("ulimit -n"), "{why}");
}

#[test]
fn a_limit_that_is_taken_away_meanwhile_is_no_promise_any_more() {
    let seen = Seen::new(Grade::Enforced);
    let watcher = by_kernel(&seen);
    let mut limits = limits::throttling();
    for (runtime_us, is_promise) in [(Some(950_000), true), (None, false)] {
        limits.runtime_us = Ok(runtime_us);
        watcher.read_back(&limits);
        assert_eq!(seen.grade() == Grade::Enforced, is_promise);
    }
}

/// A watcher of slots on processor 0, and the rings of its dispatcher and its witness.
fn by_slots(seen: &Arc<Seen>, now: Instant) -> (Watcher, [Producer; 2]) {
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    let [(dispatcher, from_dispatcher), (witness, from_witness)] =
        [ring::channel(2), ring::channel(2)];
    let start = WatcherStart {
        reservation,
        held: Held::BySlots,
        stops: false,
        slots_on: Some(0),
        is_holders: Box::new(|_| false),
        witnessed: vec![0],
        cpu: None,
        keeps_stretches: false,
        consumers: vec![from_dispatcher, from_witness],
    };
    let looks = Looks::new(now, reservation.period(), BESIDE_SLOTS);
    let watcher = Watcher::new(start, Arc::clone(seen), Lookout::at_own(), (now, looks));
    (watcher, [dispatcher, witness])
}

fn slot_end(at: Instant) -> Event {
    Event {
        at,
        kind: EventKind::SlotEnd,
        processor: ProcessorId(0),
        activity: HOLDER,
        args: [0; 2],
    }
}

/// It ran at each look, and had waited for so long before.
struct Waits(Span);

impl Subject for Waits {
    fn look(&mut self) -> Option<Part> {
        Some(Part {
            service: Service::from_millis(2),
            waited: self.0,
            longest: self.0,
            several: false,
            ran: true,
            ended: false,
            gone: false,
        })
    }

    fn has(&self, _: &RealTimeThread) -> bool {
        false
    }

    fn state(&self) -> State {
        State::Sleeps
    }
}

/// 6 ms are promised, and 10 are the kernel's own.
#[test]
fn who_waits_for_longer_than_the_kernels_own_leaves_slots_uncertain() {
    let cases = [
        (true, 16, Grade::Enforced.rank()),
        (true, 17, uncertain().rank()),
        // What is late by the kernel its bandwidth accounts for.
        (false, 17, Grade::Enforced.rank()),
    ];
    for (has_slots, waits_ms, expected) in cases {
        let seen = Seen::new(Grade::Enforced);
        let mut watcher = match has_slots {
            true => by_slots(&seen, clock::now()).0,
            false => by_kernel(&seen),
        };
        seen.observe(Ok(Box::new(Waits(Span::from_millis(waits_ms)))));
        watcher.look(false);
        watcher.look(false);
        watcher.look(true);
        assert_eq!(seen.grade().rank(), expected, "{has_slots} {waits_ms}");
    }
}

fn uncertain() -> Grade {
    let reason = String::new();
    Grade::Uncertain { reason }
}

#[test]
fn records_that_did_not_fit_are_counted_in_what_is_told() {
    let seen = Seen::new(Grade::Enforced);
    let now = clock::now();
    let (mut watcher, [mut dispatcher, mut witness]) = by_slots(&seen, now);
    watcher.look(false);
    assert_eq!(seen.delivery().unwrap().events_lost, 0);
    let event = slot_end(now);
    for _ in 0..5 {
        dispatcher.push(event);
    }
    for _ in 0..3 {
        witness.push(event);
    }
    watcher.look(true);
    assert_eq!(seen.delivery().unwrap().events_lost, 4);
}

/// The dispatcher records a halt after its witness: a look between the two has them in two parts.
#[test]
fn one_halt_that_a_look_divides_is_no_stopped_dispatcher() {
    for is_witnessed in [true, false] {
        let seen = Seen::new(Grade::Enforced);
        let now = clock::now();
        let (mut watcher, [mut dispatcher, mut witness]) = by_slots(&seen, now);
        let late = |activity| Event {
            at: now + Span::from_millis(35),
            kind: EventKind::Disturbed,
            processor: ProcessorId(0),
            activity,
            args: [now, now + Span::from_millis(35)].map(Instant::as_nanos),
        };
        if is_witnessed {
            witness.push(late(WITNESS_ACTIVITY));
        }
        watcher.look(false);
        dispatcher.push(late(DISPATCHER_ACTIVITY));
        watcher.look(true);
        assert_eq!(seen.grade() == Grade::Enforced, is_witnessed);
    }
}

/// A dispatcher that somebody freezes records it when it is let go: after the watcher's last look, where that comes after the end.
#[test]
fn what_is_recorded_after_the_last_look_counts_if_it_began_before_the_end() {
    for begins_in_time in [true, false] {
        let seen = Seen::new(Grade::Enforced);
        let now = clock::now();
        let (mut watcher, [mut dispatcher, _witness]) = by_slots(&seen, now);
        seen.end();
        watcher.look(true);
        let from = if begins_in_time { now } else { clock::now() };
        let to = from + Span::from_millis(700);
        dispatcher.push(Event {
            at: to,
            kind: EventKind::Disturbed,
            processor: ProcessorId(0),
            activity: DISPATCHER_ACTIVITY,
            args: [from, to].map(Instant::as_nanos),
        });
        watcher.note_ends();
        assert_eq!(seen.grade() == Grade::Enforced, !begins_in_time);
    }
}

/// Whom the kernel holds outranks the witness, and lets processors rest: it is the witness of a run beside such holders.
#[test]
fn beside_whom_the_kernel_holds_short_halts_are_passed_over() {
    let seen = Seen::new(Grade::Enforced);
    let of_slots: Vec<Witness> = by_slots(&seen, clock::now()).0.start.witnesses().collect();
    assert_eq!(of_slots, [Witness::new(ProcessorId(0))]);
    let start = WatcherStart {
        witnessed: vec![0, 1],
        ..by_kernel(&seen).start
    };
    let tolerances: Vec<Span> = start.witnesses().map(|one| one.tolerance).collect();
    assert_eq!(tolerances, [Witness::BESIDE_BUDGETS; 2]);
}

#[test]
fn what_was_before_it_begins_anew_is_told_no_more() {
    let seen = Seen::new(Grade::Enforced);
    let now = clock::now();
    let (mut watcher, [mut dispatcher, _witness]) = by_slots(&seen, now);
    let event = slot_end(now);
    // Three of five do not fit.
    for _ in 0..5 {
        dispatcher.push(event);
    }
    watcher.look(false);
    assert_eq!(seen.delivery().unwrap().events_lost, 3);
    let reason = "somebody".to_owned();
    seen.note(Grade::Unenforced { reason });
    let reservation = Reservation::new(Service::from_millis(1), Span::from_millis(8)).unwrap();
    let begins_at = |from| Anew {
        reservation,
        looks: None,
        from,
    };
    // Until its time has come nothing is told.
    seen.begin_anew(begins_at(clock::now() + Span::from_secs(1_000)));
    watcher.look(false);
    for _ in 0..3 {
        dispatcher.push(event);
    }
    watcher.look(false);
    assert_eq!(seen.delivery().unwrap(), Delivery::default());
    seen.begin_anew(begins_at(clock::now()));
    for expected in [0, 1, 2] {
        watcher.look(false);
        assert_eq!(seen.delivery().unwrap().events_lost, expected);
        // One of three does not fit.
        for _ in 0..3 {
            dispatcher.push(event);
        }
    }
    assert_eq!(seen.grade(), Grade::Enforced);
    assert_eq!(watcher.start.reservation, reservation);
}

/// It never has a processor, and is in this state.
struct Idles(State);

impl Subject for Idles {
    fn look(&mut self) -> Option<Part> {
        Some(Part {
            gone: false,
            ..Part::NOBODY
        })
    }

    fn has(&self, _: &RealTimeThread) -> bool {
        false
    }

    fn state(&self) -> State {
        self.0
    }
}

fn nothing() -> Records {
    Records {
        stood: Vec::new(),
        still: Vec::new(),
        stops: Vec::new(),
        unwatched: false,
    }
}

/// Three periods lie between two looks.
#[test]
fn of_who_cannot_be_read_no_period_is_slept_through_nor_kept() {
    for (state, slept, unseen) in [(State::Sleeps, 10, 0), (State::Unknown, 0, 9)] {
        let meter = by_kernel(&Seen::new(Grade::Enforced)).meter(Instant::ZERO);
        let mut observed = Observed::new(Box::new(Idles(state)), meter);
        for look in 1..=10 {
            let mut asking = Asking {
                may: true,
                stops: false,
                took: Span::ZERO,
            };
            let at = Instant::from_millis(24 * look);
            let over = observed.take(at, &nothing(), &mut asking, look == 10);
            over.for_each(drop);
        }
        let seen = observed.meter().delivery();
        assert_eq!((seen.asleep, seen.kept), (slept, slept), "{state:?}");
        assert_eq!(seen.unseen, unseen, "{state:?}");
    }
}

#[test]
fn who_wants_to_run_and_gets_nothing_for_seconds_is_told() {
    let meter = by_kernel(&Seen::new(Grade::Enforced)).meter(Instant::ZERO);
    let mut observed = Observed::new(Box::new(Idles(State::Wants)), meter);
    let nothing = nothing();
    let mut starved = |at_ms, may, period_ms| {
        let at = Instant::from_millis(at_ms);
        let mut asking = Asking {
            may,
            stops: false,
            took: Span::ZERO,
        };
        let over = observed.take(at, &nothing, &mut asking, false);
        over.for_each(drop);
        observed.starved_for(at, Span::from_millis(period_ms))
    };
    // Until it was asked it may have slept.
    assert_eq!(starved(1_000, false, 8), None);
    assert_eq!(starved(3_500, true, 8), None);
    assert_eq!(starved(5_500, false, 8), None);
    assert_eq!(starved(5_501, true, 8), Some(Span::from_secs(2)));
    assert_eq!(starved(7_500, true, 2_000), None);
    assert_eq!(starved(7_501, true, 2_000), Some(Span::from_secs(4)));
}

#[test]
fn a_look_leaves_uncertain_what_is_held_for_who_wants_to_run_and_gets_nothing() {
    let seen = Seen::new(Grade::Enforced);
    let mut watcher = by_kernel(&seen);
    let begun = clock::now() - Span::from_secs(3);
    let mut observed = Observed::new(Box::new(Idles(State::Wants)), watcher.meter(begun));
    let mut asking = Asking {
        may: true,
        stops: false,
        took: Span::ZERO,
    };
    let over = observed.take(begun, &nothing(), &mut asking, false);
    over.for_each(drop);
    watcher.observed.push(observed);
    watcher.look(false);
    let reason = "it wanted to run, and got nothing for more than 2s".to_owned();
    assert_eq!(seen.grade(), Grade::Uncertain { reason });
}
