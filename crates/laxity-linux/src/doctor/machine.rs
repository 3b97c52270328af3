//! The facts about a machine that decide what it can promise. Plain data: what could not be read says why, and is never guessed.

use std::fmt;

use laxity_model::Span;
use laxity_model::analysis::multiprocessor::{Bandwidth, KernelLimits};

use super::outranking::{self, Hidden};
use crate::net::OpenCause;
use crate::os::cpuset::CpuSet;
pub use crate::os::fact::{Fact, Unknown};
pub use crate::os::limits::Throttling;
use crate::os::proc::RealTimeThread;
use crate::os::sched::Policy;

/// Where the kernel itself may be preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preemption {
    /// Only where it returns to user space or sleeps.
    None,
    /// At chosen points too.
    Voluntary,
    /// At the tick, and at once for real-time threads.
    Lazy,
    /// Almost anywhere.
    Full,
    /// Almost anywhere, and interrupts run as threads (`PREEMPT_RT`).
    RealTime,
}

impl Preemption {
    /// Each with its name, and the option that a kernel is built with for it.
    pub(super) const ALL: [(Self, &str, &str); 5] = [
        (Self::RealTime, "PREEMPT_RT", "PREEMPT_RT"),
        (Self::None, "none", "PREEMPT_NONE"),
        (Self::Voluntary, "voluntary", "PREEMPT_VOLUNTARY"),
        (Self::Lazy, "lazy", "PREEMPT_LAZY"),
        (Self::Full, "full", "PREEMPT"),
    ];
}

impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Self::ALL.iter().find(|(model, ..)| model == self);
        f.write_str(own.map_or("", |(_, name, _)| name))
    }
}

/// The kernel and its clocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// The release's first two numbers.
    pub version: Fact<(u32, u32)>,
    /// The preemption model in force.
    pub preemption: Fact<Preemption>,
    /// The length of a tick: 1/HZ, from the resolution of the coarse clock.
    pub tick: Span,
    /// The resolution of timers: 1 ns with high-resolution timers, else a tick.
    pub timer_resolution: Span,
    /// Whether the end of a deadline budget has a timer, or is noticed at the next tick, so that it may be overrun by one (debugfs; root only).
    pub hrtick: Fact<bool>,
    /// How long any thread may put off the end of its turn, though a real-time thread waits (the time slice extension of restartable sequences, Linux 7.0); `None` where none can.
    pub slice_extension: Fact<Option<Span>>,
    /// The clock that the kernel keeps time with.
    pub clock_source: Fact<String>,
}

/// The processors, and what is spread over them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessorFacts {
    /// Those that run.
    pub online: Fact<CpuSet>,
    /// Those that the scheduler does not balance over (`isolcpus`, isolated partitions).
    pub isolated: Fact<CpuSet>,
    /// Those whose tick stops while one thread runs.
    pub nohz_full: Fact<CpuSet>,
    /// Those that the calling thread may run on.
    pub affinity: Fact<CpuSet>,
    /// The root domains: the sets that threads are balanced within, and deadline bandwidth is admitted for.
    pub root_domains: Fact<Vec<CpuSet>>,
    /// The frequency governor of each processor; empty where the kernel controls no frequency.
    pub governors: Fact<Vec<(usize, String)>>,
    /// The time that the hypervisor took from each processor since start. A host that stalls may show none.
    pub steal: Fact<Vec<(usize, Span)>>,
    /// Where each interrupt of a device may be handled.
    pub interrupts: Fact<Vec<CpuSet>>,
}

/// The own group of threads under `RT_GROUP_SCHED`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RealTimeGroup {
    /// Groups do not limit real-time threads: the kernel is not built so, has it switched off, or limits no real-time work.
    NotLimited,
    /// The group of all threads, limited only as the machine is.
    Root,
    /// A v1 group.
    V1 {
        /// Its directory.
        directory: String,
        /// Its `cpu.rt_runtime_us`; `None` without a limit.
        runtime_us: Option<u64>,
        /// Its `cpu.rt_period_us`: its real-time threads have no more together of so much time, on each processor.
        period_us: u64,
    },
    /// A v2 group below the root: it has no runtime, and no file to give it any.
    V2 {
        /// Its directory.
        directory: String,
    },
}

