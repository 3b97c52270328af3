//! Random sets of reservations, the same everywhere for the same seed.

use laxity_model::policy::slots::SlotTable;
use laxity_model::{Reservation, Service, Span};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

/// Everything is asked for in parts of this many.
const WHOLE: u64 = 1_000_000_000;

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in 0..end, but for some 10⁻⁹.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Log-uniform from 1 to 100 ms, in whole microseconds: 1,000 · 100^u for a u of 32 binary places, by nothing but square roots
    /// and products, which round the same on every machine.
    fn period_us(&mut self) -> u64 {
        let bits = self.next() >> 32;
        let mut factor = 100.0_f64;
        let mut period = 1_000.0;
        for place in (0..32).rev() {
            factor = factor.sqrt();
            if bits >> place & 1 == 1 {
                period *= factor;
            }
        }
        period as u64
    }

    /// One to five requests that ask for `total` parts of `WHOLE` together, split uniformly over all ways to split it, as UUniFast
    /// does (Bini, Buttazzo 2005); no period divides another. No service is less than `shortest`.
    fn requests(&mut self, total: u64, shortest: Service) -> Vec<Reservation> {
        let count = 1 + self.below(5);
        let mut cuts: Vec<u64> = (1..count).map(|_| self.below(total + 1)).collect();
        cuts.extend([0, total]);
        cuts.sort_unstable();
        let mut periods_us: Vec<u64> = Vec::new();
        while periods_us.len() < count as usize {
            let period = self.period_us();
            let harmonic =
                |other: &u64| period.is_multiple_of(*other) || other.is_multiple_of(period);
            if !periods_us.iter().any(harmonic) {
                periods_us.push(period);
            }
        }
        let shares = cuts.windows(2).map(|cut| cut[1] - cut[0]);
        let requests = periods_us.iter().zip(shares).map(|(&period_us, share)| {
            let service = Service::from_nanos(period_us * share / (WHOLE / 1_000));
            Reservation::new(service.max(shortest), Span::from_micros(period_us)).unwrap()
        });
        requests.collect()
    }

    /// Requests for up to four fifths of the processor, uniform.
    pub(crate) fn up_to_four_fifths(&mut self, shortest: Service) -> Vec<Reservation> {
        let total = 1 + self.below(WHOLE / 5 * 4);
        self.requests(total, shortest)
    }

    /// Requests for four fifths of the processor.
    pub(crate) fn four_fifths(&mut self, shortest: Service) -> Vec<Reservation> {
        self.requests(WHOLE / 5 * 4, shortest)
    }
}

/// How often the processor is given or taken by a table: two edges a slot, per 1,000 seconds, rounded up.
pub(crate) fn edges_per_1000_s(table: &SlotTable) -> u64 {
    let edges = 2 * table.slots().len() as u128 * 1_000_000_000_000;
    let rate = edges.div_ceil(u128::from(table.cycle().as_nanos()));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
