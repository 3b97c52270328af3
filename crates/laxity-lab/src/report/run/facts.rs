//! What else is known of a variant, and where all figures come from.

use laxity_model::Span;
use laxity_model::verify::contract::Quantity;

use super::apart::{as_told, missed, quantity};
use super::columns::{ended, processor_time, service_gap};
use crate::evidence::histogram::HistogramJson;
use crate::evidence::results::{Provenance, RunResults, VariantResults};
use crate::evidence::subjects::{
    CommandFigures, DeviceFigures, ModemFigures, Proposed, StreamFigures, SubjectResults,
};
use crate::layout::{fixed, percent};
use crate::report::value::{self, count};
use crate::report::{Figure, Origin, Table, Value};
use crate::scenario::units::format_span;

/// Where the devices work, by whom their reservations are kept, and whether what is reserved is enforced; empty if there is neither.
pub(super) fn placed(variant: &VariantResults) -> String {
    let each = variant.each_device().map(|(whose, device)| {
        let by = device.enforcer.as_ref();
        let by = by.map_or_else(String::new, |enforcer| format!(" by {enforcer}"));
        format!("{whose}{}{by}", device.placement)
    });
    let each = each.chain(variant.grade.clone());
    each.collect::<Vec<_>>().join(", ")
}

/// Beside a variant, a machine is told to have been faster or slower than usual from so much on, in parts per million.
const OFF_PPM: u64 = 100_000;

/// How fast the machine was, and beside which variants it was another, and for how long it was slow by so much that this counts as if it stood still.
pub(super) fn speed(results: &RunResults) -> Option<String> {
    let usual = results.machine.as_ref().and_then(|machine| machine.speed);
    let off = results.variants.iter().filter_map(|variant| {
        let own = variant.speed?.reference_block_ns;
        let usual = usual?.reference_block_ns.max(1);
        let off = own.abs_diff(usual) * 1_000_000 / usual;
        let word = if own > usual { "longer" } else { "shorter" };
        let name = &variant.name;
        (off >= OFF_PPM).then(|| format!("{} % {word} beside {name}", percent(off)))
    });
    let words = usual.map(|usual| usual.words()).into_iter().chain(off);
    let told: Vec<String> = words.chain(crawled(results)).collect();
    (!told.is_empty()).then(|| format!("speed of the machine: {}", told.join(", ")))
}

/// For how long it did in all variants.
pub(super) fn crawled(results: &RunResults) -> Option<String> {
    let variants = results.variants.iter();
    let long: u64 = variants.map(|variant| variant.disturbed.crawled_ns).sum();
    (long > 0).then(|| {
        let long = format_span(Span::from_millis(long.div_ceil(1_000_000)));
        format!("it crawled for {long} in all, at less than half of its usual speed, which is judged as if it stood still")
    })
}

