//! An assembler of the kernel's own machine: names for its registers, widths, conditions and helpers, and jumps to places that are named later.
//!
//! The encoding is that of RFC 9669.

use std::os::fd::{AsFd, AsRawFd};

/// Registers: R0 has what was returned, R1 to R5 what a helper is called with (and has lost after), R6 to R9 stay, R10 is the end of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// How much is read or written at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Width {
    Four = 0x00,
    Two = 0x08,
    One = 0x10,
    Eight = 0x18,
}

/// When a jump is taken, of the register and what it is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum If {
    Equal = 0x10,
    Above = 0x20,
    NotEqual = 0x50,
    /// With both as numbers that may be less than zero.
    NotPositive = 0xd0,
}

/// Functions of the kernel, by its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub(crate) enum Helper {
    /// `bpf_map_lookup_elem(map, key)`: the address of the value, or 0.
    Find = 1,
    /// `bpf_ktime_get_ns()`: `CLOCK_MONOTONIC`.
    Now = 5,
    /// `bpf_redirect_map(map, key, else)`: what the program then returns.
    Redirect = 51,
    /// `bpf_xdp_adjust_meta(context, delta)`: 0, if there is room for so much in front of the packet.
    Metadata = 54,
}

/// What a register is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum With {
    Number(i32),
    Register(Register),
}

/// An instruction as the kernel has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

/// A place that can be jumped to, once it is [put](Assembler::put) somewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(usize);

const JUMP: u8 = 0x05;
const ALU: u8 = 0x07;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_NUMBER: u8 = 0x62;
/// Bits that say: with a register.
const BY_REGISTER: u8 = 0x08;
const TWO_WORDS: u8 = 0x18;
const ATOMIC_EIGHT: u8 = 0xdb;
const ADD: u8 = 0x00;
const AND: u8 = 0x50;
const MOVE: u8 = 0xb0;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// To the network's order of bytes.
const SWAP: u8 = 0xdc;
/// The number behind it stands for a map.
const IS_MAP: u8 = 1;
const FETCH: i32 = 1;

