//! Empties the event rings while a run is under way, on the processor of the external activities.

use std::sync::Arc;

use laxity_model::base::ring::Consumer;
use laxity_model::enforce::ranks;
use laxity_model::{Event, HostError, Span};

use super::LiveConfig;
use crate::os::clock;
use crate::os::sched::{self, Policy, Tid};
use crate::run::{self, Run, Thread};

/// How often the rings are emptied.
const EVERY: Span = Span::from_millis(10);

/// All events of a run, and how many were lost.
#[derive(Default)]
pub(crate) struct Collection {
    pub(crate) events: Vec<Event>,
    consumers: Vec<Consumer>,
}

impl Collection {
    /// Everything by time; call it when all producers are done. Equal times keep the order of their ring.
    pub(crate) fn finish(mut self) -> (Vec<Event>, u64) {
        self.drain();
        let lost = self.consumers.iter().map(Consumer::lost).sum();
        self.events.sort_by_key(|event| event.at);
        (self.events, lost)
    }

    fn drain(&mut self) {
        for consumer in &mut self.consumers {
            consumer.drain(&mut self.events);
        }
    }
}

/// Starts the collector; it ends with the run. Above what else is external, or where a program may run there just above ordinary threads, so that none of these starves it.
pub(crate) fn spawn(
    consumers: Vec<Consumer>,
    config: &LiveConfig,
    run: Arc<Run>,
) -> Result<Thread<Collection>, HostError> {
    let cpu = config.external;
    let rank = match config.processors.contains(&cpu) {
        true => ranks::COLLECTOR,
        false => ranks::COLLECTOR_ALONE,
    };
    run::spawn("collector".to_owned(), run, move |run| {
        let rank = Policy::Fifo(rank);
        sched::pin(cpu)
            .and_then(|()| sched::set_policy(Tid::current(), rank))
            .map_err(|error| HostError::Failed(format!("the collector: {error}")))?;
        let mut collection = Collection {
            events: Vec::new(),
            consumers,
        };
        let mut next = clock::now() + EVERY;
        while run.sleep_until(next) {
            collection.drain();
            next = clock::now() + EVERY;
        }
        Ok(collection)
    })
}
