//! Sets of soft devices, served together: what the studies of several devices and of several processors run.
//!
//! * [`kind`]: the devices. [`demand`]: which reservations a set needs, from the analysis, and whether they can be had.
//! * [`system`]: the sets that a study declares, placed on processors, with what was seen of them.
//! * [`serving`], [`install`], [`run`]: a run, and what was seen of each device.
//! * [`load`]: every device's work repeated until it takes the share that it is said to take, on this machine.

pub mod demand;
pub mod install;
pub mod kind;
pub mod load;
pub mod run;
pub mod serving;
pub mod system;

use laxity_lab::bench::Request;
use laxity_lab::bench::load::Trouble;
use laxity_model::Span;

use kind::Kind;
use run::{Outcome, Seen, Setup};

/// How long a run is, for each repeat.
const LENGTH: Span = Span::from_secs(3);
/// No run is longer than so many times that.
const MOST_REPEATS: u32 = 1_000;

/// How long runs are.
pub fn length(request: &Request) -> Span {
    LENGTH * u64::from(request.repeats.unwrap_or(1).clamp(1, MOST_REPEATS))
}

/// What a run is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To find the load of a device on this machine.
    Load(Kind),
    /// To see how long calls of a device take on this machine.
    Calls(Kind),
    /// To see what becomes of the devices of the system of this number.
    System(usize),
}

/// A run of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// What it is made for.
    pub purpose: Purpose,
    /// What is run.
    pub setup: Setup,
}

/// A run and what was seen of it.
pub type Trial = (Case, Outcome);

/// Whether something holds of all devices, and what was seen; `None` of no devices, of which it neither holds nor does not.
pub fn so_for_all(
    devices: &[(String, &Seen)],
    holds: impl Fn(&Seen) -> bool,
) -> Option<(bool, String)> {
    if devices.is_empty() {
        return None;
    }
    let wrong = devices.iter().filter(|(_, seen)| !holds(seen));
    let wrong = wrong.map(|(name, seen)| {
        let (samples, frames) = (seen.counts.damage(), seen.counts.frames_lost);
        format!("{name}: {samples} samples, {frames} frames")
    });
    let wrong: Vec<String> = wrong.collect();
    Some(match wrong.is_empty() {
        true => (true, format!("so for all {} devices", devices.len())),
        false => (false, wrong.join("; ")),
    })
}

/// Why nothing is claimed of these devices on this machine but what is beyond doubt: the far end, which is emulated on another processor, came too late. That
/// is no fault of who is observed.
pub fn doubt(devices: &[(String, &Seen)]) -> Option<String> {
    let undelivered = devices.iter().map(|(_, seen)| seen.counts.undelivered);
    let undelivered = undelivered.sum::<u64>();
    (undelivered > 0).then(|| Trouble::Undelivered(undelivered).to_string())
}

/// What belongs to each kind, in the order of their first.
fn by_kind<T>(all: impl IntoIterator<Item = T>, kind: impl Fn(&T) -> Kind) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for one in all {
        match groups
            .iter_mut()
            .find(|group| kind(&group[0]) == kind(&one))
        {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// So many devices of a kind in words: `2 × modem`.
fn counted(count: usize, kind: Kind) -> String {
    match count {
        1 => kind.name(),
        _ => format!("{count} × {}", kind.name()),
    }
}

/// A set in words: `2 × modem, audio player`.
pub fn name_of(kinds: &[Kind]) -> String {
    let groups = by_kind(kinds, |kind| **kind).into_iter();
    let words = groups.map(|group| counted(group.len(), *group[0]));
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
    fn of_no_device_anything_neither_holds_nor_does_not() {
        assert_eq!(so_for_all(&[], |_| true), None);
        assert_eq!(so_for_all(&[], |_| false), None);
    }
}
