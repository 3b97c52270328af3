//! One program on two hosts: a thread that wakes every millisecond beside one that never stops, in the twin of the modem study's host
//! and, where this process has the rights, on this machine.

use laxity::{
    Context, EventKind, Host, HostError, Instant, LiveConfig, LiveHost, Placement, Priority,
    ProcessorId, Profile, Program, Service, Span, Step, Twin, can_run_live,
};

const PERIOD: Span = Span::from_millis(1);
const LENGTH: Span = Span::from_secs(1);
/// Real time: above every ordinary thread.
const ABOVE: Priority = match Priority::new(24) {
    Some(priority) => priority,
    None => panic!("priorities go up to 31"),
};

fn main() -> Result<(), HostError> {
    run(&mut Twin::new(Profile::WIN2000_PII450))?;
    match can_run_live() {
        Ok(()) => run(&mut LiveHost::new(LiveConfig::detect(1)?)),
        Err(diagnosis) => {
            println!("not run live: {diagnosis}");
            Ok(())
        }
    }
}

fn program() -> Program {
    let mut program = Program::new(1);
    let woke = program.mark("woke");
    let mut due: Option<Instant> = None;
    let periodic = move |context: &mut dyn Context| {
        if due.is_some() {
            context.mark(woke, [0; 2]);
        }
        let next = due.unwrap_or_else(|| context.now()) + PERIOD;
        due = Some(next);
        Step::SleepUntil(next)
    };
    let spinner = |_: &mut dyn Context| Step::Burn(Service::from_millis(1));
    let processor = ProcessorId(0);
    program.add("periodic", processor, Placement::Thread(ABOVE), periodic);
    let normal = Placement::Thread(Priority::NORMAL);
    program.add("spinner", processor, normal, spinner);
    program
}

fn run(host: &mut dyn Host) -> Result<(), HostError> {
    let record = host.admit_and_run(program(), LENGTH)?;
    let woke: Vec<Instant> = record
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Mark(_)))
        .map(|event| event.at)
        .collect();
    let gaps = woke.windows(2).map(|pair| pair[1] - pair[0]);
    println!(
        "{}: woke {} times, largest gap {}",
        host.describe(),
        woke.len(),
        gaps.max().unwrap_or(Span::ZERO)
    );
    Ok(())
}
