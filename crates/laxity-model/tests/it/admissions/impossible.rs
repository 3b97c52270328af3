//! Programs that no supply, or not this one, can run.

use super::*;

/// What is said of a program that cannot be admitted, whatever it asks for.
fn impossible(program: Program, supply: &Supply) -> HostError {
    match admit(program, supply) {
        Err(Rejected::Impossible(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// What is wrong with a program is said before anything else is looked at, each by its own words.
#[test]
fn wrong_programs_are_told_what_is_wrong() {
    let told = |program: Program, words: &str| {
        let HostError::BadProgram(text) = impossible(program, &machine()) else {
            panic!("{words}");
        };
        assert!(text.contains(words), "{text}");
    };
    let modem = |change: fn(&mut Activity)| {
        let mut modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        change(&mut modem);
        program(vec![modem])
    };
    let with = |change: fn(&mut Program)| {
        let mut program = modem(|_| ());
        change(&mut program);
        program
    };
    let elsewhere = modem(|a| a.processor = ProcessorId(7));
    told(elsewhere, "`modem` is on processor 7");
    let placed = |placement| {
        let modem = reserved("modem", every(2_000, 8_000), Enforcer::Slots);
        program(vec![Activity { placement, ..modem }])
    };
    told(placed(Placement::Deferred), "is no thread");
    let nicer = Placement::Linux(Scheduling::Fair { nice: -21 });
    told(placed(nicer), "SCHED_OTHER nice -21");
    let too_high = Placement::Linux(Scheduling::Fifo(100));
    told(placed(too_high), "SCHED_FIFO priority 100");
    let too_high = Placement::Interrupt(InterruptLevel(32));
    told(placed(too_high), "interrupt level 32");
    told(with(|p| p.processors = 0), "no processor");
    let marks = with(|p| p.marks = vec![String::new(); 0x8001]);
    told(marks, "32769 marks");
    let ports = with(|p| p.ports = vec![PortKind::Queue { capacity: 1 }; 65_537]);
    told(ports, "65537 ports");
    let stranger = with(|p| p.constrained.push(ActivityId(1)));
    told(stranger, "time constraints");
    let works = with(|p| {
        let (service, period) = (Service::from_millis(1), Span::from_millis(2));
        p.declare_work(ActivityId(1), Work { service, period });
    });
    told(works, "work is declared for activity 1");
}

/// What another machine could run is not wrong: it cannot be run here.
#[test]
fn programs_for_other_machines_are_told_what_is_missing() {
    let mut not_linux = machine();
    not_linux.linux_classes = Err("nobody has here".into());
    let scheduled = || program(vec![activity("rogue", Placement::Linux(Scheduling::Idle))]);
    assert!(admit(scheduled(), &machine()).is_ok());
    let mut too_many = program(Vec::new());
    too_many.processors = 3;
    for (program, words) in [(scheduled(), "nobody has here"), (too_many, "3 processors")] {
        let HostError::CannotRun(text) = impossible(program, &not_linux) else {
            panic!("{words}");
        };
        assert!(text.contains(words), "{text}");
    }
}
