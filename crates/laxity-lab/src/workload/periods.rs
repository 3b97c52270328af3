//! How long periods are.

use laxity_model::Span;

use super::{Draws, RecipeError, automotive};

/// How the periods of a set are drawn, each independent of the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Periods {
    /// Log-uniform: each factor as likely as any other (Emberson, Stafford, Davis, "Techniques for the synthesis of multiprocessor
    /// tasksets", WATERS 2010). A number whose logarithm is uniform in [ln `least`, ln (`most` + `grain`)) is rounded down to a
    /// multiple of `grain`.
    LogUniform {
        /// The shortest.
        least: Span,
        /// The longest.
        most: Span,
        /// All are multiples of this.
        grain: Span,
    },
    /// From 1 ms to 1 s, with the shares that the functions of engine control have: [`automotive::CLASSES`].
    Automotive,
}

impl Periods {
    /// One period.
    #[must_use]
    pub fn draw(&self, draws: &mut Draws) -> Span {
        match *self {
            Self::LogUniform { least, most, grain } => {
                let [least, most, grain] = [least, most, grain].map(Span::as_nanos);
                let low = libm::log(least as f64);
                let high = libm::log(most as f64 + grain as f64);
                let drawn = libm::exp(low + draws.unit() * (high - low)) as u64;
                // Rounding in `exp` may leave the range by a tick.
                Span::from_nanos((drawn / grain * grain).clamp(least, most))
            }
            Self::Automotive => automotive::class(draws).period(),
        }
    }

    /// Whether there is anything to be drawn.
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        match *self {
            Self::LogUniform { least, most, grain } => {
                let [least, most, grain] = [least, most, grain].map(Span::as_nanos);
                let multiples = grain > 0 && least % grain == 0 && most % grain == 0;
                // Beyond 2⁵³ a float is not exact to the tick any more.
                if multiples && 0 < least && least <= most && most < 1 << 53 {
                    Ok(())
                } else {
                    Err(RecipeError::Periods { least, most, grain })
                }
            }
            Self::Automotive => Ok(()),
        }
    }
}
