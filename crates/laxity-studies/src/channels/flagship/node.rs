//! laxity's own: a process for each host, which has its node; the applications are threads of it.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use laxity::channels::{
    Excess, HostId, Identity, KeyError, Listener, Listens, Name, Neighbour, Node, Own, Receiver,
    SecretKey, Sender, Setup, Spec, Told, Traffic,
};
use laxity::{now, sleep_until};
use laxity_model::{Grade, Instant, Span};
use serde::{Deserialize, Serialize};

use super::RATE;
use super::carry::{self, Arrival, REST, Receives, Sends};
use super::flows::{Flow, When};
use super::judge::DUE;
use super::part::{READY, told, when};
use super::sockets::PATIENCE;
use crate::peers::{Used, say};

/// Where nodes hear each other.
const PORT: u16 = 27_768;
/// The bounds that are asked for.
const CONTROL_WITHIN: Span = Span::from_millis(10);
const VIDEO_WITHIN: Span = Span::from_millis(33);
/// Whoever sends may have been kept from it himself, and then sends what was due meanwhile: so many messages at once of control and of video, and from there on a quarter more than he has in the long run. At just its own rate a flow would be behind for ever.
const BURSTS: [u32; 2] = [10, 3];
/// What a link may take of a frame that no host sees: it waits for the kernel's best effort, and for processors that all hosts and all that is beside them share. What takes longer is missed, whatever becomes of it.
const UNSEEN: Span = DUE;
/// In front of what a node's thread has used, in a line.
const USED: &str = "used ";

/// A host, and what of it is a process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Host {
    /// Which of them, from the near one on; and the far one.
    pub(super) host: u8,
    pub(super) last: u8,
    /// Whether nothing behind a host is slower than its links.
    pub(super) is_shaped: bool,
    /// What goes from the near one to the far one.
    pub(super) flows: Vec<Flow>,
    /// Where its node's thread is, by the kernel's number.
    pub(super) processor: usize,
}

/// They are there for a run, and everybody may know them.
fn key(host: u8) -> Result<SecretKey, KeyError> {
    SecretKey::from_text(&format!("{:064x}", u16::from(host) + 1))
}

fn spec(flow: Flow, over: Vec<HostId>) -> Result<Spec, Box<dyn Error>> {
    let (name, bytes) = (Name::new(flow.name())?, flow.bytes() as u32);
    // Five in the time of four.
    let stated = |burst| Traffic::new(bytes, (5, flow.period() * 4), burst);
    let due = |traffic, within| Spec {
        // It waits rather than that anything is dropped.
        excess: Excess::Block,
        ..Spec::new(name.clone(), over.clone(), traffic, within)
    };
    Ok(match flow {
        Flow::Control => due(stated(BURSTS[0])?, CONTROL_WITHIN),
        Flow::Video => due(stated(BURSTS[1])?, VIDEO_WITHIN),
        Flow::Bulk => Spec::best_effort(name, over, bytes)?,
    })
}

impl Sends for Sender {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.send_until(message, None).map_err(io::Error::other)
    }
}

impl Receives for Receiver {
    fn receive(&mut self, room: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
        loop {
            let told = Self::receive(self, room, Some(until)).map_err(io::Error::other)?;
            match told {
                None => return Ok(None),
                Some((Told::Message { .. }, length)) => return Ok(Some(length)),
                // The judge sees that by itself.
                Some((Told::Late { .. } | Told::Lost { .. }, _)) => {}
            }
        }
    }
}

/// An application's end of a flow.
enum End {
    Sends(Sender),
    Receives(Listener),
}

impl End {
    fn run(self, flow: Flow, when: When) -> io::Result<Vec<Arrival>> {
        match self {
            Self::Sends(mut sender) => {
                carry::send(flow, when, &mut sender)?;
                // What has not left when its channel is closed is gone.
                sleep_until(when.until + REST * 2);
                Ok(Vec::new())
            }
            Self::Receives(listener) => {
                let opened = listener.accept(Some(when.until));
                match opened.map_err(io::Error::other)? {
                    Some(mut receiver) => carry::receive(flow, when, &mut receiver),
                    None => Ok(Vec::new()),
                }
            }
        }
    }
}

