//! The judgements: what each group of facts means for predictable execution.

use std::fmt;

use laxity_model::Span;
use laxity_model::analysis::multiprocessor::KernelLimits;
use laxity_model::enforce::ranks::OCCUPANT;

use super::cause::Diagnosis;
use super::explain::{deadline_right, fifo, group_runtime, group_share, lock_memory, time_limit};
use super::machine::{
    CAP_IPC_LOCK, CAP_SYS_NICE, Fact, Machine, Preemption, RealTimeGroup, Source, Unknown,
    usual_limits,
};
use super::outranking::outranking;
use super::{HIGHEST_PRIORITY, network};
use crate::os::idle::LIGHT_SLEEP_US;

/// How good a thing is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, with less predictability.
    Limited,
    /// Does not work.
    Missing,
    /// Cannot be told.
    Unknown,
}

impl Status {
    /// `ok`, `limited`, `missing`, `unknown`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One judgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What was looked at: a stable name, for programs too.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// Why; what was seen.
    pub cause: String,
    /// A command or setting that mends it; `None` where nothing needs mending, or nothing can.
    pub remedy: Option<String>,
}

/// How good a thing is, why, and what mends it: a finding still without a name.
pub(super) struct Judgement(Status, String, Option<String>);

/// A question about the machine; no answer where a fact is not known.
type Check = fn(&Machine) -> Fact<Judgement>;

pub(super) fn ok(cause: impl Into<String>) -> Fact<Judgement> {
    Ok(Judgement(Status::Ok, cause.into(), None))
}

pub(super) fn limited(cause: impl Into<String>, remedy: impl Into<String>) -> Fact<Judgement> {
    let remedy = Some(remedy.into());
    Ok(Judgement(Status::Limited, cause.into(), remedy))
}

fn missing(diagnosis: Diagnosis) -> Fact<Judgement> {
    let remedy = Some(diagnosis.remedy);
    Ok(Judgement(Status::Missing, diagnosis.what, remedy))
}

