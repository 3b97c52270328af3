//! Who of others ranks above a slot, as far as it can be seen: what the doctor, admission and a run under way say of it, in the same words.

use std::fs;
use std::path::Path;

use derive_more::Display;
use laxity_model::enforce::ranks::BELOW_OCCUPANT;
use laxity_model::request::{Stranger, Strangers};
use rustix::process::{Gid, getgroups};

use super::machine::{CAP_SYS_PTRACE, Rights, Unknown};
use crate::os::cgroup::{self, Mount};
use crate::os::cpuset::CpuSet;
use crate::os::fact::{Fact, read};
use crate::os::proc::{self, RealTimeThread};
use crate::os::schedstat::Account;

/// Why not every process can be seen: who is not may rank above anything.
#[derive(Clone, PartialEq, Eq, Debug, Display)]
pub enum Hidden {
    /// Those outside a PID namespace are not seen from within it.
    #[display("processes outside this PID namespace are hidden")]
    Namespace,
    /// `/proc` is mounted so that it hides the processes of others.
    #[display("/proc hides the processes of others (hidepid={_0})")]
    HidePid(String),
    /// There is no `/proc` here, or one of other processes.
    #[display("/proc does not show this process ({_0})")]
    NoProc(Unknown),
}

impl Hidden {
    /// What would show them.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Namespace => {
                "run it outside the container, or with the host's PID namespace (`--pid=host`)"
            }
            Self::HidePid(_) => {
                "as root `mount -o remount,hidepid=0 /proc`, or `sudo setcap cap_sys_nice,cap_ipc_lock,cap_sys_ptrace+ep PROGRAM`"
            }
            Self::NoProc(_) => "as root `mount -t proc proc /proc`",
        }
    }
}

/// The first PID namespace has this number on every kernel (`PROC_PID_INIT_INO`).
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

impl Hidden {
    /// Why the caller cannot see every process, as it is now. Three small files.
    pub(crate) fn find() -> Option<Self> {
        let mounts = read("/proc/thread-self/mountinfo").map(|text| cgroup::mounts(&text));
        hidden(&mounts, || Rights::probe().has(CAP_SYS_PTRACE))
    }
}

/// Why the caller cannot see every process, by what is mounted and whether it may trace everybody.
pub(super) fn hidden(
    mounts: &Fact<Vec<Mount>>,
    may_trace: impl FnOnce() -> Option<bool>,
) -> Option<Hidden> {
    let link = |path: &str| {
        let path = Path::new(path);
        fs::read_link(path).map_err(|error| Unknown::cannot_read(path, &error))
    };
    if let Err(why) = proc::shows_own_numbers() {
        return Some(Hidden::NoProc(why));
    }
    match (link("/proc/self/ns/pid"), mounts) {
        (Err(why), _) => Some(Hidden::NoProc(why)),
        (_, Err(why)) => Some(Hidden::NoProc(why.clone())),
        (Ok(namespace), _) if namespace.as_os_str() != INITIAL_PID_NAMESPACE => {
            Some(Hidden::Namespace)
        }
        (_, Ok(mounts)) => hidden_by(mounts, &own_groups()).filter(|_| may_trace() != Some(true)),
    }
}

/// The groups that the caller is in; none where they cannot be read.
fn own_groups() -> Vec<u32> {
    let groups = getgroups().unwrap_or_default();
    groups.into_iter().map(Gid::as_raw).collect()
}

