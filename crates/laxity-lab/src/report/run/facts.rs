//! What else is known of a variant, and where all figures come from.

use laxity_model::Span;

use crate::evidence::results::{Provenance, RunResults, VariantResults};
use crate::evidence::subjects::ModemFigures;
use crate::report::value::{self, count};
use crate::report::{Figure, Origin, Table, Value};

/// The modems, each with its name for the begin of a sentence where there are several; one that is absent where there are none.
pub(super) fn modems_or_absent(variant: &VariantResults) -> Vec<(String, ModemFigures)> {
    let modems = variant.each_modem();
    let modems = modems.map(|(whose, modem)| (whose, modem.clone()));
    let mut modems: Vec<_> = modems.collect();
    if modems.is_empty() {
        modems.push((String::new(), ModemFigures::absent()));
    }
    modems
}

/// Where the devices work, by whom their reservations are kept, and whether they are enforced.
pub(super) fn placed(variant: &VariantResults) -> String {
    let modems = modems_or_absent(variant);
    let each = modems.iter().map(|(whose, modem)| {
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
    for (whose, modem) in modems_or_absent(variant) {
        let of_modem = modem_facts(&modem).into_iter();
        facts.extend(of_modem.map(|(fact, value)| (format!("{whose}{fact}"), value)));
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
