//! What a forked process must know: that it is another one, in which no thread is but the one that forked, and what of its parent's it is not to keep.

use std::iter;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use crate::os::signals;

/// How often there was a fork between the process that asked first and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// No descriptor.
const NONE: i32 = -1;

/// The descriptors that a child has nothing of. Places are added and never taken away, so who walks along them needs no lock.
static WITHHELD: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

/// A place for such a descriptor.
#[derive(Debug)]
struct Place {
    /// Or [`NONE`].
    fd: AtomicI32,
    /// What was the first before.
    next: AtomicPtr<Self>,
}

/// All places for descriptors that a child has nothing of.
fn places() -> impl Iterator<Item = &'static Place> {
    // SAFETY: a place that was shown once is never freed.
    let at = |place: *mut Place| unsafe { place.cast_const().as_ref() };
    let first = at(WITHHELD.load(Ordering::Acquire));
    iter::successors(first, move |place| at(place.next.load(Ordering::Acquire)))
}

/// In the child, before anything else runs there: calls that may be made then, and no lock.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    signals::hear_again();
    for place in places() {
        let fd = place.fd.swap(NONE, Ordering::SeqCst);
        if fd != NONE {
            // Its number stays taken where that can be, since somebody may still have it who closes it.
            // SAFETY: the path ends with a zero; the others take numbers.
            unsafe {
                let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
                if libc::dup3(nothing, fd, libc::O_CLOEXEC) == -1 {
                    libc::close(fd);
                }
                libc::close(nothing);
            }
        }
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

/// What each process has for itself. A child begins anew, whatever its parent's other threads were doing with the parent's, and whatever locks there are in that: it is never waited for, changed or dropped in the child.
#[derive(Debug)]
pub struct PerProcess<T> {
    made: AtomicPtr<Made<T>>,
    make: fn(Option<&T>) -> T,
}

struct Made<T> {
    value: T,
    /// Of the process that made it.
    generation: u32,
}

impl<T: Send + Sync + 'static> PerProcess<T> {
    /// It is made by this where it is asked for first, of a parent's where there was one: that may be locked for ever.
    #[must_use]
    pub const fn new(make: fn(Option<&T>) -> T) -> Self {
        Self {
            made: AtomicPtr::new(ptr::null_mut()),
            make,
        }
    }

    /// The one of this process. No lock, and no system call but the first time.
    pub fn get(&'static self) -> &'static T {
        let generation = generation();
        let mut known = self.made.load(Ordering::Acquire);
        loop {
            // SAFETY: it is null or was made below, and what was shown once is never freed.
            let there: Option<&'static Made<T>> = unsafe { known.as_ref() };
            if let Some(own) = there.filter(|made| made.generation == generation) {
                return &own.value;
            }
            let value = (self.make)(there.map(|parents| &parents.value));
            let new = Box::into_raw(Box::new(Made { value, generation }));
            let set = Ordering::AcqRel;
            match self
                .made
                .compare_exchange(known, new, set, Ordering::Acquire)
            {
                // SAFETY: as above.
                Ok(_) => return unsafe { &(*new).value },
                Err(others) => {
                    // SAFETY: nobody else has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    known = others;
                }
            }
        }
    }
}

/// Ends a child at the end of what its parent's thread was called for: the thread goes on in the parent alone. With status 0 and at once: nothing is flushed, dropped or called.
pub fn end_child() -> ! {
    // SAFETY: it takes a number.
    unsafe { libc::_exit(0) }
}

/// A descriptor of which no child is to keep anything: what the kernel does while it is open would go on as long as the child lives.
#[derive(Debug)]
pub(crate) struct Withheld {
    fd: OwnedFd,
    place: &'static Place,
}

impl Withheld {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        generation();
        let place = Self::take_place(fd.as_raw_fd());
        Self { fd, place }
    }

    fn take_place(fd: RawFd) -> &'static Place {
        let order = Ordering::SeqCst;
        let is_taken = |place: &&Place| place.fd.compare_exchange(NONE, fd, order, order).is_ok();
        if let Some(place) = places().find(is_taken) {
            return place;
        }
        let mut first = WITHHELD.load(Ordering::Acquire);
        let new = Box::leak(Box::new(Place {
            fd: AtomicI32::new(fd),
            next: AtomicPtr::new(first),
        }));
        while let Err(others) =
            WITHHELD.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire)
        {
            first = others;
            *new.next.get_mut() = first;
        }
        new
    }
}

impl AsFd for Withheld {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        let own = self.fd.as_raw_fd();
        // Before it is closed, and its number another's.
        let order = Ordering::SeqCst;
        let _ = self.place.fd.compare_exchange(own, NONE, order, order);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _, pipe};
    use std::sync::Mutex;

    use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

    use super::*;

    /// Whoever holds what the parent has when it forks holds nothing of the child's.
    #[test]
    fn a_child_begins_anew_whatever_is_held() {
        static NUMBER: PerProcess<Mutex<u32>> = PerProcess::new(|_| Mutex::new(7));
        let mut held = NUMBER.get().lock().unwrap();
        *held = 8;
        // SAFETY: the child allocates, which the C library makes safe after a fork, and takes no lock that another thread may hold.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let found = NUMBER.get().try_lock().map(|number| *number);
            // SAFETY: takes a number.
            unsafe { libc::_exit(i32::from(!found.is_ok_and(|number| number == 7))) };
        }
        drop(held);
        let mut status = -1;
        // SAFETY: the child that was forked, and a number of ours.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!((waited, status), (pid, 0));
        assert_eq!(*NUMBER.get().lock().unwrap(), 8);
    }

    /// The locks of several files, closed and not unlocked, as those of a process that is killed.
    #[test]
    fn a_child_that_lives_keeps_nothing_of_what_is_withheld() {
        let files: Vec<_> = (0..3)
            .map(|_| tempfile::NamedTempFile::new().unwrap())
            .collect();
        let lock = |file: &tempfile::NamedTempFile| {
            let opened = open(file.path(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            let own = Withheld::new(opened.unwrap());
            flock(&own, FlockOperation::NonBlockingLockExclusive).map(|()| own)
        };
        let held: Vec<Withheld> = files.iter().map(|file| lock(file).unwrap()).collect();
        assert!(files.iter().all(|file| lock(file).is_err()));
        let ((mut goes_on, go_on), (mut begins, mut begun)) = (pipe().unwrap(), pipe().unwrap());
        // SAFETY: the child makes kernel calls only, and takes no lock.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: takes a number; the parent's end is its own.
            unsafe { libc::close(go_on.as_raw_fd()) };
            let ended = begun.write_all(&[0]).and_then(|()| goes_on.read(&mut [0]));
            // SAFETY: takes a number.
            unsafe { libc::_exit(i32::from(ended.is_err())) };
        }
        begins.read_exact(&mut [0]).unwrap();
        drop(held);
        let again: Vec<_> = files.iter().map(lock).collect();
        drop(go_on);
        let mut status = -1;
        // SAFETY: the child that was forked, and a number of ours.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!((waited, status), (pid, 0));
        assert!(again.iter().all(Result::is_ok), "{again:?}");
    }
}
