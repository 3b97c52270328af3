//! Whether a reservation serves a device: by the study's own model, and exactly, from what its enforcer keeps and the card's rings.
//!
//! A modem is the one of [`analysis::devices`](laxity_model::analysis::devices), in the phase in which it needs most, connected: the costliest
//! call for each block, blocks as uneven as the card's are, whichever of them is the first of a stretch of work; the output ahead
//! by as much as the driver keeps it; other devices have equal blocks. Each has the reservation and nothing besides: no rest of the processor
//! outside its slots, and of these what the machine and those above leave. What the twin's modem does before it is connected is looked at too.

use laxity_devices::modem::Hypothesis;
use laxity_model::admission::{Admission, SlotPlan, Supply};
use laxity_model::analysis::Overflow;
use laxity_model::analysis::devices::{Answer, Margins, Open, two_line_model};
use laxity_model::analysis::supply::{KernelDeadline, SupplyBound, SupplyError};
use laxity_model::{ActivityId, Enforcer, Outside, Reservation, ReservationRequest, Span};
use serde::Serialize;

use super::agreed::kept_from_asking;
use super::ranks::above_slots;
use super::{Ready, VariantPlan, slots_of};
use crate::plan::{Line, Proposal, enforced};
use crate::runner::left::{Granted, Left};
use crate::runner::served::{Needs, Place};
use crate::scenario::{ResolvedVariant, TwinProfile};

/// Whether the reservation of a device serves it; a modem while it is connected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DevicePlan {
    /// Who holds the reservation.
    pub activity: String,
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
    /// Y as it is asked for, in nanoseconds of the host's milliseconds.
    pub asked_period_ns: u64,
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
    /// What a modem may be late with before it is connected. Left out of the JSON if that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_before: Option<String>,
    /// What is to spare in the worst case, if it is served by what is sure of its reservation alone.
    pub margins: Option<DeviceMargins>,
    /// Where it is not served, the least X that would be at this Y beside all else, a multiple of 0.05 ms, in nanoseconds: with 0.05 ms less it would not, by
    /// what is sure of its reservation alone. That a bound of its calls may have it served by less is not searched.
    pub least_service_ns: Option<u64>,
    /// Where it is not served, of all that would serve the cheapest, Y in whole milliseconds.
    pub cheapest: Option<Proposal>,
    /// Whether something would serve it if only it were granted, where nothing that is granted would. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nothing_left: bool,
    /// Whether the least that would serve it at this Y in a table of its own is not proposed: it would be late beside these others, or is no more than what
    /// is. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_more_found: bool,
    /// Whether none of its calls was seen in the twin, where it was run once. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unseen: bool,
    /// Whether somebody above it keeps it from ever asking for its reservation.
    #[serde(skip)]
    pub(super) never_asks: bool,
    /// Whether it competes outside its reservation too.
    #[serde(skip)]
    pub(super) has_rank: bool,
}

/// A device in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceNumbers {
    /// C: the most work for a block, in nanoseconds.
    pub cost_ns: u64,
    /// T: from block to block, in nanoseconds.
    pub block_ns: u64,
    /// B: samples in a block.
    pub block_samples: u64,
    /// n: samples in the input ring; none of a device that is only played.
    pub ring_samples: Option<u64>,
    /// m: by how many samples the output is ahead at a block's interrupt; none of a device that is only received.
    pub lead_samples: Option<u64>,
    /// g: it must be called at least so often, in nanoseconds; none where only its ring says how often.
    pub longest_pause_ns: Option<u64>,
    /// In how many pieces a call delivers its output: the answer and the margins are of each.
    pub pieces: u64,
}

/// What is to spare in the worst case, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceMargins {
    /// From a block's interrupt to the end of its work at most; of one in pieces, from the turn of each to its end.
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

pub(super) const SERVED: &str = "served";
pub(super) const TOO_LATE: &str = "too late";
pub(super) const CANNOT_TELL: &str = "cannot tell";

/// The lines of the devices that are reserved, each by itself.
pub(super) fn of(
    ready: &Ready,
    variant: &ResolvedVariant,
    twin: Option<TwinProfile>,
    (supply, left): (&Supply, &Left),
) -> Result<Vec<DevicePlan>, Overflow> {
    let devices = ready.probes.devices().zip(&variant.devices).enumerate();
    let lines = devices.filter_map(|(number, (probe, device))| {
        let driver = probe.installed.driver;
        let request = ready.admission().program.activities[driver.index()].reservation?;
        let asked = device.placing.request()?.reservation;
        let tick = supply
            .deadline
            .as_ref()
            .map_or(Span::ZERO, |kernel| kernel.tick);
        // Of what is proposed for a run no room is made for strangers; whether it serves beside them is told.
        let strangers = above_slots(variant, device.processor);
        let place = Place::of(variant, device, (twin, tick)).beneath(strangers);
        let needs = Needs::new(device, device.work(twin), &place)?;
        let subject = Subject {
            request,
            asked,
            needs,
            place,
            tick,
            granted: &|asked| left.grants(number, asked),
        };
        let found = of_one(ready.admission(), driver, &subject);
        let above = kept_from_asking(variant, device, twin);
        Some(found.map(|mut plan| {
            if let Some(above) = above {
                plan.be_kept_from_asking(above);
            }
            plan
        }))
    });
    lines.collect()
}

