//! How a run ends.

use crate::stage::{CPU, DEVICE, LOW, NORMAL, counted, of, spinner};
use crate::{Case, Failure, Tolerance, ensure};
use laxity_model::{ActivityId, EventKind, Host, Placement, Program, RunEnd, Span, Step};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a-run-ends-with-its-length",
        shows: "a program that would go on is ended when its time is over, not before, and soon",
        processors: 1,
        run: length,
    },
    Case {
        name: "a-run-ends-when-a-body-says-so",
        shows: "whoever works, sleeps, waits or is outside the machine is ended, and soon",
        processors: 1,
        run: end_run,
    },
    Case {
        name: "a-run-ends-when-all-have-finished",
        shows: "a run is no longer than its last activity, and each finishes once",
        processors: 1,
        run: all_finished,
    },
    Case {
        name: "a-program-without-activities-ends",
        shows: "nobody is left at once",
        processors: 1,
        run: empty,
    },
];

fn length(host: &mut dyn Host, tolerance: &Tolerance) -> Result<(), Failure> {
    const LENGTH: Span = Span::from_millis(40);
    let mut program = Program::new(1);
    program.add("spinner", CPU, NORMAL, spinner());
    program.add(
        "sleeper",
        CPU,
        LOW,
        counted(|_, context| Step::SleepUntil(context.now() + Span::from_millis(7))),
    );
    let record = host.admit_and_run(program, LENGTH)?;
    ensure!(
        record.ended_by == RunEnd::Length,
        "ended by {:?}",
        record.ended_by
    );
    let lasted = record.end - record.start;
    ensure!(lasted >= LENGTH, "over after {lasted}");
    ensure!(
        lasted <= LENGTH + tolerance.lateness,
        "over only after {lasted}"
    );
    Ok(())
}

fn end_run(host: &mut dyn Host, tolerance: &Tolerance) -> Result<(), Failure> {
    const HOURS: Span = Span::from_secs(100_000);
    let mut program = Program::new(1);
    let never = program.semaphore(0);
    let over = program.mark("over");
    program.add("spinner", CPU, NORMAL, spinner());
    program.add(
        "sleeper",
        CPU,
        LOW,
        counted(|_, context| Step::SleepUntil(context.now() + HOURS)),
    );
    let waits = move |_, _: &mut dyn laxity_model::Context| Step::Wait(never);
    program.add("waiter", CPU, LOW, counted(waits));
    program.add("deferred", CPU, Placement::Deferred, counted(waits));
    program.add(
        "far end",
        CPU,
        Placement::External,
        counted(|_, context| Step::SleepUntil(context.now() + HOURS)),
    );
    program.add(
        "patient",
        CPU,
        LOW,
        counted(move |_, context| Step::WaitUntil(never, context.now() + HOURS)),
    );
    program.add(
        "device",
        CPU,
        DEVICE,
        counted(move |calls, context| {
            if calls == 0 {
                return Step::SleepUntil(context.now() + Span::from_millis(10));
            }
            context.mark(over, [0; 2]);
            Step::EndRun
        }),
    );
    let record = host.admit_and_run(program, HOURS)?;
    ensure!(
        record.ended_by == RunEnd::EndRun,
        "ended by {:?}",
        record.ended_by
    );
    let wanted = record
        .events
        .iter()
        .find(|event| event.kind == EventKind::Mark(over));
    let Some(wanted) = wanted else {
        ensure!(false, "ended before anybody wanted it");
        return Ok(());
    };
    let later = record.end.saturating_since(wanted.at);
    ensure!(
        later <= tolerance.lateness,
        "over {later} after a body wanted it"
    );
    Ok(())
}

fn all_finished(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut program = Program::new(1);
    for (who, placement) in (1..).zip([NORMAL, LOW, DEVICE, Placement::External]) {
        program.add(
            "worker",
            CPU,
            placement,
            counted(move |calls, context| {
                if calls == who {
                    return Step::Finish;
                }
                Step::SleepUntil(context.now() + Span::from_millis(2))
            }),
        );
    }
    program.add(
        "deferred",
        CPU,
        Placement::Deferred,
        counted(|_, _| Step::Finish),
    );
    let activities = program.activities.len();
    let record = host.admit_and_run(program, super::stage::NEVER)?;
    ensure!(
        record.ended_by == RunEnd::AllFinished,
        "ended by {:?}",
        record.ended_by
    );
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

fn empty(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let record = host.admit_and_run(Program::new(1), super::stage::NEVER)?;
    ensure!(
        record.ended_by == RunEnd::AllFinished,
        "ended by {:?}",
        record.ended_by
    );
    ensure!(record.usage.is_empty(), "{} usages", record.usage.len());
    Ok(())
}
