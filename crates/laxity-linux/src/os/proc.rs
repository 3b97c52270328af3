//! What `/proc` tells: steal time, and who else runs with real-time policies.

use std::fs;
use std::path::Path;

use laxity_model::Span;

use crate::os::sched::{self, CpuSet, Policy, Tid};

/// Time that the hypervisor took from these processors since boot, by `/proc/stat`; counted in ticks of 10 ms.
///
/// A host may stand still without counting it here; hence the witness.
#[must_use]
pub fn steal(cpus: &[usize]) -> Option<Span> {
    steal_in(&fs::read_to_string("/proc/stat").ok()?, cpus)
}

fn steal_in(stat: &str, cpus: &[usize]) -> Option<Span> {
    // USER_HZ is 100 on every architecture that is supported here.
    const TICK: Span = Span::from_millis(10);
    let mut total = Span::ZERO;
    for cpu in cpus {
        let name = format!("cpu{cpu}");
        let line = stat
            .lines()
            .find(|line| line.split_ascii_whitespace().next() == Some(&name))?;
        let ticks: u64 = line.split_ascii_whitespace().nth(8)?.parse().ok()?;
        total += TICK.checked_mul(ticks)?;
    }
    Some(total)
}

/// A thread with a real-time policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealTimeThread {
    /// Its process.
    pub process: i32,
    /// The thread.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: Policy,
    /// Where it may run.
    pub cpus: CpuSet,
}

/// Threads of other processes with real-time policies that may run on `cpu`.
///
/// Threads of the kernel itself (`PF_KTHREAD`: `migration/N`, `watchdogd`, threaded interrupts) are left out: they belong to the
/// machine, as interrupts do, and what they take shows as disturbance. What cannot be read (a thread that ends meanwhile) is no
/// danger any more and left out too.
#[must_use]
pub fn strangers_on(cpu: usize) -> Vec<RealTimeThread> {
    let own = std::process::id() as i32;
    let mut found = Vec::new();
    for process in numbered_entries(Path::new("/proc")) {
        if process == own || is_kernel_thread(process) {
            continue;
        }
        for tid in numbered_entries(Path::new(&format!("/proc/{process}/task"))) {
            found.extend(real_time_thread(process, Tid(tid)).filter(|t| t.cpus.contains(cpu)));
        }
    }
    found
}

fn real_time_thread(process: i32, tid: Tid) -> Option<RealTimeThread> {
    let policy = sched::policy(tid).ok()?;
    if !policy.is_real_time() {
        return None;
    }
    let name = fs::read_to_string(format!("/proc/{process}/task/{tid}/comm")).ok()?;
    Some(RealTimeThread {
        process,
        tid,
        name: name.trim_end().to_owned(),
        policy,
        cpus: sched::affinity(tid).ok()?,
    })
}

/// The threads of a process.
#[must_use]
pub fn threads_of(process: i32) -> Vec<Tid> {
    numbered_entries(Path::new(&format!("/proc/{process}/task")))
        .into_iter()
        .map(Tid)
        .collect()
}

fn numbered_entries(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Whether the process is a thread of the kernel, by its flags in `/proc/<pid>/stat` (field 9, bit `PF_KTHREAD`).
fn is_kernel_thread(process: i32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    fs::read_to_string(format!("/proc/{process}/stat"))
        .ok()
        .and_then(|stat| flags_in(&stat))
        .is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// The flags in a stat line. The name before them may hold spaces and parentheses, so fields are counted after its end.
fn flags_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split_ascii_whitespace().nth(6)?.parse().ok()
}

/// The process's locked memory in KiB, by `/proc/self/status`.
#[must_use]
pub fn locked_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmLck:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_of_each_processor() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 3 0 0\n";
        assert_eq!(steal_in(stat, &[0, 1]), Some(Span::from_millis(110)));
        assert_eq!(steal_in(stat, &[1]), Some(Span::from_millis(30)));
        assert_eq!(steal_in(stat, &[2]), None);
    }

    #[test]
    fn flags_are_found_after_a_name_with_parentheses() {
        let stat = "17 (a) b (c)) S 2 0 0 0 -1 69238880 0 0";
        assert_eq!(flags_in(stat), Some(69_238_880));
        assert!(!is_kernel_thread(std::process::id() as i32));
        assert!(is_kernel_thread(2), "process 2 is kthreadd");
    }

    #[test]
    fn the_own_threads_are_listed() {
        assert!(threads_of(std::process::id() as i32).contains(&Tid::current()));
    }
}
