//! What the late client does with packets: whose they are, and what is for nobody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use laxity_model::Instant;
use laxity_model::base::bell::Bell;
use laxity_model::nif::exchange::Census;
use laxity_model::nif::link::Memory;
use smoltcp::socket::tcp;
use smoltcp::time::Duration;
use smoltcp::wire::TcpPacket;

use super::arrival::{Arrivals, Packet};
use super::wire::{self, HEADER, Seen, TCP, Tuple};
use super::{Common, Core, Endpoint, Stack};
use crate::buffers::Pool;
use crate::lock;

/// What became of packets that came to the late client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackAccount {
    /// ARP and neighbour discovery.
    pub neighbours: u64,
    /// Handed on to the connection that they are of.
    pub passed: u64,
    /// Connections that began.
    pub began: u64,
    /// Connections that did not, as the backlog was full: the peer tries again.
    pub refused: u64,
    /// Looked at for nobody: answered if that is due.
    pub nobodys: u64,
    /// Not for this host, not as they should be, or without room at the connection that they are of.
    pub dropped: u64,
}

/// The late client's packets.
pub(super) struct Late<M: Memory + 'static> {
    arrivals: Arrivals<M>,
    pool: Pool<M>,
    answers: Endpoint<M>,
    account: StackAccount,
}

/// A connection: its lock is nobody else's.
pub(crate) struct Connection<M: Memory + 'static> {
    pub(crate) endpoint: Mutex<Endpoint<M>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) tuple: Tuple,
}

impl<M: Memory + 'static> Connection<M> {
    /// Ends it at once, and tells the peer so (a reset).
    pub(crate) fn abort(&self, now: Instant) {
        self.with(now, tcp::Socket::abort);
    }

    /// Does something to it, and what follows from that.
    pub(crate) fn with(&self, now: Instant, act: impl FnOnce(&mut tcp::Socket<'static>)) {
        let mut endpoint = lock(&self.endpoint);
        if let Some(socket) = endpoint.socket() {
            act(socket);
        }
        endpoint.poll(now);
    }
}

/// A listener's connections that wait.
pub(crate) struct Listening<M: Memory + 'static> {
    /// `None`: nobody accepts any more.
    pub(crate) waiting: Mutex<Option<VecDeque<Arc<Connection<M>>>>>,
    pub(crate) bell: Bell,
    pub(crate) backlog: usize,
    /// Begun, and not accepted yet.
    pub(crate) open: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// A connection that the stack works on.
pub(super) struct Tended<M: Memory + 'static> {
    connection: Arc<Connection<M>>,
    /// Who is to have it once it is there, if it is by then; `None`: it ends.
    becomes: Option<(Arc<Listening<M>>, Instant)>,
    /// Until then its peer, which has all that was sent, may still end; nobody takes what it sends.
    ends: Option<Instant>,
}

impl<M: Memory + 'static> Late<M> {
    pub(super) fn new(
        common: Arc<Common<M>>,
        arrivals: Arrivals<M>,
        pool: Pool<M>,
        now: Instant,
    ) -> Self {
        Self {
            arrivals,
            answers: Endpoint::bare(common, pool.clone(), now),
            pool,
            account: StackAccount::default(),
        }
    }
}

