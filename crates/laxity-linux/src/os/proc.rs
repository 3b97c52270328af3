//! What `/proc` tells: steal time, locked memory, and who runs with real-time policies.

use std::ffi::{CStr, OsStr};
use std::fmt;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::str::FromStr;

use laxity_model::Span;
use laxity_model::enforce::ranks::{BELOW_OCCUPANT, DISPATCHER, WITNESS};
use rustix::fs::{Mode, OFlags, openat};
use rustix::param::clock_ticks_per_second;

use crate::os::census::Census;
use crate::os::cpuset::CpuSet;
use crate::os::fact::{Fact, Unknown, numbers_in, read, read_as};
use crate::os::sched::{self, Policy, Tid};

/// Time that the hypervisor took from these processors since boot, by `/proc/stat`; counted in ticks of 10 ms as a rule.
///
/// A host may stand still without counting it here; hence the witness.
pub fn steal(cpus: &[usize]) -> Option<Span> {
    let all = steal_of_each().ok()?;
    let of = |cpu: &usize| all.iter().find(|(number, _)| number == cpu);
    cpus.iter().map(|cpu| Some(of(cpu)?.1)).sum()
}

/// The same of each processor, by its number.
pub(crate) fn steal_of_each() -> Fact<Vec<(usize, Span)>> {
    let tick = 1_000_000_000_u64.checked_div(clock_ticks_per_second());
    let tick = tick.map(Span::from_nanos);
    let tick = tick.ok_or_else(|| Unknown("the kernel does not say USER_HZ".to_owned()))?;
    let in_time = |(cpu, ticks)| Some((cpu, tick.checked_mul(ticks)?));
    Ok(steal_ticks(&read("/proc/stat")?)
        .into_iter()
        .filter_map(in_time)
        .collect())
}

/// The steal time of each processor in `/proc/stat`, in ticks of `USER_HZ`.
pub fn steal_ticks(stat: &str) -> Vec<(usize, u64)> {
    stat.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let processor = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
            let steal = fields.nth(7)?.parse().ok()?;
            Some((processor, steal))
        })
        .collect()
}

/// A thread that is scheduled before ordinary ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealTimeThread {
    /// Its process.
    pub pid: u32,
    /// Whose child that is; 0 of one that has no parent to be seen.
    pub parent: u32,
    /// The thread itself.
    pub tid: Tid,
    /// The name it gave itself.
    pub name: String,
    /// Its own policy: a real-time one, or any while it is boosted.
    pub policy: Policy,
    /// The policy at whose rank it runs while a thread that has that waits for a lock that it holds (priority inheritance).
    pub boosted: Option<Policy>,
    /// Where it may run.
    pub affinity: Fact<CpuSet>,
    /// Where it ran last.
    pub processor: usize,
    /// Whether it is the kernel's.
    pub of_kernel: bool,
    /// Whether its process runs another laxity: the same program as this one, or the command; or it is one of those by which another gives slots.
    pub of_laxity: bool,
}

/// How it is named in messages; all threads of another laxity as one.
impl fmt::Display for RealTimeThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            tid,
            name,
            policy,
            boosted,
            ..
        } = self;
        if self.of_laxity {
            return write!(f, "another laxity (process {pid})");
        }
        write!(f, "thread {tid} {name:?} of process {pid} ({policy}")?;
        if let Some(boosted) = boosted {
            write!(f, ", boosted to {boosted}")?;
        }
        f.write_str(")")
    }
}

impl RealTimeThread {
    /// One that has this policy, with what else is to be known of it.
    pub(super) fn of(pid: u32, tid: Tid, policy: Policy, stat: ThreadStat) -> Self {
        let is_laxitys = || enforces_slots(&stat.name, policy) || is_laxity(pid);
        let of_laxity = !stat.of_kernel && pid != std::process::id() && is_laxitys();
        Self {
            pid,
            parent: stat.parent,
            tid,
            name: stat.name,
            policy,
            boosted: None,
            affinity: sched::affinity(tid).map_err(|error| Unknown(error.to_string())),
            processor: stat.processor,
            of_kernel: stat.of_kernel,
            of_laxity,
        }
    }

    /// The policy by which it takes a processor now.
    pub(crate) fn at_work(&self) -> Policy {
        self.boosted.unwrap_or(self.policy)
    }

    /// Whether it is part of the scheduler itself: the stopper that moves threads, or the one that sets the processor's frequency. Both
    /// are on every machine, run for microseconds, and are not admitted like other work.
    pub fn is_scheduler(&self) -> bool {
        self.of_kernel && (self.name.starts_with("migration/") || self.name.starts_with("sugov:"))
    }

