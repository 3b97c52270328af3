//! The whole suite, by subject: each case with what it shows.

use laxity_model::Outside;

use crate::stage::{HIGH, NORMAL, ORDINARY};
use crate::{
    Case, above, admission, endings, executors, interrupts, mistakes, ports, records, requests,
    reservations, semaphores, service, threads, timers,
};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "a-woken-higher-priority-preempts-at-once",
        threads::higher_preempts,
    )
    .shows("a signal to a higher priority takes the processor before the signaller goes on"),
    Case::new("a-timer-preempts-a-lower-priority", threads::timer_preempts)
        .shows("a sleeper of higher priority does not wait until a lower one has done its work"),
    Case::new("a-lower-priority-waits", threads::lower_waits)
        .shows("a signal to a lower priority takes effect when the higher one gives way"),
    Case::new("all-real-time-priorities-in-order", threads::all_in_order)
        .shows("sixteen threads woken from the lowest up run from the highest down"),
    Case::new(
        "equals-run-in-the-order-they-were-woken",
        threads::equals_in_order,
    )
    .shows("equal real-time priorities run first come, first served, each until it is done"),
    Case::new("yield-lets-every-equal-go-once", threads::yield_takes_turns)
        .shows("yielding equals take turns"),
    Case::new("yield-does-not-help-a-lower-priority", threads::yield_alone)
        .shows("a thread that yields with no equal ready goes on"),
    Case::new(
        "a-preempted-thread-resumes-before-its-equals",
        threads::preempted_resumes,
    )
    .shows("preemption costs no turn"),
    Case::new(
        "an-interrupt-comes-before-every-thread",
        interrupts::interrupt_above_thread,
    )
    .shows("a handler does not wait for a thread of the highest priority"),
    Case::new(
        "an-interrupt-interrupts-a-deferred-call",
        interrupts::interrupt_above_deferred,
    )
    .shows("a handler does not wait for a deferred call"),
    Case::new(
        "nothing-below-interrupts-a-handler",
        interrupts::handler_to_completion,
    )
    .shows("a handler is over before deferred calls, threads and handlers of its level go on"),
    Case::new(
        "a-deferred-call-runs-to-its-end",
        interrupts::deferred_to_completion,
    )
    .shows("a deferred call is over before another one, or any thread, begins"),
    Case::new(
        "deferred-calls-come-before-every-thread",
        interrupts::deferred_above_thread,
    )
    .shows("a deferred call queued after a thread became ready runs first"),
    Case::new(
        "deferred-calls-run-in-the-order-they-were-queued",
        interrupts::deferred_in_order,
    )
    .shows("the queue of deferred calls is first in, first out, round after round"),
    Case::new(
        "a-deferred-call-serves-all-that-was-counted",
        interrupts::deferred_counts,
    )
    .shows("signals to a deferred call that cannot run are counted, and each is served once"),
    Case::new(
        "a-device-raises-its-line-at-its-instants",
        interrupts::device_instants,
    )
    .shows("a handler is entered once for each instant, never early, and knows the instant"),
    Case::new("block-and-wake-alternate", semaphores::ping_pong)
        .shows("two threads that wake each other lose no wake-up in a thousand rounds"),
    Case::new(
        "block-and-wake-alternate-across-processors",
        semaphores::ping_pong_across,
    )
    .shows("the same, from one processor to another")
    .on(2),
    Case::new(
        "a-semaphore-begins-with-its-count",
        semaphores::initial_count,
    )
    .shows("as many waits as the initial count go on at once, and the next one blocks"),
    Case::new(
        "signals-without-a-waiter-are-kept",
        semaphores::counts_are_kept,
    )
    .shows("what was signalled while nobody waited is taken later, each once"),
    Case::new(
        "each-signal-wakes-one-waiter",
        semaphores::one_signal_one_waiter,
    )
    .shows("three signals wake three of five equal waiters, first come, first served"),
    Case::new(
        "a-time-out-takes-nothing",
        semaphores::timeout_takes_nothing,
    )
    .shows("a waiter that has gone leaves the next signal to the others"),
    Case::new("a-port-keeps-order-payload-and-instant", ports::order)
        .shows("what was put is taken in order, with its payload and the instant of the put"),
    Case::new("a-full-port-drops-and-counts", ports::overflow)
        .shows("what finds no room is dropped, the putter is told, and the record counts it"),
    Case::new(
        "a-port-is-fed-from-outside-the-machine",
        ports::from_outside,
    )
    .shows("an external activity and an interrupt handler feed the same port"),
    Case::new("what-several-put-is-taken-once", ports::several)
        .shows("three activities put on two processors: each arrival is taken once, in its order")
        .on(2),
    Case::new("a-time-out-brings-no-arrival", ports::time_out)
        .shows("a wait whose time is up has taken nothing, and one that took is no time-out"),
    Case::new("a-bell-rings-for-any-port", ports::bell)
        .shows("one waiter is woken by arrivals at either of two ports, and finds them at once"),
    Case::new(
        "an-executor-serves-first-come-first",
        executors::first_come_first_served,
    )
    .shows("handlers run in the order in which something arrived for them, each to its end"),
    Case::new(
        "an-executor-serves-the-earliest-deadline",
        executors::earliest_deadline_first,
    )
    .shows("of those for whom something arrived, the one that is due first runs first"),
    Case::new(
        "a-job-yields-to-a-more-urgent-release",
        executors::yields_to_an_instant,
    )
    .shows("a job yields when a more urgent handler's instant has come, and resumes after it"),
    Case::new(
        "a-job-yields-to-a-more-urgent-arrival",
        executors::yields_to_an_arrival,
    )
    .shows("the same when something arrives at the port that a more urgent handler waits for"),
    Case::new(
        "a-job-is-not-told-to-yield-to-the-less-urgent",
        executors::does_not_yield,
    )
    .shows("nobody is told to yield first come, first served, nor for a later deadline"),
    Case::new(
        "a-job-that-does-not-look-is-not-interrupted",
        executors::is_not_interrupted,
    )
    .shows("a more urgent handler waits until the running job is over"),
    Case::new(
        "handlers-are-made-and-ended-while-others-run",
        executors::made_and_ended,
    )
    .shows("a handler makes another, which runs when something arrives for it, and ends it"),
    Case::new(
        "a-handler-waits-for-a-port-or-an-instant",
        executors::port_or_instant,
    )
    .shows("whichever comes first releases its job, and it can tell which"),
    Case::new(
        "what-an-executor-s-policy-does-not-admit-is-refused",
        executors::refused,
    )
    .shows("tasks that may miss a deadline are refused by the bottleneck's name; others run"),
    Case::new("handlers-are-recorded-as-activities", executors::recorded)
        .shows("releases, beginnings and ends are events of the handler's own activity"),
    Case::new("periodic-releases-keep-their-grid", timers::periodic)
        .shows("a periodic thread wakes once for each release, never early, and does not drift"),
    Case::new("an-overrun-loses-no-release", timers::overrun)
        .shows("a job that takes several periods delays the following releases and drops none"),
    Case::new("sleeping-into-the-past-returns-at-once", timers::past)
        .shows("a sleep until an instant that is over leaves nothing to a lower priority"),
    Case::new(
        "sleepers-wake-in-the-order-of-their-instants",
        timers::order_of_instants,
    )
    .shows("who sleeps until an earlier instant wakes earlier, whoever asked first"),
    Case::new(
        "sleepers-of-one-instant-run-by-priority",
        timers::same_instant,
    )
    .shows("of threads that wake together the highest priority runs first"),
    Case::new("a-wait-ends-when-time-is-up", timers::times_out)
        .shows("a wait without a signal ends at its instant, not before, and says so"),
    Case::new("a-signal-ends-a-timed-wait", timers::does_not_time_out)
        .shows("a wait that was signalled in time says so, and its timer does not come back"),
    Case::new("a-count-beats-a-time-that-is-over", timers::past_time_out)
        .shows("a timed wait whose instant is past takes a count if there is one, or times out"),
    Case::new("a-burn-receives-what-it-asks-for", service::burn)
        .shows("work takes its service, however long a competitor makes it wait"),
    Case::new("a-body-is-told-its-service", service::told_service)
        .shows("what a body is told grows by what it burns, and ends as what the record says"),
    Case::new("equals-share-alike", service::equal_shares)
        .shows("spinners of one ordinary priority receive the same, within a quarter"),
    Case::new("nobody-receives-more-than-there-is", service::totals)
        .shows("the service of all activities fits into the run's length"),
    Case::new("what-is-external-takes-no-processor", service::external)
        .shows("an external activity works while the highest priority has the processor"),
    Case::new("processors-are-independent", service::independent)
        .shows("a spinner of the highest priority on one processor delays nobody on another")
        .on(2),
    Case::new("reservation-2-of-8-timesharing", |host, tolerance| {
        reservations::alone(host, tolerance, [2_000, 8_000], ORDINARY)
    })
    .shows("2 ms in every window of 8 ms beside four spinners, and a share outside"),
    Case::new("reservation-2-of-8-confined", |host, tolerance| {
        reservations::alone(host, tolerance, [2_000, 8_000], Outside::Confined)
    })
    .shows("2 ms in every window of 8 ms beside four spinners, and nothing outside"),
    Case::new("reservation-1-of-10-confined", |host, tolerance| {
        reservations::alone(host, tolerance, [1_000, 10_000], Outside::Confined)
    })
    .shows("1 ms in every window of 10 ms"),
    Case::new("reservation-2-of-13-timesharing", |host, tolerance| {
        reservations::alone(host, tolerance, [2_000, 13_000], ORDINARY)
    })
    .shows("a period that no power of two divides"),
    Case::new(
        "reservation-of-a-tenth-of-a-millisecond",
        |host, tolerance| reservations::alone(host, tolerance, [100, 2_500], ORDINARY),
    )
    .shows("0.1 ms in every window of 2.5 ms: slots far below a clock tick"),
    Case::new("reservation-above-a-rogue", |host, tolerance| {
        reservations::beside_a_rogue(host, tolerance, NORMAL)
    })
    .shows("a spinner of a real-time priority takes nothing from a slot"),
    Case::new(
        "a-holder-has-its-priority-outside-its-slots",
        |host, tolerance| reservations::beside_a_rogue(host, tolerance, HIGH),
    )
    .shows("a real-time holder is an ordinary thread outside its slots, if it asked for that"),
    Case::new("two-reservations-at-once", reservations::two_at_once)
        .shows("two holders whose periods do not divide each other both get theirs"),
    Case::new(
        "a-confined-holder-has-its-slots-and-nothing-else",
        reservations::confined_is_confined,
    )
    .shows("on an idle processor too, a confined holder works inside its slots only"),
    Case::new(
        "a-timesharing-holder-may-use-an-idle-processor",
        reservations::timesharing_shares,
    )
    .shows("outside its slots it is an ordinary thread"),
    Case::new("unused-time-is-returned", reservations::unused_is_returned)
        .shows("slots whose holder waits belong to whoever is ready"),
    Case::new(
        "a-reservation-begins-and-ends-on-request",
        reservations::on_request,
    )
    .shows("slots are given from the holder's begin to its end, and neither before nor after"),
    Case::new("slots-keep-the-tables-grid", reservations::grid)
        .shows("the slots of a reservation begin exactly a period apart, none too early"),
    Case::new("work-above-slots-is-made-up-for", above::made_up)
        .shows("a device takes a bit of every slot, and its holder has X, or a known bit less"),
    Case::new("two-devices-have-two-holders", above::two_devices)
        .shows("two devices each wake a holder, which is done within its own period"),
    Case::new("a-reservation-changes-while-it-runs", |host, tolerance| {
        requests::changes(host, tolerance, [[1_000, 10_000], [2_000, 8_000]])
    })
    .shows("1 ms of 10 becomes 2 of 8: each is kept in its time, and another's across it"),
    Case::new("a-sub-millisecond-reservation-grows", |host, tolerance| {
        requests::changes(host, tolerance, [[100, 2_500], [2_000, 8_000]])
    })
    .shows("0.1 ms of 2.5 becomes 2 of 8"),
    Case::new(
        "a-change-that-does-not-fit-changes-nothing",
        requests::refused_change,
    )
    .shows("it is refused with the reason, and what was held is held"),
    Case::new(
        "every-window-across-a-mode-change-is-kept",
        requests::across_changes,
    )
    .shows("across changes a holder has the lesser service in the longer window"),
    Case::new("a-time-constraint-is-met", |host, tolerance| {
        requests::constrained(host, tolerance, None, [3_000, 12_000])
    })
    .shows("a thread beside spinners and a reservation has 3 ms within 12 whenever granted"),
    Case::new(
        "a-time-constraint-inside-a-reservation-is-met",
        |host, tolerance| {
            requests::constrained(host, tolerance, Some([2_000, 8_000]), [4_000, 8_000])
        },
    )
    .shows("the confined holder of 2 ms in 8 has 4 ms within 8: its slots, and nobody's time"),
    Case::new(
        "a-time-constraint-that-does-not-fit-changes-nothing",
        requests::refused_constraints,
    )
    .shows("more than reservations leave is refused, and a second one; what fits is granted"),
    Case::new(
        "what-a-time-constraint-does-not-need-is-given-back",
        requests::given_back,
    )
    .shows("after the end of a constraint no slot of it begins"),
    Case::new("more-than-a-processor-is-refused", admission::too_much)
        .shows("what is too much together is refused with a reason, and no body is called"),
    Case::new("what-fits-exactly-is-accepted", admission::exactly)
        .shows("two reservations that leave nothing are granted; a microsecond more is refused"),
    Case::new("work-above-slots-is-charged", admission::charged)
        .shows("what a device takes is not left for slots, to the microsecond"),
    Case::new(
        "the-kernels-bandwidth-is-not-exceeded",
        admission::bandwidth,
    )
    .shows("more SCHED_DEADLINE than there is is refused, and all of it where there is none"),
    Case::new("a-refusal-leaves-nothing-behind", admission::nothing_behind)
        .shows("after a refusal, and after a run, the whole capacity is there again"),
    Case::new("grants-are-reported", admission::grants)
        .shows("who asked finds in the record the grant, by whom, and enforced; nobody else does"),
    Case::new("a-run-ends-with-its-length", endings::length)
        .shows("a program that would go on is ended when its time is over, not before, and soon"),
    Case::new("a-run-ends-when-a-body-says-so", endings::end_run)
        .shows("whoever works, sleeps, waits or is outside the machine is ended, and soon"),
    Case::new("a-run-ends-when-all-have-finished", endings::all_finished)
        .shows("a run is no longer than its last activity, and each finishes once"),
    Case::new("a-program-without-activities-ends", endings::empty).shows("nobody is left at once"),
    Case::new("marks-keep-their-order-and-numbers", records::marks_arrive)
        .shows("a burst of marks arrives whole, in order, with both arguments"),
    Case::new("events-are-sorted-and-within-the-run", records::sorted)
        .shows("all events by time, none before the start or after the end"),
    Case::new("threads-follow-their-states", records::thread_states)
        .shows("who blocks was running, is woken once, not early, and runs; a finish is the end"),
    Case::new(
        "handlers-and-calls-enter-and-exit-in-turn",
        records::handler_states,
    )
    .shows("entries and exits of each handler and deferred call alternate"),
    Case::new("signals-are-recorded", records::signals)
        .shows("every signal is an event with its semaphore's number"),
    Case::new(
        "mistake-a-processor-that-is-not-there",
        mistakes::no_such_processor,
    )
    .shows("an activity on a processor beyond the program's own is a bad program"),
    Case::new(
        "mistake-an-interrupt-level-beyond-the-highest",
        mistakes::no_such_level,
    )
    .shows("there are 32 interrupt levels"),
    Case::new(
        "mistake-a-reservation-outside-a-thread",
        mistakes::reservation_of_no_thread,
    )
    .shows("interrupt handlers, deferred calls and external activities hold no reservations"),
    Case::new("mistake-a-place-on-no-executor", mistakes::no_such_executor)
        .shows("an executor that is absent, elsewhere, or takes a reservation is a bad program"),
    Case::new(
        "mistake-a-semaphore-that-is-not-there",
        mistakes::no_such_semaphore,
    )
    .shows("waiting for it, with and without a time-out, and signalling it end the run"),
    Case::new("mistake-a-mark-without-a-name", mistakes::no_such_mark)
        .shows("recording a mark that the program does not name ends the run"),
    Case::new(
        "mistake-a-deferred-call-that-waits-for-time",
        mistakes::deferred_sleeps,
    )
    .shows("a deferred call that sleeps, or waits with a time-out, ends the run"),
    Case::new(
        "mistake-a-reservation-that-was-not-declared",
        mistakes::undeclared_reservation,
    )
    .shows("beginning or ending a reservation that an activity does not declare ends the run"),
    Case::new(
        "mistake-a-time-constraint-that-was-not-declared",
        mistakes::undeclared_constraint,
    )
    .shows("asking for a time constraint without a reservation or a declaration ends the run"),
];
