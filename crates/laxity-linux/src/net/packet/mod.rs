//! Packet sockets (`AF_PACKET`): rings of the second version, as those of the third hand a packet on up to a millisecond late.
//!
//! The kernel has every packet too, and answers it; what is sent goes to the device past all queues (`PACKET_QDISC_BYPASS`), or by a class of an owned link: either way no more
//! lie below than are told, since a frame of the ring is the socket's again when it has left the device. Each packet stands behind what was left of it (`PACKET_VNET_HDR`).

mod ring;
mod stamp;

use std::cell::Cell;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use laxity_model::Instant;
use laxity_model::nif::filter::classic::Instruction;
use laxity_model::nif::link::{Facts, Left, LinkError, Medium, Stamp};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use self::ring::{Layout, Ring};
use self::stamp::{Both, Stamps};
use super::Settings;
use super::call::{self, Mapping};
use super::copied::{Below, Copied, Packet, Read};
use super::error::{OpenCause, OpenError};
use super::interface::{Interface, Watch};
use super::unfinished::{ETHERNET, HEADER, LONGEST, TAG, header_of, left_of};
use crate::os::clock;

/// A packet socket of an interface.
pub type PacketLink = Copied<PacketSocket>;

/// Where the frame begins that is to be sent: behind the header, at the next multiple of 16.
const SENT_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
/// What stands in front of a packet that was received, at most: the header, an address, the Ethernet header up to 16 bytes, virtio-net's.
const IN_FRONT: usize = 128;
/// Up to so many bytes the kernel copies as the header's length says, since to keep pages of the ring for each frame takes longer, and so does whoever reads headers from them.
const COPIED: usize = 2_048;
/// The kernel's name of rings of the second version.
const SECOND_VERSION: i32 = 1;

/// The way to a packet socket.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    watch: Watch,
    facts: Facts,
    memory: Mapping,
    incoming: Ring,
    outgoing: Ring,
    /// How many frames were taken from the one, put into the other, and told as sent.
    taken: usize,
    put: usize,
    told: usize,
    stamps: Stamps,
    dropped: Cell<u64>,
    segments: bool,
}

impl PacketLink {
    /// Opens a socket that receives all that the interface does.
    ///
    /// # Errors
    ///
    /// [`OpenError`], with what mends it.
    pub fn open(interface: &str, settings: &Settings) -> Result<Self, OpenError> {
        Self::filtered(interface, settings, &[])
    }

    /// One that receives only what the filter lets through, from its first packet on; all, if that has no instructions.
    ///
    /// # Errors
    ///
    /// [`OpenError`], with what mends it; also where the kernel refuses the filter.
    pub fn filtered(
        interface: &str,
        settings: &Settings,
        filter: &[Instruction],
    ) -> Result<Self, OpenError> {
        let name = format!("packet:{interface}");
        let socket = PacketSocket::open(interface, &name, settings, filter);
        let socket = socket.map_err(|cause| cause.of(&name))?;
        let longest = match settings.segments {
            true => LONGEST,
            false => socket.facts.mtu + ETHERNET + TAG,
        };
        Ok(Self::new(socket, settings, longest))
    }
}

/// Receives nothing before it is bound.
pub(super) fn raw_socket() -> Result<OwnedFd, OpenCause> {
    call::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|errno| OpenCause::of_socket("AF_PACKET", errno))
}

/// Has the interface of this index take what is addressed to others, too, until the socket is closed; that need not be bound.
pub(super) fn see_all(socket: &OwnedFd, interface: u32) -> Result<(), OpenCause> {
    let request = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    call::set_option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &request,
    )
    .map_err(|errno| OpenCause::System("PACKET_ADD_MEMBERSHIP", errno))
}

