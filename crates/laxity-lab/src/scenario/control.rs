//! The control of a variant: the one without a device that its gaps are compared with.

use laxity_model::verify::contract::Contract;

use super::contracts::needs_control;
use super::reader::{Found, Section};
use super::types::Variant;
use super::variants::{Draft, Scope, periodic};

/// The variant that this one is compared with.
pub(super) fn control(
    index: usize,
    drafts: &[&Draft<'_>],
    names: &[&str],
    scope: &Scope<'_>,
) -> Option<usize> {
    let Draft {
        variant,
        section,
        control,
    } = drafts.get(index)?;
    if let Some(named) = control {
        return named_control(index, named, drafts, names, scope);
    }
    let contract = |index: &usize| scope.contracts[*index].value.as_ref();
    let needed = variant
        .contracts
        .iter()
        .filter_map(|(index, _)| contract(index))
        .find(|contract| needs_control(contract));
    if variant.devices.is_empty() {
        return None;
    }
    let own = periodic(scope, &variant.tasks);
    let fits = |other: &Draft<'_>| {
        let other = &other.variant;
        other.devices.is_empty() && periodic(scope, &other.tasks) == own && serves(other, variant)
    };
    let candidates: Vec<usize> = (0..drafts.len()).filter(|i| fits(drafts[*i])).collect();
    match (candidates.as_slice(), needed) {
        ([only], _) => Some(*only),
        (_, None) => None,
        ([], Some(contract)) => {
            no_control(section, contract);
            None
        }
        ([first, second, ..], Some(_)) => {
            section.findings.error(
                &section.place,
                format!(
                    "{} could be compared with `{}` or `{}`",
                    section.path, names[*first], names[*second]
                ),
                format!("say which, such as: control = \"{}\"", names[*first]),
            );
            None
        }
    }
}

/// A control is run wherever what is compared with it is.
fn serves(control: &Variant, variant: &Variant) -> bool {
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

fn named_control(
    index: usize,
    named: &Found<&str>,
    drafts: &[&Draft<'_>],
    names: &[&str],
    scope: &Scope<'_>,
) -> Option<usize> {
    let Draft {
        variant, section, ..
    } = drafts.get(index)?;
    let Some(found) = names.iter().position(|name| *name == named.value) else {
        let controls = drafts
            .iter()
            .filter(|draft| draft.variant.devices.is_empty());
        let names = controls.map(|draft| draft.variant.name.as_str());
        section.findings.unknown("control", named, names);
        return None;
    };
    let other = &drafts.get(found)?.variant;
    let wrong = if found == index {
        Some((
            "a variant cannot be its own control".to_owned(),
            "name another variant".to_owned(),
        ))
    } else if !other.devices.is_empty() {
        let cause = format!(
            "in `{}` a device takes part, so it is no control",
            other.name
        );
        Some((
            cause,
            "name a variant with placement = \"absent\"".to_owned(),
        ))
    } else if periodic(scope, &other.tasks) != periodic(scope, &variant.tasks) {
        let cause = format!(
            "`{}` has other periodic tasks, so the gaps do not compare",
            other.name
        );
        Some((
            cause,
            "name a control with the same periodic tasks".to_owned(),
        ))
    } else if !serves(other, variant) {
        let cause = format!(
            "`{}` is not run on every host that this variant is run on",
            other.name
        );
        Some((cause, "give both the same `on`".to_owned()))
    } else {
        None
    };
    match wrong {
        None => Some(found),
        Some((cause, remedy)) => {
            section.findings.error(&named.place, cause, remedy);
            None
        }
    }
}
