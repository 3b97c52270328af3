//! Why nothing can be proposed, in words.

use laxity_model::analysis::devices::Open;

use super::{OpenDevice, SHORTEST_PERIOD, format_reservation, settle_together, too_short};
use crate::runner::left::Left;
use crate::runner::together::Nothing;
use crate::scenario::ResolvedVariant;

impl OpenDevice {
    /// Why nothing would do, even if nobody else reserved anything.
    pub(super) fn why_never(&self, variant: &ResolvedVariant) -> Option<String> {
        let none = match (self.proposal.open, self.choice.first()) {
            (_, Some(_)) => return None,
            (Open::Service(period), None) if period < SHORTEST_PERIOD => too_short(period),
            (_, None) => format!("there is no such reservation as {}", self.proposal.why()),
        };
        let beside = self.in_the_way(variant).unwrap_or_default();
        Some(format!(
            "nothing can be proposed for `{}` by {}: {none}{beside}",
            self.name, self.enforcer
        ))
    }

    /// What would do if nobody took anything from its reservation, and which of the others do, each by itself; `None` if nothing would do then.
    fn in_the_way(&self, variant: &ResolvedVariant) -> Option<String> {
        let own = vec![variant.devices[self.place].clone()];
        let alone = ResolvedVariant {
            devices: own,
            tasks: Vec::new(),
            ..variant.clone()
        };
        let would = |variant: &ResolvedVariant| {
            let open = Self::new(variant, 0, self.proposal)?;
            open.choice.first()
        };
        let most = would(&alone)?;
        let takes = |variant: &ResolvedVariant| would(variant) != Some(most);
        let devices = variant.devices.iter().enumerate();
        let devices = devices.filter(|(place, other)| {
            let mut with = alone.clone();
            with.devices.push((*other).clone());
            *place != self.place && takes(&with)
        });
        let tasks = variant.tasks.iter().filter(|task| {
            let mut with = alone.clone();
            with.tasks.push((*task).clone());
            takes(&with)
        });
        let devices = devices.map(|(_, device)| &device.name);
        let names = devices.chain(tasks.map(|task| &task.name));
        let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        // Whatever the order in which they are declared.
        names.sort_unstable();
        let without = match names.is_empty() {
            // Each takes too little to matter by itself.
            true => "all else there".to_owned(),
            false => format!("{}, before which it does not go", names.join(" and ")),
        };
        let most = format_reservation(most);
        Some(format!("; {most} would do without {without}"))
    }

    /// What it would do with if nobody else were there, and why with that.
    fn would(&self) -> String {
        let would = self.choice.first().map(format_reservation);
        format!("{}, {}", would.unwrap_or_default(), self.proposal.why())
    }
}

/// Why nothing is proposed to devices each of which could be served if nobody else were there; `short`: what is if each asks for what it would do with.
pub(super) fn nothing(open: &[&OpenDevice], nothing: &Nothing, short: Option<String>) -> String {
    let cut_short = match nothing.is_cut_short {
        true => "; not all that might do was looked at",
        false => "",
    };
    let short = short.map_or_else(String::new, |short| format!("; {short}"));
    if let [only] = open {
        return format!(
            "nothing can be proposed for `{}` by {}: nothing that is left would do: {}, would not be granted, or not serve it, beside all else{cut_short}{short}",
            only.name,
            only.enforcer,
            only.would()
        );
    }
    let names: Vec<String> = open.iter().map(|one| format!("`{}`", one.name)).collect();
    let would = open
        .iter()
        .map(|one| format!("`{}` by {}: {}", one.name, one.enforcer, one.would()));
    format!(
        "nothing can be proposed for {} together: these would not be granted, or not serve them, beside each other and all else, nor what was tried in their place: {}{cut_short}{short}",
        names.join(" and "),
        would.collect::<Vec<_>>().join("; ")
    )
}

/// Which of several would be served beside all else if the others of them asked for nothing, and with what; nothing of one alone.
pub(super) fn who_fits(variant: &ResolvedVariant, open: &[&OpenDevice], left: &Left) -> String {
    let several = open.iter().filter(|_| open.len() > 1);
    let fits = several.filter_map(|one| {
        let found = settle_together(variant, &[*one], left).ok()?;
        let with = format_reservation(*found.first()?);
        Some(format!("`{}` with {with}", one.name))
    });
    let fits: Vec<String> = fits.collect();
    match fits.is_empty() {
        true => String::new(),
        false => format!("; without the others would fit: {}", fits.join(", or ")),
    }
}

/// Who would be granted what they would do with, and be late with it beside each other.
pub(super) fn unserved(open: &[&OpenDevice], who: &[usize]) -> String {
    let names: Vec<String> = who
        .iter()
        .filter_map(|one| Some(format!("`{}`", open.get(*one)?.name)))
        .collect();
    format!(
        "with that {} would have it, and be late beside all else",
        names.join(" and ")
    )
}
