//! Real-time channels, live: say how large messages are, how many come and when they are to be there, and have that from host to host, or a reasoned no.
//!
//! A host has a [`Node`]: one real-time thread with a socket of UDP to each neighbour, which decides what leaves when. Whoever sends [opens](Node::open) a channel, with the most that it is to carry and the hosts on its way; each of them
//! reserves what that takes of its processor, its link and its buffers, or refuses, and says what would fit. Whoever receives [listens](Node::listen) to its name. Messages go to the node and come from it by shared memory, without a system call while the other side is awake; each that comes is told with what was left
//! of its time, and each that does not come is told, too.
//!
//! ```
//! use laxity::channels::{Listens, Name, Spec, Traffic};
//! # use laxity::channels::{HostId, Identity, Neighbour, Node, Own, SecretKey, Setup};
//! use laxity::Span;
//! # use std::{net::UdpSocket, num::NonZeroU32, sync::Arc};
//! # let ports = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
//! # let at = ports.map(|port| port.local_addr().unwrap());
//! # let keys = [(); 2].map(|()| Identity::new(SecretKey::generate().unwrap()));
//! # let setup = |own: usize| Setup::new(HostId(own as u32), Arc::new(keys[own].clone()), vec![Neighbour {
//! #     host: HostId(1 - own as u32), local: at[own], at: at[1 - own], key: keys[1 - own].public(), seal: true, rate: 1_000_000_000.try_into().unwrap(),
//! #     overhead: 0, propagation: Span::ZERO, unseen: Span::ZERO, own: Own::None, is_shaped: true,
//! # }]);
//! # let (robot, base) = (Node::start(setup(0))?, Node::start(setup(1))?);
//! // On the base: whoever listens says how large messages may be.
//! let setpoint = Name::new("setpoint")?;
//! let listener = base.listen(setpoint.clone(), Listens::to(NonZeroU32::MIN.saturating_add(63)), Span::ZERO)?;
//!
//! // On the robot: 64 bytes, 1,000 times a second, each there within 10 ms.
//! robot.wait_for_neighbours(None)?;
//! let traffic = Traffic::new(64, (1, Span::from_millis(1)), 1)?;
//! let mut sender = robot.open(&Spec::new(setpoint, vec![HostId(1)], traffic, Span::from_millis(10)))?;
//! assert!(sender.granted().bound() <= Span::from_millis(10));
//! sender.send(b"20 degrees")?;
//!
//! let mut receiver = listener.accept(None)?.expect("nobody gives up");
//! let mut message = [0; 64];
//! let (told, length) = receiver.receive(&mut message, None)?.expect("nobody gives up");
//! assert_eq!(&message[..length], b"20 degrees", "{told:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is decided is [`laxity_model::channels`]'; what is on the wire, [`laxity_net::channels`]'.
//!
//! # Grades
//!
//! [`Node::grade`] says whether the node's thread is real-time and each of its links is [owned](Own): else nothing that is granted is enforced, and why.
//!
//! # Limits
//!
//! A node is a thread of one process; applications of others reach it by a [`Server`], each as a [`Client`]. It works handlers off where it is called, without an executor.

mod client;
mod core;
mod ends;
mod error;
mod inward;
mod listening;
mod notes;
mod outward;
mod server;
mod serving;
mod setup;
mod spare;
mod way;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Waker;
use std::time::{SystemTime, UNIX_EPOCH};

use laxity_linux::host::alone::Futex;
use laxity_linux::host::alone::served::{Bedside, Served};
use laxity_linux::net::Stirs;
pub use laxity_linux::net::egress::Own;
use laxity_linux::os::clock;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::base::bell::Bell;
use laxity_model::channels::admission::{Costs, Host};
pub use laxity_model::channels::admission::{ProcessorCosts, Traffic, TrafficError};
pub use laxity_model::channels::asked::{Asked, Fits, Name, Scarce, Shortage};
pub use laxity_model::channels::clocks::{Delivered, Place, Timeliness};
use laxity_model::channels::handler::{self, Looks};
use laxity_model::channels::ring::Side;
use laxity_model::channels::signalling::node::Listed;
pub use laxity_model::channels::signalling::{Cause, ChannelId, HostId, LinkId, Refusal};
use laxity_model::channels::signalling::{Terms, node as signalling};
pub use laxity_model::channels::source::Excess;
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Grade, Instant, Span};
use laxity_net::channels::frame::{Carrier, Cipher, LONGEST, SIGNAL_PAYLOAD};
pub use laxity_net::channels::local::{Spec as Wanted, User, Users};
pub use laxity_net::channels::node::LinkCounts;
use laxity_net::channels::node::{self, Handlers, Link, Opening, Sends, Trust};
pub use laxity_net::channels::path::{Began, Came, Ended, Lane, Packets};
use laxity_net::channels::session::{self, Budget, Peer};
pub use laxity_net::channels::session::{Identity, KeyError, PublicKey, SecretKey};
pub use laxity_net::channels::told::Told;
use laxity_net::questions::{Answer, Questions};