    /// Whether it takes the processor from a FIFO thread of `priority` on `cpu`; equal priorities do not. The scheduler's own
    /// threads are left out. An affinity that is not known counts as everywhere.
    pub fn outranks(&self, priority: u8, cpu: usize) -> bool {
        self.at_work().outranks(priority) && self.may_run_on(cpu) && !self.is_scheduler()
    }

    /// Whether it is of another process, and may run on `cpu`.
    ///
    /// Threads of the kernel itself (`PF_KTHREAD`: `migration/N`, `watchdogd`, threaded interrupts) are no strangers: they belong to the
    /// machine, as interrupts do, and what they take shows as disturbance.
    pub(crate) fn is_stranger_on(&self, cpu: usize) -> bool {
        !self.of_kernel && self.pid != std::process::id() && self.may_run_on(cpu)
    }

    fn may_run_on(&self, cpu: usize) -> bool {
        let affinity = self.affinity.as_ref();
        affinity.map_or(true, |affinity| affinity.contains(cpu))
    }
}

/// Every real-time thread that can be seen, the caller's own too, by process and thread; of the processes of others also those that run as high as slots
/// for one of their own that waits for them. One system call a thread of the machine, beside the listing of all.
pub fn real_time_threads() -> Fact<Vec<RealTimeThread>> {
    Census::default().real_time(|thread| {
        let is_foreign = !thread.of_kernel && thread.pid != std::process::id();
        is_foreign && thread.policy.outranks(BELOW_OCCUPANT)
    })
}

/// What ends between the listing and the reading is no danger any more, and left out.
pub(crate) fn unless_gone<T>(path: impl AsRef<Path>, found: Fact<T>) -> Fact<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(_) if has_gone(&path) => Ok(None),
        Err(reason) => Err(reason),
    }
}

/// Whether a process or thread with this directory has gone. That nothing of it can be read is no sign of it: where no more files may be open, all are so. This
/// opens none.
pub(crate) fn has_gone(path: impl AsRef<Path>) -> bool {
    fs::exists(path).is_ok_and(|is_there| !is_there)
}

/// The process that a thread is of.
///
/// # Errors
///
/// Why that cannot be told: there is no such thread, or it may not be looked at.
pub fn process_of(tid: Tid) -> Fact<u32> {
    read_as(format!("/proc/{tid}/status"), |text| {
        let line = text.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    })
}

/// Whether a thread is a dispatcher or a witness, by its name and rank: an application that has slots may be any program.
fn enforces_slots(name: &str, policy: Policy) -> bool {
    let all = [("dispatcher/", DISPATCHER), ("witness/", WITNESS)];
    let mut all = all.into_iter();
    all.any(|(begin, rank)| name.starts_with(begin) && policy == Policy::Fifo(rank))
}

/// Whether a process runs the same program as this one, or the command `laxity`. Who cannot be looked into is a stranger.
fn is_laxity(pid: u32) -> bool {
    let program = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
    let theirs = program(&pid.to_string());
    theirs.is_some_and(|theirs| {
        theirs.file_name() == Some(OsStr::new("laxity"))
            || program("self").is_some_and(|own| own == theirs)
    })
}

/// `6.18.44-foo`: the release's first two numbers.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

/// Whether threads have the numbers there by which the caller names them: what is mounted may show another PID namespace.
pub fn shows_own_numbers() -> Fact<()> {
    let path = Path::new("/proc/self");
    let own = fs::read_link(path).map_err(|error| Unknown::cannot_read(path, &error))?;
    let number = std::process::id();
    if own.as_os_str() == number.to_string().as_str() {
        return Ok(());
    }
    Err(Unknown(format!(
        "/proc shows another PID namespace: this process, {number}, is {} there (mount its own: `unshare --mount-proc`)",
        own.display()
    )))
}

/// The threads of a process.
pub fn threads_of(pid: u32) -> Fact<Vec<Tid>> {
    shows_own_numbers()?;
    let numbers = numbers_in(format!("/proc/{pid}/task"))?;
    Ok(numbers.into_iter().map(|tid| Tid(tid as i32)).collect())
}

/// What `/proc/PID/task/TID/stat` says of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadStat {
    /// Its name: at most 15 bytes, chosen by the thread, so it may hold anything.
    pub name: String,
    /// The process whose child its process is; 0 of one that has none.
    pub parent: u32,
    /// Whether it is the kernel's.
    pub of_kernel: bool,
    /// The rank at which it is scheduled now, whatever its own policy is: a real-time priority, 100 by `SCHED_DEADLINE`, `None` among ordinary threads.
    pub rank: Option<u8>,
    /// The processor it ran on last.
    pub processor: usize,
    /// Whether it has ended, and nobody has waited for it yet.
    pub has_ended: bool,
}

