//! The rings between an `AF_XDP` socket and the kernel: each has one who puts in and one who takes out, one of them the kernel.

use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Result;

use crate::net::call::{self, Mapping};

/// What stands in a ring: an address, or a packet.
pub(super) trait Entry: Copy {}

impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// Which ring of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Which {
    /// Memory to receive into.
    Fill,
    /// Memory of what has left.
    Completion,
    /// What arrived.
    Receive,
    /// What is to be sent.
    Send,
}

impl Which {
    /// The option that makes it, and the offset at which it is mapped.
    const fn numbers(self) -> (i32, u64) {
        match self {
            Self::Fill => (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING),
            Self::Completion => (
                libc::XDP_UMEM_COMPLETION_RING,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING,
            ),
            Self::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING as u64),
            Self::Send => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING as u64),
        }
    }

    const fn offsets(self, all: &libc::xdp_mmap_offsets) -> &libc::xdp_ring_offset {
        match self {
            Self::Fill => &all.fr,
            Self::Completion => &all.cr,
            Self::Receive => &all.rx,
            Self::Send => &all.tx,
        }
    }
}

/// A ring of the socket, for whichever side of it is ours.
#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    mask: u32,
    _of: PhantomData<fn(T) -> T>,
}

impl<T: Entry> Ring<T> {
    /// Makes and maps it. `entries` is a power of two.
    fn new(socket: &OwnedFd, which: Which, entries: u32) -> Result<Self> {
        let (option, at) = which.numbers();
        call::set_option(socket, libc::SOL_XDP, option, &entries)?;
        // SAFETY: zeros are a value of it, as of all that is made of integers.
        let nothing: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let all = call::option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, nothing)?;
        let offsets = which.offsets(&all);
        let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
        Ok(Self {
            mapping: Mapping::of(socket, bytes, at)?,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags as usize,
            entries: offsets.desc as usize,
            mask: entries - 1,
            _of: PhantomData,
        })
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel put a word there, aligned, which both sides read and write as one.
        unsafe { AtomicU32::from_ptr(self.mapping.place(at, size_of::<u32>()).cast()) }
    }

    #[inline]
    fn entry(&self, count: u32) -> *mut T {
        let index = (count & self.mask) as usize;
        let at = self.entries + index * size_of::<T>();
        self.mapping.place(at, size_of::<T>()).cast()
    }

    #[inline]
    fn wants_wakeup(&self) -> bool {
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that we put in, and the kernel takes out of.
#[derive(Debug)]
pub(super) struct Outgoing<T> {
    ring: Ring<T>,
    /// How many were put.
    put: u32,
    /// How many the kernel had taken when that was looked at last.
    taken: u32,
}

impl<T: Entry> Outgoing<T> {
    pub(super) fn new(socket: &OwnedFd, which: Which, entries: u32) -> Result<Self> {
        let ring = Ring::new(socket, which, entries)?;
        Ok(Self {
            ring,
            put: 0,
            taken: 0,
        })
    }

    /// Whether one more fits.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        let is_full = |own: &Self| own.put.wrapping_sub(own.taken) > own.ring.mask;
        if is_full(self) {
            self.taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        }
        !is_full(self)
    }

    /// Puts one in, which the kernel may take from now on. There is [room](Self::has_room).
    #[inline]
    pub(super) fn put(&mut self, entry: T) {
        debug_assert!(self.has_room());
        // SAFETY: it lies in the ring, and the kernel does not read it before it is counted.
        unsafe { self.ring.entry(self.put).write(entry) };
        self.put = self.put.wrapping_add(1);
        self.ring
            .word(self.ring.producer)
            .store(self.put, Ordering::Release);
    }

    /// How many the kernel has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        let taken = self.ring.word(self.ring.consumer).load(Ordering::Acquire);
        self.put.wrapping_sub(taken)
    }

    /// Takes the last one back, if the kernel has not taken it; it does so only within calls on the socket, of which none may be under way.
    pub(super) fn take_back(&mut self) -> Option<T> {
        if self.waiting() == 0 {
            return None;
        }
        self.put = self.put.wrapping_sub(1);
        self.ring
            .word(self.ring.producer)
            .store(self.put, Ordering::Release);
        // SAFETY: it lies in the ring, and we wrote it.
        Some(unsafe { self.ring.entry(self.put).read() })
    }

    /// Whether the kernel takes nothing before it is told.
    #[inline]
    pub(super) fn wants_wakeup(&self) -> bool {
        self.ring.wants_wakeup()
    }
}

/// A ring that the kernel puts in, and we take out of.
#[derive(Debug)]
pub(super) struct Incoming<T> {
    ring: Ring<T>,
    taken: u32,
    /// How many the kernel had put when that was looked at last.
    put: u32,
}

impl<T: Entry> Incoming<T> {
    pub(super) fn new(socket: &OwnedFd, which: Which, entries: u32) -> Result<Self> {
        let ring = Ring::new(socket, which, entries)?;
        Ok(Self {
            ring,
            taken: 0,
            put: 0,
        })
    }

    /// How many were taken.
    pub(super) const fn taken(&self) -> u32 {
        self.taken
    }

    /// How many the kernel has put.
    pub(super) fn put(&self) -> u32 {
        self.ring.word(self.ring.producer).load(Ordering::Acquire)
    }

    /// Takes the first.
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        if self.put == self.taken {
            self.put = self.ring.word(self.ring.producer).load(Ordering::Acquire);
            if self.put == self.taken {
                return None;
            }
        }
        // SAFETY: it lies in the ring; the kernel wrote it before it counted it, and writes it no more before it is taken.
        let entry = unsafe { self.ring.entry(self.taken).read() };
        self.taken = self.taken.wrapping_add(1);
        self.ring
            .word(self.ring.consumer)
            .store(self.taken, Ordering::Release);
        Some(entry)
    }
}
