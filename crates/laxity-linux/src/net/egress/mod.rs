//! Owning a link: a class of its own at an interface's root, ahead of the kernel's other traffic, as long as this process lives.
//!
//! * [`Owned`]: the classes (HTB), and the segments that the kernel may leave to the interface, put back on every way out: by [`put_back`](Owned::put_back) or by being
//!   dropped, and by the guardian where this process is killed;
//! * [`ClassId`]: what a link is opened with ([`Settings::class`](super::Settings)), so that its frames go there, and no more than its `reach` lie below at a time, wherever in
//!   the kernel. Packet sockets and UDP can; `AF_XDP` goes past all queues, and its completion ring tells what is below;
//! * [`Stirs`](super::Stirs): word that one of them has left;
//! * [`Unenforced`]: why no bound can be had on a link, owned or not.

mod error;
mod held;
mod htb;
mod unenforced;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

use self::error::OwnCause::System;
pub use self::error::{OwnCause, OwnError, PutBackCause, PutBackError, RootQueue};
pub(super) use self::held::Held;
use self::htb::Step;
pub use self::unenforced::{Own, Unenforced, unenforced};
use super::{OpenCause, call, interface};
use crate::enforce::guardian::link::{LinkChange, PutBack, Requests, segments_of};
use crate::enforce::guardian::{self, Undo};
use crate::os::{fork, route};

/// A class of an owned link, by which a socket's frames go (`SO_PRIORITY`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClassId(u32);

impl ClassId {
    /// The class of channels: the same of every interface that is owned.
    pub const CHANNELS: Self = Self((htb::MAJOR as u32) << 16 | htb::CHANNELS as u32);

    /// As a socket's priority.
    #[must_use]
    pub const fn priority(self) -> u32 {
        self.0
    }

    /// Has a socket's frames leave by it.
    pub(super) fn applied_to(self, socket: impl AsFd) -> Result<(), OpenCause> {
        let set = call::set_option(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &self.0);
        set.map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => OpenCause::NoClassRight,
            errno => OpenCause::System("setsockopt", errno),
        })
    }
}

impl fmt::Display for ClassId {
    /// As `tc class show` does: `6c78:10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.0 >> 16, self.0 & 0xffff)
    }
}

/// Where a link is narrowest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bottleneck {
    /// In the class itself: nothing behind it is slower than the rate that is declared, as on a veth, or a card that is declared slower than it is.
    Class,
    /// Behind it: the card, or a switch's port, has just that rate. What the class lets through must be less, or frames queue there, where nobody orders them.
    Below,
}

/// Of a rate behind the class, so many hundredths are used. The rest is left unused: for what the wire adds that nobody counted, and clocks that differ.
pub const SHARE_PERCENT: u64 = 97;

/// How a link is owned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Egress {
    /// What the link carries, in bits a second, with all that a frame takes of it.
    pub rate: u64,
    /// What a frame takes of the link beside what the kernel counts of it (its Ethernet header and what is behind), in bytes: 24 on Ethernet, 0 on a veth.
    pub overhead: u16,
    /// Where the link is narrowest.
    pub bottleneck: Bottleneck,
    /// Whether the kernel leaves no packets to the interface that are still to be cut (`gso_max_segs` 1), so that what a frame may have to wait for is one frame, and not 64 KiB.
    pub single_segments: bool,
}

impl Egress {
    /// What the classes together let through, in bits a second.
    #[must_use]
    pub const fn shaped(&self) -> u64 {
        match self.bottleneck {
            Bottleneck::Class => self.rate,
            Bottleneck::Below => {
                let (whole, rest) = (self.rate / 100, self.rate % 100);
                whole * SHARE_PERCENT + rest * SHARE_PERCENT / 100
            }
        }
    }

    /// What is left unused of the rate, in bits a second.
    #[must_use]
    pub const fn unused(&self) -> u64 {
        self.rate - self.shaped()
    }

    /// The most bytes that leave at once after a pause, by an interface of this MTU: a frame, and what a frame takes or 50 µs do, whichever is more, so that a timer may be late by that and nothing is lost
    /// of the rate. No more than that waits in a queue below the class.
    #[must_use]
    pub const fn burst(&self, mtu: usize) -> u64 {
        self.bucket(mtu) + self.frame(mtu)
    }

    /// What HTB saves up. As long as there is anything, a whole frame leaves.
    const fn bucket(&self, mtu: usize) -> u64 {
        let (late, frame) = (self.shaped() / 8 / LATE_PART, self.frame(mtu));
        if late > frame { late } else { frame }
    }