/// What the calling thread is allowed to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Its effective capabilities, a bit each, numbered as in capabilities(7).
    pub capabilities: Fact<u64>,
    /// Whether it is in the first user namespace; scheduling honours no capability of another.
    pub initial_user_namespace: Fact<bool>,
    /// The highest FIFO priority it may take without a capability; `None` without a limit.
    pub rtprio: Option<u64>,
    /// The lowest nice value that it may take without a capability, as 20 less it; `None` without a limit.
    pub nice: Option<u64>,
    /// Processor time without blocking, in microseconds, after which a real-time thread gets SIGXCPU; `None` without a limit.
    pub rttime_us: Option<u64>,
    /// The memory that it may lock without a capability; `None` without a limit.
    pub memlock_bytes: Option<u64>,
    /// The size of its process's memory, all of which `mlockall` locks.
    pub memory_bytes: Fact<u64>,
    /// Whether a filter of system calls is in force (seccomp): it may refuse what the kernel would allow.
    pub filtered: Fact<bool>,
    /// Its present policy.
    pub policy: Fact<Policy>,
    /// Whether what it starts falls back to the ordinary policy.
    pub reset_on_fork: Fact<bool>,
    /// The real-time group it is in.
    pub group: Fact<RealTimeGroup>,
}

/// `CAP_IPC_LOCK`: may lock any amount of memory.
pub const CAP_IPC_LOCK: u32 = 14;
/// `CAP_SYS_PTRACE`: may trace every process, and so sees it.
pub const CAP_SYS_PTRACE: u32 = 19;
/// `CAP_SYS_NICE`: may take any policy and priority.
pub const CAP_SYS_NICE: u32 = 23;

impl Rights {
    /// Whether the thread has a capability that counts: effective, and in the first user namespace. A namespace that cannot be read
    /// is taken for the first.
    pub fn has(&self, capability: u32) -> Option<bool> {
        let set = *self.capabilities.as_ref().ok()?;
        Some((set >> capability) & 1 == 1 && self.initial_user_namespace != Ok(false))
    }
}

/// Where a number comes from that the kernel does not show to everyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Read from the running kernel.
    Read,
    /// What kernels of this version have unless changed.
    KernelDefault,
}

/// What the kernel keeps of a processor for those who rank below real-time threads, by deadline servers of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Servers {
    /// For ordinary threads, from Linux 6.12 on.
    pub fair: Bandwidth,
    /// For those that a scheduler of `sched_ext` has, from Linux 7.0 on, whether there is one or not.
    pub ext: Bandwidth,
    /// How that is known.
    pub from: Source,
}

impl Servers {
    /// Of both.
    pub fn share(&self) -> Bandwidth {
        [self.fair, self.ext].into_iter().sum()
    }
}

/// The deadline bandwidth of a root domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainBandwidth {
    /// The domain's processors.
    pub processors: CpuSet,
    /// What may be admitted: the real-time limit on each processor, less the fair servers.
    pub admissible: Bandwidth,
    /// What is set apart so that ordinary threads never starve: the [servers](Servers) of its processors.
    pub fair_servers: Bandwidth,
    /// How that is known.
    pub fair_servers_from: Source,
    /// What the deadline threads that can be seen hold: at least this much is taken. One that has left holds its share until its
    /// zero-lag time, unseen.
    pub used: Bandwidth,
}

impl DomainBandwidth {
    /// What is left at most.
    pub fn free(&self) -> Bandwidth {
        self.admissible.saturating_sub(self.used)
    }
}

impl fmt::Display for DomainBandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (free, all) = (self.free(), self.admissible);
        write!(
            f,
            "processors {}: {free:.3} of {all:.3} free",
            self.processors
        )?;
        write!(f, " (after {:.3} for ordinary threads", self.fair_servers)?;
        f.write_str(match self.fair_servers_from {
            Source::Read => ")",
            Source::KernelDefault => ", by this kernel version's default)",
        })
    }
}

/// Each processor has a server for ordinary threads from this release on.
const FIRST_WITH_FAIR_SERVER: (u32, u32) = (6, 12);
/// And one for those of `sched_ext`, where the kernel is built with that.
const FIRST_WITH_EXT_SERVER: (u32, u32) = (7, 0);

/// The servers that a kernel of this version comes with; one that may be built with `sched_ext` is taken to be.
pub(super) fn usual_servers(version: (u32, u32), is_built_with_ext: Option<bool>) -> Servers {
    let server = |is_there| match is_there {
        true => KernelLimits::WITH_FAIR_SERVER.servers,
        false => Bandwidth::ZERO,
    };
    Servers {
        fair: server(version >= FIRST_WITH_FAIR_SERVER),
        ext: server(version >= FIRST_WITH_EXT_SERVER && is_built_with_ext != Some(false)),
        from: Source::KernelDefault,
    }
}

/// The limits that a kernel comes with; one whose version is not known is taken to be new.
pub(crate) fn usual_limits(version: Option<(u32, u32)>) -> KernelLimits {
    KernelLimits {
        servers: usual_servers(version.unwrap_or((u32::MAX, 0)), None).share(),
        ..KernelLimits::WITH_FAIR_SERVER
    }
}

/// What the deadline threads among these hold that ran last on processors of the set, or anywhere. The threads that set frequencies
/// are deadline threads in name only.
pub(crate) fn held_on(processors: Option<&CpuSet>, threads: &[RealTimeThread]) -> Bandwidth {
    threads
        .iter()
        .filter(|thread| !thread.is_scheduler())
        .filter(|thread| processors.is_none_or(|here| here.contains(thread.processor)))
        .map(|thread| thread.policy.bandwidth())
        .sum()
}

