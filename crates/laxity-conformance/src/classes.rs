//! The scheduling classes of Linux: how threads of the fair class share a processor, and equals under `SCHED_RR` take turns. A host that
//! has no such classes says so.

use crate::stage::{CPU, Stage, cannot_run, done_or, micros, spinner};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::policy::classes::Scheduling;
use laxity_model::{Host, Placement, Program, Service, Span, Step};

/// Nice values, and what the kernel's table has them weigh.
const WEIGHTS: [(i8, u64); 3] = [(0, 1_024), (5, 335), (10, 110)];

/// Spinners share the processor as their nice values weigh.
pub(crate) fn nice(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    for (nice, _) in WEIGHTS {
        let placement = Placement::Linux(Scheduling::Fair { nice });
        program.add("spinner", CPU, placement, spinner());
    }
    if let Err(why) = host.supply(1)?.linux_classes {
        return cannot_run(host, program, &why);
    }
    let record = host.admit_and_run(program, Span::from_millis(2_400))?;
    let all: Service = record.usage.iter().map(|usage| usage.service).sum();
    let weights: u64 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    for ((nice, weight), usage) in WEIGHTS.into_iter().zip(&record.usage) {
        let (due, received) = (all.as_nanos() * weight / weights, usage.service);
        let kept = due / 1_000 * (tolerance.kept_ppm / 1_000);
        let range = kept..=2 * due - kept;
        ensure_in_time!(
            !all.is_zero() && range.contains(&received.as_nanos()),
            "nice {nice} received {received} of {all}, of which {weight} in {weights} are due"
        );
    }
    Ok(())
}

/// Equals that work longer than a slice take turns, always in the same order.
pub(crate) fn round_robin(host: &mut dyn Host, _: &Tolerance) -> Result {
    const EQUALS: u64 = 3;
    // Two slices and a half of the usual 100 ms each.
    const PIECES: u64 = 250;
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues = [(); EQUALS as usize].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        let placement = Placement::Linux(Scheduling::RoundRobin(50));
        stage.actor(placement, cue, move |calls, context| {
            story.tell(context, who);
            done_or(calls == PIECES, Step::Burn(micros(1_000)))
        });
    }
    if let Err(why) = host.supply(1)?.linux_classes {
        return cannot_run(host, stage.program, &why);
    }
    let mut turns = stage.play(host, &cues)?.told;
    turns.dedup();
    let in_turn = turns
        .iter()
        .copied()
        .eq((0..EQUALS).cycle().take(turns.len()));
    ensure!(in_turn, "the turns were {turns:?}");
    let count = turns.len() as u64;
    ensure_in_time!(count > EQUALS, "{count} turns of {EQUALS}");
    Ok(())
}
