//! How card and driver behave where the study could not look.

use laxity_model::Span;

use super::card::Setting;

/// How the vendor's driver and card behave where the study could not look: one hypothesis, declared here once.
///
/// The study had no source of the signal processing (Jones, Saroiu §3.2.2) and only a guess why a gap of 12.5 ms is too long (§6.6: "the
/// code appears to sometimes not successfully process an old interrupt's work once a new one has occurred"). Ours:
///
/// * The output is filled one nominal period ahead, 12.5 ms: so much silence is put into the ring when the card is programmed, and every call
///   appends as many samples as its block has.
/// * A call *delivers progressively*: it writes its output in pieces while it computes. So it need not be complete within the lead. It
///   must begin within it, and then keep ahead of the card.
/// * A call that begins after the output has run dry *abandons* its block: neither input nor output of it are of use any more. It costs
///   next to nothing, so the driver catches up.
///
/// From the first two follow both lines of the study's model; where the second lies was read from it. With a reservation X/Y for C in every T, a piece waits for the gap Y − X, if X/Y is no
/// less than C/T; if it is less, for longer and longer. Nothing here knows of reservations.
///
/// In the twin the cost of a call is charged in as many parts as it delivers. Live a call has computed all of its output before it delivers
/// the first piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hypothesis {
    /// How far the output is filled ahead of the card when an interrupt is raised and all before it are served; at least.
    pub output_lead: Span,
    /// In how many pieces a call delivers its output, from 1.
    pub pieces: u32,
    /// How long the card pauses when it is programmed anew (§6.2.1: each change delays one interrupt, six in figure 1).
    pub programming_pause: Span,
}

impl Hypothesis {
    /// The lead: taken from the study's line of equal gaps (figure 17), which sums up its table 3. Pieces: more than one, chosen by the rows 2/13 and
    /// 4/17; that they are eight is assumed. The pause: assumed. So of table 3 these explain the classes, and are not independent of them.
    pub const STUDY: Self = Self {
        output_lead: Span::from_micros(12_500),
        pieces: 8,
        programming_pause: Span::from_millis(3),
    };

    /// The output's lead in samples of a card that is set so.
    pub const fn lead_samples(&self, setting: Setting) -> u64 {
        self.output_lead.as_nanos() * setting.rate_hz / 1_000_000_000
    }
}
