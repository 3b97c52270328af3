//! What a forked process must know: that it is another one, in which no thread is but the one that forked, and what of its parent's it is not to keep.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// How often there was a fork between the process that asked first and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// No descriptor.
const NONE: i32 = -1;

/// A descriptor that a child has nothing of.
static WITHHELD: AtomicI32 = AtomicI32::new(NONE);

/// In the child, before anything else runs there: calls that may be made then, and no lock.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    let fd = WITHHELD.swap(NONE, Ordering::SeqCst);
    if fd == NONE {
        return;
    }
    // Its number stays taken, since somebody may still have it who closes it.
    // SAFETY: the path ends with a zero; the others take numbers.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        libc::dup3(nothing, fd, libc::O_CLOEXEC);
        libc::close(nothing);
    }
}

/// A number that is the same as long as this is the process that it was. No system call but the first time.
pub fn generation() -> u32 {
    static GUARDED: OnceLock<bool> = OnceLock::new();
    // SAFETY: what it is given may run in a child.
    let guard = || unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0;
    match GUARDED.get_or_init(guard) {
        true => FORKS.load(Ordering::SeqCst),
        // There was no memory for it.
        false => std::process::id(),
    }
}

/// Ends a child at the end of what its parent's thread was called for: the thread goes on in the parent alone. With status 0 and at once: nothing is flushed, dropped or called.
pub fn end_child() -> ! {
    // SAFETY: it takes a number.
    unsafe { libc::_exit(0) }
}

/// A descriptor of which no child is to keep anything, one at a time: what the kernel does while it is open would go on as long as the child lives.
pub(crate) struct Withheld(OwnedFd);

impl Withheld {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        generation();
        WITHHELD.store(fd.as_raw_fd(), Ordering::SeqCst);
        Self(fd)
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        let own = self.0.as_raw_fd();
        // Before it is closed, and its number another's.
        let _ = WITHHELD.compare_exchange(own, NONE, Ordering::SeqCst, Ordering::SeqCst);
    }
}