/// Whether `/proc` hides processes from those who may not trace them: not from its own group (`proc(5)`, `hidepid` and `gid`).
fn hidden_by(mounts: &[Mount], groups: &[u32]) -> Option<Hidden> {
    // Of several on one another the last is what is seen.
    let proc = mounts.iter().rev().find(|mount| mount.point == "/proc")?;
    let option = |name: &str| {
        let mut options = proc.options.iter();
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let how = option("hidepid").filter(|how| !["0", "off"].contains(how))?;
    let shown_to = option("gid").and_then(|gid| gid.parse().ok());
    let is_shown = shown_to.is_some_and(|gid| groups.contains(&gid));
    // `ptraceable` heeds no group.
    let is_shown = is_shown && !["4", "ptraceable"].contains(&how);
    (!is_shown).then(|| Hidden::HidePid(how.to_owned()))
}

/// The strangers on any of these processors that a slot's occupant there cannot keep from it, and why there may be others.
pub(crate) fn outranking(
    threads: &Fact<Vec<RealTimeThread>>,
    hidden: Option<&Hidden>,
    processors: &CpuSet,
) -> Strangers {
    above_slots(threads, hidden, |thread| {
        processors.iter().any(|cpu| outranks(thread, cpu))
    })
}

/// The threads that are `meant`, and why there may be others.
pub(crate) fn above_slots(
    threads: &Fact<Vec<RealTimeThread>>,
    hidden: Option<&Hidden>,
    meant: impl Fn(&RealTimeThread) -> bool,
) -> Strangers {
    let above = threads.iter().flatten().filter(|thread| meant(thread));
    let mut seen: Vec<Stranger> = Vec::new();
    for thread in above {
        let account = Account::of(thread.tid).ok();
        let (name, had) = (thread.to_string(), account.and_then(|own| own.service()));
        // All threads of another laxity have one name.
        match seen.iter_mut().find(|one| one.name == name) {
            Some(same) => same.had = same.had.zip(had).map(|(one, other)| one + other),
            None => seen.push(Stranger { name, had }),
        }
    }
    Strangers {
        seen,
        unseen: unseen(threads, hidden),
        ..Strangers::default()
    }
}

/// Why there may be threads that are not among these; `None` where all are.
pub(super) fn unseen(
    threads: &Fact<Vec<RealTimeThread>>,
    hidden: Option<&Hidden>,
) -> Option<String> {
    let unreadable = threads.as_ref().err().map(ToString::to_string);
    hidden.map(ToString::to_string).or(unreadable)
}

/// Whether a stranger keeps the processor from a slot's occupant there.
pub(crate) fn outranks(thread: &RealTimeThread, cpu: usize) -> bool {
    thread.is_stranger_on(cpu) && is_above_slots(thread, cpu)
}

/// Whether a thread of whatever process keeps the processor from a slot's occupant there: one of the occupant's own rank that runs already is
/// not preempted by it.
pub(crate) fn is_above_slots(thread: &RealTimeThread, cpu: usize) -> bool {
    thread.outranks(BELOW_OCCUPANT, cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::cgroup::mounts;
    use crate::os::sched::{Policy, Tid};

    fn stranger(policy: Policy) -> RealTimeThread {
        RealTimeThread {
            pid: 41,
            parent: 1,
            tid: Tid(42),
            name: "greedy".to_owned(),
            policy,
            boosted: None,
            affinity: Ok(CpuSet::single(0)),
            processor: 0,
            of_kernel: false,
            of_laxity: false,
        }
    }

    fn names(found: &Strangers) -> Vec<&str> {
        let seen = found.seen.iter();
        seen.map(|stranger| stranger.name.as_str()).collect()
    }

    #[test]
    fn a_stranger_that_outranks_is_named_by_thread_name_and_process() {
        let on = |cpu, policy| {
            let threads = Ok(vec![stranger(policy)]);
            let found = outranking(&threads, None, &CpuSet::single(cpu));
            assert_eq!(found.unseen, None);
            found
        };
        assert!(on(0, Policy::Fifo(79)).seen.is_empty());
        assert!(on(1, Policy::Fifo(80)).seen.is_empty());
        assert_eq!(
            names(&on(0, Policy::RoundRobin(80))),
            ["thread 42 \"greedy\" of process 41 (SCHED_RR priority 80)"]
        );
    }

    #[test]
    fn another_laxity_is_named_as_that() {
        let dispatcher = RealTimeThread {
            name: "dispatcher/0".to_owned(),
            of_laxity: true,
            ..stranger(Policy::Fifo(98))
        };
        let witness = RealTimeThread {
            name: "witness/0".to_owned(),
            ..dispatcher.clone()
        };
        let found = outranking(&Ok(vec![dispatcher, witness]), None, &CpuSet::single(0));
        assert_eq!(names(&found), ["another laxity (process 41)"]);
    }

    #[test]
    fn who_cannot_be_seen_is_not_nobody() {
        let unreadable = Err(Unknown("/proc: Permission denied".to_owned()));
        let found = outranking(&unreadable, None, &CpuSet::single(0));
        assert_eq!(found.unseen.as_deref(), Some("/proc: Permission denied"));
        let threads = Ok(vec![stranger(Policy::Fifo(90))]);
        let found = outranking(&threads, Some(&Hidden::Namespace), &CpuSet::single(0));
        assert_eq!(found.seen.len(), 1, "who is seen is named all the same");
        let why = "processes outside this PID namespace are hidden";
        assert_eq!(found.unseen.as_deref(), Some(why));
    }

    #[test]
    fn proc_hides_nobody_from_who_is_in_its_group() {
        let hides = |options: &str, groups: &[u32]| {
            let mounted = format!(
                "22 27 0:21 / /proc rw - proc proc rw\n23 27 0:21 / /proc rw - proc proc rw{options}\n"
            );
            hidden_by(&mounts(&mounted), groups).is_some()
        };
        assert!(!hides("", &[]) && !hides(",hidepid=0", &[]) && !hides(",hidepid=off", &[]));
        for how in [",hidepid=1", ",hidepid=2", ",hidepid=invisible"] {
            assert!(hides(how, &[]) && hides(how, &[7]), "{how}");
            let with_group = format!("{how},gid=7");
            assert!(hides(&with_group, &[8]) && !hides(&with_group, &[7]));
        }
        assert!(hides(",gid=7,hidepid=ptraceable", &[7]));
    }

    #[test]
    fn hidepid_hides_nobody_from_who_may_trace_everybody() {
        let mounted = mounts("22 27 0:21 / /proc rw - proc proc rw,hidepid=2\n");
        // Where this very process is in a namespace of its own, that is told first.
        let found = |may_trace| hidden(&Ok(mounted.clone()), || may_trace);
        let otherwise = hidden(&Ok(Vec::new()), || Some(false));
        assert_eq!(found(Some(true)), otherwise);
        if otherwise.is_none() {
            assert_eq!(found(None), Some(Hidden::HidePid("2".to_owned())));
        }
    }
}
