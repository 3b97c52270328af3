//! What the kernel counts of a thread's turns on the processor: `/proc/TID/schedstat` (Documentation/scheduler/sched-stats.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use laxity_model::{Service, Span};

use crate::os::fact::{Fact, Unknown};
use crate::os::sched::Tid;

/// Where the kernel tells of threads.
pub(crate) const PROC: &str = "/proc";

/// What a thread has had, since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// The processor time it has received; of one that is running, up to the kernel's last look at it, at most a tick ago.
    pub service: Service,
    /// How long it was runnable and had no processor: all such waits that are over.
    pub waited: Span,
    /// How often it was given the processor.
    pub turns: u64,
}

/// The kernel's account of one thread, of this process or another.
#[derive(Debug)]
pub(crate) struct Account {
    file: File,
    path: PathBuf,
}

impl Account {
    /// Of a thread. Not there where the kernel was built without `SCHED_INFO`, or hides other users' processes.
    pub(crate) fn of(thread: Tid) -> Fact<Self> {
        Self::within(Path::new(PROC), thread)
    }

    /// The same, where the kernel tells of threads there.
    pub(crate) fn within(proc: &Path, thread: Tid) -> Fact<Self> {
        let path = proc.join(format!("{thread}/schedstat"));
        let file = File::open(&path).map_err(|error| Unknown::cannot_read(&path, &error))?;
        Ok(Self { file, path })
    }

    /// Of the calling thread; `None` where the kernel keeps none: who reads this has run, and a kernel that says otherwise counts nothing.
    pub(crate) fn of_current() -> Option<Self> {
        let own = Self::of(Tid::current()).ok()?;
        own.service().map(|_| own)
    }

    /// The processor time it has received; `None` once it is gone, and where the kernel keeps no accounts: whoever lives has run. No allocation either way.
    pub(crate) fn service(&self) -> Option<Service> {
        let counted = self.look().ok()??;
        (counted.turns > 0).then_some(counted.service)
    }

    /// As it stands now; an error once the thread is gone. One system call (about 2 µs), no allocation but for an error's words.
    pub(crate) fn read(&self) -> Fact<Counted> {
        let found = self.look();
        let found = found.map_err(|error| Unknown::cannot_read(&self.path, &error))?;
        found.ok_or_else(|| Unknown(format!("{}: not understood", self.path.display())))
    }

    /// `None`: it is not understood.
    fn look(&self) -> io::Result<Option<Counted>> {
        let mut text = [0; 128];
        let length = self.file.read_at(&mut text, 0)?;
        Ok(std::str::from_utf8(&text[..length]).ok().and_then(counted))
    }
}

/// The three numbers of `/proc/TID/schedstat`.
pub fn counted(text: &str) -> Option<Counted> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(Counted {
        service: Service::from_nanos(next()?),
        waited: Span::from_nanos(next()?),
        turns: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::clock;
    use proptest::prelude::*;

    #[test]
    fn a_thread_is_counted_while_it_lives() {
        let account = Account::of(Tid::current()).unwrap();
        let before = account.read().unwrap();
        clock::sleep_until(clock::now() + Span::from_millis(1));
        let after = account.read().unwrap();
        assert!(after.turns > before.turns, "{before:?}, {after:?}");
        assert!(after.service > before.service, "{before:?}, {after:?}");
        let (sent, received) = std::sync::mpsc::channel();
        let gone = std::thread::spawn(move || sent.send(Account::of(Tid::current())).unwrap());
        let account = received.recv().unwrap().unwrap();
        gone.join().unwrap();
        // A joined thread may be on its way out of the kernel for a moment.
        let latest = clock::now() + Span::from_secs(10);
        while account.read().is_ok() {
            assert!(clock::now() < latest, "it is counted for ever");
        }
        assert!(Account::of(Tid(i32::MAX)).is_err());
    }

    #[test]
    fn a_kernel_that_counts_nothing_is_not_one_where_nobody_waits() {
        assert_eq!(counted("356549 0 1\n").unwrap().waited, Span::ZERO);
        for silent in ["356549 17\n", "", "a b c", "1 -2 3"] {
            assert_eq!(counted(silent), None, "{silent}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9 \n-]{0,60}") {
            let _ = counted(&text);
        }

        #[test]
        fn three_numbers_are_read(a: u64, b: u64, c: u64) {
            let found = counted(&format!("{a} {b} {c}\n")).unwrap();
            prop_assert_eq!((found.service.as_nanos(), found.waited.as_nanos(), found.turns), (a, b, c));
        }
    }
}