pub use self::client::Client;
pub use self::ends::{Loan, Receiver, SendError, Sender};
pub use self::error::Error;
pub use self::listening::Listener;
pub use self::server::{Book, Known, Server};
pub use self::setup::{Listens, Neighbour, Setup, Spec};

use self::core::Core;
use self::serving::Serving;
use self::way::Way;
use crate::doctor::Diagnosis;
use crate::reserve::lock_memory_now;

/// With which number a channel is declined to whose name nobody listens.
pub const DECLINED_NOBODY: u32 = 1;
/// And one whose messages are larger than whoever listens takes.
pub const DECLINED_LARGE: u32 = 2;
/// And one for which whoever listens has no room.
pub const DECLINED_BUSY: u32 = 3;

/// What was granted: no message takes longer, from its logical arrival at the first host until it is at the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The bound of each host on the way, the first one first, with the link behind it.
    pub bounds: Vec<Span>,
    /// Of all links between.
    pub propagation: Span,
}

impl Granted {
    /// All of them together.
    #[must_use]
    pub fn bound(&self) -> Span {
        let mut bounds = self.bounds.iter();
        let all = bounds.try_fold(self.propagation, |sum, one| sum.checked_add(*one));
        all.unwrap_or(Span::MAX)
    }
}

/// What asks a node's thread.
pub(crate) struct Asks {
    questions: Questions<Core>,
    process: u32,
    waker: Waker,
    /// Rung when a neighbour comes or goes.
    neighbours: Bell,
}

impl Asks {
    fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Answer<R> {
        if std::process::id() != self.process {
            // In a child of the process that has the node: there nobody answers.
            self.questions.end();
        }
        let answer = self.questions.ask(question);
        self.waker.wake_by_ref();
        answer
    }

    fn take(&self) -> Option<laxity_net::questions::Question<Core>> {
        self.questions.take()
    }

    fn neighbours_changed(&self) {
        self.neighbours.ring(&Futex);
    }

    fn is_any(&self) -> bool {
        self.questions.is_any()
    }

    fn end(&self) {
        self.questions.end();
        self.neighbours_changed();
    }
}

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asks").finish_non_exhaustive()
    }
}

/// A host's node, and its thread. Dropped, its channels end, and its links are as they were before.
pub struct Node {
    served: Served,
    asks: Arc<Asks>,
    setup: Setup,
    /// Why nothing is enforced on its links.
    lacks: Vec<String>,
    memory: Result<laxity_linux::os::memory::MemoryLock, Diagnosis>,
}

impl Node {
    /// Starts a host's node, in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// [`Error`]. That its thread is not real-time, or a link is not owned, is none: its [grade](Self::grade) says so.
    pub fn start(setup: Setup) -> Result<Self, Error> {
        let memory = lock_memory_now();
        let bedside = Bedside::new()?;
        let asks = Arc::new(Asks {
            questions: Questions::default(),
            process: std::process::id(),
            waker: bedside.waker(),
            neighbours: Bell::default(),
        });
        let opened: Vec<(Way, Vec<String>)> = (setup.neighbours.iter())
            .map(|to| Way::open(to.local, to))
            .collect::<Result<_, _>>()?;
        let (ways, lacks): (Vec<Way>, Vec<Vec<String>>) = opened.into_iter().unzip();
        let node = made(&setup, &ways)?;
        let stirs = Stirs::of(ways.iter().map(Way::link))?;
        let core = Core::new(node, ways, stirs, Arc::clone(&asks));
        let serving = Serving {
            core,
            asks: Arc::clone(&asks),
        };
        let name = format!("channels of {}", setup.host);
        let driver = laxity_model::admission::Driver {
            name: format!("node of real-time channels, host {}", setup.host),
            work: None,
        };
        let thread = (setup.priority, setup.processor);
        Ok(Self {
            served: Served::start((&name, driver), thread, bedside, serving)?,
            asks,
            setup,
            lacks: lacks.into_iter().flatten().collect(),
            memory,
        })
    }

