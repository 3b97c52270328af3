//! From packets back to messages, as bookkeeping: what a packet is part of, whether it is new, and when all of a message is there.
//!
//! A channel is sequenced and unreliable. Its packets come in order where nothing reorders them, so a message that is complete gives up all that are older: whatever is lost, late, doubled or out of order costs the message that it is
//! of, and no other. So many messages are put together at once as the channel has buffers for; when there is none for a newer one, the oldest is given up.

use alloc::boxed::Box;
use alloc::vec;
use core::num::NonZeroU32;

use crate::Instant;

/// What a packet says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// Which message of the channel, counted by its sender.
    pub message: u64,
    /// Which part of it.
    pub part: u32,
    /// How many parts it has.
    pub parts: NonZeroU32,
}

/// What came of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arrived {
    /// It goes into this buffer; others of its message are missing.
    Stored(u32),
    /// It goes into this buffer, and all of the message is there: the buffer is whoever's takes it, until it is [given back](Reassembly::give_back).
    Complete(u32),
    /// That part is there already.
    Doubled,
    /// A newer message is complete, or its own was given up.
    Stale,
    /// No message of the channel has such parts, or not as the first of its packets said.
    Malformed,
    /// All buffers are with messages that are complete, or newer.
    NoBuffer,
}

/// Why a message is given up of which something has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// One behind it is complete.
    Overtaken,
    /// It is due, and not complete.
    Due,
    /// Its buffer was needed for one behind it.
    NoBuffer,
}

/// A message that is given up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GivenUp {
    /// Which.
    pub message: u64,
    /// So many of its parts had come.
    pub came: u32,
    /// Why.
    pub why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Free,
    Assembling {
        message: u64,
        parts: u32,
        missing: u32,
        due: Instant,
    },
    Taken,
}

/// The messages of one channel that are being put together. Nothing is allocated after it is made.
#[derive(Clone, Debug)]
pub struct Reassembly {
    slots: Box<[Slot]>,
    /// A bit for each part of each slot's message that has come.
    came: Box<[u64]>,
    words: usize,
    most: u32,
    /// No message before this is put together any more.
    next: u64,
}

impl Reassembly {
    /// With so many buffers, for messages of so many parts at the most.
    #[must_use]
    pub fn new(buffers: NonZeroU32, most: NonZeroU32) -> Self {
        let words = most.get().div_ceil(u64::BITS) as usize;
        let buffers = buffers.get() as usize;
        Self {
            slots: vec![Slot::Free; buffers].into(),
            came: vec![0; buffers * words].into(),
            words,
            most: most.get(),
            next: 0,
        }
    }

    /// A packet has come, of a message that is due then. O(buffers); messages that are given up for it are told.
    pub fn arrived(
        &mut self,
        fragment: Fragment,
        due: Instant,
        mut given_up: impl FnMut(GivenUp),
    ) -> Arrived {
        let parts = fragment.parts.get();
        if parts > self.most || fragment.part >= parts || fragment.message == u64::MAX {
            return Arrived::Malformed;
        }
        if fragment.message < self.next {
            return Arrived::Stale;
        }
        let number = match self.find(fragment.message) {
            Some(number) => number,
            None => match self.begin(fragment, due, &mut given_up) {
                Some(number) => number,
                None => return Arrived::NoBuffer,
            },
        };
        let Slot::Assembling {
            parts: said,
            missing,
            ..
        } = &mut self.slots[number]
        else {
            return Arrived::NoBuffer;
        };
        if *said != parts {
            return Arrived::Malformed;
        }
        let (word, bit) = (fragment.part / u64::BITS, fragment.part % u64::BITS);
        let came = &mut self.came[number * self.words + word as usize];
        if *came & (1 << bit) != 0 {
            return Arrived::Doubled;
        }
        *came |= 1 << bit;
        *missing -= 1;
        if *missing > 0 {
            return Arrived::Stored(number as u32);
        }
        self.slots[number] = Slot::Taken;
        self.next = fragment.message + 1;
        let is_older = |message, _| message < fragment.message;
        self.give_up(Why::Overtaken, is_older, &mut given_up);
        Arrived::Complete(number as u32)
    }

    /// There are so many buffers from now on, for messages of so many parts, where that is more than before. What is there stays.
    pub fn grow(&mut self, buffers: NonZeroU32, most: NonZeroU32) {
        let words = self.words.max(most.get().div_ceil(u64::BITS) as usize);
        let buffers = self.slots.len().max(buffers.get() as usize);
        let mut came = vec![0; buffers * words];
        for (new, old) in came.chunks_mut(words).zip(self.came.chunks(self.words)) {
            new[..old.len()].copy_from_slice(old);
        }
        let mut slots = core::mem::take(&mut self.slots).into_vec();
        slots.resize(buffers, Slot::Free);
        self.slots = slots.into();
        self.came = came.into();
        self.words = words;
        self.most = self.most.max(most.get());
    }

    /// Whoever took a complete message has done with its buffer.
    ///
    /// # Panics
    ///
    /// Nobody has it.
    pub fn give_back(&mut self, buffer: u32) {
        let slot = &mut self.slots[buffer as usize];
        assert_eq!(*slot, Slot::Taken, "nobody has buffer {buffer}");
        *slot = Slot::Free;
    }

    /// What is due by now and not complete is given up. O(buffers).
    pub fn expire(&mut self, now: Instant, mut given_up: impl FnMut(GivenUp)) {
        self.give_up(Why::Due, |_, due| due <= now, &mut given_up);
    }

    /// When the first that is not complete is due.
    #[must_use]
    pub fn first_due(&self) -> Option<Instant> {
        let due = self.slots.iter().filter_map(|slot| match slot {
            Slot::Assembling { due, .. } => Some(*due),
            Slot::Free | Slot::Taken => None,
        });
        due.min()
    }

    fn find(&self, wanted: u64) -> Option<usize> {
        let is_it =
            |slot: &Slot| matches!(slot, Slot::Assembling { message, .. } if *message == wanted);
        self.slots.iter().position(is_it)
    }

    /// A buffer for a new message: a free one, or that of the oldest, if it is older.
    fn begin(
        &mut self,
        fragment: Fragment,
        due: Instant,
        given_up: &mut impl FnMut(GivenUp),
    ) -> Option<usize> {
        let free = |slots: &[Slot]| slots.iter().position(|slot| *slot == Slot::Free);
        let number = match free(&self.slots) {
            Some(number) => number,
            None => {
                let messages = self.slots.iter().filter_map(|slot| match slot {
                    Slot::Assembling { message, .. } => Some(*message),
                    Slot::Free | Slot::Taken => None,
                });
                let oldest = messages.min().filter(|oldest| *oldest < fragment.message)?;
                self.give_up(Why::NoBuffer, |message, _| message == oldest, given_up);
                free(&self.slots)?
            }
        };
        self.slots[number] = Slot::Assembling {
            message: fragment.message,
            parts: fragment.parts.get(),
            missing: fragment.parts.get(),
            due,
        };
        self.came[number * self.words..][..self.words].fill(0);
        Some(number)
    }

    fn give_up(
        &mut self,
        why: Why,
        is_to_go: impl Fn(u64, Instant) -> bool,
        given_up: &mut impl FnMut(GivenUp),
    ) {
        for slot in &mut self.slots {
            let Slot::Assembling {
                message,
                parts,
                missing,
                due,
            } = *slot
            else {
                continue;
            };
            if is_to_go(message, due) {
                *slot = Slot::Free;
                self.next = self.next.max(message + 1);
                given_up(GivenUp {
                    message,
                    came: parts - missing,
                    why,
                });
            }
        }
    }
}
