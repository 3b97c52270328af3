//! Devices above slots: what their handlers take is charged and made up for, and what they wake is served by its own reservation.

use crate::meter::{expect_kept, expect_undisturbed, meter, readings, received_by_period};
use crate::reservations::{holder, run};
use crate::stage::{CPU, DEVICE, NORMAL, counted, spinner};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::request::Work;
use laxity_model::{
    Context, Host, Instant, Mark, Outside, Program, Reservation, RunRecord, Service, Span, Step,
};

/// A handler that works at every multiple of the period.
fn works_every(work: Work) -> impl FnMut(u64, &mut dyn Context) -> Step + Send + 'static {
    let mut next = None;
    move |calls, context| {
        if calls % 2 == 1 {
            return Step::Burn(work.service);
        }
        let begin = next.unwrap_or(context.now()) + work.period;
        next = Some(begin);
        Step::SleepUntil(begin)
    }
}

/// A device takes a bit of every slot, and its holder has X, or a known bit less.
pub(crate) fn made_up(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const NUMBERS: [u64; 2] = [2_000, 8_000];
    const PIECE: Service = Service::from_micros(20);
    const PERIODS: u64 = 60;
    /// Two or three times in a slot: more than a twentieth of it, and with what three switches take still less than the eighth that is made up
    /// at most.
    const ABOVE: Work = Work {
        service: Service::from_micros(62),
        period: Span::from_millis(1),
    };
    let mut program = Program::new(1);
    let mark = program.mark("service");
    let body = meter(mark, PIECE);
    let (_, reservation) = holder(&mut program, NUMBERS, Outside::Confined, true, body)?;
    let device = program.add("device", CPU, DEVICE, counted(works_every(ABOVE)));
    program.work.push((device, ABOVE));
    let below = program.add("spinner", CPU, NORMAL, spinner());
    let record = run(host, program, reservation.period() * PERIODS)?;
    // Who has a reservation waits for none of it.
    let above: Vec<&[Work]> = record.usage.iter().map(|usage| &usage.above[..]).collect();
    ensure!(
        above[below.index()] == [ABOVE] && above.concat().len() == 1,
        "what goes first is {above:?}"
    );
    let undisturbed = received_by_period(&record, &readings(&record, mark), reservation);
    expect_undisturbed(PERIODS as usize - 1, undisturbed.len(), tolerance)?;
    let promised = reservation.service();
    let (less, more) = if tolerance.makes_up {
        (promised / 20, promised / 20 + tolerance.unseen(promised))
    } else {
        (ABOVE.service * 3 + tolerance.slack(promised), Service::ZERO)
    };
    let range = promised.saturating_sub(less + PIECE)..=promised + more + PIECE;
    let right = undisturbed.iter().filter(|(_, got)| range.contains(got));
    let right = right.count();
    let received = undisturbed.iter().map(|(_, received)| *received);
    ensure_in_time!(
        tolerance.is_kept(right, undisturbed.len()),
        "{reservation}: as it should be in {right} of {} undisturbed periods; from {} to {}",
        undisturbed.len(),
        received.clone().min().unwrap_or_default(),
        received.max().unwrap_or_default()
    );
    Ok(())
}

/// A device that wakes a holder once a period, for nine tenths of its service; the marks of arrivals and of ends.
fn device_and_holder(program: &mut Program, numbers: [u64; 2]) -> Result<(Reservation, [Mark; 2])> {
    let arrived = program.semaphore(0);
    let told = [program.mark("arrival"), program.mark("done")];
    let body = counted(move |calls, context| match calls % 2 {
        0 => {
            if calls > 0 {
                context.mark(told[1], [calls / 2, 0]);
            }
            Step::Wait(arrived)
        }
        _ => Step::Burn(Service::from_micros(numbers[0] / 10 * 9)),
    });
    let (_, reservation) = holder(program, numbers, Outside::Confined, true, body)?;
    let mut next = None;
    let device = counted(move |calls, context: &mut dyn Context| {
        if calls > 0 {
            context.mark(told[0], [calls, 0]);
            context.signal(arrived);
        }
        let begin = next.unwrap_or(context.now()) + reservation.period();
        next = Some(begin);
        Step::SleepUntil(begin)
    });
    program.add("device", CPU, DEVICE, device);
    Ok((reservation, told))
}

/// Two devices each wake a holder, which is done within its own period.
pub(crate) fn two_devices(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let first = device_and_holder(&mut program, [2_000, 10_000])?;
    let second = device_and_holder(&mut program, [1_000, 4_000])?;
    program.add("spinner", CPU, NORMAL, spinner());
    let record = run(host, program, Span::from_millis(400))?;
    for (reservation, told) in [first, second] {
        expect_in_time(&record, reservation, told, tolerance)?;
    }
    Ok(())
}

/// Whether what arrives is done within the reservation's period, each time that nothing disturbed.
fn expect_in_time(
    record: &RunRecord,
    reservation: Reservation,
    [arrival, done]: [Mark; 2],
    tolerance: &Tolerance,
) -> Result {
    let period = reservation.period();
    let ends: Vec<Instant> = record.marked(done).map(|event| event.at).collect();
    let arrivals = record.marked(arrival).map(|event| event.at);
    let jobs: Vec<(usize, Instant)> = arrivals.enumerate().collect();
    let came = jobs.len();
    ensure_in_time!(
        came as u64 + 3 >= (record.end - record.start) / period,
        "the device came {came} times"
    );
    let is_over = |(_, at): &(usize, Instant)| *at + period <= record.end;
    let jobs: Vec<_> = jobs.into_iter().filter(is_over).collect();
    // What is late from the period before counts too.
    let window = |(_, at): &(usize, Instant)| (at.saturating_sub(period), *at + period);
    let is_in_time =
        |(job, at): &(usize, Instant)| ends.get(*job).is_some_and(|end| *end <= *at + period);
    let what = format!("jobs within {reservation}");
    expect_kept(record, &jobs, window, is_in_time, tolerance, &what)
}
