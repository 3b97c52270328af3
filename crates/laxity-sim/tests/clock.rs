//! The 1024 Hz clock and the study's callback that wants to run every millisecond (§6.3.1).

mod common;

use common::*;
use laxity_model::{
    Context, EventKind, Instant, InterruptLevel, Placement, Program, RunRecord, Service, Span, Step,
};
use laxity_sim::{Profile, Twin};

/// A callback every millisecond at priority 31, by absolute times: it catches up if it is late. Marks each wake-up.
fn callback(program: &mut Program) {
    let woken = program.mark("woken");
    let mut next = Instant::ZERO;
    program.add(
        "callback",
        CPU,
        thread(31),
        move |context: &mut dyn Context| {
            if !next.is_zero() {
                context.mark(woken, [0; 2]);
            }
            next += Span::from_millis(1);
            Step::SleepUntil(next)
        },
    );
}

/// The spans between wake-ups.
fn gaps(record: &RunRecord) -> Vec<Span> {
    let woken: Vec<Instant> = record
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Mark(_)))
        .map(|event| event.at)
        .collect();
    woken.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn of_30_000_wakeups_two_and_a_half_in_a_hundred_come_after_two_ticks() {
    let mut program = Program::new(1);
    callback(&mut program);
    let record = run(Profile::WIN2000_PII450, program, 30_001);
    let gaps = gaps(&record);
    assert_eq!(gaps.len(), 29_999);
    // 30 s have 30,720 ticks; the 720 that wake nobody each make one gap two ticks long.
    let long = gaps
        .iter()
        .filter(|gap| **gap > Span::from_micros(1_500))
        .count();
    assert!((719..=720).contains(&long), "{long}: not 2.4 %");
    let longest = gaps.iter().max().expect("there are gaps");
    assert!(*longest < Span::from_micros(2_040), "{longest}");
    let others = gaps.iter().filter(|gap| **gap < Span::from_micros(1_500));
    let near_a_tick = |gap: &Span| gap.as_micros().abs_diff(976) <= 10;
    assert!(others.clone().all(near_a_tick));
}

#[test]
fn a_long_handler_delays_the_callback_by_its_length_and_a_thread_below_does_not() {
    let longest = |placement| {
        let mut program = Program::new(1);
        callback(&mut program);
        let mut next = Instant::ZERO;
        let mut working = false;
        program.add("modem", CPU, placement, move |_: &mut dyn Context| {
            working = !working;
            if working {
                return Step::Charge(Service::from_micros(3_300));
            }
            next += Span::from_micros(12_500);
            Step::SleepUntil(next)
        });
        let record = run(Profile::WIN2000_PII450, program, 3_000);
        gaps(&record)
            .into_iter()
            .max()
            .expect("there are gaps")
            .as_micros()
    };
    assert!(longest(thread(24)) < 2_040);
    let interrupt = longest(Placement::Interrupt(InterruptLevel(3)));
    assert!(
        (3_300 + 976..=3_300 + 2 * 977 + 30).contains(&interrupt),
        "{interrupt}"
    );
}

/// A device's interrupts 12.5 ms apart, their handlers 20 µs long, come to every place between two ticks: a tick that comes while one runs is
/// seen when it is over.
#[test]
fn a_handler_shorter_than_a_tick_loses_none() {
    let two_ticks = |handler_us: u64| {
        let mut program = Program::new(1);
        callback(&mut program);
        let mut next = Instant::ZERO;
        let mut working = false;
        let interrupt = Placement::Interrupt(InterruptLevel(3));
        program.add("device", CPU, interrupt, move |_: &mut dyn Context| {
            working = !working;
            if working {
                return Step::Charge(Service::from_micros(handler_us));
            }
            next += Span::from_nanos(12_499_400);
            Step::SleepUntil(next)
        });
        let record = run(Profile::WIN2000_PII450, program, 10_000);
        let gaps = gaps(&record).into_iter();
        gaps.filter(|gap| *gap > Span::from_micros(1_500)).count()
    };
    // 239 are of the clock itself. Of 800 handlers of 300 us some 240 meet a tick; that moves a release past one now and then.
    for handler_us in [1, 300] {
        let seen = two_ticks(handler_us);
        assert!((236..=280).contains(&seen), "{handler_us} us: {seen}");
    }
}

#[test]
fn devices_are_exact_and_threads_wait_for_the_tick() {
    let mut program = Program::new(1);
    let at = Instant::from_micros(10_000);
    let device = script(&[Step::SleepUntil(at)]);
    program.add(
        "device",
        CPU,
        Placement::Interrupt(InterruptLevel(3)),
        device,
    );
    program.add("thread", CPU, thread(31), script(&[Step::SleepUntil(at)]));
    let record = run(Profile::WIN2000_PII450, program, 100);
    let entered = occurrences(&record, EventKind::InterruptEnter);
    assert_eq!(entered, [(0, 0), (10_000, 0)]);
    // The eleventh tick; when it was meant to wake is in the event.
    assert_eq!(occurrences(&record, EventKind::Wake), [(10_742, 1)]);
    let wake = record
        .events
        .iter()
        .find(|event| event.kind == EventKind::Wake);
    assert_eq!(wake.map(|event| event.args[0]), Some(at.as_nanos()));
}

#[test]
fn ticks_take_their_share_of_a_busy_processor() {
    let mut program = Program::new(1);
    program.add("spinner", CPU, thread(8), spinner());
    let record = Twin::new(Profile::WIN2000_PII450);
    let record = laxity_model::Host::admit_and_run(&mut { record }, program, Span::from_secs(1));
    let service = record.expect("the program is right").usage[0].service;
    // 1023 ticks of 2 µs within the second, and the switch at its start.
    assert_eq!(
        service,
        Service::from_nanos(1_000_000_000 - 1_023 * 2_000 - 4_000)
    );
}

/// The longest time from the wake-up of a thread, which a device signals every 12.5 ms, to the end of its work, beside a spinner of priority 8.
fn longest_response(level: u8) -> Span {
    let mut program = Program::new(1);
    let block = program.semaphore(0);
    let mut next = Instant::ZERO;
    let device = move |context: &mut dyn Context| {
        if !next.is_zero() {
            context.signal(block);
        }
        next += Span::from_micros(12_500);
        Step::SleepUntil(next)
    };
    let interrupt = Placement::Interrupt(InterruptLevel(3));
    program.add("device", CPU, interrupt, device);
    let mut working = false;
    let modem = move |_: &mut dyn Context| {
        working = !working;
        if working {
            Step::Wait(block)
        } else {
            Step::Charge(Service::from_micros(1_840))
        }
    };
    let modem = program.add("modem", CPU, thread(level), modem);
    program.add("spinner", CPU, thread(8), spinner());
    let record = run(Profile::WIN2000_PII450, program, 3_000);
    let own = record.events.iter().filter(|event| event.activity == modem);
    let (mut woken, mut longest) = (Instant::ZERO, Span::ZERO);
    for event in own {
        match event.kind {
            EventKind::Wake => woken = event.at,
            EventKind::Block => longest = longest.max(event.at - woken),
            _ => {}
        }
    }
    longest
}

/// Figure 7: at priority 8, beside a spinner, 512 samples pile up, which takes 71 ms at 7.2 kHz. At priority 24 they do not.
#[test]
fn a_normal_thread_waits_longer_than_a_ring_lasts_and_a_real_time_thread_does_not() {
    assert!(longest_response(8) > Span::from_micros(71_112));
    assert!(longest_response(24) < Span::from_millis(2));
}
