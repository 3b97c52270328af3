//! Processor time: who receives it, and that it is counted.

use crate::stage::{CPU, LOW, NORMAL, Stage, TOP, done_or, of, run_to, spinner};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{EventKind, Host, Placement, ProcessorId, Program, RunEnd, Service, Span, Step};

/// Work takes its service, however long a competitor makes it wait.
pub(crate) fn burn(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let asked = Service::from_millis(30);
    let burner = super::stage::counted(move |calls, _| {
        if calls < 15 {
            Step::Burn(asked / 15)
        } else {
            Step::EndRun
        }
    });
    let who = program.add("burner", CPU, NORMAL, burner);
    program.add("competitor", CPU, NORMAL, spinner());
    let record = run_to(RunEnd::EndRun, host, program)?;
    let received = record.usage[who.index()].service;
    let most = asked + tolerance.slack(asked);
    ensure_in_time!(
        received >= asked && received <= most,
        "{received} of {asked} asked for"
    );
    Ok(())
}

/// What a body is told grows by what it burns, and ends as what the record says.
pub(crate) fn told_service(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const PIECE: Service = Service::from_millis(1);
    const PIECES: u64 = 20;
    let mut program = Program::new(1);
    let told = program.mark("service");
    let body = super::stage::counted(move |calls, context| {
        context.mark(told, [context.service().as_nanos(), 0]);
        done_or(calls == PIECES, Step::Burn(PIECE))
    });
    let who = program.add("burner", CPU, LOW, body);
    let record = host.admit_and_run(program, super::stage::NEVER)?;
    let readings = super::stage::marks(&record, told);
    ensure!(
        readings.len() as u64 == PIECES + 1,
        "{} readings",
        readings.len()
    );
    for pair in readings.windows(2) {
        let grown = Service::from_nanos(pair[1][0].saturating_sub(pair[0][0]));
        ensure_in_time!(grown >= PIECE, "{PIECE} burnt, {grown} told");
    }
    let last = Service::from_nanos(readings[PIECES as usize][0]);
    let used = record.usage[who.index()].service;
    let apart = used.saturating_sub(last).max(last.saturating_sub(used));
    ensure_in_time!(
        apart <= tolerance.slack(used),
        "told {last}, recorded {used}"
    );
    Ok(())
}

/// Spinners of one ordinary priority receive the same, within a quarter.
pub(crate) fn equal_shares(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(1);
    for _ in 0..3 {
        program.add("spinner", CPU, NORMAL, spinner());
    }
    let record = host.admit_and_run(program, Span::from_millis(1_800))?;
    let shares = record.usage.iter().map(|usage| usage.service);
    let (least, most) = (shares.clone().min(), shares.max());
    let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
    ensure_in_time!(
        !least.is_zero() && most <= least + least / 4,
        "from {least} to {most}"
    );
    Ok(())
}

/// The service of all activities fits into the run's length.
pub(crate) fn totals(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    for level in [7, 8, 8, 9, 20] {
        let placement = Placement::Thread(super::stage::level(level));
        let body = super::stage::counted(move |calls, context| {
            if level == 20 && calls % 2 == 1 {
                return Step::SleepUntil(context.now() + Span::from_millis(1));
            }
            Step::Burn(Service::from_micros(300))
        });
        program.add("worker", CPU, placement, body);
    }
    let record = host.admit_and_run(program, Span::from_millis(200))?;
    let all: Service = record.usage.iter().map(|usage| usage.service).sum();
    let there_is = (record.end - record.start).as_full_service();
    ensure_in_time!(
        all <= there_is + tolerance.slack(there_is),
        "{all} received of {there_is}"
    );
    ensure_in_time!(all > Service::ZERO, "nobody received anything");
    Ok(())
}

/// Something begins when a spinner of the highest priority has begun, and must be done before that ends.
fn beside_a_spinner(
    host: &mut dyn Host,
    processors: u16,
    processor: ProcessorId,
    placement: Placement,
) -> Result {
    let mut stage = Stage::new(processors);
    let (story, spinner, other) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(TOP, spinner, move |calls, context| {
        story.tell(context, 4 * calls.min(1));
        if calls > 0 {
            return Step::Finish;
        }
        context.signal(other);
        Step::Burn(Service::from_millis(60))
    });
    let who = stage.actor_on(processor, placement, other, move |calls, context| {
        story.tell(context, calls + 1);
        match calls {
            0 => Step::Burn(Service::from_micros(500)),
            1 => Step::SleepUntil(context.now() + Span::from_millis(2)),
            _ => Step::Finish,
        }
    });
    let play = stage.play(host, &[spinner])?;
    play.expect_in_time(&[0, 1, 2, 3, 4])?;
    let finishes = of(&play.record, who, EventKind::Finish).len();
    ensure!(finishes == 1, "finished {finishes} times");
    Ok(())
}

/// An external activity works while the highest priority has the processor.
pub(crate) fn external(host: &mut dyn Host, _: &Tolerance) -> Result {
    beside_a_spinner(host, 1, CPU, Placement::External)
}

/// A spinner of the highest priority on one processor delays nobody on another.
pub(crate) fn independent(host: &mut dyn Host, _: &Tolerance) -> Result {
    beside_a_spinner(host, 2, ProcessorId(1), LOW)
}
