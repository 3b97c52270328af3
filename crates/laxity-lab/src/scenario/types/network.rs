//! What shares a network interface: flows, the clients that take their packets, and the interface itself.

use std::sync::Arc;

use laxity_model::nif::most::{Costs, Most};
use laxity_model::nif::urgency::Stated;
use laxity_model::nif::wire::Faults;
use laxity_model::verify::contract::Kind;
use laxity_model::{Priority, ProcessorId, Service, Span};

use crate::scenario::kinds;

/// A network interface, at one end of a wire at whose other end all flows begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Where its driver runs, and its clients' threads.
    pub processor: ProcessorId,
    /// What the wire does to frames: how fast it is in the twin, and what goes wrong there.
    pub wire: Faults,
    /// Whether the wire carries one frame at a time, in either direction.
    pub is_half_duplex: bool,
    /// What an interrupt takes at the most, and each packet of it: charged in the twin, and by admission.
    pub costs: Costs,
    /// The keys of costs that the file does not state.
    pub(crate) unstated: Vec<&'static str>,
    /// Where these were measured; `None`: they are assumed.
    pub(crate) calibrated: Option<String>,
    /// How much its driver takes at the most; `None`: nobody says.
    pub most: Option<Most>,
}

impl Interface {
    /// Whether frames that are sent may not arrive, or otherwise than they were sent.
    pub(crate) const fn is_faulty(&self) -> bool {
        let wire = &self.wire;
        wire.lost > 0 || wire.doubled > 0 || wire.late > 0 || wire.corrupted > 0
    }
}

/// What comes over an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// What is sent.
    pub traffic: Traffic,
}

impl Flow {
    /// How many connections it is.
    pub(crate) const fn connections(&self) -> u16 {
        match self.traffic {
            Traffic::Video { .. } => 1,
            Traffic::Bulk { count, .. } => count,
        }
    }

    /// What is observed of such a flow, and the word for it in a file.
    pub const fn kind(&self) -> Kind {
        match self.traffic {
            Traffic::Video { .. } => kinds::VIDEO,
            Traffic::Bulk { .. } => kinds::BULK,
        }
    }
}

/// What a flow's far end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// A frame every so often, in UDP.
    Video {
        /// From frame to frame.
        period: Span,
        /// Packets of a frame, 1 to 16.
        packets: u16,
        /// Bytes of each, behind the UDP header.
        bytes: u16,
        /// A frame leaves at most so long after its time.
        jitter: Span,
    },
    /// Blocks of data, over TCP.
    Bulk {
        /// Over so many connections.
        count: u16,
        /// Bytes of a block.
        block: u32,
        /// From when a block has been taken by its connection until there is the next, in the mean.
        pause: Span,
    },
}

/// How packets find their threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demultiplexing {
    /// All are in one queue, from which so many threads take them.
    Late {
        /// 1 to 16.
        threads: u16,
    },
    /// Each connection has a queue and a thread of its own.
    Early,
}

/// Which packet a client's threads take next. A file says only whether they are due: the rest is what studies try.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Taking {
    /// The one that came first.
    #[default]
    InOrder,
    /// One of the flow that is named first, whatever came before it of others.
    ByFlow,
    /// What the kernel's own sockets hand out, over its own protocols: a thread for each connection reads there. On this machine alone, and then of all clients.
    FromKernel,
    /// The one that came first, and each connection's thread is placed as for what comes before its time: by what is stated of the connection's packets it has this priority for what is critical. By a queue for each.
    Due(Stated, Priority),
}

/// Who takes the packets of flows, and works on them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkClient {
    /// Where they come from.
    pub interface: Arc<Interface>,
    /// Whose packets these are.
    pub flows: Vec<Arc<Flow>>,
    /// How they find its threads.
    pub demultiplexing: Demultiplexing,
    /// Which of its packets is next.
    pub taking: Taking,
    /// What each packet takes of the processor.
    pub packet: Service,
    /// Empty buffers of each queue.
    pub buffers: u32,
}

impl NetworkClient {
    /// What it states of the packets of each connection, and the priority of its threads for those that are critical.
    pub(crate) const fn due(&self) -> Option<(Stated, Priority)> {
        match self.taking {
            Taking::Due(stated, critical) => Some((stated, critical)),
            _ => None,
        }
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> usize {
        match self.demultiplexing {
            Demultiplexing::Late { threads } => threads.into(),
            Demultiplexing::Early => {
                let flows = self.flows.iter();
                flows.map(|flow| usize::from(flow.connections())).sum()
            }
        }
    }
}
