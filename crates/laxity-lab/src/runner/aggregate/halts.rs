//! When the machine stood still, of all runs of a variant together.

use laxity_model::verify::contract::Halts;

use crate::evidence::results::{Disturbed, DisturbedProcessor};
use crate::runner::RunDone;
use crate::runner::commands::CommandEnd;

/// When the machine stood still in these runs: what that excuses of commands, too, wherever they ran.
pub(super) fn halts(runs: &[&RunDone]) -> Halts {
    let mut halts = Halts::of(runs.iter().map(|run| &run.record));
    let commands = runs.iter().flat_map(|run| &run.commands);
    halts.ran(commands.map(CommandEnd::ran));
    halts
}

/// The same as it is shown, with how long one crawled.
pub(super) fn disturbed(runs: &[&RunDone], halts: &Halts) -> Disturbed {
    let crawled = runs.iter().map(|run| run.record.crawled_most().as_nanos());
    let by_processor = halts.by_processor();
    let by_processor = by_processor.map(|(processor, stood)| DisturbedProcessor {
        processor: processor.0,
        count: stood.count,
        total_ns: stood.total.as_nanos(),
    });
    let by_processor: Vec<DisturbedProcessor> = by_processor.collect();
    let is_first = |one: &DisturbedProcessor| one.processor == 0;
    Disturbed {
        count: by_processor.iter().map(|one| one.count).sum(),
        witness_wakeups: halts.wakeups(),
        total_ns: by_processor.iter().map(|one| one.total_ns).sum(),
        crawled_ns: crawled.sum(),
        share_ppm: halts.ppm().unwrap_or(0),
        by_processor: if by_processor.iter().all(is_first) {
            Vec::new()
        } else {
            by_processor
        },
    }
}
