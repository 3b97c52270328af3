//! Reading the facts from `/proc`, `/sys` and the kernel.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use laxity_model::analysis::multiprocessor::Bandwidth;
use laxity_model::{Service, Span};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use rustix::time::ClockId;

use super::machine::{
    CAP_SYS_PTRACE, DmaLatency, DomainBandwidth, Fact, Kernel, Machine, Network, ProcessorFacts,
    RealTimeGroup, Rights, Servers, Source, Throttling, Unknown, held_on, usual_servers,
};
use super::{groups, outranking, parse};
use crate::os::cgroup::{self, Mount};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::{number, read, read_as};
use crate::os::idle::LATENCY_FILE;
use crate::os::limits::{self, span_of_micros};
use crate::os::proc::{self, RealTimeThread};
use crate::os::rseq;
use crate::os::sched::{self, Attributes, Tid};

impl Machine {
    /// Reads every fact. Takes a system call a thread of the machine and some hundred small files: milliseconds; no lasting effect.
    #[must_use]
    pub fn probe() -> Self {
        let config = build_config();
        let mounts = read("/proc/thread-self/mountinfo").map(|text| cgroup::mounts(&text));
        let kernel = kernel(config.as_deref().ok());
        let processors = processors(&mounts);
        let throttling = limits::throttling();
        let rights = rights(config.as_deref(), &mounts);
        let threads = proc::real_time_threads();
        let servers = servers(config.as_deref().ok(), &kernel, &processors);
        Self {
            bandwidth: bandwidth(&servers, &processors, &throttling, &threads),
            servers: servers.and_then(|all| {
                let most = all.into_iter().map(|(_, servers)| servers);
                most.max_by_key(Servers::share)
                    .ok_or_else(|| Unknown("no processor runs".to_owned()))
            }),
            hidden: outranking::hidden(&mounts, || rights.has(CAP_SYS_PTRACE)),
            dma_latency: dma_latency(),
            network: Network::probe(),
            kernel,
            processors,
            throttling,
            rights,
            threads,
        }
    }
}

impl Rights {
    /// Reads what the calling thread may do, and nothing else.
    #[must_use]
    pub fn probe() -> Self {
        let mounts = read("/proc/thread-self/mountinfo").map(|text| cgroup::mounts(&text));
        rights(build_config().as_deref(), &mounts)
    }
}

/// The kernel's build configuration, from where distributions keep it.
fn build_config() -> Fact<String> {
    const LONGEST: u64 = 8 << 20;
    if let Ok(packed) = File::open("/proc/config.gz") {
        let mut text = String::new();
        let mut unpacked = flate2::read::GzDecoder::new(packed).take(LONGEST);
        if unpacked.read_to_string(&mut text).is_ok() {
            return Ok(text);
        }
    }
    let release = uname().release().to_string_lossy().into_owned();
    read(format!("/boot/config-{release}"))
        .or_else(|_| read(format!("/lib/modules/{release}/config")))
        .map_err(|_| {
            Unknown(format!(
                "the kernel's configuration is in none of /proc/config.gz, /boot/config-{release}, /lib/modules/{release}/config"
            ))
        })
}

fn kernel(config: Option<&str>) -> Kernel {
    let uname = uname();
    let release = uname.release().to_string_lossy().into_owned();
    let preempt_file = read("/sys/kernel/debug/sched/preempt").ok();
    let command_line = read("/proc/cmdline").ok();
    let preemption = parse::preemption(
        &uname.version().to_string_lossy(),
        preempt_file.as_deref(),
        command_line.as_deref(),
        config,
    );
    Kernel {
        version: proc::kernel_version(&release)
            .ok_or_else(|| Unknown(format!("the release {release:?} has no number"))),
        release,
        preemption: preemption.ok_or_else(|| {
            Unknown("neither the version line, debugfs nor a build configuration tells".to_owned())
        }),
        tick: clock::tick(),
        timer_resolution: clock::resolution(ClockId::Monotonic),
        hrtick: hrtick(),
        slice_extension: slice_extension(),
        clock_source: read_as(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            |text| Some(text.to_owned()),
        ),
    }
}

pub(super) fn hrtick() -> Fact<bool> {
    read_as("/sys/kernel/debug/sched/features", parse::hrtick).or_else(|reason| {
        read_as("/sys/kernel/debug/sched_features", parse::hrtick).map_err(|_| reason)
    })
}

const CPU_DIRECTORY: &str = "/sys/devices/system/cpu";

/// A list of processors that kernels without the feature do not have.
fn optional_list(name: &str) -> Fact<CpuSet> {
    let path = Path::new(CPU_DIRECTORY).join(name);
    match path.try_exists() {
        Ok(false) => Ok(CpuSet::default()),
        _ => read_as(path, CpuSet::parse),
    }
}

