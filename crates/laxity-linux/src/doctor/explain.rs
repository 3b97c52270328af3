//! From a failed call to its one true cause. The kernel gives one number for many causes: EPERM alone has six below.
//!
//! [`foresee`] goes through the kernel's own checks in the kernel's own order (`kernel/sched/syscalls.c`, `kernel/sched/deadline.c`,
//! `mm/mlock.c`), on facts instead of on kernel state; the first that refuses is the cause, as it is in the kernel. A fact that is not
//! known refuses nothing.

use laxity_model::Span;
use laxity_model::analysis::multiprocessor::{Bandwidth, DeadlineRequest, KernelLimits};

use super::cause::{Cause, Diagnosis, Operation, ParameterError};
use super::machine::{
    CAP_IPC_LOCK, CAP_SYS_NICE, Fact, Machine, RealTimeGroup, Rights, Throttling,
};
use crate::os::cpuset::CpuSet;
use crate::os::sched::Policy;

/// Explains why an operation failed with this `errno`, by the facts as they are now; probe right after it, on the thread that failed.
pub fn explain(operation: &Operation, errno: i32, machine: &Machine) -> Diagnosis {
    match (foresee(operation, machine), operation, errno) {
        (Some(diagnosis), ..) if diagnosis.errno() == Some(errno) => diagnosis,
        (_, Operation::SetDeadline(asked), libc::EBUSY) => unseen_bandwidth(asked),
        (_, Operation::SetDeadline(_), libc::EPERM) => {
            unseen_root_domain(machine).unwrap_or_else(|| unexplained(errno, machine))
        }
        _ => unexplained(errno, machine),
    }
}

/// What the kernel would refuse now, and why; `None` if nothing that is known stands against it.
pub fn foresee(operation: &Operation, machine: &Machine) -> Option<Diagnosis> {
    let rights = &machine.rights;
    match operation {
        Operation::SetFifo { priority } => fifo(*priority, rights),
        Operation::SetNice { nice } => nice_right(*nice, rights),
        Operation::SetDeadline(asked) => parameters(asked, machine)
            .or_else(|| deadline_right(machine))
            .or_else(|| bandwidth(asked, machine)),
        Operation::Fork => fork(rights),
        Operation::LockMemory => lock_memory(rights),
    }
}

pub(super) fn fifo(priority: u8, rights: &Rights) -> Option<Diagnosis> {
    if !(1..=99).contains(&priority) {
        return Some(Diagnosis::new(
            Cause::OutOfRange(ParameterError::Priority),
            format!("{priority} is no FIFO priority: they go from 1 to 99"),
            "choose a priority from 1 to 99",
        ));
    }
    let group = || group_runtime(rights.group.as_ref().ok()?, None);
    fifo_right(priority, rights).or_else(group)
}

fn fifo_right(priority: u8, rights: &Rights) -> Option<Diagnosis> {
    if rights.has(CAP_SYS_NICE) != Some(false) {
        return None;
    }
    let limit = rights.rtprio?;
    let present = match rights.policy {
        Ok(Policy::Fifo(present) | Policy::RoundRobin(present)) => u64::from(present),
        _ => 0,
    };
    if u64::from(priority) <= limit.max(present) {
        return None;
    }
    if limit == 0 {
        return Some(no_capability(rights, Wanted::Fifo));
    }
    Some(Diagnosis::new(
        Cause::RtprioTooLow { limit, priority },
        format!("RLIMIT_RTPRIO allows FIFO priorities up to {limit}, not {priority}"),
        format!(
            "raise the limit: `prlimit --pid $$ --rtprio={priority}` as root for this shell, or `@realtime - rtprio {priority}` in /etc/security/limits.conf and log in again"
        ),
    ))
}

