//! What can go wrong with an interface.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use laxity_linux::host::alone::StartError;
use laxity_linux::net::OpenError;
use laxity_model::nif::filter::FilterError;
use laxity_model::nif::host::NotAHosts;
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::table::Overlap;
use laxity_net::driver::{DriverError, RegisterError};
use laxity_net::stack::StackError;

use super::flow::FlowOptions;

/// Why nothing is asked of an interface any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ended {
    /// It was closed.
    Closed,
    /// It was deleted.
    Gone,
    /// Something panicked in its driver's thread that was none of the clients, such as what was asked of it.
    Panicked,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the interface was closed",
            Self::Gone => "the interface was deleted",
            Self::Panicked => "the driver of the interface has panicked",
        })
    }
}

/// What was asked of an interface is not so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened, and what mends that.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has not so much memory, or there are more clients than numbers.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// There is no thread for its driver.
    #[error("the driver has no thread: {0}")]
    Start(#[from] StartError),
    /// There is no descriptor by which other threads wake that.
    #[error("the driver cannot be woken: {0}")]
    NoAlarm(io::Error),
    /// A filter is not in the language.
    #[error("the filter: {0}")]
    Filter(#[from] FilterError),
    /// A client was not registered.
    #[error(transparent)]
    Register(#[from] RegisterError<Overlap<ClientId>>),
    /// Clients are to be found early where the interface has no hook for that.
    #[error("{0} finds no clients early: `xdp:NAME` does")]
    NotEarly(String),
    /// As many flows or buffers of theirs are there as were asked for when the interface was opened.
    #[error("there is room for no more flows found early, or for no more buffers of theirs")]
    TooManyFlows,
    /// A client of a flow with more buffers than it may have.
    #[error("a client of a flow has {most} buffers at the most, and not {0}", most = FlowOptions::MOST_BUFFERS)]
    TooManyBuffers(u32),
    /// A client of a flow that could never have a packet.
    #[error("a client of a flow has one buffer at least: without any it never has a packet")]
    NoBuffers,
    /// No packet has port 0.
    #[error("a flow has no end {0}: its port is from 1 to 65535")]
    FlowPort(SocketAddr),
    /// No packet that can be answered has such an end.
    #[error(
        "a flow is between two hosts: {0}; what goes to many of them is had by `register`, with a filter such as `udp dst port 5004 and dst host 224.0.0.1`"
    )]
    FlowEnd(#[from] NotAHosts),
    /// The kernel refuses a flow.
    #[error("the flow cannot be found at the hook: {0}")]
    Hook(io::Error),
    /// What is of no flow goes to the kernel, so nobody else can have it.
    #[error("what is of no flow is the kernel's here, and no other client's")]
    OnlyFlows,
    /// A host on an interface that is the kernel's, too, may not have an address of the kernel's: both would answer.
    #[error(
        "{0} is the kernel's address, which would answer what comes for it, too; remedy: take one that nobody has in that network, or take the kernel's away (`ip address del {0}/LENGTH dev NAME`)"
    )]
    KernelsAddress(IpAddr),
    /// Nobody tells which those are.
    #[error(
        "the kernel has the interface, too, and which addresses are its own cannot be read: {0}; remedy: mount `/proc`"
    )]
    KernelsUnknown(io::Error),
    /// There is no TCP/IP as it was asked for.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// There is no thread for TCP/IP.
    #[error("TCP/IP has no thread: {0}")]
    NoThread(io::Error),
    /// There is no driver any more.
    #[error("{0}")]
    Ended(Ended),
}
