//! An interface of the kernel: what it is, whether it is up, and what the device itself dropped.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use laxity_model::nif::link::{LinkError, Medium};
use laxity_model::{Instant, Span};
use rustix::io::{Errno, Result};
use rustix::net::netdevice::index_to_name;

use super::call;
use super::error::OpenCause;
use crate::os::fact::{Fact, read};

/// The interfaces of the network namespace of whichever thread opens it.
const DEVICES: &str = "/proc/thread-self/net/dev";

/// How often an idle interface is asked whether it is still there and up: two system calls of about a microsecond together.
const LOOKS_EVERY: Span = Span::from_millis(10);

/// An interface of the network namespace in which it was found, wherever the thread is later.
#[derive(Debug)]
pub(super) struct Interface {
    /// Any socket of that namespace.
    socket: OwnedFd,
    name: String,
    pub(super) index: u32,
    pub(super) address: [u8; 6],
    pub(super) mtu: usize,
    statistics: Option<File>,
}

impl Interface {
    /// The one of this name, if it carries Ethernet.
    pub(super) fn find(name: &str) -> std::result::Result<Self, OpenCause> {
        Self::find_of(name, Medium::Ethernet)
    }

    /// The one of this name, if it carries that. One that carries IP alone has no address.
    pub(super) fn find_of(name: &str, medium: Medium) -> std::result::Result<Self, OpenCause> {
        let mut found = Self::named(name).map_err(|errno| OpenCause::System("socket", errno))?;
        let ask = |request: libc::c_ulong| match found.ask(request) {
            Ok(answer) => Ok(answer),
            Err(Errno::NODEV) => Err(OpenCause::Missing),
            Err(errno) => Err(OpenCause::System("ioctl", errno)),
        };
        let index = ask(libc::SIOCGIFINDEX)?;
        let mtu = ask(libc::SIOCGIFMTU)?;
        let address = ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel wrote this member for this request, as also below.
        let address = unsafe { address.ifr_ifru.ifru_hwaddr };
        let kind = match medium {
            Medium::Ethernet => libc::ARPHRD_ETHER,
            Medium::Ip => libc::ARPHRD_NONE,
        };
        if address.sa_family != kind {
            return Err(OpenCause::NoEthernet);
        }
        // SAFETY: as above.
        found.index = unsafe { index.ifr_ifru.ifru_ifindex } as u32;
        // SAFETY: as above.
        found.mtu = unsafe { mtu.ifr_ifru.ifru_mtu } as usize;
        found.address = std::array::from_fn(|at| address.sa_data[at] as u8);
        Ok(found)
    }

    /// Of which nothing has been asked.
    fn named(name: &str) -> Result<Self> {
        Ok(Self {
            socket: call::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?,
            name: name.to_owned(),
            index: 0,
            address: [0; 6],
            mtu: 0,
            // A file that is open tells of the namespace that it was opened in.
            statistics: File::open(DEVICES).ok(),
        })
    }

    fn ask(&self, request: libc::c_ulong) -> Result<libc::ifreq> {
        let mut asked = request_of(&self.name)?;
        // SAFETY: whoever calls it names a request that takes an `ifreq` without an address in it.
        unsafe { call::ioctl(&self.socket, request, &mut asked) }?;
        Ok(asked)
    }

    /// Its flags, whatever it is called by now.
    fn flags(&mut self) -> Result<libc::c_int> {
        self.name = index_to_name(&self.socket, self.index)?;
        let answer = self.ask(libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel wrote this member for this request.
        Ok(unsafe { answer.ifr_ifru.ifru_flags }.into())
    }

    /// Sets it up, if this process may.
    pub(super) fn set_up(&mut self) -> Result<()> {
        let flags = self.flags()?;
        if flags & libc::IFF_UP != 0 {
            return Ok(());
        }
        let mut asked = request_of(&self.name)?;
        asked.ifr_ifru.ifru_flags = (flags | libc::IFF_UP) as libc::c_short;
        // SAFETY: the request takes an `ifreq` without an address in it.
        unsafe { call::ioctl(&self.socket, libc::SIOCSIFFLAGS, &mut asked) }
    }

    /// What the device says that it dropped since it was made, of what it received and of what it was to send; `None` where it does not say.
    pub(super) fn dropped(&self) -> Option<[u64; 2]> {
        let mut text = Vec::new();
        let (file, mut piece) = (self.statistics.as_ref()?, [0; 4096]);
        loop {
            match file.read_at(&mut piece, text.len() as u64).ok()? {
                0 => break,
                length => text.extend_from_slice(&piece[..length]),
            }
        }
        dropped_of(&self.name, &String::from_utf8_lossy(&text))
    }
}

/// Of the table in `/proc/net/dev`.
fn dropped_of(name: &str, table: &str) -> Option<[u64; 2]> {
    let mut lines = table.lines().filter_map(|line| line.split_once(':'));
    let (_, values) = lines.find(|(other, _)| other.trim() == name)?;
    let values: Vec<u64> = values
        .split_whitespace()
        .map_while(|value| value.parse().ok())
        .collect();
    Some([*values.get(3)?, *values.get(11)?])
}

/// What the kernel says of an interface of this thread's network namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Whether it is up, and its other end is.
    pub is_up: bool,
    /// The longest packet that it carries, in bytes, without an Ethernet header.
    pub mtu: usize,
    /// Its hardware address; zeros where it has none.
    pub address: [u8; 6],
}

