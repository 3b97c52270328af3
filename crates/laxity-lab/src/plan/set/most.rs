//! The largest number of which a method still says yes.

use laxity_model::analysis::Overflow;

use super::attempt::Method;

/// The largest number that is admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Most {
    pub(super) number: u64,
    pub(super) method: Method,
    /// Whether the next larger one is refused; else nobody knows.
    pub(super) is_exact: bool,
}

/// What the methods say of a set together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Admitted(Method),
    Refused,
    TooLong,
}

/// The largest number from 1 to `most` that is admitted, if those below it are too; looked for from `near` on upwards, by doubling.
pub(super) fn largest(
    near: u64,
    most: u64,
    test: impl Fn(u64) -> Result<Found, Overflow>,
) -> Result<Option<Most>, Overflow> {
    let mut next = near.clamp(1, most);
    let mut low = None;
    let high = loop {
        match test(next)? {
            // Nothing larger is asked about.
            Found::Admitted(method) if next == most => {
                return Ok(Some(Most {
                    number: most,
                    method,
                    is_exact: false,
                }));
            }
            Found::Admitted(method) => low = Some((next, method)),
            other => break (next, other == Found::Refused),
        }
        next = next.saturating_mul(2).min(most);
    };
    let low = match low {
        None if high.0 > 1 => match test(1)? {
            Found::Admitted(method) => Some((1, method)),
            Found::Refused | Found::TooLong => None,
        },
        low => low,
    };
    low.map(|low| bisect(low, high, test)).transpose()
}

/// The largest number from `low`, which is admitted, on that is admitted, if those below it are too; `high` is not, and it is known
/// whether that is sure.
pub(super) fn bisect(
    low: (u64, Method),
    high: (u64, bool),
    test: impl Fn(u64) -> Result<Found, Overflow>,
) -> Result<Most, Overflow> {
    let ((mut number, mut method), (mut high, mut is_exact)) = (low, high);
    while number + 1 < high {
        let middle = number + (high - number) / 2;
        match test(middle)? {
            Found::Admitted(other) => (number, method) = (middle, other),
            other => (high, is_exact) = (middle, other == Found::Refused),
        }
    }
    Ok(Most {
        number,
        method,
        is_exact,
    })
}