/// One thread's `stat`.
pub fn thread_stat(stat: &str) -> Option<ThreadStat> {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let (front, _) = stat.rsplit_once(')')?;
    let (_, name) = front.split_once('(')?;
    let bytes = stat.as_bytes();
    let state: char = stat_field(bytes, 3)?;
    Some(ThreadStat {
        name: name.to_owned(),
        parent: stat_field(bytes, 4)?,
        of_kernel: stat_field::<u64>(bytes, 9)? & PF_KTHREAD != 0,
        rank: rank(stat_field(bytes, 18)?)?,
        processor: stat_field(bytes, 39)?,
        has_ended: matches!(state, 'Z' | 'X'),
    })
}

/// A field of a `stat`, or of its beginning, by its number in `proc_pid_stat(5)`: those after the name, from the third on. The name may hold parentheses and
/// blanks, so it ends at the last `)`. Nothing is allocated.
pub fn stat_field<T: FromStr>(stat: &[u8], number: usize) -> Option<T> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = stat[end + 1..].split(u8::is_ascii_whitespace);
    let mut fields = fields.filter(|field| !field.is_empty());
    let field = fields.nth(number.checked_sub(3)?)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The same of a process or thread that has its directory, of this name, in this one. Kernel calls only.
pub(crate) fn stat_in<T: FromStr>(all: impl AsFd, one: &CStr, number: usize) -> Option<T> {
    let mut path = [0_u8; 32];
    let name = one.to_bytes();
    path.get_mut(..name.len())?.copy_from_slice(name);
    path.get_mut(name.len()..name.len() + 5)?
        .copy_from_slice(b"/stat");
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let file = openat(all, path, OFlags::RDONLY, Mode::empty()).ok()?;
    let mut stat = [0_u8; 1024];
    let length = rustix::io::read(&file, &mut stat).ok()?;
    stat_field(&stat[..length], number)
}

/// The same of a thread that is there.
pub fn stat_of<T: FromStr>(thread: Tid, number: usize) -> Fact<T> {
    read_as(format!("/proc/{thread}/stat"), |stat| {
        stat_field(stat.as_bytes(), number)
    })
}

/// The rank of a thread of this `priority`: below zero, and by one more than the rank, of those that are scheduled before ordinary ones. `None` of
/// what no thread has.
fn rank(priority: i64) -> Option<Option<u8>> {
    if priority >= 0 {
        return Some(None);
    }
    let rank = u8::try_from(-1 - priority).ok()?;
    (rank <= 100).then_some(Some(rank))
}

/// The process's locked memory in KiB, by `/proc/self/status`.
pub fn locked_memory_kib() -> Option<u64> {
    let bytes = read_as("/proc/self/status", |text| kib(text, "VmLck:"));
    Some(bytes.ok()? / 1_024)
}

/// The process's whole address space in bytes, by `/proc/self/status`.
pub(crate) fn address_space_bytes() -> Option<u64> {
    read_as("/proc/self/status", |text| kib(text, "VmSize:")).ok()
}

/// Memory that can be had without taking it from others, by `/proc/meminfo`.
pub(crate) fn available_memory_bytes() -> Fact<u64> {
    read_as("/proc/meminfo", |text| kib(text, "MemAvailable:"))
}

/// The signals that are pending with a process, a bit each, signal 1 the lowest.
pub(crate) fn pending_signals(process: u32) -> Fact<u64> {
    read_as(format!("/proc/{process}/status"), |text| {
        let line = text.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    })
}

