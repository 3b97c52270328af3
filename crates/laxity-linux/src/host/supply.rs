//! What admission is told about this machine.

use std::num::NonZeroU16;

use laxity_model::admission::{DeadlineSupply, ProcessorSupply, SlotSupply, Supply};
use laxity_model::analysis::multiprocessor::{Bandwidth, KernelLimits};
use laxity_model::enforce::slots;
use laxity_model::{ProcessorId, Span};

use crate::doctor::machine::{DomainBandwidth, Servers, Throttling, held_on, usual_limits};
use crate::doctor::outranking::outranking;
use crate::doctor::{self, Machine, Operation};
use crate::enforce::deadline;
use crate::host::LiveConfig;
use crate::os::cpuset::CpuSet;
use crate::run::drivers;

/// What this machine can enforce on the processors of a configuration, as it is now. Costs a probe of the machine (some milliseconds).
pub(crate) fn supply(host: String, config: &LiveConfig) -> Supply {
    // Until then the kernel counts as taken what this process has given back.
    deadline::wait_for_returns();
    let machine = Machine::as_reserving();
    let processors = config
        .processors
        .iter()
        .enumerate()
        .map(|(index, cpu)| ProcessorSupply {
            processor: ProcessorId(index as u16),
            number: *cpu,
            slots: slot_supply(),
            outranking: outranking(
                &machine.threads,
                machine.hidden.as_ref(),
                &CpuSet::single(*cpu),
            ),
            drivers: drivers::on(*cpu),
        });
    Supply {
        host,
        processors: processors.collect(),
        deadline: by_deadline(&machine),
        timer_grain: Span::ZERO,
        linux_classes: Ok(()),
    }
}

fn slot_supply() -> Result<SlotSupply, String> {
    match doctor::can_give_slots() {
        Err(why) => Err(format!("{}; {}", why.what, why.remedy)),
        Ok(()) => Ok(slots::SUPPLY),
    }
}

fn by_deadline(machine: &Machine) -> Result<DeadlineSupply, String> {
    if let Some(why) = doctor::foresee(&Operation::SMALLEST_RESERVATION, machine) {
        return Err(format!("{}; {}", why.what, why.remedy));
    }
    let facts = &machine.processors;
    let domain = tightest_domain(machine);
    let processors = domain
        .map(|domain| &domain.processors)
        .or_else(|| machine.own_root_domain().ok())
        .or_else(|| facts.online.as_ref().ok());
    let count = processors.and_then(count).unwrap_or(NonZeroU16::MIN);
    let version = machine.kernel.version.as_ref().ok().copied();
    let limits = limits(&machine.throttling, version);
    // Where nobody is seen that is told beside it.
    let seen = || {
        machine
            .threads
            .as_ref()
            .map_or(Bandwidth::ZERO, |threads| held_on(processors, threads))
    };
    Ok(DeadlineSupply {
        processors: count,
        servers: kept_of_each(machine),
        limits: domain.map_or(limits, |domain| KernelLimits {
            servers: kept_on_each(domain, &limits, count),
            ..limits
        }),
        granted: domain.map_or_else(seen, |domain| domain.used),
        unseen: machine.unseen(),
        tick: doctor::budget_grain(),
    })
}

/// What the kernel's servers may take of each processor.
pub(crate) fn kept_of_each(machine: &Machine) -> Bandwidth {
    let servers = machine.servers.as_ref();
    servers.map_or_else(|_| usual_limits(None).servers, Servers::share)
}

/// Of the root domains that the calling thread may be in, the one with the least left; `None` if none is known, or nothing is limited.
fn tightest_domain(machine: &Machine) -> Option<&DomainBandwidth> {
    let affinity = machine.processors.affinity.as_ref().ok();
    let domains = machine.bandwidth.as_ref().ok()?.iter().flatten();
    domains
        .filter(|domain| affinity.is_none_or(|affinity| domain.processors.overlaps(affinity)))
        .min_by_key(|domain| domain.free())
}

/// What the kernel is set to; what cannot be read is taken to be as Linux comes.
fn limits(throttling: &Throttling, version: Option<(u32, u32)>) -> KernelLimits {
    let micros = |micros: u64| Span::from_nanos(micros.saturating_mul(1_000));
    let usual = usual_limits(version);
    let runtime = throttling.runtime_us.as_ref();
    KernelLimits {
        rt_runtime: runtime.map_or(usual.rt_runtime, |runtime| {
            runtime.map(|runtime| micros(runtime).as_full_service())
        }),
        rt_period: (throttling.period_us.as_ref())
            .map_or(usual.rt_period, |period| micros(*period)),
        shortest_period: (throttling.deadline_period_min.clone()).unwrap_or(usual.shortest_period),
        longest_period: (throttling.deadline_period_max.clone()).unwrap_or(usual.longest_period),
        servers: usual.servers,
    }
}

