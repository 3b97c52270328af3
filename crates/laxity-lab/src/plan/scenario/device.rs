//! Whether a reservation serves the modem: by the study's own model, and exactly, from what its enforcer keeps and the card's rings.
//!
//! The modem is the one of [`analysis::devices`](laxity_model::analysis::devices), in the phase in which it needs most, connected: the costliest
//! call for each block, as many samples as the card's blocks have on average, in the time that they take on average; the output ahead
//! by as many blocks as the driver keeps it. It has the reservation and nothing besides: no rest of the processor outside its slots,
//! and nothing taken from them by what runs above.

use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::{Costs, Hypothesis, Phase};
use laxity_model::admission::{Admission, SlotPlan, Supply};
use laxity_model::analysis::devices::{
    Answer, Device, Margins, cheapest, least_reservation, least_reservations, serves,
    two_line_model,
};
use laxity_model::analysis::supply::{ExplicitDeadline, KernelDeadline, SupplyBound, TableSupply};
use laxity_model::analysis::{Doubt, Fraction, Overflow};
use laxity_model::{ActivityId, Enforcer, ProcessorId, Reservation, ReservationRequest, Span};
use serde::Serialize;

use super::{Ready, slots_of};
use crate::plan::enforced;
use crate::runner::work::MODEM_PERIOD;

/// What is proposed has X in multiples of this, the shortest slot of all hosts.
const GRAIN: Span = Span::from_micros(50);
/// And as Y a whole number of milliseconds up to this.
const LONGEST_PERIOD_MS: u64 = 32;

/// Whether the modem's reservation serves it while it is connected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DevicePlan {
    /// Who holds the reservation.
    pub activity: String,
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
    /// Of whom it is asked.
    pub enforcer: String,
    /// What the card and its driver are taken to be.
    pub device: DeviceNumbers,
    /// The study's model: X/Y is no less than C/T.
    pub is_enough: bool,
    /// The study's model: Y − X is no more than g.
    pub is_often_enough: bool,
    /// `served`, `too late`, or `cannot tell`.
    pub answer: String,
    /// By which supply that is, and if the modem is not served, why.
    pub detail: String,
    /// What is to spare in the worst case, if it is served.
    pub margins: Option<DeviceMargins>,
    /// Where it is not served, the least X that would be at this Y, a multiple of 0.05 ms, in nanoseconds.
    pub least_service_ns: Option<u64>,
    /// Where it is not served, of all that would serve the cheapest, Y in whole milliseconds.
    pub cheapest: Option<Proposal>,
}

/// A modem in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceNumbers {
    /// C: the most work for a block, in nanoseconds.
    pub cost_ns: u64,
    /// T: from block to block, in nanoseconds.
    pub block_ns: u64,
    /// B: samples in a block.
    pub block_samples: u64,
    /// n: samples in the input ring.
    pub ring_samples: u64,
    /// m: by how many samples the output is ahead at a block's interrupt.
    pub lead_samples: u64,
    /// g: it must be called at least so often, in nanoseconds.
    pub longest_pause_ns: u64,
}

/// What is to spare in the worst case, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceMargins {
    /// From a block's interrupt to the end of its work at most.
    pub response_ns: u64,
    /// From then until the input ring would overflow.
    pub input_ns: Option<u64>,
    /// From then until the output would underflow.
    pub output_ns: Option<u64>,
    /// The longest time without service.
    pub longest_pause_ns: u64,
    /// What that could be longer.
    pub calls_ns: Option<u64>,
}

/// A reservation that serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Proposal {
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
}

/// The lines of the modems that are reserved, each by itself.
pub(super) fn of(ready: &Ready, supply: &Supply) -> Result<Vec<DevicePlan>, Overflow> {
    let Some(device) = connected() else {
        return Ok(Vec::new());
    };
    let modems = ready.probes.modems();
    let lines = modems.filter_map(|modem| {
        let driver = modem.installed.driver;
        let request = ready.admission().program.activities[driver.index()].reservation?;
        Some(of_one(ready.admission(), driver, request, &device, supply))
    });
    lines.collect()
}

