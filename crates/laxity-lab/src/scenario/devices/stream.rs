//! What is alike of the devices that are only received or only played.

use std::fmt;

use laxity_devices::card::{CardClock, Format, Stream};
use laxity_model::analysis::devices::{Device as Analysed, DeviceError};
use laxity_model::verify::contract::{Kind, Quantity};
use laxity_model::{HostError, Program, Service, Span};

use super::{
    Account, Device, Direction, FRAMES_LOST, Installed, PROCESSING_TIME, SAMPLES_LOST,
    SAMPLES_OVERWRITTEN, SAMPLES_PENDING, SAMPLES_UNDERRUN, Site,
};

/// What is observed of a device that is only received.
pub(super) const RECEIVED: &[Quantity] = &observed(SAMPLES_OVERWRITTEN);
/// What is observed of a device that is only played.
pub(super) const PLAYED: &[Quantity] = &observed(SAMPLES_UNDERRUN);

const fn observed(lost: Quantity) -> [Quantity; 9] {
    [
        Quantity::INTERRUPT_TIME,
        Quantity::DEFERRED_TIME,
        Quantity::RESPONSE_TIME,
        PROCESSING_TIME,
        SAMPLES_PENDING,
        SAMPLES_LOST,
        lost,
        FRAMES_LOST,
        Quantity::THREAD_PRIORITY,
    ]
}

/// A device that is only received or only played: what is its own.
pub(super) trait Streamed: fmt::Debug + Send + Sync {
    const KIND: Kind;

    /// How often its work is repeated in the first runs from which its load is told.
    const FEWEST_REPEATS: usize;

    /// How its samples move.
    fn format(&self) -> Format;

    /// The device as the analysis knows it, a call taking so much.
    fn analysed(&self, work: Service) -> Result<Analysed, DeviceError> {
        let format = self.format();
        Analysed::capture(work, format.period(), format.block, format.ring())
    }

    /// What runs, of this seed, the cost of a call, the repeats and the clock.
    fn stream(&self, seed: u64, cost: Service, further: usize, clock: CardClock) -> Stream;
}

impl<S: Streamed> Device for S {
    fn kind(&self) -> Kind {
        S::KIND
    }

    fn period(&self) -> Span {
        self.format().period()
    }

    fn analysed(&self, work: Service) -> Result<Analysed, DeviceError> {
        Streamed::analysed(self, work)
    }

    fn fewest_repeats(&self) -> Option<usize> {
        Some(S::FEWEST_REPEATS)
    }

    fn install(&self, program: &mut Program, site: &Site) -> Result<Installed, HostError> {
        let format = self.format();
        let stream = Stream {
            format,
            ..self.stream(site.seed, site.work, site.further, site.clock)
        };
        let direction = match stream.recording {
            Some(_) => Direction::Received,
            None => Direction::Played,
        };
        let installed = stream.install(program, site.processor, site.placing);
        Ok(installed.reporting(|report| Account::Stream(report, format.setting(), direction)))
    }
}
