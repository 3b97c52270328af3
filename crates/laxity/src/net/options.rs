//! How an interface is opened.

use laxity_linux::EventLog;
use laxity_linux::net::Settings;
use laxity_linux::net::xdp::program::Rest;
use laxity_model::PortId;
use laxity_model::nif::frame::Tail;
use laxity_model::nif::most::{Costs, Most};
use laxity_net::driver::Limits;

/// Puts an arrival into a port of a running program, such as [`Inbox::put`](laxity_linux::host::alone::Inbox::put) of an executor: `false` if there is no room. It is called by the driver's thread, and neither waits nor allocates.
pub type Put = Box<dyn FnMut([u64; 2]) -> bool + Send>;

/// How an interface is opened, and the thread of its driver.
pub struct Options {
    /// How much memory lies below the driver, and what it asks the interface for.
    pub settings: Settings,
    /// How much the driver may have, and do at a time. Where clients are found early, what is posted for them comes on top.
    pub limits: Limits,
    /// What filters may say of a packet's payload.
    pub tail: Option<Tail>,
    /// The FIFO priority of the driver's thread, 1 to 99: that of interrupt handlers, unless something else is asked for.
    pub priority: u8,
    /// Its processor, by the kernel's number; else wherever the kernel lets it run.
    pub processor: Option<usize>,
    /// The most packets, both ways, in any time of this length; what comes beyond waits in the interface, and is lost there if it waits for too long, and so do questions to the driver. `None`: no end of them, so that a flood may take a processor.
    pub most: Option<Most>,
    /// What the thread takes at the most each time that it wakes, and for each packet then, as was measured or as you say: with `most`, slots on its processor are admitted below it. Without either, whoever
    /// asks for slots there has them `unenforced`, as nobody bounds what the driver takes.
    pub costs: Option<Costs>,
    /// Clients of flows are found at the interface's hook, which only `xdp:NAME` can do.
    pub early: Option<EarlyOptions>,
    /// Ports of programs that clients may put into.
    pub ports: Vec<(PortId, Put)>,
    /// Where it is recorded what happens to packets, as a run records it of its drivers ([`EventKind::Arrive`](laxity_model::EventKind::Arrive), `NoBuffer`, `Receive`, `Transmit`, `Complete`): 32 bytes an event, which another thread reads. What finds no room is counted
    /// ([`EventReader::lost`](laxity_linux::EventReader::lost)). What is dropped at an interface's hook no driver sees, and nobody records.
    pub events: Option<EventLog>,
    /// So many activities may be [raised](super::Interface::raises); those of higher numbers are not.
    pub activities: u32,
}

impl Default for Options {
    /// 256 packets posted, 1,024 in all, at FIFO 97.
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            limits: Limits {
                posted: settings.posted,
                ..Limits::default()
            },
            settings,
            tail: None,
            priority: laxity_model::enforce::ranks::INTERRUPT,
            processor: None,
            most: None,
            costs: None,
            early: None,
            ports: Vec::new(),
            events: None,
            activities: 64,
        }
    }
}

/// How clients are found at the hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EarlyOptions {
    /// The most flows at a time.
    pub flows: u32,
    /// The most buffers that clients of flows have together: so much memory is posted for them alone, which no flood for anybody else can use up.
    pub buffers: u32,
    /// What becomes of packets that are of no such flow: they are the driver's ([`Rest::ClientZero`]), whose other clients have what they registered for, but nothing more specific than a flow; or the kernel's ([`Rest::Kernel`]), and then there are no others, and packets of a flow with options or extension headers of IP are the kernel's, too.
    pub rest: Rest,
}
