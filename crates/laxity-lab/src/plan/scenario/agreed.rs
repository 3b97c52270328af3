//! One answer for each device, and one bound for each task that takes turns. A device's own analysis knows how its blocks come; the bound of a call takes
//! calls to come as close together as any two can, and so is only sufficient. What either proves holds, and both say it.

use laxity_devices::modem::Phase as CallPhase;
use laxity_model::Span;

use super::device::SERVED;
use super::{DevicePlan, VariantPlan};
use crate::plan::{Deadline, Line};
use crate::scenario::ResolvedVariant;

impl VariantPlan {
    /// Has the line of a device that is sure to be served say so; `later`: some have their reservations when they dial.
    pub(super) fn heed_device(&self, line: &mut Line, later: bool) {
        let mut devices = self.devices.iter();
        let device = devices.find(|device| device.activity == line.name);
        if device.is_some_and(|device| device.is_late_in_pieces(line)) {
            line.deadline = Some(Deadline::NotKnown);
            line.no_proof = Some(OF_THE_LAST.to_owned());
        }
        // Whoever outranks its slots and is not counted there may be counted in the bound.
        let device = device.filter(|device| self.is_enforced(device) && device.covers(line, later));
        if let Some(device) = device
            && let Some(Deadline::CanBeMissed | Deadline::NotKnown) = line.deadline
        {
            line.be_in_time(device.complete_within(line));
        }
    }

    fn is_enforced(&self, device: &DevicePlan) -> bool {
        let mut requests = self.requests.iter();
        let request = requests.find(|request| request.activity == device.activity);
        let asked = request.and_then(|request| request.offers.first());
        asked.is_some_and(|asked| asked.possible && asked.grade_reason.is_none())
    }

    /// Has devices be served whose calls are in time by their bound, which on a twin's machine is also of a rank beside their slots; and executors say
    /// of a task what its line has for its bound, which knows more.
    pub(super) fn heed_lines(&mut self, is_twin: bool) {
        for (task, bound_ns) in self.executors.iter_mut().flat_map(|one| &mut one.bounds) {
            let line = self.lines.iter().find(|line| line.name == *task);
            *bound_ns = line.and_then(|line| line.bound_ns).unwrap_or(*bound_ns);
        }
        // Of a modem the bound is not all: each piece of a call's output is due by itself, and it is to be called often enough.
        let of_streams = self.lines.iter().filter(|line| line.phase.is_none());
        for line in of_streams.filter(|line| line.deadline == Some(Deadline::Met)) {
            let mut devices = self.devices.iter_mut();
            let device = devices.find(|device| device.activity == line.name);
            if let Some((device, bound)) = device.zip(line.bound_ns) {
                device.be_in_time(bound, is_twin);
            }
        }
    }
}

/// What it means that a modem's call is in time by its bound.
const OF_THE_LAST: &str = "the last piece of a call's output is in time; earlier ones may not be, or it is called too seldom, as is said of the device";

impl DevicePlan {
    /// Whether it may be served too late once it is at work though the last piece of each call is in time.
    fn is_late_in_pieces(&self, line: &Line) -> bool {
        let phase = line.phase.as_deref();
        let is_at_work = phase.is_some_and(|phase| phase != CallPhase::OnHook.name());
        let is_late = self.is_late() && !self.is_served_at_work();
        is_at_work && is_late && line.deadline == Some(Deadline::Met)
    }

    /// Whether its answer is about these calls.
    fn covers(&self, line: &Line, later: bool) -> bool {
        let is_of = |phase: CallPhase| line.phase.as_deref() == Some(phase.name());
        if self.is_served() {
            // Before it has its reservation nothing is said of it.
            return !(later && is_of(CallPhase::OnHook));
        }
        self.is_served_at_work() && (line.phase.is_none() || is_of(CallPhase::Connected))
    }

    /// From the interrupt to the end of its call at most, where calls are alike.
    fn complete_within(&self, line: &Line) -> Option<Span> {
        let margins = self.margins.filter(|_| line.phase.is_none())?;
        Some(Span::from_nanos(margins.response_ns))
    }

    /// Takes it that its calls take so long at most, and are in time so.
    fn be_in_time(&mut self, bound_ns: u64, is_twin: bool) {
        if !self.is_late() {
            return;
        }
        let [by, alone] = match self.has_rank && is_twin {
            true => ["with its rank beside its slots", "its slots alone"],
            false => ["by its slots", "what is sure of them in every window"],
        };
        self.detail = format!(
            "{by}, complete {} after the interrupt; by {alone} {}: {}",
            Span::from_nanos(bound_ns),
            self.answer,
            self.detail.trim_start_matches("by ")
        );
        self.answer = SERVED.into();
        (self.least_service_ns, self.cheapest) = (None, None);
        (self.nothing_left, self.no_more_found) = (false, false);
    }
}

/// Whether a device has its reservation only when it dials.
pub(super) fn reserves_later(variant: &ResolvedVariant) -> bool {
    let asked = variant
        .devices
        .iter()
        .filter_map(|device| device.placing.request());
    asked.into_iter().any(|asked| !asked.begins_at_start)
}
