//! Where each figure of the results comes from.

use std::collections::BTreeMap;

use laxity_model::verify::contract::Quantity;
use serde_json::Value;

use crate::evidence::results::{Machine, Provenance, VariantResults};
use crate::evidence::subjects::{Figures, SubjectResults};
use crate::scenario::kinds::{PROCESSING_TIME, key};
use crate::scenario::{Resolved, ResolvedDevice};

/// What a twin of the study's host was taken from.
const STUDY: &str = "Jones, Saroiu, Predictability Requirements of a Soft Modem, SIGMETRICS 2001";

/// What follows for figures that come from what was charged: a device that gets less than that has what was left to it.
const NO_RESULT: &str = "so no result but where calls are not served";

/// What a figure depends on.
enum Source {
    /// What the host did.
    Host,
    /// What calls of a device take.
    Calls,
    /// How often a device's work was repeated.
    Repeats,
    /// What laxity proposed.
    Proposal,
    /// What the scenario says.
    Scenario,
}

/// What a field of a variant or of a component depends on, by its name in the file; `None` of one that is no figure.
fn source(field: &str) -> Option<Source> {
    Some(match field {
        "processing_ns" | "cpu_share" => Source::Calls,
        "receivers" | "work_times" => Source::Repeats,
        "proposed" => Source::Proposal,
        "task_period_ns" | "task_deadline_ns" | "job_service_ns" => Source::Scenario,
        "steal_ns"
        | "speed"
        | "disturbed"
        | "events_recorded"
        | "events_lost"
        | "samples_lost_undisturbed"
        | "samples_overwritten"
        | "samples_underrun"
        | "samples_pending_max"
        | "samples_pending"
        | "samples_undelivered"
        | "context_switches"
        | "context_switches_involuntary"
        | "page_faults"
        | "receiver_bit_errors"
        | "transfer"
        | "phases"
        | "work_differs"
        | "frames_good"
        | "frames_lost"
        | "command_runs"
        | "cothread_gap_ns"
        | "control_gap_ns"
        | "gap_repeats"
        | "further_controls"
        | "windows" => Source::Host,
        _ => return None,
    })
}

/// The figures that were found, each with who has it and where it comes from there.
#[derive(Default)]
struct Found<'a>(BTreeMap<String, Vec<(&'a str, Provenance)>>);

impl<'a> Found<'a> {
    fn take(&mut self, figure: &str, whose: &'a str, from: Provenance) {
        let all = self.0.entry(figure.to_owned()).or_default();
        // A component has the same source in all variants.
        if all.iter().all(|(known, _)| *known != whose) {
            all.push((whose, from));
        }
    }

    /// By the figure's name; where components differ, by the component's besides.
    fn named(self) -> BTreeMap<String, Provenance> {
        let mut named = BTreeMap::new();
        for (figure, all) in self.0 {
            let (_, first) = &all[0];
            if all.iter().all(|(_, from)| from == first) {
                named.insert(figure, first.clone());
                continue;
            }
            let each = all.into_iter();
            named.extend(each.map(|(whose, from)| (format!("{whose}.{figure}"), from)));
        }
        named
    }
}

/// Who ran a scenario.
struct Ran<'a> {
    host: &'a str,
    machine: Option<&'a Machine>,
}

/// Where each figure that these variants have comes from, by its name: on a host of this name, which is this machine unless it is a twin.
pub(super) fn provenance(
    resolved: &Resolved,
    variants: &[VariantResults],
    host: &str,
    machine: Option<&Machine>,
) -> BTreeMap<String, Provenance> {
    let ran = Ran { host, machine };
    let mut found = Found::default();
    for variant in variants {
        // A variant's numbers and strings are always JSON.
        let fields = serde_json::to_value(variant).unwrap_or_default();
        for (figure, source) in figures(&fields) {
            found.take(figure, "", ran.provenance(&source, None));
        }
        let mut own = resolved.variants.iter();
        let own = own.find(|own| own.name == variant.name);
        let devices = own.map_or(&[][..], |own| &own.devices);
        let subjects = fields["subjects"].as_array().into_iter().flatten();
        for (subject, fields) in variant.subjects.iter().zip(subjects) {
            let mut devices = devices.iter();
            let device = devices.find(|device| device.name == subject.name);
            for (figure, source) in of_subject(subject, fields) {
                found.take(figure, &subject.name, ran.provenance(&source, device));
            }
        }
    }
    let mut named = found.named();
    if variants.iter().any(|one| one.modems().next().is_some()) {
        // No figure itself: what all that a modem loses rests on.
        let to = format!("{STUDY}, figure 17: the line of gaps");
        named.insert("output_lead".into(), Provenance::Calibrated { to });
    }
    named
}

