//! Opening an interface by `AF_XDP`, in the order of what can be refused.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use laxity_model::Span;
use laxity_model::nif::link::{Facts, Medium};
use rustix::io::{Errno, Result};

use super::early::{Early, EarlySettings, EarlySocket};
use super::program;
use super::rings::{Incoming, Outgoing, Which};
use super::umem::Pool;
use super::{Hook, LETS_GO_WITHIN, SOCKETS, XdpLink};
use crate::net::Settings;
use crate::net::bpf::{self, Kind, Map, Mode, Refused};
use crate::net::call;
use crate::net::error::{OpenCause, OpenError};
use crate::net::interface::{Interface, Watch};
use crate::net::packet::{raw_socket, see_all};
use crate::net::unfinished::{ETHERNET, TAG};
use crate::os::clock;

/// Sizes of frames that the kernel takes everywhere.
const FRAMES: [usize; 2] = [2_048, 4_096];

type Cause<T> = std::result::Result<T, OpenCause>;

impl XdpLink {
    /// Takes all packets of an interface.
    ///
    /// # Errors
    ///
    /// [`OpenError`], with what mends it. What another process left that ended just now is waited for, up to a second.
    pub fn open(
        interface: &str,
        mode: Mode,
        settings: &Settings,
    ) -> std::result::Result<Self, OpenError> {
        Self::named(interface, mode, settings, None)
    }

    /// The same, and finds the client of each at the hook.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_early(
        interface: &str,
        mode: Mode,
        settings: &Settings,
        early: &EarlySettings,
    ) -> std::result::Result<Self, OpenError> {
        Self::named(interface, mode, settings, Some(early))
    }

    fn named(
        interface: &str,
        mode: Mode,
        settings: &Settings,
        early: Option<&EarlySettings>,
    ) -> std::result::Result<Self, OpenError> {
        let way = match mode {
            Mode::Generic => "xdp",
            Mode::Native => "xdp-native",
        };
        let name = format!("{way}:{interface}");
        let opened = Self::try_open(interface, &name, mode, settings, early);
        opened.map_err(|cause| cause.of(&name))
    }

    fn try_open(
        interface: &str,
        name: &str,
        mode: Mode,
        settings: &Settings,
        early: Option<&EarlySettings>,
    ) -> Cause<Self> {
        if settings.class.is_some() {
            return Err(OpenCause::NoClass);
        }
        let socket = socket()?;
        let interface = Interface::find(interface)?;
        let longest = interface.mtu + ETHERNET + TAG;
        let fitting = FRAMES.iter().find(|size| Pool::longest(**size) >= longest);
        let frame_bytes = *fitting.ok_or(OpenCause::MtuTooLarge(interface.mtu))?;
        let most_posted = settings.posted.max(1);
        let ring = |entries: usize| entries.next_power_of_two() as u32;
        let (posted, reach) = (ring(most_posted), ring(settings.reach()));
        let pool = pool(&socket, settings.memory, frame_bytes)?;
        let made = |errno| OpenCause::System("a ring", errno);
        let fill = Outgoing::new(&socket, Which::Fill, posted).map_err(made)?;
        let completion = Incoming::new(&socket, Which::Completion, reach).map_err(made)?;
        let receive = Incoming::new(&socket, Which::Receive, posted).map_err(made)?;
        let send = Outgoing::new(&socket, Which::Send, reach).map_err(made)?;
        let room = (settings.reach() * 2 * frame_bytes) as i32;
        // Where it is not allowed, fewer leave at once.
        let _ = call::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &room);
        bind(&socket, interface.index, 0, 0)?;
        let hook = hook(&interface, mode, early, Pool::longest(frame_bytes))?;
        let entered = hook.sockets.insert(0, socket.as_raw_fd() as u32);
        entered.map_err(|errno| OpenCause::of_bpf("map", errno))?;
        let seeing = settings.promiscuous.then(|| seeing_all(&interface));
        Ok(Self {
            hook,
            socket,
            _seeing: seeing.transpose()?,
            further: Vec::new(),
            fill,
            completion,
            receive,
            send,
            pool,
            facts: Facts {
                name: name.to_owned(),
                address: interface.address,
                mtu: interface.mtu,
                reach: settings.reach(),
                is_shared_with_kernel: false,
                medium: Medium::Ethernet,
                gathers: false,
                copies: false,
            },
            watch: Watch::new(interface),
            most_posted,
            posted: 0,
            sending: 0,
            thrown_away: VecDeque::new(),
            has_thrown_away: false,
            is_unbound: false,
            reclaimed: 0,
            ahead: clock_ahead(),
        })
    }

    /// A further socket for what is [steered](Early::steer) to it.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; also if there are 256 already.
    pub fn further(&mut self) -> std::result::Result<EarlySocket, OpenError> {
        let opened = self.try_further();
        opened.map_err(|cause| cause.of(&self.facts.name))
    }

    fn try_further(&mut self) -> Cause<EarlySocket> {
        let number = self.further.len() as u32 + 1;
        if number >= SOCKETS {
            return Err(OpenCause::System("a further socket", Errno::NOSPC));
        }
        let socket = Arc::new(socket()?);
        let entries = self.most_posted.next_power_of_two() as u32;
        let receive = Incoming::new(&socket, Which::Receive, entries);
        let receive = receive.map_err(|errno| OpenCause::System("a ring", errno))?;
        let (index, with) = (self.watch.interface.index, self.socket.as_raw_fd());
        bind(&socket, index, libc::XDP_SHARED_UMEM, with)?;
        let entered = (self.hook.sockets).insert(number, socket.as_raw_fd() as u32);
        entered.map_err(|errno| OpenCause::of_bpf("map", errno))?;
        self.further.push(Arc::clone(&socket));
        Ok(EarlySocket {
            number,
            socket,
            receive,
            pool: Arc::clone(&self.pool),
            ahead: self.ahead,
        })
    }
}

