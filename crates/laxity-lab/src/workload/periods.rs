//! How long periods are.

use laxity_model::Span;

use super::{Draws, RecipeError};

/// How the periods of a set are drawn, each independent of the others: log-uniform, each factor as likely as any other (Emberson, Stafford,
/// Davis, "Techniques for the synthesis of multiprocessor tasksets", WATERS 2010). A number whose logarithm is uniform in
/// [ln `least`, ln (`most` + `grain`)) is rounded down to a multiple of `grain`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Periods {
    /// The shortest.
    pub least: Span,
    /// The longest.
    pub most: Span,
    /// All are multiples of this.
    pub grain: Span,
}

impl Periods {
    fn nanos(self) -> [u64; 3] {
        [self.least, self.most, self.grain].map(Span::as_nanos)
    }

    /// One period.
    pub fn draw(self, draws: &mut Draws) -> Span {
        let [least, most, grain] = self.nanos();
        let low = libm::log(least as f64);
        let high = libm::log(most as f64 + grain as f64);
        let drawn = libm::exp(low + draws.unit() * (high - low)) as u64;
        // Rounding in `exp` may leave the range by a tick.
        Span::from_nanos((drawn / grain * grain).clamp(least, most))
    }

    /// Whether there is anything to be drawn.
    pub(super) fn check(self) -> Result<(), RecipeError> {
        let [least, most, grain] = self.nanos();
        let multiples = grain > 0 && least % grain == 0 && most % grain == 0;
        // Beyond 2⁵³ a float is not exact to the tick any more.
        if multiples && 0 < least && least <= most && most < 1 << 53 {
            Ok(())
        } else {
            Err(RecipeError::Periods { least, most, grain })
        }
    }
}
