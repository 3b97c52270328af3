//! The edge between C and Rust: errors become numbers and messages, and no panic goes through.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::panic::{self, AssertUnwindSafe};
use std::{ptr, slice};

use laxity::{Error, HostError};

/// So many bytes a message has at most, with the zero at its end.
const LONGEST_MESSAGE: usize = 2_048;
/// What a message that is longer ends with.
const CUT: &str = "…";

thread_local! {
    /// One place for all messages, without a destructor: whoever kept a pointer to one reads a later one in it, and never what was freed.
    static MESSAGE: RefCell<[u8; LONGEST_MESSAGE]> = const { RefCell::new([0; LONGEST_MESSAGE]) };
}

/// Why a call failed.
pub(crate) struct Failure {
    errno: c_int,
    message: String,
}

impl Failure {
    pub(crate) fn new(errno: c_int, message: String) -> Self {
        Self { errno, message }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(libc::EFAULT, format!("{what} is NULL: say where it is"))
    }
}

/// The number of what a host says.
pub(crate) const fn of_host(error: &HostError) -> c_int {
    match error {
        HostError::Refused(_) => libc::EBUSY,
        HostError::CannotRun(_) => libc::EPERM,
        HostError::NoProcessor { .. } => libc::EINVAL,
        HostError::Disturbed(_) => libc::EAGAIN,
        HostError::Interrupted(_) => libc::EINTR,
        HostError::BadProgram(_) | HostError::Failed(_) => libc::EIO,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let errno = match &error {
            Error::NoReservation(_) => libc::EINVAL,
            Error::AlreadyReserved { .. } => libc::EALREADY,
            Error::Host { source, .. } => of_host(source),
            other => other.errno().unwrap_or(libc::EIO),
        };
        Self::new(errno, error.to_string())
    }
}

/// Leaves a message for this thread.
pub(crate) fn leave(message: &str) {
    // A message has no zeros in it but those of names that somebody chose.
    let mut message = message.replace('\0', "\u{fffd}");
    if message.len() >= LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE - 1 - CUT.len()));
        message.push_str(CUT);
    }
    MESSAGE.with_borrow_mut(|place| {
        let (text, rest) = place.split_at_mut(message.len());
        text.copy_from_slice(message.as_bytes());
        rest.fill(0);
    });
}

/// The last message of this thread.
pub(crate) fn message() -> *const c_char {
    MESSAGE.with(|place| place.as_ptr().cast_const().cast())
}

/// Does what a function is for; 0, or a number of `errno.h` with a message.
pub(crate) fn edge(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|_| {
        let text = "a bug in laxity: what it said went to standard error".to_owned();
        Err(Failure::new(libc::ENOTRECOVERABLE, text))
    });
    match done {
        Ok(()) => 0,
        Err(Failure { errno, message }) => {
            leave(&message);
            errno
        }
    }
}

/// A structure of which callers may have an older version, which is a part of it from its begin, or a newer one, of which it is a part.
///
/// # Safety
///
/// It is as C lays it out, begins with its size as a `u32`, and is a value with nothing but zeros in it.
pub(crate) unsafe trait Versioned: Copy {
    /// The size of the first version.
    const FIRST: usize;
}

/// No structure of any version is longer: a size that says more was never set.
const LONGEST: usize = 4_096;

/// The size that the caller's structure says it has.
///
/// # Safety
///
/// As of [`sized`].
unsafe fn size_of_callers<T: Versioned>(from: *const T, what: &str) -> Result<usize, Failure> {
    if from.is_null() {
        return Err(Failure::null(what));
    }
    if !from.is_aligned() {
        let text = format!("{what} is not aligned");
        return Err(Failure::new(libc::EFAULT, text));
    }
    // SAFETY: not null, aligned, and by the caller's word at least its size is there.
    let size = unsafe { from.cast::<u32>().read() } as usize;
    if (T::FIRST..=LONGEST).contains(&size) {
        return Ok(size);
    }
    let known = match size_of::<T>() {
        only if only == T::FIRST => format!("{only}"),
        newest => format!("{} to {newest}", T::FIRST),
    };
    let text = format!(
        "{what} says that it has {size} bytes: this library knows those of {known} (set `size`, or use the INIT macro)"
    );
    Err(Failure::new(libc::EINVAL, text))
}

