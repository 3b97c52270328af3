//! TCP/IP as a client of the framework: IPv4 and IPv6, ICMP, UDP and TCP by smoltcp, above any [`Link`]'s driver.
//!
//! A [`Stack`] is the driver's default client (§3.2's late one): it answers for this host's addresses, does ARP and neighbour discovery for all, and takes
//! connections that begin. Each connection then has a client of its own (§5's early one), with its buffers, its queue, its lock and an interface of
//! smoltcp of its own. A connection that is taken is registered **before** its first packet is looked at: the peer sends nothing more before it has its answer, so
//! nothing that waits in the late queue is overtaken.
//!
//! Nothing here has a thread. Whoever has the stack calls [`Stack::poll`] when its driver has taken packets and when the instant that it told has come, or has [`Stack::serve`] do so; a connection is worked
//! on in the calls of its own socket, by whatever thread calls, at that thread's priority. What nobody calls does not work: who keeps a stream and
//! does nothing with it is to [`poll`](crate::sockets::TcpStream::poll) it.
//!
//! * Fragments are dropped, not put together.
//! * A packet whose checksum was [left](laxity_model::nif::link::Left) begun is accepted; all others are checked.
//! * Where the interface [finishes](Link::finishes) what is left to it, checksums of TCP and the cutting into segments of IPv4 are. No congestion window is kept.

mod arrival;
mod edge;
mod endpoint;
mod late;
mod moved;
mod neighbours;
mod registrar;
mod states;
mod wire;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use laxity_model::base::bell::Bell;
use laxity_model::base::random::SplitMix64;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::host::{self, NotAHosts};
use laxity_model::nif::link::{Link, Medium, Memory};
use laxity_model::nif::registry::{ClientId, Demultiplex};
use laxity_model::{Instant, PortId, Span};
use smoltcp::wire::IpCidr;

pub(crate) use arrival::Arrivals;
pub(crate) use endpoint::Endpoint;
pub use late::StackAccount;
pub(crate) use late::{Connection, Listening};
pub use moved::{Count, Moved};
pub use neighbours::NeighbourAccount;
use neighbours::Neighbours;
use registrar::{Registrar, Registration, Ringing, ask};
pub use wire::Hardware;
use wire::Seen;
pub(crate) use wire::Tuple;

use crate::buffers::{Pool, PoolSize, Sleeper};
use crate::clients::early;
use crate::driver::{Driver, Interest, RegisterError};
use crate::lock;

/// What a host is, and how much each of its connections may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Its hardware address.
    pub hardware: Hardware,
    /// Its own addresses, at most two, each with the bits that all of its network have.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Who is asked to carry on what is for no network of its own, at most one for each kind of address.
    pub gateways: Vec<IpAddr>,
    /// Neighbours whose hardware addresses are known from the beginning on and for ever, so that none of these is asked for.
    pub neighbours: Vec<(IpAddr, Hardware)>,
    /// The longest packet behind an Ethernet header, in bytes.
    pub mtu: usize,
    /// Buffers of the late client, and of each connection, to receive into; as many again are to send from.
    pub buffers: u32,
    /// Bytes of each of a TCP connection's two buffers. What its peer may have under way to it is also no more than its `buffers` hold.
    pub window: usize,
    /// Packets that one poll takes, and that it sends: what bounds it.
    pub per_poll: usize,
    /// Initial sequence numbers and ports follow from it: for each start of a host another.
    pub seed: u64,
    /// A port that is rung when something arrives for the stack or any of its sockets, for bodies.
    pub rings: Option<PortId>,
    /// How long a peer may leave data or its part of a handshake without an answer.
    pub patience: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hardware: [2, 0, 0, 0, 0, 1],
            addresses: Vec::new(),
            gateways: Vec::new(),
            neighbours: Vec::new(),
            mtu: 1500,
            buffers: 64,
            window: 64 * 1024,
            per_poll: 32,
            seed: 1,
            rings: None,
            patience: Span::from_secs(60),
        }
    }
}

impl Config {
    /// Who is next on the way there: itself, if it is of a network of ours.
    fn next_hop(&self, to: IpAddr) -> Option<IpAddr> {
        let mut own = self.addresses.iter();
        if own.any(|(own, bits)| IpCidr::new((*own).into(), *bits).contains_addr(&to.into())) {
            return Some(to);
        }
        let mut gateways = self.gateways.iter().copied();
        gateways.find(|gateway| gateway.is_ipv4() == to.is_ipv4())
    }

