//! How fast this machine is, beside the runs that depend on it.
//!
//! The yardstick is a *reference block*: a piece of the modem's own signal processing, 600 samples demodulated by 61 receivers, with both ends of the line. It
//! is that work because it is what the runs are made of: it moves with the processor's clock, its caches and a neighbour on the same core as the calls
//! do, which a loop of additions does not. It is measured by the processor time of a real-time thread on the processor of the runs, before the first run
//! and after each one, when nothing else of ours is there.

use std::sync::{Arc, Mutex, PoisonError};

use laxity_devices::modem::{Call, CallConfig, Timing};
use laxity_model::base::number::median;
use laxity_model::enforce::ranks::HIGHEST_BELOW_SLOTS;
use laxity_model::{Context, Host, HostError, Placement, ProcessorId, Program, Span, Step};

use super::compose::ENDLESS_BYTES;
use crate::evidence::results::Speed;

/// Receivers besides the first.
const FURTHER_RECEIVERS: usize = 60;
/// A reference block is so many of the card's blocks, which differ, and together are always 600 samples.
const CARD_BLOCKS: usize = 3;
/// So many reference blocks are worked on each time.
const BLOCKS: usize = 4;
/// They are complete long before this.
const LIMIT: Span = Span::from_secs(2);
/// A call is connected by then, in its own time.
const CONNECTED_BY: Span = Span::from_secs(60);

/// A modem on a line that nobody else uses, and what its reference blocks took so far.
pub struct Reference {
    processor: ProcessorId,
    call: Arc<Mutex<Call>>,
}

/// What some reference blocks took, in nanoseconds of processor time.
pub type Took = Vec<u64>;

impl Reference {
    /// For the processors of one host, measured on one of them.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`] if its line carries nothing.
    pub fn new(processor: ProcessorId) -> Result<Self, HostError> {
        Ok(Self {
            processor,
            call: Arc::new(Mutex::new(connected()?)),
        })
    }

    /// Works on some reference blocks, in a thread by itself.
    ///
    /// # Errors
    ///
    /// The host's.
    pub fn measure(&mut self, host: &mut impl Host, processors: u16) -> Result<Took, HostError> {
        let mut program = Program::new(processors);
        let took = Arc::new(Mutex::new(Took::new()));
        let (call, told) = (Arc::clone(&self.call), Arc::clone(&took));
        let body = move |context: &mut dyn Context| {
            let mut call = call.lock().unwrap_or_else(PoisonError::into_inner);
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            for _ in 0..BLOCKS {
                let before = context.service();
                (0..CARD_BLOCKS).for_each(|_| call.serve_next());
                told.push(context.service().saturating_sub(before).as_nanos());
            }
            Step::EndRun
        };
        program.add(
            "reference",
            self.processor,
            Placement::Thread(HIGHEST_BELOW_SLOTS),
            body,
        );
        host.admit_and_run(program, LIMIT)?;
        let took = std::mem::take(&mut *took.lock().unwrap_or_else(PoisonError::into_inner));
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        if call.report().outcome().is_some() {
            *call = connected()?;
        }
        Ok(took)
    }
}

fn connected() -> Result<Call, HostError> {
    let config = CallConfig {
        further_receivers: FURTHER_RECEIVERS,
        ..CallConfig::new(Timing::short(), 1, ENDLESS_BYTES)
    };
    let mut call = Call::new(config);
    match call.run_ahead(CONNECTED_BY) {
        true => Ok(call),
        false => Err(HostError::Failed(
            "the reference's line carries nothing".into(),
        )),
    }
}

impl Speed {
    /// Of reference blocks that took so long each; `None` of none.
    pub(crate) fn of(took: impl IntoIterator<Item = u64>) -> Option<Self> {
        let took: Vec<u64> = took.into_iter().collect();
        Some(Self {
            reference_block_ns: median(took.iter().copied())?,
            shortest_ns: *took.iter().min()?,
            longest_ns: *took.iter().max()?,
            blocks: took.len() as u64,
        })
    }

    /// In words.
    pub fn words(&self) -> String {
        let [median, shortest, longest] =
            [self.reference_block_ns, self.shortest_ns, self.longest_ns].map(Span::from_nanos);
        format!(
            "a reference block took {median} ({shortest} to {longest}, {} times)",
            self.blocks
        )
    }
}

#[cfg(test)]
mod tests {
    use laxity::Twin;
    use laxity_model::enforce::machine::Machine;

    use super::*;

    /// The twin charges nothing for it; but that the call goes on, block by block, is seen there too.
    #[test]
    fn a_reference_goes_on_from_measurement_to_measurement() {
        let mut host = Twin::linux(&Machine::without_costs(250), 1);
        let mut reference = Reference::new(ProcessorId(0)).expect("a line");
        let mut before = reference.call.lock().expect("it is free").now();
        for _ in 0..3 {
            let took = reference.measure(&mut host, 1).expect("it runs");
            assert_eq!(took.len(), BLOCKS);
            let now = reference.call.lock().expect("it is free").now();
            assert_eq!(now - before, Span::from_micros(37_500) * BLOCKS as u64);
            before = now;
        }
    }

    #[test]
    fn a_speed_has_a_spread() {
        let speed = Speed::of([3_000_000, 1_500_000, 2_000_000]).expect("some");
        assert_eq!(
            speed.words(),
            "a reference block took 2ms (1.500ms to 3ms, 3 times)"
        );
        assert_eq!(Speed::of([]), None);
    }
}