impl Host {
    fn neighbour(&self, host: u8) -> Result<Neighbour, KeyError> {
        let [near, far] = [1, 2].map(|end| {
            let link = host.min(self.host);
            SocketAddr::from((Ipv4Addr::new(10, 0, link, end), PORT))
        });
        let (local, at) = if host > self.host {
            (near, far)
        } else {
            (far, near)
        };
        Ok(Neighbour {
            host: HostId(host.into()),
            local,
            at,
            key: key(host)?.public(),
            seal: true,
            rate: NonZeroU64::new(RATE).unwrap_or(NonZeroU64::MIN),
            overhead: 0,
            propagation: Span::ZERO,
            unseen: UNSEEN,
            own: Own::Class,
            is_shaped: self.is_shaped,
        })
    }

    fn setup(&self) -> Result<Setup, KeyError> {
        let before = self.host.checked_sub(1);
        let behind = Some(self.host + 1).filter(|behind| *behind <= self.last);
        let neighbours = before.into_iter().chain(behind);
        let neighbours = neighbours.map(|host| self.neighbour(host));
        let neighbours = neighbours.collect::<Result<_, _>>()?;
        let identity = Arc::new(Identity::new(key(self.host)?));
        Ok(Setup {
            processor: Some(self.processor),
            ..Setup::new(HostId(self.host.into()), identity, neighbours)
        })
    }

    /// The ends of flows that are here, open or listening.
    fn ends(&self, node: &Node) -> Result<Vec<(Flow, End)>, Box<dyn Error>> {
        let over = (1..=self.last).map(|host| HostId(host.into()));
        let over: Vec<HostId> = over.collect();
        let mut ends = Vec::new();
        for flow in self.flows.iter().copied() {
            let end = if self.host == 0 {
                End::Sends(node.open(&spec(flow, over.clone())?)?)
            } else if self.host == self.last {
                let largest = NonZeroU32::new(flow.bytes() as u32).unwrap_or(NonZeroU32::MIN);
                let (name, listens) = (Name::new(flow.name())?, Listens::to(largest));
                End::Receives(node.listen(name, listens, UNSEEN * u64::from(self.last))?)
            } else {
                continue;
            };
            ends.push((flow, end));
        }
        Ok(ends)
    }

    /// What the node's thread uses meanwhile.
    fn used(&self, when: When) -> io::Result<Used> {
        // The kernel keeps so much of a thread's name.
        let name = format!("channels of {}", HostId(self.host.into()));
        let name: String = name.chars().take(15).collect();
        sleep_until(when.from);
        let before = Used::by_named(&[&name])?;
        sleep_until(when.until);
        Ok(Used::by_named(&[&name])?.since(before))
    }

    /// Says that its node is there, is told when all are, and says when its ends are; what it has to tell at its end.
    ///
    /// # Errors
    ///
    /// Whatever the node fails with, and that nothing is enforced of what it grants.
    pub(super) fn run(&self) -> Result<String, Box<dyn Error>> {
        let node = Node::start(self.setup()?)?;
        say(READY)?;
        told()?;
        if !node.wait_for_neighbours(Some(now() + Span::from_secs(PATIENCE.as_secs())))? {
            return Err("a neighbour is not there".into());
        }
        let ends = self.ends(&node)?;
        let when = when()?;
        let (arrivals, used) = thread::scope(|scope| {
            let run = |(flow, end): (Flow, End)| scope.spawn(move || end.run(flow, when));
            let ends: Vec<ScopedJoinHandle<'_, _>> = ends.into_iter().map(run).collect();
            let used = self.used(when);
            let mut arrivals = Vec::new();
            for end in ends {
                let ended = end.join();
                arrivals.extend(ended.map_err(|_| io::Error::other("a thread has panicked"))??);
            }
            io::Result::Ok((arrivals, used?))
        })?;
        sleep_until(when.until + REST * 2);
        if let Grade::Unenforced { reason } = node.grade() {
            return Err(reason.into());
        }
        let used = used.service().as_nanos();
        Ok(format!("{}{USED}{used}\n", carry::lines(&arrivals)))
    }
}

/// What a node's thread has used, in nanoseconds, where a line tells that.
pub(super) fn of_line(line: &str) -> Option<u64> {
    line.strip_prefix(USED)?.trim_end().parse().ok()
}
