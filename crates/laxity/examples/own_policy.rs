//! A policy of one's own, with the schedulability test that belongs to it: rate monotonic with a quantum, admitted by Liu and Layland's
//! bound. Three handlers take turns on an executor in the twin; a fourth that is too much is refused before anything runs.

use laxity::analysis::supply::SupplyBound;
use laxity::analysis::{Fraction, Preemption, Task, Verdict, utilization};
use laxity::executor::{Decision, ExecutorPolicy, Job, Policy, Ready, Unschedulable};
use laxity::{
    Context, Host, HostError, Instant, Machine, Placement, ProcessorId, Program, Scheduling,
    Service, Span, Step, Twin,
};

/// The handler whose jobs are due soonest after their release goes first; that is its period here.
#[derive(Default)]
struct RateMonotonic {
    ready: Ready,
}

/// How long after its release a job is due.
fn period(job: &Job) -> Span {
    job.deadline.saturating_since(job.release)
}

impl Policy for RateMonotonic {
    type Entry = Job;

    fn enter(&mut self, who: u32, job: Job, _: Instant) {
        self.ready.enter(who, period(&job).as_nanos());
    }

    fn leave(&mut self, who: u32, _: Instant) {
        self.ready.leave(who);
    }

    fn yield_now(&mut self, who: u32, _: Instant) {
        self.ready.yield_now(who, None);
    }

    fn pause(&mut self, _: Instant) {}

    fn decide(&mut self, _: Instant) -> Decision {
        Decision {
            who: self.ready.first(),
            until: Instant::MAX,
        }
    }
}

impl ExecutorPolicy for RateMonotonic {
    fn precedes(&self, coming: &Job, running: &Job) -> bool {
        period(coming) < period(running)
    }

    /// Liu and Layland's bound, less what the longest quantum of a less urgent handler may take; for a whole processor only.
    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        let refused = |reason: &str| {
            Err(Unschedulable {
                bottleneck: None,
                reason: reason.to_owned(),
            })
        };
        if supply.rate() != Fraction::ONE || !supply.delay().is_zero() {
            return refused("Liu and Layland's bound says nothing of less than a processor");
        }
        match utilization::blocking_summed(tasks) {
            Ok(Verdict::Schedulable) => Ok(()),
            Ok(_) => refused(
                "the utilization, with the longest quantum, is above Liu and Layland's bound",
            ),
            Err(overflow) => refused(&overflow.to_string()),
        }
    }
}

/// The work between two looks for a yield.
const QUANTUM: Service = Service::from_millis(1);

/// A handler that has `quanta` of work in every period.
fn handler(period: Span, quanta: u64) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static {
    let (mut left, mut released) = (quanta, None);
    move |context| {
        let release = *released.get_or_insert_with(|| context.now());
        if left == 0 {
            (left, released) = (quanta, Some(release + period));
            return Step::SleepUntil(release + period);
        }
        if context.should_yield() {
            return Step::Yield;
        }
        left -= 1;
        // In a real handler: the work itself, and `Step::Charge` for what it costs.
        Step::Burn(QUANTUM)
    }
}

/// Handlers of so many quanta every so many milliseconds.
fn program(handlers: &[(u64, u64)]) -> Result<Program, Box<dyn std::error::Error>> {
    let mut program = Program::new(1);
    let processor = ProcessorId(0);
    let thread = Placement::Linux(Scheduling::Fifo(70));
    let policy = RateMonotonic::default();
    let executor = program.executor("executor", (processor, thread), None, policy);
    for (quanta, period) in handlers {
        let (cost, period) = (QUANTUM * *quanta, Span::from_millis(*period));
        let regions = Preemption::Fixed {
            longest: QUANTUM,
            last: QUANTUM,
        };
        let task = Task::new(cost, period)?.with_preemption(regions)?;
        let placement = Placement::On {
            executor,
            task: Some(task),
        };
        let name = format!("every {period}");
        program.add(&name, processor, placement, handler(period, *quanta));
    }
    Ok(program)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut twin = Twin::linux(&Machine::without_costs(250), 1);
    let fits = [(2, 10), (4, 20), (8, 80)];
    let record = twin.admit_and_run(program(&fits)?, Span::from_secs(1))?;
    println!(
        "three handlers: the executor received {}",
        record.usage[0].service
    );
    let too_much = [(2, 10), (4, 20), (8, 80), (20, 100)];
    match twin.admit(program(&too_much)?) {
        Err(HostError::Refused(why)) => println!("a fourth is refused: {why}"),
        other => return Err(format!("the fourth was not refused: {other:?}").into()),
    }
    Ok(())
}