    /// The longest frame.
    const fn frame(&self, mtu: usize) -> u64 {
        mtu as u64 + 18 + self.overhead as u64
    }
}

/// A timer may be late by this part of a second.
const LATE_PART: u64 = 20_000;

/// A link that this process owns.
#[derive(Debug)]
pub struct Owned {
    interface: String,
    /// Whose it is; what the guardian does, it does through this.
    socket: OwnedFd,
    index: u32,
    change: LinkChange,
    before: Option<RootQueue>,
    egress: Egress,
    /// Which of the processes that were forked from each other this is.
    generation: u32,
    is_put_back: bool,
}

impl Owned {
    /// Owns an interface of this thread's network namespace. The kernel must have chosen its queues by itself.
    ///
    /// # Errors
    ///
    /// [`OwnError`], with what mends it: then the interface is as it was.
    pub fn take(interface: &str, egress: Egress) -> Result<Self, OwnError> {
        Self::try_take(interface, egress).map_err(|cause| OwnError {
            interface: interface.to_owned(),
            cause,
        })
    }

    fn try_take(name: &str, egress: Egress) -> Result<Self, OwnCause> {
        let of = |step: &'static str| move |errno| OwnCause::of(step, errno);
        if egress.shaped() < 8_000 || egress.shaped() > 8 * MOST_BYTES {
            return Err(OwnCause::Rate(egress.rate));
        }
        let socket = route::open().map_err(of("a routing socket"))?;
        let index = index_of(name).map_err(of("the interface"))?;
        let shown = interface::shown(name).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            OwnCause::of("the interface", errno)
        })?;
        let before = root_of(socket.as_fd(), index).map_err(of("its queues"))?;
        match &before {
            Some(root) if root.is_ours() => return Err(OwnCause::Owned),
            Some(root) if !root.is_default() => return Err(OwnCause::Taken(root.clone())),
            _ => {}
        }
        let segments = egress
            .single_segments
            .then(|| segments(socket.as_fd(), index).map_err(of("its gso_max_segs")))
            .transpose()?;
        let change = change(socket.as_fd(), index, segments).map_err(of("the guardian's list"))?;
        // The guardian knows before anything is changed: there is no moment at which a death would leave it so.
        guardian::start()
            .and_then(|guardian| guardian.watch(Undo::Link(&change)))
            .map_err(|error| OwnCause::NoGuardian(error.to_string()))?;
        let owned = Self {
            interface: name.to_owned(),
            socket,
            index,
            change,
            before,
            egress,
            generation: fork::generation(),
            is_put_back: false,
        };
        // What fails has been put back when this returns, as it is dropped.
        owned.make(shown.mtu)?;
        Ok(owned)
    }

    fn make(&self, mtu: usize) -> Result<(), OwnCause> {
        let ask = |(what, message): &Step| {
            let made = route::request(self.socket.as_fd(), message, |_| {});
            made.map_err(|errno| match errno {
                Errno::EXIST => self.came_first(what),
                errno => OwnCause::of(what, errno),
            })
        };
        for step in htb::steps(self.index, mtu, &self.egress) {
            ask(&step)?;
        }
        let [fair, plain] = htb::rest_steps(self.index);
        match ask(&fair) {
            Err(System(_, Errno::NOENT | Errno::OPNOTSUPP)) => ask(&plain)?,
            asked => asked?,
        }
        if self.egress.single_segments {
            ask(&("its gso_max_segs", htb::set_segments(self.index, SINGLE)))?;
        }
        Ok(())
    }

    /// Somebody configured its queues since they were looked at.
    fn came_first(&self, what: &'static str) -> OwnCause {
        match root_of(self.socket.as_fd(), self.index) {
            Ok(Some(root)) => OwnCause::Taken(root),
            _ => System(what, Errno::EXIST),
        }
    }

    /// What a link is opened with whose frames are channels'.
    #[must_use]
    pub const fn class(&self) -> ClassId {
        ClassId::CHANNELS
    }

    /// As it was asked for.
    #[must_use]
    pub const fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Puts the interface back as it was. What somebody else changed meanwhile is left, and told; what others hung below the root goes with it.
    ///
    /// # Errors
    ///
    /// [`PutBackError`]: what is not as it was.
    pub fn put_back(mut self) -> Result<(), PutBackError> {
        let causes = self.undo();
        if causes.is_empty() {
            return Ok(());
        }
        let interface = self.interface.clone();
        Err(PutBackError { interface, causes })
    }

    fn undo(&mut self) -> Vec<PutBackCause> {
        let mut causes = Vec::new();
        // In a child of ours it is its parent's.
        if std::mem::replace(&mut self.is_put_back, true) || self.generation != fork::generation() {
            return causes;
        }
        let PutBack { root, segments } = self.change.put_back();
        if root == Err(Errno::NODEV) {
            causes.push(PutBackCause::Gone);
        } else {
            causes.extend(self.root_left(root));
            causes.extend(match segments {
                Ok(changed) => changed.map(PutBackCause::SegmentsChanged),
                Err(errno) => Some(PutBackCause::System("its gso_max_segs", errno)),
            });
        }
        let is_left = causes
            .iter()
            .any(|cause| matches!(cause, PutBackCause::System(..)));
        if !is_left && let Ok(guardian) = guardian::start() {
            // Who was not told looks again, and finds nothing of ours.
            let _ = guardian.forget(Undo::Link(&self.change));
        }
        causes
    }

    /// What is not as it was at the root, after this came of taking ours away.
    fn root_left(&self, taken_away: Result<(), Errno>) -> Option<PutBackCause> {
        let now = match root_of(self.socket.as_fd(), self.index) {
            Ok(now) => now,
            Err(errno) => return Some(PutBackCause::System("its queues", errno)),
        };
        let kind = |root: &Option<RootQueue>| root.as_ref().map(|root| root.kind.clone());
        match taken_away {
            Err(errno) if now.as_ref().is_some_and(RootQueue::is_ours) => {
                Some(PutBackCause::System("its queues", errno))
            }
            // It never was made.
            Err(_) if now == self.before => None,
            Err(_) => Some(PutBackCause::RootChanged(now)),
            Ok(()) if kind(&now) == kind(&self.before) => None,
            Ok(()) => {
                let before = self.before.clone();
                Some(PutBackCause::OtherDefault { before, now })
            }
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Who wants to know puts it back before.
        let _ = self.undo();
    }
}