fn of_one(
    admission: &Admission,
    holder: ActivityId,
    request: ReservationRequest,
    device: &Device,
    supply: &Supply,
) -> Result<DevicePlan, Overflow> {
    let driver = &admission.program.activities[holder.index()];
    let kernel = supply.deadline.as_ref();
    let tick = kernel.map_or(Span::ZERO, |kernel| kernel.tick);
    let mut refusals = admission.refusals();
    let kept = if refusals.any(|(refused, _)| refused.activity == holder) {
        Err("its reservation is refused".to_owned())
    } else if request.enforcer == Enforcer::Deadline {
        Ok(by_deadline(request.reservation, tick)?)
    } else {
        let jitter = edge_jitter(supply, driver.processor);
        by_slots(&admission.slots, holder, jitter)
    };
    line(&driver.name, request, device, (kept, tick))
}

/// The modem while it is connected.
fn connected() -> Option<Device> {
    let blocks = Setting::CONNECTED.blocks;
    let block = blocks.iter().sum::<u64>() / blocks.len() as u64;
    let lead = Hypothesis::STUDY.lead_samples(Setting::CONNECTED);
    let work = Costs::STUDY.call(Phase::Connected, false);
    let device = Device::duplex(work, MODEM_PERIOD, block, RING_SAMPLES, lead).ok()?;
    Some(device.called_every(MODEM_PERIOD))
}

/// How late a slot may begin on a processor.
fn edge_jitter(supply: &Supply, processor: ProcessorId) -> Span {
    let here = supply.processors.get(processor.index());
    let slots = here.and_then(|here| here.slots.as_ref().ok());
    slots.map_or(Span::ZERO, |slots| slots.jitter)
}

/// A table, and what it may lose that is not counted.
fn table_words(edge_jitter: Span) -> String {
    let table = "the slot table, nothing taken from it";
    if edge_jitter.is_zero() {
        return table.into();
    }
    format!("{table} and no edge late (here by up to {edge_jitter})")
}

/// A supply, and what it is in words.
type Kept = (Box<dyn SupplyBound>, String);

/// What the kernel keeps of a reservation. Admission may expect shorter gaps, where it knows no other holder; but the kernel's own server
/// for ordinary threads may be one.
fn by_deadline(reservation: Reservation, tick: Span) -> Result<Kept, Overflow> {
    let supply = KernelDeadline::among_others(reservation, tick)?;
    let words = format!("the kernel's budget, among others', {}", enforced(tick));
    Ok((Box::new(supply), words))
}

/// What its slots keep.
fn by_slots(plans: &[SlotPlan], holder: ActivityId, edge_jitter: Span) -> Result<Kept, String> {
    let (table, owner) = slots_of(plans, holder).ok_or("it has no slot in the table")?;
    let supply = TableSupply::new(table, owner).map_err(|error| error.to_string())?;
    Ok((Box::new(supply), table_words(edge_jitter)))
}

fn line(
    holder: &str,
    request: ReservationRequest,
    device: &Device,
    (kept, tick): (Result<Kept, String>, Span),
) -> Result<DevicePlan, Overflow> {
    let reservation = request.reservation;
    let lines = two_line_model(device, reservation);
    let (answer, detail) = match kept {
        Ok((supply, words)) => {
            let answer = serves(device, &*supply)?;
            (answer, describe(&answer, &words, supply.is_attained()))
        }
        Err(why) => (Answer::Unknown(Doubt::OutOfScope), why),
    };
    let proposed = if answer.is_served() {
        (None, None)
    } else {
        proposals(device, request.enforcer, reservation.period(), tick)?
    };
    Ok(DevicePlan {
        activity: holder.to_owned(),
        service_ns: reservation.service().as_nanos(),
        period_ns: reservation.period().as_nanos(),
        enforcer: request.enforcer.to_string(),
        device: numbers(device),
        is_enough: lines.is_enough,
        is_often_enough: lines.is_often_enough,
        answer: match answer {
            Answer::Served(_) => "served",
            Answer::TooLate(_) => "too late",
            Answer::Unknown(_) => "cannot tell",
        }
        .into(),
        detail,
        margins: match answer {
            Answer::Served(margins) => Some(to_spare(margins)),
            _ => None,
        },
        least_service_ns: proposed.0.map(|least| least.service().as_nanos()),
        cheapest: proposed.1.map(|cheapest| Proposal {
            service_ns: cheapest.service().as_nanos(),
            period_ns: cheapest.period().as_nanos(),
        }),
    })
}