/// Every check, in the order of the questions a user has: may I, does it hold, what disturbs.
pub fn diagnose(machine: &Machine) -> Vec<Finding> {
    let checks: [(&'static str, Check); 24] = [
        ("fifo", check_fifo),
        ("deadline", check_deadline),
        ("rt-group", check_group),
        ("memory-lock", check_memory_lock),
        ("rt-time-limit", check_time_limit),
        ("affinity", check_affinity),
        ("rt-throttling", check_throttling),
        ("servers", check_servers),
        ("deadline-bandwidth", check_bandwidth),
        ("deadline-granularity", check_granularity),
        ("timers", check_timers),
        ("clock-source", check_clock_source),
        ("preemption", check_preemption),
        ("slice-extension", check_slice_extension),
        ("governor", check_governor),
        ("dma-latency", check_dma_latency),
        ("isolation", check_isolation),
        ("interrupts", check_interrupts),
        ("steal", check_steal),
        ("outranking", check_outranking),
        ("packet-sockets", network::check_packet),
        ("xdp", network::check_xdp),
        ("tap", network::check_tap),
        ("unfinished-packets", network::check_unfinished),
    ];
    let finding = |(name, check): (&'static str, Check)| {
        let Judgement(status, cause, remedy) =
            check(machine).unwrap_or_else(|Unknown(why)| Judgement(Status::Unknown, why, None));
        Finding {
            name,
            status,
            cause,
            remedy,
        }
    };
    checks.into_iter().map(finding).collect()
}

fn check_fifo(machine: &Machine) -> Fact<Judgement> {
    let rights = &machine.rights;
    if let Some(diagnosis) = fifo(HIGHEST_PRIORITY, rights) {
        return missing(diagnosis);
    }
    rights.capabilities.as_ref()?;
    match (rights.has(CAP_SYS_NICE), rights.rtprio) {
        (Some(false), Some(limit)) => ok(format!("FIFO 1 to 99, by RLIMIT_RTPRIO = {limit}")),
        (Some(false), None) => ok("FIFO 1 to 99, by RLIMIT_RTPRIO = unlimited"),
        _ => ok("FIFO 1 to 99, by CAP_SYS_NICE"),
    }
}

fn check_deadline(machine: &Machine) -> Fact<Judgement> {
    if let Some(diagnosis) = deadline_right(machine) {
        return missing(diagnosis);
    }
    machine.rights.capabilities.as_ref()?;
    // The right is there; what hides the root domain hides whether the affinity stands against it.
    machine.own_root_domain()?;
    ok("may use SCHED_DEADLINE")
}

fn check_group(machine: &Machine) -> Fact<Judgement> {
    let group = machine.rights.group.as_ref()?;
    if let Some(diagnosis) = group_runtime(group, None) {
        return missing(diagnosis);
    }
    match group {
        RealTimeGroup::NotLimited => ok("control groups do not limit real-time threads"),
        RealTimeGroup::Root => ok("in the root group, limited only as the machine is"),
        _ => match group_share(group, &machine.throttling, None)? {
            Some(Diagnosis { what, remedy, .. }) => limited(what, remedy),
            None => ok("the group's real-time threads are limited only as the machine's are"),
        },
    }
}

fn check_memory_lock(machine: &Machine) -> Fact<Judgement> {
    let rights = &machine.rights;
    if let Some(diagnosis) = lock_memory(rights) {
        return missing(diagnosis);
    }
    match (rights.has(CAP_IPC_LOCK), rights.memlock_bytes) {
        (Some(true), _) => ok("any amount, by CAP_IPC_LOCK"),
        (_, None) => ok("any amount, by RLIMIT_MEMLOCK"),
        (_, Some(bytes)) => limited(
            format!(
                "RLIMIT_MEMLOCK is {} KiB: enough now, maybe not with buffers",
                bytes / 1024
            ),
            "`ulimit -l unlimited` as root, or `@realtime - memlock unlimited` in /etc/security/limits.conf",
        ),
    }
}

fn check_time_limit(machine: &Machine) -> Fact<Judgement> {
    match time_limit(&machine.rights) {
        Some(Diagnosis { what, remedy, .. }) => limited(what, remedy),
        None => ok("RLIMIT_RTTIME is unlimited"),
    }
}

fn check_affinity(machine: &Machine) -> Fact<Judgement> {
    let affinity = machine.processors.affinity.as_ref()?;
    let online = machine.processors.online.as_ref()?;
    if online.is_subset(affinity) {
        return ok(format!("may run on all processors, {online}"));
    }
    let own = std::process::id();
    limited(
        format!("kept to the processors {affinity} of {online}"),
        format!("`taskset -pc {online} {own}`, or widen the cpuset"),
    )
}

/// The usual limit on real-time work, which leaves 5 % to everything else.
const USUAL_LIMIT: &str = "as root `sysctl kernel.sched_rt_runtime_us=950000`";

fn check_throttling(machine: &Machine) -> Fact<Judgement> {
    let period_us = *machine.throttling.period_us.as_ref()?;
    let Some(runtime_us) = *machine.throttling.runtime_us.as_ref()? else {
        let version = machine.kernel.version.as_ref().ok().copied();
        // Measured on Linux 6.18: an ordinary thread beside a FIFO spinner has 4 % of the processor, with the limit and without.
        let others = if usual_limits(version).servers.is_zero() {
            "stops its processor for good"
        } else {
            "stops for good all that rank below it on its processor, but for some 5 % that the kernel keeps for ordinary threads"
        };
        let cause = format!("real-time work is not limited: a runaway FIFO thread {others}");
        return limited(cause, USUAL_LIMIT);
    };
    let cause = format!("real-time work gets {runtime_us} of every {period_us} us");
    let usual = u128::from(period_us) * 95 / 100;
    if u128::from(runtime_us) >= usual {
        return ok(cause);
    }
    let remedy = format!("as root `sysctl kernel.sched_rt_runtime_us={usual}`");
    limited(cause, remedy)
}

fn check_servers(machine: &Machine) -> Fact<Judgement> {
    let servers = machine.servers.as_ref()?;
    let from = match servers.from {
        Source::Read => "",
        Source::KernelDefault => " (by this kernel version's default)",
    };
    let cause = format!(
        "of each processor {:.3} is kept for ordinary threads and {:.3} for sched_ext{from}: real-time work that leaves so much is not interrupted for them",
        servers.fair, servers.ext
    );
    if servers.share() <= KernelLimits::WITH_FAIR_SERVER.servers {
        return ok(cause);
    }
    limited(
        cause,
        "as root, where no scheduler of sched_ext is used: `for f in /sys/kernel/debug/sched/ext_server/cpu*/runtime; do echo 0 > $f; done`",
    )
}

fn check_bandwidth(machine: &Machine) -> Fact<Judgement> {
    let Some(domains) = machine.bandwidth.as_ref()? else {
        let cause = format!("{}: none is enforced", KernelLimits::UNLIMITED);
        return limited(cause, USUAL_LIMIT);
    };
    let described: Vec<String> = domains.iter().map(ToString::to_string).collect();
    let described = described.join("; ");
    if let Some(why) = machine.unseen() {
        let cause = format!("{described}, of those that are seen: {why}");
        let hidden = machine.hidden.as_ref();
        let remedy = hidden.map(|hidden| hidden.remedy().to_owned());
        return Ok(Judgement(Status::Unknown, cause, remedy));
    }
    if domains.iter().all(|domain| domain.used.is_zero()) {
        return ok(described);
    }
    limited(
        described,
        "end the deadline threads that hold it: `ps -eLo pid,tid,cls,comm | grep DLN`",
    )
}

fn check_granularity(machine: &Machine) -> Fact<Judgement> {
    const REMEDY: &str = "as root, with debugfs mounted: `echo HRTICK_DL > /sys/kernel/debug/sched/features`; or reserve by `slots`";
    let tick = machine.kernel.tick;
    match &machine.kernel.hrtick {
        Ok(true) => ok("deadline budgets end by a timer (HRTICK_DL)"),
        Ok(false) => limited(
            format!(
                "deadline budgets end at the tick of {tick} (NO_HRTICK_DL): shorter ones are overrun and made up for by long gaps"
            ),
            REMEDY,
        ),
        Err(Unknown(reason)) => Ok(Judgement(
            Status::Unknown,
            format!("deadline budgets end by a timer or at the tick of {tick}: {reason}"),
            Some(REMEDY.to_owned()),
        )),
    }
}

fn check_timers(machine: &Machine) -> Fact<Judgement> {
    let resolution = machine.kernel.timer_resolution;
    if resolution <= Span::from_micros(1) {
        return ok(format!("timers have a resolution of {resolution}"));
    }
    limited(
        format!("timers end at a tick of {resolution}: no high-resolution timers"),
        "boot without `highres=off` and `nohz=off`, with a clock source that allows them",
    )
}

fn check_clock_source(machine: &Machine) -> Fact<Judgement> {
    let source = machine.kernel.clock_source.as_ref()?;
    match source.as_str() {
        "tsc" | "arch_sys_counter" | "timebase" | "riscv_clocksource" => {
            ok(format!("{source}: time stamps by the processor's counter"))
        }
        "kvm-clock" | "hyperv_clocksource_tsc_page" => limited(
            format!("{source}: time stamps take a call of the vDSO"),
            "if the host's tsc is stable: `echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource` as root",
        ),
        _ => limited(
            format!("{source}: each time stamp takes a system call"),
            "see `dmesg | grep -i clocksource` for why a better one was given up; boot with `tsc=reliable` only if the hardware is",
        ),
    }
}

fn check_preemption(machine: &Machine) -> Fact<Judgement> {
    match machine.kernel.preemption.as_ref()? {
        model @ (Preemption::RealTime | Preemption::Full) => {
            ok(format!("kernel preemption: {model}"))
        }
        Preemption::Lazy => ok("kernel preemption: lazy, at once for real-time threads"),
        model @ (Preemption::None | Preemption::Voluntary) => limited(
            format!(
                "kernel preemption: {model}; a system call of anyone may delay a real-time thread by milliseconds"
            ),
            "boot with `preempt=full`, or use a PREEMPT_RT kernel",
        ),
    }
}

fn check_slice_extension(machine: &Machine) -> Fact<Judgement> {
    match machine.kernel.slice_extension.clone()? {
        None => ok("no thread can put off the end of its turn (no time slice extension)"),
        Some(longest) => limited(
            format!(
                "any thread may put off a real-time thread by up to {longest} (time slice extension): upcalls are admitted with that"
            ),
            "boot with `rseq_slice_ext=off`; as root `echo 5000 > /sys/kernel/debug/rseq/slice_ext_nsec` is the least otherwise",
        ),
    }
}

fn check_governor(machine: &Machine) -> Fact<Judgement> {
    let governors = machine.processors.governors.as_ref()?;
    let slow = governors.iter().filter(|(_, name)| name != "performance");
    let slow: Vec<String> = slow.map(|(cpu, name)| format!("{cpu} {name}")).collect();
    if governors.is_empty() {
        return ok("the kernel controls no frequency here (fixed, or the host's)");
    }
    if slow.is_empty() {
        return ok("performance on every processor");
    }
    limited(
        format!("frequencies vary with load: {}", slow.join(", ")),
        "as root `echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`",
    )
}

fn check_dma_latency(machine: &Machine) -> Fact<Judgement> {
    let latency = machine.dma_latency.as_ref()?;
    match latency.asked_us {
        _ if latency.writable => ok("deep sleep states are held off during a run"),
        Ok(Some(0..=LIGHT_SLEEP_US)) => ok("deep sleep states are held off by somebody"),
        _ => limited(
            "deep sleep states may delay wake-ups",
            "as root `chmod a+rw /dev/cpu_dma_latency`",
        ),
    }
}

fn check_isolation(machine: &Machine) -> Fact<Judgement> {
    let isolated = machine.processors.isolated.as_ref()?;
    let tickless = machine.processors.nohz_full.as_ref()?;
    let ticks = if tickless.is_empty() {
        "the tick runs on all".to_owned()
    } else {
        format!("no tick on {tickless} while one thread runs")
    };
    ok(if isolated.is_empty() {
        format!("no processor is isolated, {ticks}: ordinary work shares them")
    } else {
        format!("isolated: {isolated}; {ticks}")
    })
}

fn check_interrupts(machine: &Machine) -> Fact<Judgement> {
    let interrupts = machine.processors.interrupts.as_ref()?;
    let online = machine.processors.online.as_ref()?;
    let all = interrupts.len();
    let everywhere = interrupts
        .iter()
        .filter(|affinity| online.is_subset(affinity));
    match everywhere.count() {
        1.. if online.len() < 2 => ok(format!("{all} interrupts, and one processor")),
        0 => ok(format!("{all} interrupts, none of them everywhere")),
        everywhere => limited(
            format!("{everywhere} of {all} interrupts may be handled on any processor"),
            "stop irqbalance, and as root `echo CPUS > /proc/irq/N/smp_affinity_list` to keep them off the reserved processors",
        ),
    }
}

fn check_steal(machine: &Machine) -> Fact<Judgement> {
    let steal = machine.processors.steal.as_ref()?.iter();
    let total: Span = steal.map(|(_, taken)| *taken).sum();
    if total.is_zero() {
        return ok("the hypervisor reports no time taken (it may stall without)");
    }
    limited(
        format!("the hypervisor took {total} since start"),
        "pin the virtual processors on the host, and give them to nobody else",
    )
}

fn check_outranking(machine: &Machine) -> Fact<Judgement> {
    let online = machine.processors.online.as_ref()?;
    let found = outranking(&machine.threads, machine.hidden.as_ref(), online);
    let names: Vec<&str> = found.seen.iter().map(|one| one.name.as_str()).collect();
    let named = format!(
        "ranked above a slot, if ever they run: {}",
        names.join(", ")
    );
    let lower = format!(
        "lower it below {OCCUPANT}: `chrt -f -p 50 TID` as root; another laxity ends by itself"
    );
    let remedy = machine
        .hidden
        .as_ref()
        .map(|hidden| hidden.remedy().to_owned());
    match (found.seen.is_empty(), found.unseen) {
        (true, None) => ok("no real-time thread of others ranks above a slot"),
        (false, None) => limited(named, lower),
        (false, Some(why)) => limited(
            format!("{named}; cannot see who else outranks it: {why}"),
            lower,
        ),
        (true, Some(why)) => Ok(Judgement(
            Status::Unknown,
            format!("cannot see who outranks a slot, so none is enforced: {why}"),
            remedy,
        )),
    }
}