/// The figures of a component with everything that was observed of it, and what a modem's variant tells of it besides.
fn of_subject<'a>(
    subject: &SubjectResults,
    fields: &'a Value,
) -> impl Iterator<Item = (&'a str, Source)> {
    let observed = fields["quantities"].as_object().into_iter().flatten();
    // What handlers and deferred calls take is that of the device's calls wherever one of its variants has these there.
    let calls = [
        PROCESSING_TIME,
        Quantity::INTERRUPT_TIME,
        Quantity::DEFERRED_TIME,
    ];
    let calls = calls.map(key);
    let observed = observed.map(move |(quantity, _)| match calls.contains(quantity) {
        true => (quantity.as_str(), Source::Calls),
        false => (quantity.as_str(), Source::Host),
    });
    let is_modem = matches!(subject.figures, Figures::SoftModem(_));
    let lost = is_modem.then_some(("samples_lost", Source::Host));
    figures(fields).chain(observed).chain(lost)
}

/// The fields that are there and are figures.
fn figures(fields: &Value) -> impl Iterator<Item = (&str, Source)> {
    let fields = fields.as_object().into_iter().flatten();
    let are_there = fields.filter(|(_, value)| match value {
        Value::Null => false,
        Value::Array(all) => !all.is_empty(),
        _ => true,
    });
    are_there.filter_map(|(field, _)| Some((field.as_str(), source(field)?)))
}

impl Ran<'_> {
    /// Where a figure comes from, of a device if it is one's.
    fn provenance(&self, source: &Source, device: Option<&ResolvedDevice>) -> Provenance {
        match source {
            Source::Host => self.seen(),
            Source::Calls => match device.filter(|_| self.machine.is_none()) {
                Some(device) => charged(device),
                None => self.seen(),
            },
            Source::Repeats => self.repeats(device),
            Source::Proposal => Provenance::Calibrated {
                to: "the device's longest call as known before the runs, and a margin; what is told of its calls here was seen in them".into(),
            },
            Source::Scenario => Provenance::Charged {
                by: "the scenario".into(),
            },
        }
    }

    fn seen(&self) -> Provenance {
        match self.machine {
            Some(machine) => Provenance::Measured {
                on: format!("{}, Linux {}", machine.cpu_model, machine.kernel),
            },
            None => Provenance::Simulated {
                profile: self.host.to_owned(),
            },
        }
    }

    fn repeats(&self, device: Option<&ResolvedDevice>) -> Provenance {
        let repeated = device.filter(|device| device.device.fewest_repeats().is_some());
        let how = match repeated.filter(|_| self.machine.is_some()) {
            Some(modem) if modem.calls() => "the number of receivers",
            Some(_) => "how often its work is repeated",
            None => {
                let by = "laxity, which repeats no work here".into();
                return Provenance::Charged { by };
            }
        };
        let to = format!("the load that the scenario asks for, by {how}");
        Provenance::Calibrated { to }
    }
}

/// Where a twin has from what a device's calls take: it is charged the load that the scenario states or that is its kind's, and a modem without one what was
/// chosen for the study's host ([`Costs::UNLOGGED`](laxity_devices::modem::Costs::UNLOGGED)).
fn charged(device: &ResolvedDevice) -> Provenance {
    let of_data = if device.calls() {
        "of calls of data, "
    } else {
        ""
    };
    match device.device.states_load() {
        true => Provenance::Charged {
            by: format!("the scenario, {of_data}by the load that it states; {NO_RESULT}"),
        },
        false => Provenance::Calibrated {
            to: format!("{STUDY}, table 3: 1/7, 2/14; charged in the twin, {NO_RESULT}"),
        },
    }
}
