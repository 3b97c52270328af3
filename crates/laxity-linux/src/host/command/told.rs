//! What a keeper tells us, through a pipe.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// What a keeper tells. So short that a write to a pipe is atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// The program is there, with this number, and waits to be let go.
    Held(i32),
    /// The program has ended, with this status as `wait` gives it, noticed at this nanosecond.
    Ended(i32, u64),
    /// This process could not be ended; 0: some that cannot be seen.
    Left(i32),
    /// The program was stopped by this signal, and goes on when it is continued.
    Stopped(i32),
    /// No signal is pending any more.
    Forgot,
    /// The program and everything that it started has had so much processor time, in nanoseconds, as far as it has ended.
    Used(u64),
}

const TOLD_BYTES: usize = 16;

impl Told {
    pub(super) fn encode(self) -> [u8; TOLD_BYTES] {
        let (kind, number, at): (i32, i32, u64) = match self {
            Self::Held(process) => (0, process, 0),
            Self::Ended(status, at) => (1, status, at),
            Self::Left(process) => (2, process, 0),
            Self::Stopped(signal) => (3, signal, 0),
            Self::Forgot => (4, 0, 0),
            Self::Used(service) => (5, 0, service),
        };
        let mut bytes = [0; TOLD_BYTES];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..8].copy_from_slice(&number.to_ne_bytes());
        bytes[8..].copy_from_slice(&at.to_ne_bytes());
        bytes
    }

    fn decode(bytes: [u8; TOLD_BYTES]) -> Option<Self> {
        let [kind, number] = [0, 4].map(|at| {
            let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            i32::from_ne_bytes(four)
        });
        let [.., a, b, c, d, e, f, g, h] = bytes;
        let nanos = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        match kind {
            0 => Some(Self::Held(number)),
            1 => Some(Self::Ended(number, nanos)),
            2 => Some(Self::Left(number)),
            3 => Some(Self::Stopped(number)),
            4 => Some(Self::Forgot),
            5 => Some(Self::Used(nanos)),
            _ => None,
        }
    }

    /// Reads one; `None` at the end of the pipe.
    pub(super) fn read(pipe: BorrowedFd<'_>) -> rustix::io::Result<Option<Self>> {
        let mut bytes = [0; TOLD_BYTES];
        loop {
            match rustix::io::read(pipe, &mut bytes) {
                Ok(TOLD_BYTES) => return Ok(Self::decode(bytes)),
                Ok(_) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let all = [
            Told::Held(7),
            Told::Ended(256, 1 << 40),
            Told::Left(0),
            Told::Stopped(20),
            Told::Forgot,
            Told::Used(1 << 41),
        ];
        for told in all {
            assert_eq!(Told::decode(told.encode()), Some(told));
        }
        assert_eq!(Told::decode([9; TOLD_BYTES]), None);
    }
}