/// What was proposed and why, and what would have done: a sentence for all that were proposed the same for the same reason.
pub(super) fn proposals(results: &RunResults) -> Vec<String> {
    let mut groups: Vec<(Vec<String>, &Proposed)> = Vec::new();
    for variant in &results.variants {
        for (whose, modem) in variant.each_device() {
            let Some(proposed) = &modem.proposed else {
                continue;
            };
            let name = format!("{whose}{}", variant.name);
            match groups.iter_mut().find(|(_, known)| *known == proposed) {
                Some((names, _)) => names.push(name),
                None => groups.push((vec![name], proposed)),
            }
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(names, same)| format!("{}: {}", names.join(", "), proposal(same)))
        .collect()
}

/// What was proposed and why, and what would have done.
fn proposal(proposed: &Proposed) -> String {
    let reservation = |service_ns: u64, period_ns: u64| {
        let (service, period) = (Span::from_nanos(service_ns), Span::from_nanos(period_ns));
        format!("{}/{}", format_span(service), format_span(period))
    };
    let held = reservation(proposed.service_ns, proposed.period_ns);
    let least = proposed.least_service_ns.zip(proposed.least_period_ns);
    let after = least.zip(proposed.longest_call_here_ns.zip(proposed.times_least_ppm));
    let after = after.map(|((service, period), (longest, times))| {
        let (least, longest) = (reservation(service, period), Span::from_nanos(longest));
        let times = fixed(times, 1_000_000, 2);
        let before = proposed.longest_connecting_here_ns.map(Span::from_nanos);
        let (before, them) = before.map_or((String::new(), "it"), |before| {
            (format!(", one before it was connected {before}"), "both")
        });
        let beside = match proposed.has_others {
            true => " beside what the others had",
            false => "",
        };
        format!("; the longest call of the runs took {longest}{before}, and {least} would have served {them}{beside}: x {times}")
    });
    format!("{held}, {}{}", proposed.why, after.unwrap_or_default())
}

/// What was counted, and how long phases were.
pub(super) fn facts(variant: &VariantResults, origin: Origin) -> Table {
    let mut facts: Vec<(String, Value)> = Vec::new();
    for (whose, modem) in variant.each_modem() {
        let of_modem = modem_facts(modem).into_iter();
        facts.extend(of_modem.map(|(fact, value)| (format!("{whose}{fact}"), value)));
    }
    for (subject, stream) in variant.streams() {
        let of_stream = stream_facts(stream).into_iter();
        facts.extend(of_stream.map(|(fact, value)| (format!("{}: {fact}", subject.name), value)));
    }
    for (task, _) in variant.tasks() {
        let of_task = task_facts(task).into_iter();
        facts.extend(of_task.map(|(fact, value)| (format!("{}: {fact}", task.name), value)));
    }
    for (command, figures) in variant.commands() {
        let of_command = command_facts(command, figures).into_iter();
        facts.extend(of_command.map(|(fact, value)| (format!("{}: {fact}", command.name), value)));
    }
    let mut add = |fact: &str, value: Value| facts.push((fact.to_owned(), value));
    if let Some(steal) = variant.steal_ns {
        add("steal time", Span::from_nanos(steal).into());
    }
    if let Some(speed) = &variant.speed {
        add("speed of the machine", speed.words().into());
    }
    let disturbed = &variant.disturbed;
    if disturbed.witness_wakeups > 0 {
        let (seen, of) = (disturbed.count, count(disturbed.witness_wakeups));
        let time = value::nanos(disturbed.total_ns);
        let words = format!("{seen} of {of} witness wake-ups, {time}");
        add("disturbed", words.into());
        for one in &disturbed.by_processor {
            let (seen, time) = (one.count, value::nanos(one.total_ns));
            let fact = format!("processor {} disturbed", one.processor);
            add(&fact, format!("{seen} times, {time}").into());
        }
    }
    add("events recorded", variant.events_recorded.into());
    add("events lost", variant.events_lost.into());
    if variant.repeats > 1 {
        add("runs", u64::from(variant.repeats).into());
    }
    let rows = facts.into_iter();
    let rows = rows.map(|(fact, value)| origin.row([fact.into(), value]));
    Table::new(["figure", "value"], rows)
}

fn modem_facts(modem: &ModemFigures) -> Vec<(&'static str, Value)> {
    let transfer = &modem.transfer;
    let bytes = count(transfer.bytes);
    let arrived = match (transfer.completed, transfer.checksum_ok) {
        (true, true) => format!("{bytes} bytes, checksum right"),
        (true, false) => format!("{bytes} bytes, checksum wrong"),
        (false, _) => "not completed".into(),
    };
    let phases = modem.phases.iter();
    let phases = phases.map(|phase| {
        let (name, time) = (&phase.name, value::nanos(phase.duration_ns));
        format!("{name} {time}")
    });
    let mut facts = vec![
        ("transfer", arrived.into()),
        ("frames sent again", transfer.retransmissions.into()),
        ("retrained", transfer.retrainings.into()),
        ("receivers", u64::from(modem.receivers).into()),
    ];
    facts.extend(device_facts(&modem.device));
    if !modem.phases.is_empty() {
        let phases = phases.collect::<Vec<_>>().join(" · ");
        facts.push(("phases", phases.into()));
    }
    facts
}

fn stream_facts(stream: &StreamFigures) -> Vec<(&'static str, Value)> {
    let mut facts: Vec<(&'static str, Value)> = vec![
        ("frames that arrived", stream.frames_good.into()),
        ("frames lost", stream.frames_lost.into()),
        (
            "times that each block was worked on",
            u64::from(stream.work_times).into(),
        ),
    ];
    facts.extend(device_facts(&stream.device));
    facts
}

fn device_facts(device: &DeviceFigures) -> Vec<(&'static str, Value)> {
    let proposed = device.proposed.iter();
    let proposed = proposed.map(|proposed| ("proposed", proposal(proposed).into()));
    let counted = [
        ("samples lost", device.lost().into()),
        ("of them overwritten", device.samples_overwritten.into()),
        ("of them underrun", device.samples_underrun.into()),
        (
            "of them undisturbed, as judged",
            device.samples_lost_undisturbed.into(),
        ),
        ("context switches", device.context_switches.into()),
        (
            "of them involuntary",
            device.context_switches_involuntary.into(),
        ),
        ("page faults", device.page_faults.into()),
    ];
    counted.into_iter().chain(proposed).collect()
}

/// What a program of the user's own took and had, and how it ended.
fn command_facts(command: &SubjectResults, figures: &CommandFigures) -> Vec<(&'static str, Value)> {
    let took = processor_time(figures).map(|took| ("processor time", took));
    let gap = service_gap(command).map(|gap| ("service gap of its first thread alone, max", gap));
    let facts = [Some(("exit", ended(figures))), took, gap];
    facts.into_iter().flatten().collect()
}

/// The 99th percentile and the largest of what is judged, and the largest of all where that is not.
fn response(all: &HistogramJson) -> String {
    let time = |ns: u64| value::nanos(as_told(ns));
    let judged = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), time);
    let besides = all
        .disturbed_max()
        .map(|max| format!(" (and {})", time(max)));
    let [p99, max] = [all.told_p99(), all.told_max()].map(judged);
    format!("{p99}, {max}{}", besides.unwrap_or_default())
}