/// No packets that are still to be cut.
const SINGLE: u32 = 1;
/// The most bytes a second of a class: what a burst takes is told in 64 ns.
const MOST_BYTES: u64 = 4_250_000_000_000;

fn index_of(name: &str) -> Result<u32, Errno> {
    name_to_index(call::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?, name)
}

/// What undoes it, of an interface that has so many segments where they are changed.
fn change(socket: BorrowedFd<'_>, index: u32, segments: Option<u32>) -> Result<LinkChange, Errno> {
    let set = segments.map(|before| htb::set_segments(index, before));
    let ask = segments.map(|_| htb::ask_link(index));
    let requests = Requests {
        delete: &htb::delete(index),
        ask: ask.as_deref().unwrap_or_default(),
        set: set.as_deref().unwrap_or_default(),
        ours: SINGLE,
    };
    LinkChange::new(socket, requests)
}

/// The root of an interface's queues; `None` where there is none, as while it is down.
fn root_of(socket: BorrowedFd<'_>, index: u32) -> Result<Option<RootQueue>, Errno> {
    let mut root = None;
    let answer = |message: &[u8]| root = htb::root_in(message).or(root.take());
    match route::request(socket, &htb::ask_root(index), answer) {
        Ok(()) | Err(Errno::NOENT) => Ok(root),
        Err(errno) => Err(errno),
    }
}

/// How many segments the kernel leaves to an interface at a time.
fn segments(socket: BorrowedFd<'_>, index: u32) -> Result<u32, Errno> {
    let mut found = None;
    route::request(socket, &htb::ask_link(index), |message| {
        found = segments_of(message).or(found);
    })?;
    found.ok_or(Errno::OPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_class_three_hundredths_stay_unused() {
        let egress = |rate, bottleneck| Egress {
            rate,
            overhead: 24,
            bottleneck,
            single_segments: true,
        };
        let below = egress(100_000_000, Bottleneck::Below);
        assert_eq!((below.shaped(), below.unused()), (97_000_000, 3_000_000));
        assert_eq!(egress(100_000_000, Bottleneck::Class).unused(), 0);
        assert_eq!(egress(199, Bottleneck::Below).shaped(), 193);
        assert!(egress(u64::MAX, Bottleneck::Below).shaped() < u64::MAX);
        assert_eq!(below.burst(1_500), 2 * 1_542);
        let fast = egress(10_000_000_000, Bottleneck::Class);
        assert_eq!(fast.burst(1_500), 62_500 + 1_542);
    }

    #[test]
    fn a_class_is_named_as_tc_names_it() {
        assert_eq!(ClassId::CHANNELS.to_string(), "6c78:10");
        let root = RootQueue {
            kind: "tbf".to_owned(),
            handle: 0x8001_0000,
        };
        assert_eq!(root.to_string(), "tbf 8001:");
        assert!(!root.is_default());
    }
}