/// The sleep states that processors may be kept out of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DmaLatency {
    /// The wake-up latency that somebody asked for, in microseconds; `Ok(None)` if nobody did.
    pub asked_us: Fact<Option<u32>>,
    /// Whether the caller may ask.
    pub writable: bool,
}

/// The ways to a network interface, as far as they can be tried without one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// A packet socket.
    pub packet: Result<(), OpenCause>,
    /// An `AF_XDP` socket, memory for it, a map and a program.
    pub xdp: Result<(), OpenCause>,
    /// The device that TAP interfaces are made by.
    pub tap: Result<(), OpenCause>,
    /// The interfaces whose other end is an interface of this machine too (veth).
    pub unfinished: Fact<Vec<String>>,
}

/// All facts, as they were when [`Machine::probe`](Self::probe) ran. Those about rights and affinity are the calling thread's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The kernel and its clocks.
    pub kernel: Kernel,
    /// The processors.
    pub processors: ProcessorFacts,
    /// The limit on real-time work.
    pub throttling: Throttling,
    /// What the caller may do.
    pub rights: Rights,
    /// What the kernel keeps of each processor for others, of that where it keeps most.
    pub servers: Fact<Servers>,
    /// Deadline bandwidth, by root domain; `Ok(None)` where the kernel admits without limit (`sched_rt_runtime_us` = −1).
    pub bandwidth: Fact<Option<Vec<DomainBandwidth>>>,
    /// Every real-time thread that can be seen, the caller's own too.
    pub threads: Fact<Vec<RealTimeThread>>,
    /// Why not every process can be seen; `None` where it can.
    pub hidden: Option<Hidden>,
    /// `/dev/cpu_dma_latency`.
    pub dma_latency: Fact<DmaLatency>,
    /// The ways to a network interface.
    pub network: Network,
}

impl Machine {
    /// Why not every thread of the machine is seen; `None` where all are.
    pub(crate) fn unseen(&self) -> Option<String> {
        outranking::unseen(&self.threads, self.hidden.as_ref())
    }

    /// The root domain that the calling thread is in: the one that its affinity meets. Not known if it meets several.
    pub fn own_root_domain(&self) -> Fact<&CpuSet> {
        let domains = self.processors.root_domains.as_ref()?;
        let affinity = self.processors.affinity.as_ref()?;
        let mut met = domains.iter().filter(|domain| domain.overlaps(affinity));
        match (met.next(), met.next()) {
            (Some(domain), None) => Ok(domain),
            _ => Err(Unknown("the affinity meets several root domains".into())),
        }
    }

    /// The bandwidth of the calling thread's root domain, where the kernel limits it and it is known.
    pub fn own_bandwidth(&self) -> Option<&DomainBandwidth> {
        let domain = self.own_root_domain().ok()?;
        let bandwidth = self.bandwidth.as_ref().ok()?.as_ref()?;
        bandwidth.iter().find(|one| one.processors == *domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Service;

    #[test]
    fn two_processors_admit_one_and_four_fifths() {
        let limit = Bandwidth::of(Service::from_millis(950), Span::from_secs(1));
        let fair = Bandwidth::of(Service::from_millis(50), Span::from_secs(1));
        let both: Bandwidth = [fair, fair].into_iter().sum();
        let admissible = limit.of_capacity(2048).saturating_sub(both);
        assert_eq!(format!("{admissible:.3}"), "1.800");
    }

    #[test]
    fn new_kernels_keep_more_for_others() {
        let kept = |version, is_built| usual_servers(version, is_built).share().to_string();
        assert_eq!(kept((6, 11), None), "0.000000");
        assert_eq!(kept((6, 19), Some(true)), kept((7, 0), Some(false)));
        let both = [usual_servers((6, 12), None).share(); 2].into_iter().sum();
        assert_eq!(usual_servers((7, 0), None).share(), both);
        assert_eq!(usual_limits(None).servers, both);
    }

    #[test]
    fn a_yes_without_admission_is_no_promise() {
        let unknown = || Unknown("no such file".to_owned());
        let reason = |runtime_us| {
            let set = Throttling {
                runtime_us,
                period_us: Ok(1_000_000),
                deadline_period_min: Err(unknown()),
                deadline_period_max: Err(unknown()),
            };
            set.admits_all()
        };
        assert_eq!(reason(Ok(Some(950_000))), None);
        let all = reason(Ok(None)).unwrap();
        assert!(all.contains("sched_rt_runtime_us = -1"), "{all}");
        let untold = reason(Err(unknown())).unwrap();
        assert!(untold.contains("no such file"), "{untold}");
    }
}
