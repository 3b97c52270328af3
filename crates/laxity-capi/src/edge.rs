//! The edge between C and Rust: errors become numbers and messages, and no panic goes through.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{self, AssertUnwindSafe};

use laxity::{Error, HostError};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
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
        Self::new(libc::EFAULT, format!("{what} is NULL"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let errno = match &error {
            Error::NoReservation(_) => libc::EINVAL,
            Error::AlreadyReserved { .. } => libc::EALREADY,
            Error::Host { source, .. } => match source {
                HostError::Refused(_) => libc::EBUSY,
                HostError::CannotRun(_) => libc::EPERM,
                HostError::Disturbed(_) => libc::EAGAIN,
                HostError::Interrupted(_) => libc::EINTR,
                HostError::BadProgram(_) | HostError::Failed(_) => libc::EIO,
            },
            other => other.errno().unwrap_or(libc::EIO),
        };
        Self::new(errno, error.to_string())
    }
}

/// Leaves a message for this thread.
pub(crate) fn leave(message: &str) {
    // A message has no zeros in it but those of names that somebody chose.
    let message = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
    // A thread that is ending has no place for it.
    let _ = MESSAGE.try_with(|place| *place.borrow_mut() = message);
}

/// The last message of this thread.
pub(crate) fn message() -> *const c_char {
    let message = MESSAGE.try_with(|place| place.borrow().as_ptr());
    message.unwrap_or(c"".as_ptr())
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

/// What the caller's structure holds. It begins with its size, which must be the one that is known here: there is one version so far.
///
/// # Safety
///
/// `from` is null, or points to as many bytes as the number with which they begin says.
pub(crate) unsafe fn sized<T: Copy>(from: *const T, what: &str) -> Result<T, Failure> {
    if from.is_null() {
        return Err(Failure::null(what));
    }
    if !from.is_aligned() {
        let text = format!("{what} is not aligned");
        return Err(Failure::new(libc::EFAULT, text));
    }
    // SAFETY: not null, aligned, and by the caller's word at least its size is there.
    let size = unsafe { from.cast::<u32>().read() };
    if size as usize != size_of::<T>() {
        let known = size_of::<T>();
        let text = format!(
            "{what} says that it has {size} bytes: this library knows those of {known} (set `size`, or use the INIT macro)"
        );
        return Err(Failure::new(libc::EINVAL, text));
    }
    // SAFETY: as many bytes are there as it says.
    Ok(unsafe { from.read() })
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
    fn a_structure_of_another_size_is_refused() {
        let wrong = [12_u32, 0, 0];
        // SAFETY: it has the twelve bytes that it says.
        let refused = unsafe { sized(wrong.as_ptr().cast::<[u32; 4]>(), "x") };
        assert_eq!(
            refused.err().map(|failure| failure.errno),
            Some(libc::EINVAL)
        );
        // SAFETY: null is allowed.
        let refused = unsafe { sized(std::ptr::null::<u32>(), "x") };
        assert_eq!(
            refused.err().map(|failure| failure.errno),
            Some(libc::EFAULT)
        );
    }
}
