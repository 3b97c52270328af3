//! A log-linear histogram of integers: 128 buckets an octave, so a bucket is at most 1/128 (0.8 %) of its values wide and
//! values below 256 are exact. Count, sum, minimum and maximum are exact whatever the buckets do.
//!
//! The layout is that of HdrHistogram (G. Tene); nothing is ever out of range, so the totals always add up.

use alloc::vec::Vec;

/// Significant bits below the leading one.
const BITS: u32 = 7;
/// Buckets an octave.
const OCTAVE: usize = 1 << BITS;

/// How often which values were seen. Up to 58 KiB, usually a quarter of that.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Values that a histogram does not tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The smallest value of the bucket.
    pub low: u64,
    /// The largest value of the bucket.
    pub high: u64,
    /// How many values fell into it.
    pub count: u64,
}

/// The bucket of a value. Monotone, and without gaps: every index up to that of the largest is some value's.
const fn index_of(value: u64) -> usize {
    if value < OCTAVE as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - BITS;
    (shift as usize) * OCTAVE + (value >> shift) as usize
}

/// The smallest and the largest value of a bucket.
const fn bounds_of(index: usize) -> (u64, u64) {
    if index < 2 * OCTAVE {
        return (index as u64, index as u64);
    }
    let shift = (index / OCTAVE - 1) as u32;
    let low = ((index % OCTAVE + OCTAVE) as u64) << shift;
    (low, low + ((1 << shift) - 1))
}

impl Histogram {
    /// An empty histogram; it grows to the largest value recorded.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            counts: Vec::new(),
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
        }
    }

    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        let index = index_of(value);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// Adds all that another histogram has seen.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many values were recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether none was.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their exact sum.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The exact smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The exact largest value.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, rounded down.
    pub fn mean(&self) -> Option<u64> {
        (self.count > 0).then(|| (self.sum / u128::from(self.count)) as u64)
    }

    /// The value at this percentile by nearest rank (the smallest recorded value that at least `ppm` parts per million of all do
    /// not exceed), rounded up to the end of its bucket: never too small, too large by less than 1/128.
    pub fn percentile(&self, ppm: u32) -> Option<u64> {
        self.percentile_bounds(ppm).map(|(_, high)| high)
    }

    /// What is known of the value at this percentile: it lies between the two, ends included. O(buckets).
    pub fn percentile_bounds(&self, ppm: u32) -> Option<(u64, u64)> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(ppm.min(1_000_000))).div_ceil(1_000_000);
        let rank = (rank as u64).max(1);
        let mut seen = 0;
        for bucket in self.buckets() {
            seen += bucket.count;
            if seen >= rank {
                return Some((bucket.low.max(self.min), bucket.high.min(self.max)));
            }
        }
        None
    }

    /// The buckets that hold something, by value.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        filled.map(|(index, &count)| {
            let (low, high) = bounds_of(index);
            Bucket { low, high, count }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough for every `u64`: the exact ones, then an octave for each leading bit from `BITS` to 63.
    const BUCKETS: usize = OCTAVE * (65 - BITS as usize);

    #[test]
    fn buckets_tile_all_integers() {
        assert_eq!(bounds_of(0).0, 0);
        assert_eq!(bounds_of(BUCKETS - 1).1, u64::MAX);
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
        for index in 1..BUCKETS {
            let ((_, before), (low, high)) = (bounds_of(index - 1), bounds_of(index));
            assert_eq!(low, before + 1);
            assert_eq!((index_of(low), index_of(high)), (index, index));
            assert!((high - low) <= low / 128, "bucket {index} is too wide");
        }
    }
}