/// Of which output the deadlines of a modem's calls are, where they deliver it in pieces.
pub(super) fn note(variants: &[VariantPlan], twin: Option<TwinProfile>) -> Option<String> {
    let is_call = |line: &&Line| line.phase.is_some() && line.deadline_ns.is_some();
    let mut lines = variants.iter().flat_map(|variant| &variant.lines);
    twin.and(lines.find(is_call))?;
    Some(format!(
        "D and slack of a modem's call are those of the last of the {} pieces of its output; the pieces before are due sooner",
        Hypothesis::STUDY.pieces
    ))
}

/// A device, what it reserves, and where.
struct Subject<'a> {
    request: ReservationRequest,
    /// The same, as its driver asks for it: perhaps in the milliseconds of this twin's host.
    asked: Reservation,
    needs: Needs,
    place: Place,
    tick: Span,
    /// What would be granted in place of what it reserves.
    granted: &'a dyn Fn(Reservation) -> Granted,
}

fn of_one(
    admission: &Admission,
    holder: ActivityId,
    subject: &Subject<'_>,
) -> Result<DevicePlan, Overflow> {
    let driver = &admission.program.activities[holder.index()];
    let request = subject.request;
    let mut refusals = admission.refusals();
    let kept = if refusals.any(|(refused, _)| refused.activity == holder) {
        Err(NotKept::Unknown("its reservation is refused".to_owned()))
    } else if request.enforcer == Enforcer::Deadline {
        Ok(by_deadline(request.reservation, subject.tick)?)
    } else {
        by_slots(&admission.slots, holder, &subject.place)
    };
    line(&driver.name, subject, kept)
}

/// A supply, and what it is in words.
type Kept = (Box<dyn SupplyBound>, String);

/// Why there is none, in words.
enum NotKept {
    /// Nothing is sure to be left of it.
    Nothing(String),
    /// It is not known.
    Unknown(String),
}

/// What the kernel keeps of a reservation. Admission may expect shorter gaps, where it knows no other holder; but the kernel's own server
/// for ordinary threads may be one.
fn by_deadline(reservation: Reservation, tick: Span) -> Result<Kept, Overflow> {
    let supply = KernelDeadline::among_others(reservation, tick)?;
    let words = format!("the kernel's budget, among others', {}", enforced(tick));
    Ok((Box::new(supply), words))
}

/// What its slots keep under whatever takes from them.
fn by_slots(plans: &[SlotPlan], holder: ActivityId, place: &Place) -> Result<Kept, NotKept> {
    let unknown = |why: String| NotKept::Unknown(why);
    let found = slots_of(plans, holder);
    let (table, owner) = found.ok_or_else(|| unknown("it has no slot in the table".into()))?;
    let kept = place.by_table(table, owner).map_err(|error| match error {
        SupplyError::NothingLeft => NotKept::Nothing(format!("by the slot table: {error}")),
        error => unknown(error.to_string()),
    })?;
    let late = match place.late() {
        Span::ZERO => String::new(),
        late => format!(", its edges up to {late} late"),
    };
    let words = format!("the slot table, less what the machine and those above take{late}");
    Ok((kept, words))
}

fn line(
    holder: &str,
    subject: &Subject<'_>,
    kept: Result<Kept, NotKept>,
) -> Result<DevicePlan, Overflow> {
    let (request, needs) = (subject.request, &subject.needs);
    let reservation = request.reservation;
    let lines = two_line_model(&needs.whole, reservation);
    let is_judged = !matches!(kept, Err(NotKept::Unknown(_)));
    let (answer, detail, late_before, margins) = match kept {
        Ok((supply, words)) => {
            let answer = needs.answer(&*supply)?;
            let detail = describe(&answer, &words, supply.is_attained());
            let (word, margins) = match answer {
                Answer::Served(margins) => (SERVED, Some(to_spare(margins))),
                Answer::TooLate(_) => (TOO_LATE, None),
                Answer::Unknown(_) => (CANNOT_TELL, None),
            };
            (word, detail, needs.late_before(&*supply)?, margins)
        }
        Err(NotKept::Nothing(why)) => (TOO_LATE, why, None, None),
        Err(NotKept::Unknown(why)) => (CANNOT_TELL, why, None, None),
    };
    let is_served = answer == SERVED && late_before.is_none();
    let (least, cheapest, no_more_found) = match is_served {
        true => (None, None, false),
        false => better(subject, is_judged)?,
    };
    let is_none = !is_served && least.is_none() && cheapest.is_none();
    Ok(DevicePlan {
        activity: holder.to_owned(),
        service_ns: reservation.service().as_nanos(),
        period_ns: reservation.period().as_nanos(),
        asked_period_ns: subject.asked.period().as_nanos(),
        enforcer: request.enforcer.to_string(),
        device: numbers(needs),
        is_enough: lines.is_enough,
        is_often_enough: lines.is_often_enough,
        answer: answer.into(),
        detail,
        late_before,
        margins,
        least_service_ns: least.map(|least| least.service().as_nanos()),
        cheapest: cheapest.map(Proposal::of),
        nothing_left: is_none
            && !no_more_found
            && proposals(subject, &|_| Granted::Whole)? != (None, None),
        no_more_found,
        has_rank: request.outside != Outside::Confined,
        never_asks: false,
        is_unseen: false,
    })
}