/// The processors that run.
pub(crate) fn online() -> Fact<CpuSet> {
    read_as(format!("{CPU_DIRECTORY}/online"), CpuSet::parse)
}

fn processors(mounts: &Fact<Vec<Mount>>) -> ProcessorFacts {
    let online = online();
    let isolated = optional_list("isolated");
    let root_domains = match (&online, &isolated, mounts) {
        (Ok(online), Ok(isolated), Ok(mounts)) => groups::root_domains(online, isolated, mounts),
        (Err(reason), _, _) | (_, Err(reason), _) | (_, _, Err(reason)) => Err(reason.clone()),
    };
    ProcessorFacts {
        nohz_full: optional_list("nohz_full"),
        affinity: sched::affinity(Tid::current()).map_err(|error| Unknown(error.to_string())),
        governors: online.clone().and_then(|online| governors(&online)),
        steal: proc::steal_of_each(),
        interrupts: interrupts(),
        root_domains,
        isolated,
        online,
    }
}

/// Where the kernel controls a frequency; the others have no such file.
fn governors(online: &CpuSet) -> Fact<Vec<(usize, String)>> {
    let governor = |cpu| -> Fact<Option<(usize, String)>> {
        let path = format!("{CPU_DIRECTORY}/cpu{cpu}/cpufreq/scaling_governor");
        let found = proc::unless_gone(&path, read(&path))?;
        Ok(found.map(|name| (cpu, name.trim().to_owned())))
    };
    let all = online.iter().map(governor);
    all.filter_map(Result::transpose).collect()
}

fn interrupts() -> Fact<Vec<CpuSet>> {
    let mut found = Vec::new();
    // Numbers without a device are never raised.
    for number in parse::interrupts(&read("/proc/interrupts")?) {
        // An interrupt may go away between the listing and the reading.
        let directory = format!("/proc/irq/{number}");
        let affinity = read_as(format!("{directory}/smp_affinity_list"), CpuSet::parse);
        found.extend(proc::unless_gone(directory, affinity)?);
    }
    Ok(found)
}

const STATUS: &str = "/proc/thread-self/status";

/// What the thread's status says under a name.
fn of<T>(status: &Fact<String>, name: &str, parse: fn(&str, &str) -> Option<T>) -> Fact<T> {
    let value = parse(status.as_ref()?, name);
    value.ok_or_else(|| Unknown(format!("{STATUS} has no {name}")))
}

fn rights(config: Result<&str, &Unknown>, mounts: &Fact<Vec<Mount>>) -> Rights {
    let status = read(STATUS);
    let is_filtered = |status: &str, name: &str| Some(parse::status_field(status, name)? != "0");
    let own = Attributes::of(Tid::current()).map_err(|error| Unknown(error.to_string()));
    let limit = |resource| getrlimit(resource).current;
    Rights {
        capabilities: of(&status, "CapEff", parse::status_capabilities),
        initial_user_namespace: read_as("/proc/thread-self/uid_map", |text| {
            Some(parse::is_initial_user_namespace(text))
        }),
        rtprio: limit(Resource::Rtprio),
        nice: limit(Resource::Nice),
        rttime_us: limit(Resource::Rttime),
        memlock_bytes: limit(Resource::Memlock),
        memory_bytes: of(&status, "VmSize", parse::status_bytes),
        filtered: of(&status, "Seccomp", is_filtered),
        reset_on_fork: own
            .as_ref()
            .map(Attributes::resets_on_fork)
            .map_err(Unknown::from),
        policy: own.map(|own| own.policy()),
        group: mounts.as_ref().map_err(Unknown::from).and_then(|mounts| {
            let is_limiting = || groups::is_limiting(config, &read("/proc/cmdline")?);
            groups::real_time_group("thread-self", is_limiting, mounts)
        }),
    }
}

/// The real-time group that another process or thread is in, as far as it can be seen from here.
pub(super) fn real_time_group_of(process: u32) -> Fact<RealTimeGroup> {
    let mounts = cgroup::mounts(&read("/proc/thread-self/mountinfo")?);
    groups::real_time_group(&process.to_string(), limits_version_2, &mounts)
}

/// Whether the kernel limits the groups of version 2. It does so as long as it runs or never, and to unpack what tells takes milliseconds.
fn limits_version_2() -> Fact<bool> {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let config = build_config();
    let is_limiting = groups::is_limiting(config.as_deref(), &read("/proc/cmdline")?)?;
    Ok(*KNOWN.get_or_init(|| is_limiting))
}

