//! Interfaces from which each packet is copied once into memory that was posted: what they have in common.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

use laxity_model::Instant;
use laxity_model::nif::link::{
    Facts, Left, Link, LinkError, Losses, MOST_PIECES, Received, Stamp, copy_behind,
};
use laxity_model::nif::registry::ClientId;

use super::Settings;
use super::unfinished::{ETHERNET, fits};

/// What one look for a packet found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// None is there.
    Nothing,
    /// One that does not fit, which is gone.
    TooLong,
    /// One that was copied.
    Packet(Packet),
}

/// What is known of a packet that was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// So many bytes.
    pub length: usize,
    /// When it arrived.
    pub at: Instant,
    /// Who says so.
    pub stamp: Stamp,
    /// What it lacks.
    pub left: Left,
}

/// The way to an interface: what differs from one that copies to another.
pub trait Below: AsFd {
    /// What the interface is.
    fn facts(&self) -> &Facts;

    /// Copies the packet that came first, into memory if there is any. Without, it is dropped.
    ///
    /// # Errors
    ///
    /// As of [`Link::receive`].
    fn read(&mut self, into: &mut [u8], now: Instant) -> Result<Read, LinkError>;

    /// Copies a frame in these pieces to where it leaves from, at the latest with the next flush. The first holds its Ethernet header, and all of it where
    /// something is left.
    ///
    /// # Errors
    ///
    /// As of [`Link::queue`].
    fn write(&mut self, pieces: &[IoSlice<'_>], left: Left) -> Result<(), LinkError>;

    /// Has leave what has not left yet.
    ///
    /// # Errors
    ///
    /// As of [`Link::flush`].
    fn flush(&mut self) -> Result<(), LinkError> {
        Ok(())
    }

    /// Takes the last frame back, if it has not left.
    fn take_back(&mut self) -> bool {
        false
    }

    /// Whether the oldest frame that was not told yet has left; then it is told.
    fn has_left(&mut self) -> bool {
        true
    }

    /// Packets that found no room in the kernel, since it was opened; `None` where that cannot be read.
    fn overflown(&self) -> Option<u64>;

    /// Whether it is gone.
    fn is_gone(&self) -> bool {
        false
    }

    /// Whether it finishes what is left of frames.
    fn finishes(&self) -> bool {
        false
    }
}

/// An interface that copies, with the memory that it was given.
#[derive(Debug)]
pub struct Copied<B> {
    below: B,
    posted: VecDeque<Box<[u8]>>,
    sending: VecDeque<Box<[u8]>>,
    most_posted: usize,
    longest: usize,
    losses: Losses,
    has_discarded: bool,
}

impl<B: Below> Copied<B> {
    /// Packets have at most so many bytes.
    pub(super) fn new(below: B, settings: &Settings, longest: usize) -> Self {
        let reach = below.facts().reach;
        Self {
            below,
            posted: VecDeque::with_capacity(settings.posted),
            sending: VecDeque::with_capacity(reach),
            most_posted: settings.posted,
            longest,
            losses: Losses::default(),
            has_discarded: false,
        }
    }

    fn place(
        &mut self,
        memory: &[u8],
        length: usize,
        behind: &[&[u8]],
        left: Left,
    ) -> Result<(), LinkError> {
        if left != Left::default() && !self.below.finishes() {
            let why = "this interface was opened to finish neither checksums nor segments";
            return Err(LinkError::Failed(why.to_owned()));
        }
        let facts = self.below.facts();
        // What is still to be cut may be as long as memory is.
        let mtu = if left.segment > 0 {
            self.longest
        } else {
            facts.mtu
        };
        let further: usize = behind.iter().map(|piece| piece.len()).sum();
        fits(memory, length + further, mtu)?;
        if self.sending.len() >= facts.reach {
            return Err(LinkError::Full);
        }
        let own = IoSlice::new(&memory[..length]);
        if behind.is_empty() {
            return self.below.write(&[own], left);
        }
        let mut pieces = [own; MOST_PIECES + 1];
        for (place, piece) in pieces[1..].iter_mut().zip(behind) {
            *place = IoSlice::new(piece);
        }
        self.below.write(&pieces[..=behind.len()], left)
    }
}

impl<B: Below> Link for Copied<B> {
    type Memory = Box<[u8]>;

    fn facts(&self) -> &Facts {
        self.below.facts()
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Self::Memory>, LinkError> {
        if self.below.is_gone() {
            return Err(LinkError::Gone);
        }
        let none = |_| LinkError::Failed(format!("there is no memory for {packets} packets"));
        let mut all = Vec::new();
        all.try_reserve_exact(packets).map_err(none)?;
        for _ in 0..packets {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(self.longest).map_err(none)?;
            bytes.resize(self.longest, 0);
            all.push(bytes.into_boxed_slice());
        }
        Ok(all)
    }

    fn post(&mut self, memory: Self::Memory) -> Result<(), Self::Memory> {
        if self.posted.len() >= self.most_posted || self.below.is_gone() {
            return Err(memory);
        }
        self.posted.push_back(memory);
        Ok(())
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<Self::Memory>>, LinkError> {
        self.has_discarded = false;
        let memory = self.posted.front_mut();
        let is_memory = memory.is_some();
        let read = self.below.read(memory.map_or(&mut [], |own| own), now)?;
        let packet = match read {
            Read::Nothing => return Ok(None),
            Read::Packet(packet) if is_memory => packet,
            Read::Packet(_) | Read::TooLong => {
                self.has_discarded = true;
                let lost = match is_memory {
                    true => &mut self.losses.too_long,
                    false => &mut self.losses.no_room,
                };
                *lost += 1;
                return Ok(None);
            }
        };
        Ok(self.posted.pop_front().map(|memory| Received {
            memory,
            length: packet.length,
            at: packet.at,
            stamp: packet.stamp,
            left: packet.left,
            early: None,
        }))
    }

    fn has_discarded(&self) -> bool {
        self.has_discarded
    }

    fn send(
        &mut self,
        memory: Self::Memory,
        length: usize,
        now: Instant,
    ) -> Result<(), (Self::Memory, LinkError)> {
        self.queue(memory, length, Left::default(), now)?;
        match self.below.flush() {
            Err(error) if self.below.take_back() => match self.sending.pop_back() {
                Some(memory) => Err((memory, error)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn queue(
        &mut self,
        memory: Self::Memory,
        length: usize,
        left: Left,
        _: Instant,
    ) -> Result<(), (Self::Memory, LinkError)> {
        match self.place(&memory, length, &[], left) {
            Ok(()) => {
                self.sending.push_back(memory);
                Ok(())
            }
            Err(error) => Err((memory, error)),
        }
    }

    fn queue_gathered(
        &mut self,
        mut memory: Self::Memory,
        length: usize,
        behind: &[&[u8]],
        left: Left,
        now: Instant,
    ) -> Result<bool, (Self::Memory, LinkError)> {
        if length < ETHERNET || behind.len() > MOST_PIECES || left != Left::default() {
            return match copy_behind(&mut memory, length, behind) {
                Ok(whole) => self.queue(memory, whole, left, now).map(|()| true),
                Err(error) => Err((memory, error)),
            };
        }
        match self.place(&memory, length, behind, left) {
            Ok(()) => {
                self.sending.push_back(memory);
                Ok(false)
            }
            Err(error) => Err((memory, error)),
        }
    }

    fn flush(&mut self, _: Instant) -> Result<(), LinkError> {
        self.below.flush()
    }

    fn finishes(&self) -> bool {
        self.below.finishes()
    }

    fn is_silent(&self) -> bool {
        true
    }

    fn has_thrown_away(&self) -> bool {
        false
    }

    fn ended(&mut self, _: ClientId) {}

    fn sent(&mut self, _: Instant) -> Option<Self::Memory> {
        if self.sending.is_empty() || !self.below.has_left() {
            return None;
        }
        self.sending.pop_front()
    }

    fn reclaim(&mut self) -> Option<Self::Memory> {
        if !self.below.is_gone() {
            return None;
        }
        self.sending.pop_front().or_else(|| self.posted.pop_front())
    }

    fn losses(&self) -> Losses {
        let overflown = self.below.overflown();
        Losses {
            no_room: self.losses.no_room + overflown.unwrap_or_default(),
            is_partial: overflown.is_none(),
            ..self.losses
        }
    }
}

impl<B: AsFd> AsFd for Copied<B> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.below.as_fd()
    }
}