    /// Waits until all neighbours are there, no longer than until then; whether they are. Before, no channel opens over their links.
    ///
    /// # Errors
    ///
    /// The node has ended.
    pub fn wait_for_neighbours(&self, until: Option<Instant>) -> Result<bool, Error> {
        let are_there = || match self.links() {
            Ok(links) => links.iter().all(|(is_up, _)| *is_up).then_some(Ok(())),
            Err(ended) => Some(Err(ended)),
        };
        let found = self.asks.neighbours.wait_for(&Futex, until, are_there);
        found.transpose().map(|there| there.is_some())
    }

    /// Opens a channel that begins here, and waits until it is granted. Whoever drops what this returns closes the channel, and what has not left by then is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], with what would fit; or the node has ended.
    pub fn open(&self, spec: &Spec) -> Result<Sender, Error> {
        let opening = opening(self.setup.host, spec);
        let (asked, sends) = (opening.asked.clone(), &opening.sends);
        let shape = ends::shape(sends.room.get(), spec.traffic.largest(), 0)?;
        let [own, nodes] = ends::rings(shape, Side::Sender)?;
        let (settles, settled) = ends::waits();
        let begun =
            (self.asks).ask(move |core: &mut Core| core.open(opening, nodes.receiver(), settles));
        let life = begun.wait()?;
        let granted = settled.recv().map_err(|_| Error::Ended)??;
        let granted = (granted, self.grade());
        Ok(Sender::new(own.sender(), life, Some(asked), granted))
    }

    /// Listens to a name: channels that are opened under it are accepted there. `unseen` is what all links on their way together may take of a frame that no host sees, as in a switch; [`Span::MAX`] where that is not known, and then no message is known to be in time.
    ///
    /// # Errors
    ///
    /// [`Error::Taken`], no memory, or the node has ended.
    pub fn listen(&self, name: Name, listens: Listens, unseen: Span) -> Result<Listener, Error> {
        Listener::new(&self.asks, name, (listens, unseen))
    }

    /// All channels that begin, pass or end here.
    ///
    /// # Errors
    ///
    /// The node has ended.
    pub fn channels(&self) -> Result<Vec<Listed>, Error> {
        let listed = (self.asks).ask(|core: &mut Core| core.node.signalling().channels().collect());
        Ok(listed.wait()?)
    }

    /// For each link in turn whether its neighbour is there, and what came of its frames.
    ///
    /// # Errors
    ///
    /// The node has ended.
    pub fn links(&self) -> Result<Vec<(bool, LinkCounts)>, Error> {
        let asked = self.asks.ask(|core: &mut Core| {
            let links = (0..core.ways.len() as u16).map(LinkId);
            let told = |link| {
                let counts = core.node.link_counts(link).unwrap_or_default();
                (core.node.signalling().is_up(link), counts)
            };
            links.map(told).collect()
        });
        Ok(asked.wait()?)
    }

    /// How often its thread has looked at all that there is to do: a node that has nothing to do looks for heartbeats, some times in 50 ms.
    ///
    /// # Errors
    ///
    /// The node has ended.
    pub fn looks(&self) -> Result<u64, Error> {
        Ok(self.asks.ask(|core: &mut Core| core.looks).wait()?)
    }

    /// Whether its thread has been as it was asked for until now, and its links are owned; else why not. A few system calls.
    pub fn grade(&self) -> Grade {
        match (self.lacks.first(), self.served.grade()) {
            (Some(reason), Grade::Enforced) => Grade::Unenforced {
                reason: reason.clone(),
            },
            (_, grade) => grade,
        }
    }

    /// Why nothing is enforced on its links, each reason; none where all are owned.
    #[must_use]
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }

    /// Whether all memory of the process is locked; else why not, and what mends that.
    pub fn memory(&self) -> Result<(), &Diagnosis> {
        self.memory.as_ref().map(drop)
    }

    /// What it was started with.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }
}