fn describe(answer: &Answer, supply: &str, is_attained: bool) -> String {
    match answer {
        Answer::Served(_) => format!("by {supply}"),
        // Of a supply that is a bound, the worst course need not exist.
        Answer::TooLate(late) if is_attained => format!("by {supply}: {late}"),
        Answer::TooLate(late) => {
            format!("by {supply}, in a course of it that need not come: {late}")
        }
        Answer::Unknown(doubt) => format!("by {supply}: {doubt}"),
    }
}

/// The least X at this Y, and the cheapest of all, of the same enforcer.
fn proposals(
    device: &Device,
    enforcer: Enforcer,
    period: Span,
    tick: Span,
) -> Result<(Option<Reservation>, Option<Reservation>), Overflow> {
    let periods: Vec<Span> = (1..=LONGEST_PERIOD_MS).map(Span::from_millis).collect();
    match enforcer {
        Enforcer::Slots => propose(device, period, &periods, |asked| {
            Some(ExplicitDeadline::continuous(asked))
        }),
        Enforcer::Deadline => propose(device, period, &periods, |asked| {
            KernelDeadline::among_others(asked, tick).ok()
        }),
    }
}

fn propose<S: SupplyBound>(
    device: &Device,
    period: Span,
    periods: &[Span],
    supply: impl Fn(Reservation) -> Option<S>,
) -> Result<(Option<Reservation>, Option<Reservation>), Overflow> {
    let least = least_reservation(device, period, GRAIN, &supply)?;
    let all = least_reservations(device, periods, GRAIN, &supply)?;
    Ok((least, cheapest(all.into_iter().flatten())))
}

fn numbers(device: &Device) -> DeviceNumbers {
    DeviceNumbers {
        cost_ns: device.work().as_nanos(),
        block_ns: device.period().as_nanos(),
        block_samples: device.block(),
        ring_samples: device.ring().unwrap_or(0),
        lead_samples: device.lead().unwrap_or(0),
        longest_pause_ns: device.longest_pause().map_or(0, Span::as_nanos),
    }
}

fn to_spare(margins: Margins) -> DeviceMargins {
    DeviceMargins {
        response_ns: margins.response.as_nanos(),
        input_ns: margins.input.map(Span::as_nanos),
        output_ns: margins.output.map(Span::as_nanos),
        longest_pause_ns: margins.longest_pause.as_nanos(),
        calls_ns: margins.calls.map(Span::as_nanos),
    }
}

impl DevicePlan {
    /// Both lines of the study's model.
    pub(super) const fn is_predicted(&self) -> bool {
        self.is_enough && self.is_often_enough
    }

    /// X/Y and C/T, in parts per million, rounded down and up.
    pub(super) fn shares_ppm(&self) -> (u64, u64) {
        let asked = Fraction::new(self.service_ns, self.period_ns).map_or(0, Fraction::ppm);
        let needed = Fraction::new(self.device.cost_ns, self.device.block_ns);
        (asked, needed.map_or(0, Fraction::ppm))
    }

    /// Y − X.
    pub(super) fn gap(&self) -> Span {
        Span::from_nanos(self.period_ns.saturating_sub(self.service_ns))
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Outside, Service};

