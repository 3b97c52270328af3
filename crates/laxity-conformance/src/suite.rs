//! The whole suite, by subject.

use laxity_model::Outside;

use crate::stage::{HIGH, NORMAL, ORDINARY};
use crate::{
    Case, above, admission, case, classes, commands, deadline, endings, executors, interrupts,
    mapped, mistakes, modules, order, ports, raises, records, requests, reservations, semaphores,
    service, threads, timers, upcalls,
};

pub(crate) const CASES: &[Case] = &[
    case("a-woken-higher-priority-preempts-at-once").by(threads::higher_preempts),
    case("a-timer-preempts-a-lower-priority").by(threads::timer_preempts),
    case("a-lower-priority-waits").by(threads::lower_waits),
    case("all-real-time-priorities-in-order").by(threads::all_in_order),
    case("equals-run-in-the-order-they-were-woken").by(threads::equals_in_order),
    case("yield-lets-every-equal-go-once").by(threads::yield_takes_turns),
    case("yield-does-not-help-a-lower-priority").by(threads::yield_alone),
    case("a-preempted-thread-resumes-before-its-equals").by(threads::preempted_resumes),
    case("an-interrupt-comes-before-every-thread").by(interrupts::interrupt_above_thread),
    case("an-interrupt-interrupts-a-deferred-call").by(interrupts::interrupt_above_deferred),
    case("nothing-below-interrupts-a-handler").by(interrupts::handler_to_completion),
    case("a-deferred-call-runs-to-its-end").by(interrupts::deferred_to_completion),
    case("deferred-calls-come-before-every-thread").by(interrupts::deferred_above_thread),
    case("deferred-calls-run-in-the-order-they-were-queued").by(interrupts::deferred_in_order),
    case("a-deferred-call-serves-all-that-was-counted").by(interrupts::deferred_counts),
    case("a-device-raises-its-line-at-its-instants").by(interrupts::device_instants),
    case("block-and-wake-alternate").by(semaphores::ping_pong),
    case("block-and-wake-alternate-across-processors")
        .on(2)
        .by(semaphores::ping_pong_across),
    case("a-semaphore-begins-with-its-count").by(semaphores::initial_count),
    case("signals-without-a-waiter-are-kept").by(semaphores::counts_are_kept),
    case("each-signal-wakes-one-waiter").by(semaphores::one_signal_one_waiter),
    case("a-time-out-takes-nothing").by(semaphores::timeout_takes_nothing),
    case("a-port-keeps-order-payload-and-instant").by(ports::order),
    case("a-full-port-drops-and-counts").by(ports::overflow),
    case("a-port-is-fed-from-outside-the-machine").by(ports::from_outside),
    case("a-port-is-emptied-from-outside-the-machine").by(ports::to_outside),
    case("what-several-put-is-taken-once")
        .on(2)
        .by(ports::several),
    case("a-time-out-brings-no-arrival").by(ports::time_out),
    case("a-doorbell-rings-for-any-port").by(ports::doorbell),
    case("an-executor-serves-first-come-first").by(executors::first_come_first_served),
    case("an-executor-serves-the-earliest-deadline").by(executors::earliest_deadline_first),
    case("an-executor-serves-the-highest-rate").by(executors::rate_monotonic),
    case("an-executor-serves-in-three-classes").by(executors::in_three_classes),
    case("what-is-left-of-a-job-goes-on-in-its-turn").by(executors::goes_on_in_its_turn),
    case("a-job-yields-to-a-more-urgent-release").by(executors::yields_to_an_instant),
    case("a-job-yields-to-a-more-urgent-arrival").by(executors::yields_to_an_arrival),
    case("a-job-is-not-told-to-yield-to-the-less-urgent").by(executors::does_not_yield),
    case("a-job-that-does-not-look-is-not-interrupted").by(executors::is_not_interrupted),
    case("handlers-are-made-and-ended-while-others-run").by(executors::made_and_ended),
    case("a-handler-waits-for-a-port-or-an-instant").by(executors::port_or_instant),
    case("what-an-executor-s-policy-does-not-admit-is-refused").by(executors::refused),
    case("an-executor-has-what-its-reservation-gives").by(executors::in_reservation),
    case("handlers-are-recorded-as-activities").by(executors::recorded),
    case("an-upcall-looks-after-each-quantum").by(upcalls::looks_after_each_quantum),
    case("an-upcall-goes-on-in-its-turn").by(upcalls::goes_on_in_its_turn),
    case("an-upcall-is-told-of-its-overrun").by(upcalls::overrun),
    case("an-upcall-pays-for-what-it-took").by(upcalls::charged),
    case("an-upcall-makes-up-for-what-it-took").by(upcalls::made_up),
    case("the-end-of-a-call-releases-who-comes-after-it").by(upcalls::chain),
    case("upcalls-of-one-first-release-begin-together").by(upcalls::begin_together),
    case("upcalls-take-turns-in-one-order").by(order::upcalls_take_turns),
    case("upcalls-come-and-go-as-they-are-told").by(commands::as_told),
    case("the-end-of-a-call-releases-the-next-of-its-chain").by(commands::chained),
    case("an-overrun-is-counted-and-has-its-consequence").by(commands::overrun),
    case("arrivals-release-no-sooner-than-their-distance").by(commands::distant),
    case("mapped-streams-have-what-was-asked-for").by(mapped::streams_have_what_was_asked_for),
    case("a-raised-thread-comes-first").by(raises::at_once),
    case("a-raise-is-over-with-its-turn").by(raises::over),
    case("a-raise-may-be-to-less").by(raises::lowered),
    case("nobody-is-raised-above-what-was-declared").by(raises::no_higher),
    case("a-raise-waits-for-its-instant").by(raises::at_an_instant),
    case("a-thread-raises-itself").by(raises::by_itself),
    case("who-may-be-raised-counts-as-if-he-were").by(raises::counts),
    case("a-raised-job-is-due-sooner").by(raises::sooner),
    case("a-job-yields-to-one-that-is-raised").by(raises::sooner_at_an_instant),
    case("what-comes-early-is-critical-at-its-time").by(modules::critical_at_its_time),
    case("what-comes-early-to-a-handler-is-due-at-its-time").by(modules::due_at_its_time),
    case("of-a-group-the-least-laxity-goes-first").by(modules::least_laxity_first),
    case("of-a-group-on-an-executor-the-least-laxity-goes-first")
        .by(modules::least_laxity_first_on_an_executor),
    case("periodic-releases-keep-their-grid").by(timers::periodic),
    case("an-overrun-loses-no-release").by(timers::overrun),
    case("sleeping-into-the-past-returns-at-once").by(timers::past),
    case("sleepers-wake-in-the-order-of-their-instants").by(timers::order_of_instants),
    case("sleepers-of-one-instant-run-by-priority").by(timers::same_instant),
    case("a-wait-ends-when-time-is-up").by(timers::times_out),
    case("a-signal-ends-a-timed-wait").by(timers::does_not_time_out),
    case("a-count-beats-a-time-that-is-over").by(timers::past_time_out),
    case("a-burn-receives-what-it-asks-for").by(service::burn),
    case("a-body-is-told-its-service").by(service::told_service),
    case("equals-share-alike").by(service::equal_shares),
    case("nobody-receives-more-than-there-is").by(service::totals),
    case("what-is-external-takes-no-processor").by(service::external),
    case("processors-are-independent")
        .on(2)
        .by(service::independent),
    // 2 ms in every window of 8 ms beside four spinners, and a share outside.
    case("reservation-2-of-8-timesharing")
        .by(|host, tolerance| reservations::alone(host, tolerance, [2_000, 8_000], ORDINARY)),
    // 2 ms in every window of 8 ms beside four spinners, and nothing outside.
    case("reservation-2-of-8-confined").by(|host, tolerance| {
        reservations::alone(host, tolerance, [2_000, 8_000], Outside::Confined)
    }),
    // 1 ms in every window of 10 ms.
    case("reservation-1-of-10-confined").by(|host, tolerance| {
        reservations::alone(host, tolerance, [1_000, 10_000], Outside::Confined)
    }),
    // A period that no power of two divides.
    case("reservation-2-of-13-timesharing")
        .by(|host, tolerance| reservations::alone(host, tolerance, [2_000, 13_000], ORDINARY)),
    // 0.1 ms in every window of 2.5 ms: slots far below a clock tick.
    case("reservation-of-a-tenth-of-a-millisecond")
        .by(|host, tolerance| reservations::alone(host, tolerance, [100, 2_500], ORDINARY)),
    // A spinner of a real-time priority takes nothing from a slot.
    case("reservation-above-a-rogue")
        .by(|host, tolerance| reservations::beside_a_rogue(host, tolerance, NORMAL)),
    // A real-time holder is an ordinary thread outside its slots, if it asked for that.
    case("a-holder-has-its-priority-outside-its-slots")
        .by(|host, tolerance| reservations::beside_a_rogue(host, tolerance, HIGH)),
    case("two-reservations-at-once").by(reservations::two_at_once),
    case("a-confined-holder-has-its-slots-and-nothing-else").by(reservations::confined_is_confined),
    case("a-timesharing-holder-may-use-an-idle-processor").by(reservations::timesharing_shares),
    case("unused-time-is-returned").by(reservations::unused_is_returned),
    case("a-reservation-begins-and-ends-on-request").by(reservations::on_request),
    case("slots-keep-the-tables-grid").by(reservations::grid),
    case("work-above-slots-is-made-up-for").by(above::made_up),
    case("two-devices-have-two-holders").by(above::two_devices),
    // 1 ms of 10 becomes 2 of 8: each is kept in its time, and another's across it.
    case("a-reservation-changes-while-it-runs").by(|host, tolerance| {
        requests::changes(host, tolerance, [[1_000, 10_000], [2_000, 8_000]])
    }),
    // 0.1 ms of 2.5 becomes 2 of 8.
    case("a-sub-millisecond-reservation-grows")
        .by(|host, tolerance| requests::changes(host, tolerance, [[100, 2_500], [2_000, 8_000]])),
    case("a-change-that-does-not-fit-changes-nothing").by(requests::refused_change),
    case("every-window-across-a-mode-change-is-kept").by(requests::across_changes),
    // A thread beside spinners and a reservation has 3 ms within 12 whenever granted.
    case("a-time-constraint-is-met")
        .by(|host, tolerance| requests::constrained(host, tolerance, None, [3_000, 12_000])),
    // The confined holder of 2 ms in 8 has 4 ms within 8: its slots, and nobody's time.
    case("a-time-constraint-inside-a-reservation-is-met").by(|host, tolerance| {
        requests::constrained(host, tolerance, Some([2_000, 8_000]), [4_000, 8_000])
    }),
    case("what-was-granted-is-there-whoever-comes-before-the-answer")
        .by(requests::constrained_beside_a_rogue),
    case("a-time-constraint-that-does-not-fit-changes-nothing").by(requests::refused_constraints),
    case("what-a-time-constraint-does-not-need-is-given-back").by(requests::given_back),
    case("a-deadline-reservation-has-its-service").by(deadline::service),
    case("a-change-leaves-room-for-what-begins-later").by(deadline::change_beside_later),
    case("nice-values-weigh-as-the-kernel-s-table").by(classes::nice),
    case("equals-under-sched-rr-take-turns").by(classes::round_robin),
    case("more-than-a-processor-is-refused").by(admission::too_much),
    case("what-fits-exactly-is-accepted").by(admission::exactly),
    case("work-above-slots-is-charged").by(admission::charged),
    case("the-kernels-bandwidth-is-not-exceeded").by(admission::bandwidth),
    case("a-refusal-leaves-nothing-behind").by(admission::nothing_behind),
    case("grants-are-reported").by(admission::grants),
    case("a-run-ends-with-its-length").by(endings::length),
    case("a-run-ends-when-a-body-says-so").by(endings::end_run),
    case("a-run-ends-when-all-have-finished").by(endings::all_finished),
    case("a-program-without-activities-ends").by(endings::empty),
    case("marks-keep-their-order-and-numbers").by(records::marks_arrive),
    case("events-are-sorted-and-within-the-run").by(records::sorted),
    case("threads-follow-their-states").by(records::thread_states),
    case("handlers-and-calls-enter-and-exit-in-turn").by(records::handler_states),
    case("signals-are-recorded").by(records::signals),
    case("where-activities-may-run-is-told")
        .on(2)
        .by(records::whereabouts),
    case("mistake-a-processor-that-is-not-there").by(mistakes::no_such_processor),
    case("mistake-an-interrupt-level-beyond-the-highest").by(mistakes::no_such_level),
    case("mistake-a-reservation-outside-a-thread").by(mistakes::reservation_of_no_thread),
    case("mistake-a-place-on-no-executor").by(mistakes::no_such_executor),
    case("mistake-a-semaphore-that-is-not-there").by(mistakes::no_such_semaphore),
    case("mistake-a-mark-without-a-name").by(mistakes::no_such_mark),
    case("mistake-a-raise-that-was-not-declared").by(mistakes::undeclared_raise),
    case("mistake-a-raise-of-what-cannot-be-raised").by(mistakes::no_such_raise),
    case("mistake-a-deferred-call-that-waits-for-time").by(mistakes::deferred_sleeps),
    case("mistake-a-reservation-that-was-not-declared").by(mistakes::undeclared_reservation),
    case("mistake-a-time-constraint-that-was-not-declared").by(mistakes::undeclared_constraint),
];
