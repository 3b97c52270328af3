//! The judgements: what each group of facts means for predictable execution.

use std::fmt;

use laxity_model::Span;
use laxity_model::enforce::ranks::OCCUPANT;

use super::HIGHEST_PRIORITY;
use super::cause::Diagnosis;
use super::explain::{deadline_right, fifo, lock_memory, time_limit};
use super::machine::{
    CAP_IPC_LOCK, CAP_SYS_NICE, Fact, Limit, Machine, Preemption, RealTimeGroup, Source, Unknown,
};

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
    #[must_use]
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

/// A finding still without a name.
struct Judgement(Status, String, Option<String>);

/// A question about the machine.
type Check = fn(&Machine) -> Judgement;

fn ok(cause: impl Into<String>) -> Judgement {
    Judgement(Status::Ok, cause.into(), None)
}

fn limited(cause: impl Into<String>, remedy: impl Into<String>) -> Judgement {
    Judgement(Status::Limited, cause.into(), Some(remedy.into()))
}

fn missing(diagnosis: Diagnosis) -> Judgement {
    Judgement(Status::Missing, diagnosis.what, Some(diagnosis.remedy))
}

fn unknown(Unknown(reason): &Unknown) -> Judgement {
    Judgement(Status::Unknown, reason.clone(), None)
}

/// Judges a fact, or passes on why there is none.
fn judge<T>(fact: &Fact<T>, judge: impl FnOnce(&T) -> Judgement) -> Judgement {
    match fact {
        Ok(fact) => judge(fact),
        Err(reason) => unknown(reason),
    }
}

