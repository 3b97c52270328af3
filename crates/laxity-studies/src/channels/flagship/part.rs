//! What a process of the flagship does: it sends or receives one flow, or best effort, by the kernel's own ways. Others' programs speak as it does (`tools/rivals/README.md`).

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::carry;
use super::flows::{Flow, When};
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

/// What a process is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) does: Does,
    pub(super) kind: Kind,
    /// Of who receives.
    pub(super) address: SocketAddr,
}

/// It says that it can be told when, and is told.
fn when() -> io::Result<When> {
    say(READY)?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    When::of_line(&line)
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
    let part: Part = serde_json::from_str(part)?;
    Ok(say(&(part.run()? + END))?)
}
