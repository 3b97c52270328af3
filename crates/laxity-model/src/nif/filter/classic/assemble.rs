//! Instructions of the classic packet filter, and an assembler of them (S. McCanne, V. Jacobson, "The BSD packet filter", USENIX 1993, and the kernel's
//! Documentation/networking/filter.rst).
//!
//! The machine has an accumulator, an index register (`x` below), 16 words of memory, and jumps that only go forwards.

use alloc::vec::Vec;

/// An instruction as packet sockets take it, and as `tcpdump -ddd` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// How many instructions are left out if its condition is true.
    pub jump_true: u8,
    /// And if it is false.
    pub jump_false: u8,
    /// Its operand.
    pub operand: u32,
}

/// A word of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cell(pub(super) u32);

/// How many bytes of the packet are loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(super) enum Width {
    Four = 0x00,
    Two = 0x08,
    One = 0x10,
}

/// What is asked of the accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Is {
    Equal(u32),
    Above(u32),
    AtLeast(u32),
    AtLeastX,
    /// It has any of these bits.
    Any(u32),
}

impl Is {
    const fn code(self) -> (u16, u32) {
        match self {
            Self::Equal(number) => (0x15, number),
            Self::Above(number) => (0x25, number),
            Self::AtLeast(number) => (0x35, number),
            Self::AtLeastX => (0x3d, 0),
            Self::Any(bits) => (0x45, bits),
        }
    }
}

/// A place further on that can be jumped to, once it is [put](Assembler::put).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(usize);

/// A program that is being put together.
#[derive(Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    /// Where each place is; until it is put, 0.
    places: Vec<usize>,
    jumps: Vec<(usize, Place)>,
}

impl Assembler {
    fn push(&mut self, code: u16, operand: u32) {
        self.instructions.push(Instruction {
            code,
            jump_true: 0,
            jump_false: 0,
            operand,
        });
    }

    /// A number.
    pub(super) fn number(&mut self, number: u32) {
        self.push(0x00, number);
    }

    /// Bytes at a place of the packet, or what the kernel knows of it besides.
    pub(super) fn at(&mut self, width: Width, place: u32) {
        self.push(0x20 | width as u16, place);
    }

    /// Bytes so far behind `x`.
    pub(super) fn behind_x(&mut self, width: Width, offset: u32) {
        self.push(0x40 | width as u16, offset);
    }

    /// The length of the packet.
    pub(super) fn length(&mut self) {
        self.push(0x80, 0);
    }

    pub(super) fn load(&mut self, cell: Cell) {
        self.push(0x60, cell.0);
    }

    pub(super) fn load_x(&mut self, cell: Cell) {
        self.push(0x61, cell.0);
    }

    pub(super) fn number_x(&mut self, number: u32) {
        self.push(0x01, number);
    }

    pub(super) fn store(&mut self, cell: Cell) {
        self.push(0x02, cell.0);
    }

    pub(super) fn store_x(&mut self, cell: Cell) {
        self.push(0x03, cell.0);
    }

    pub(super) fn add(&mut self, number: u32) {
        self.push(0x04, number);
    }

    pub(super) fn add_x(&mut self) {
        self.push(0x0c, 0);
    }

    pub(super) fn subtract(&mut self, number: u32) {
        self.push(0x14, number);
    }

    pub(super) fn subtract_x(&mut self) {
        self.push(0x1c, 0);
    }

    pub(super) fn mask(&mut self, bits: u32) {
        self.push(0x54, bits);
    }

    pub(super) fn shift_left(&mut self, bits: u32) {
        self.push(0x64, bits);
    }

    pub(super) fn shift_right(&mut self, bits: u32) {
        self.push(0x74, bits);
    }

    /// Adds bits to the accumulator.
    pub(super) fn with(&mut self, bits: u32) {
        self.push(0x44, bits);
    }

    /// Adds the accumulator's bits to those of a cell. What was in `x` is lost.
    pub(super) fn add_bits_to(&mut self, cell: Cell) {
        self.load_x(cell);
        self.push(0x4c, 0);
        self.store(cell);
    }

    /// `x` is what the accumulator is.
    pub(super) fn set_x(&mut self) {
        self.push(0x07, 0);
    }

    /// The accumulator is what `x` is.
    pub(super) fn copy_x(&mut self) {
        self.push(0x87, 0);
    }

    /// Ends: so many bytes of the packet are taken.
    pub(super) fn take(&mut self, bytes: u32) {
        self.push(0x06, bytes);
    }

    pub(super) fn place(&mut self) -> Place {
        self.places.push(0);
        Place(self.places.len() - 1)
    }

    pub(super) fn put(&mut self, place: Place) {
        self.places[place.0] = self.instructions.len();
    }

    pub(super) fn jump(&mut self, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.push(0x05, 0);
    }

    /// Goes on there if that is true. Conditions jump over 255 instructions at most, and so only over what jumps as far as is wanted.
    pub(super) fn jump_if(&mut self, is: Is, to: Place) {
        self.condition(is, 0, 1);
        self.jump(to);
    }

    /// Goes on there if that is false.
    pub(super) fn jump_unless(&mut self, is: Is, to: Place) {
        self.condition(is, 1, 0);
        self.jump(to);
    }

    fn condition(&mut self, is: Is, jump_true: u8, jump_false: u8) {
        let (code, operand) = is.code();
        self.instructions.push(Instruction {
            code,
            jump_true,
            jump_false,
            operand,
        });
    }

    /// The program, each place of which was put behind all that jump to it.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (from, place) in self.jumps {
            let over = self.places[place.0] - from - 1;
            // Programs are far shorter.
            self.instructions[from].operand = over as u32;
        }
        self.instructions
    }
}
