//! The system calls that only the doctor asks its questions with. None changes anything.

use std::io;
use std::mem;

use laxity_model::Span;

use super::machine::Limit;

/// A resource of getrlimit(2).
#[derive(Clone, Copy)]
pub(super) enum Resource {
    RealTimePriority,
    RealTimeTime,
    LockedMemory,
}

/// The soft limit on a resource.
pub(super) fn limit(resource: Resource) -> io::Result<Limit> {
    let resource = match resource {
        Resource::RealTimePriority => libc::RLIMIT_RTPRIO,
        Resource::RealTimeTime => libc::RLIMIT_RTTIME,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
    };
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one `rlimit` to `limit`.
    if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(if limit.rlim_cur == libc::RLIM_INFINITY {
        Limit::Unlimited
    } else {
        Limit::At(limit.rlim_cur)
    })
}

/// The resolution of a clock.
pub(super) fn resolution(clock: libc::clockid_t) -> io::Result<Span> {
    let mut resolution = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one `timespec` to `resolution`.
    if unsafe { libc::clock_getres(clock, &raw mut resolution) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let nanos = i128::from(resolution.tv_sec) * 1_000_000_000 + i128::from(resolution.tv_nsec);
    u64::try_from(nanos)
        .map(Span::from_nanos)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Whether the caller may write a file, which is not opened: opening may have effects.
pub(super) fn may_write(path: &std::ffi::CStr) -> bool {
    // SAFETY: `path` ends with a zero byte and outlives the call, which only reads it.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

/// `uname`: the release and the version line.
pub(super) fn uname() -> io::Result<(String, String)> {
    // SAFETY: `utsname` is plain arrays of bytes, for which zero is a value.
    let mut name: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one `utsname` to `name`.
    if unsafe { libc::uname(&raw mut name) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = |field: &[libc::c_char]| {
        let bytes: Vec<u8> = field
            .iter()
            .map(|&c| c as u8)
            .take_while(|&c| c != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok((text(&name.release), text(&name.version)))
}
