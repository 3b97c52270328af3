//! What a processor was held for by nobody who was found, each time no longer than the kernel's own work lasts: whether all of it passes for that.

use alloc::vec::Vec;

use super::{is_too_much, share_ppm};
use crate::{Disturbance, Span};

/// What passes for the kernel's own work is added up in any time as long as this. One alone that does ([`KERNELS_OWN`](crate::enforce::KERNELS_OWN)) is as
/// much of it as is not too much.
pub const ADDED_UP: Span = Span::from_secs(1);

/// Of what one processor was held for by nobody who was found ([`Holder::Kernel`](crate::enforce::Holder::Kernel)), in order and apart: what is not known to be
/// the kernel's, because it was [too much](is_too_much) of a [second](ADDED_UP) together. Somebody may take as much as he likes in small pieces, and be gone
/// when looked for each time; the kernel does not.
///
/// ```
/// use laxity_model::verify::contract::not_the_kernels;
/// use laxity_model::{Disturbance, Instant, ProcessorId};
///
/// let held = |[from, to]: [u64; 2]| Disturbance {
///     processor: ProcessorId(0),
///     from: Instant::from_millis(from),
///     to: Instant::from_millis(to),
/// };
/// let seldom = [[0, 9], [1_500, 1_509], [1_600, 1_601]].map(held);
/// assert!(not_the_kernels(&seldom).is_empty());
/// let often = [[0, 9], [1_500, 1_509], [1_600, 1_602]].map(held);
/// assert_eq!(not_the_kernels(&often), often[1..]);
/// ```
#[must_use]
pub fn not_the_kernels(held: &[Disturbance]) -> Vec<Disturbance> {
    let (mut first, mut told, mut together) = (0, 0, Span::ZERO);
    let mut found = Vec::new();
    for (last, one) in held.iter().enumerate() {
        together += one.length();
        while held[first].to + ADDED_UP <= one.to {
            together = together.saturating_sub(held[first].length());
            first += 1;
        }
        if is_too_much(share_ppm(together.as_nanos(), ADDED_UP.as_nanos())) {
            found.extend_from_slice(&held[first.max(told)..=last]);
            told = last + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::KERNELS_OWN;
    use crate::{Instant, ProcessorId};

    /// Held for so long of each so long, in microseconds, so often.
    fn toggle(on_us: u64, every_us: u64, times: u64) -> Vec<Disturbance> {
        let held = |number| {
            let from = Instant::from_micros(5_000 + number * every_us);
            Disturbance {
                processor: ProcessorId(0),
                from,
                to: from + Span::from_micros(on_us),
            }
        };
        (0..times).map(held).collect()
    }

    /// One thread at the highest rank for 9 ms, and then asleep at the lowest for 11: each time no longer than the kernel's own work.
    #[test]
    fn who_takes_half_of_a_processor_in_small_pieces_is_not_the_kernel() {
        let all = toggle(9_000, 20_000, 125);
        assert_eq!(not_the_kernels(&all), all);
        // The first alone is known to be too much with the second.
        assert!(not_the_kernels(&all[..1]).is_empty());
        let small = toggle(150, 1_000, 2_500);
        assert_eq!(not_the_kernels(&small), small);
    }

    #[test]
    fn a_hundredth_of_any_second_is_the_kernels_and_no_more() {
        for (on_us, every_us, is_too_much) in [
            (1_000, 100_000, false),
            (1_000, 99_000, true),
            (1_001, 100_000, true),
            (10_000, 1_000_000, false),
            (10_000, 999_000, true),
            (5_000, 500_000, false),
            (5_001, 500_000, true),
        ] {
            let all = toggle(on_us, every_us, 50);
            let expected = if is_too_much { all.clone() } else { Vec::new() };
            assert_eq!(not_the_kernels(&all), expected, "{on_us} {every_us}");
        }
    }

    /// What was long before or after is as it would be alone.
    #[test]
    fn only_what_is_too_much_together_is_doubted() {
        let before = toggle(2_000, 600_000, 2);
        let moved = |one: &Disturbance| Disturbance {
            from: one.from + Span::from_secs(5),
            to: one.to + Span::from_secs(5),
            ..*one
        };
        let many: Vec<_> = toggle(4_000, 50_000, 3).iter().map(moved).collect();
        let all = [before, many.clone()].concat();
        assert_eq!(not_the_kernels(&all), many);
        assert!(not_the_kernels(&[]).is_empty());
    }

    #[test]
    fn one_alone_that_passes_for_the_kernels_is_as_much_as_passes_together() {
        let share = |span: Span| share_ppm(span.as_nanos(), ADDED_UP.as_nanos());
        assert!(!is_too_much(share(KERNELS_OWN)));
        assert!(is_too_much(share(KERNELS_OWN + Span::from_micros(1))));
    }
}
