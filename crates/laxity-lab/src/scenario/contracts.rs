//! `[contracts.*]`: limits of one's own, as [`laxity_model::verify::contract`] judges them. `pc99` is built in.

use std::sync::Arc;

use laxity_model::verify::contract::{
    Absence, Bound, Contract, Kind, Limit, Quantity, Severity, Statistic, Subjects, pc99,
};

use super::diagnostic::alternatives;
use super::keys::{Key, Other, Own, Table, Without};
use super::limits::{Of, is_relative, limits};
use super::reader::Section;
use super::sections::{Names, named};
use super::types::{Flow, ResolvedDevice, ResolvedTask, ResolvedVariant};
use super::{Declared, devices, kinds};

const LIMIT_EXAMPLE: &str = "[{ quantity = \"wakeup_gap\", at_most = \"1.05 x control\" }]";
/// Of a program, which has no control and of which less is observed.
const PROGRAM_EXAMPLE: &str = "[{ quantity = \"service_gap\", at_most = \"50ms\" }]";

static SUBJECT: Key<Other> = Key::new(
    "subject",
    &Own("the name of a device, task or flow"),
    Without::Means("every one of which its quantities are observed"),
    "The one that it is about.",
);
static KIND: Key<Other> = Key::new(
    "kind",
    &Own("the word for a kind of devices, tasks or flows"),
    Without::Means("every kind of which its quantities are observed"),
    "All of one kind, in place of `subject`.",
);
static LIMITS: Key<Other> = Key::new(
    "limits",
    &Own("a list of tables"),
    Without::Refused(LIMIT_EXAMPLE),
    "All of which must hold, of each that it is about.",
);
pub(super) static KEYS: Table = Table {
    heading: "[contracts.<name>]",
    kind: None,
    about: "What “on time” means: limits of your own. Built in are `pc99`, what the PC industry asks of the drivers of modems, `lossless`, that no sample and no \
        frame is lost, and `in-time`, that no job misses its deadline; a `lossless` or `in-time` of your own takes the place of that. Any other judges the variants that name it under `contracts`; one that judges none is a mistake.",
    keys: &[&SUBJECT, &KIND, &LIMITS],
};

/// A declared component and its kind, if that could be read.
type Component<'a> = (&'a str, Option<Kind>);

/// The contracts that every file has, each with who is judged by it in a variant that names none.
type BuiltIn = (fn() -> Contract, fn(&ResolvedVariant) -> bool);

const BUILT_IN: [BuiltIn; 3] = [
    (pc99, |variant| {
        variant.devices.iter().any(ResolvedDevice::calls)
    }),
    (lossless, |variant| {
        variant.devices.iter().any(|device| !device.calls())
    }),
    (in_time, |variant| {
        variant.tasks.iter().any(|task| task.kind.is_due())
    }),
];

const fn none(quantity: Quantity) -> Limit {
    Limit::new(quantity, Statistic::Total, Bound::AtMost(0))
}

/// Nothing is lost of what a card moves.
fn lossless() -> Contract {
    let samples = none(kinds::SAMPLES_LOST);
    // A modem's frames are sent again.
    let frames = none(kinds::FRAMES_LOST).holds_unseen_with(kinds::SAMPLES_LOST);
    Contract {
        name: "lossless".into(),
        subjects: Subjects::All,
        limits: vec![samples, frames],
    }
}

/// Every job of a periodic task ends by its deadline.
fn in_time() -> Contract {
    Contract {
        name: "in-time".into(),
        subjects: Subjects::Kind(kinds::PERIODIC),
        limits: vec![none(Quantity::DEADLINE_MISSES)],
    }
}

/// The contracts, by name, that a variant is judged by if it says nothing else.
pub(super) fn usual(variant: &ResolvedVariant) -> impl Iterator<Item = String> {
    let usual = BUILT_IN.iter().filter(|(_, applies)| applies(variant));
    usual.map(|(contract, _)| contract().name)
}

/// All contracts of a file, those that are built in first.
pub(super) fn contracts(
    root: &Section<'_>,
    devices: &Names<ResolvedDevice>,
    tasks: &Names<ResolvedTask>,
    flows: &Names<Arc<Flow>>,
) -> Names<Contract> {
    let devices = devices.iter().map(|device| {
        let kind = device.value.as_ref().map(|device| device.device.kind());
        (device.name.as_str(), kind)
    });
    let tasks = tasks.iter().map(|task| {
        let kind = task.value.as_ref().map(|task| task.kind.kind());
        (task.name.as_str(), kind)
    });
    let flows = flows.iter().map(|flow| {
        let kind = flow.value.as_ref().map(|flow| flow.kind());
        (flow.name.as_str(), kind)
    });
    let all: Vec<Component<'_>> = devices.chain(tasks).chain(flows).collect();
    let own = named(root, "contracts", |section, name| {
        if name == "pc99" {
            let cause = "the contract `pc99` is built in";
            let remedy = "give your own contract another name";
            section.findings.error(&section.place, cause, remedy);
            return None;
        }
        contract(section, name, &all, Of::Scenario)
    });
    let own: Names<Contract> = own.into_iter().filter(|own| own.name != "pc99").collect();
    let built_in = BUILT_IN.iter().map(|(contract, _)| contract());
    let built_in = built_in.filter(|one| own.iter().all(|own| own.name != one.name));
    let built_in = built_in.map(|contract| Declared {
        name: contract.name.clone(),
        place: 0..0,
        value: Some(contract),
    });
    let mut names: Names<Contract> = built_in.collect();
    names.extend(own);
    names
}

