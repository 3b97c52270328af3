//! Restartable sequences, of which we use nothing: what others may do with them.

use std::io;

/// `PR_RSEQ_SLICE_EXTENSION`, from Linux 7.0 on.
const SLICE_EXTENSION: libc::c_int = 79;
/// `PR_RSEQ_SLICE_EXTENSION_GET`.
const GET: libc::c_ulong = 1;

/// Asks the kernel whether the calling thread may extend its time slices; changes nothing. What it answers is nobody's affair but the thread's, that it answers says that threads can.
///
/// # Errors
///
/// The number of the error: `EINVAL` of a kernel that does not know the question.
pub(crate) fn ask_slice_extension() -> Result<(), i32> {
    let none: libc::c_ulong = 0;
    // SAFETY: no argument is a pointer, and the call only reads.
    let answer = unsafe { libc::prctl(SLICE_EXTENSION, GET, none, none, none) };
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default()),
    }
}
