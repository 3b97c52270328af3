//! Memory that the kernel and this process have together (UMEM), cut into frames of one size, each of which one holder has.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use laxity_model::nif::link::Memory;

use crate::net::call::Mapping;

/// What the kernel leaves free in front of each packet (`XDP_PACKET_HEADROOM`).
const IN_FRONT: usize = 256;
/// No frame.
const NONE: u32 = u32::MAX;

/// Who has a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Holder {
    /// A [`UmemFrame`], or nobody.
    Us = 0,
    /// The kernel, to receive into.
    Posted = 1,
    /// The kernel, to send.
    Sending = 2,
}

/// The memory of all frames. Those that nobody has are kept in a stack without locks, so that whoever drops one never waits.
#[derive(Debug)]
pub(super) struct Pool {
    mapping: Mapping,
    frame_bytes: usize,
    holders: Box<[AtomicU8]>,
    /// The next of each in the stack.
    next: Box<[AtomicU32]>,
    /// The first, and in the upper half how often it has been changed: who saw another in between does not take it for the same.
    first: AtomicU64,
    /// How many were taken out of the rings of further sockets.
    taken_early: AtomicUsize,
}

/// A frame of memory that the kernel shares: nobody else has it. Dropped, it goes back to its interface.
pub struct UmemFrame {
    pool: Arc<Pool>,
    index: u32,
}

impl Pool {
    pub(super) fn new(frames: u32, frame_bytes: usize) -> rustix::io::Result<Arc<Self>> {
        let mapping = Mapping::anonymous(frames as usize * frame_bytes)?;
        let next = (1..frames).chain([NONE]).map(AtomicU32::new).collect();
        Ok(Arc::new(Self {
            mapping,
            frame_bytes,
            holders: (0..frames).map(|_| AtomicU8::new(0)).collect(),
            next,
            first: AtomicU64::new(0),
            taken_early: AtomicUsize::new(0),
        }))
    }

    /// As the kernel is told of it.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.mapping.place(0, 0) as u64,
            len: self.mapping.length() as u64,
            chunk_size: self.frame_bytes as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    /// The most bytes of a packet in a frame of this size.
    pub(super) const fn longest(frame_bytes: usize) -> usize {
        frame_bytes - IN_FRONT
    }

    fn pop(&self) -> Option<u32> {
        let mut first = self.first.load(Ordering::Acquire);
        loop {
            let index = first as u32;
            let next = self.next.get(index as usize)?.load(Ordering::Relaxed);
            let changed = (first >> 32).wrapping_add(1) << 32 | u64::from(next);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match (self.first).compare_exchange_weak(first, changed, success, failure) {
                Ok(_) => return Some(index),
                Err(other) => first = other,
            }
        }
    }

