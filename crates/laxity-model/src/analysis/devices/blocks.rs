//! When the pieces of blocks come and are due, whichever of the blocks is the first.
//!
//! A stretch of work begins with the interrupt of a block when nothing is left of those before it: time 0. Of three blocks in turn there are three such
//! beginnings, and each has a course of the supply in which all waits for as long as it can.

use super::Device;
use crate::{Service, Span};

/// When a piece comes and is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    /// When it would be due with no lead at all behind the longest block, and of the input with no more room than that block takes. So it is due
    /// by this and what the rings have besides.
    pub(super) used: Span,
    /// Its turn: the interrupt of its block, and the time of the samples that this has before it.
    pub(super) turn: Span,
}

impl Device {
    /// A device of a piece in a block, counted from 0 from the begin of a stretch: as each of the three blocks that may be its first has it. `None`: too long
    /// after it.
    pub(super) fn places(&self, piece: u64) -> Option<[Place; 3]> {
        let first = self.place(0, piece)?;
        if self.is_even() {
            return Some([first; 3]);
        }
        Some([first, self.place(1, piece)?, self.place(2, piece)?])
    }

    /// If the stretch begins with this one of the blocks.
    fn place(&self, first: u64, piece: u64) -> Option<Place> {
        let (block, part) = (piece / self.pieces, u128::from(piece % self.pieces));
        let size = |later: u64| u128::from(self.blocks[((first + later % 3) % 3) as usize]);
        let turns = u128::from(block / 3) * u128::from(self.block) * 3;
        let rest: u128 = (0..block % 3).map(size).sum();
        let (own, begun) = (size(block), size(0));
        let within = own * part / u128::from(self.pieces);
        let before = turns.checked_add(rest + within)?;
        let used = before.checked_add(u128::from(self.longest_block()) - begun)?;
        Some(Place {
            used: self.time_of(used)?,
            turn: self.time_of(before.checked_add(own)? - begun)?,
        })
    }

    /// The third is what the other two leave of all three.
    const fn is_even(&self) -> bool {
        self.blocks[0] == self.block && self.blocks[1] == self.block
    }

    /// After so many pieces all of them come and are due as before, a whole number of ticks later.
    pub(super) const fn cycle(&self) -> u64 {
        let alike = self.block.is_multiple_of(self.pieces)
            && self.period.as_nanos().is_multiple_of(self.pieces);
        match (self.is_even(), alike) {
            (true, true) => 1,
            (true, false) => self.pieces,
            (false, _) => self.pieces.saturating_mul(3),
        }
    }

    /// The work for a piece: no less than it takes.
    pub(super) const fn piece(&self) -> Service {
        Service::from_nanos(self.work.as_nanos().div_ceil(self.pieces))
    }

    /// The time in which so many samples are moved, rounded down; `None`: longer than 584 years.
    pub(super) fn time_of(&self, samples: u128) -> Option<Span> {
        let scaled = samples.checked_mul(u128::from(self.period.as_nanos()))?;
        let span = u64::try_from(scaled / u128::from(self.block));
        span.ok().map(Span::from_nanos)
    }
}