fn nice_right(nice: i32, rights: &Rights) -> Option<Diagnosis> {
    let (Some(limit), Some(false)) = (rights.nice, rights.has(CAP_SYS_NICE)) else {
        return None;
    };
    let present = match rights.policy {
        Ok(Policy::Other { nice } | Policy::Batch { nice }) => nice,
        _ => 0,
    };
    // The kernel counts the limit from 1, for 19, to 40, for −20.
    let is_allowed = nice >= present || u64::try_from(20 - nice).is_ok_and(|own| own <= limit);
    (!is_allowed).then(|| no_capability(rights, Wanted::Nice))
}

/// What `CAP_SYS_NICE` is wanted for: no limit makes up for it with deadlines.
#[derive(Clone, Copy)]
enum Wanted {
    Fifo,
    Nice,
    Deadline,
}

fn no_capability(rights: &Rights, wanted: Wanted) -> Diagnosis {
    const NAME: &str = "CAP_SYS_NICE";
    let held = rights
        .capabilities
        .as_ref()
        .is_ok_and(|set| (set >> CAP_SYS_NICE) & 1 == 1);
    if held && rights.initial_user_namespace == Ok(false) {
        let outside = "run outside the user namespace (no rootless container)";
        return Diagnosis::new(
            Cause::CapabilityOfNamespace(NAME),
            format!(
                "{NAME} is held in this user namespace only, and counts in the first one alone"
            ),
            match wanted {
                Wanted::Deadline => outside.to_owned(),
                Wanted::Fifo | Wanted::Nice => {
                    let limit = if matches!(wanted, Wanted::Fifo) {
                        "rtprio=99"
                    } else {
                        "nice=40"
                    };
                    format!(
                        "{outside}, or give the process a limit from there as root: `prlimit --pid PID --{limit}`"
                    )
                }
            },
        );
    }
    let (policy, limit) = match wanted {
        Wanted::Deadline => ("SCHED_DEADLINE", " (no limit makes up for it)"),
        Wanted::Nice => (
            "a lower nice value",
            ", or `@realtime - nice -20` in /etc/security/limits.conf for a member of that group, and log in again",
        ),
        Wanted::Fifo => (
            "a real-time policy",
            ", or `@realtime - rtprio 99` in /etc/security/limits.conf for a member of that group, and log in again",
        ),
    };
    Diagnosis::new(
        Cause::NoCapability(NAME),
        format!("the process has no {NAME}, so it may not take {policy}"),
        format!("run as root, or `sudo setcap cap_sys_nice,cap_ipc_lock+ep PROGRAM`{limit}"),
    )
}

/// Why no thread of a group may be FIFO: of the caller's, or of that which this process is in.
pub(super) fn group_runtime(group: &RealTimeGroup, process: Option<u32>) -> Option<Diagnosis> {
    match group {
        RealTimeGroup::V1 {
            directory,
            runtime_us: Some(0),
            ..
        } => Some(Diagnosis::new(
            Cause::RealTimeGroupWithoutRuntime {
                group: directory.clone(),
            },
            format!(
                "the control group {directory} has cpu.rt_runtime_us = 0, so none of its threads may be FIFO"
            ),
            format!(
                "`echo 100000 > {directory}/cpu.rt_runtime_us` (its parents first), or {}",
                leave(directory, process)
            ),
        )),
        RealTimeGroup::V2 { directory } => Some(Diagnosis::new(
            Cause::RealTimeGroupWithoutRuntime {
                group: directory.clone(),
            },
            format!(
                "this kernel limits real-time groups (RT_GROUP_SCHED), and gives a v2 group like {directory} no runtime"
            ),
            format!(
                "start the kernel with `rt_group_sched=0` (Linux 6.14), or leave the group: `echo {} > /sys/fs/cgroup/cgroup.procs` as root",
                in_shell(process)
            ),
        )),
        _ => None,
    }
}

