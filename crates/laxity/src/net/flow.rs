//! A client for one flow, with buffers of its own and a queue that its threads take packets from: `EarlyDemuxClient` (§3.2), wherever it is found.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use laxity_linux::EventLog;
use laxity_linux::net::AnyMemory;
use laxity_linux::os::clock;
use laxity_model::nif::exchange::Account;
use laxity_model::nif::host;
use laxity_model::nif::registry::ClientId;
use laxity_model::{ActivityId, EventKind, Instant, Priority};
use laxity_net::buffers::{Buffer, Filled, Pool};
use laxity_net::clients::{NoPacket, Queue};
use laxity_net::driver::Handle;

use super::Flow;
use super::error::{Ended, Error};
use super::hook::Steered;
use super::link::LiveLink;
use super::{Frames, LiveDriver};

/// What a client of a flow has.
#[derive(Clone, Copy, Debug)]
pub struct FlowOptions {
    /// So many packets may wait for it, or be in its threads' hands; [`MOST_BUFFERS`](Self::MOST_BUFFERS) at the most.
    pub buffers: u32,
    /// When a packet finds none waiting, the activity that takes them becomes so urgent, from the packet's arrival on.
    pub raises: Option<(ActivityId, Priority)>,
}

impl FlowOptions {
    /// The most buffers of a client: each takes memory from the beginning, 1.5 KiB of most interfaces and 64 KiB where [segments](super::Settings::segments) come.
    pub const MOST_BUFFERS: u32 = 1 << 16;
}

/// Whether a packet can be of this flow, and its client have it; else what would be right.
pub(super) fn check(flow: &Flow, buffers: u32) -> Result<(), Error> {
    if buffers == 0 {
        return Err(Error::NoBuffers);
    }
    for end in [Some(flow.own), flow.far].into_iter().flatten() {
        if end.port() == 0 {
            return Err(Error::FlowPort(end));
        }
        host::check(end.ip(), &[])?;
    }
    Ok(())
}

/// Packets of a flow, first come, first served. Any number of threads may take them. Dropped, the client ends.
pub struct FlowQueue {
    pub(super) queue: Queue<AnyMemory>,
    pub(super) pool: Pool<AnyMemory>,
    pub(super) id: ClientId,
    pub(super) steered: Option<Arc<Steered>>,
    pub(super) handle: Handle<LiveLink, Frames>,
    pub(super) events: Option<Mutex<EventLog>>,
}

/// A packet of a flow. Dropped, its buffer is given again.
pub struct Packet {
    /// `None` only while it is dropped.
    buffer: Option<Buffer<AnyMemory, Filled>>,
    /// Held only while it is told of a buffer: so its end is seen.
    steered: Option<Weak<Steered>>,
}

impl FlowQueue {
    /// Records from now on which packets are taken ([`EventKind::Deliver`]), as a run does of its threads.
    pub fn record(&mut self, events: EventLog) {
        self.events = Some(events.into());
    }

    fn packet(&self, buffer: Buffer<AnyMemory, Filled>) -> Packet {
        if let Some(events) = &self.events {
            let args = buffer.as_delivered(clock::now());
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            events.record(EventKind::Deliver, args);
        }
        Packet {
            buffer: Some(buffer),
            steered: self.steered.as_ref().map(Arc::downgrade),
        }
    }

    /// The packet that waits for the longest time; `None` if there is none now.
    ///
    /// # Errors
    ///
    /// [`NoPacket::Over`]: the interface has ended, and all that arrived has been taken.
    pub fn try_next(&self) -> Result<Option<Packet>, NoPacket> {
        let next = self.queue.try_next()?;
        Ok(next.map(|buffer| self.packet(buffer)))
    }

    /// The same, waiting for one, no longer than until then.
    ///
    /// # Errors
    ///
    /// [`NoPacket`].
    pub fn next(&self, until: Option<Instant>) -> Result<Packet, NoPacket> {
        self.queue.next(until).map(|buffer| self.packet(buffer))
    }

    /// Whether it is found at the interface's hook, before anything is queued.
    pub const fn is_early(&self) -> bool {
        self.steered.is_some()
    }

    /// The client's number at its driver.
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// Its buffers.
    pub const fn pool(&self) -> &Pool<AnyMemory> {
        &self.pool
    }

    /// What became of its packets that came as far as the driver, and how many were dropped at the hook for want of a buffer. It waits for the driver.
    ///
    /// # Errors
    ///
    /// There is no driver any more, or it has unregistered this client.
    pub fn counts(&self) -> Result<(Account, u64), Error> {
        let (id, pool) = (self.id, self.pool.clone());
        let asked = self.handle.ask(move |driver: &mut LiveDriver| {
            let account = driver.account_of(id).filter(|_| driver.has(id, &pool));
            account.copied()
        });
        let account = asked.wait().ok().flatten();
        let account = account.ok_or(Error::Ended(Ended::Closed))?;
        let dropped = self.steered.as_ref().map_or(0, |steered| steered.dropped());
        Ok((account, dropped))
    }
}

impl Drop for FlowQueue {
    fn drop(&mut self) {
        let (id, pool) = (self.id, self.pool.clone());
        // It is done in the driver's next poll, or was with its end.
        drop(self.handle.ask(move |driver: &mut LiveDriver| {
            // Its number may be another's by now, where somebody else has unregistered it.
            if driver.has(id, &pool) {
                driver.unregister(id);
            }
        }));
    }
}

impl Packet {
    /// When it arrived; and who says so.
    pub fn arrived(&self) -> Option<laxity_net::buffers::Arrived> {
        self.buffer.as_ref().and_then(Buffer::arrived)
    }
}

impl Deref for Packet {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], Buffer::bytes)
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        let given = self.buffer.take().map(|buffer| buffer.emptied().give());
        let steered = self.steered.as_ref().and_then(Weak::upgrade);
        if let (Some(Ok(())), Some(steered)) = (given, steered) {
            steered.gave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_no_packet_can_be_of_is_refused_with_what_would_be_right() {
        let refused = |own: &str, far: Option<&str>, buffers| {
            let flow = Flow {
                is_tcp: false,
                own: own.parse().unwrap(),
                far: far.map(|far| far.parse().unwrap()),
            };
            let checked = check(&flow, buffers).err();
            checked.map_or_else(String::new, |why| why.to_string())
        };
        assert_eq!(refused("10.0.0.2:5004", Some("10.0.0.1:9"), 1), "");
        for (own, far, buffers, words) in [
            ("10.0.0.2:5004", None, 0, "one buffer at least"),
            ("10.0.0.2:0", None, 1, "from 1 to 65535"),
            ("10.0.0.2:5004", Some("10.0.0.1:0"), 1, "from 1 to 65535"),
            ("0.0.0.0:5004", None, 1, "udp dst port 5004"),
            ("[::]:5004", None, 1, "is no address"),
            ("127.0.0.1:5004", None, 1, "loopback"),
            ("10.0.0.2:5004", Some("0.1.2.3:9"), 1, "0.0.0.0/8"),
            ("224.0.0.1:5004", None, 1, "dst host 224.0.0.1"),
            ("255.255.255.255:5004", None, 1, "such as 10.0.0.2"),
        ] {
            let said = refused(own, far, buffers);
            assert!(said.contains(words), "{own}: {said:?}");
        }
    }
}
