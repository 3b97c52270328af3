//! Where a capture writes, and a command reads: whoever reads a pipe slowly is waited for, and once it is over only for as long as he reads; whoever writes one slowly, until it is stopped.

use std::fs::File;
use std::io::{self, Read, Write};

use laxity::{Instant, Span, Watch, now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Lasts;

/// Whoever reads nothing for so long when it is over is waited for no longer.
const PATIENCE: Span = Span::from_secs(2);
/// A pipe that can be written to has room for so much (`PIPE_BUF`).
const AT_ONCE: usize = 4_096;
/// So often it is looked whether it is over.
const LOOKS_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Waits until this can be read or written, but no longer than until the next look.
fn is_ready(file: &File, for_what: PollFlags) -> io::Result<bool> {
    match poll(&mut [PollFd::new(file, for_what)], Some(&LOOKS_EVERY)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// A file, or what may be a pipe, that is read until it ends, or this watch has caught a signal.
pub(crate) struct In<'a> {
    pub(super) file: File,
    pub(super) watch: Option<&'a Watch>,
}

impl Read for In<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(signal) = self.watch.and_then(Watch::caught) {
                let stopped = format!("interrupted by {signal} while it was read");
                return Err(io::Error::other(stopped));
            }
            if is_ready(&self.file, PollFlags::IN)? {
                match self.file.read(into) {
                    // Another reader has what was there.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            }
        }
    }
}

/// A file, or what may be a pipe.
pub(super) struct Out<'a> {
    file: File,
    /// Nobody waits for room in it.
    has_room: bool,
    lasts: &'a Lasts,
    patience: Span,
    is_over: bool,
    /// How many signals had come when it was over: one more, and nothing is waited for.
    signals: Option<u32>,
    is_cut: bool,
}

impl<'a> Out<'a> {
    /// For as long as this lasts.
    pub(super) fn new(file: File, lasts: &'a Lasts) -> Self {
        let has_room = file.metadata().is_ok_and(|there| there.is_file());
        Self {
            file,
            has_room,
            lasts,
            patience: PATIENCE,
            is_over: false,
            signals: None,
            is_cut: false,
        }
    }

    /// It is over, though it would last longer.
    pub(super) const fn end(&mut self) {
        self.is_over = true;
    }

    /// Nobody reads, or it was to end at once: nothing more is written.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Waits until something can be written.
    fn wait(&mut self) -> io::Result<()> {
        let mut until: Option<Instant> = None;
        loop {
            if self.is_over || self.lasts.is_over() {
                let until = *until.get_or_insert_with(|| now() + self.patience);
                let signals = self.lasts.signals();
                let before = *self.signals.get_or_insert(signals.min(1));
                self.is_cut |= now() >= until || signals > before;
            }
            if self.is_cut {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if is_ready(&self.file, PollFlags::OUT)? {
                return Ok(());
            }
        }
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_room {
            return self.file.write(bytes);
        }
        self.wait()?;
        self.file.write(&bytes[..bytes.len().min(AT_ONCE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::thread::yield_now;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_is_waited_for_until_it_is_over_and_no_longer_than_patience_or_a_second_signal()
     {
        let lasts = Lasts::begin();
        let (_reader, writer) = io::pipe().unwrap();
        let file = File::from(OwnedFd::from(writer));
        let [mut patient, mut endless] =
            [(); 2].map(|()| Out::new(file.try_clone().unwrap(), &lasts));
        patient.patience = Span::from_millis(20);
        endless.patience = Span::from_secs(3_600);
        while poll(
            &mut [PollFd::new(&file, PollFlags::OUT)],
            Some(&Timespec::default()),
        )
        .unwrap()
            > 0
        {
            assert_eq!(patient.write(&[0; 9_000]).unwrap(), AT_ONCE);
        }
        // No later ones may be taken for one.
        for signals in 1..=2 {
            kill_process(getpid(), Signal::INT).unwrap();
            while lasts.signals() < signals {
                yield_now();
            }
            if signals == 1 {
                assert!(patient.write(&[0]).is_err() && patient.is_cut());
            }
        }
        assert!(endless.write(&[0]).is_err() && endless.is_cut());
    }
}
