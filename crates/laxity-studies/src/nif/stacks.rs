//! The kernel's own TCP beside ours over each driver: with the kernel's at the other end of the same pair of interfaces (veth), or of a TAP, which has no second kernel. At an MTU of 1500, the kernel's
//! offloads (checksums, segments, the merging of what arrives) off at both ends, or on.
//!
//! Contenders take turns within a run. Processor time is that of the process, so of both ends, and of what the kernel does for it in interrupts meanwhile.

pub(super) mod shown;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use laxity::net::{
    Error, Interface, LiveStack, Namespace, Options, PairError, StackConfig, sockets,
};
use laxity_lab::bench::{Request, Runner};
use laxity_model::HostError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// A full segment, by which processor time is told.
pub const SEGMENT: u64 = 1_460;
/// Bytes of each call.
pub const MESSAGES: [usize; 4] = [64, 1_024, 16_384, 65_536];
/// How often all is made, at full length and otherwise; and how long each thing is done.
const ROUNDS: [u32; 2] = [7, 3];
const LENGTHS: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(50)];
/// Above all ordinary threads, as what they start is.
const PRIORITY: u8 = 20;
/// Who waits for so long waits in vain.
const PATIENCE: Duration = Duration::from_secs(10);
/// A whole window of ours.
const WINDOW: usize = 256 << 10;

/// Who has this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The kernel.
    Kernel,
    /// The framework's stack, over a packet socket.
    Packet,
    /// Over `AF_XDP`.
    Xdp,
    /// Over a TAP.
    Tap,
}

impl Way {
    /// By which it is named in the study's words.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Kernel => "stack-kernel",
            Self::Packet => "stack-packet",
            Self::Xdp => "stack-xdp",
            Self::Tap => "stack-tap",
        }
    }
}

/// Who has this end, and whether the kernel's offloads are on, wherever it is.
pub const CONTENDERS: [(Way, bool); 7] = [
    (Way::Kernel, false),
    (Way::Kernel, true),
    (Way::Packet, false),
    (Way::Packet, true),
    (Way::Xdp, false),
    (Way::Tap, false),
    (Way::Tap, true),
];

/// A run of all contenders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// How long each thing is done.
    pub length: Duration,
}

/// What a contender did with messages of a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Which.
    pub contender: (Way, bool),
    /// Bytes of each call.
    pub message: usize,
    /// Bytes a second that it sent and received.
    pub rates: [u64; 2],
    /// Nanoseconds of processor time for each full segment of these.
    pub costs: [u64; 2],
    /// From a message's sending until it is back, in nanoseconds: the median.
    pub trip: u64,
}

/// What was seen in a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Of each contender that could begin, with messages of each size.
    pub figures: Vec<Figures>,
    /// Who could not, and why.
    pub absent: Vec<((Way, bool), String)>,
}

/// What is run on this machine: as often as is asked.
pub(super) fn cases(request: &Request) -> impl Iterator<Item = Case> + use<> {
    let is_quick = usize::from(!request.full);
    let rounds = request.repeats.unwrap_or(ROUNDS[is_quick]);
    (0..rounds).map(move |_| Case {
        length: LENGTHS[is_quick],
    })
}

trait Both: Read + Write + Send {}
impl<T: Read + Write + Send> Both for T {}

/// This end.
enum Near {
    Kernel,
    Ours(
        Box<LiveStack>,
        #[expect(dead_code, reason = "it is open for as long as its host is there")] Box<Interface>,
    ),
}

impl Near {
    /// Or why this machine has it not.
    fn open(way: Way, offloads: bool, processor: usize) -> Result<Self, Error> {
        let name = match way {
            Way::Kernel => return Ok(Self::Kernel),
            Way::Packet => "packet:near",
            Way::Xdp => "xdp:near",
            Way::Tap => "tap:lax0",
        };
        let mut options = Options {
            processor: Some(processor),
            ..Options::default()
        };
        options.settings.segments = offloads;
        options.settings.memory = 4_096;
        let interface = Interface::open(name, options)?;
        let host = interface.stack(StackConfig {
            addresses: vec![(address(way, 2).ip(), 24)],
            window: WINDOW,
            buffers: if offloads { 64 } else { 256 },
            ..StackConfig::default()
        });
        Ok(Self::Ours(Box::new(host?), Box::new(interface)))
    }

