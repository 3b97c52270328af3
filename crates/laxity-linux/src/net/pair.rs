//! Two interfaces that are each other's other end, in a network namespace that nobody else is in.
//!
//! The namespace has no name and no process: it is there as long as a socket that was opened in it is, and the interfaces with it. So nothing of it is
//! left however its user ends, by a signal that nobody can catch too, and there is nothing to be removed.
#![allow(unsafe_code, reason = "a thread enters a namespace by a system call")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;

use laxity_model::Span;

use super::{AnyLink, OpenError, Opened, Settings, open};
use crate::os::clock;

/// The names of the two, in their namespace.
const NAMES: [&str; 2] = ["near", "far"];
/// So long the kernel takes at the most until it sends what is given to an interface that came up.
const UP: Span = Span::from_secs(5);
/// Between two looks whether it does.
const LOOK: Span = Span::from_millis(5);

/// Why there is no pair.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// `CAP_SYS_ADMIN` is missing, or the kernel has no namespaces.
    #[error("a network namespace cannot be made: {0}")]
    NoNamespace(io::Error),
    /// `ip` could not be started.
    #[error("`ip` cannot be started: {0}")]
    NoProgram(io::Error),
    /// What `ip` says of what it was asked for.
    #[error("`ip {0}`: {1}")]
    Refused(String, String),
    /// There are no two ports for UDP.
    #[error("no ports of UDP can be had: {0}")]
    NoPorts(io::Error),
    /// One of them cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl PairError {
    /// What mends it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::NoNamespace(_) => "run as root, outside of a container that forbids namespaces",
            Self::NoProgram(_) => "install iproute2",
            Self::Refused(..) => "as root `modprobe veth`",
            Self::NoPorts(_) => "set up the interface `lo`",
            Self::Open(error) => return error.cause.remedy(),
        };
        text.to_owned()
    }
}

/// Whether there may be a pair, as far as that is known without making one.
///
/// # Errors
///
/// [`PairError::NoNamespace`], [`PairError::NoProgram`].
pub fn may_pair() -> Result<(), PairError> {
    in_thread(|| {
        enter_own_namespace()?;
        ip("-V").map(drop)
    })
}

/// Makes a pair of interfaces (veth), and opens both by packet sockets. They are gone when both links are dropped.
///
/// # Errors
///
/// [`PairError`]: nothing is left.
pub fn pair(settings: &Settings) -> Result<[AnyLink; 2], PairError> {
    joined("packet", settings)
}

/// The same by any way to an interface, as its name begins: `packet` or `xdp`; `tap`, whose other end is a packet socket of the kernel's interface; `udp`, over the loopback, which is in this namespace and takes no right.
///
/// # Errors
///
/// [`PairError`]: nothing is left.
pub fn joined(way: &str, settings: &Settings) -> Result<[AnyLink; 2], PairError> {
    let opened = |name: String| -> Result<AnyLink, PairError> {
        let Opened { link, .. } = open(&name.parse()?, settings)?;
        Ok(link)
    };
    if way == "udp" {
        let [near, far] = ports().map_err(PairError::NoPorts)?;
        return Ok([
            opened(format!("udp:{near}-{far}"))?,
            opened(format!("udp:{far}-{near}"))?,
        ]);
    }
    in_thread(|| {
        enter_own_namespace()?;
        let [near, far] = NAMES;
        if way == "tap" {
            return Ok([
                opened(format!("tap:{near}"))?,
                opened(format!("packet:{near}"))?,
            ]);
        }
        make()?;
        Ok([
            opened(format!("{way}:{near}"))?,
            opened(format!("{way}:{far}"))?,
        ])
    })
}

/// Two of the loopback that are free now.
fn ports() -> io::Result<[SocketAddr; 2]> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let both = [bind()?, bind()?];
    Ok([both[0].local_addr()?, both[1].local_addr()?])
}

/// A thread that enters a namespace ends with that.
fn in_thread<T: Send>(run: impl FnOnce() -> Result<T, PairError> + Send) -> Result<T, PairError> {
    let ended = thread::scope(|scope| scope.spawn(run).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn enter_own_namespace() -> Result<(), PairError> {
    // SAFETY: it takes a number, and concerns this thread alone.
    match unsafe { libc::unshare(libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(PairError::NoNamespace(io::Error::last_os_error())),
    }
}

/// In this thread's namespace.
fn make() -> Result<(), PairError> {
    // Else the kernel sends on them by itself. Where this cannot be written its packets are nobody's.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let [near, far] = NAMES;
    ip(&format!("link add {near} type veth peer name {far}"))?;
    for name in NAMES {
        ip(&format!("link set {name} up"))?;
    }
    NAMES.into_iter().try_for_each(comes_up)
}

/// Waits until the kernel sends on an interface: until then it drops what it is given. It tells of that by its own word alone, which one has to ask for.
fn comes_up(name: &str) -> Result<(), PairError> {
    let until = clock::now() + UP;
    loop {
        let asked = format!("-o link show {name}");
        let shown = ip(&asked)?;
        if shown.contains("LOWER_UP") && shown.contains("state UP") {
            return Ok(());
        }
        if clock::now() > until {
            return Err(PairError::Refused(asked, shown));
        }
        clock::sleep_until(clock::now() + LOOK);
    }
}

/// What this command says, in this thread's namespace.
fn ip(arguments: &str) -> Result<String, PairError> {
    let mut command = Command::new("ip");
    let output = command.args(arguments.split(' ')).stdin(Stdio::null());
    let output = output.output().map_err(PairError::NoProgram)?;
    let [said, wrong] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    if output.status.success() {
        Ok(said.into_owned())
    } else {
        Err(PairError::Refused(
            arguments.to_owned(),
            wrong.trim().to_owned(),
        ))
    }
}