/// A socket that receives nothing: those of `AF_XDP` cannot ask for what is addressed to others.
fn seeing_all(interface: &Interface) -> Cause<OwnedFd> {
    let socket = raw_socket()?;
    see_all(&socket, interface.index)?;
    Ok(socket)
}

fn socket() -> Cause<OwnedFd> {
    call::socket(libc::AF_XDP, libc::SOCK_RAW, 0)
        .map_err(|errno| OpenCause::of_socket("AF_XDP", errno))
}

/// Memory that the kernel knows of.
fn pool(socket: &OwnedFd, packets: usize, frame_bytes: usize) -> Cause<Arc<Pool>> {
    let bytes = packets.saturating_mul(frame_bytes);
    let frames = u32::try_from(packets.max(1)).map_err(|_| OpenCause::NoMemory(bytes))?;
    let pool = Pool::new(frames, frame_bytes).map_err(|_| OpenCause::NoMemory(bytes))?;
    let known = call::set_option(
        socket,
        libc::SOL_XDP,
        libc::XDP_UMEM_REG,
        &pool.registration(),
    );
    known.map_err(|errno| match errno {
        Errno::NOBUFS => OpenCause::MemoryLocked(bytes),
        Errno::NOMEM => OpenCause::NoMemory(bytes),
        errno => OpenCause::System("XDP_UMEM_REG", errno),
    })?;
    Ok(pool)
}

fn bind(socket: &OwnedFd, interface: u32, flags: u16, with: i32) -> Cause<()> {
    let own = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP;
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: if flags == 0 { own } else { flags },
        sxdp_ifindex: interface,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: with as u32,
    };
    patiently(|| call::bind(socket, &address)).map_err(|errno| match errno {
        Errno::BUSY => OpenCause::QueueTaken(0),
        Errno::NOBUFS => OpenCause::MemoryLocked(0),
        errno => OpenCause::System("bind", errno),
    })
}

