//! A client and a server, each a process of its own, and what runs beside them.

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::process::{Command, Stdio};

use laxity::command::{CpuSet, Held, Policy, ProcessGroup, RunningCommand};
use laxity::now;
use laxity_lab::bench::Runner;
use laxity_model::{HostError, Scheduling, Span};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::peer::{self, Part, Told, Way};
use crate::peers::{PRIORITY, Peer, failed, watch};

/// The server's buffer, as in the paper (§7.3): Linux takes it twice, for what it charges besides the messages.
pub(in super::super) const BUFFER: usize = 192 * 1024;
/// Periods of the client and of the server (§7.3).
pub(in super::super) const PERIODS: [Span; 2] = [Span::from_millis(20), Span::from_millis(10)];
/// B_p: of 8 KB, 23 fit the buffer.
pub(in super::super) const BATCH: NonZeroU32 = NonZeroU32::new(20).expect("it is not zero");
pub(in super::super) const QUANTUM: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");
/// So many ordinary processes run beside, none of which ever waits.
pub(in super::super) const SPINNERS: usize = 4;
/// The least time from when both are ready to their first release.
const LEAD: Span = Span::from_millis(20);
/// What is waited for after the last release, by the witness too.
pub(super) const REST: Span = Span::from_millis(40);

/// A client and a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// How each is served: the client, the server.
    pub ways: [Way; 2],
    /// The length of a message.
    pub bytes: usize,
    /// Whether something runs beside them.
    pub loaded: bool,
    /// How long it is sent.
    pub length: Span,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Transferred {
    /// Messages that the client sent.
    pub sent: u64,
    /// Those that the server received, in order and whole.
    pub received: u64,
    /// Those that were refused, or came in no order.
    pub wrong: u64,
}

/// Starts the client or the server, all of it on the processor of its upcalls but for what `SCHED_DEADLINE` lets be anywhere.
fn start(part: &Part, socket: UdpSocket) -> Result<Peer, HostError> {
    let policy = match part.way {
        Way::Thread | Way::Interval | Way::Threadshare => Some(Policy::Fifo(PRIORITY)),
        Way::Plain | Way::Upcall | Way::ByDeadline => Some(Policy::Other { nice: 0 }),
        // The kernel lets it be on all processors only.
        Way::Kernel => None,
    };
    let name = if part.sends {
        "the client"
    } else {
        "the server"
    };
    let place = policy.map(|policy| (policy, part.processor));
    Peer::start(("upcalls-udp", part), name, socket, place)
}

fn spinner(processor: usize) -> Result<RunningCommand, HostError> {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done"]);
    command.stdin(Stdio::null());
    let place = |held: &Held| {
        let fair = Scheduling::Fair { nice: 0 };
        held.schedule(fair, &CpuSet::single(processor))
    };
    RunningCommand::start(command, ProcessGroup::Own, place)
        .map_err(|error| HostError::Failed(format!("what runs beside: {error}")))
}

/// Two sockets of this machine that know nobody but each other: the client's, the server's.
fn sockets() -> io::Result<[UdpSocket; 2]> {
    let bind = || UdpSocket::bind(("127.0.0.1", 0));
    let both = [bind()?, bind()?];
    both[0].connect(both[1].local_addr()?)?;
    both[1].connect(both[0].local_addr()?)?;
    set_socket_recv_buffer_size(&both[1], BUFFER)?;
    Ok(both)
}

/// The first processor of programs, by the kernel's number.
pub(super) fn processor(host: &Runner<'_>) -> Result<usize, HostError> {
    match host {
        Runner::Live(live, _) => Ok(live.config().processors[0]),
        Runner::Twin(_) => Err(HostError::BadProgram("the twin has no sockets".into())),
    }
}

impl Transfer {
    /// What a client that is paced sends: a batch at each of its releases, of which there are as many wherever its grid lies.
    pub(super) fn due(&self) -> u64 {
        u64::from(BATCH.get()) * (self.length.as_nanos() / PERIODS[0].as_nanos())
    }

    /// What runs beside.
    pub(super) fn beside(&self, processor: usize) -> Result<Vec<RunningCommand>, HostError> {
        let spinners = if self.loaded { SPINNERS } else { 0 };
        (0..spinners).map(|_| spinner(processor)).collect()
    }

    fn part(&self, sends: bool, processor: usize) -> Part {
        Part {
            way: self.ways[usize::from(!sends)],
            sends,
            bytes: self.bytes,
            batch: BATCH,
            quantum: QUANTUM,
            period_us: PERIODS[usize::from(!sends)].as_nanos() / 1_000,
            processor,
        }
    }

    /// Runs it: all on the first processor of programs, but for what `SCHED_DEADLINE` lets be anywhere.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`]; nothing is left running.
    pub fn run(&self, host: &mut Runner<'_>) -> Result<Transferred, HostError> {
        let processor = processor(host)?;
        let sockets = sockets().map_err(failed("the sockets"))?;
        let cloned = || -> io::Result<[UdpSocket; 2]> {
            Ok([sockets[0].try_clone()?, sockets[1].try_clone()?])
        };
        let [client, server] = cloned().map_err(failed("the sockets"))?;
        let mut client = start(&self.part(true, processor), client)?;
        let mut server = start(&self.part(false, processor), server)?;
        for peer in [&mut client, &mut server] {
            peer.line()?;
        }
        let _spinners = self.beside(processor)?;
        let from = now() + LEAD;
        let until = from + self.length;
        let begin = peer::begin(from, until);
        for socket in &sockets {
            socket.send(&begin).map_err(failed("the first message"))?;
        }
        watch(host, until + REST)?;
        let [sent, received]: [Told; 2] = [client.told()?, server.told()?];
        Ok(Transferred {
            sent: sent.messages,
            received: received.messages,
            wrong: sent.wrong + received.wrong,
        })
    }
}