impl<M: Memory + 'static> Stack<M> {
    /// What became of packets that were for no client's own.
    #[must_use]
    pub fn account(&self) -> StackAccount {
        lock(&self.0.late).account
    }

    /// Where the buffers of its own client are, which takes what is no other's: half of them are given when nothing is under way. O(these).
    #[must_use]
    pub fn census(&self) -> Census {
        lock(&self.0.late).pool.census()
    }

    /// Connections that this looks at in each poll: those that begin or end.
    #[must_use]
    pub fn tended(&self) -> usize {
        lock(&self.0.tended).len()
    }

    /// Does what is to be done now, a bounded amount: takes packets that are no client's own, and works on connections that begin or end. When to come
    /// again, though nothing happens before; `None`: only then. However many connections there are that somebody has, it looks at none of them.
    pub fn poll(&self, now: Instant) -> Option<Instant> {
        let mut late = lock(&self.0.late);
        let mut next = None;
        let most = self.0.common.config.per_poll;
        for taken in 1..=most {
            let Some(packet) = late.arrivals.next() else {
                break;
            };
            self.dispatch(&mut late, packet, now);
            if taken == most {
                next = Some(now);
            }
        }
        drop(late);
        let waits = self.0.common.neighbours().expire(now);
        let tended = self.tend(now);
        [next, waits, tended].into_iter().flatten().min()
    }

    fn dispatch(&self, late: &mut Late<M>, packet: Packet<M>, now: Instant) {
        let common = &self.0.common;
        match common.look(packet.bytes()) {
            Seen::Arp | Seen::Discovery if common.is_bare => late.account.dropped += 1,
            Seen::Arp => {
                late.account.neighbours += 1;
                common.neighbours().arp(packet.bytes(), now);
            }
            Seen::Discovery => {
                late.account.neighbours += 1;
                common.neighbours().discovery(packet.bytes(), now);
            }
            Seen::Transport(TCP, tuple) => self.transport(late, packet, tuple, now),
            Seen::Transport(..) | Seen::Control => late.answer(packet, now),
            Seen::Nothing => late.account.dropped += 1,
        }
    }

    fn transport(&self, late: &mut Late<M>, mut packet: Packet<M>, tuple: Tuple, now: Instant) {
        let existing = lock(&self.0.connections).get(&tuple).cloned();
        if let Some(connection) = existing {
            let account = &mut late.account;
            *match lock(&connection.endpoint).pass(&packet) {
                true => &mut account.passed,
                false => &mut account.dropped,
            } += 1;
            connection.bell.ring(&self.0.common.sleeper);
            return;
        }
        if packet.is_begun() {
            wire::finish(&mut packet.bytes_mut()[HEADER..], TCP);
        }
        let listener = lock(&self.0.listeners).get(&tuple.local.1).cloned();
        match listener {
            Some(listener) if begins(&packet) => self.begin(late, &packet, tuple, &listener, now),
            _ => late.answer(packet, now),
        }
    }

    /// A connection begins: it gets its client, and then its first packet.
    fn begin(
        &self,
        late: &mut Late<M>,
        packet: &Packet<M>,
        tuple: Tuple,
        listener: &Arc<Listening<M>>,
        now: Instant,
    ) {
        if listener.open.load(Ordering::SeqCst) >= listener.backlog as u64 {
            late.account.refused += 1;
            listener.refused.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let Ok(connection) = self.0.connection(tuple, now) else {
            late.account.dropped += 1;
            return;
        };
        {
            let mut endpoint = lock(&connection.endpoint);
            if let Some(socket) = endpoint.socket::<tcp::Socket<'_>>() {
                // A new socket and a port that is not 0: there is nothing to fail.
                socket.listen((tuple.local.0, tuple.local.1)).ok();
            }
            endpoint.pass(packet);
        }
        late.account.began += 1;
        listener.open.fetch_add(1, Ordering::SeqCst);
        let until = now + self.0.common.config.patience;
        lock(&self.0.tended).push(Tended {
            connection,
            becomes: Some((Arc::clone(listener), until)),
            ends: None,
        });
    }

    /// Nobody has the connection any more: what is still to be sent is, and then it ends.
    pub(crate) fn tend_to_the_end(&self, connection: Arc<Connection<M>>) {
        lock(&self.0.tended).push(Tended {
            connection,
            becomes: None,
            ends: None,
        });
        self.0.bell.ring(&self.0.common.sleeper);
    }

    fn tend(&self, now: Instant) -> Option<Instant> {
        let mut tended = std::mem::take(&mut *lock(&self.0.tended));
        let mut next = None;
        tended.retain_mut(|each| {
            let (stays, again) = self.tend_one(each, now);
            next = [next, again].into_iter().flatten().min();
            stays
        });
        lock(&self.0.tended).append(&mut tended);
        next
    }

    fn tend_one(&self, tended: &mut Tended<M>, now: Instant) -> (bool, Option<Instant>) {
        let Tended {
            connection,
            becomes,
            ends,
        } = tended;
        let is_over = |(listener, _): &(Arc<Listening<M>>, _)| lock(&listener.waiting).is_none();
        if becomes.as_ref().is_some_and(is_over) {
            *becomes = None;
            connection.abort(now);
        }
        let mut endpoint = lock(&connection.endpoint);
        let again = endpoint.poll(now);
        let has_failed = endpoint.failed().is_some();
        let state = endpoint
            .socket::<tcp::Socket<'_>>()
            .map_or(tcp::State::Closed, |socket| socket.state());
        drop(endpoint);
        let begins = matches!(state, tcp::State::Listen | tcp::State::SynReceived);
        match becomes {
            Some((_, until)) if begins && !has_failed && now < *until => {
                (true, Some(again.map_or(*until, |again| again.min(*until))))
            }
            Some((listener, _)) if !begins && !has_failed && state != tcp::State::Closed => {
                let mut waiting = lock(&listener.waiting);
                let Some(waiting) = &mut *waiting else {
                    // Since just now: it is reset at the next look.
                    return (true, Some(now));
                };
                waiting.push_back(Arc::clone(connection));
                listener.bell.ring(&self.0.common.sleeper);
                (false, None)
            }
            Some((listener, _)) => {
                listener.open.fetch_sub(1, Ordering::SeqCst);
                self.0.forget(connection);
                (false, None)
            }
            None if state == tcp::State::Closed || has_failed => {
                self.0.forget(connection);
                (false, None)
            }
            None if state == tcp::State::FinWait2 => {
                let until = *ends.get_or_insert(now + self.0.common.config.patience);
                if now >= until {
                    connection.abort(now);
                }
                (true, Some(again.map_or(until, |again| again.min(until))))
            }
            None => (true, again),
        }
    }
}

