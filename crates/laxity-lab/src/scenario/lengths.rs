//! The two lengths of a scenario.

use laxity_model::{Reservation, Span};

use super::devices::Phases;

/// Which of a scenario's two lengths is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Length {
    /// All variants in a minute or two.
    #[default]
    Quick,
    /// The study's phases and its file, several times.
    Full,
}

/// How long one length is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LengthSpec {
    /// How often each variant is run, interleaved; medians are judged. 1 to 1,000.
    pub repeats: u32,
    /// The file's size; more than zero.
    pub bytes: u64,
    /// The phases before the connection.
    pub phases: Phases,
    /// After this a run with a transfer is over, complete or not.
    pub limit: Span,
    /// How long a run without a transfer is.
    pub idle: Span,
    /// What is reserved where laxity is to propose it otherwise.
    pub auto: Option<Reservation>,
}

impl LengthSpec {
    /// Of [`Length::Quick`].
    pub const QUICK: Self = Self {
        repeats: 1,
        bytes: 4_000,
        phases: Phases::SHORT,
        limit: Span::from_millis(5_200),
        idle: Span::from_millis(1_050),
        auto: None,
    };
    /// Of [`Length::Full`]: 200,000 bytes (§6.5), and time enough for the slowest transfer of the study (table 2: 364 s); 30 s for 30,000 wake-ups
    /// (§6.3.1).
    pub const FULL: Self = Self {
        repeats: 5,
        bytes: 200_000,
        phases: Phases::STUDY,
        limit: Span::from_secs(400),
        idle: Span::from_secs(30),
        auto: None,
    };
}
