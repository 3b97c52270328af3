//! `AF_XDP` in copy mode: packets are taken at an interface's hook, and written by the kernel into memory that it shares.
//!
//! * [`umem`]: that memory, in frames that one holder has each;
//! * `rings`: what goes back and forth between the kernel and a socket;
//! * [`program`]: the programs at the hook; [`early`]: who is found there.
//!
//! The interface's first queue is served, alone: the kernel has the packets of the others, and of this one none. In the generic mode the kernel tells of no
//! packet whether its checksum is only begun; that is seen in the packet. Packets that are longer than a frame, as those of 64 KiB that
//! are still to be cut, are dropped and counted.

pub mod early;
mod open;
pub mod program;
mod rings;
pub mod umem;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use laxity_model::nif::link::{Facts, Left, Link, LinkError, Losses, Memory as _, Received, Stamp};
use laxity_model::nif::registry::ClientId;
use laxity_model::{Instant, Span};
use rustix::io::Errno;

use self::early::Early;
use self::rings::{Incoming, Outgoing};
use self::umem::{Holder, Pool, UmemFrame};
use super::call;
use super::interface::Watch;
use super::unfinished::{fits, is_only_begun};
pub use crate::net::bpf::Mode;
pub(super) use open::try_program;

/// The most sockets of an interface.
const SOCKETS: u32 = 256;

/// An interface by `AF_XDP`. Its address is the kernel's own; what arrives is not the kernel's.
///
/// The instant of an arrival is that at the hook, where the driver leaves room for it; every one does in the generic mode.
#[derive(Debug)]
pub struct XdpLink {
    /// Closed first: who has no program needs no socket.
    hook: Hook,
    socket: OwnedFd,
    /// While it is open, the interface takes what is addressed to others, too.
    _seeing: Option<OwnedFd>,
    further: Vec<Arc<OwnedFd>>,
    fill: Outgoing<u64>,
    completion: Incoming<u64>,
    receive: Incoming<libc::xdp_desc>,
    send: Outgoing<libc::xdp_desc>,
    pool: Arc<Pool>,
    facts: Facts,
    watch: Watch,
    most_posted: usize,
    /// How many were posted, less those that came back by this socket.
    posted: usize,
    sending: usize,
    /// Which completions are of frames that the kernel threw away.
    thrown_away: VecDeque<u32>,
    has_thrown_away: bool,
    /// The kernel has let go of all memory.
    is_unbound: bool,
    reclaimed: u32,
    /// By how much this process's clock is ahead of the kernel's; `None`: unknown, so that stamps say nothing.
    ahead: Option<i64>,
}

/// The program, by what keeps it where it is.
#[derive(Debug)]
struct Hook {
    _attached: OwnedFd,
    sockets: super::bpf::Map<u32, u32>,
    early: Option<Arc<Early>>,
}

impl XdpLink {
    /// The clients that are found at the hook, for any thread; `None` where it was opened without.
    pub fn early(&self) -> Option<&Arc<Early>> {
        self.hook.early.as_ref()
    }

    /// Has what was put into the ring leave.
    fn kick(&mut self) -> Result<(), LinkError> {
        // The kernel sends 32 a call.
        let mut before = u32::MAX;
        while before > self.send.waiting() && self.send.waiting() > 0 && self.send.wants_wakeup() {
            before = self.send.waiting();
            match call::send_ring(&self.socket) {
                // There is no room below: the rest stays in the ring.
                Ok(()) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => {}
                // One was taken, completed within this call, and thrown away: the wire is not there, or the device has no room. Others may have been before it, or come.
                // The kernel stops at it (`__xsk_generic_xmit`), and what finds a queue stopped is not completed, but stays in the ring (EAGAIN). So its completion is the last, whatever was
                // completed before it in this call, unless the device lets go of an earlier frame at this very moment, or has not let go of it yet, as a card does by its interrupt: then one of those is told in its place. As
                // many are told as were thrown away.
                Err(Errno::BUSY) => {
                    let last = self.completion.put().wrapping_sub(1);
                    self.thrown_away.push_back(last);
                    before = u32::MAX;
                }
                Err(errno) => return Err(self.watch.refused("sendto", errno)),
            }
        }
        Ok(())
    }