    fn check(&self) -> Result<(), StackError> {
        let is_wrong = |(address, bits): &(IpAddr, u8)| match address {
            IpAddr::V4(_) => *bits > 32,
            IpAddr::V6(_) => *bits > 128,
        };
        if self.addresses.is_empty() || self.addresses.len() > 2 {
            return Err(StackError::Config("a stack has one or two addresses"));
        }
        if self.addresses.iter().any(is_wrong) {
            return Err(StackError::Config("more bits than an address has"));
        }
        let has_v6 = self.addresses.iter().any(|(address, _)| address.is_ipv6());
        for (address, _) in &self.addresses {
            host::check(*address, &self.addresses)?;
        }
        if self.mtu < if has_v6 { 1280 } else { 576 } || self.mtu > 65_535 {
            return Err(StackError::Config(
                "an MTU of 576 (IPv6: 1280) to 65535 bytes",
            ));
        }
        if self.buffers == 0 || self.window < 2048 || self.per_poll == 0 {
            return Err(StackError::Config(
                "no buffers, no window, or no packets a poll",
            ));
        }
        Ok(())
    }
}

/// Why there is no stack.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StackError {
    /// It cannot be as it was asked for.
    #[error("{0}")]
    Config(&'static str),
    /// No host has such an address.
    #[error(transparent)]
    Address(#[from] NotAHosts),
    /// What nobody else registers for is another's already.
    #[error(
        "the interface has a stack already, or another default client (client {0}), and no second one; remedy: end that first, or give it both addresses"
    )]
    Taken(ClientId),
    /// The driver refuses its client.
    #[error("{0}")]
    Refused(String),
}

/// Of IPv6 and TCP, in bytes.
const HEADERS: usize = 60;

/// The clock of all instants, as this host reads it.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What each of a stack's connections has of it.
pub(crate) struct Common<M: Memory + 'static> {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) sleeper: Sleeper,
    /// The interface finishes checksums, and cuts segments.
    finishes: bool,
    /// Who is at the other end of it has every packet: there are no neighbours to be asked for, and none asks.
    is_bare: bool,
    registrar: Box<dyn Registrar<M>>,
    /// The late client's.
    pool: Pool<M>,
    neighbours: Mutex<Neighbours<M>>,
    random: Mutex<SplitMix64>,
}

impl<M: Memory + 'static> Common<M> {
    fn neighbours(&self) -> MutexGuard<'_, Neighbours<M>> {
        lock(&self.neighbours)
    }

    /// What a peer may have under way to a connection: no more than there are buffers for, where a packet is in each.
    pub(crate) fn receivable(&self) -> usize {
        let Config {
            window,
            buffers,
            mtu,
            ..
        } = self.config;
        if self.finishes {
            // Then many of them may come in one.
            return window;
        }
        window.min((mtu - HEADERS).saturating_mul(buffers as usize))
    }

    /// Whether there is a way to this peer; else why not, as the system says it of its own.
    pub(crate) fn reaches(&self, peer: SocketAddr) -> io::Result<()> {
        let to = peer.ip();
        let fails =
            |kind: ErrorKind, why: &str| Err(io::Error::new(kind, format!("{peer}: {why}")));
        let own = &self.config.addresses;
        if own.iter().any(|(own, _)| *own == to) {
            let why = "the stack's own address, to which no wire leads";
            return fails(ErrorKind::AddrNotAvailable, why);
        }
        host::check(to, own).map_err(|why| io::Error::new(ErrorKind::InvalidInput, why))?;
        if peer.port() == 0 {
            return fails(ErrorKind::InvalidInput, "no peer has port 0");
        }
        if !own.iter().any(|(own, _)| own.is_ipv4() == to.is_ipv4()) {
            let why = "the stack has no address of its kind";
            return fails(ErrorKind::AddrNotAvailable, why);
        }
        if !self.is_bare && self.config.next_hop(to).is_none() {
            let why = "of no network of the stack, which has no gateway";
            return fails(ErrorKind::NetworkUnreachable, why);
        }
        Ok(())
    }

    pub(crate) fn draw(&self) -> u64 {
        lock(&self.random).draw()
    }

    fn look(&self, frame: &[u8]) -> Seen {
        wire::look(frame, self.config.hardware, &self.config.addresses)
    }

    /// Asks for an early client of what comes to this end, and from there if one is named.
    pub(crate) fn early(
        &self,
        is_tcp: bool,
        (own, far): (SocketAddr, Option<SocketAddr>),
        bell: &Arc<Bell>,
    ) -> Result<(Arrivals<M>, Registration<M>), String> {
        let filter = Filter::to(is_tcp, own, far).map_err(|error| error.to_string())?;
        let buffers = self.config.buffers;
        let (client, queue) = early::client(buffers as usize * 2, None, &self.sleeper);
        let client = Ringing {
            client,
            bell: Arc::clone(bell),
            sleeper: self.sleeper.clone(),
            port: self.config.rings,
        };
        let client = Box::new(client);
        let asked = ask(
            &*self.registrar,
            filter,
            buffers,
            client,
            bell,
            &self.sleeper,
        );
        Ok((Arrivals::of(queue), asked))
    }
}