impl PacketSocket {
    fn open(
        interface: &str,
        name: &str,
        settings: &Settings,
        filter: &[Instruction],
    ) -> Result<Self, OpenCause> {
        let socket = raw_socket()?;
        let interface = Interface::find(interface)?;
        let longest = match settings.segments {
            true => LONGEST,
            false => interface.mtu + ETHERNET + TAG,
        };
        let incoming = Layout::of(settings.posted, longest + IN_FRONT);
        let outgoing = Layout::of(settings.reach(), longest + SENT_AT + HEADER);
        match settings.class {
            Some(class) => class.applied_to(&socket)?,
            None => set_option(&socket, libc::PACKET_QDISC_BYPASS, 1)?,
        }
        set_options(&socket, incoming, outgoing)?;
        attach(&socket, filter)?;
        let bytes = incoming.bytes() + outgoing.bytes();
        let memory = Mapping::of(&socket, bytes, 0).map_err(|_| OpenCause::NoMemory(bytes))?;
        // SAFETY: zeros are a value of it, as of all that is made of integers.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface.index as i32;
        call::bind(&socket, &address).map_err(|errno| OpenCause::System("bind", errno))?;
        if settings.promiscuous {
            see_all(&socket, interface.index)?;
        }
        Ok(Self {
            facts: Facts {
                name: name.to_owned(),
                address: interface.address,
                mtu: interface.mtu,
                reach: settings.reach(),
                is_shared_with_kernel: true,
                medium: Medium::Ethernet,
                gathers: true,
                copies: true,
            },
            watch: Watch::new(interface),
            incoming: Ring::new(0, incoming),
            outgoing: Ring::new(incoming.bytes(), outgoing),
            socket,
            memory,
            taken: 0,
            put: 0,
            told: 0,
            stamps: Stamps::new(both()),
            dropped: Cell::new(0),
            segments: settings.segments,
        })
    }
}

fn set_option(socket: &OwnedFd, name: i32, value: i32) -> Result<(), OpenCause> {
    call::set_option(socket, libc::SOL_PACKET, name, &value)
        .map_err(|errno| OpenCause::System("setsockopt", errno))
}

fn set_options(socket: &OwnedFd, incoming: Layout, outgoing: Layout) -> Result<(), OpenCause> {
    let set = |name: i32, value: i32| set_option(socket, name, value);
    set(libc::PACKET_VERSION, SECOND_VERSION)?;
    set(libc::PACKET_VNET_HDR, 1)?;
    // One's own frames are no arrivals.
    set(libc::PACKET_IGNORE_OUTGOING, 1)?;
    // A frame that the device does not take at all does not stop those behind it.
    set(libc::PACKET_LOSS, 1)?;
    for (name, layout) in [
        (libc::PACKET_RX_RING, incoming),
        (libc::PACKET_TX_RING, outgoing),
    ] {
        let ring = call::set_option(socket, libc::SOL_PACKET, name, &layout.request());
        ring.map_err(|_| OpenCause::NoMemory(layout.bytes()))?;
    }
    Ok(())
}

fn attach(socket: &OwnedFd, filter: &[Instruction]) -> Result<(), OpenCause> {
    if filter.is_empty() {
        return Ok(());
    }
    let instructions = filter.iter().map(|one| libc::sock_filter {
        code: one.code,
        jt: one.jump_true,
        jf: one.jump_false,
        k: one.operand,
    });
    let mut instructions: Vec<_> = instructions.collect();
    let program = libc::sock_fprog {
        len: instructions.len().try_into().unwrap_or(u16::MAX),
        filter: instructions.as_mut_ptr(),
    };
    call::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
        .map_err(|errno| OpenCause::System("the filter", errno))
}

/// Both clocks now, one read between two readings of the other.
fn both() -> Both {
    let before = clock::now();
    let of_day = clock_gettime(ClockId::Realtime);
    let after = clock::now();
    Both {
        monotonic: before + after.saturating_since(before) / 2,
        of_day: nanoseconds(of_day.tv_sec as u64, of_day.tv_nsec as u64),
    }
}

const fn nanoseconds(seconds: u64, nanoseconds: u64) -> u64 {
    seconds * 1_000_000_000 + nanoseconds
}

/// Copies a packet, and puts back the tag that the kernel took out of it. Returns its length; `None` if it does not fit.
#[inline]
fn copy(packet: &[u8], tag: Option<[u16; 2]>, into: &mut [u8]) -> Option<usize> {
    let Some([kind, control]) = tag.filter(|_| packet.len() >= ETHERNET) else {
        into.get_mut(..packet.len())?.copy_from_slice(packet);
        return Some(packet.len());
    };
    let length = packet.len() + TAG;
    let into = into.get_mut(..length)?;
    let (addresses, rest) = packet.split_at(ETHERNET - 2);
    into[..ETHERNET - 2].copy_from_slice(addresses);
    into[12..14].copy_from_slice(&kind.to_be_bytes());
    into[14..16].copy_from_slice(&control.to_be_bytes());
    into[16..].copy_from_slice(rest);
    Some(length)
}

