//! Sets of soft devices, served together: what the studies of several devices and of several processors run.
//!
//! * [`kind`]: the devices. [`demand`]: which reservations a set needs, from the analysis, and whether they can be had.
//! * [`serving`], [`place`], [`run`]: a run, and what was seen of each device.
//! * [`load`]: every device's work repeated until it takes the share that it is said to take, on this machine.
//! * [`tables`]: what is shown of a set.

pub mod demand;
pub mod kind;
pub mod load;
pub mod place;
pub mod run;
pub mod serving;
pub mod tables;

use laxity_lab::bench::Request;
use laxity_model::Span;

use kind::Kind;
use run::{Outcome, Seen, Setup};
use serving::Variant;

/// How long a run is, for each repeat.
const LENGTH: Span = Span::from_secs(3);
/// No run is longer than so many times that.
const MOST_REPEATS: u32 = 1_000;

/// How long runs are.
#[must_use]
pub fn length(request: &Request) -> Span {
    LENGTH * u64::from(request.repeats.unwrap_or(1).clamp(1, MOST_REPEATS))
}

/// What a run is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To find the load of a device on this machine.
    Load(Kind),
    /// To see what becomes of the devices of the set of this number.
    Set(usize),
}

/// A run of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// For progress and errors.
    pub name: String,
    /// What it is made for.
    pub purpose: Purpose,
    /// What is run.
    pub setup: Setup,
}

/// A run and what was seen of it.
pub type Trial = (Case, Outcome);

/// The runs of a setup in each of these ways.
pub fn served<'a>(
    setup: &'a Setup,
    set: usize,
    name: &'a str,
    variants: &'a [Variant],
) -> impl Iterator<Item = Case> + 'a {
    variants.iter().map(move |variant| Case {
        name: format!("{name}: {}", variant.name()),
        purpose: Purpose::Set(set),
        setup: setup.served(*variant),
    })
}

/// What was seen of a set, by variant.
pub fn outcomes(trials: &[Trial], set: usize) -> impl Iterator<Item = (Variant, &Outcome)> {
    let of = trials
        .iter()
        .filter(move |(case, _)| case.purpose == Purpose::Set(set));
    of.map(|(case, outcome)| (case.setup.variant, outcome))
}

/// Whether something holds of all devices, and what was seen: nothing holds of none.
pub fn so_for_all<'a>(
    devices: impl IntoIterator<Item = (String, &'a Seen)>,
    holds: impl Fn(&Seen) -> bool,
) -> (bool, String) {
    let devices: Vec<(String, &Seen)> = devices.into_iter().collect();
    let wrong = devices.iter().filter(|(_, seen)| !holds(seen));
    let wrong = wrong.map(|(name, seen)| {
        let (samples, frames) = (seen.damage(), seen.frames_lost);
        format!("{name}: {samples} samples, {frames} frames")
    });
    let wrong: Vec<String> = wrong.collect();
    match wrong.is_empty() {
        true => (
            !devices.is_empty(),
            format!("so for all {} devices", devices.len()),
        ),
        false => (false, wrong.join("; ")),
    }
}

/// A set in words: `2 × modem, audio player`.
#[must_use]
pub fn name_of(kinds: &[Kind]) -> String {
    let mut counted: Vec<(Kind, usize)> = Vec::new();
    for kind in kinds {
        match counted.iter_mut().find(|(of, _)| of == kind) {
            Some((_, count)) => *count += 1,
            None => counted.push((*kind, 1)),
        }
    }
    let words = counted.iter().map(|(kind, count)| match count {
        1 => kind.name(),
        _ => format!("{count} × {}", kind.name()),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_devices_are_counted() {
        assert_eq!(
            name_of(&[Kind::Modem, Kind::Audio, Kind::Modem]),
            "2 × modem, audio player"
        );
    }

    #[test]
    fn a_claim_about_no_device_does_not_hold() {
        assert!(!so_for_all([], |_| true).0);
    }
}
