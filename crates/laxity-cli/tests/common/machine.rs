//! What a run may not leave behind: read from `/proc` and `/sys`, before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How the kernel schedules a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scheduling {
    pub(crate) name: String,
    pub(crate) policy: u32,
    pub(crate) priority: u32,
    /// How often it was given a processor.
    pub(crate) turns: u64,
    nice: i32,
    processors: String,
}

impl Scheduling {
    /// Whether all but what it did is the same; or it has another name, and is another program since, such as `nice` became, which sets itself as it likes.
    fn is_scheduled_as(&self, other: &Self) -> bool {
        let same = (self.policy, self.priority, self.nice)
            == (other.policy, other.priority, other.nice)
            && self.processors == other.processors;
        same || self.name != other.name
    }

    /// Whether it has a policy that outranks ordinary threads.
    pub(crate) fn is_real_time(&self) -> bool {
        [FIFO, DEADLINE].contains(&self.policy)
    }
}

/// `SCHED_FIFO`.
pub(crate) const FIFO: u32 = 1;
/// `SCHED_DEADLINE`.
pub(crate) const DEADLINE: u32 = 6;

/// A thread of a process: its number, and when it started, since numbers come again.
type Identity = (i32, u64);

/// A kernel thread, in the `flags` of its `stat`.
const PF_KTHREAD: u64 = 0x0020_0000;

/// One thread's line in `/proc`; `None` if it has just ended, or is the kernel's.
fn thread(directory: &Path) -> Option<(Identity, Scheduling)> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let (id, name) = before.split_once('(')?;
    // The first field after the name is the third of proc_pid_stat(5).
    let fields: Vec<&str> = after.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    if field(9)?.parse::<u64>().ok()? & PF_KTHREAD != 0 {
        return None;
    }
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let processors = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let schedstat = fs::read_to_string(directory.join("schedstat")).ok()?;
    let scheduling = Scheduling {
        turns: schedstat.split_whitespace().nth(2)?.parse().ok()?,
        name: name.to_owned(),
        policy: field(41)?.parse().ok()?,
        priority: field(40)?.parse().ok()?,
        nice: field(19)?.parse().ok()?,
        processors: processors.trim().to_owned(),
    };
    let id = id.trim().parse().ok()?;
    Some(((id, field(22)?.parse().ok()?), scheduling))
}

fn numbered(directory: &Path) -> Vec<(i32, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let numbers = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))
    });
    numbers.collect()
}

/// The threads of a process; empty when it is gone.
pub(crate) fn threads_of(process: u32) -> Vec<Scheduling> {
    let tasks = numbered(&PathBuf::from(format!("/proc/{process}/task")));
    tasks
        .iter()
        .filter_map(|(_, path)| Some(thread(path)?.1))
        .collect()
}

/// All threads of all users, without the kernel's.
fn all_threads() -> BTreeMap<Identity, Scheduling> {
    let processes = numbered(Path::new("/proc"));
    let tasks = processes
        .iter()
        .flat_map(|(_, path)| numbered(&path.join("task")));
    tasks.filter_map(|(_, path)| thread(&path)).collect()
}

/// The processes whose environment holds `variable=value`, with their names. Whoever was started by a process inherits that, however
/// far it has gone since.
pub(crate) fn marked_processes(mark: &(String, String)) -> Vec<(i32, String)> {
    let wanted = format!("{}={}", mark.0, mark.1).into_bytes();
    let is_marked = |path: &Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted)
    };
    let marked = numbered(Path::new("/proc"))
        .into_iter()
        .filter(|(_, path)| is_marked(path));
    marked
        .map(|(id, path)| {
            let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
            (id, name.trim().to_owned())
        })
        .collect()
}

/// The control groups of this program, in every hierarchy.
fn control_groups() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with("laxity") {
                    found.insert(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}

/// The interfaces of this network namespace, and the namespaces that have a name.
fn networks() -> BTreeSet<PathBuf> {
    let directories = ["/sys/class/net", "/run/netns"];
    let entries = directories
        .into_iter()
        .filter_map(|name| fs::read_dir(name).ok());
    entries
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// The kernel's limits for real-time threads.
fn real_time_limits() -> [String; 2] {
    ["sched_rt_period_us", "sched_rt_runtime_us"]
        .map(|name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default())
}

/// What a run could change for others.
pub(crate) struct Machine {
    threads: BTreeMap<Identity, Scheduling>,
    groups: BTreeSet<PathBuf>,
    networks: BTreeSet<PathBuf>,
    limits: [String; 2],
}

impl Machine {
    pub(crate) fn now() -> Self {
        Self {
            threads: all_threads(),
            groups: control_groups(),
            networks: networks(),
            limits: real_time_limits(),
        }
    }

    /// What is different now: a thread of before with another policy, priority or affinity, a group, an interface or a named namespace that was not there,
    /// another limit. Threads and groups that others have meanwhile started or ended do not count.
    pub(crate) fn changes(&self) -> Vec<String> {
        let now = Self::now();
        let mut changes = Vec::new();
        for (identity, before) in &self.threads {
            if let Some(after) = now.threads.get(identity)
                && !after.is_scheduled_as(before)
            {
                changes.push(format!("thread {identity:?}: {before:?}, now {after:?}"));
            }
        }
        let groups = now.groups.difference(&self.groups);
        let networks = now.networks.difference(&self.networks);
        changes.extend(
            groups
                .chain(networks)
                .map(|new| format!("{} is there", new.display())),
        );
        if now.limits != self.limits {
            changes.push(format!("{:?}, now {:?}", self.limits, now.limits));
        }
        changes
    }
}