/// A program that is being put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    /// Where each place is.
    places: Vec<Option<usize>>,
    /// Which instructions jump to which place.
    jumps: Vec<(usize, Place)>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, number: i32) {
        self.instructions.push(Instruction {
            code,
            registers: to as u8 | (from as u8) << 4,
            offset,
            number,
        });
    }

    /// `to = from`
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.push(ALU | MOVE | BY_REGISTER, to, from, 0, 0);
    }

    /// `to = number`
    pub(crate) fn set(&mut self, to: Register, number: i32) {
        self.push(ALU | MOVE, to, Register::R0, 0, number);
    }

    /// `to += number`
    pub(crate) fn add(&mut self, to: Register, number: i32) {
        self.push(ALU | ADD, to, Register::R0, 0, number);
    }

    /// `to += other`
    pub(crate) fn add_register(&mut self, to: Register, other: Register) {
        self.push(ALU | ADD | BY_REGISTER, to, other, 0, 0);
    }

    /// `to &= number`
    pub(crate) fn mask(&mut self, to: Register, number: i32) {
        self.push(ALU | AND, to, Register::R0, 0, number);
    }

    /// Two bytes from the network's order to the machine's.
    pub(crate) fn swap_two(&mut self, of: Register) {
        self.push(SWAP, of, Register::R0, 0, 16);
    }

    /// `to = memory[from + offset]`
    pub(crate) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(LOAD | width as u8, to, from, offset, 0);
    }

    /// `memory[to + offset] = from`
    pub(crate) fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(STORE | width as u8, to, from, offset, 0);
    }

    /// `memory[to + offset] = number`
    pub(crate) fn store_number(&mut self, width: Width, to: Register, offset: i16, number: i32) {
        self.push(STORE_NUMBER | width as u8, to, Register::R0, offset, number);
    }

    /// `memory[to + offset] += by`, of eight bytes at once; `by` then has what was there.
    pub(crate) fn fetch_add(&mut self, to: Register, offset: i16, by: Register) {
        self.push(ATOMIC_EIGHT, to, by, offset, i32::from(ADD) | FETCH);
    }

    /// The same, and nobody asks what was there.
    pub(crate) fn add_to(&mut self, to: Register, offset: i16, by: Register) {
        self.push(ATOMIC_EIGHT, to, by, offset, ADD.into());
    }

    /// `to = map`
    pub(crate) fn map(&mut self, to: Register, map: impl AsFd) {
        let from = IS_MAP << 4;
        self.instructions.push(Instruction {
            code: TWO_WORDS,
            registers: to as u8 | from,
            offset: 0,
            number: map.as_fd().as_raw_fd(),
        });
        self.push(0, Register::R0, Register::R0, 0, 0);
    }

    /// `R0 = helper(R1, …)`
    pub(crate) fn call(&mut self, helper: Helper) {
        let (none, number) = (Register::R0, helper as i32);
        self.push(JUMP | CALL, none, none, 0, number);
    }

    /// Ends with what is in R0.
    pub(crate) fn exit(&mut self) {
        self.push(JUMP | EXIT, Register::R0, Register::R0, 0, 0);
    }

    /// A place to jump to, that is nowhere yet.
    pub(crate) fn place(&mut self) -> Place {
        self.places.push(None);
        Place(self.places.len() - 1)
    }

    /// The place is here.
    pub(crate) fn put(&mut self, place: Place) {
        self.places[place.0] = Some(self.instructions.len());
    }

    /// Goes on there.
    pub(crate) fn jump(&mut self, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP, Register::R0, Register::R0, 0, 0);
    }

    /// Goes on there, if the condition is true of the register.
    pub(crate) fn jump_if(&mut self, of: Register, condition: If, with: With, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        let code = JUMP | condition as u8;
        match with {
            With::Number(number) => self.push(code, of, Register::R0, 0, number),
            With::Register(other) => self.push(code | BY_REGISTER, of, other, 0, 0),
        }
    }

    /// The program.
    ///
    /// # Panics
    ///
    /// It jumps to a place that was put nowhere, or too far away.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (from, place) in self.jumps {
            let to = self.places[place.0].expect("every place is put somewhere");
            let distance = to as isize - from as isize - 1;
            self.instructions[from].offset = distance.try_into().expect("it is near");
        }
        self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: Assembler) -> Vec<u64> {
        let all = code.finish().into_iter();
        let word = |one: Instruction| {
            u64::from(one.code)
                | u64::from(one.registers) << 8
                | u64::from(one.offset as u16) << 16
                | u64::from(one.number as u32) << 32
        };
        all.map(word).collect()
    }

    /// Against the tables of RFC 9669.
    #[test]
    fn instructions_are_encoded_as_the_kernel_reads_them() {
        use Register::{R0, R1, R2, R6, R7, R10};
        let mut code = Assembler::default();
        code.copy(R6, R1);
        code.set(R0, -2);
        code.add(R2, -16);
        code.add_register(R1, R2);
        code.mask(R1, 0x3fff);
        code.swap_two(R1);
        code.load(Width::Two, R1, R6, 12);
        code.store(Width::Eight, R10, -8, R7);
        code.store_number(Width::Four, R10, -4, 5);
        code.fetch_add(R1, 8, R2);
        code.add_to(R1, 8, R2);
        code.call(Helper::Redirect);
        code.exit();
        assert_eq!(
            words(code),
            [
                0x0000_0000_0000_16bf,
                0xffff_fffe_0000_00b7,
                0xffff_fff0_0000_0207,
                0x0000_0000_0000_210f,
                0x0000_3fff_0000_0157,
                0x0000_0010_0000_01dc,
                0x0000_0000_000c_6169,
                0x0000_0000_fff8_7a7b,
                0x0000_0005_fffc_0a62,
                0x0000_0001_0008_21db,
                0x0000_0000_0008_21db,
                0x0000_0033_0000_0085,
                0x0000_0000_0000_0095,
            ]
        );
    }

    #[test]
    fn jumps_find_their_places_forwards_and_back() {
        use Register::{R0, R1, R2};
        let mut code = Assembler::default();
        let (begin, end) = (code.place(), code.place());
        code.put(begin);
        code.jump_if(R1, If::Above, With::Register(R2), end);
        code.jump_if(R1, If::Equal, With::Number(7), end);
        code.jump(begin);
        code.put(end);
        code.set(R0, 2);
        assert_eq!(
            words(code),
            [
                0x0000_0000_0002_212d,
                0x0000_0007_0001_0115,
                0x0000_0000_fffd_0005,
                0x0000_0002_0000_00b7,
            ]
        );
    }
}
