//! One program on two hosts: a task every millisecond beside a thread that never stops, in the twin of a machine under Linux and, where
//! this process has the rights, on this machine; judged by the same contract.

use laxity::contract::{Bound, Contract, Limit, Quantity, Statistic};
use laxity::upcall::Timing;
use laxity::{
    Context, Host, HostError, LiveConfig, LiveHost, Machine, Periodic, PeriodicProbe, Placement,
    ProcessorId, Program, Scheduling, Service, Span, Step, Twin, Witness, can_run_live, judge,
};

const PERIOD: Span = Span::from_millis(1);
const SERVICE: Service = Service::from_micros(100);
const LENGTH: Span = Span::from_secs(1);
const CPU: ProcessorId = ProcessorId(0);

fn main() -> Result<(), HostError> {
    run(&mut Twin::linux(&Machine::without_costs(250), 1))?;
    match can_run_live() {
        Ok(()) => {
            let mut config = LiveConfig::detect(1)?;
            config.witnesses = vec![Witness::new(CPU)];
            run(&mut LiveHost::new(config))
        }
        Err(diagnosis) => {
            println!("not run live: {diagnosis}");
            Ok(())
        }
    }
}

fn program() -> (Program, PeriodicProbe) {
    let mut program = Program::new(1);
    let task = Periodic {
        name: "periodic".into(),
        processor: CPU,
        // Real time: above every ordinary thread.
        placement: Placement::Linux(Scheduling::Fifo(50)),
        reservation: None,
        timing: Timing::each(PERIOD),
        deadline: PERIOD,
        service: SERVICE,
    };
    let periodic = task.install(&mut program, |_, _| Step::Burn(SERVICE));
    let ordinary = Placement::Linux(Scheduling::Fair { nice: 0 });
    program.add("spinner", CPU, ordinary, |_: &mut dyn Context| {
        Step::Burn(Service::from_millis(1))
    });
    (program, periodic)
}

fn run(host: &mut dyn Host) -> Result<(), HostError> {
    let (program, periodic) = program();
    let record = host.admit_and_run(program, LENGTH)?;
    let limit = Bound::AtMost(PERIOD.as_nanos());
    let contract = Contract {
        name: "done before the next release".into(),
        limits: vec![Limit::new(
            Quantity::RESPONSE_TIME,
            Statistic::Maximum,
            limit,
        )],
        ..Contract::default()
    };
    let verdict = judge(&contract, &record, &[periodic]);
    println!("{}: {}: {}", host.describe(), contract.name, verdict.result);
    for reason in verdict.reasons {
        println!("  {reason}");
    }
    Ok(())
}