    fn connect(&self, to: SocketAddr, is_at_once: bool) -> io::Result<Box<dyn Both>> {
        Ok(match self {
            Self::Kernel => {
                let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
                stream.set_nodelay(is_at_once)?;
                Box::new(stream)
            }
            Self::Ours(host, _) => {
                let stream = sockets::TcpStream::connect(host, to)?;
                stream.set_nodelay(is_at_once);
                Box::new(stream)
            }
        })
    }
}

fn address(way: Way, last: u8) -> SocketAddr {
    ([10, 0, u8::from(way == Way::Tap), last], 5_000).into()
}

/// Of this process, in user's and system's mode.
fn processor_time() -> Duration {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(own.tv_sec as u64, own.tv_nsec as u32)
}

/// What is done with messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Sends,
    Receives,
    Trips,
}

/// Reads to the end, so many bytes a call: how many.
fn hear(mut from: impl Read, message: usize) -> io::Result<u64> {
    let (mut count, mut piece) = (0, vec![0; message]);
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(count),
            read => count += read as u64,
        }
    }
}

/// Writes messages for so long.
fn say(mut to: impl Write, message: usize, length: Duration) -> io::Result<()> {
    let (piece, began) = (vec![7; message], Instant::now());
    while began.elapsed() < length {
        to.write_all(&piece)?;
    }
    Ok(())
}

/// Sends back each message as soon as all of it is there, to the end.
fn echo(mut stream: impl Both, message: usize) -> io::Result<()> {
    let mut piece = vec![0; message];
    loop {
        match stream.read_exact(&mut piece) {
            Ok(()) => stream.write_all(&piece)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// The median of the times until a message is back.
fn trip(mut stream: impl Both, message: usize, length: Duration) -> io::Result<u64> {
    let (mut piece, began) = (vec![7; message], Instant::now());
    let mut all = Vec::new();
    while began.elapsed() < length {
        let sent = Instant::now();
        stream.write_all(&piece)?;
        stream.read_exact(&mut piece)?;
        all.push(sent.elapsed().as_nanos() as u64);
    }
    all.sort_unstable();
    Ok(all.get(all.len() / 2).copied().unwrap_or(0))
}

/// The kernel at the other end: how many bytes it read.
fn peer(listener: &TcpListener, what: What, message: usize, length: Duration) -> io::Result<u64> {
    // Nobody comes where this end could not.
    let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&patience))?;
    listener.set_nonblocking(true)?;
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(what == What::Trips)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match what {
        What::Sends => hear(stream, message),
        What::Receives => say(stream, message, length).map(|()| 0),
        What::Trips => echo(stream, message).map(|()| 0),
    }
}

/// Where a contender runs, and its peer.
struct Place<'a> {
    near: &'a Near,
    way: Way,
    peer: &'a Namespace,
    processor: usize,
    length: Duration,
}

impl Place<'_> {
    /// Bytes a second and nanoseconds of processor time for a full segment; or a round trip in nanoseconds, twice.
    fn measure(&self, what: What, message: usize) -> io::Result<[u64; 2]> {
        let to = address(self.way, 1);
        let (ready, is_ready) = channel();
        let place = Some((self.processor, PRIORITY));
        thread::scope(|scope| {
            let far = scope.spawn(move || {
                let served = self.peer.within(place, || {
                    let listener = TcpListener::bind(to)?;
                    ready.send(()).ok();
                    peer(&listener, what, message, self.length)
                });
                served.map_err(io::Error::other)?
            });
            // Where it does not listen, there is nobody to connect to.
            is_ready.recv().ok();
            let stream = self.near.connect(to, what == What::Trips)?;
            let (began, before) = (Instant::now(), processor_time());
            let heard = match what {
                What::Sends => say(stream, message, self.length).map(|()| 0),
                What::Receives => hear(stream, message),
                What::Trips => trip(stream, message, self.length),
            }?;
            let theirs = far.join().map_err(|_| io::Error::other("the peer"))??;
            let (took, spent) = (began.elapsed(), processor_time() - before);
            if what == What::Trips {
                return Ok([heard; 2]);
            }
            let bytes = u128::from(heard + theirs).max(1);
            let rate = bytes * 1_000_000_000 / took.as_nanos().max(1);
            let cost = spent.as_nanos() * u128::from(SEGMENT) / bytes;
            Ok([rate as u64, cost as u64])
        })
    }

    fn figures(&self, contender: (Way, bool), message: usize) -> io::Result<Figures> {
        let sent = self.measure(What::Sends, message)?;
        let received = self.measure(What::Receives, message)?;
        let [trip, _] = self.measure(What::Trips, message)?;
        Ok(Figures {
            contender,
            message,
            rates: [sent[0], received[0]],
            costs: [sent[1], received[1]],
            trip,
        })
    }
}

