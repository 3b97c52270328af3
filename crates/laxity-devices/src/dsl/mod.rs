//! A soft DSL receiver: discrete multitone, a frame of 16 symbols with a CRC every 4 ms.
//!
//! Jones and Saroiu (§8.2) expect soft DSL to need a 4 ms period and about 25 % of a 600 MHz Pentium III for G.lite (1.531 Mbit/s
//! down), nearly twice that for the full rate (3.062 Mbit/s). This receiver has those rates and that period. It is a receiver of a
//! trained line, small and honest, and no standard's: 4,000 symbols a second whose cyclic prefix stands for the standards' shorter one
//! and their synchronisation symbol, 16 points on every tone where a real modem loads each by its noise, no coding but the CRC.
//!
//! * `dmt`: symbols; `receiver`: samples to frames; `line`: frames to samples, through an impaired line.

mod dmt;
mod line;
mod receiver;

use laxity_model::{InterruptLevel, Service};

use crate::card::{Block, CardClock, Format, Repeated, Stream};
pub use dmt::Rate;
pub use line::{LineConfig, Recording, record};
pub use receiver::Receiver;

/// Symbols of a frame.
pub const FRAME_SYMBOLS: usize = 16;

/// The DMA rings hold two blocks, as the modem's two buffers of each kind do (§4; assumed for DSL).
const RING_BLOCKS: u64 = 2;

/// Above the modem's interrupt: its blocks are due sooner.
const LEVEL: InterruptLevel = InterruptLevel(6);

/// What a frame costs, from the shares that the study was told (quoted, of a 600 MHz Pentium III): 25 % and 50 % of 4 ms.
pub const fn quoted_cost(rate: Rate) -> Service {
    Service::from_millis(rate.times() as u64)
}

/// How a card of this rate moves samples.
pub const fn format(rate: Rate) -> Format {
    Format {
        rate_hz: rate.sample_rate_hz(),
        block: (rate.symbol_samples() * FRAME_SYMBOLS) as u64,
        ring_blocks: RING_BLOCKS,
        lead_blocks: 1,
        // A prefix carries nothing, and a few samples of a symbol flip no bit; a whole symbol does.
        spare: rate.symbol_samples() as u64,
    }
}

/// A DSL receiver on a line: a call of the signal processing costs `cost` in the twin; live it is done `1 + further` times.
pub fn stream(
    rate: Rate,
    line: &LineConfig,
    cost: Service,
    further: usize,
    clock: CardClock,
) -> Stream {
    let Recording { samples, receiver } = record(rate, line);
    let make = || Box::new(receiver.clone()) as Box<dyn Block>;
    Stream {
        name: rate.name(),
        level: LEVEL,
        format: format(rate),
        recording: Some(samples),
        work: Repeated::new(further, make),
        cost,
        clock,
        listener: None,
    }
}