/// What a server of a processor has (`kernel/sched/debug.c` of Linux 6.12 and 7.0).
fn server(name: &str, cpu: usize) -> Option<Bandwidth> {
    let directory = format!("/sys/kernel/debug/sched/{name}/cpu{cpu}");
    let nanos = |name: &str| number(format!("{directory}/{name}")).ok();
    let (runtime, period) = (nanos("runtime")?, nanos("period")?);
    Some(Bandwidth::of(
        Service::from_nanos(runtime),
        Span::from_nanos(period),
    ))
}

/// The servers of a processor: as they are set, or where nobody may read that, as the kernel comes.
fn servers_of(cpu: usize, usual: Servers) -> Servers {
    match server("fair_server", cpu) {
        Some(fair) => Servers {
            fair,
            // Who may read the one would see the other.
            ext: server("ext_server", cpu).unwrap_or(Bandwidth::ZERO),
            from: Source::Read,
        },
        None => usual,
    }
}

/// The servers of all processors that run.
fn servers(
    config: Option<&str>,
    kernel: &Kernel,
    processors: &ProcessorFacts,
) -> Fact<Vec<(usize, Servers)>> {
    let version = *kernel.version.as_ref()?;
    let is_built = |config| parse::build_option(config, "SCHED_CLASS_EXT") == Some("y");
    let usual = usual_servers(version, config.map(is_built));
    let online = processors.online.as_ref()?;
    Ok(online
        .iter()
        .map(|cpu| (cpu, servers_of(cpu, usual)))
        .collect())
}

/// How long a thread may extend its slice.
pub(super) fn slice_extension() -> Fact<Option<Span>> {
    parse::slice_extension(
        rseq::ask_slice_extension(),
        read("/proc/cmdline").ok().as_deref(),
        number("/sys/kernel/debug/rseq/slice_ext_nsec").ok(),
    )
}

fn bandwidth(
    servers: &Fact<Vec<(usize, Servers)>>,
    processors: &ProcessorFacts,
    throttling: &Throttling,
    threads: &Fact<Vec<RealTimeThread>>,
) -> Fact<Option<Vec<DomainBandwidth>>> {
    let Some(runtime_us) = throttling.runtime_us.clone()? else {
        return Ok(None);
    };
    let servers = servers.as_ref()?;
    let runtime = span_of_micros(runtime_us).as_full_service();
    let period = span_of_micros(throttling.period_us.clone()?);
    if period.is_zero() {
        return Err(Unknown("sched_rt_period_us is 0".to_owned()));
    }
    let limit = Bandwidth::of(runtime, period);
    let domains = processors.root_domains.as_ref()?;
    let threads = threads.as_ref()?;
    let of = |domain| domain_bandwidth(domain, limit, servers, threads);
    Ok(Some(domains.iter().map(of).collect()))
}

fn domain_bandwidth(
    domain: &CpuSet,
    limit: Bandwidth,
    servers: &[(usize, Servers)],
    threads: &[RealTimeThread],
) -> DomainBandwidth {
    // Absent where all processors are alike: each then has the full capacity.
    let capacity = |cpu| number(format!("{CPU_DIRECTORY}/cpu{cpu}/cpu_capacity")).unwrap_or(1024);
    let total = limit.of_capacity(domain.iter().map(capacity).sum());
    let here = servers.iter().filter(|(cpu, _)| domain.contains(*cpu));
    let servers: Vec<Servers> = here.map(|(_, servers)| *servers).collect();
    let fair_servers = servers.iter().map(Servers::share).sum();
    let all_read = servers.iter().all(|servers| servers.from == Source::Read);
    DomainBandwidth {
        processors: domain.clone(),
        admissible: total.saturating_sub(fair_servers),
        fair_servers,
        fair_servers_from: if all_read {
            Source::Read
        } else {
            Source::KernelDefault
        },
        used: held_on(Some(domain), threads),
    }
}

fn dma_latency() -> Fact<DmaLatency> {
    /// What the file reads as when nobody has asked (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
    const NOBODY_ASKED_US: i32 = 2_000_000_000;
    let path = Path::new(LATENCY_FILE);
    // Its owner alone may read it as a rule, and that it is there is worth knowing without.
    fs::metadata(path).map_err(|error| Unknown::cannot_read(path, &error))?;
    let mut value = [0; 4];
    let asked_us = File::open(path)
        .and_then(|mut file| file.read_exact(&mut value))
        .map(|()| i32::from_ne_bytes(value))
        .map(|asked| {
            u32::try_from(asked)
                .ok()
                .filter(|_| asked < NOBODY_ASKED_US)
        })
        .map_err(|error| Unknown::cannot_read(path, &error));
    Ok(DmaLatency {
        asked_us,
        writable: access(path, Access::WRITE_OK).is_ok(),
    })
}