/// What the caller's structure holds, whose size stays the caller's. What an older version lacks is zero. In what a newer one has beyond this, anything but zeros asks for what is not known here (`E2BIG`).
///
/// # Safety
///
/// `from` is null, or points to as many bytes as the number with which they begin says.
pub(crate) unsafe fn sized<T: Versioned>(from: *const T, what: &str) -> Result<T, Failure> {
    // SAFETY: the caller says so.
    let size = unsafe { size_of_callers(from, what) }?;
    let known = size_of::<T>().min(size);
    // SAFETY: as many bytes are there as it says.
    let beyond = unsafe { slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
    if beyond.iter().any(|byte| *byte != 0) {
        let text = format!(
            "{what} asks for something that this library does not know: it has {size} bytes, and the last that is known is byte {known}"
        );
        return Err(Failure::new(libc::E2BIG, text));
    }
    let mut held = MaybeUninit::<T>::zeroed();
    // SAFETY: both have so many bytes, the one by the caller's word; and zeros, or what a caller writes there, are a value.
    unsafe {
        ptr::copy_nonoverlapping(from.cast::<u8>(), held.as_mut_ptr().cast(), known);
        Ok(held.assume_init())
    }
}

/// Refuses a structure that [`tell`] would not write.
///
/// # Safety
///
/// As of [`sized`].
pub(crate) unsafe fn writable<T: Versioned>(to: *const T, what: &str) -> Result<(), Failure> {
    // SAFETY: the caller says so.
    unsafe { size_of_callers(to, what) }.map(drop)
}

/// Writes into the caller's structure what its version has of this, whatever size this says; of a newer one the rest becomes zero, and its size that which is known here.
///
/// # Safety
///
/// As of [`sized`]; and it may be written to.
pub(crate) unsafe fn tell<T: Versioned>(to: *mut T, told: T, what: &str) -> Result<(), Failure> {
    // SAFETY: the caller says so.
    let size = unsafe { size_of_callers(to, what) }?;
    let known = size_of::<T>().min(size);
    // SAFETY: as many bytes are there as it says, the first four of which are the size.
    unsafe {
        ptr::copy_nonoverlapping((&raw const told).cast::<u8>(), to.cast(), known);
        ptr::write_bytes(to.cast::<u8>().add(known), 0, size - known);
        to.cast::<u32>().write(known as u32);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn said() -> String {
        // SAFETY: a message of this thread, which makes no other call meanwhile.
        let message = unsafe { CStr::from_ptr(message()) };
        message.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_is_a_number() {
        let code = edge(|| panic!("on purpose"));
        assert_eq!(code, libc::ENOTRECOVERABLE);
        assert!(said().contains("a bug"), "{}", said());
    }

    #[test]
    fn a_name_with_a_zero_in_it_leaves_a_message_all_the_same() {
        leave("thread \0 x");
        assert_eq!(said(), "thread \u{fffd} x");
    }

    #[test]
    fn a_message_that_is_too_long_is_cut_where_a_character_ends() {
        for begin in ["", "x", "xy"] {
            leave(&format!("{begin}{}", "…".repeat(LONGEST_MESSAGE)));
            let said = said();
            assert!(said.ends_with("……") && said.starts_with(begin), "{said}");
            assert!((LONGEST_MESSAGE - 4..LONGEST_MESSAGE).contains(&said.len()));
        }
        leave("short");
        assert_eq!(said(), "short");
    }

    #[repr(C)]
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Grown {
        size: u32,
        first: u32,
        second: u32,
    }

    // SAFETY: numbers.
    unsafe impl Versioned for Grown {
        const FIRST: usize = 8;
    }

    /// What is read of so many words, the first of which is their size.
    fn read<const N: usize>(words: [u32; N]) -> Result<Grown, i32> {
        // SAFETY: as many bytes are there as are said, or it is refused for what is said.
        let read = unsafe { sized(words.as_ptr().cast::<Grown>(), "x") };
        read.map_err(|failure| failure.errno)
    }

    #[test]
    fn older_and_newer_structures_are_read_as_far_as_they_are_known() {
        let grown = |size, second| Grown {
            size,
            first: 7,
            second,
        };
        assert_eq!(read([8, 7, 9]), Ok(grown(8, 0)));
        assert_eq!(read([12, 7, 9]), Ok(grown(12, 9)));
        assert_eq!(read([16, 7, 9, 0]), Ok(grown(16, 9)));
        assert_eq!(read([16, 7, 9, 1]), Err(libc::E2BIG));
        for none in [0, 4, 4_097] {
            assert_eq!(read([none, 7, 9]), Err(libc::EINVAL), "{none}");
        }
        // SAFETY: null is allowed.
        let nowhere = unsafe { sized(ptr::null::<Grown>(), "x") };
        let errno = nowhere.err().map(|failure| failure.errno);
        assert_eq!(errno, Some(libc::EFAULT));
    }

    #[test]
    fn older_and_newer_structures_are_written_as_far_as_they_are_known() {
        let told = Grown {
            size: 99,
            first: 7,
            second: 9,
        };
        let write = |size| {
            let mut words = [size, 1, 1, 1];
            // SAFETY: as many bytes are there as are said.
            let written = unsafe { tell(words.as_mut_ptr().cast::<Grown>(), told, "x") };
            assert!(written.is_ok());
            words
        };
        assert_eq!(write(8), [8, 7, 1, 1]);
        assert_eq!(write(12), [12, 7, 9, 1]);
        assert_eq!(write(16), [12, 7, 9, 0]);
    }
}
