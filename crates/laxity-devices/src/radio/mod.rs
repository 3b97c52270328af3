//! A soft radio receiver: a burst with a CRC every 312.5 µs.
//!
//! Jones and Saroiu (§8.2) expect soft Bluetooth and 802.11b to need only 2–3 % of a 600 MHz processor, but short computations every
//! 312.5 µs. This is a receiver of that rhythm, no standard's: bursts of differential four-phase keying at a million symbols a second,
//! slots that are known in time, as they are to a station that has joined; a carrier that is off, an echo, noise.
//!
//! * `burst`: octets to symbols and back; `air`: what is recorded at the antenna.

mod air;
mod burst;

use laxity_model::{InterruptLevel, Service};

use crate::card::{Block, CardClock, Format, Repeated, Stream};
pub use air::{AirConfig, record};
pub use burst::Receiver;

/// Values a second: in-phase and quadrature at four samples a symbol, one after the other.
const RATE_HZ: u64 = 8_000_000;
/// Values of a slot.
pub(crate) const SLOT_VALUES: usize = 2_500;

/// Slots that the DMA ring holds (assumed): 1.25 ms, so a slot must be read within 0.94 ms.
const RING_BLOCKS: u64 = 4;

/// Above all others: its blocks are due soonest.
const LEVEL: InterruptLevel = InterruptLevel(8);

/// What a slot costs, from the share that the study gives (quoted, of a 600 MHz processor): 2.5 % of 312.5 µs.
pub const QUOTED_COST: Service = Service::from_nanos(7_812);

/// How the card moves samples.
pub const FORMAT: Format = Format {
    rate_hz: RATE_HZ,
    block: SLOT_VALUES as u64,
    ring_blocks: RING_BLOCKS,
    lead_blocks: 1,
    // The guard before the burst, and 16 symbols, all of which another burst has alike once in four milliards.
    spare: 240 + 16 * 8,
};

/// A radio receiver: a call of the signal processing costs `cost` in the twin; live it is done `1 + further` times.
pub fn stream(air: &AirConfig, cost: Service, further: usize, clock: CardClock) -> Stream {
    let receiver = Receiver::new(air.slots);
    let make = || Box::new(receiver.clone()) as Box<dyn Block>;
    Stream {
        name: "radio",
        level: LEVEL,
        format: FORMAT,
        recording: Some(record(air)),
        work: Repeated::new(further, make),
        cost,
        clock,
        listener: None,
    }
}
