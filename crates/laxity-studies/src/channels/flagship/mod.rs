//! The flagship: a control loop and a camera between two hosts beside best effort that takes all it gets, over a link of 100 Mbit/s, behind a switch's port of that rate, and over relays; carried by whoever can.
//!
//! * [`flows`]: what is sent; [`carry`]: the seam, and the loops of both ends; [`judge`]: what has become of it.
//! * [`sockets`]: UDP, TCP, and best effort; `node`: laxity's own; `rivals`: others' programs; [`part`]: a process; [`shown`]: the table, and `claims`.
//!
//! All runs on this machine: the hosts are namespaces ([`laxity::net::world`]), made anew for each run, since stale fragments of one would lose the next one's messages.

pub mod carry;
mod claims;
pub mod flows;
pub mod judge;
mod node;
pub mod part;
mod processes;
mod rivals;
pub mod shown;
pub mod sockets;

use laxity::net::PairError;
use laxity::net::world::{Between, Queues, World};
use laxity_lab::bench::{Request, Runner};
use laxity_lab::runner::RunError;
use laxity_model::{HostError, Span};

use super::TEXT;
use judge::Judged;
use processes::Processes;

/// Of every link.
pub const RATE: u64 = 100_000_000;
/// How often all is run at full length.
const ROUNDS: u32 = 3;

/// Who carries the messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Who {
    /// The kernel, by a datagram each, or a stream.
    Udp,
    /// The same.
    Tcp,
    /// laxity's nodes, one at each host.
    Channels,
    /// zenoh with the priorities that it has, real-time for control and video, blocked rather than dropped.
    Zenoh,
    /// The same, with a small send buffer and batches, and longer queues for these priorities.
    ZenohTuned,
    /// CycloneDDS with transport priorities.
    Cyclone,
}

impl Who {
    /// By which words it is called.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Channels => "channels",
            Self::Zenoh => "zenoh",
            Self::ZenohTuned => "zenoh-tuned",
            Self::Cyclone => "cyclone",
        }
    }

    /// Whose program it is, and how that is set up; `None` where it is ours.
    const fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Udp | Self::Tcp | Self::Channels => None,
            Self::Zenoh => Some(("zenoh", "installed")),
            Self::ZenohTuned => Some(("zenoh", "tuned")),
            Self::Cyclone => Some(("cyclone", "installed")),
        }
    }
}

/// What is beside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Beside {
    /// Datagrams of others, 150 Mbit/s.
    Udp,
    /// A stream of others'.
    Tcp,
    /// As many messages as the datagrams, by the same session or node, at its least priority.
    Own,
}

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Who carries.
    pub who: Who,
    /// Over what.
    pub between: Between,
    /// How frames wait for a link: where it is owned, control and video are in the class of channels, and whoever sends and receives them has the FIFO priority of a node, or the next one where a node carries them.
    pub queues: Queues,
    /// Beside what.
    pub beside: Beside,
    /// For how long.
    pub length: Span,
}

/// What became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// It was run.
    Ran(Box<Outcome>),
    /// There is no such program, or no such queue, and why.
    Missing(String),
    /// It failed in this run, and at what.
    Failed(String),
}

/// What was seen in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Control and video.
    pub flows: [Judged; 2],
    /// The same without those messages on whose way a witness saw that a processor was disturbed.
    pub undisturbed: [Judged; 2],
    /// What came of best effort at the far end of that link where least came, in bits a second of payload.
    pub best_effort: u64,
    /// Where nodes carry, how much of a processor that one's thread took that took most, in parts per million.
    pub node_ppm: Option<u64>,
}