/// Every check, in the order of the questions a user has: may I, does it hold, what disturbs.
#[must_use]
pub fn diagnose(machine: &Machine) -> Vec<Finding> {
    let checks: [(&'static str, Check); 18] = [
        ("fifo", check_fifo),
        ("deadline", check_deadline),
        ("rt-group", check_group),
        ("memory-lock", check_memory_lock),
        ("rt-time-limit", check_time_limit),
        ("affinity", check_affinity),
        ("rt-throttling", check_throttling),
        ("deadline-bandwidth", check_bandwidth),
        ("deadline-granularity", check_granularity),
        ("timers", check_timers),
        ("clock-source", check_clock_source),
        ("preemption", check_preemption),
        ("governor", check_governor),
        ("dma-latency", check_dma_latency),
        ("isolation", check_isolation),
        ("interrupts", check_interrupts),
        ("steal", check_steal),
        ("outranking", check_outranking),
    ];
    checks
        .into_iter()
        .map(|(name, check)| {
            let Judgement(status, cause, remedy) = check(machine);
            Finding {
                name,
                status,
                cause,
                remedy,
            }
        })
        .collect()
}

fn check_fifo(machine: &Machine) -> Judgement {
    let rights = &machine.rights;
    if let Some(refusal) = fifo(HIGHEST_PRIORITY, rights) {
        return missing(refusal.diagnosis);
    }
    match rights.has(CAP_SYS_NICE) {
        Some(true) => ok("FIFO 1 to 99, by CAP_SYS_NICE"),
        Some(false) => judge(&rights.rtprio, |limit| {
            ok(format!("FIFO 1 to 99, by RLIMIT_RTPRIO = {limit}"))
        }),
        None => judge(&rights.capabilities, |_| ok("FIFO 1 to 99")),
    }
}

fn check_deadline(machine: &Machine) -> Judgement {
    if let Some(diagnosis) = deadline_right(machine) {
        return missing(diagnosis);
    }
    judge(&machine.rights.capabilities, |_| {
        // The right is there; what hides the root domain hides whether the affinity stands against it.
        match machine.own_root_domain() {
            Ok(_) => ok("may use SCHED_DEADLINE"),
            Err(reason) => unknown(&reason),
        }
    })
}

fn check_group(machine: &Machine) -> Judgement {
    judge(&machine.rights.group, |group| match group {
        RealTimeGroup::NotLimited => ok("control groups do not limit real-time threads"),
        RealTimeGroup::Root => ok("in the root group, limited only as the machine is"),
        RealTimeGroup::V1 {
            directory,
            runtime_us: Some(runtime_us @ 1..),
        } => limited(
            format!("the group {directory} has {runtime_us} us of real-time runtime a period"),
            format!("`echo 950000 > {directory}/cpu.rt_runtime_us` (its parents first)"),
        ),
        RealTimeGroup::V1 {
            runtime_us: None, ..
        } => ok("the group's real-time runtime is not limited"),
        RealTimeGroup::V1 { .. } | RealTimeGroup::V2 { .. } => {
            match super::explain::group_runtime(&machine.rights) {
                Some(diagnosis) => missing(diagnosis),
                None => ok("the group has real-time runtime"),
            }
        }
    })
}

fn check_memory_lock(machine: &Machine) -> Judgement {
    let rights = &machine.rights;
    if let Some(refusal) = lock_memory(rights) {
        return missing(refusal.diagnosis);
    }
    match rights.has(CAP_IPC_LOCK) {
        Some(true) => ok("any amount, by CAP_IPC_LOCK"),
        _ => judge(&rights.memlock_bytes, |limit| match limit {
            Limit::Unlimited => ok("any amount, by RLIMIT_MEMLOCK"),
            Limit::At(bytes) => limited(
                format!(
                    "RLIMIT_MEMLOCK is {} KiB: enough now, maybe not with buffers",
                    bytes / 1024
                ),
                "`ulimit -l unlimited` as root, or `@realtime - memlock unlimited` in /etc/security/limits.conf",
            ),
        }),
    }
}

fn check_time_limit(machine: &Machine) -> Judgement {
    match time_limit(&machine.rights) {
        Some(Diagnosis { what, remedy, .. }) => limited(what, remedy),
        None => judge(&machine.rights.rttime_us, |_| {
            ok("RLIMIT_RTTIME is unlimited")
        }),
    }
}

fn check_affinity(machine: &Machine) -> Judgement {
    judge(&machine.processors.affinity, |affinity| {
        judge(&machine.processors.online, |online| {
            if online.is_subset(affinity) {
                ok(format!("may run on all processors, {online}"))
            } else {
                limited(
                    format!("kept to the processors {affinity} of {online}"),
                    format!(
                        "`taskset -pc {online} {}`, or widen the cpuset",
                        std::process::id()
                    ),
                )
            }
        })
    })
}

fn check_throttling(machine: &Machine) -> Judgement {
    let throttling = &machine.throttling;
    judge(&throttling.runtime_us, |runtime_us| {
        judge(&throttling.period_us, |&period_us| match *runtime_us {
            None => limited(
                "real-time work is not limited: a runaway FIFO thread stops its processor for good",
                "as root `sysctl kernel.sched_rt_runtime_us=950000`",
            ),
            Some(runtime_us) => {
                let cause = format!("real-time work gets {runtime_us} of every {period_us} us");
                if u128::from(runtime_us) * 100 >= u128::from(period_us) * 95 {
                    ok(cause)
                } else {
                    limited(
                        cause,
                        format!(
                            "as root `sysctl kernel.sched_rt_runtime_us={}`",
                            u128::from(period_us) * 95 / 100
                        ),
                    )
                }
            }
        })
    })
}

fn check_bandwidth(machine: &Machine) -> Judgement {
    let free_of = |domains: &Vec<super::machine::DomainBandwidth>| {
        let described: Vec<String> = domains
            .iter()
            .map(|domain| {
                let source = match domain.fair_servers_from {
                    Source::Read => "",
                    Source::KernelDefault => ", by this kernel version's default",
                };
                format!(
                    "processors {}: {:.3} of {:.3} free (after {:.3} for ordinary threads{source})",
                    domain.processors,
                    domain.free(),
                    domain.admissible,
                    domain.fair_servers
                )
            })
            .collect();
        let described = described.join("; ");
        if domains.iter().all(|domain| domain.used.is_zero()) {
            ok(described)
        } else {
            limited(
                described,
                "end the deadline threads that hold it: `ps -eLo pid,tid,cls,comm | grep DLN`",
            )
        }
    };
    judge(&machine.bandwidth, |bandwidth| match bandwidth {
        None => limited(
            "the kernel admits deadline threads without limit, so deadlines may be missed",
            "as root `sysctl kernel.sched_rt_runtime_us=950000`",
        ),
        Some(domains) => free_of(domains),
    })
}

fn check_granularity(machine: &Machine) -> Judgement {
    let tick = match &machine.kernel.tick {
        Ok(tick) => format!("the tick of {tick}"),
        Err(_) => "the tick".to_owned(),
    };
    const REMEDY: &str = "as root, with debugfs mounted: `echo HRTICK_DL > /sys/kernel/debug/sched/features`; or reserve by `slots`";
    match &machine.kernel.hrtick {
        Ok(hrtick) if hrtick.deadline => ok("deadline budgets end by a timer (HRTICK_DL)"),
        Ok(_) => limited(
            format!(
                "deadline budgets end at {tick} (NO_HRTICK_DL): shorter ones are overrun and made up for by long gaps"
            ),
            REMEDY,
        ),
        Err(Unknown(reason)) => Judgement(
            Status::Unknown,
            format!("deadline budgets end by a timer or at {tick}: {reason}"),
            Some(REMEDY.to_owned()),
        ),
    }
}

fn check_timers(machine: &Machine) -> Judgement {
    judge(&machine.kernel.timer_resolution, |&resolution| {
        if resolution <= Span::from_micros(1) {
            ok(format!("timers have a resolution of {resolution}"))
        } else {
            limited(
                format!("timers end at a tick of {resolution}: no high-resolution timers"),
                "boot without `highres=off` and `nohz=off`, with a clock source that allows them",
            )
        }
    })
}

fn check_clock_source(machine: &Machine) -> Judgement {
    judge(&machine.kernel.clock_source, |source| {
        match source.as_str() {
            "tsc" => ok("tsc: time stamps by the processor's counter"),
            "arch_sys_counter" | "timebase" | "riscv_clocksource" => {
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
    })
}

fn check_preemption(machine: &Machine) -> Judgement {
    judge(&machine.kernel.preemption, |model| match model {
        Preemption::RealTime | Preemption::Full => ok(format!("kernel preemption: {model}")),
        Preemption::Lazy => ok("kernel preemption: lazy, at once for real-time threads"),
        Preemption::None | Preemption::Voluntary => limited(
            format!(
                "kernel preemption: {model}; a system call of anyone may delay a real-time thread by milliseconds"
            ),
            "boot with `preempt=full`, or use a PREEMPT_RT kernel",
        ),
    })
}

fn check_governor(machine: &Machine) -> Judgement {
    judge(&machine.processors.governors, |governors| {
        let slow: Vec<String> = governors
            .iter()
            .filter(|(_, governor)| governor != "performance")
            .map(|(processor, governor)| format!("{processor} {governor}"))
            .collect();
        if governors.is_empty() {
            ok("the kernel controls no frequency here (fixed, or the host's)")
        } else if slow.is_empty() {
            ok("performance on every processor")
        } else {
            limited(
                format!("frequencies vary with load: {}", slow.join(", ")),
                "as root `echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`",
            )
        }
    })
}

fn check_dma_latency(machine: &Machine) -> Judgement {
    judge(&machine.dma_latency, |latency| match latency {
        latency if latency.writable => ok("deep sleep states can be held off during a run"),
        latency if matches!(latency.asked_us, Ok(Some(0..=10))) => {
            ok("deep sleep states are held off by somebody")
        }
        _ => limited(
            "deep sleep states may delay wake-ups",
            "as root `chmod a+rw /dev/cpu_dma_latency`",
        ),
    })
}

fn check_isolation(machine: &Machine) -> Judgement {
    judge(&machine.processors.isolated, |isolated| {
        judge(&machine.processors.nohz_full, |tickless| {
            let ticks = if tickless.is_empty() {
                "the tick runs on all".to_owned()
            } else {
                format!("no tick on {tickless} while one thread runs")
            };
            if isolated.is_empty() {
                ok(format!(
                    "no processor is isolated, {ticks}: ordinary work shares them"
                ))
            } else {
                ok(format!("isolated: {isolated}; {ticks}"))
            }
        })
    })
}

fn check_interrupts(machine: &Machine) -> Judgement {
    judge(&machine.processors.interrupts, |interrupts| {
        judge(&machine.processors.online, |online| {
            let everywhere = interrupts
                .iter()
                .filter(|interrupt| online.is_subset(&interrupt.affinity))
                .count();
            if everywhere == 0 || online.len() < 2 {
                return ok(format!(
                    "{} interrupts, none of them everywhere",
                    interrupts.len()
                ));
            }
            limited(
                format!(
                    "{everywhere} of {} interrupts may be handled on any processor",
                    interrupts.len()
                ),
                "stop irqbalance, and as root `echo CPUS > /proc/irq/N/smp_affinity_list` to keep them off the reserved processors",
            )
        })
    })
}

fn check_steal(machine: &Machine) -> Judgement {
    judge(&machine.processors.steal, |steal| {
        let total: Span = steal.iter().map(|(_, taken)| *taken).sum();
        if total.is_zero() {
            ok("the hypervisor reports no time taken (it may stall without)")
        } else {
            limited(
                format!("the hypervisor took {total} since start"),
                "pin the virtual processors on the host, and give them to nobody else",
            )
        }
    })
}

fn check_outranking(machine: &Machine) -> Judgement {
    let ours = [std::process::id()];
    judge(&machine.threads, |_| {
        judge(&machine.processors.online, |online| {
            let mut rivals: Vec<String> = online
                .iter()
                .flat_map(|cpu| machine.outranking(OCCUPANT - 1, cpu, &ours))
                .map(ToString::to_string)
                .collect();
            rivals.sort_unstable();
            rivals.dedup();
            if !rivals.is_empty() {
                return limited(
                    format!("not below a slot: {}", rivals.join("; ")),
                    format!("lower it below {OCCUPANT}: `chrt -f -p 50 TID` as root"),
                );
            }
            match machine.sees_all_processes {
                Ok(true) => ok("no real-time thread of others ranks above a slot"),
                Ok(false) => unknown(&Unknown(
                    "no such thread is seen, but other processes are hidden (PID namespace, or hidepid)".to_owned(),
                )),
                Err(ref reason) => unknown(reason),
            }
        })
    })
}
