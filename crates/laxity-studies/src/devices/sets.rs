//! Which sets are tried.

use super::kind::Kind;

/// Devices on one processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    /// The figure it belongs to.
    pub figure: &'static str,
    /// Its devices.
    pub kinds: Vec<Kind>,
}

/// The figures, and what each shows.
pub const FIGURES: [(&str, &str); 6] = [
    (
        "modems",
        "n modems on n drivers, and n modems on one driver",
    ),
    ("modem-audio", "a modem beside a digital audio player"),
    ("dsl", "DSL, G.lite and full rate, alone and beside a modem"),
    (
        "radio",
        "a radio receiver, alone and beside a modem and a player",
    ),
    (
        "together",
        "a modem, a player, G.lite and a radio on one processor",
    ),
    ("refused", "sets that are too much, and what would fit"),
];

/// All sets, by figure.
#[must_use]
pub fn sets() -> Vec<Set> {
    use Kind::{Audio, FullRate, GLite, Modem, Modems, Radio};
    let kinds: [(usize, &[Kind]); 14] = [
        (0, &[Modem]),
        (0, &[Modem; 2]),
        (0, &[Modem; 3]),
        (0, &[Modem; 4]),
        (0, &[Modem; 5]),
        (0, &[Modems(2)]),
        (0, &[Modems(4)]),
        (1, &[Modem, Audio]),
        (2, &[GLite]),
        (2, &[FullRate]),
        (2, &[FullRate, Modem]),
        (3, &[Radio]),
        (3, &[Radio, Modem, Audio]),
        (4, &[Modem, Audio, GLite, Radio]),
    ];
    let of = |(figure, kinds): &(usize, &[Kind])| Set {
        figure: FIGURES[*figure].0,
        kinds: kinds.to_vec(),
    };
    kinds.iter().map(of).collect()
}

/// Sets that are expected to be too much.
#[must_use]
pub fn too_much() -> Vec<Vec<Kind>> {
    use Kind::{Audio, FullRate, GLite, Modem, Radio};
    vec![
        vec![FullRate, GLite, Modem, Audio],
        vec![FullRate, Radio, Modem, Modem, Audio],
        vec![Modem; 6],
    ]
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
}
