//! How a run ends.

use crate::stage::{CPU, DEVICE, LOW, NORMAL, counted, done_or, expect_end, of, run_to, spinner};
use crate::{Failure, Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{
    ActivityId, Event, EventKind, Host, Mark, Placement, Program, RunEnd, RunRecord, Span, Step,
};

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

/// Whoever works, sleeps, waits or is outside the machine is ended, and soon; and who has ended, or waits for what never comes, does nothing any more.
pub(crate) fn end_run(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const HOURS: Span = Span::from_secs(100_000);
    let mut program = Program::new(1);
    let never = program.semaphore(0);
    let over = program.mark("over");
    program.add("spinner", CPU, NORMAL, spinner());
    let mut waiting = Vec::new();
    for placement in [LOW, Placement::External] {
        let sleeper = counted(|_, context| Step::SleepUntil(context.now() + HOURS));
        waiting.push(program.add("sleeper", CPU, placement, sleeper));
    }
    for placement in [LOW, Placement::Deferred] {
        let waiter = counted(move |_, _| Step::Wait(never));
        waiting.push(program.add("waiter", CPU, placement, waiter));
    }
    let patient = counted(move |_, context| Step::WaitUntil(never, context.now() + HOURS));
    waiting.push(program.add("patient", CPU, LOW, patient));
    let device = counted(move |calls, context| {
        if calls == 0 {
            return Step::SleepUntil(context.now() + Span::from_millis(10));
        }
        context.mark(over, [0; 2]);
        Step::EndRun
    });
    let device = program.add("device", CPU, DEVICE, device);
    let record = host.admit_and_run(program, HOURS)?;
    expect_end(&record, RunEnd::EndRun)?;
    let begins_to_wait =
        |event: &Event| matches!(event.kind, EventKind::Block | EventKind::DeferredExit);
    for who in waiting {
        nothing_after(&record, who, begins_to_wait)?;
    }
    nothing_after(&record, device, |event| event.kind == EventKind::Mark(over))?;
    ends_when_wanted(&record, over, tolerance)
}

/// Nothing of an activity comes after the event that is its last.
fn nothing_after(record: &RunRecord, who: ActivityId, is_last: impl Fn(&Event) -> bool) -> Result {
    let own = record.events.iter().filter(|event| event.activity == who);
    let after = own.skip_while(|event| !is_last(event)).nth(1);
    ensure!(after.is_none(), "activity {who} went on: {after:?}");
    Ok(())
}

/// The run was over when a body had left this mark and wanted that, and whoever was under way then soon saw it.
fn ends_when_wanted(record: &RunRecord, over: Mark, tolerance: &Tolerance) -> Result {
    let mut events = record.events.iter();
    let wanted = events.find(|event| event.kind == EventKind::Mark(over));
    let Some(wanted) = wanted.map(|event| event.at) else {
        return Err(Failure::Wrong("nobody wanted the end".to_owned()));
    };
    ensure!(
        record.end >= wanted,
        "over {} before a body wanted it",
        wanted - record.end
    );
    let later = record.end - wanted;
    ensure_in_time!(
        later <= tolerance.lateness,
        "over {later} after a body wanted it"
    );
    let own = |event: &&Event| event.activity.index() < record.usage.len();
    let last = record.events.iter().rfind(own);
    ensure_in_time!(
        last.is_none_or(|last| last.at <= record.end + tolerance.lateness),
        "not over at {:?}: {last:?}",
        record.end
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
        // A handler returns once it has finished.
        let returns = |kind| matches!(kind, EventKind::InterruptExit | EventKind::DeferredExit);
        let is_last = |event: &Event| event.kind == EventKind::Finish;
        let mut without_returns = record.clone();
        without_returns.events.retain(|event| !returns(event.kind));
        nothing_after(&without_returns, who, is_last)?;
    }
    Ok(())
}

/// Nobody is left at once.
pub(crate) fn empty(host: &mut dyn Host, _: &Tolerance) -> Result {
    let record = run_to(RunEnd::AllFinished, host, Program::new(1))?;
    ensure!(record.usage.is_empty(), "{} usages", record.usage.len());
    Ok(())
}
