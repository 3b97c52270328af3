//! What is known of a reservation while it is held, and once it is given back.

use std::process::Command;
use std::thread;
use std::time::Duration;

use laxity_model::{Priority, Service, Span};

use super::*;
use crate::doctor::rights::{self, Right};

/// Nobody looks any more by then.
#[test]
fn that_one_of_our_threads_has_failed_is_told_when_the_watch_ends() {
    let run = Arc::new(Run::new(1, 0, Ports::default()));
    let seen = Seen::new(Grade::Enforced);
    let watch = Watch {
        run: Arc::clone(&run),
        watcher: None,
        witnesses: Vec::new(),
        seen: Arc::clone(&seen),
    };
    run.fail(HostError::CannotRun("the witness has gone".to_owned()));
    assert_eq!(seen.grade(), Grade::Enforced);
    drop(watch);
    let reason = seen.grade().reason().map(str::to_owned);
    assert!(reason.is_some_and(|why| why.contains("the witness has gone")));
}

/// The dispatcher, which it outranks, finds it at the end of no slot.
#[test]
fn a_program_that_takes_a_rank_above_the_dispatcher_is_named_while_it_spins() {
    let rights = [Right::RealTime, Right::Processors(2)];
    let Some(_live) = rights::require(&rights) else {
        return;
    };
    let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
    let request = ProgramRequest {
        hold: HoldRequest {
            name: "it".to_owned(),
            reservation: two_of_eight.unwrap(),
            enforcer: Enforcer::Slots,
            outside: Outside::Timesharing(Priority::NORMAL),
            processor: None,
        },
        choice: Choice::default(),
        confinement: None,
        witnessed: false,
    };
    let mut spinner = Command::new("sh");
    let mut program = spinner.args(["-c", "while :; do :; done"]).spawn().unwrap();
    let number = Tid(program.id().cast_signed());
    let hold = ProgramHold::of_running(&request, program.id());
    let grade = hold.map(|hold| {
        sched::set_policy(number, Policy::Fifo(99)).unwrap();
        let is_named = |_| {
            thread::sleep(Duration::from_millis(10));
            matches!(hold.observer().grade(), Grade::Unenforced { .. })
        };
        let _ = (0..100).any(is_named);
        program.kill().unwrap();
        hold.observer().grade()
    });
    let _ = program.kill();
    program.wait().unwrap();
    let reason = format!(
        "thread {number} \"sh\" of the program was taken out of its reservation: it had SCHED_FIFO priority 99 instead of SCHED_FIFO priority 80"
    );
    assert_eq!(grade.unwrap(), Grade::Unenforced { reason });
}