    use super::*;

    fn reservation(service_us: u64, period_ms: u64) -> Reservation {
        let service = Service::from_micros(service_us);
        Reservation::new(service, Span::from_millis(period_ms)).expect("X is no more than Y")
    }

    #[test]
    fn the_modem_is_the_studys() {
        let modem = connected().expect("a device");
        assert_eq!(modem.work(), Service::from_micros(1_840));
        assert_eq!(modem.block(), 200);
        // The time of a block is that of its samples, and the output is due by the next.
        assert_eq!(Setting::CONNECTED.duration(modem.block()), modem.period());
        assert_eq!(modem.output_limit(), Some(Span::from_micros(12_500)));
        assert_eq!(modem.input_limit(), Some(Span::from_micros(19_500)));
    }

    #[test]
    fn proposals_serve_and_a_grain_less_does_not() {
        let modem = connected().expect("a device");
        let tick = Span::from_millis(4);
        let served = |enforcer: Enforcer, asked: Reservation| {
            let answer = match enforcer {
                Enforcer::Slots => serves(&modem, &ExplicitDeadline::continuous(asked)),
                Enforcer::Deadline => serves(
                    &modem,
                    &KernelDeadline::among_others(asked, tick).expect("small"),
                ),
            };
            answer.expect("small").is_served()
        };
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            for period_ms in [4, 8, 16, 20] {
                let period = Span::from_millis(period_ms);
                let (least, cheap) = proposals(&modem, enforcer, period, tick).expect("small");
                let cheap = cheap.expect("one serves");
                assert!(served(enforcer, cheap), "{cheap}");
                let Some(least) = least else {
                    assert!(!served(enforcer, reservation(period_ms * 1_000, period_ms)));
                    continue;
                };
                assert!(served(enforcer, least), "{least}");
                assert!(cheap.share_ppm() <= least.share_ppm(), "{cheap} {least}");
                let less = least.service() - GRAIN.as_full_service();
                if let Ok(less) = Reservation::new(less, period) {
                    assert!(!served(enforcer, less), "{less}");
                }
            }
        }
    }

    #[test]
    fn the_kernel_keeps_less_than_the_lines_take_for_granted() {
        let modem = connected().expect("a device");
        let plan = |service_us: u64, tick_ms: u64| {
            let request = ReservationRequest {
                reservation: reservation(service_us, 8),
                enforcer: Enforcer::Deadline,
                outside: Outside::Confined,
                begins_at_start: true,
            };
            let tick = Span::from_millis(tick_ms);
            let kept = by_deadline(request.reservation, tick).expect("small");
            line("modem", request, &modem, (Ok(kept), tick)).expect("small")
        };
        // Two budgets 12 ms apart are often enough, but the second is complete only 1.84 ms later; no course need be so with a tick.
        let at_once = plan(2_000, 0);
        assert!(at_once.is_predicted());
        assert_eq!(at_once.answer, "too late");
        assert!(
            at_once
                .detail
                .contains("among others', enforced at once: the output underflows"),
            "{}",
            at_once.detail
        );
        let ticking = plan(2_000, 4);
        assert!(
            ticking
                .detail
                .contains("need not come: it is not called in time"),
            "{}",
            ticking.detail
        );
        assert!(ticking.least_service_ns > at_once.least_service_ns);
        let least = at_once.least_service_ns.expect("one serves");
        assert_eq!(plan(least / 1_000, 0).answer, "served");
    }

    #[test]
    fn the_two_lines_know_neither_rings_nor_the_time_of_the_work() {
        let modem = connected().expect("a device");
        // Enough, often enough, and late all the same by what the work itself takes.
        let wide = reservation(3_600, 16);
        assert!(two_line_model(&modem, wide).is_served());
        let exact = serves(&modem, &ExplicitDeadline::continuous(wide)).expect("small");
        assert!(!exact.is_served(), "{exact}");
    }
}