/// The names of all interfaces of this thread's network namespace. `/sys` may show those of another one.
///
/// # Errors
///
/// The system does not tell.
pub fn interface_names() -> Fact<Vec<String>> {
    let table = read(DEVICES)?;
    let names = table.lines().filter_map(|line| line.split_once(':'));
    Ok(names.map(|(name, _)| name.trim().to_owned()).collect())
}

/// What the kernel says of the interface of this name.
///
/// # Errors
///
/// There is none of this name, or the system does not tell.
pub fn shown(name: &str) -> std::io::Result<Shown> {
    let asked = Interface::named(name)?;
    let [flags, mtu, address] = [
        asked.ask(libc::SIOCGIFFLAGS)?,
        asked.ask(libc::SIOCGIFMTU)?,
        asked.ask(libc::SIOCGIFHWADDR)?,
    ];
    // SAFETY: the kernel wrote this member for this request, as also below.
    let flags = unsafe { flags.ifr_ifru.ifru_flags };
    // SAFETY: as above.
    let mtu = unsafe { mtu.ifr_ifru.ifru_mtu } as usize;
    // SAFETY: as above.
    let address = unsafe { address.ifr_ifru.ifru_hwaddr };
    Ok(Shown {
        is_up: is_up(flags.into()),
        mtu,
        address: std::array::from_fn(|at| address.sa_data[at] as u8),
    })
}

/// Without the other end of its wire it is as good as down.
const fn is_up(flags: libc::c_int) -> bool {
    let wanted = libc::IFF_UP | libc::IFF_RUNNING;
    flags & wanted == wanted
}

/// Whether an interface is one of a pair (veth), by what the kernel calls its driver.
pub(super) fn is_pair(name: &str) -> Result<bool> {
    const DRIVER: u32 = 3;
    const WORDS: usize = 49;
    // A command, then names of 32 bytes and some numbers, of which the first name is the driver's.
    let mut asked = [0_u32; WORDS];
    asked[0] = DRIVER;
    let mut request = request_of(name)?;
    request.ifr_ifru.ifru_data = (&raw mut asked).cast();
    let socket = call::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: the request takes an `ifreq`, and writes so many words as its command has to where that says, which outlives the call.
    unsafe { call::ioctl(&socket, libc::SIOCETHTOOL, &mut request) }?;
    let driver = asked[1..3].iter().flat_map(|word| word.to_ne_bytes());
    Ok(driver.take(5).eq(*b"veth\0"))
}

/// What an interface's card says that it carries, in bits a second; `None` where it says nothing, or what nobody can carry. A veth says 10 Gbit/s, whatever it does.
pub(super) fn carries(name: &str) -> Option<u64> {
    const SETTINGS: u32 = 1;
    const WORDS: usize = 11;
    const UNKNOWN: u32 = u32::MAX;
    let mut asked = [0_u32; WORDS];
    asked[0] = SETTINGS;
    let mut request = request_of(name).ok()?;
    request.ifr_ifru.ifru_data = (&raw mut asked).cast();
    let socket = call::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    // SAFETY: the request takes an `ifreq`, and writes so many words as its command has to where that says, which outlives the call.
    unsafe { call::ioctl(&socket, libc::SIOCETHTOOL, &mut request) }.ok()?;
    // In Mbit/s: the lower half is the first of its word, and the upper one as well, in another.
    let [low, high] = [asked[3], asked[7]].map(|word| {
        let [first, second, ..] = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([first, second]))
    });
    let speed = high << 16 | low;
    (speed != 0 && speed != UNKNOWN && speed != 0xffff).then(|| u64::from(speed) * 1_000_000)
}

