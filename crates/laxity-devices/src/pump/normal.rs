//! Least squares by normal equations: the equalizer's start from a known training sequence.
//!
//! Double precision, because a fractionally spaced equalizer is nearly singular: there is no signal
//! beyond the band.

/// Accumulated equations `v·w = target` for up to two targets at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct NormalEquations {
    unknowns: usize,
    /// Σ v vᵀ, upper triangle, row by row.
    matrix: Vec<f64>,
    /// Σ v·target.
    rhs: [Vec<f64>; 2],
    row: Vec<f64>,
}

impl NormalEquations {
    /// Forgets everything and prepares for `unknowns` unknowns. Memory is kept for the next time.
    pub(crate) fn begin(&mut self, unknowns: usize) {
        self.clear();
        self.unknowns = unknowns;
        self.matrix.resize(unknowns * unknowns, 0.0);
        self.rhs
            .iter_mut()
            .for_each(|rhs| rhs.resize(unknowns, 0.0));
    }

    /// Forgets everything; a clone is then small.
    pub(crate) fn clear(&mut self) {
        self.matrix.clear();
        self.rhs.iter_mut().for_each(Vec::clear);
    }

    /// Adds one equation, whose vector is `parts` in a row. Costs unknowns²/2 products.
    pub(crate) fn add(&mut self, parts: [&[f32]; 2], targets: [f32; 2]) {
        let n = self.unknowns;
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend(
            parts
                .iter()
                .flat_map(|part| part.iter().map(|v| f64::from(*v))),
        );
        for (i, &gain) in row.iter().enumerate() {
            for (sum, v) in self.matrix[i * n + i..(i + 1) * n]
                .iter_mut()
                .zip(&row[i..])
            {
                *sum += gain * v;
            }
        }
        for (rhs, target) in self.rhs.iter_mut().zip(targets) {
            for (sum, v) in rhs.iter_mut().zip(&row) {
                *sum += v * f64::from(target);
            }
        }
        self.row = row;
    }

    /// Solves for both targets with `ridge` times the mean diagonal added to the diagonal. `None`
    /// if the equations do not determine the unknowns. Costs unknowns³/6 products.
    pub(crate) fn solve(&mut self, ridge: f64) -> Option<[Vec<f32>; 2]> {
        let n = self.unknowns;
        let trace: f64 = (0..n).map(|i| self.matrix[i * n + i]).sum();
        for i in 0..n {
            self.matrix[i * n + i] += ridge * trace / n as f64;
        }
        self.factor()?;
        for rhs in &mut self.rhs {
            substitute(&self.matrix, rhs);
        }
        Some([0, 1].map(|i| self.rhs[i].iter().map(|w| *w as f32).collect()))
    }

    /// Cholesky's factor U with UᵀU = A, in place, row by row.
    fn factor(&mut self) -> Option<()> {
        let n = self.unknowns;
        for k in 0..n {
            let (done, rest) = self.matrix.split_at_mut((k + 1) * n);
            let row = &mut done[k * n + k..];
            let scale = 1.0 / row[0].sqrt();
            // A pivot that is zero, negative or no number has no finite scale.
            if !scale.is_finite() {
                return None;
            }
            row.iter_mut().for_each(|v| *v *= scale);
            for i in k + 1..n {
                let gain = row[i - k];
                let target = &mut rest[(i - k - 1) * n + i..(i - k) * n];
                for (a, u) in target.iter_mut().zip(&row[i - k..]) {
                    *a -= gain * u;
                }
            }
        }
        Some(())
    }
}

/// Solves UᵀU x = b in place.
fn substitute(factor: &[f64], x: &mut [f64]) {
    let n = x.len();
    for k in 0..n {
        x[k] /= factor[k * n + k];
        let value = x[k];
        for i in k + 1..n {
            x[i] -= factor[k * n + i] * value;
        }
    }
    for k in (0..n).rev() {
        let row = &factor[k * n..(k + 1) * n];
        let sum: f64 = (k + 1..n).map(|i| row[i] * x[i]).sum();
        x[k] = (x[k] - sum) / row[k];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::base::random::SplitMix64;

    #[test]
    fn finds_the_weights_that_made_the_targets() {
        let mut random = SplitMix64::new(3);
        let mut uniform = || (random.draw() >> 40) as f32 / (1 << 23) as f32 - 1.0;
        let weights: Vec<[f32; 2]> = (0..20).map(|_| [uniform(), uniform()]).collect();
        let mut equations = NormalEquations::default();
        equations.begin(20);
        for _ in 0..100 {
            let v: Vec<f32> = (0..20).map(|_| uniform()).collect();
            let target = [0, 1].map(|i| v.iter().zip(&weights).map(|(v, w)| v * w[i]).sum());
            equations.add([&v[..7], &v[7..]], target);
        }
        let solution = equations
            .solve(0.0)
            .expect("100 equations determine 20 unknowns");
        for (i, w) in weights.iter().enumerate() {
            assert!((solution[0][i] - w[0]).abs() < 1e-4);
            assert!((solution[1][i] - w[1]).abs() < 1e-4);
        }
    }

    #[test]
    fn silence_determines_nothing() {
        let mut equations = NormalEquations::default();
        equations.begin(4);
        equations.add([&[0.0; 4], &[]], [1.0, 0.0]);
        assert!(equations.solve(1e-9).is_none());
    }
}
