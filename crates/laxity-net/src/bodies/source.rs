//! Where a thread takes its packets from.

use laxity_model::nif::link::Memory;
use laxity_model::{Context as Host, EventKind};

use super::Through;
use crate::buffers::{Buffer, Filled};
use crate::clients::due::DueQueue;
use crate::clients::{NoPacket, Queue};

/// What a [`Shepherd`](super::Shepherd) takes one packet after the other from.
pub trait Source<M: Memory>: Send {
    /// Whether the next packet is taken without a wait in between: who waits loses what he was raised to, and is not raised by a packet that came before.
    const GOES_ON: bool = false;

    /// The packet that is next, which is recorded as delivered; `None` if there is none now.
    ///
    /// # Errors
    ///
    /// [`NoPacket::Over`].
    fn take(&mut self, context: &mut dyn Host) -> Result<Option<Buffer<M, Filled>>, NoPacket>;
}

/// First come, first served.
impl<M: Memory> Source<M> for Queue<M> {
    fn take(&mut self, context: &mut dyn Host) -> Result<Option<Buffer<M, Filled>>, NoPacket> {
        let packet = self.try_next()?;
        if let Some(packet) = &packet {
            context.record(EventKind::Deliver, packet.as_delivered(context.now()));
        }
        Ok(packet)
    }
}

/// The first queue first, whatever came before into the others. It is over when all of them are.
impl<M: Memory> Source<M> for Vec<Queue<M>> {
    fn take(&mut self, context: &mut dyn Host) -> Result<Option<Buffer<M, Filled>>, NoPacket> {
        let mut none = Err(NoPacket::Over);
        for queue in self {
            match queue.take(context) {
                Ok(None) => none = Ok(None),
                Err(_) => {}
                packet => return packet,
            }
        }
        none
    }
}

/// As urgent as its packets are.
impl<M: Memory> Source<M> for DueQueue<M> {
    const GOES_ON: bool = true;

    fn take(&mut self, context: &mut dyn Host) -> Result<Option<Buffer<M, Filled>>, NoPacket> {
        let taken = self.try_next(context.now(), &mut Through(context))?;
        Ok(taken.map(|taken| taken.packet))
    }
}
