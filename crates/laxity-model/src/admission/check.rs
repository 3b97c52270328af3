//! What is wrong with a program before it is asked what it reserves.

use alloc::format;
use alloc::string::{String, ToString};

use super::Supply;
use crate::executor::HANDLERS;
use crate::{Activity, HostError, Placement, Program};

/// Marks are stored in 15 bits.
const MARKS_AT_MOST: usize = 0x8000;
const HIGHEST_INTERRUPT_LEVEL: u8 = 31;

/// The first thing in the program that makes it wrong ([`HostError::BadProgram`]) or impossible here ([`HostError::CannotRun`]).
pub(super) fn check(program: &Program, supply: &Supply) -> Result<(), HostError> {
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
    let available = supply.processors.len();
    if usize::from(program.processors) > available {
        return Err(HostError::CannotRun(format!(
            "the program is written for {} processors, {available} are configured",
            program.processors
        )));
    }
    for constrained in &program.constrained {
        let asker = program.activities.get(constrained.index());
        if !asker.is_some_and(|a| a.placement.is_thread()) {
            return bad(format!(
                "activity {constrained} is to ask for time constraints but is no thread: only threads have them"
            ));
        }
    }
    if let Some((nobody, _)) = program
        .work
        .iter()
        .find(|(who, _)| who.index() >= activities)
    {
        return bad(format!(
            "work is declared for activity {nobody}, which does not exist"
        ));
    }
    if let Some(wrong) = program.wrong_raise() {
        return bad(wrong);
    }
    let each = |activity| check_activity(activity, program.processors, supply);
    program.activities.iter().try_for_each(each)?;
    check_executors(program)
}

/// Everybody who is on an executor is where it is, and no executor is on one.
fn check_executors(program: &Program) -> Result<(), HostError> {
    for (executor, own) in program.executors() {
        let is_on = |activity: &&Activity| matches!(activity.placement, Placement::On { executor: on, .. } if on == executor);
        let placed = program.activities.iter().filter(is_on).count();
        if placed > HANDLERS {
            return Err(HostError::BadProgram(format!(
                "{placed} activities are on executor `{}`, which has room for {HANDLERS}",
                program.activities[own.index()].name
            )));
        }
    }
    for (id, activity) in program.numbered() {
        let Placement::On { executor, .. } = activity.placement else {
            continue;
        };
        let executors = program.executors().find(|(known, _)| *known == executor);
        let wrong = match executors {
            None => format!("is on executor {executor}, which the program does not have"),
            Some(_) if program.executors().any(|(_, own)| own == id) => {
                "is an executor, and placed on one".to_string()
            }
            Some((_, own)) if program.activities[own.index()].processor != activity.processor => {
                format!(
                    "is on another processor than its executor: on {}",
                    activity.processor
                )
            }
            Some(_) => continue,
        };
        return Err(HostError::BadProgram(format!(
            "`{}` {wrong}",
            activity.name
        )));
    }
    Ok(())
}

fn check_activity(activity: &Activity, processors: u16, supply: &Supply) -> Result<(), HostError> {
    let name = &activity.name;
    let wrong = match activity.placement {
        _ if activity.processor.0 >= processors => format!(
            "is on processor {}, but the program is written for {processors}",
            activity.processor
        ),
        Placement::Interrupt(level) if level.0 > HIGHEST_INTERRUPT_LEVEL => format!(
            "has interrupt level {}; the highest is {HIGHEST_INTERRUPT_LEVEL}",
            level.0
        ),
        Placement::Linux(scheduling) if !scheduling.exists() => {
            format!("is to be scheduled by {scheduling}, which does not exist")
        }
        Placement::Linux(scheduling) => {
            return match &supply.linux_classes {
                Ok(()) => Ok(()),
                Err(why) => Err(HostError::CannotRun(format!(
                    "`{name}` is to be scheduled by {scheduling}, which {why}"
                ))),
            };
        }
        placement if activity.reservation.is_some() && !placement.is_thread() => {
            "asks for a reservation but is no thread: only threads hold one".to_string()
        }
        _ => return Ok(()),
    };
    Err(HostError::BadProgram(format!("`{name}` {wrong}")))
}