/// Why nothing can be promised to a real-time thread of such a group besides what it is refused: the group stops all that is in it, for the rest of its period, as soon as they have had so much together.
/// Not known where the machine's own limit is not.
pub(super) fn group_share(
    group: &RealTimeGroup,
    limits: &Throttling,
    process: Option<u32>,
) -> Fact<Option<Diagnosis>> {
    let RealTimeGroup::V1 {
        directory,
        runtime_us: Some(runtime_us),
        period_us,
    } = group
    else {
        return Ok(None);
    };
    // Of a machine without a limit no group has one.
    let Some(whole_us) = *limits.runtime_us.as_ref()? else {
        return Ok(None);
    };
    let whole_period_us = u128::from(*limits.period_us.as_ref()?).max(1);
    // Rounded down, as what is advised: a group that has that has enough.
    let share = u128::from(whole_us) * u128::from(*period_us) / whole_period_us;
    if u128::from(*runtime_us) >= share {
        return Ok(None);
    }
    Ok(Some(Diagnosis::new(
        Cause::RealTimeGroupLimited {
            group: directory.clone(),
        },
        format!(
            "all real-time threads of the control group {directory} together have {runtime_us} us of every {period_us} us of a processor"
        ),
        format!(
            "`echo {share} > {directory}/cpu.rt_runtime_us` (its parents first), or {}",
            leave(directory, process)
        ),
    )))
}

/// The number of a process, or the shell's word for itself, from which the caller comes.
fn in_shell(process: Option<u32>) -> String {
    process.map_or_else(|| "$$".to_owned(), |process| process.to_string())
}

/// How the caller gets out of a v1 group, or this process with all its threads.
fn leave(directory: &str, process: Option<u32>) -> String {
    let (who, root) = (in_shell(process), v1_root(directory));
    let file = process.map_or("tasks", |_| "cgroup.procs");
    format!("leave the group: `echo {who} > {root}/{file}`")
}

/// The hierarchy's top: the highest ancestor that has the file.
fn v1_root(directory: &str) -> String {
    std::path::Path::new(directory)
        .ancestors()
        .filter(|ancestor| ancestor.join("cpu.rt_runtime_us").exists())
        .last()
        .map_or_else(|| directory.to_owned(), |root| root.display().to_string())
}

/// The bounds of `__checkparam_dl`.
fn parameters(asked: &DeadlineRequest, machine: &Machine) -> Option<Diagnosis> {
    let DeadlineRequest {
        runtime,
        deadline,
        period,
    } = *asked;
    let bounds = &machine.throttling;
    let shortest = bounds.deadline_period_min.clone().unwrap_or(Span::ZERO);
    let longest = bounds.deadline_period_max.clone().unwrap_or(Span::MAX);
    let wrong = |is_wrong: bool, error, what: String, remedy: String| {
        is_wrong.then(|| Diagnosis::new(Cause::OutOfRange(error), what, remedy))
    };
    let bounds = [
        wrong(
            runtime < KernelLimits::SHORTEST_RUNTIME,
            ParameterError::RuntimeTooShort,
            format!("a deadline runtime of {runtime} is under the kernel's least, 1024ns"),
            "ask for at least 1024 ns; for a longer time out of a longer period, if the share is to stay".to_owned(),
        ),
        wrong(
            deadline > period,
            ParameterError::DeadlineOverPeriod,
            format!("the deadline of {deadline} is after the period of {period}"),
            format!("ask for a deadline of at most {period}"),
        ),
        wrong(
            runtime > deadline.as_full_service(),
            ParameterError::RuntimeOverDeadline,
            format!("{runtime} of runtime do not fit before the deadline of {deadline}"),
            format!("ask for a runtime of at most {deadline}"),
        ),
        wrong(
            period < shortest,
            ParameterError::PeriodTooShort,
            format!("a deadline period of {period} is under this machine's least, {shortest}"),
            format!(
                "ask for a period of at least {shortest}, or as root `sysctl kernel.sched_deadline_period_min_us={}`",
                period.as_micros()
            ),
        ),
        wrong(
            period > longest,
            ParameterError::PeriodTooLong,
            format!("a deadline period of {period} is over this machine's most, {longest}"),
            format!(
                "ask for a period of at most {longest}, or as root `sysctl kernel.sched_deadline_period_max_us={}`",
                period.as_micros().saturating_add(1)
            ),
        ),
    ];
    bounds.into_iter().flatten().next()
}

