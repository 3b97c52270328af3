//! Admission of channels: figures by hand, a simulator packet by packet, and every offer taken.

mod figures;
mod host;
mod oracle;
mod paths;
mod sets;
mod signals;
mod versions;
mod wire;

use laxity_model::channels::signalling::{ChannelId, HostId};

/// One of host 0.
pub(crate) const fn channel(number: u64) -> ChannelId {
    ChannelId {
        origin: HostId(0),
        generation: 0,
        number: number as u32,
    }
}
