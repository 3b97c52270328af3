//! Inner products and delay lines, written so that every processor level computes the same bits.
//!
//! Sixteen independent accumulators are reduced in a fixed order: the compiler may use vectors of
//! any width up to that, and the result stays the same to the last bit.

const LANES: usize = 16;
const HALF: usize = LANES / 2;

/// Sums lanes in a fixed order.
#[inline]
fn reduce<const N: usize>(mut lanes: [f32; N]) -> f32 {
    let mut width = N / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Σ a\[i\]·b\[i\]. Lengths must be equal; a multiple of 16 is fastest.
#[inline]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let mut tail = 0.0;
    for (x, y) in a_chunks.remainder().iter().zip(b_chunks.remainder()) {
        tail += x * y;
    }
    for (x, y) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    reduce(lanes) + tail
}

/// Two inner products with the same `common` factor, which is loaded once. Lengths must be equal
/// and a multiple of 8.
#[inline]
pub(crate) fn dot2(pair: [&[f32]; 2], common: &[f32]) -> [f32; 2] {
    debug_assert!(
        pair.iter().all(|a| a.len() == common.len()) && common.len().is_multiple_of(HALF)
    );
    let (mut first, mut second) = ([0.0_f32; HALF], [0.0_f32; HALF]);
    let chunks = pair[0].chunks_exact(HALF).zip(pair[1].chunks_exact(HALF));
    for ((a, b), x) in chunks.zip(common.chunks_exact(HALF)) {
        for lane in 0..HALF {
            first[lane] += a[lane] * x[lane];
            second[lane] += b[lane] * x[lane];
        }
    }
    [reduce(first), reduce(second)]
}

/// y\[i\] += gain·x\[i\].
#[inline]
pub(crate) fn axpy(gain: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += gain * x;
    }
}

/// The newest samples of a signal, oldest first, always contiguous in memory.
#[derive(Debug, Clone)]
pub(crate) struct DelayLine {
    buffer: Vec<f32>,
    length: usize,
    end: usize,
}

impl DelayLine {
    /// Remembers `length` samples, all zero at first.
    pub(crate) fn new(length: usize) -> Self {
        // Moving the window to the front once in so many samples costs less than wrapping.
        Self {
            buffer: vec![0.0; length + 8 * length.max(64)],
            length,
            end: length,
        }
    }

    /// Takes the next sample and forgets the oldest.
    #[inline]
    pub(crate) fn push(&mut self, sample: f32) {
        if self.end == self.buffer.len() {
            let keep = self.length - 1;
            self.buffer.copy_within(self.end - keep.., 0);
            self.end = keep;
        }
        self.buffer[self.end] = sample;
        self.end += 1;
    }

    /// `length` samples, the last of which is `back` samples old (0: the newest).
    #[inline]
    pub(crate) fn window(&self, length: usize, back: usize) -> &[f32] {
        debug_assert!(length + back <= self.length);
        &self.buffer[self.end - back - length..self.end - back]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dot_agrees_with_the_plain_sum(
            pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 0..200)
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            prop_assert!((f64::from(dot(&a, &b)) - plain).abs() < 1e-4);
        }

        #[test]
        fn a_delay_line_holds_the_last_samples(
            samples in proptest::collection::vec(-1.0_f32..1.0, 5..2000)
        ) {
            let mut line = DelayLine::new(5);
            for (count, sample) in samples.iter().enumerate() {
                line.push(*sample);
                if count >= 4 {
                    prop_assert_eq!(line.window(5, 0), &samples[count - 4..=count]);
                    prop_assert_eq!(line.window(3, 1), &samples[count - 3..count]);
                }
            }
        }
    }
}
