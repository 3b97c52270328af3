//! A processor of one's own.

use super::SupplyBound;
use crate::analysis::{Fraction, Result};
use crate::{Service, Span};

/// A processor that does nothing else: sbf(t) = t.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Dedicated;

impl SupplyBound for Dedicated {
    #[inline]
    fn least_service(&self, window: Span) -> Service {
        window.as_full_service()
    }

    #[inline]
    fn window_for(&self, service: Service) -> Result<Span> {
        Ok(service.as_dedicated_span())
    }

    #[inline]
    fn rate(&self) -> Fraction {
        Fraction::ONE
    }

    #[inline]
    fn delay(&self) -> Span {
        Span::ZERO
    }

    #[inline]
    fn is_attained(&self) -> bool {
        true
    }
}
