//! The system calls that the doctor asks its questions with. None changes anything but the thread that [`set_fifo`] is called on.

use std::io;
use std::mem;

use laxity_model::{Service, Span};

use super::machine::{Limit, Policy, Processors};

/// `SCHED_DEADLINE`, and the flag that lets what a thread starts fall back.
const SCHED_DEADLINE: u32 = 6;
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` of sched_setattr(2), in its first version (48 bytes), which every supported kernel accepts.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// The policy of a thread (0: the caller), and whether it is reset on fork.
pub(super) fn policy(tid: u32) -> io::Result<(Policy, bool)> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>() as u32;
    // SAFETY: the kernel writes at most `size` bytes to `attr`, which is that large and plain data.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0u32) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let priority = attr.priority.min(99) as u8;
    let policy = match attr.policy {
        1 => Policy::Fifo(priority),
        2 => Policy::RoundRobin(priority),
        SCHED_DEADLINE => Policy::Deadline {
            runtime: Service::from_nanos(attr.runtime_ns),
            period: Span::from_nanos(if attr.period_ns == 0 {
                attr.deadline_ns
            } else {
                attr.period_ns
            }),
        },
        _ => Policy::Ordinary,
    };
    Ok((policy, attr.flags & SCHED_FLAG_RESET_ON_FORK != 0))
}

/// Makes the calling thread FIFO, with reset on fork.
pub(super) fn set_fifo(priority: u8) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: i32::from(priority),
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `param` outlives the call, which only reads it; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const param) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The processors that a thread (0: the caller) may run on.
pub(super) fn affinity(tid: u32) -> io::Result<Processors> {
    // More than any kernel is built for: the call fails if the set is shorter than the kernel's own.
    let mut mask = [0u64; 65_536 / 64];
    // SAFETY: the kernel writes at most the stated number of bytes to `mask`, which is that large.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    if bytes <= 0 {
        return Err(io::Error::last_os_error());
    }
    let written = u16::try_from(bytes.saturating_mul(8) - 1).unwrap_or(u16::MAX);
    let is_in = |cpu: u16| mask[usize::from(cpu) / 64] >> (cpu % 64) & 1 == 1;
    Ok((0..=written).filter(|&cpu| is_in(cpu)).collect())
}

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

/// `USER_HZ`: how many ticks a second the counters of `/proc/stat` have.
pub(super) fn user_ticks_per_second() -> Option<u64> {
    // SAFETY: takes and returns plain numbers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&ticks| ticks > 0)
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
