//! The control of a variant: the one without a device that its gaps are compared with.

use laxity_model::verify::contract::Contract;

use super::contracts::needs_control;
use super::reader::{Found, Section};
use super::types::ResolvedVariant;
use super::variants::Draft;

/// The variant that this one is compared with.
pub(super) fn control(index: usize, drafts: &[Draft<'_>]) -> Option<usize> {
    let Draft {
        variant,
        section,
        control,
        is_unknown,
    } = drafts.get(index)?;
    if let Some(named) = control {
        return named_control(index, named, drafts);
    }
    if *is_unknown || variant.devices.is_empty() {
        return None;
    }
    let mut contracts = variant.contracts.iter().map(|(contract, _)| contract);
    let needed = contracts.find(|contract| needs_control(contract));
    let fits = |other: &ResolvedVariant| {
        let has_device = !other.devices.is_empty();
        !has_device && other.periodic() == variant.periodic() && serves(other, variant)
    };
    let candidates = drafts.iter().enumerate();
    let candidates = candidates.filter(|(_, draft)| !draft.is_unknown && fits(&draft.variant));
    let candidates: Vec<(usize, &str)> = candidates
        .map(|(index, draft)| (index, draft.variant.name.as_str()))
        .collect();
    match (candidates.as_slice(), needed) {
        ([(only, _)], _) => return Some(*only),
        (_, None) => {}
        // It may be one of which it is not known what takes part.
        ([], _) if drafts.iter().any(|draft| draft.is_unknown) => {}
        ([], Some(contract)) => no_control(section, contract),
        ([(_, first), (_, second), ..], Some(_)) => section.findings.error(
            &section.place,
            format!(
                "{} could be compared with `{first}` or `{second}`",
                section.path
            ),
            format!("say which, such as: control = \"{first}\""),
        ),
    }
    None
}

/// A control is run wherever what is compared with it is.
fn serves(control: &ResolvedVariant, variant: &ResolvedVariant) -> bool {
    (control.live || !variant.live) && (control.twin || !variant.twin)
}

fn no_control(section: &Section<'_>, contract: &Contract) {
    section.findings.error(
        &section.place,
        format!(
            "`{}` compares {} with a control, and there is none",
            contract.name, section.path
        ),
        "add a variant with the same periodic task: [variants.none] with placement = \"absent\"",
    );
}

fn named_control(index: usize, named: &Found<&str>, drafts: &[Draft<'_>]) -> Option<usize> {
    let Draft {
        variant,
        section,
        is_unknown,
        ..
    } = drafts.get(index)?;
    let mut all = drafts.iter().map(|draft| &draft.variant);
    let Some(found) = all.clone().position(|other| other.name == named.value) else {
        let controls = all.filter(|other| other.devices.is_empty());
        let names = controls.map(|other| other.name.as_str());
        section.findings.unknown("control", named, names);
        return None;
    };
    let other = all.nth(found)?;
    let name = &other.name;
    let (cause, remedy) = if found == index {
        (
            "a variant cannot be its own control".to_owned(),
            "name another variant",
        )
    } else if *is_unknown || drafts[found].is_unknown {
        return None;
    } else if !other.devices.is_empty() {
        (
            format!("in `{name}` a device takes part, so it is no control"),
            "name a variant with placement = \"absent\"",
        )
    } else if other.periodic() != variant.periodic() {
        (
            format!("`{name}` has other periodic tasks, so the gaps do not compare"),
            "name a control with the same periodic tasks",
        )
    } else if !serves(other, variant) {
        (
            format!("`{name}` is not run on every host that this variant is run on"),
            "give both the same `on`",
        )
    } else {
        return Some(found);
    };
    section.findings.error(&named.place, cause, remedy);
    None
}