/// A channel from a host, as its node is asked for it.
fn opening(host: HostId, spec: &Spec) -> Opening {
    let route = std::iter::once(host).chain(spec.over.iter().copied());
    Opening {
        asked: Asked {
            name: spec.name.clone(),
            traffic: spec.traffic,
            discard: spec.discard,
        },
        route: route.collect(),
        within: spec.within,
        sends: Sends {
            excess: spec.excess,
            room: spec.traffic.burst().saturating_add(spec.room),
            largest: spec.traffic.largest().get(),
            is_due: spec.is_due,
        },
    }
}

const fn carrier(to: &Neighbour) -> Carrier {
    match to.at.is_ipv4() {
        true => Carrier::UdpIpv4,
        false => Carrier::UdpIpv6,
    }
}

/// S, which all of these links carry.
fn payload(setup: &Setup, ways: &[Way]) -> Result<NonZeroU32, Error> {
    let least = setup
        .payload
        .map_or(0, NonZeroU32::get)
        .max(SIGNAL_PAYLOAD.get());
    let mut payload = None::<u32>;
    for (to, way) in setup.neighbours.iter().zip(ways) {
        let beside = carrier(to).overhead(to.seal) - carrier(to).headers();
        let largest = way.mtu().min(LONGEST).checked_sub(beside);
        let largest = largest.filter(|largest| *largest >= least as usize);
        let largest = largest.ok_or(Error::NoFrames(to.at, way.mtu()))? as u32;
        payload = Some(payload.map_or(largest, |before| before.min(largest)));
    }
    let narrowest = payload.and_then(NonZeroU32::new).ok_or(Error::Alone)?;
    Ok(setup.payload.unwrap_or(narrowest))
}

/// The node of these links, without I/O.
fn made(setup: &Setup, ways: &[Way]) -> Result<node::Node<outward::Bytes, Dedicated>, Error> {
    let both = || setup.neighbours.iter().zip(ways);
    let payload = payload(setup, ways)?;
    let processor = Costs::Processor(setup.costs);
    let host = Host::new(payload, setup.buffers, setup.horizon);
    let mut host = host.through(processor, Dedicated, By::Deadline)?;
    let mut links = Vec::new();
    let now = clock::now();
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    for ((to, way), id) in both().zip((0..).map(LinkId)) {
        let headers = carrier(to).overhead(to.seal) as u32;
        let frame = (way.mtu() + carrier(to).headers()) as u32 + u32::from(to.overhead);
        let costs = Costs::Link(to.costs(headers, way::REACH as u32, frame));
        host = host.over(id, costs, Dedicated, By::Deadline)?;
        // What the neighbour has handed over waits in its kernel as what is handed over here does.
        let queued = Span::from_nanos(costs.never_due(payload)?.as_nanos());
        links.push(Link {
            neighbour: signalling::Neighbour {
                host: to.host,
                propagation: to.propagation,
            },
            trust: trust(setup, to, (id, wall.as_nanos() as u64), now)?,
            reach: way::REACH,
            early: Early::Held {
                horizon: setup.horizon,
            },
            by: By::Deadline,
            rate: to.rate.get(),
            overhead: headers + u32::from(to.overhead),
            unseen: to.unseen.checked_add(queued).unwrap_or(Span::MAX),
        });
    }
    let all = node::Setup {
        host: setup.host,
        incarnation: wall.as_secs() as u32,
        terms: Terms::default(),
        channels: setup.channels,
        best_effort: setup.best_effort,
        budget: Budget::new(100, 16).expect("neither is 0"),
        handlers: Handlers::AtOnce,
        looks: Looks::After(setup.costs.packets_at_once),
        costs: handler::Costs::default(),
    };
    Ok(node::Node::new(all, links, host, now)?)
}

fn trust(
    setup: &Setup,
    to: &Neighbour,
    (link, stamp): (LinkId, u64),
    now: Instant,
) -> Result<Trust, Error> {
    if !to.seal {
        return Ok(Trust::Checked);
    }
    let neighbour = session::Neighbour {
        key: to.key,
        number: link.0.into(),
        cipher: Cipher::default(),
    };
    let identity = Arc::clone(&setup.identity);
    let peer = Peer::new(identity, neighbour, session::Terms::default(), stamp, now);
    let peer = peer.map_err(|same| Error::Same(to.at, same))?;
    Ok(Trust::Sealed(Box::new(peer)))
}