/// All over one link, and some of them behind a switch and over relays.
fn full() -> impl Iterator<Item = (Who, Between, Queues, Beside)> {
    use Queues::{Class, Fair, Fifo};
    use Who::{Cyclone, Tcp, Udp, Zenoh, ZenohTuned};
    let each = [
        (Udp, Fifo),
        (Udp, Fair),
        (Udp, Class),
        (Tcp, Fifo),
        (Tcp, Class),
        (Zenoh, Fifo),
        (Zenoh, Class),
        (ZenohTuned, Fifo),
        (ZenohTuned, Class),
        (Cyclone, Fifo),
        (Cyclone, Class),
    ];
    let others = [Beside::Udp, Beside::Tcp].into_iter();
    let others = others
        .flat_map(move |beside| each.map(|(who, queues)| (who, Between::Wire, queues, beside)));
    let has_session = |(who, _): &(Who, Queues)| who.program().is_some();
    let own = each.into_iter().filter(has_session);
    let own = own.map(|(who, queues)| (who, Between::Wire, queues, Beside::Own));
    let further = [Between::Switch, Between::Relays(3)].into_iter();
    let further = further.flat_map(|between| {
        let few = [
            (Udp, Fifo),
            (Udp, Class),
            (Tcp, Class),
            (ZenohTuned, Class),
            (Cyclone, Class),
        ];
        few.map(|(who, queues)| (who, between, queues, Beside::Udp))
    });
    others.chain(own).chain(further).chain(channels())
}

/// laxity's own: over one link beside all that there is, behind a switch beside that which takes what it gets, and over relays.
fn channels() -> impl Iterator<Item = (Who, Between, Queues, Beside)> {
    let over = [
        (Between::Wire, Beside::Udp),
        (Between::Wire, Beside::Tcp),
        (Between::Wire, Beside::Own),
        (Between::Switch, Beside::Tcp),
        (Between::Relays(3), Beside::Udp),
    ];
    let over = over.into_iter();
    over.map(|(between, beside)| (Who::Channels, between, Queues::Node, beside))
}

/// laxity's own, and what the kernel carries by itself, which others are compared with.
fn short() -> impl Iterator<Item = (Who, Between, Queues, Beside)> {
    let loads = [Beside::Udp, Beside::Tcp].into_iter();
    let queues = [Queues::Fifo, Queues::Class];
    let kernel = loads
        .flat_map(move |beside| queues.map(|queues| (Who::Udp, Between::Wire, queues, beside)));
    kernel.chain(channels())
}

/// What is run on this machine, in turn.
pub(super) fn cases(request: &Request) -> Result<Vec<Case>, RunError> {
    let seconds = request.option(&TEXT, "seconds")?;
    let all: Vec<_> = match request.full {
        true => full().collect(),
        false => short().collect(),
    };
    let rounds = request
        .repeats
        .unwrap_or(if request.full { ROUNDS } else { 1 });
    let case = |(who, between, queues, beside)| Case {
        who,
        between,
        queues,
        beside,
        length: Span::from_secs(seconds),
    };
    let rounds = (0..rounds).flat_map(|_| all.iter().copied().map(case));
    Ok(rounds.collect())
}

/// Runs it.
///
/// # Errors
///
/// [`HostError::CannotRun`] in the twin, and where no such network may be made; [`HostError::Failed`] where one of our own processes failed. Nothing is left running.
pub fn run(host: &mut Runner<'_>, case: Case) -> Result<Seen, HostError> {
    if !host.is_live() {
        let none = "the twin has no other programs' hosts";
        return Err(HostError::CannotRun(none.into()));
    }
    if let Some((name, _)) = case.who.program()
        && let Err(why) = rivals::program(name)
    {
        return Ok(Seen::Missing(why));
    }
    let world = match World::new(case.between, RATE, case.queues) {
        Ok(world) => world,
        Err(why @ PairError::Refused(..)) if case.queues == Queues::Fair => {
            return Ok(Seen::Missing(why.to_string()));
        }
        Err(why) => {
            let why = format!("{why}; {}", why.remedy());
            return Err(HostError::CannotRun(why));
        }
    };
    let ran = Processes::start(host, &world, case)?.run(host);
    match ran {
        // What others' programs fail with is theirs.
        Err(HostError::Failed(why)) if case.who.program().is_some() => Ok(Seen::Failed(why)),
        ran => ran.map(|outcome| Seen::Ran(Box::new(outcome))),
    }
}