/// How long its jobs took from their release, and how many ended too late, as far as it had any.
fn task_facts(task: &SubjectResults) -> Vec<(&'static str, Value)> {
    let seen = |wanted: Quantity| quantity(task, wanted);
    let took = seen(Quantity::RESPONSE_TIME).filter(|all| all.count > 0);
    let took = took.map(|all| ("response, wall time, p99 and max", response(all).into()));
    let misses = seen(Quantity::DEADLINE_MISSES).map(|jobs| {
        let [missed, all] = missed(jobs).map(count);
        ("deadline misses", format!("{missed} of {all} jobs").into())
    });
    took.into_iter().chain(misses).collect()
}

/// Where the figures come from, by their names in the file for programs.
pub(super) fn provenance(results: &RunResults, origin: Origin) -> Figure {
    let rows = results.provenance.iter().map(|(figure, from)| {
        let (kind, source) = match from {
            Provenance::Measured { on } => ("measured", on),
            Provenance::Simulated { profile } => ("simulated", profile),
            Provenance::Calibrated { to } => ("calibrated to", to),
            Provenance::Charged { by } => ("put in by", by),
        };
        let figure = match figure.rsplit_once('.') {
            Some((whose, figure)) => format!("{whose}: {}", figure.replace('_', " ")),
            None => figure.replace('_', " "),
        };
        let words = [figure, format!("{kind}: {source}")];
        origin.row(words.map(Value::Text))
    });
    let table = Table::new(["figure", "from"], rows);
    Figure::of_table("provenance", "Where the figures come from", table)
}

#[cfg(test)]
mod tests {
    use laxity_model::verify::contract::Observed;

    use super::*;

    /// So many responses of a millisecond, the last of 2.588671 ms, and so many of 27 ms where the machine stood still.
    fn responses(undisturbed: u64, disturbed: u64) -> HistogramJson {
        let mut seen = Observed::default();
        (1..undisturbed).for_each(|_| seen.undisturbed.record(1_000_000));
        seen.undisturbed.record(2_588_671);
        (0..disturbed).for_each(|_| seen.disturbed.record(27_000_000));
        HistogramJson::of("ns", &seen)
    }

    /// Of 99 values the 99th percentile is the largest; what is not judged makes it no other, and the microseconds are those of a verdict's reasons.
    #[test]
    fn a_response_time_is_told_as_the_table_has_it() {
        assert_eq!(response(&responses(99, 0)), "–, 2.588 ms");
        assert_eq!(response(&responses(99, 50)), "–, 2.588 ms (and 27 ms)");
        let many = response(&responses(1_000, 0));
        assert!(
            many.ends_with(" ms, 2.588 ms") && many.starts_with("1"),
            "{many}"
        );
        assert_eq!(
            response(&responses(1_000, 500)),
            format!("{many} (and 27 ms)")
        );
    }
}
