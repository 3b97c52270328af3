//! The file's form of a variant: as long as it has one modem and one periodic task at most, their figures stand among its own fields, so
//! that who is interested in one device needs no list of components.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use super::histogram::HistogramJson;
use super::results::VariantResults;
use super::subjects::{ModemFigures, PeriodicFigures};
use crate::scenario::kinds::{MODEM, key};

#[derive(serde::Serialize)]
struct Flat<'a> {
    #[serde(flatten)]
    variant: &'a VariantResults,
    #[serde(flatten)]
    modem: Option<Cow<'a, ModemFigures>>,
    /// The modem's `samples_overwritten`, under the name that the file has had for it from its first version.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_lost: Option<u64>,
    #[serde(flatten)]
    periodic: Option<Cow<'a, PeriodicFigures>>,
    /// Those of the only modem, and of the only periodic task those that no modem has.
    quantities: BTreeMap<&'a str, &'a HistogramJson>,
}

/// The only figures of a kind, those of one that is absent if there are none; `None` if there are several.
fn only<'a, T: Clone>(
    mut all: impl Iterator<Item = (&'a str, &'a T)>,
    absent: impl FnOnce() -> T,
) -> Option<Cow<'a, T>> {
    let first = all.next().map(|(_, figures)| Cow::Borrowed(figures));
    all.next()
        .is_none()
        .then(|| first.unwrap_or_else(|| Cow::Owned(absent())))
}

fn quantities(variant: &VariantResults) -> BTreeMap<&str, &HistogramJson> {
    let of = |names: Vec<&str>| match names[..] {
        [name] => variant.subjects.iter().find(|subject| subject.name == name),
        _ => None,
    };
    let modem = of(variant.modems().map(|(name, _)| name).collect());
    let task = of(variant.periodic().map(|(name, _)| name).collect());
    let shared = |name: &str| {
        let mut of_modems = MODEM.quantities.iter();
        of_modems.any(|quantity| key(*quantity) == name)
    };
    let of_task = task.into_iter().flat_map(|task| &task.quantities);
    let of_task = of_task.filter(|(name, _)| !shared(name));
    let of_modem = modem.into_iter().flat_map(|modem| &modem.quantities);
    of_modem
        .chain(of_task)
        .map(|(name, values)| (name.as_str(), values))
        .collect()
}

pub(super) fn variants<S: Serializer>(
    variants: &[VariantResults],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let flat: Vec<Flat<'_>> = variants
        .iter()
        .map(|variant| {
            let modem = only(variant.modems(), ModemFigures::absent);
            Flat {
                variant,
                samples_lost: modem.as_ref().map(|modem| modem.samples_overwritten),
                modem,
                periodic: only(variant.periodic(), PeriodicFigures::default),
                quantities: quantities(variant),
            }
        })
        .collect();
    flat.serialize(serializer)
}