    /// Whether the interface is there and up; told as [`Link::receive`] does.
    fn look(&mut self, now: Instant) -> Result<(), LinkError> {
        if self.is_unbound {
            return Err(LinkError::Gone);
        }
        match self.watch.look(now) {
            Err(LinkError::Gone) => {
                // Gone it is when no socket has it any more: until then the kernel may write.
                let sockets = self.further.iter().map(AsFd::as_fd);
                let mut all = sockets.chain([self.socket.as_fd()]);
                let is_let_go = |socket| call::send_ring(socket) == Err(Errno::NXIO);
                self.is_unbound = all.all(is_let_go);
                if self.is_unbound {
                    Err(LinkError::Gone)
                } else {
                    Ok(())
                }
            }
            looked => looked,
        }
    }

    fn place(&mut self, memory: UmemFrame, length: usize) -> Result<(), (UmemFrame, LinkError)> {
        if !memory.is_of(&self.pool) {
            let why = "this memory is another interface's";
            return Err((memory, LinkError::Failed(why.to_owned())));
        }
        let fitting = fits(memory.bytes(), length, self.facts.mtu);
        if let Err(error) = fitting {
            return Err((memory, error));
        }
        if self.is_unbound {
            return Err((memory, LinkError::Gone));
        }
        if self.sending >= self.facts.reach || !self.send.has_room() {
            return Err((memory, LinkError::Full));
        }
        self.send.put(libc::xdp_desc {
            addr: self.pool.lend(memory, Holder::Sending),
            len: length as u32,
            options: 0,
        });
        self.sending += 1;
        Ok(())
    }

    /// Packets that a socket was handed, for their credit where clients are found early, and did not take; `None` where one does not tell.
    pub fn lost_below(&self) -> Option<u64> {
        let (Losses { is_partial, .. }, lost) = self.counted();
        (!is_partial).then_some(lost)
    }

    /// What the sockets' own counters say: packets that found no memory or no room in a ring, and packets that do not fit; and how many these are together.
    fn counted(&self) -> (Losses, u64) {
        let sockets = self.further.iter().map(AsFd::as_fd);
        let all = sockets.chain([self.socket.as_fd()]);
        // SAFETY: zeros are a value of it, as of all that is made of integers.
        let nothing: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let mut counted = Losses::default();
        let mut lost = 0;
        for (at, socket) in all.enumerate() {
            let (level, name) = (libc::SOL_XDP, libc::XDP_STATISTICS);
            let Ok(found) = call::option(socket, level, name, nothing) else {
                counted.is_partial = true;
                continue;
            };
            // All sockets tell of the one fill ring that they have together.
            let empty = if at == 0 {
                found.rx_fill_ring_empty_descs
            } else {
                0
            };
            counted.no_room += found.rx_ring_full + empty;
            counted.too_long += found.rx_dropped;
            lost += found.rx_dropped + found.rx_ring_full;
        }
        // What found no memory is among what was dropped.
        counted.too_long = counted.too_long.saturating_sub(counted.no_room);
        (counted, lost)
    }
}

/// A packet out of a socket's ring, with what the program wrote in front of it.
#[inline]
fn received(
    packet: libc::xdp_desc,
    mut memory: UmemFrame,
    is_early: bool,
    ahead: Option<i64>,
    now: Instant,
) -> Received<UmemFrame> {
    let most = memory.bytes().len();
    let shift = memory
        .shift_of(packet.addr)
        .map_or(most, |shift| shift.min(most));
    let length = (packet.len as usize).min(most - shift);
    let in_front = memory.in_front::<{ program::IN_FRONT }>();
    if shift > 0 {
        memory.bytes_mut().copy_within(shift..shift + length, 0);
    }
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| in_front[at + byte]));
    let is_stamped = word(0) == program::MARK;
    let hook = u64::from_ne_bytes(std::array::from_fn(|byte| in_front[8 + byte]));
    let (at, stamp) = match ahead.filter(|_| is_stamped) {
        Some(ahead) => (
            Instant::from_nanos(hook.saturating_add_signed(ahead)),
            Stamp::Hook,
        ),
        None => (now, Stamp::Read),
    };
    let left = Left {
        checksum: is_only_begun(&memory.bytes()[..length]),
        segment: 0,
    };
    Received {
        memory,
        length,
        at,
        stamp,
        left,
        early: (is_early && is_stamped).then(|| word(4)),
    }
}

impl Link for XdpLink {
    type Memory = UmemFrame;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Self::Memory>, LinkError> {
        if self.is_unbound {
            return Err(LinkError::Gone);
        }
        let mut all = Vec::new();
        while all.len() < packets {
            let Some(frame) = self.pool.take() else {
                let (left, of) = (all.len(), self.pool.frames());
                let why = format!(
                    "there is memory for {left} packets more, of {of}, and {packets} were asked for"
                );
                return Err(LinkError::Failed(why));
            };
            all.push(frame);
        }
        Ok(all)
    }

