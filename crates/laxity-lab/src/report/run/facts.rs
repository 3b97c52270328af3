//! What else is known of a variant, and where all figures come from.

use laxity_model::Span;
use laxity_model::verify::contract::Quantity;

use crate::evidence::results::{Provenance, RunResults, VariantResults};
use crate::evidence::subjects::{ModemFigures, SubjectResults};
use crate::report::value::{self, count};
use crate::report::{Figure, Origin, Table, Value};
use crate::scenario::kinds::key;

/// Where the devices work, by whom their reservations are kept, and whether what is reserved is enforced; empty if there is neither.
pub(super) fn placed(variant: &VariantResults) -> String {
    let each = variant.each_modem().map(|(whose, modem)| {
        let by = modem.enforcer.as_ref();
        let by = by.map_or_else(String::new, |enforcer| format!(" by {enforcer}"));
        format!("{whose}{}{by}", modem.placement)
    });
    let each = each.chain(variant.grade.clone());
    each.collect::<Vec<_>>().join(", ")
}

/// What was counted, and how long phases were.
pub(super) fn facts(variant: &VariantResults, origin: Origin) -> Table {
    let mut facts: Vec<(String, Value)> = Vec::new();
    for (whose, modem) in variant.each_modem() {
        let of_modem = modem_facts(modem).into_iter();
        facts.extend(of_modem.map(|(fact, value)| (format!("{whose}{fact}"), value)));
    }
    for (task, _) in variant.tasks() {
        let of_task = task_facts(task).into_iter();
        facts.extend(of_task.map(|(fact, value)| (format!("{}: {fact}", task.name), value)));
    }
    let mut add = |fact: &str, value: Value| facts.push((fact.to_owned(), value));
    if let Some(steal) = variant.steal_ns {
        add("steal time", Span::from_nanos(steal).into());
    }
    let disturbed = &variant.disturbed;
    if disturbed.witness_wakeups > 0 {
        let (seen, of) = (disturbed.count, count(disturbed.witness_wakeups));
        let time = value::nanos(disturbed.total_ns);
        let words = format!("{seen} of {of} witness wake-ups, {time}");
        add("disturbed", words.into());
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
        ("samples lost", modem.samples_overwritten.into()),
        ("samples underrun", modem.samples_underrun.into()),
        ("receivers", u64::from(modem.receivers).into()),
        ("context switches", modem.context_switches.into()),
        (
            "of them involuntary",
            modem.context_switches_involuntary.into(),
        ),
        ("page faults", modem.page_faults.into()),
    ];
    if !modem.phases.is_empty() {
        let phases = phases.collect::<Vec<_>>().join(" · ");
        facts.push(("phases", phases.into()));
    }
    facts
}

/// How long its jobs took from their release, and how many ended too late, as far as it had any.
fn task_facts(task: &SubjectResults) -> Vec<(&'static str, Value)> {
    let seen = |quantity: Quantity| task.quantities.get(&key(quantity));
    let response = seen(Quantity::RESPONSE_TIME).and_then(|all| Some((all.p99?, all.max?)));
    let response = response.map(|(p99, max)| {
        let [p99, max] = [p99, max].map(value::nanos);
        ("response time, p99 and max", format!("{p99}, {max}").into())
    });
    let misses = seen(Quantity::DEADLINE_MISSES).map(|jobs| {
        let missed = jobs.buckets.iter().filter(|(misses, _)| *misses > 0);
        let [missed, all] = [missed.map(|(_, jobs)| jobs).sum(), jobs.count].map(count);
        ("deadline misses", format!("{missed} of {all} jobs").into())
    });
    response.into_iter().chain(misses).collect()
}

/// Where the figures come from, by their names in the file for programs.
pub(super) fn provenance(results: &RunResults, origin: Origin) -> Figure {
    let rows = results.provenance.iter().map(|(figure, from)| {
        let (kind, source) = match from {
            Provenance::Measured { on } => ("measured", on),
            Provenance::Simulated { profile } => ("simulated", profile),
            Provenance::Calibrated { to } => ("calibrated to", to),
            Provenance::Quoted { source } => ("quoted from", source),
        };
        let words = [figure.replace('_', " "), format!("{kind}: {source}")];
        origin.row(words.map(Value::Text))
    });
    let table = Table::new(["figure", "from"], rows);
    Figure::of_table("provenance", "Where the figures come from", table)
}
