//! The live interfaces of the network interface framework: each a [`Link`](laxity_model::nif::link::Link).
//!
//! * [`UdpLink`]: Ethernet in UDP between two sockets, for which nobody needs a right;
//! * [`TapLink`]: a TAP interface, or a TUN, which carries IP alone;
//! * [`PacketLink`]: a packet socket with rings (`AF_PACKET`), beside the kernel's own stack;
//! * [`XdpLink`]: `AF_XDP` in copy mode, with an XDP program that is put together here and stamps each packet at the hook, and may find its client there
//!   too ([`xdp::early`]).
//!
//! A link can be [owned](egress): then its frames have a class of their own, ahead of the kernel's other traffic. [`pair`] makes two that are joined, [`world`] a small network of hosts. [`open`] takes any of them by its [name](InterfaceName). None waits: each has a descriptor to poll. Three copy each packet once into the
//! memory that was posted ([`Copied`]); `AF_XDP` hands out the memory that the kernel wrote.

pub mod addresses;
mod bpf;
mod call;
mod copied;
pub mod egress;
mod error;
mod interface;
pub mod names;
pub mod packet;
pub mod pair;
mod stirs;
mod tap;
pub(crate) mod tried;
mod udp;
mod unfinished;
pub mod way;
pub mod world;
pub mod xdp;

pub use copied::Copied;
pub use error::{OpenCause, OpenError};
pub use interface::{Shown, interface_names, shown};
pub use names::{AnyLink, AnyMemory, CopyingLink, InterfaceName, Opened, open};
pub use packet::PacketLink;
pub use stirs::Stirs;
pub use tap::TapLink;
pub use udp::UdpLink;
pub use xdp::{XdpLink, umem::UmemFrame};

/// How an interface is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The most packets that memory may be posted for at a time, and so many the kernel keeps where it has a ring of its own; 1 or more, and rounded up to a power of two there.
    pub posted: usize,
    /// The most frames that may be below the driver, out of its reach; 1 or more.
    pub reach: usize,
    /// All packets that there may be memory for at a time, where the interface has memory of its own (`AF_XDP`).
    pub memory: usize,
    /// Whether the other end, if it is a kernel, may leave checksums and segments, and they may be left to it: by TAP, TUN and packet sockets. Each packet then takes memory of 64 KiB.
    pub segments: bool,
    /// The class of an owned link by which its frames leave; then the most that `reach` says are below it wherever in the kernel, and each is told as sent when it has left. Packet sockets and
    /// UDP can; others are refused with it. `None`: packet sockets send past all queues, and UDP tells of a frame as sent when the kernel has it.
    pub class: Option<egress::ClassId>,
    /// Whether the interface takes frames that are addressed to others, too, for as long as the link is open: packet sockets and `AF_XDP` ask the kernel for that, which counts who does, so that
    /// closing the link takes it from nobody else. TAP, TUN, UDP and emulated interfaces see all frames, and have nothing to turn on.
    pub promiscuous: bool,
}

impl Default for Settings {
    /// 256 packets posted and 64 frames below, of 1,024 together.
    fn default() -> Self {
        Self {
            posted: 256,
            reach: 64,
            memory: 1_024,
            segments: false,
            class: None,
            promiscuous: false,
        }
    }
}

impl Settings {
    fn reach(&self) -> usize {
        self.reach.max(1)
    }
}