impl Below for PacketSocket {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&mut self, into: &mut [u8], now: Instant) -> Result<Read, LinkError> {
        let frame = self.incoming.frame(&self.memory, self.taken);
        let status = frame.status();
        if status & libc::TP_STATUS_USER == 0 {
            self.stamps.empty_at(now);
            let is_due = self.watch.is_due(now);
            let looked = self.watch.look(now);
            if is_due || looked.is_err() {
                // The kernel keeps its own word of an interface that went down, though it be up again by now; a wait for packets would end at once by that, again and again.
                let _ = call::option(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR, 0_i32);
            }
            return looked.map(|()| Read::Nothing);
        }
        let header = frame.header();
        let at = usize::from(header.tp_mac);
        let packet = frame.bytes(at, header.tp_snaplen as usize);
        let is_whole = header.tp_len as usize == packet.len();
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let is_told = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if is_told { header.tp_vlan_tpid } else { 0x8100 };
            [kind, header.tp_vlan_tci]
        });
        let length = is_whole.then(|| copy(packet, tag, into)).flatten();
        let mut in_front = [0; HEADER];
        let left = frame.bytes(at.saturating_sub(HEADER), HEADER);
        in_front[..left.len()].copy_from_slice(left);
        frame.give(libc::TP_STATUS_KERNEL);
        self.taken = self.taken.wrapping_add(1);
        let stamp = nanoseconds(header.tp_sec.into(), header.tp_nsec.into());
        let at = self.stamps.instant(stamp, now, both);
        Ok(length.map_or(Read::TooLong, |length| {
            Read::Packet(Packet {
                length,
                at,
                stamp: Stamp::PacketSocket,
                left: left_of(&in_front),
            })
        }))
    }

    fn write(&mut self, pieces: &[IoSlice<'_>], left: Left) -> Result<(), LinkError> {
        if self.watch.is_gone() {
            return Err(LinkError::Gone);
        }
        let frame = self.outgoing.frame(&self.memory, self.put);
        if frame.status() != libc::TP_STATUS_AVAILABLE {
            return Err(LinkError::Full);
        }
        let mut header = header_of(&pieces[0], left)?;
        let whole: usize = pieces.iter().map(|piece| piece.len()).sum();
        if left.segment == 0 && whole <= COPIED {
            header[2..4].copy_from_slice(&(whole as u16).to_ne_bytes());
        }
        frame.put(SENT_AT, &header);
        let mut length = HEADER;
        for piece in pieces {
            frame.put(SENT_AT + length, piece);
            length += piece.len();
        }
        frame.set_length(length as u32);
        frame.give(libc::TP_STATUS_SEND_REQUEST);
        self.put = self.put.wrapping_add(1);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        match call::send_ring(&self.socket) {
            // What has not left for want of room leaves with the next.
            Ok(()) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(()),
            Err(errno) => Err(self.watch.refused("sendto", errno)),
        }
    }

    fn take_back(&mut self) -> bool {
        let last = self.put.wrapping_sub(1);
        let frame = self.outgoing.frame(&self.memory, last);
        // The kernel looks at frames within `sendto` only, which nobody else calls.
        let is_ours = self.put != self.told && frame.status() == libc::TP_STATUS_SEND_REQUEST;
        if is_ours {
            frame.give(libc::TP_STATUS_AVAILABLE);
            self.put = last;
        }
        is_ours
    }

    fn has_left(&mut self) -> bool {
        let frame = self.outgoing.frame(&self.memory, self.told);
        if frame.status() == libc::TP_STATUS_SEND_REQUEST && !self.watch.is_gone() {
            // It was left over, while the interface was down or had no room.
            let _ = self.flush();
        }
        let has_left = frame_is_free(&self.outgoing, &self.memory, self.told);
        if has_left {
            self.told = self.told.wrapping_add(1);
        }
        has_left
    }

    fn overflown(&self) -> Option<u64> {
        let none = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // The kernel counts from zero again each time that it is asked.
        let counted = call::option(&self.socket, level, name, none).ok()?;
        let dropped = self.dropped.get() + u64::from(counted.tp_drops);
        self.dropped.set(dropped);
        Some(dropped)
    }

    fn is_gone(&self) -> bool {
        self.watch.is_gone()
    }

    fn finishes(&self) -> bool {
        self.segments
    }
}

fn frame_is_free(ring: &Ring, memory: &Mapping, count: usize) -> bool {
    let status = ring.frame(memory, count).status();
    matches!(
        status,
        libc::TP_STATUS_AVAILABLE | libc::TP_STATUS_WRONG_FORMAT
    )
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
