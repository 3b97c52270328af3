//! What applications judge by: components of several kinds together, each by the grants that it depends on.

use laxity::contract::{
    Bound, Contract, Kind, Limit, Outcome, Quantity, Severity, Statistic, Subject, Subjects,
};
use laxity::executor::Edf;
use laxity::observe::{Probe, Reader, Run};
use laxity::upcall::Timing;
use laxity::{
    ActivityId, Context, Enforcer, Host, Machine, Outside, Periodic, Placement, ProcessorId,
    Program, Reservation, ReservationRequest, Scheduling, Service, Span, Step, Twin, judge,
};

/// Somebody of whom nothing is to be seen.
struct Unseen(Subject);

impl Probe for Unseen {
    fn subject(&self) -> &Subject {
        &self.0
    }

    fn activities(&self) -> &[ActivityId] {
        &[]
    }

    fn reader<'a>(&'a self, _: Run<'a>) -> Option<Box<dyn Reader + 'a>> {
        None
    }
}

/// A task in a reservation of its own, or of its executor; a thread above the slots takes nothing yet.
fn judged(on_executor: bool) -> Outcome {
    let cpu = ProcessorId(0);
    let fair = Placement::Linux(Scheduling::Fair { nice: 0 });
    let mut program = Program::new(1);
    let request = ReservationRequest {
        reservation: Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap(),
        enforcer: Enforcer::Slots,
        outside: Outside::Confined,
        begins_at_start: true,
    };
    let (placement, reservation) = if on_executor {
        let executor = program.executor("shared", (cpu, fair), Some(request), Edf::new());
        (
            Placement::On {
                executor,
                task: None,
            },
            None,
        )
    } else {
        (fair, Some(request))
    };
    let task = Periodic {
        name: "task".into(),
        processor: cpu,
        placement,
        reservation,
        timing: Timing::each(Span::from_millis(40)),
        deadline: Span::from_millis(40),
        service: Service::from_millis(1),
    };
    let task = task.install(&mut program, |_, _| Step::Burn(Service::from_millis(1)));
    let above = Placement::Linux(Scheduling::Fifo(90));
    program.add("rogue", cpu, above, |context: &mut dyn Context| {
        Step::SleepUntil(context.now() + Span::from_secs(10))
    });
    let mut twin = Twin::linux(&Machine::without_costs(250), 1);
    let record = twin.admit_and_run(program, Span::from_millis(500)).unwrap();
    let in_time = Limit {
        severity: Severity::Required,
        ..Limit::new(
            Quantity::RESPONSE_TIME,
            Statistic::Maximum,
            Bound::AtMost(Span::from_millis(40).as_nanos()),
        )
    };
    let kind = Kind {
        name: "other",
        quantities: &[],
    };
    let unseen = Unseen(Subject {
        name: "other".into(),
        kind,
    });
    let probes: [Box<dyn Probe>; 2] = [Box::new(task), Box::new(unseen)];
    let contract = Contract {
        name: "in time".into(),
        subjects: Subjects::All,
        limits: vec![in_time],
    };
    judge(&contract, &record, &probes).result
}

/// What is not enforced was not granted, whatever luck the run had.
#[test]
fn a_task_depends_on_the_grant_of_its_executor() {
    assert_eq!(judged(false), Outcome::Violated);
    assert_eq!(judged(true), Outcome::Violated);
}
