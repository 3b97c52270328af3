//! How a run ends.

use crate::stage::{CPU, DEVICE, LOW, NORMAL, counted, done_or, expect_end, of, run_to, spinner};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{ActivityId, EventKind, Host, Placement, Program, RunEnd, Span, Step};

/// A program that would go on is ended when its time is over, not before, and soon.
pub(crate) fn length(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const LENGTH: Span = Span::from_millis(40);
    let mut program = Program::new(1);
    program.add("spinner", CPU, NORMAL, spinner());
    let sleeper = counted(|_, context| Step::SleepUntil(context.now() + Span::from_millis(7)));
    program.add("sleeper", CPU, LOW, sleeper);
    let record = host.admit_and_run(program, LENGTH)?;
    expect_end(&record, RunEnd::Length)?;
    let lasted = record.end - record.start;
    ensure!(lasted >= LENGTH, "over after {lasted}");
    ensure_in_time!(
        lasted <= LENGTH + tolerance.lateness,
        "over only after {lasted}"
    );
    Ok(())
}

/// Whoever works, sleeps, waits or is outside the machine is ended, and soon.
pub(crate) fn end_run(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const HOURS: Span = Span::from_secs(100_000);
    let mut program = Program::new(1);
    let never = program.semaphore(0);
    let over = program.mark("over");
    program.add("spinner", CPU, NORMAL, spinner());
    for placement in [LOW, Placement::External] {
        let sleeper = counted(|_, context| Step::SleepUntil(context.now() + HOURS));
        program.add("sleeper", CPU, placement, sleeper);
    }
    for placement in [LOW, Placement::Deferred] {
        program.add(
            "waiter",
            CPU,
            placement,
            counted(move |_, _| Step::Wait(never)),
        );
    }
    let patient = counted(move |_, context| Step::WaitUntil(never, context.now() + HOURS));
    program.add("patient", CPU, LOW, patient);
    let device = counted(move |calls, context| {
        if calls == 0 {
            return Step::SleepUntil(context.now() + Span::from_millis(10));
        }
        context.mark(over, [0; 2]);
        Step::EndRun
    });
    program.add("device", CPU, DEVICE, device);
    let record = host.admit_and_run(program, HOURS)?;
    expect_end(&record, RunEnd::EndRun)?;
    let mut events = record.events.iter();
    let wanted = events.find(|event| event.kind == EventKind::Mark(over));
    let later = wanted.map(|wanted| record.end.saturating_since(wanted.at));
    ensure_in_time!(
        later.is_some_and(|later| later <= tolerance.lateness),
        "over {later:?} after a body wanted it"
    );
    Ok(())
}

/// A run is no longer than its last activity, and each finishes once.
pub(crate) fn all_finished(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let places = [
        Placement::Deferred,
        NORMAL,
        LOW,
        DEVICE,
        Placement::External,
    ];
    for (who, placement) in (0..).zip(places) {
        let worker = counted(move |calls, context| {
            done_or(
                calls == who,
                Step::SleepUntil(context.now() + Span::from_millis(2)),
            )
        });
        program.add("worker", CPU, placement, worker);
    }
    let activities = program.activities.len();
    let record = run_to(RunEnd::AllFinished, host, program)?;
    ensure!(
        record.usage.len() == activities,
        "{} usages",
        record.usage.len()
    );
    for who in (0..activities).map(|index| ActivityId(index as u16)) {
        let finishes = of(&record, who, EventKind::Finish).len();
        ensure!(finishes == 1, "activity {who} finished {finishes} times");
    }
    Ok(())
}

/// Nobody is left at once.
pub(crate) fn empty(host: &mut dyn Host, _: &Tolerance) -> Result {
    let record = run_to(RunEnd::AllFinished, host, Program::new(1))?;
    ensure!(record.usage.is_empty(), "{} usages", record.usage.len());
    Ok(())
}
