//! The calls that break things on purpose. Each acts on the calling thread, but limits and locked memory are its process's.

use std::io;

use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Attributes, Policy, SchedError, Tid};
use laxity_model::analysis::multiprocessor::DeadlineRequest;

/// What a call returned: nothing, or its `errno`.
pub(crate) type Answer = Result<(), i32>;

/// The result of a call, as the doctor wants it.
fn checked(result: libc::c_long) -> Answer {
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(error.raw_os_error().unwrap_or_default())
}

fn set(policy: Policy, reset_on_fork: bool) -> Answer {
    let attributes = Attributes::new(policy, reset_on_fork);
    attributes
        .apply_unchecked(Tid::current())
        .map_err(|error| failure(&error))
}

fn failure(error: &SchedError) -> i32 {
    error.errno().unwrap_or_default()
}

pub(crate) fn set_fifo(priority: u8) -> Answer {
    set(Policy::Fifo(priority), false)
}

pub(crate) fn set_ordinary() -> Answer {
    set(Policy::Other { nice: 0 }, false)
}

pub(crate) fn set_deadline(asked: DeadlineRequest, reset_on_fork: bool) -> Answer {
    set(Policy::Deadline(asked), reset_on_fork)
}

pub(crate) fn set_affinity(cpus: &CpuSet) -> Answer {
    sched::set_affinity(Tid::current(), cpus).map_err(|error| failure(&error))
}

pub(crate) fn lock_memory() -> Answer {
    // SAFETY: takes plain numbers; locking changes no content.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }.into())
}

/// Takes a capability out of the thread's effective and permitted sets.
pub(crate) fn drop_capability(number: u32) {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Set {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let mut sets = [Set::default(); 2];
    // SAFETY: the third version of the header has two sets, which the kernel writes.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    assert_eq!(checked(got), Ok(()), "capget");
    let (set, bit) = (number as usize / 32, 1 << (number % 32));
    sets[set].effective &= !bit;
    sets[set].permitted &= !bit;
    // SAFETY: as above; the kernel reads both.
    let put = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) };
    assert_eq!(checked(put), Ok(()), "a capability may always be dropped");
}

/// Which limit of setrlimit(2).
#[derive(Clone, Copy)]
pub(crate) enum Resource {
    RealTimePriority,
    RealTimeTimeUs,
    LockedMemoryBytes,
    CoreBytes,
}

/// Sets the soft limit; the hard one is raised to it if it is lower.
pub(crate) fn set_limit(resource: Resource, soft: u64) -> Answer {
    let resource = match resource {
        Resource::RealTimePriority => libc::RLIMIT_RTPRIO,
        Resource::RealTimeTimeUs => libc::RLIMIT_RTTIME,
        Resource::LockedMemoryBytes => libc::RLIMIT_MEMLOCK,
        Resource::CoreBytes => libc::RLIMIT_CORE,
    };
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one `rlimit` to `limit`.
    checked(unsafe { libc::getrlimit(resource, &raw mut limit) }.into())?;
    limit.rlim_cur = soft;
    limit.rlim_max = limit.rlim_max.max(soft);
    // SAFETY: `limit` outlives the call, which reads it.
    checked(unsafe { libc::setrlimit(resource, &raw const limit) }.into())
}

/// Makes a process about to be started root of a user namespace of its own.
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    // SAFETY: take and return plain numbers.
    let (uid, unshared) = unsafe { (libc::getuid(), libc::unshare(libc::CLONE_NEWUSER)) };
    if unshared != 0 {
        return Err(io::Error::last_os_error());
    }
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))
}
