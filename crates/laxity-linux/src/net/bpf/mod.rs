//! Programs and maps of the kernel's own machine (eBPF): put together here instruction by instruction, and loaded by the system call `bpf`.
//!
//! What is made here is the process's by descriptor: it is gone when the last of them is closed, also where the process was killed.

pub(super) mod assemble;

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{Errno, Result};

use self::assemble::Instruction;
use super::call::{self, Mapping};

/// The commands of `bpf`, by the kernel's numbers.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapUpdate = 2,
    MapDelete = 3,
    ProgramLoad = 5,
    LinkCreate = 28,
}

/// Kinds of maps, by the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
    /// Values by keys.
    Hash = 1,
    /// Values by number, all there from the first.
    Array = 2,
    /// `AF_XDP` sockets by number.
    Sockets = 17,
}

/// Its values may be mapped into the process (Linux 5.5).
const MAPPABLE: u32 = 1 << 10;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// How an interface runs an XDP program, by the kernel's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Mode {
    /// The kernel, when it has made a packet of what came: on every interface.
    Generic = 1 << 1,
    /// The driver of the interface, before.
    Native = 1 << 2,
}

#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

#[repr(C)]
struct ElementAttributes {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[repr(C)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

/// Whatever the process has of `bpf` is named so.
const NAME: [u8; 16] = *b"laxity\0\0\0\0\0\0\0\0\0\0";

/// # Safety
///
/// The attributes are those of the command, and addresses in them are valid.
unsafe fn bpf<T>(command: Command, attributes: &T) -> Result<i32> {
    // SAFETY: the kernel reads so many bytes of the attributes, and follows the addresses in them, which are valid as the caller says.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as i32,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    if result < 0 {
        Err(call::failure())
    } else {
        Ok(result as i32)
    }
}

/// # Safety
///
/// As of [`bpf`], of a command that returns a new descriptor.
unsafe fn opened<T>(command: Command, attributes: &T) -> Result<OwnedFd> {
    // SAFETY: as the caller says.
    let number = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel opened it just now, to be closed when another program is executed.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A number, or some, that a map has as key or value: as they lie in memory, without gaps.
///
/// # Safety
///
/// It is made of integers, and has no bytes that are none of them.
pub(super) unsafe trait Numbers: Copy {}

// SAFETY: integers.
unsafe impl Numbers for u32 {}
// SAFETY: integers of one size, without gaps.
unsafe impl<const N: usize> Numbers for [u32; N] {}
// SAFETY: as above.
unsafe impl<const N: usize> Numbers for [u64; N] {}

/// A map from keys to values, of which the kernel and the programs there have both.
#[derive(Debug)]
pub(super) struct Map<K, V> {
    descriptor: OwnedFd,
    _of: PhantomData<fn(K, V)>,
}

impl<K: Numbers, V: Numbers> Map<K, V> {
    /// For so many entries.
    pub(super) fn new(kind: Kind, entries: u32) -> Result<Self> {
        let flags = match kind {
            Kind::Array => MAPPABLE,
            Kind::Hash | Kind::Sockets => 0,
        };
        let attributes = MapAttributes {
            kind: kind as u32,
            key_bytes: size_of::<K>() as u32,
            value_bytes: size_of::<V>() as u32,
            entries,
            flags,
            inner: 0,
            node: 0,
            name: NAME,
        };
        // SAFETY: these are the command's, and have no address.
        let descriptor = unsafe { opened(Command::MapCreate, &attributes) }?;
        Ok(Self {
            descriptor,
            _of: PhantomData,
        })
    }

    /// Enters a value, in place of another if there is one.
    pub(super) fn insert(&self, key: K, value: V) -> Result<()> {
        self.element(Command::MapUpdate, &key, Some(&value))
    }

    /// Takes a value away; whether there was one.
    pub(super) fn remove(&self, key: K) -> Result<bool> {
        match self.element(Command::MapDelete, &key, None) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn element(&self, command: Command, key: &K, value: Option<&V>) -> Result<()> {
        let attributes = ElementAttributes {
            map: self.descriptor.as_raw_fd() as u32,
            _pad: 0,
            key: std::ptr::from_ref(key) as u64,
            value: value.map_or(0, |value| std::ptr::from_ref(value) as u64),
            flags: 0,
        };
        // SAFETY: these are the command's, and key and value are of the map's sizes and outlive the call.
        unsafe { bpf(command, &attributes) }.map(drop)
    }

    /// The values of an array, where they lie.
    pub(super) fn mapped(&self, entries: u32) -> Result<Mapping> {
        let bytes = (entries as usize * size_of::<V>()).next_multiple_of(4096);
        Mapping::of(&self.descriptor, bytes, 0)
    }
}

impl<K, V> AsFd for Map<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A program was refused: by what error, and what the kernel's verifier says of it at last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) errno: Errno,
    pub(super) verifier: String,
}

/// Loads an XDP program.
pub(super) fn load(instructions: &[Instruction]) -> std::result::Result<OwnedFd, Refused> {
    try_load(instructions, &mut []).or_else(|errno| {
        let mut log = vec![0; 1 << 16];
        // Again, to be told why; which the kernel does not, where the reason is no instruction.
        try_load(instructions, &mut log).map_err(|_| {
            let text = String::from_utf8_lossy(&log);
            let lines = text.trim_end_matches('\0').lines().rev().take(4);
            let mut lines: Vec<&str> = lines.collect();
            lines.reverse();
            Refused {
                errno,
                verifier: lines.join("; "),
            }
        })
    })
}

fn try_load(instructions: &[Instruction], log: &mut [u8]) -> Result<OwnedFd> {
    let attributes = ProgramAttributes {
        kind: PROGRAM_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: c"MIT".as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: if log.is_empty() {
            0
        } else {
            log.as_mut_ptr() as u64
        },
        kernel_version: 0,
        flags: 0,
        name: NAME,
        interface: 0,
        attach: ATTACH_XDP,
    };
    // SAFETY: these are the command's; instructions, licence and log outlive the call, and are as long as they are said to be.
    unsafe { opened(Command::ProgramLoad, &attributes) }
}

/// Has an interface run a program, until what is returned is closed.
pub(super) fn attach(program: &OwnedFd, interface: u32, mode: Mode) -> Result<OwnedFd> {
    let attributes = LinkAttributes {
        program: program.as_raw_fd() as u32,
        interface,
        attach: ATTACH_XDP,
        flags: mode as u32,
    };
    // SAFETY: these are the command's, and have no address.
    unsafe { opened(Command::LinkCreate, &attributes) }
}

#[cfg(test)]
mod tests {
    use super::assemble::{Assembler, Register};
    use super::*;

    #[test]
    fn what_the_kernel_refuses_is_told_in_its_words() {
        let mut code = Assembler::default();
        code.copy(Register::R0, Register::R9);
        code.exit();
        let instructions = code.finish();
        match load(&instructions) {
            Ok(_) => panic!("nothing was in the register"),
            Err(Refused { errno, verifier }) if errno != Errno::PERM => {
                assert!(verifier.contains("R9 !read_ok"), "{verifier}");
            }
            Err(_) => crate::doctor::rights::lacks("no program may be loaded"),
        }
    }
}
