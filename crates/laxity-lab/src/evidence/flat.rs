//! The file's form of a variant: the figures of its only modem, and of its only periodic task, stand among its own fields, so that who is
//! interested in one device needs no list of components.

use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use super::histogram::HistogramJson;
use super::results::VariantResults;
use super::subjects::{Figures, ModemFigures, PeriodicFigures};
use crate::scenario::kinds::{MODEM, key};

#[derive(serde::Serialize)]
struct Flat<'a> {
    #[serde(flatten)]
    variant: &'a VariantResults,
    #[serde(flatten)]
    modem: Option<&'a ModemFigures>,
    /// All that the modem lost, in either direction: what `samples_lost_undisturbed` is the undisturbed part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_lost: Option<u64>,
    #[serde(flatten)]
    periodic: Option<&'a PeriodicFigures>,
    /// Those of the only modem, and of the only periodic task those that no modem has.
    quantities: BTreeMap<&'a str, &'a HistogramJson>,
}

/// The only figures of a kind, those `without` any if there are none; `None` if there are several.
fn only<'a, T>(
    mut all: impl Iterator<Item = (&'a str, &'a T)>,
    without: Option<&'a T>,
) -> Option<&'a T> {
    let first = all.next().map(|(_, figures)| figures);
    all.next().is_none().then_some(first.or(without)).flatten()
}

fn quantities(variant: &VariantResults) -> BTreeMap<&str, &HistogramJson> {
    let of_only = |is_of_kind: fn(&Figures) -> bool| {
        let mut all = variant.subjects.iter().filter(|s| is_of_kind(&s.figures));
        let only = all.next().filter(|_| all.next().is_none());
        only.into_iter().flat_map(|subject| &subject.quantities)
    };
    let of_modems: Vec<String> = MODEM.quantities.iter().map(|q| key(*q)).collect();
    let of_task = of_only(|figures| matches!(figures, Figures::Periodic(_)));
    let of_task = of_task.filter(|(name, _)| !of_modems.contains(name));
    of_only(|figures| matches!(figures, Figures::SoftModem(_)))
        .chain(of_task)
        .map(|(name, values)| (name.as_str(), values))
        .collect()
}

pub(super) fn variants<S: Serializer>(
    variants: &[VariantResults],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    // Its fields say themselves that there is none.
    let no_task = PeriodicFigures::default();
    let flat = variants.iter().map(|variant| {
        let modem = only(variant.modems(), None);
        Flat {
            variant,
            samples_lost: modem.map(|modem| modem.device.lost()),
            modem,
            periodic: only(variant.periodic(), Some(&no_task)),
            quantities: quantities(variant),
        }
    });
    flat.collect::<Vec<_>>().serialize(serializer)
}
