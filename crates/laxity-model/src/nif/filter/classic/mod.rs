//! A filter as a program of the classic packet filter, which the kernel runs before it queues a packet to a socket.
//!
//! The program makes the packet's [key](crate::nif::frame::Key) in its memory, by the rules of [`frame`](crate::nif::frame), half a word of the key in each of 14 cells; then it
//! holds each of the filter's conditions against these. So it takes exactly what [`Filter::matches`] does, malformed packets too.

mod assemble;
mod key;

use alloc::vec::Vec;

pub use assemble::Instruction;
use assemble::{Assembler, Cell, Is};

use super::{Condition, Filter};
use crate::nif::frame::{Tail, WORDS, Words};

/// The most instructions of a program that the kernel takes (`BPF_MAXINSNS`).
pub const MOST_INSTRUCTIONS: usize = 4_096;
/// More than any packet has.
const ALL_BYTES: u32 = 0x40_000;

/// A filter has more conditions than fit into a program of the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a program of {instructions} instructions, where the kernel takes {MOST_INSTRUCTIONS}")]
pub struct ProgramTooLong {
    /// So many it would be.
    pub instructions: usize,
}

impl Filter {
    /// The program that takes the packets which this filter matches, of a driver whose keys have this tail. A tag that the kernel has taken out of the
    /// packet counts as if it stood there.
    ///
    /// # Errors
    ///
    /// [`ProgramTooLong`].
    pub fn classic(&self, tail: Option<Tail>) -> Result<Vec<Instruction>, ProgramTooLong> {
        let mut program = Assembler::default();
        key::make(&mut program, tail);
        for condition in self.alternatives() {
            take_if(&mut program, condition);
        }
        program.take(0);
        let program = program.finish();
        if program.len() > MOST_INSTRUCTIONS {
            let instructions = program.len();
            return Err(ProgramTooLong { instructions });
        }
        Ok(program)
    }
}

/// Takes the packet if its key meets the condition.
fn take_if(program: &mut Assembler, condition: &Condition) {
    let otherwise = program.place();
    for (cell, mask, value) in halves(condition.mask(), condition.value()) {
        program.load(cell);
        if mask != u32::MAX {
            program.mask(mask);
        }
        program.jump_unless(Is::Equal(value), otherwise);
    }
    program.take(ALL_BYTES);
    program.put(otherwise);
}

/// The halves of words at which a mask looks: where each is, its mask and its value.
fn halves(mask: &Words, value: &Words) -> impl Iterator<Item = (Cell, u32, u32)> {
    let (mask, value) = (*mask.as_array(), *value.as_array());
    let half = |word: u64, is_upper: bool| (if is_upper { word >> 32 } else { word }) as u32;
    let all = (0..WORDS).flat_map(|word| [(word, true), (word, false)]);
    let all = all.map(move |(word, is_upper)| {
        let cell = Cell(2 * word as u32 + u32::from(!is_upper));
        (
            cell,
            half(mask[word], is_upper),
            half(value[word], is_upper),
        )
    });
    all.filter(|(_, mask, _)| *mask != 0)
}
