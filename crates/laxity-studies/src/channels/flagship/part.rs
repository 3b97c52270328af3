//! What a process of the flagship does: it sends or receives one flow, or best effort, by the kernel's own ways, or it is a host of laxity's own. Others' programs speak as it does (`tools/rivals/README.md`).

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::carry;
use super::flows::{Flow, When};
use super::node::Host;
use super::sockets::{self, Kind, Listening};
use crate::peers::say;

/// What a process says when it can be told when; and what comes last.
pub(super) const READY: &str = "ready";
pub(super) const END: &str = "end";

/// What it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Does {
    Send(Flow),
    Receive(Flow),
    /// Sends best effort.
    Flood,
    /// Counts what comes of that.
    Count,
}

/// What a process is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Process {
    Part(Part),
    Host(Host),
}

/// What a process is to do by the kernel's own ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) does: Does,
    pub(super) kind: Kind,
    /// Of who receives.
    pub(super) address: SocketAddr,
}

/// It is told a line.
pub(super) fn told() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line)
}

/// It says that it can be told when, and is told.
pub(super) fn when() -> io::Result<When> {
    say(READY)?;
    When::of_line(&told()?)
}

impl Part {
    /// What it has to tell at its end.
    fn run(self) -> io::Result<String> {
        match self.does {
            Does::Send(flow) => {
                let mut carrier = sockets::sender(self.kind, self.address)?;
                carry::send(flow, when()?, &mut *carrier)?;
                Ok(String::new())
            }
            Does::Receive(flow) => {
                let listening = Listening::at(self.kind, self.address)?;
                let when = when()?;
                let mut carrier = listening.messages(flow.bytes())?;
                let arrivals = carry::receive(flow, when, &mut *carrier)?;
                Ok(carry::lines(&arrivals))
            }
            Does::Flood => {
                sockets::flood(self.kind, self.address, when()?.until)?;
                Ok(String::new())
            }
            Does::Count => {
                let listening = Listening::at(self.kind, self.address)?;
                Ok(format!("{}\n", listening.count(when()?)?))
            }
        }
    }
}

/// Does what a process is to do, as it is told; tells at its end what has come, a message in a line.
///
/// # Errors
///
/// What it lacks, or lost: its address, the other process.
pub fn run(part: &str) -> Result<(), Box<dyn Error>> {
    let says = match serde_json::from_str(part)? {
        Process::Part(part) => part.run()?,
        Process::Host(host) => host.run()?,
    };
    Ok(say(&(says + END))?)
}
