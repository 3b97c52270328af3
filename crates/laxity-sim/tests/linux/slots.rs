//! Slots in the twin of a Linux machine: what their holders have for themselves, whatever switching costs there.

use super::*;

/// A virtual machine, times so many hundredths: every cost and how far it varies.
fn machine(percent: u64) -> Machine {
    let ns = |points: &[(u32, u64)]| {
        let points = points
            .iter()
            .map(|(ppm, ns)| (*ppm, Span::from_nanos(*ns * percent / 100)));
        Quantiles::new(points.collect()).expect("a distribution")
    };
    let mut machine = Machine::without_costs(250).with([
        (
            Figure::Tick,
            ns(&[(0, 12_000), (500_000, 15_000), (1_000_000, 24_000)]),
        ),
        (Figure::ContextSwitch, ns(&[(0, 500), (1_000_000, 700)])),
        (
            Figure::Wakeup,
            ns(&[
                (0, 11_000),
                (500_000, 14_000),
                (990_000, 18_000),
                (1_000_000, 25_000),
            ]),
        ),
        (
            Figure::WakeupIdle,
            ns(&[(0, 12_000), (500_000, 20_000), (1_000_000, 30_000)]),
        ),
        (Figure::Preemption, ns(&[(0, 10_000), (1_000_000, 10_000)])),
        (Figure::Handover, ns(&[(0, 1_500), (1_000_000, 2_000)])),
        (Figure::Block, ns(&[(0, 1_000)])),
        (Figure::PolicyChange, ns(&[(0, 1_000)])),
        (Figure::Timer, ns(&[(0, 1_000)])),
        (Figure::CacheReload, ns(&[(0, 0), (1_000_000, 1_000)])),
        (Figure::SlotBegin, ns(&[(0, 45_000), (1_000_000, 52_000)])),
        (Figure::SlotEdge, ns(&[(0, 17_000), (1_000_000, 25_000)])),
        (
            Figure::SlotEntering,
            ns(&[
                (0, 8_500),
                (500_000, 9_500),
                (950_000, 10_400),
                (1_000_000, 13_000),
            ]),
        ),
        (
            Figure::SlotLeaving,
            ns(&[(0, 1_500), (500_000, 2_000), (1_000_000, 2_500)]),
        ),
    ]);
    machine.slot_lead = us(40);
    machine
}

/// So much of the work is done at each mark.
const PIECE: Span = Span::from_micros(1);

/// The share of undisturbed periods, in parts per million, in which the holder of such a reservation does its work to within 5 %, beside spinners and
/// a witness; and how many periods these are.
fn kept_ppm(
    twin: &Twin,
    [service_us, period_us]: [u64; 2],
    (after, seconds): (Span, u64),
) -> (usize, usize) {
    let mut program = Program::new(1);
    let done = program.mark("done");
    let body = move |context: &mut dyn Context| {
        context.mark(done, [0, 0]);
        Step::Charge(PIECE.as_full_service())
    };
    let holder = reserved(&mut program, [service_us, period_us], Enforcer::Slots, body);
    for _ in 0..4 {
        program.add("spinner", CPU, thread(8), spinner());
    }
    let twin = twin.clone().watched_by(Witness::new(ProcessorId(0)));
    let record = twin
        .clone()
        .admit_and_run(program, Span::from_secs(seconds))
        .expect("the program is right");
    let all = record.events.iter();
    let of = |kind| {
        all.clone()
            .filter(move |event| event.kind == kind && event.activity == holder)
    };
    let first = of(EventKind::SlotBegin).next().expect("it has slots").args[0];
    let marks: Vec<Instant> = of(EventKind::Mark(done)).map(|event| event.at).collect();
    let until = |at: Instant| marks.partition_point(|mark| *mark < at) as u64;
    let (service, period) = (us(service_us), us(period_us));
    let mut from = Instant::from_nanos(first) + period - (period - service) / 2;
    let (mut kept, mut judged) = (0, 0);
    while from + period < record.end {
        let to = from + period;
        let is_disturbed = record
            .disturbances
            .iter()
            .any(|halt| halt.overlaps(from, to));
        if !is_disturbed && from >= record.start + after {
            let did = PIECE * (until(to) - until(from));
            judged += 1;
            kept +=
                usize::from(did.as_nanos().abs_diff(service.as_nanos()) * 20 <= service.as_nanos());
        }
        from = to;
    }
    (kept * 1_000_000 / judged.max(1), judged)
}

/// Slots of a millisecond and more,
const LONG: [[u64; 2]; 4] = [
    [1_000, 10_000],
    [2_000, 8_000],
    [2_000, 13_000],
    [5_000, 20_000],
];
/// and shorter ones.
const SHORT: [[u64; 2]; 2] = [[100, 2_500], [300, 1_000]];

fn expect_kept(twin: &Twin, reservations: &[[u64; 2]], after: Span, what: &str) {
    const SECONDS: u64 = 4;
    let mut wrong = Vec::new();
    for reservation in reservations.iter().copied() {
        let (kept, judged) = kept_ppm(twin, reservation, (after, SECONDS));
        let periods = SECONDS * 1_000_000 / reservation[1];
        if kept < 980_000 || (judged as u64) < periods / 2 {
            wrong.push(format!(
                "{reservation:?} us: {kept} ppm of {judged} periods"
            ));
        }
    }
    assert!(wrong.is_empty(), "{what}: {}", wrong.join("; "));
}

#[test]
fn slots_are_right_whatever_switching_costs() {
    for percent in [50, 100, 200, 400] {
        let (twin, what) = (Twin::linux(&machine(percent), 3), format!("{percent} %"));
        expect_kept(&twin, &LONG, Span::ZERO, &what);
        // Four times as slow, the two edges of a slot vary by more than 5 % of a short one.
        if percent < 400 {
            expect_kept(&twin, &SHORT, Span::ZERO, &what);
        }
    }
}

/// From what was measured to one and a half of it, then to a half of it, and back.
#[test]
fn slots_stay_right_while_what_switching_costs_moves() {
    let mut twin = Twin::linux(&machine(100), 5);
    for step in 0..80 {
        let away = (20 - u64::abs_diff(step % 40, 20)) * 5 / 2;
        let percent = if step < 40 { 100 + away } else { 100 - away };
        twin = twin.turning_into(&machine(percent), Span::from_millis(50) * step);
    }
    for reservations in [&LONG[..], &SHORT] {
        expect_kept(&twin, reservations, Span::ZERO, "its costs move");
    }
}

/// What was measured is wrong from the first moment on; in half a second it is found out.
#[test]
fn slots_become_right_where_what_was_measured_is_wrong() {
    for percent in [50, 200] {
        let twin = Twin::linux(&machine(100), 7).turning_into(&machine(percent), Span::ZERO);
        for reservations in [&LONG[..], &SHORT] {
            let what = format!("{percent} % of what was measured");
            expect_kept(&twin, reservations, Span::from_millis(500), &what);
        }
    }
}