/// What a line `Name: 123 kB` says, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::{Reservation, Service};
    use proptest::prelude::*;

    #[test]
    fn steal_is_the_eighth_counter() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu1 1 2\nintr 9\n";
        assert_eq!(steal_ticks(stat), [(0, 80)]);
        let of_each = steal_of_each().unwrap();
        assert!(steal(&[of_each[0].0]).unwrap() >= of_each[0].1);
        assert_eq!(steal(&[usize::MAX]), None);
    }

    #[test]
    fn who_gives_slots_is_known_by_name_and_rank_whatever_program_that_is() {
        assert!(enforces_slots("dispatcher/0", Policy::Fifo(DISPATCHER)));
        assert!(enforces_slots("witness/13", Policy::Fifo(WITNESS)));
        let others = [
            ("dispatcher/0", Policy::Fifo(WITNESS)),
            ("witness/0", Policy::Other { nice: 0 }),
            ("eyewitness/0", Policy::Fifo(WITNESS)),
        ];
        for (name, policy) in others {
            assert!(!enforces_slots(name, policy), "{name} {policy}");
        }
    }

    #[test]
    fn a_thread_may_be_named_like_its_own_record() {
        let tail = "S 1 2 3 4 5 2097152 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 17 1 50 1 0";
        let stat = thread_stat(&format!("42 (a) R (b) {tail}")).unwrap();
        assert_eq!((stat.name.as_str(), stat.processor), ("a) R (b", 1));
        assert_eq!(stat.parent, 1);
        assert!(stat.of_kernel);
        assert_eq!(thread_stat("42 (a) R 1 2"), None);
        let cut_off = b"42 (a) R 1 (b) S 17 42 42";
        assert_eq!(stat_field(cut_off, 3), Some('S'));
        assert_eq!(stat_field(cut_off, 4), Some(17));
        let none = [b"42 (cut off".as_slice(), b"42 (a) R"].map(|stat| stat_field::<i32>(stat, 4));
        assert_eq!(none, [None; 2]);
        assert_eq!(stat_field::<i32>(cut_off, 2), None, "it may be the name's");
    }

    #[test]
    fn a_thread_runs_at_the_rank_that_its_priority_says() {
        let of = |priority: &str| {
            let tail = format!(
                "S 1 2 3 4 5 0 7 8 9 10 11 12 13 14 {priority} 0 1 0 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 17 1 0 0 1 0"
            );
            thread_stat(&format!("42 (a) {tail}")).map(|stat| stat.rank)
        };
        assert_eq!([of("20"), of("0")], [Some(None); 2]);
        assert_eq!([of("-2"), of("-91")], [Some(Some(1)), Some(Some(90))]);
        assert_eq!(of("-101"), Some(Some(100)), "a deadline's");
        assert_eq!([of("-102"), of("-1000"), of("x")], [None; 3]);
    }

    #[test]
    fn the_own_threads_are_listed_and_what_is_gone_is_an_error() {
        let own = threads_of(std::process::id()).unwrap();
        assert!(own.contains(&Tid::current()));
        let nobody = threads_of(u32::MAX).unwrap_err();
        assert!(nobody.to_string().contains("4294967295/task"), "{nobody}");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_unless_it_has_gone() {
        let hidden = || Err::<(), _>(Unknown("hidden".to_owned()));
        assert_eq!(unless_gone("/proc/self", hidden()), hidden().map(Some));
        assert_eq!(unless_gone("/proc/4294967295", hidden()), Ok(None));
        // What is below a file cannot be looked for: that is no answer.
        assert!(!has_gone("/proc/version/4294967295"));
    }

    #[test]
    fn a_release_begins_with_its_version() {
        assert_eq!(kernel_version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(kernel_version("5.15-rc1\n"), Some((5, 15)));
        assert_eq!(kernel_version("six"), None);
    }

    #[test]
    fn who_outranks_a_slot() {
        let thread = |name: &str, policy, of_kernel| RealTimeThread {
            pid: 7,
            parent: 1,
            tid: Tid(8),
            name: name.to_owned(),
            policy,
            boosted: None,
            affinity: Ok(CpuSet::single(1)),
            processor: 1,
            of_kernel,
            of_laxity: false,
        };
        let tenth = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
        let deadline = Policy::Deadline(tenth.into());
        assert!(thread("rogue", Policy::Fifo(81), false).outranks(80, 1));
        assert!(!thread("rogue", Policy::Fifo(80), false).outranks(80, 1));
        assert!(!thread("rogue", Policy::Fifo(81), false).outranks(80, 0));
        assert!(thread("rogue", deadline, false).outranks(99, 1));
        assert!(thread("irq/24", Policy::Fifo(90), true).outranks(80, 1));
        assert!(!thread("migration/1", Policy::Fifo(99), true).outranks(80, 1));
        let boosted = RealTimeThread {
            boosted: Some(Policy::Fifo(81)),
            ..thread("holder", Policy::Other { nice: 0 }, false)
        };
        assert!(boosted.outranks(80, 1) && !boosted.outranks(81, 1));
        let named = "thread 8 \"holder\" of process 7 (SCHED_OTHER nice 0, boosted to SCHED_FIFO priority 81)";
        assert_eq!(boosted.to_string(), named);
        // Anyone may take that name; only the kernel's thread is exempt.
        assert!(thread("migration/1", Policy::Fifo(99), false).outranks(80, 1));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,300}", word in "[A-Za-z0-9 ()\n-]{0,200}") {
            for text in [&text, &word] {
                let _ = (steal_ticks(text), thread_stat(text));
                let _ = kernel_version(text);
            }
        }
    }
}