/// Whether some limit needs a control run to be judged.
pub(crate) fn needs_control(contract: &Contract) -> bool {
    contract.limits.iter().any(|limit| is_relative(limit.bound))
}

/// Whether some limit is about a device, so that a variant without one cannot keep it.
pub(super) fn needs_device(contract: &Contract) -> bool {
    let about_device = |limit: &Limit| {
        let of = |kind: &Kind| kind.shows(limit.quantity);
        let is_devices = devices::KINDS.iter().any(of) && !of(&kinds::PERIODIC);
        is_devices && limit.quantity != Quantity::THREAD_PRIORITY
    };
    contract.limits.iter().any(about_device)
}

/// What is limited of which these kinds show nothing.
pub(super) fn unseen(contract: &Contract, shown: &[Kind]) -> Option<Quantity> {
    let shows = |quantity| shown.iter().any(|kind| kind.shows(quantity));
    let mut required = contract.limits.iter().filter(|limit| {
        let stands_in = match limit.absence {
            Absence::HoldsIfSeen(other) => shows(other),
            Absence::Inconclusive => false,
        };
        limit.severity == Severity::Required && !shows(limit.quantity) && !stands_in
    });
    required.next().map(|limit| limit.quantity)
}

/// Whether the contract is left open where nothing is seen of this quantity.
pub(super) fn needs(contract: &Contract, quantity: Quantity) -> bool {
    let mut limits = contract.limits.iter();
    limits.any(|limit| {
        limit.quantity == quantity
            && limit.severity == Severity::Required
            && limit.absence == Absence::Inconclusive
    })
}

/// Whether some limit is about the gaps of a periodic task.
pub(super) fn needs_periodic(contract: &Contract) -> bool {
    let gap = |limit: &Limit| limit.quantity == Quantity::WAKEUP_GAP;
    contract.limits.iter().any(gap)
}

/// Whom the contract is about: `subject = "modem"`, `kind = "periodic"`, or every component of which its quantities are observed.
fn subjects(section: &Section<'_>, all: &[Component<'_>]) -> Option<(Subjects, Option<Kind>)> {
    let words = kinds::KINDS.map(|kind| (kind.name, kind));
    let kind = section.choice("kind", &words);
    let Some(text) = section.text("subject", "a name", "modem") else {
        let kind = kind.map(|found| found.value);
        return Some((kind.map_or(Subjects::All, Subjects::Kind), kind));
    };
    if kind.is_some() {
        let cause = format!("{} names a component and a kind", section.path);
        let remedy = "keep `subject` for one component, or `kind` for all of a kind";
        section.findings.error(&text.place, cause, remedy);
    }
    let Some((name, kind)) = all.iter().find(|(name, _)| *name == text.value) else {
        let names = all.iter().map(|(name, _)| *name);
        section.findings.unknown("component", &text, names);
        return None;
    };
    Some((Subjects::Named((*name).to_owned()), *kind))
}

/// Reports limits on what is not observed of the kind that the contract is about.
fn check_observed(section: &Section<'_>, kind: Kind, limits: &[Limit]) {
    let key = ["subject", "kind"].into_iter().find(|key| section.has(key));
    for limit in limits {
        if kind.shows(limit.quantity) {
            continue;
        }
        let remedy = if kind.quantities.is_empty() {
            "leave it out: such a component is there for what it does to others".to_owned()
        } else {
            let names = kind.quantities.iter().map(|quantity| quantity.name());
            format!("limit {}", alternatives(names))
        };
        let (quantity, kind) = (limit.quantity.name(), kind.name);
        let cause = format!("`{quantity}` is not observed of a {kind}");
        section.wrong(key.unwrap_or("limits"), cause, remedy);
    }
}

fn contract(section: &Section<'_>, name: &str, all: &[Component<'_>], of: Of) -> Option<Contract> {
    section.keyed([&KEYS]);
    let subjects = subjects(section, all);
    let example = match of {
        Of::Scenario => LIMIT_EXAMPLE,
        Of::Program => PROGRAM_EXAMPLE,
    };
    section.require(LIMITS.name, example);
    let path = format!("a limit of {}", section.path);
    let tables = section.sections("limits", &path, example)?;
    if tables.is_empty() {
        let cause = format!("{} limits nothing", section.path);
        let remedy = format!("write for example: limits = {example}");
        section.wrong("limits", cause, remedy);
    }
    let limits = tables.iter().filter_map(|table| limits(table, of));
    let limits: Vec<Limit> = limits.flatten().collect();
    let (subjects, kind) = subjects?;
    if let Some(kind) = kind {
        check_observed(section, kind, &limits);
    }
    Some(Contract {
        name: name.to_owned(),
        subjects,
        limits,
    })
}

/// A file that is one contract, for one program.
pub(super) fn of_program(root: &Section<'_>, name: &str) -> Option<Contract> {
    root.allow(&["limits"]);
    contract(root, name, &[], Of::Program)
}