/// Tries again while somebody else has it, for as long as the kernel takes to let go.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    const EACH: Span = Span::from_millis(2);
    let until = clock::now() + LETS_GO_WITHIN;
    loop {
        match attempt() {
            Err(Errno::BUSY | Errno::EXIST) if clock::now() < until => {
                clock::sleep_until(clock::now() + EACH);
            }
            result => return result,
        }
    }
}

fn hook(
    interface: &Interface,
    mode: Mode,
    early: Option<&EarlySettings>,
    longest: usize,
) -> Cause<Hook> {
    let sockets = sockets()?;
    let (early, instructions) = match early {
        None => (None, program::stamped(&sockets)),
        Some(settings) => {
            let (early, instructions) = Early::new(settings, longest, &sockets)?;
            (Some(Arc::new(early)), instructions)
        }
    };
    let program = loaded(&instructions)?;
    let attached = patiently(|| bpf::attach(&program, interface.index, mode));
    let attached = attached.map_err(|errno| match (errno, mode) {
        (Errno::BUSY | Errno::EXIST, _) => OpenCause::ProgramAttached,
        (Errno::RANGE, Mode::Native) => OpenCause::MtuTooLarge(interface.mtu),
        (Errno::OPNOTSUPP | Errno::INVAL, Mode::Native) => OpenCause::NoNative,
        (errno, _) => OpenCause::of_bpf("attachment", errno),
    })?;
    Ok(Hook {
        _attached: attached,
        sockets,
        early,
    })
}

fn sockets() -> Cause<Map<u32, u32>> {
    Map::new(Kind::Sockets, SOCKETS).map_err(|errno| OpenCause::of_bpf("map", errno))
}

fn loaded(instructions: &[bpf::assemble::Instruction]) -> Cause<OwnedFd> {
    bpf::load(instructions).map_err(|Refused { errno, verifier }| {
        match OpenCause::of_bpf("program", errno) {
            OpenCause::NoPrograms(_) if !verifier.is_empty() => OpenCause::Program(verifier),
            OpenCause::System(..) if !verifier.is_empty() => OpenCause::Program(verifier),
            cause => cause,
        }
    })
}

/// Whether this process may have what no interface is needed for: the socket, memory for so many packets, the map, the program.
///
/// # Errors
///
/// What stands against it.
pub(in crate::net) fn try_program(packets: usize) -> std::result::Result<(), OpenCause> {
    let socket = socket()?;
    pool(&socket, packets, FRAMES[0])?;
    let sockets = sockets()?;
    loaded(&program::stamped(&sockets)).map(drop)
}

/// By how much `CLOCK_MONOTONIC` of this process's time namespace is ahead of the kernel's own, by which the hook stamps, in nanoseconds; `None` if
/// that cannot be read.
fn clock_ahead() -> Option<i64> {
    match fs::read_to_string("/proc/self/timens_offsets") {
        Ok(offsets) => ahead_of(&offsets),
        // A kernel that has no time namespaces; but where nothing is there, nothing is known.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::exists("/proc/self").is_ok_and(|is| is).then_some(0)
        }
        Err(_) => None,
    }
}

fn ahead_of(offsets: &str) -> Option<i64> {
    let mut lines = offsets.lines().map(str::split_whitespace);
    lines.find_map(|mut words| {
        (words.next()? == "monotonic").then_some(())?;
        let mut number = || words.next()?.parse::<i64>().ok();
        number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_time_namespace_is_ahead_by_what_its_file_says() {
        let text = "monotonic           7    500\nboottime           -1      0\n";
        assert_eq!(ahead_of(text), Some(7_000_000_500));
        assert_eq!(ahead_of("monotonic  -2  0"), Some(-2_000_000_000));
        assert_eq!(ahead_of("boottime 1 1"), None);
        assert_eq!(ahead_of(""), None);
    }
}