impl<M: Memory + 'static> Late<M> {
    /// What is nobody's is answered as the protocols say: an echo, a reset, or that the port is not reached.
    fn answer(&mut self, packet: Packet<M>, now: Instant) {
        self.account.nobodys += 1;
        self.answers.answer(packet, now);
    }
}

impl<M: Memory + 'static> Core<M> {
    /// A connection in the table, whose client is asked for.
    pub(crate) fn connection(
        &self,
        tuple: Tuple,
        now: Instant,
    ) -> Result<Arc<Connection<M>>, String> {
        let bell = Arc::<Bell>::default();
        let ends = (tuple.local.into(), Some(tuple.remote.into()));
        let (queue, registration) = self.common.early(true, ends, &bell)?;
        let endpoint = Endpoint::with_socket(
            Arc::clone(&self.common),
            queue,
            registration,
            socket(&self.common),
            now,
        );
        let connection = Arc::new(Connection {
            endpoint: Mutex::new(endpoint),
            bell,
            tuple,
        });
        lock(&self.connections).insert(tuple, Arc::clone(&connection));
        Ok(connection)
    }

    pub(crate) fn forget(&self, connection: &Connection<M>) {
        let gone = lock(&self.connections).remove(&connection.tuple);
        // Its client ends here, outside of the lock of all connections.
        drop(gone);
    }

    pub(super) fn is_quiet(&self) -> bool {
        lock(&self.late).arrivals.is_empty()
    }
}

fn socket<M: Memory>(common: &Common<M>) -> tcp::Socket<'static> {
    let window = common.config.window;
    let received = common.receivable();
    let [receive, send] = [received, window].map(|bytes| tcp::SocketBuffer::new(vec![0; bytes]));
    let mut socket = tcp::Socket::new(receive, send);
    socket.set_nagle_enabled(false);
    let patience = Duration::from_micros(common.config.patience.as_micros());
    socket.set_timeout(Some(patience));
    socket
}

/// A first packet of a connection, as it should be.
fn begins<M: Memory>(packet: &Packet<M>) -> bool {
    let packet = &packet.bytes()[HEADER..];
    let Some(tcp) = wire::payload(packet).and_then(|payload| TcpPacket::new_checked(payload).ok())
    else {
        return false;
    };
    tcp.syn() && !tcp.ack() && !tcp.rst() && !tcp.fin() && wire::is_sound(packet)
}