/// What keeps the caller from any deadline policy, whatever its parameters.
pub(super) fn deadline_right(machine: &Machine) -> Option<Diagnosis> {
    let rights = &machine.rights;
    if rights.has(CAP_SYS_NICE) == Some(false) {
        return Some(no_capability(rights, Wanted::Deadline));
    }
    match machine.throttling.runtime_us {
        // Without a limit the kernel neither admits nor looks at affinities.
        Ok(None) | Err(_) => None,
        Ok(Some(0)) => Some(Diagnosis::new(
            Cause::NoRealTimeRuntime,
            "the machine allows real-time work no time at all (sched_rt_runtime_us = 0)",
            "as root `sysctl kernel.sched_rt_runtime_us=950000`",
        )),
        Ok(Some(_)) => narrow_affinity(machine),
    }
}

fn narrow_affinity(machine: &Machine) -> Option<Diagnosis> {
    let affinity = machine.processors.affinity.as_ref().ok()?;
    let root_domain = machine.own_root_domain().ok()?;
    let apart = format!(
        "; to keep it to {affinity}, give those a root domain of their own (a cpuset partition, `cpuset.cpus.partition = root`)"
    );
    narrower_than(root_domain, affinity, &format!(", {root_domain}"), &apart)
}

/// The diagnosis of a thread that is kept from a part of its root domain, if it is.
fn narrower_than(
    root_domain: &CpuSet,
    affinity: &CpuSet,
    known: &str,
    besides: &str,
) -> Option<Diagnosis> {
    (!root_domain.is_subset(affinity)).then(|| Diagnosis::new(
        Cause::AffinityNarrowerThanRootDomain {
            affinity: affinity.clone(),
            root_domain: root_domain.clone(),
        },
        format!(
            "the thread is kept to the processors {affinity}, and a deadline thread must be allowed on all of its root domain{known}"
        ),
        format!("widen it: `taskset -pc {root_domain} TID`{besides}"),
    ))
}

/// Within a container the root domain cannot be seen. A refusal that nothing else explains, of a thread that is kept from some
/// processors, is put down to that, and says so.
fn unseen_root_domain(machine: &Machine) -> Option<Diagnosis> {
    let Err(reason) = machine.own_root_domain() else {
        return None;
    };
    let processors = &machine.processors;
    let affinity = processors.affinity.as_ref().ok()?;
    let isolated = processors.isolated.as_ref().ok()?;
    let whole = processors.online.as_ref().ok()?.without(isolated);
    if machine.rights.has(CAP_SYS_NICE) != Some(true) {
        return None;
    }
    let supposed = format!(": {whole} if the machine is not cut ({reason})");
    narrower_than(&whole, affinity, &supposed, ", and the container's cpuset")
}

fn bandwidth(asked: &DeadlineRequest, machine: &Machine) -> Option<Diagnosis> {
    let domain = machine.own_bandwidth()?;
    let wanted = asked.bandwidth();
    // A thread that changes its reservation gives the old one back.
    let policy = machine.rights.policy.as_ref();
    let own = policy.map_or(Bandwidth::ZERO, |policy| policy.bandwidth());
    let free: Bandwidth = [domain.free(), own].into_iter().sum();
    if wanted <= free {
        return None;
    }
    let missing = wanted.saturating_sub(free);
    let threads = machine.threads.iter().flatten();
    let holders = threads
        .filter(|thread| matches!(thread.policy, Policy::Deadline(_)) && !thread.is_scheduler());
    let mut holders: Vec<String> = holders.map(ToString::to_string).collect();
    let more = holders.len().saturating_sub(3);
    holders.truncate(3);
    holders.extend((more > 0).then(|| format!("and {more} more")));
    Some(Diagnosis::new(
        Cause::NoBandwidthLeft {
            missing: Some(missing),
        },
        format!(
            "{wanted:.3} of a processor is asked for, and of the {:.3} that processors {} admit {free:.3} is left: {missing:.3} is missing",
            domain.admissible, domain.processors
        ),
        format!(
            "ask for at most {} out of {}{}",
            free.longest_runtime(asked.period),
            asked.period,
            if holders.is_empty() {
                String::new()
            } else {
                format!(", or end what holds the rest: {}", holders.join("; "))
            }
        ),
    ))
}