/// What the kernel keeps of each processor of a domain: its servers, and what slower processors lack, in equal parts. Rounded up where
/// the processors are not alike: admission may then refuse a millionth that the kernel would take, never the reverse.
fn kept_on_each(domain: &DomainBandwidth, limits: &KernelLimits, count: NonZeroU16) -> Bandwidth {
    let whole = KernelLimits {
        servers: Bandwidth::ZERO,
        ..*limits
    };
    let kept = whole.free(count, domain.admissible);
    let kept = kept.map_or(0, Bandwidth::units);
    Bandwidth::from_units(kept.div_ceil(u64::from(count.get())))
}

/// How many, if there are any.
fn count(processors: &CpuSet) -> Option<NonZeroU16> {
    let count = u16::try_from(processors.len()).unwrap_or(u16::MAX);
    NonZeroU16::new(count)
}

#[cfg(test)]
mod tests {
    use laxity_model::{Reservation, Service};

    use super::*;
    use crate::doctor::machine::{Source, Unknown};
    use crate::os::sched::{self, Tid};

    /// Who is kept to one processor may reserve all the same, as a reservation is let run on all of them; and is kept to it afterwards.
    #[test]
    fn a_narrow_affinity_keeps_nobody_from_reserving() {
        let own = Tid::current();
        let whole = sched::affinity(own).expect("an affinity");
        let config = LiveConfig::detect(1).expect("a processor");
        let told = || supply("here".to_owned(), &config).deadline.err();
        let free = told();
        let narrow = CpuSet::single(whole.iter().next().expect("a processor"));
        sched::set_affinity(own, &narrow).expect("its own");
        let kept = told();
        assert_eq!(sched::affinity(own), Ok(narrow));
        sched::set_affinity(own, &whole).expect("its own");
        assert_eq!(kept, free);
    }

    const USUAL: KernelLimits = KernelLimits::WITH_FAIR_SERVER;

    fn share(runtime_us: u64, period_us: u64) -> Bandwidth {
        let (runtime, period) = (
            Service::from_micros(runtime_us),
            Span::from_micros(period_us),
        );
        Bandwidth::of(runtime, period)
    }

    /// Two processors of these capacities, set up as Linux comes.
    fn domain(capacity: u64) -> DomainBandwidth {
        let fair_servers = [share(50, 1_000); 2].into_iter().sum();
        DomainBandwidth {
            processors: [0, 1].into_iter().collect(),
            admissible: share(950, 1_000)
                .of_capacity(capacity)
                .saturating_sub(fair_servers),
            fair_servers,
            fair_servers_from: Source::KernelDefault,
            used: share(1, 3),
        }
    }

    #[test]
    fn a_domain_of_like_processors_is_what_the_kernel_has() {
        let (domain, two) = (domain(2_048), NonZeroU16::new(2).expect("two"));
        let servers = kept_on_each(&domain, &USUAL, two);
        assert_eq!(servers, USUAL.servers);
        let free = USUAL.free(two, domain.used);
        assert_eq!(free, Some(domain.free()));
        assert_eq!(domain.used.units(), (1 << 20) / 3);
    }

    /// However unlike the processors are, no more is said to be free than is, and hardly less.
    #[test]
    fn slower_processors_count_as_less() {
        let two = NonZeroU16::new(2).expect("two");
        for capacity in 300..2_048 {
            let domain = domain(capacity);
            let servers = kept_on_each(&domain, &USUAL, two);
            let limits = KernelLimits { servers, ..USUAL };
            let free = limits.free(two, domain.used).expect("a limit");
            let really = domain.free();
            assert!(
                free <= really && really.units() - free.units() <= 1,
                "{capacity}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_as_linux_comes() {
        let unknown = || Unknown("no sysctl".to_owned());
        let dark = Throttling {
            runtime_us: Err(unknown()),
            period_us: Err(unknown()),
            deadline_period_min: Err(unknown()),
            deadline_period_max: Err(unknown()),
        };
        assert_eq!(limits(&dark, Some((6, 12))), USUAL);
        let both = KernelLimits {
            servers: [USUAL.servers; 2].into_iter().sum(),
            ..USUAL
        };
        let new = [Some((7, 0)), None].map(|version| limits(&dark, version));
        assert_eq!(new, [both; 2]);
        let old = limits(&dark, Some((6, 11)));
        assert_eq!(old, KernelLimits::WITHOUT_FAIR_SERVER);
        let set = Throttling {
            runtime_us: Ok(None),
            period_us: Ok(500_000),
            deadline_period_min: Ok(Span::from_millis(1)),
            deadline_period_max: Ok(Span::from_secs(1)),
        };
        let set = limits(&set, None);
        assert_eq!(set.rt_runtime, None);
        let refused = |x_us, y_us| {
            let asked = Reservation::new(Service::from_micros(x_us), Span::from_micros(y_us));
            let asked = asked.expect("valid").into();
            set.check(NonZeroU16::MIN, Bandwidth::ZERO, asked).is_err()
        };
        assert_eq!(
            [(99, 999), (100, 1_000), (100, 1_000_000), (100, 1_000_001)]
                .map(|(x, y)| refused(x, y)),
            [true, false, false, true]
        );
    }
}