    fn push(&self, index: u32) {
        let mut first = self.first.load(Ordering::Acquire);
        loop {
            self.next[index as usize].store(first as u32, Ordering::Relaxed);
            let changed = (first >> 32).wrapping_add(1) << 32 | u64::from(index);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match (self.first).compare_exchange_weak(first, changed, success, failure) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// A frame that nobody has.
    pub(super) fn take(self: &Arc<Self>) -> Option<UmemFrame> {
        let index = self.pop()?;
        Some(UmemFrame {
            pool: Arc::clone(self),
            index,
        })
    }

    /// How many frames were taken out of the rings of further sockets, of those that were posted.
    #[inline]
    pub(super) fn taken_early(&self) -> usize {
        self.taken_early.load(Ordering::Relaxed)
    }

    /// How many frames there are.
    pub(super) fn frames(&self) -> u32 {
        self.holders.len() as u32
    }

    /// Gives a frame to the kernel, which keeps its share in this memory. Returns its packet's address there.
    #[inline]
    pub(super) fn lend(&self, frame: UmemFrame, to: Holder) -> u64 {
        let index = frame.index as usize;
        std::mem::forget(frame);
        self.holders[index].store(to as u8, Ordering::Release);
        (index * self.frame_bytes + IN_FRONT) as u64
    }

    /// Takes a frame back that the kernel has given back, by an address in it; `None` where it did not have it. Only for who also
    /// [reclaims](Self::back_of): nobody else takes the same frame meanwhile.
    #[inline]
    pub(super) fn back(self: &Arc<Self>, address: u64, from: Holder) -> Option<UmemFrame> {
        let index = self.index_of(address)?;
        let holder = self.holders.get(index as usize)?;
        if holder.load(Ordering::Acquire) != from as u8 {
            return None;
        }
        holder.store(Holder::Us as u8, Ordering::Relaxed);
        Some(self.returned(index))
    }

    /// The same of a packet in the ring of a further socket, while the frame may be reclaimed elsewhere.
    #[inline]
    pub(super) fn back_early(self: &Arc<Self>, address: u64) -> Option<UmemFrame> {
        let frame = self.back_of(self.index_of(address)?, Holder::Posted)?;
        self.taken_early.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    /// Takes a frame back by its number, whether the kernel has given it back or will never use it again.
    pub(super) fn back_of(self: &Arc<Self>, index: u32, from: Holder) -> Option<UmemFrame> {
        let holder = self.holders.get(index as usize)?;
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        holder
            .compare_exchange(from as u8, Holder::Us as u8, success, failure)
            .ok()?;
        Some(self.returned(index))
    }

    fn index_of(&self, address: u64) -> Option<u32> {
        (address / self.frame_bytes as u64).try_into().ok()
    }

    /// The handle of a frame that was lent, and is so no more.
    #[inline]
    fn returned(self: &Arc<Self>, index: u32) -> UmemFrame {
        // SAFETY: the handle that was lent left its share in this very memory, which becomes this one's; as who has the frame changed just now, from the
        // kernel to us, nobody else makes a handle of the same share.
        let pool = unsafe { Arc::from_raw(Arc::as_ptr(self)) };
        UmemFrame { pool, index }
    }
}

impl UmemFrame {
    /// Whether it is of this memory.
    pub(super) fn is_of(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }

    fn place(&self, at: usize, bytes: usize) -> *mut u8 {
        let base = self.index as usize * self.pool.frame_bytes;
        (self.pool.mapping).place(base + at, bytes)
    }

    /// What a program at the hook wrote in front of the packet.
    #[inline]
    pub(super) fn in_front<const N: usize>(&self) -> [u8; N] {
        let place = self.place(IN_FRONT - N, N);
        // SAFETY: it lies in this frame, which nobody else has.
        unsafe { place.cast::<[u8; N]>().read() }
    }

    /// Forgets that.
    #[inline]
    pub(super) fn clear_in_front<const N: usize>(&mut self) {
        let place = self.place(IN_FRONT - N, N);
        // SAFETY: as above.
        unsafe { place.cast::<[u8; N]>().write([0; N]) };
    }

    /// Where the kernel says that a packet begins, from where packets begin; `None` where that is not in the frame.
    pub(super) fn shift_of(&self, address: u64) -> Option<usize> {
        (address as usize % self.pool.frame_bytes).checked_sub(IN_FRONT)
    }
}

impl Memory for UmemFrame {
    fn bytes(&self) -> &[u8] {
        let length = Pool::longest(self.pool.frame_bytes);
        // SAFETY: they lie in this frame, which nobody else has: neither the kernel nor another handle.
        unsafe { std::slice::from_raw_parts(self.place(IN_FRONT, length), length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let length = Pool::longest(self.pool.frame_bytes);
        // SAFETY: as above, and the handle is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.place(IN_FRONT, length), length) }
    }
}

impl Drop for UmemFrame {
    fn drop(&mut self) {
        self.pool.push(self.index);
    }
}

impl fmt::Debug for UmemFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UmemFrame({})", self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const FRAME: usize = 2_048;

    /// How many frames nobody has.
    fn free(pool: &Arc<Pool>) -> usize {
        let all: Vec<UmemFrame> = std::iter::from_fn(|| pool.take()).collect();
        all.len()
    }

    #[test]
    fn each_frame_has_one_holder_and_its_own_bytes() {
        let pool = Pool::new(8, FRAME).unwrap();
        let mut all: Vec<UmemFrame> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(all.len(), 8);
        for (frame, byte) in all.iter_mut().zip(1..) {
            frame.bytes_mut().fill(byte);
            frame.clear_in_front::<16>();
        }
        for (frame, byte) in all.iter().zip(1..) {
            assert!(frame.bytes().iter().all(|one| *one == byte));
            assert_eq!(frame.in_front::<16>(), [0; 16]);
        }
        let numbers: HashSet<u32> = all.iter().map(|frame| frame.index).collect();
        assert_eq!(numbers.len(), 8);
        drop(all);
        assert_eq!(free(&pool), 8);
    }

    #[test]
    fn the_kernel_gives_back_only_what_it_has_and_once() {
        let pool = Pool::new(2, FRAME).unwrap();
        let frame = pool.take().unwrap();
        let address = pool.lend(frame, Holder::Posted);
        assert!(pool.back(address, Holder::Sending).is_none());
        let frame = pool.back(address, Holder::Posted).unwrap();
        assert_eq!(frame.shift_of(address), Some(0));
        assert_eq!(frame.shift_of(address + 64), Some(64));
        assert!(pool.back(address, Holder::Posted).is_none());
        assert!(pool.back(u64::MAX, Holder::Posted).is_none());
        assert!(pool.back(2 * FRAME as u64, Holder::Posted).is_none());
        drop(frame);
        assert_eq!(Arc::strong_count(&pool), 1);
        assert_eq!(free(&pool), 2);
    }

    #[test]
    fn threads_that_take_and_drop_lose_and_double_nothing() {
        let pool = Pool::new(64, FRAME).unwrap();
        std::thread::scope(|scope| {
            for byte in 1..=4_u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let Some(mut frame) = pool.take() else {
                            continue;
                        };
                        frame.bytes_mut()[round % 8] = byte;
                        let other = pool.take();
                        assert_eq!(frame.bytes()[round % 8], byte);
                        drop((frame, other));
                    }
                });
            }
        });
        assert_eq!(free(&pool), 64);
    }
}
