//! The histogram against a sorted list.

use laxity_model::base::histogram::Histogram;
use proptest::prelude::*;

/// Values of all sizes: small ones and spread ones are both likely.
fn values() -> impl Strategy<Value = Vec<u64>> {
    let value = (0_u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift);
    prop::collection::vec(value, 0..200)
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

proptest! {
    #[test]
    fn totals_are_exact(values in values()) {
        let seen = histogram(&values);
        prop_assert_eq!(seen.count(), values.len() as u64);
        prop_assert_eq!(seen.sum(), values.iter().map(|v| u128::from(*v)).sum::<u128>());
        prop_assert_eq!(seen.min(), values.iter().min().copied());
        prop_assert_eq!(seen.max(), values.iter().max().copied());
        prop_assert_eq!(seen.buckets().map(|b| b.count).sum::<u64>(), seen.count());
        for bucket in seen.buckets() {
            let inside = values.iter().filter(|v| (bucket.low..=bucket.high).contains(v)).count();
            prop_assert_eq!(inside as u64, bucket.count);
        }
    }

    #[test]
    fn percentiles_enclose_the_nearest_rank(mut values in values(), ppm in 0_u32..=1_000_000) {
        let seen = histogram(&values);
        values.sort_unstable();
        let Some(bounds) = seen.percentile_bounds(ppm) else {
            prop_assert!(values.is_empty());
            return Ok(());
        };
        let rank = (values.len() as u128 * u128::from(ppm)).div_ceil(1_000_000).max(1) as usize;
        let exact = values[rank - 1];
        prop_assert!(bounds.0 <= exact && exact <= bounds.1);
        prop_assert!(bounds.1 - exact <= exact / 128);
        prop_assert_eq!(seen.percentile(ppm), Some(bounds.1));
    }

    #[test]
    fn merging_is_recording_both(first in values(), second in values()) {
        let mut merged = histogram(&first);
        merged.merge(&histogram(&second));
        let both: Vec<u64> = first.iter().chain(&second).copied().collect();
        prop_assert!(merged.buckets().eq(histogram(&both).buckets()));
        prop_assert_eq!((merged.min(), merged.max(), merged.sum()), {
            let both = histogram(&both);
            (both.min(), both.max(), both.sum())
        });
    }
}

#[test]
fn small_values_are_exact() {
    let seen = histogram(&(0..256).collect::<Vec<u64>>());
    assert_eq!(seen.buckets().count(), 256);
    assert_eq!(seen.percentile(500_000), Some(127));
}

#[test]
fn one_of_a_thousand_is_beyond_p999() {
    let mut seen = histogram(&[1_000; 999]);
    seen.record(5_000);
    assert_eq!(seen.percentile(999_000).map(|v| v / 8), Some(1_000 / 8));
    assert_eq!(seen.percentile(999_001), Some(5_000));
    assert_eq!(seen.mean(), Some(1_004));
    assert_eq!(Histogram::new().mean(), None);
}
