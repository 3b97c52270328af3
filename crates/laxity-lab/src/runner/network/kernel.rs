//! The near end where the kernel has it: its own sockets take the packets of flows, and a thread for each connection reads there, as any program's would. On this machine alone.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use laxity::net::AnyLink;
use laxity_model::{Context, HostError, Placement, Program, SemaphoreId, Service, Step};

use super::far::Far;
use super::threads::thread;
use super::{End, Known, LOOK, NEAR, Plan, TAKEN, Threads, flows_of, probes};
use crate::observe::{Probe, Waiting};
use crate::scenario::{ResolvedTask, Traffic};

/// The near end's, as the kernel is given it.
pub(super) const ADDRESS: &str = "10.77.0.2/24";
/// So long a thread waits in the kernel at the most until it looks whether the run is over.
const WAIT: Duration = Duration::from_millis(20);
/// What is read at a time: a packet of a flow.
const SEGMENT: usize = 1_460;

/// Those of the flows, by their ports.
pub(super) struct Sockets(BTreeMap<u16, Socket>);

/// A connection's.
enum Socket {
    Datagrams(UdpSocket),
    /// Nobody has connected yet.
    Listens(TcpListener),
    Stream(TcpStream),
}

impl Sockets {
    /// Opens them in this thread's namespace.
    pub(super) fn open(tasks: &[&ResolvedTask]) -> io::Result<Self> {
        let mut all = BTreeMap::new();
        for (flow, first) in flows_of(tasks) {
            for port in first..first + flow.connections() {
                let socket = match flow.traffic {
                    Traffic::Video { .. } => {
                        let socket = UdpSocket::bind((NEAR, port))?;
                        socket.set_read_timeout(Some(WAIT))?;
                        Socket::Datagrams(socket)
                    }
                    Traffic::Bulk { .. } => {
                        let listener = TcpListener::bind((NEAR, port))?;
                        listener.set_nonblocking(true)?;
                        Socket::Listens(listener)
                    }
                };
                all.insert(port, socket);
            }
        }
        Ok(Self(all))
    }
}

impl Socket {
    /// The next that there is to read, waiting for it as long as is waited; `None` where there was nothing.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match self {
            Self::Datagrams(socket) => socket.recv(bytes),
            Self::Stream(stream) => stream.read(bytes),
            Self::Listens(listener) => {
                let accepted = listener.accept();
                accepted.and_then(|(stream, _)| {
                    stream.set_read_timeout(Some(WAIT))?;
                    *self = Self::Stream(stream);
                    Err(ErrorKind::WouldBlock.into())
                })
            }
        };
        match read {
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Both ends, as activities.
pub(super) fn build(
    program: &mut Program,
    plan: &Plan<'_>,
    Sockets(mut sockets): Sockets,
    (far, doorbell): (End<AnyLink>, SemaphoreId),
) -> Result<Vec<Probe>, HostError> {
    let on = plan.interface.processor;
    let mut threads = Threads::new();
    for (task, client) in &plan.clients {
        let own = plan
            .flows
            .iter()
            .filter(|known| client.flows.contains(&known.flow));
        let mut all = Vec::new();
        for known in own {
            for number in 0..known.flow.connections() {
                let Some(socket) = sockets.remove(&known.port(number)) else {
                    continue;
                };
                let name = format!("{} {} {}", task.name, known.flow.name, number + 1);
                let body = reader(socket, known.clone(), client.packet);
                let placement: Placement = thread(task);
                all.push(program.add(&name, on, placement, body));
            }
        }
        threads.insert(task.name.clone(), all);
    }
    let sender = Far::new(far, doorbell, &plan.flows, plan.seed)?;
    program.add("far end", on, Placement::External, sender);
    // What the kernel keeps nobody can look at.
    let waiting = vec![Waiting(None); plan.flows.len()];
    Ok(probes(program, plan, (&threads, waiting), None))
}

/// Reads one packet after the other, and works on each for so long.
fn reader(
    mut socket: Socket,
    known: Known,
    work: Service,
) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static {
    let mut bytes = [0; SEGMENT];
    // What was read, and is worked on.
    let mut at_work: Option<u64> = None;
    move |context| {
        if let Some(done) = at_work.take() {
            context.put(known.records, [done, 0]);
        }
        match socket.read(&mut bytes) {
            Ok(Some(0)) => Step::Finish,
            Err(_) => {
                context.fail("a socket of the kernel cannot be read");
                Step::Finish
            }
            Ok(Some(count)) => {
                // Nobody tells when it arrived.
                context.put(known.records, [TAKEN | context.now().as_nanos(), 0]);
                let number = bytes.first_chunk().copied().map(u64::from_be_bytes);
                at_work = match known.is_video() {
                    true => number,
                    false => Some(count as u64),
                };
                Step::Burn(work)
            }
            // It waited in the kernel, or nobody has connected.
            Ok(None) if matches!(socket, Socket::Listens(_)) => {
                Step::SleepUntil(context.now() + LOOK)
            }
            Ok(None) => Step::Charge(Service::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use laxity::Twin;
    use laxity_model::enforce::machine::Machine;
    use laxity_model::{Host, ProcessorId, Span};

    use super::*;
    use crate::scenario::Flow;

    /// Whoever is not read to the end has not been read.
    #[test]
    fn a_socket_that_cannot_be_read_ends_the_run_with_an_error() {
        let open = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (socket, nobody) = (open(), open().local_addr().unwrap());
        socket.connect(nobody).unwrap();
        // Nobody is there, which the next read tells.
        socket.send(b"?").unwrap();
        let mut program = Program::new(1);
        let known = Known {
            flow: Arc::new(Flow {
                name: "video".to_owned(),
                traffic: Traffic::Video {
                    period: Span::from_millis(100),
                    packets: 1,
                    bytes: 100,
                    jitter: Span::ZERO,
                },
            }),
            port: 5_000,
            records: program.port(8),
        };
        let body = reader(Socket::Datagrams(socket), known, Service::from_micros(1));
        program.add("reader", ProcessorId(0), Placement::Deferred, body);
        let mut twin = Twin::linux(&Machine::without_costs(250), 1);
        let ran = twin.admit_and_run(program, Span::from_millis(5));
        let why = ran.expect_err("nothing could be read").to_string();
        assert!(why.contains("a socket of the kernel"), "{why}");
    }
}