    #[inline]
    fn post(&mut self, mut memory: Self::Memory) -> Result<(), Self::Memory> {
        let may = !self.is_unbound
            && memory.is_of(&self.pool)
            && self.posted - self.pool.taken_early() < self.most_posted
            && self.fill.has_room();
        if !may {
            return Err(memory);
        }
        memory.clear_in_front::<{ program::IN_FRONT }>();
        self.posted += 1;
        self.fill.put(self.pool.lend(memory, Holder::Posted));
        Ok(())
    }

    #[inline]
    fn receive(&mut self, now: Instant) -> Result<Option<Received<Self::Memory>>, LinkError> {
        let is_early = self.hook.early.is_some();
        while let Some(packet) = self.receive.take() {
            // Nothing is there, that was reclaimed meanwhile.
            if let Some(memory) = self.pool.back(packet.addr, Holder::Posted) {
                self.posted -= 1;
                return Ok(Some(received(packet, memory, is_early, self.ahead, now)));
            }
        }
        self.look(now).map(|()| None)
    }

    fn send(
        &mut self,
        memory: Self::Memory,
        length: usize,
        _: Instant,
    ) -> Result<(), (Self::Memory, LinkError)> {
        self.place(memory, length)?;
        let Err(error) = self.kick() else {
            return Ok(());
        };
        // In copy mode the kernel takes frames within `sendto` only, which this was.
        let last = self.send.take_back();
        match last.and_then(|last| self.pool.back(last.addr, Holder::Sending)) {
            Some(memory) => {
                self.sending -= 1;
                Err((memory, error))
            }
            None => Ok(()),
        }
    }

    fn queue(
        &mut self,
        memory: Self::Memory,
        length: usize,
        left: Left,
        _: Instant,
    ) -> Result<(), (Self::Memory, LinkError)> {
        if left != Left::default() {
            let why = "AF_XDP finishes neither checksums nor segments";
            return Err((memory, LinkError::Failed(why.to_owned())));
        }
        self.place(memory, length)
    }

    fn flush(&mut self, _: Instant) -> Result<(), LinkError> {
        self.kick()
    }

    fn has_discarded(&self) -> bool {
        false
    }

    fn is_silent(&self) -> bool {
        true
    }

    fn ended(&mut self, _: ClientId) {}

    #[inline]
    fn sent(&mut self, _: Instant) -> Option<Self::Memory> {
        if self.sending == 0 {
            return None;
        }
        let at = self.completion.taken();
        let mut done = self.completion.take();
        if done.is_none() && !self.is_unbound {
            // It was left over, while the interface was down or had no room.
            let _ = self.kick();
            done = self.completion.take();
        }
        let memory = self.pool.back(done?, Holder::Sending)?;
        let is_at = |thrown: &u32| at.wrapping_sub(*thrown) as i32 >= 0;
        self.has_thrown_away = self.thrown_away.front().is_some_and(is_at);
        if self.has_thrown_away {
            self.thrown_away.pop_front();
        }
        self.sending -= 1;
        Some(memory)
    }

    fn has_thrown_away(&self) -> bool {
        self.has_thrown_away
    }

    fn reclaim(&mut self) -> Option<Self::Memory> {
        if !self.is_unbound {
            return None;
        }
        while self.reclaimed < self.pool.frames() {
            let index = self.reclaimed;
            self.reclaimed += 1;
            let posted = self.pool.back_of(index, Holder::Posted);
            let found = posted.or_else(|| self.pool.back_of(index, Holder::Sending));
            if found.is_some() {
                return found;
            }
        }
        self.sending = 0;
        None
    }

    fn losses(&self) -> Losses {
        let (mut losses, _) = self.counted();
        let early = self.hook.early.as_ref();
        let [no_credit, too_long] = early.map_or([0; 2], |early| early.all_dropped());
        losses.no_room += no_credit;
        losses.too_long += too_long;
        losses
    }
}

impl Drop for XdpLink {
    /// The kernel's shares in the memory are given up: it keeps what it may still write to by itself, and none of these frames is handed out again.
    fn drop(&mut self) {
        for index in 0..self.pool.frames() {
            for from in [Holder::Posted, Holder::Sending] {
                drop(self.pool.back_of(index, from));
            }
        }
    }
}

impl AsFd for XdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How long a queue or a hook may be held by somebody who is gone already: the kernel takes tens of milliseconds to let go of it, and longer on processors that others keep busy.
const LETS_GO_WITHIN: Span = Span::from_secs(1);