/// What a stack has besides.
pub(crate) struct Core<M: Memory + 'static> {
    pub(crate) common: Arc<Common<M>>,
    pub(crate) bell: Arc<Bell>,
    late: Mutex<late::Late<M>>,
    client: ClientId,
    pub(crate) connections: Mutex<BTreeMap<Tuple, Arc<Connection<M>>>>,
    pub(crate) listeners: Mutex<BTreeMap<u16, Arc<Listening<M>>>>,
    /// Connections that nobody else works on: they begin, or nobody has them any more.
    tended: Mutex<Vec<late::Tended<M>>>,
}

/// TCP/IP of one host, for any number of threads.
pub struct Stack<M: Memory + 'static>(pub(crate) Arc<Core<M>>);

impl<M: Memory + 'static> Clone for Stack<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Memory + 'static> Stack<M> {
    /// A stack that is this driver's default client. The sleeper puts threads to sleep that block in its sockets, until instants of this clock.
    ///
    /// # Errors
    ///
    /// [`StackError`].
    pub fn new<L, D>(
        driver: &mut Driver<L, D>,
        config: Config,
        sleeper: Sleeper,
        clock: Clock,
    ) -> Result<Self, StackError>
    where
        L: Link<Memory = M> + 'static,
        D: Demultiplex<Filter = Filter> + 'static,
    {
        config.check()?;
        let bell = Arc::<Bell>::default();
        let buffers = config.buffers;
        let (client, queue) = crate::clients::late::client(buffers as usize * 2, &sleeper);
        let client = Ringing {
            client,
            bell: Arc::clone(&bell),
            sleeper: sleeper.clone(),
            port: config.rings,
        };
        let size = PoolSize::fixed(2 * buffers);
        let registered = driver.register(Interest::Default, size, client);
        let registered = registered.map_err(|why: RegisterError<_>| match why {
            RegisterError::DefaultTaken(other) => StackError::Taken(other),
            why => StackError::Refused(why.to_string()),
        })?;
        let pool = registered.pool;
        pool.give(buffers);
        let now = clock();
        let common = Arc::new(Common {
            neighbours: Mutex::new(Neighbours::new(&config, pool.clone())),
            random: Mutex::new(SplitMix64::new(config.seed)),
            finishes: driver.link().finishes(),
            is_bare: driver.facts().medium == Medium::Ip,
            registrar: Box::new(driver.handle()),
            pool: pool.clone(),
            config,
            clock,
            sleeper,
        });
        let late = late::Late::new(Arc::clone(&common), Arrivals::of(queue), pool, now);
        Ok(Self(Arc::new(Core {
            common,
            bell,
            late: Mutex::new(late),
            client: registered.id,
            connections: Mutex::default(),
            listeners: Mutex::default(),
            tended: Mutex::default(),
        })))
    }

    /// What became of hardware addresses.
    #[must_use]
    pub fn neighbours(&self) -> NeighbourAccount {
        self.0.common.neighbours().account
    }

    /// [Polls](Self::poll) whenever something arrived, until `ends` says so, which is asked ten times a second at least: for a thread of its own. Connections that begin or
    /// end are looked at each millisecond, as what arrives for them wakes their own threads only.
    pub fn serve(&self, ends: impl Fn() -> bool) {
        let Core { bell, common, .. } = &*self.0;
        while !ends() {
            let next = self.poll((common.clock)());
            let is_idle = self.tended() == 0;
            let most = Span::from_millis(if is_idle { 100 } else { 1 });
            let most = (common.clock)() + most;
            let until = next.map_or(most, |next| next.min(most));
            bell.wait_for(&common.sleeper, Some(until), || {
                let wakes = !self.0.is_quiet() || is_idle && self.tended() > 0 || ends();
                wakes.then_some(())
            });
        }
    }
}

impl<M: Memory + 'static> Drop for Core<M> {
    fn drop(&mut self) {
        self.common.registrar.unregister(self.client);
    }
}