/// Has an interface's checksums, its segments, those of the stack above it, and the merging of what arrives done there, or not: what `ethtool -K` calls tx, tso, gso and gro.
pub(super) fn set_offloads(name: &str, is_on: bool) -> Result<()> {
    const COMMANDS: [u32; 4] = [0x17, 0x1f, 0x24, 0x2c];
    let socket = call::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // Segments are nothing without checksums: these are the first to come.
    for command in COMMANDS {
        let mut asked = [command, u32::from(is_on)];
        let mut request = request_of(name)?;
        request.ifr_ifru.ifru_data = (&raw mut asked).cast();
        // SAFETY: the request takes an `ifreq`, and reads the two words of these commands from where that says, which outlives the call.
        unsafe { call::ioctl(&socket, libc::SIOCETHTOOL, &mut request) }?;
    }
    Ok(())
}

/// A request about an interface of this name.
pub(super) fn request_of(name: &str) -> Result<libc::ifreq> {
    // SAFETY: zeros are a value of it, as of all that is made of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= request.ifr_name.len() || bytes.contains(&0) {
        return Err(Errno::NODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// An interface, and whether it is there and up, as was seen last.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) interface: Interface,
    next: Instant,
    is_up: bool,
    is_gone: bool,
    drops_before: [u64; 2],
}

impl Watch {
    pub(super) fn new(interface: Interface) -> Self {
        let drops_before = interface.dropped().unwrap_or_default();
        Self {
            interface,
            next: Instant::ZERO,
            // One that is down from the first is told as one that went down.
            is_up: true,
            is_gone: false,
            drops_before,
        }
    }

    /// Whether it has not looked lately.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Looks, if it has not lately.
    ///
    /// # Errors
    ///
    /// [`LinkError::Down`] once each time that it goes down; [`LinkError::Gone`] from then on.
    #[inline]
    pub(super) fn look(&mut self, now: Instant) -> std::result::Result<(), LinkError> {
        if self.is_gone {
            return Err(LinkError::Gone);
        }
        if !self.is_due(now) {
            return Ok(());
        }
        self.next = now + LOOKS_EVERY;
        let was_up = self.is_up;
        match self.interface.flags() {
            Ok(flags) => {
                self.is_up = is_up(flags);
                match was_up && !self.is_up {
                    true => Err(LinkError::Down),
                    false => Ok(()),
                }
            }
            Err(Errno::NODEV | Errno::NXIO) => Err(self.gone()),
            Err(errno) => Err(failed("ioctl", errno)),
        }
    }

    /// It was seen to be gone.
    pub(super) fn gone(&mut self) -> LinkError {
        self.is_gone = true;
        LinkError::Gone
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// What a call that sends says of the interface.
    pub(super) fn refused(&mut self, call: &'static str, errno: Errno) -> LinkError {
        match errno {
            Errno::NETDOWN => LinkError::Down,
            Errno::NXIO | Errno::NODEV | Errno::BADFD => self.gone(),
            errno => failed(call, errno),
        }
    }

    /// What the device dropped since this began.
    pub(super) fn dropped(&self) -> Option<[u64; 2]> {
        let now = self.interface.dropped()?;
        let before = self.drops_before;
        Some([0, 1].map(|way: usize| now[way].saturating_sub(before[way])))
    }
}

/// A call failed for no cause that an interface has.
pub(super) fn failed(call: &str, errno: Errno) -> LinkError {
    LinkError::Failed(format!("{call}: {}", std::io::Error::from(errno)))
}

impl AsFd for Interface {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_columns_of_both_ways() {
        let table = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16
 veth0:      21      22   23   24   25    26         27        28       29      30   31   32   33    34      35         36
";
        assert_eq!(dropped_of("veth0", table), Some([24, 32]));
        assert_eq!(dropped_of("veth", table), None);
        assert_eq!(dropped_of("lo", "lo: 1 2 3"), None);
    }

    #[test]
    fn names_that_no_interface_can_have_are_refused() {
        for name in ["", "sixteen-bytes-xx", "a\0b"] {
            assert_eq!(request_of(name).err(), Some(Errno::NODEV), "{name:?}");
        }
        assert!(request_of("fifteen-bytes-x").is_ok());
    }

    #[test]
    fn the_loop_of_a_machine_carries_no_ethernet_and_nobody_is_called_nobody() {
        assert_eq!(Interface::find("lo").err(), Some(OpenCause::NoEthernet));
        assert_eq!(Interface::find("nobody").err(), Some(OpenCause::Missing));
    }
}
