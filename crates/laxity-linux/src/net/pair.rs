//! Two interfaces that are each other's other end, in a network namespace that nobody else is in, or in two.
//!
//! A namespace has no name and no process: it is there as long as a socket that was opened in it is, or its [`Namespace`], and the interfaces with it. So nothing of it is
//! left however its user ends, by a signal that nobody can catch too, and there is nothing to be removed.
#![allow(unsafe_code, reason = "a thread enters a namespace by a system call")]

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::{self, Command, Stdio};
use std::thread;

use laxity_model::Span;
use rustix::process::{getgid, getuid};

use super::egress::OwnError;
use super::{AnyLink, OpenError, Opened, Settings, interface, open};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::sched::{self, Policy, SchedError, Tid};

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
    /// `ip` or `tc` could not be started.
    #[error("`{0}` cannot be started: {1}")]
    NoProgram(&'static str, io::Error),
    /// What the command says of what it was asked for.
    #[error("`{0}`: {1}")]
    Refused(String, String),
    /// A link cannot be owned.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// There are no two ports for UDP.
    #[error("no ports of UDP can be had: {0}")]
    NoPorts(io::Error),
    /// One of them cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What the kernel's sockets say.
    #[error("a socket of the kernel's: {0}")]
    Socket(io::Error),
    /// What the kernel does for an interface cannot be changed.
    #[error("the offloads of {0} cannot be set: {1}")]
    Offloads(String, io::Error),
    /// A thread may not be placed so.
    #[error(transparent)]
    Place(#[from] SchedError),
}

impl PairError {
    /// What mends it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::NoNamespace(_) => "run as root, outside of a container that forbids namespaces",
            Self::NoProgram(..) => "install iproute2",
            Self::Refused(..) => "as root `modprobe -a veth bridge sch_htb cls_u32`",
            Self::Offloads(..) | Self::Socket(_) => "run as root",
            Self::Place(_) => "run as root, and see what `laxity doctor` says of real-time threads",
            Self::NoPorts(_) => "set up the interface `lo`",
            Self::Open(error) => return error.cause.remedy(),
            Self::Own(error) => return error.cause.remedy(),
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

/// Has this process enter a user namespace of its own, in which it is root, and so may make network namespaces; its files stay its user's. For who has no right to them; of scheduling it gives none.
///
/// # Errors
///
/// [`PairError::NoNamespace`]: the kernel or whoever has set it up forbids it, or this process has more threads than the one.
pub fn enter_user_namespace() -> Result<(), PairError> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: it takes a number; of a process with further threads the kernel refuses it.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
        return Err(PairError::NoNamespace(io::Error::last_os_error()));
    }
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ];
    let mut write = maps
        .into_iter()
        .map(|(file, what)| std::fs::write(format!("/proc/self/{file}"), what));
    write
        .try_for_each(|written| written)
        .map_err(PairError::NoNamespace)
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
    let both = |[near, far]: [String; 2]| Ok([opened(&near, settings)?, opened(&far, settings)?]);
    if way == "udp" {
        let [near, far] = ports().map_err(PairError::NoPorts)?;
        return both([format!("udp:{near}-{far}"), format!("udp:{far}-{near}")]);
    }
    in_thread(|| {
        enter_own_namespace()?;
        be_quiet();
        let [near, far] = NAMES;
        if way == "tap" {
            return both([format!("tap:{near}"), format!("packet:{near}")]);
        }
        make()?;
        both([near, far].map(|name| format!("{way}:{name}")))
    })
}

/// Two of the loopback that are free now.
fn ports() -> io::Result<[SocketAddr; 2]> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let both = [bind()?, bind()?];
    Ok([both[0].local_addr()?, both[1].local_addr()?])
}

/// Makes a pair of which the kernel has the one end, with this hardware address (`02:00:00:00:00:02`) and address (`10.0.0.2/24`), and without offloads, and opens the other by a packet socket. `open` opens what sockets of the kernel's there are to
/// be, in a thread that is there. The pair is gone when these and the link are dropped.
///
/// # Errors
///
/// [`PairError`]: nothing is left.
pub fn pair_with_kernel<T: Send>(
    settings: &Settings,
    (hardware, address): (&str, &str),
    open: impl FnOnce() -> io::Result<T> + Send,
) -> Result<(T, AnyLink), PairError> {
    in_thread(|| {
        enter_own_namespace()?;
        be_quiet();
        make()?;
        let [near, far] = NAMES;
        offloads(near, false)?;
        ip(&format!("link set dev {near} address {hardware}"))?;
        ip(&format!("address add {address} dev {near}"))?;
        let sockets = open().map_err(PairError::Socket)?;
        Ok((sockets, opened(&format!("packet:{far}"), settings)?))
    })
}

