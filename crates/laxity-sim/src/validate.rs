//! What is wrong with a program before it runs.

use laxity_model::{Activity, Enforcer, HostError, Placement, Program};

/// Marks are stored in 15 bits.
const MARKS_AT_MOST: usize = 0x8000;
const HIGHEST_INTERRUPT_LEVEL: u8 = 31;

/// The kind of machine that a program is to run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind<'a> {
    /// The study's, by the name of its profile: no foreign threads, no `SCHED_DEADLINE`.
    Study(&'a str),
    Linux,
}

/// The first thing in the program that makes it wrong ([`HostError::BadProgram`]) or impossible here ([`HostError::CannotRun`]).
pub(crate) fn validate(program: &Program, kind: Kind) -> Result<(), HostError> {
    let bad = |text: String| Err(HostError::BadProgram(text));
    if program.processors == 0 {
        return bad("it asks for no processor; it needs at least one".into());
    }
    let (activities, ports) = (program.activities.len(), program.ports.len());
    if activities >= usize::from(u16::MAX) {
        return bad(format!(
            "{activities} activities; at most 65534 have a number"
        ));
    }
    if ports > usize::from(u16::MAX) + 1 {
        return bad(format!("{ports} ports; at most 65536 have a number"));
    }
    if program.marks.len() > MARKS_AT_MOST {
        return bad(format!(
            "{} marks; at most {MARKS_AT_MOST} have a number",
            program.marks.len()
        ));
    }
    for constrained in &program.constrained {
        let is_thread = program.activities.get(constrained.index());
        if !is_thread.is_some_and(|a| matches!(a.placement, Placement::Thread(_))) {
            return bad(format!(
                "activity {constrained} is to ask for time constraints but is no thread: only threads have them"
            ));
        }
    }
    program
        .activities
        .iter()
        .try_for_each(|activity| validate_activity(activity, program.processors, kind))
}

fn validate_activity(activity: &Activity, processors: u16, kind: Kind) -> Result<(), HostError> {
    let name = &activity.name;
    if activity.processor.0 >= processors {
        return Err(HostError::BadProgram(format!(
            "`{name}` is on processor {}, but the program is written for {processors}",
            activity.processor
        )));
    }
    match activity.placement {
        Placement::Interrupt(level) if level.0 > HIGHEST_INTERRUPT_LEVEL => {
            return Err(HostError::BadProgram(format!(
                "`{name}` has interrupt level {}; the highest is {HIGHEST_INTERRUPT_LEVEL}",
                level.0
            )));
        }
        Placement::Foreign { fifo } if kind == Kind::Linux && !(1..=99).contains(&fifo) => {
            return Err(HostError::BadProgram(format!(
                "`{name}`: SCHED_FIFO has no priority {fifo}"
            )));
        }
        Placement::Foreign { .. } if kind != Kind::Linux => {
            return Err(HostError::CannotRun(format!(
                "`{name}` is a foreign SCHED_FIFO thread, which the twin does not have: place it in a thread, or run it on linux"
            )));
        }
        _ => {}
    }
    let Some(request) = activity.reservation else {
        return Ok(());
    };
    if !matches!(activity.placement, Placement::Thread(_)) {
        return Err(HostError::BadProgram(format!(
            "`{name}` asks for a reservation but is no thread: only threads hold one"
        )));
    }
    if let (Enforcer::Deadline, Kind::Study(profile)) = (request.enforcer, kind) {
        return Err(HostError::CannotRun(format!(
            "`{name}` asks for enforcement by `deadline`, which the profile {profile} does not have: ask for `slots`"
        )));
    }
    Ok(())
}
