//! A ring of frames that a packet socket shares with the kernel (`TPACKET_V2`): each belongs to one of both, by its status.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::net::call::Mapping;

/// How frames lie in memory: blocks of whole pages, each with so many frames as fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) frame: usize,
    pub(super) block: usize,
    pub(super) frames: usize,
}

const PAGE: usize = 4096;
/// Blocks are no larger than they must be, as each is one piece of the kernel's memory.
const BLOCK: usize = 8 * PAGE;

impl Layout {
    /// At least so many frames, which hold so many bytes each.
    pub(super) fn of(frames: usize, bytes: usize) -> Self {
        let frame = match bytes {
            ..=PAGE => bytes.next_power_of_two(),
            _ => bytes.next_multiple_of(PAGE),
        };
        let block = frame.max(BLOCK).next_multiple_of(PAGE);
        let each = block / frame;
        Self {
            frame,
            block,
            frames: frames.max(1).next_power_of_two().next_multiple_of(each),
        }
    }

    /// So many frames are in a block.
    const fn each(self) -> usize {
        self.block / self.frame
    }

    /// All of it.
    pub(super) const fn bytes(self) -> usize {
        self.frames / self.each() * self.block
    }

    /// As the kernel is asked for it.
    pub(super) const fn request(self) -> libc::tpacket_req {
        libc::tpacket_req {
            tp_block_size: self.block as u32,
            tp_block_nr: (self.frames / self.each()) as u32,
            tp_frame_size: self.frame as u32,
            tp_frame_nr: self.frames as u32,
        }
    }
}

/// One of the rings in a mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    base: usize,
    pub(super) layout: Layout,
    /// Frames of a block are so many bits of a frame's number: nothing is divided for a packet.
    within: u32,
}

impl Ring {
    /// The one that begins at this offset.
    pub(super) const fn new(base: usize, layout: Layout) -> Self {
        Self {
            base,
            layout,
            within: layout.each().trailing_zeros(),
        }
    }

    /// A frame, by how many came before it.
    #[inline]
    pub(super) fn frame<'m>(&self, memory: &'m Mapping, count: usize) -> Frame<'m> {
        let index = count & (self.layout.frames - 1);
        let block = index >> self.within;
        let within = index - (block << self.within);
        let offset = self.base + block * self.layout.block + within * self.layout.frame;
        Frame {
            memory,
            offset,
            length: self.layout.frame,
        }
    }
}

/// A frame of a ring. Whoever it belongs to, its header can be read; all else is for whoever it belongs to.
pub(super) struct Frame<'m> {
    memory: &'m Mapping,
    offset: usize,
    length: usize,
}

impl Frame<'_> {
    #[inline]
    fn status_place(&self) -> &AtomicU32 {
        let place = self
            .memory
            .place(self.offset, size_of::<libc::tpacket2_hdr>());
        // SAFETY: the status is the header's first member, aligned as frames are, and both sides read and write it as one word.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    /// Whose it is; what the kernel wrote before it gave it is seen after this.
    #[inline]
    pub(super) fn status(&self) -> u32 {
        self.status_place().load(Ordering::Acquire)
    }

    /// Gives it away, with all that was written to it.
    #[inline]
    pub(super) fn give(&self, status: u32) {
        self.status_place().store(status, Ordering::Release);
    }

    /// What the kernel says of its packet. Only of a frame that it gave.
    #[inline]
    pub(super) fn header(&self) -> libc::tpacket2_hdr {
        let place = self
            .memory
            .place(self.offset, size_of::<libc::tpacket2_hdr>());
        // SAFETY: it lies there, any bytes are one, and the kernel does not write to a frame that it gave.
        unsafe { place.cast::<libc::tpacket2_hdr>().read() }
    }

    /// Says how long the frame is that is to be sent.
    #[inline]
    pub(super) fn set_length(&self, length: u32) {
        let at = std::mem::offset_of!(libc::tpacket2_hdr, tp_len);
        let place = self.memory.place(self.offset + at, size_of::<u32>());
        // SAFETY: it lies there, aligned as the header is; the frame is ours.
        unsafe { place.cast::<u32>().write(length) };
    }

    /// Some of its bytes; none where they are not all in it.
    #[inline]
    pub(super) fn bytes(&self, from: usize, length: usize) -> &[u8] {
        match from.checked_add(length) {
            Some(end) if end <= self.length => {
                let place = self.memory.place(self.offset + from, length);
                // SAFETY: it is in the mapping; the kernel does not write to a frame that it gave, and nobody else knows of it.
                unsafe { std::slice::from_raw_parts(place, length) }
            }
            _ => &[],
        }
    }

    /// Copies bytes into a frame that is ours.
    ///
    /// # Panics
    ///
    /// They are more than there is room for.
    #[inline]
    pub(super) fn put(&self, at: usize, bytes: &[u8]) {
        let end = at.checked_add(bytes.len());
        assert!(
            end.is_some_and(|end| end <= self.length),
            "beyond the frame"
        );
        let place = self.memory.place(self.offset + at, bytes.len());
        // SAFETY: the place has so many bytes, which the kernel does not read before the frame is given, and no reference to them is around: `self` has
        // handed out none that outlives a call.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fill_whole_blocks_and_the_kernels_rules_are_kept() {
        for bytes in [60, 1_600, 2_048, 4_096, 9_000, 65_700] {
            for frames in [1, 7, 64, 300] {
                let layout = Layout::of(frames, bytes);
                let asked = layout.request();
                assert!(layout.frames >= frames && layout.frame >= bytes);
                assert!(layout.frames.is_power_of_two() && layout.each().is_power_of_two());
                assert_eq!(layout.block % PAGE, 0);
                assert_eq!(layout.frame % libc::TPACKET_ALIGNMENT, 0);
                let each = asked.tp_block_size / asked.tp_frame_size;
                assert_eq!(each * asked.tp_block_nr, asked.tp_frame_nr);
                assert!(each > 0);
            }
        }
    }

    #[test]
    fn a_frame_has_no_bytes_beyond_it_and_comes_round_again() {
        let layout = Layout::of(4, 2_048);
        let memory = Mapping::anonymous(layout.bytes()).unwrap();
        let ring = Ring::new(0, layout);
        let last = layout.frames - 1;
        ring.frame(&memory, last).put(2_044, &[1, 2, 3, 4]);
        assert_eq!(ring.frame(&memory, last).bytes(2_044, 4), [1, 2, 3, 4]);
        assert_eq!(
            ring.frame(&memory, last + layout.frames).bytes(2_046, 2),
            [3, 4]
        );
        assert_eq!(ring.frame(&memory, last).bytes(2_045, 4), []);
        assert_eq!(ring.frame(&memory, last).bytes(usize::MAX, 2), []);
        let frame = ring.frame(&memory, 1);
        frame.set_length(77);
        frame.give(5);
        assert_eq!((frame.status(), frame.header().tp_len), (5, 77));
    }
}