/// What is proposed to who is not served, and whether nothing is at its Y though something would serve it in a table of its own and be granted: beside
/// others it would be late, or is no more than what was judged.
fn better(
    subject: &Subject<'_>,
    is_judged: bool,
) -> Result<(Option<Reservation>, Option<Reservation>, bool), Overflow> {
    let asked = subject.asked;
    let is_more = |other: Reservation| {
        !is_judged || other.service() > asked.service() || other.period() < asked.period()
    };
    let (least, cheapest) = proposals(subject, &|other| match is_more(other) {
        true => (subject.granted)(other),
        false => Granted::NoMore,
    })?;
    let alone = |other| match (subject.granted)(other) {
        Granted::Not => Granted::Not,
        Granted::NoMore | Granted::Whole | Granted::Slots(..) => Granted::Whole,
    };
    let no_more_found = least.is_none() && proposals(subject, &alone)?.0.is_some();
    Ok((least, cheapest, no_more_found))
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

/// The least X at its Y, and the cheapest of all, of the same enforcer and of what is left: as they would be asked for.
fn proposals(
    subject: &Subject<'_>,
    granted: &dyn Fn(Reservation) -> Granted,
) -> Result<(Option<Reservation>, Option<Reservation>), Overflow> {
    let propose = |open| {
        let enforcer = subject.request.enforcer;
        let needs = &subject.needs;
        needs.propose(open, enforcer, &subject.place, granted)
    };
    Ok((
        propose(Open::Service(subject.asked.period()))?,
        propose(Open::Both)?,
    ))
}

fn numbers(needs: &Needs) -> DeviceNumbers {
    let device = needs.whole;
    DeviceNumbers {
        pieces: needs.pieces(),
        cost_ns: device.work().as_nanos(),
        block_ns: device.period().as_nanos(),
        block_samples: device.block(),
        ring_samples: device.ring(),
        lead_samples: device.lead(),
        longest_pause_ns: device.longest_pause().map(Span::as_nanos),
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
    /// Whether it is served while it has all to do, a modem once it is connected.
    pub(super) fn is_served_at_work(&self) -> bool {
        self.answer == SERVED
    }

    /// Whether it is served all the time, whatever the phases.
    pub fn is_served(&self) -> bool {
        self.is_served_at_work() && self.late_before.is_none()
    }

    /// Whether it is known that it may be served too late.
    pub(super) fn is_late(&self) -> bool {
        self.answer == TOO_LATE || self.late_before.is_some()
    }

    /// Both lines of the study's model.
    pub(super) const fn is_predicted(&self) -> bool {
        self.is_enough && self.is_often_enough
    }
}

#[cfg(test)]
mod tests {
    use laxity_devices::modem::needs::connected;
    use laxity_model::Service;
    use laxity_model::analysis::devices::{Device, serves};
    use laxity_model::analysis::supply::ExplicitDeadline;

    use super::*;
    use crate::runner::proposal::GRAIN;

    fn reservation(service_us: u64, period_ms: u64) -> Reservation {
        let service = Service::from_micros(service_us);
        Reservation::new(service, Span::from_millis(period_ms)).expect("X is no more than Y")
    }

    /// As it was measured on the study's host, delivering at the end of a call.
    fn measured() -> Device {
        connected(Service::from_micros(1_840)).expect("a device")
    }

    /// The same where nothing is taken from what it reserves.
    fn subject(enforcer: Enforcer, asked: Reservation, tick: Span) -> Subject<'static> {
        Subject {
            request: ReservationRequest {
                reservation: asked,
                enforcer,
                outside: Outside::Confined,
                begins_at_start: true,
            },
            asked,
            needs: Needs::whole(measured()),
            place: Place::undisturbed(tick),
            tick,
            granted: &|_| Granted::Whole,
        }
    }

    #[test]
    fn proposals_serve_and_a_grain_less_does_not() {
        let modem = measured();
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
                let subject = subject(enforcer, reservation(1_000, period_ms), tick);
                let (least, cheap) = proposals(&subject, subject.granted).expect("small");
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
        let plan = |service_us: u64, tick_ms: u64| {
            let tick = Span::from_millis(tick_ms);
            let subject = subject(Enforcer::Deadline, reservation(service_us, 8), tick);
            let kept = by_deadline(subject.request.reservation, tick).expect("small");
            line("modem", &subject, Ok(kept)).expect("small")
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
        let modem = measured();
        // Enough, often enough, and late all the same by what the work itself takes.
        let wide = reservation(3_600, 16);
        assert!(two_line_model(&modem, wide).is_served());
        let exact = serves(&modem, &ExplicitDeadline::continuous(wide)).expect("small");
        assert!(!exact.is_served(), "{exact}");
    }
}
