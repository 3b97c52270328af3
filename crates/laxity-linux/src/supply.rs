//! What admission is told about this machine.

use laxity_model::admission::{DeadlineSupply, ProcessorSupply, SlotSupply, Supply};
use laxity_model::{Priority, ProcessorId, Service, Span};

use crate::doctor::{self, DeadlineParameters, Machine, Operation};
use crate::host::{LiveConfig, admit, map};
use crate::proc;
use crate::slots::{CHARGE_PER_SLOT, MOST_SHARE_PPM, SHORTEST_SLOT};

/// What the kernel takes as periods and runtimes unless the machine is set otherwise (`sched_deadline_period_{min,max}_us`).
const SHORTEST_PERIOD: Span = Span::from_micros(100);
const LONGEST_PERIOD: Span = Span::from_micros(4_194_304);
const SHORTEST_RUNTIME: Service = Service::from_nanos(1_024);
/// How late the edge of a slot may be: what the dispatcher keeps in all but one of a thousand undisturbed periods.
const EDGE_JITTER: Span = Span::from_micros(200);
/// A reservation so small that only missing rights can stand against it.
const SMALLEST: DeadlineParameters = DeadlineParameters {
    runtime: Service::from_micros(10),
    deadline: Span::from_millis(100),
    period: Span::from_millis(100),
};

/// What this machine can enforce on the processors of a configuration, as it is now. Costs a probe of the machine (some milliseconds).
#[must_use]
pub fn supply(config: &LiveConfig, machine: &Machine) -> Supply {
    let processors = config
        .processors
        .iter()
        .enumerate()
        .map(|(index, cpu)| ProcessorSupply {
            processor: ProcessorId(index as u16),
            slots: slots(),
            outranking: admit::outranking(&proc::strangers_on(*cpu)),
        });
    Supply {
        processors: processors.collect(),
        deadline: deadline(machine),
    }
}

fn slots() -> Result<SlotSupply, String> {
    doctor::can_run_live().map_err(|why| format!("{}; {}", why.what, why.remedy))?;
    Ok(SlotSupply {
        max_share_ppm: MOST_SHARE_PPM,
        used_ppm: 0,
        per_slot: CHARGE_PER_SLOT.as_full_service(),
        shortest_slot: SHORTEST_SLOT,
        jitter: EDGE_JITTER,
        occupant_fifo: map::OCCUPANT,
        threads_above: Some(Priority::HIGHEST),
    })
}

fn deadline(machine: &Machine) -> Result<DeadlineSupply, String> {
    if let Some(refusal) = doctor::foresee(&Operation::SetDeadline(SMALLEST), machine) {
        return Err(format!(
            "{}; {}",
            refusal.diagnosis.what, refusal.diagnosis.remedy
        ));
    }
    let bandwidth = machine.own_bandwidth();
    let online = machine
        .processors
        .online
        .as_ref()
        .map_or(1, doctor::machine::Processors::len);
    let processors = bandwidth.map_or(online, |domain| domain.processors.len());
    let exact = machine
        .kernel
        .hrtick
        .as_ref()
        .is_ok_and(|hrtick| hrtick.deadline);
    let tick = machine
        .kernel
        .tick
        .as_ref()
        .copied()
        .unwrap_or(Span::from_millis(4));
    Ok(DeadlineSupply {
        processors: processors as u16,
        // Without a limit the kernel admits what it is asked for; more than there is still does not fit.
        free_ppm: bandwidth.map_or(processors as u64 * 1_000_000, |domain| domain.free().ppm()),
        shortest_period: SHORTEST_PERIOD,
        longest_period: LONGEST_PERIOD,
        shortest_runtime: SHORTEST_RUNTIME,
        tick: if exact { Span::ZERO } else { tick },
    })
}
