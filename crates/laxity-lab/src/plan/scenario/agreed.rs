//! One answer for each device, and one bound for each task that takes turns. A device's own analysis knows how its blocks come; the bound of a call takes
//! calls to come as close together as any two can, and so is only sufficient. What either proves holds, and both say it.

use laxity_devices::modem::Phase as CallPhase;
use laxity_model::{Priority, Span};

use super::device::{SERVED, TOO_LATE};
use super::{DevicePlan, VariantPlan};
use crate::plan::{Deadline, Line};
use crate::scenario::{
    Placing, ResolvedDevice, ResolvedTask, ResolvedVariant, TaskKind, TwinProfile,
};

impl VariantPlan {
    /// Has the line of a device that is sure to be served say so, and that of a modem's calls no more than their bound proves: each piece of a call's output
    /// is due by itself, and was in time where the call is complete by `whole`. `later`: some have their reservations when they dial.
    pub(super) fn heed_device(&self, line: &mut Line, whole: Option<Span>, later: bool) {
        let mut devices = self.devices.iter();
        let device = devices.find(|device| device.activity == line.name);
        // Whoever outranks its slots and is not counted there may be counted in the bound.
        let device = device.filter(|device| self.is_enforced(device) && device.covers(line, later));
        let is_proved = whole.is_none_or(|whole| line.bound_ns <= Some(whole.as_nanos()));
        match (device, line.deadline) {
            (Some(device), Some(Deadline::CanBeMissed | Deadline::NotKnown)) => {
                line.be_in_time(device.complete_within(line));
            }
            (None, Some(Deadline::Met)) if !is_proved => {
                line.deadline = Some(Deadline::NotKnown);
                line.no_proof = Some(OF_THE_LAST.to_owned());
            }
            _ => {}
        }
    }

    /// Has the line of a device that never asks for its reservation say so: a bound is of one that has it.
    pub(super) fn heed_unasked(&self, line: &mut Line) {
        let mut devices = self.devices.iter();
        let unasked = devices.find(|device| device.activity == line.name && device.never_asks);
        if unasked.is_none() || line.bound_ns.is_none() {
            return;
        }
        (line.bound_ns, line.slack_ns, line.usual_bound_ns) = (None, None, None);
        line.no_bound = Some(NEVER_ASKS.to_owned());
        line.no_proof = None;
        line.deadline = line.deadline_ns.map(|_| Deadline::CanBeMissed);
    }

    fn is_enforced(&self, device: &DevicePlan) -> bool {
        let mut requests = self.requests.iter();
        let request = requests.find(|request| request.activity == device.activity);
        let asked = request.and_then(|request| request.offers.first());
        asked.is_some_and(|asked| asked.possible && asked.grade_reason.is_none())
    }

    /// Has devices be served whose calls are all in time by their bounds, which on a twin's machine are also of a rank beside their slots; and executors
    /// say of a task what its line has for its bound, which knows more; where it knows more than they promise, what is less.
    pub(super) fn heed_lines(&mut self, is_twin: bool) {
        for executor in &mut self.executors {
            let is_firm = executor.is_firm();
            for (task, bound_ns) in &mut executor.bounds {
                let line = self.lines.iter().find(|line| line.name == *task);
                let own = line.and_then(|line| line.bound_ns).unwrap_or(*bound_ns);
                // Of a promise that others may break the line has those others, too, in an order that the policy may not have.
                *bound_ns = if is_firm { own } else { own.min(*bound_ns) };
            }
        }
        for device in &mut self.devices {
            let calls = self.lines.iter();
            let calls = calls.filter(|line| line.name == device.activity);
            let are_met = calls
                .clone()
                .all(|line| line.deadline == Some(Deadline::Met));
            // Of calls that are in time by the device's own answer alone there is no bound, and so none of all.
            let bounds: Option<Vec<u64>> = calls.map(|line| line.bound_ns).collect();
            let bound = bounds.and_then(|bounds| bounds.into_iter().max());
            if let Some(bound) = bound.filter(|_| are_met) {
                device.be_in_time(bound, is_twin);
            }
        }
    }
}

/// Why one has no bound that is never so far.
const NEVER_ASKS: &str = "it never gets so far as to ask for its reservation";

/// What it means that a modem's call is in time by its bound, where that is not sure of its pieces.
const OF_THE_LAST: &str = "the last piece of a call's output is in time; earlier ones may not be, and the call is then in vain";

impl DevicePlan {
    /// Takes it that this task keeps it from ever asking for its reservation, however large that is.
    pub(super) fn be_kept_from_asking(&mut self, above: &str) {
        self.answer = TOO_LATE.into();
        self.detail = format!("{NEVER_ASKS}: `{above}` is above it until then, and never stops");
        self.never_asks = true;
        (self.late_before, self.margins) = (None, None);
        (self.least_service_ns, self.cheapest) = (None, None);
        (self.nothing_left, self.no_more_found) = (false, false);
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
        let otherwise = match self.late_before.take() {
            Some(late) if self.is_served_at_work() => {
                format!("{TOO_LATE} before it is connected: {late}")
            }
            _ => format!("{}: {}", self.answer, self.detail.trim_start_matches("by ")),
        };
        self.detail = format!(
            "{by}, complete {} after the interrupt; by {alone} {otherwise}",
            Span::from_nanos(bound_ns)
        );
        self.answer = SERVED.into();
        (self.margins, self.least_service_ns, self.cheapest) = (None, None, None);
        (self.nothing_left, self.no_more_found) = (false, false);
    }
}

/// Who keeps a device from ever asking for its reservation: whoever never stops, and is above the priority that it has until then, or on Linux has the same, as
/// its real-time threads of one priority take no turns. Ordinary threads get something all the same, those of Linux a share, and those of a twin by being lifted.
pub(super) fn kept_from_asking<'a>(
    variant: &'a ResolvedVariant,
    device: &ResolvedDevice,
    twin: Option<TwinProfile>,
) -> Option<&'a str> {
    let Placing::Reserved(request, before) = device.placing else {
        return None;
    };
    let is_above = |task: &&ResolvedTask| match task.kind {
        TaskKind::Spinner { priority, .. } => {
            let is_first = |fixed| priority > before && fixed >= Priority::REAL_TIME;
            let equals = twin.is_none() && priority == before && before >= Priority::REAL_TIME;
            is_first(twin.map_or(before, |_| priority)) || equals
        }
        _ => false,
    };
    let tasks = variant.tasks.iter().filter(|_| !request.begins_at_start);
    let mut here = tasks.filter(|task| task.processor == device.processor);
    here.find(is_above).map(|task| task.name.as_str())
}

/// Whether a device has its reservation only when it dials.
pub(super) fn reserves_later(variant: &ResolvedVariant) -> bool {
    let asked = variant
        .devices
        .iter()
        .filter_map(|device| device.placing.request());
    asked.into_iter().any(|asked| !asked.begins_at_start)
}