fn unseen_bandwidth(asked: &DeadlineRequest) -> Diagnosis {
    Diagnosis::new(
        Cause::NoBandwidthLeft { missing: None },
        format!(
            "{} out of {} is not admitted, though the deadline threads that can be seen leave enough: one that has left holds its share until its zero-lag time, or one is out of sight",
            asked.runtime, asked.period
        ),
        "try again after the longest period of the threads that left; look for deadline threads outside this container",
    )
}

fn fork(rights: &Rights) -> Option<Diagnosis> {
    let is_deadline = matches!(rights.policy, Ok(Policy::Deadline(_)));
    (is_deadline && rights.reset_on_fork == Ok(false)).then(|| {
        Diagnosis::new(
            Cause::ForkWithoutResetOnFork,
            "a deadline thread may start no process and no thread, as its reservation cannot be had twice",
            "set SCHED_FLAG_RESET_ON_FORK with the policy (`chrt --reset-on-fork --deadline …`), or start everything before",
        )
    })
}

pub(super) fn lock_memory(rights: &Rights) -> Option<Diagnosis> {
    if rights.has(CAP_IPC_LOCK) != Some(false) {
        return None;
    }
    let limit_bytes = rights.memlock_bytes?;
    let needed_bytes = rights.memory_bytes.as_ref().ok().copied();
    if limit_bytes > 0 && needed_bytes.is_none_or(|needed| needed <= limit_bytes) {
        return None;
    }
    let needed = needed_bytes.map_or_else(String::new, |needed| {
        format!(", and the process has {} KiB", needed / 1024)
    });
    Some(Diagnosis::new(
        Cause::MemoryLockRefused {
            limit_bytes,
            needed_bytes,
        },
        format!(
            "RLIMIT_MEMLOCK lets {} KiB be locked without CAP_IPC_LOCK{needed}",
            limit_bytes / 1024
        ),
        "`ulimit -l unlimited` as root, or `@realtime - memlock unlimited` in /etc/security/limits.conf and log in again, or `sudo setcap cap_sys_nice,cap_ipc_lock+ep PROGRAM`",
    ))
}

/// What will end a FIFO thread that does not block, if anything.
pub(super) fn time_limit(rights: &Rights) -> Option<Diagnosis> {
    let limit_us = rights.rttime_us?;
    Some(time_limited(limit_us, std::process::id()))
}

/// The same of a process that has this limit.
pub(super) fn time_limited(limit_us: u64, process: u32) -> Diagnosis {
    Diagnosis::new(
        Cause::RealTimeTimeLimited { limit_us },
        format!(
            "RLIMIT_RTTIME ends a process (SIGXCPU, then SIGKILL) when a real-time thread of it runs {limit_us} us without blocking"
        ),
        format!(
            "`prlimit --pid {process} --rttime=unlimited` as root, or `ulimit -R unlimited` before starting (rtkit and desktop portals set this limit)"
        ),
    )
}

fn unexplained(errno: i32, machine: &Machine) -> Diagnosis {
    let how = std::io::Error::from_raw_os_error(errno);
    let (what, remedy) = if machine.rights.filtered == Ok(true) {
        (
            format!(
                "{how}: no cause that can be checked explains it, and a filter of system calls (seccomp) is in force"
            ),
            "look at the container's seccomp profile, then at the security module's log (`journalctl -k | grep -i denied`)",
        )
    } else {
        (
            format!("{how}: no cause that can be checked explains it"),
            "look at the security module's log (`journalctl -k | grep -i denied`), and at the limits on processes (`ulimit -u`, `pids.max`) and processor time (`ulimit -t`)",
        )
    };
    Diagnosis::new(Cause::Unexplained, what, remedy)
}