/// Two kernels, joined.
struct Pair {
    own: Namespace,
    peer: Namespace,
    processors: [usize; 2],
}

const NEAR: (&str, &str) = ("near", "10.0.0.2/24");
const FAR: (&str, &str) = ("far", "10.0.0.1/24");

impl Pair {
    fn new(processors: [usize; 2]) -> Result<Self, PairError> {
        let (own, peer) = (Namespace::new()?, Namespace::new()?);
        own.join(NEAR.0, (&peer, FAR.0))?;
        peer.set_address(FAR.0, FAR.1, true)?;
        Ok(Self {
            own,
            peer,
            processors,
        })
    }

    /// What a contender does with messages of all sizes.
    fn contend(
        &self,
        (way, is_on): (Way, bool),
        length: Duration,
    ) -> Result<Vec<Result<Figures, String>>, HostError> {
        let (own, peer) = (&self.own, &self.peer);
        let is_kernel = way == Way::Kernel;
        if is_kernel {
            own.set_address(NEAR.0, NEAR.1, true)
                .map_err(|error| cannot(&error))?;
        }
        own.set_offloads(NEAR.0, is_on)
            .map_err(|error| cannot(&error))?;
        peer.set_offloads(FAR.0, is_on)
            .map_err(|error| cannot(&error))?;
        // The kernel behind a TAP is whoever has it.
        let here = if way == Way::Tap { peer } else { own };
        let [processor, theirs] = self.processors;
        let one = |message| -> io::Result<Result<Figures, String>> {
            // Anew for each size: connections that are over still have their buffers.
            let near = match Near::open(way, is_on, processor) {
                Ok(near) => near,
                Err(why) => return Ok(Err(why.to_string())),
            };
            if way == Way::Tap {
                let given = peer.set_address("lax0", "10.0.1.1/24", true);
                given.map_err(io::Error::other)?;
            }
            let place = Place {
                near: &near,
                way,
                peer,
                processor: theirs,
                length,
            };
            place.figures((way, is_on), message).map(Ok)
        };
        let made = here.within(Some((processor, PRIORITY)), || {
            let all = MESSAGES.into_iter().map(one);
            all.collect::<io::Result<Vec<_>>>()
        });
        let made = made.map_err(|error| cannot(&error))?;
        if is_kernel {
            own.set_address(NEAR.0, NEAR.1, false)
                .map_err(|error| cannot(&error))?;
        }
        made.map_err(|error| HostError::Failed(format!("{way:?}: {error}")))
    }
}

fn cannot(error: &PairError) -> HostError {
    HostError::CannotRun(format!("{error}; {}", error.remedy()))
}

/// Runs all contenders in turn.
///
/// # Errors
///
/// [`HostError::CannotRun`] where no interfaces may be made, and in the twin; [`HostError::Failed`] if a connection did not hold.
pub fn run(host: &mut Runner<'_>, case: Case) -> Result<Seen, HostError> {
    let Runner::Live(live, _) = host else {
        let no_kernel = "the twin has no kernel's TCP";
        return Err(HostError::CannotRun(no_kernel.into()));
    };
    let config = live.config();
    let own = config.processors.first().copied();
    let processors = [own.unwrap_or(config.external), config.external];
    let pair = Pair::new(processors).map_err(|error| cannot(&error))?;
    let mut seen = Seen::default();
    for contender in CONTENDERS {
        for made in pair.contend(contender, case.length)? {
            match made {
                Ok(figures) => seen.figures.push(figures),
                Err(why) => seen.absent.push((contender, why)),
            }
        }
    }
    Ok(seen)
}
