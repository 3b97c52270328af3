//! What a connected modem needs of a processor, as the analysis of devices knows it.

use laxity_model::analysis::devices::{Device, DeviceError};
use laxity_model::{Service, Span};

use super::card::{RING_SAMPLES, Setting};
use super::hypothesis::Hypothesis;

/// From interrupt to interrupt while connected, on average (Jones, Saroiu §6.2.3).
pub const BLOCK_PERIOD: Span = Span::from_micros(12_500);

/// A connected modem whose calls take so much: its uneven blocks, the output ahead by its lead, and called at least as often as that.
///
/// It delivers its output at the end of a call, as a live one does; for one of the twin see [`in_pieces`].
///
/// # Errors
///
/// [`DeviceError::NoWork`] if calls take nothing.
pub fn connected(work: Service) -> Result<Device, DeviceError> {
    let (setting, hypothesis) = (Setting::CONNECTED, Hypothesis::STUDY);
    let blocks = setting.blocks;
    let block = blocks.iter().sum::<u64>() / blocks.len() as u64;
    let lead = hypothesis.lead_samples(setting);
    let device = Device::duplex(work, BLOCK_PERIOD, block, RING_SAMPLES, lead)?;
    let device = device.uneven(blocks)?;
    Ok(device.called_every(hypothesis.output_lead))
}

/// The same modem, which delivers its output in [pieces](Hypothesis::pieces) while a call goes on, as in the twin.
///
/// # Errors
///
/// Never for a modem of [`connected`].
pub fn in_pieces(modem: Device) -> Result<Device, DeviceError> {
    modem.in_pieces(u64::from(Hypothesis::STUDY.pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modem_is_the_studys() {
        let modem = connected(Service::from_micros(1_840)).expect("a device");
        assert_eq!(modem.block(), 200);
        assert_eq!(modem.blocks(), Setting::CONNECTED.blocks);
        // The time of a block is that of its samples, and the output is due before the next of the longest.
        assert_eq!(Setting::CONNECTED.duration(modem.block()), modem.period());
        assert_eq!(modem.output_limit(), Some(Span::from_micros(12_500)));
        assert_eq!(modem.input_limit(), Some(Span::from_micros(18_875)));
    }
}