/// A network namespace in which nothing is but what its holder makes there.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`PairError::NoNamespace`].
    pub fn new() -> Result<Self, PairError> {
        in_thread(|| {
            enter_own_namespace()?;
            be_quiet();
            let file = File::open("/proc/thread-self/ns/net");
            file.map(Self).map_err(PairError::NoNamespace)
        })
    }

    /// Does this in a thread of its own there, which has this FIFO priority on a processor by the kernel's number, and so has what it starts.
    ///
    /// # Errors
    ///
    /// [`PairError::NoNamespace`], [`PairError::Place`].
    pub fn within<T: Send>(
        &self,
        place: Option<(usize, u8)>,
        act: impl FnOnce() -> T + Send,
    ) -> Result<T, PairError> {
        in_thread(|| {
            // SAFETY: it takes a descriptor that is open, and concerns this thread alone.
            if unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(PairError::NoNamespace(io::Error::last_os_error()));
            }
            if let Some((processor, priority)) = place {
                // In this order, or it may starve before it begins.
                sched::set_policy_inherited(Tid::current(), Policy::Fifo(priority))?;
                sched::set_affinity(Tid::current(), &CpuSet::single(processor))?;
            }
            Ok(act())
        })
    }

    /// Makes a pair of interfaces of these names, one here and one there, up.
    ///
    /// # Errors
    ///
    /// [`PairError`].
    pub fn join(&self, name: &str, (there, other): (&Self, &str)) -> Result<(), PairError> {
        // By that path whoever is started here, and may, finds what is open here.
        let path = format!("/proc/{}/fd/{}", process::id(), there.0.as_raw_fd());
        self.within(None, || {
            ip(&format!(
                "link add {name} type veth peer name {other} netns {path}"
            ))
        })??;
        for (namespace, name) in [(self, name), (there, other)] {
            namespace.within(None, || ip(&format!("link set {name} up")))??;
        }
        for (namespace, name) in [(self, name), (there, other)] {
            namespace.within(None, || comes_up(name))??;
        }
        Ok(())
    }

    /// Gives the kernel an address on an interface there, such as `10.0.0.1/24`, or takes it away.
    ///
    /// # Errors
    ///
    /// [`PairError`].
    pub fn set_address(&self, name: &str, address: &str, is_its: bool) -> Result<(), PairError> {
        let what = if is_its { "add" } else { "del" };
        self.within(None, || ip(&format!("address {what} {address} dev {name}")))??;
        Ok(())
    }

    /// Leaves checksums, segments and the merging of what arrives to an interface there, or to nobody (what `ethtool -K` calls tx, tso, gso and gro).
    ///
    /// # Errors
    ///
    /// [`PairError::Offloads`].
    pub fn set_offloads(&self, name: &str, is_on: bool) -> Result<(), PairError> {
        self.within(None, || offloads(name, is_on))?
    }
}

fn offloads(name: &str, is_on: bool) -> Result<(), PairError> {
    let set = interface::set_offloads(name, is_on);
    set.map_err(|errno| PairError::Offloads(name.to_owned(), errno.into()))
}

/// In this thread's namespace the kernel sends nothing by itself. Where that cannot be written its packets are nobody's.
fn be_quiet() {
    for which in ["all", "default"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
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

/// Makes both, up, in this thread's namespace.
fn make() -> Result<(), PairError> {
    let [near, far] = NAMES;
    ip(&format!("link add {near} type veth peer name {far}"))?;
    for name in NAMES {
        ip(&format!("link set {name} up"))?;
    }
    NAMES.into_iter().try_for_each(comes_up)
}

/// By a name with its way, in this thread's namespace.
fn opened(name: &str, settings: &Settings) -> Result<AnyLink, PairError> {
    let Opened { link, .. } = open(&name.parse()?, settings)?;
    Ok(link)
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
            return Err(PairError::Refused(format!("ip {asked}"), shown));
        }
        clock::sleep_until(clock::now() + LOOK);
    }
}

/// What this command says, in this thread's namespace.
pub(super) fn ip(arguments: &str) -> Result<String, PairError> {
    said("ip", arguments)
}

/// The same of a command of iproute2.
pub(super) fn said(program: &'static str, arguments: &str) -> Result<String, PairError> {
    let mut command = Command::new(program);
    let output = command.args(arguments.split(' ')).stdin(Stdio::null());
    let output = output
        .output()
        .map_err(|error| PairError::NoProgram(program, error))?;
    let [said, wrong] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    if output.status.success() {
        Ok(said.into_owned())
    } else {
        let asked = format!("{program} {arguments}");
        Err(PairError::Refused(asked, wrong.trim().to_owned()))
    }
}
