//! The phases of a call, and how long those last that the modem itself draws out.

use laxity_model::Span;

use super::card::Setting;

/// Where a call is (Jones, Saroiu §4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// On hook, listening for a ring.
    OnHook,
    /// Off hook: dial tone, digits, ringing, answer tone.
    Dialing,
    /// Both ends learn the line.
    Training,
    /// Data; a retraining on the way counts as this phase too, and is counted apart.
    Connected,
    /// Over: hung up or lost.
    Ended,
}

impl Phase {
    /// All phases, in the order a call goes through them.
    pub const ALL: [Self; 5] = [
        Self::OnHook,
        Self::Dialing,
        Self::Training,
        Self::Connected,
        Self::Ended,
    ];

    /// The phase's name in contracts, tables and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnHook => "on-hook",
            Self::Dialing => "dialing",
            Self::Training => "training",
            Self::Connected => "connected",
            Self::Ended => "ended",
        }
    }

    /// How the card is programmed in this phase.
    pub const fn setting(self) -> Setting {
        match self {
            Self::OnHook | Self::Ended => Setting::ON_HOOK,
            Self::Dialing => Setting::DIALING,
            Self::Training | Self::Connected => Setting::CONNECTED,
        }
    }
}

/// How long the parts of a call last that do not follow from the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// On hook before the modem dials.
    pub on_hook: Span,
    /// The number it dials: digits, `*`, `#` and A to D.
    pub number: &'static str,
    /// A digit's tone, and as long a silence behind it.
    pub digit: Span,
    /// The far end rings so long before it answers.
    pub ringing: Span,
    /// The answer tone's length.
    pub answer_tone: Span,
    /// Silence between the answer tone and the first training signal.
    pub before_training: Span,
    /// Data must last so long for a training to count as a good one.
    pub training_lasts: Span,
}

/// The dial tone must be heard so long before the modem trusts it.
pub const DIAL_TONE: Span = Span::from_millis(450);

/// About what the equalizers of both ends need from the first training signal to data.
pub const TRAINING: Span = Span::from_millis(950);

impl Timing {
    /// A call whose phases last about this long, as far as the protocol lets them: dialing takes no less than 1.8 s and training
    /// about 1 s. The study's call is 2, 9 and 12 s (§6.2.1); what fills them is our reading.
    #[must_use]
    pub fn lasting(on_hook: Span, dialing: Span, training: Span) -> Self {
        let hurried = dialing < Span::from_secs(4);
        let (number, digit) = if hurried { ("42", 60) } else { ("5551234", 95) };
        let digit = Span::from_millis(digit);
        let answer_tone = Span::from_millis(if hurried { 650 } else { 3_300 });
        let spent = DIAL_TONE + digit * (2 * number.len() as u64) + answer_tone;
        Self {
            on_hook,
            number,
            digit,
            ringing: dialing.saturating_sub(spent).max(Span::from_millis(50)),
            answer_tone,
            before_training: training.saturating_sub(TRAINING).max(Span::from_millis(25)),
            training_lasts: Span::from_secs(5),
        }
    }

    /// The study's call, connected in second 23.
    #[must_use]
    pub fn study() -> Self {
        Self::lasting(Span::from_secs(2), Span::from_secs(9), Span::from_secs(12))
    }

    /// Each phase, but as short as it can be.
    #[must_use]
    pub fn short() -> Self {
        Self::lasting(Span::from_millis(100), Span::ZERO, Span::ZERO)
    }
}
