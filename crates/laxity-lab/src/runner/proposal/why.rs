//! Why nothing can be proposed, in words.

use laxity_model::analysis::devices::Open;

use super::{OpenDevice, SHORTEST_PERIOD, format_reservation, too_short};
use crate::runner::together::Nothing;

impl OpenDevice {
    /// Why nothing would do, even if nobody else were there.
    pub(super) fn why_never(&self) -> Option<String> {
        let none = match (self.proposal.open, self.choice.first()) {
            (_, Some(_)) => return None,
            (Open::Service(period), None) if period < SHORTEST_PERIOD => too_short(period),
            (_, None) => format!("there is no such reservation as {}", self.proposal.why()),
        };
        Some(format!(
            "nothing can be proposed for `{}` by {}: {none}",
            self.name, self.enforcer
        ))
    }

    /// What it would do with if nobody else were there, and why with that.
    fn would(&self) -> String {
        let would = self.choice.first().map(format_reservation);
        format!("{}, {}", would.unwrap_or_default(), self.proposal.why())
    }
}

/// Why nothing is proposed to devices each of which could be served if nobody else were there; `short`: what is if each asks for what it would do with.
pub(super) fn nothing(open: &[OpenDevice], nothing: &Nothing, short: Option<String>) -> String {
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

/// Who would be granted what they would do with, and be late with it beside each other.
pub(super) fn unserved(open: &[OpenDevice], who: &[usize]) -> String {
    let names: Vec<String> = who
        .iter()
        .filter_map(|one| Some(format!("`{}`", open.get(*one)?.name)))
        .collect();
    format!(
        "with that {} would have it, and be late beside all else",
        names.join(" and ")
    )
}
