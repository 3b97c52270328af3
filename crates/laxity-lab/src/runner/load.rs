//! How often a device's work is repeated, so that it takes the share of this machine that it is said to take.

/// A load that was tried: how often the work was repeated, and the share of a processor that it took, in parts per million.
pub type Tried = (usize, u64);

/// The repeats that take `wanted_ppm`, on the line through a load of few repeats and one of many; at most `most`, where this machine is too
/// fast for the share.
pub fn repeats(wanted_ppm: u64, [few, many]: [Tried; 2], most: usize) -> usize {
    let per_step = many.1.saturating_sub(few.1).max(1);
    let step = many.0.saturating_sub(few.0) as u64;
    // wanted = at few + (repeats − few) · per_step / step
    let more = (wanted_ppm.saturating_sub(few.1) * step + per_step / 2) / per_step;
    let fewer = (few.1.saturating_sub(wanted_ppm) * step + per_step / 2) / per_step;
    let repeats = (few.0 as u64 + more).saturating_sub(fewer);
    usize::try_from(repeats).map_or(most, |repeats| repeats.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_met_by_the_line_through_two_others() {
        let tried = [(20, 40_000), (70, 140_000)];
        assert_eq!(repeats(100_000, tried, 2_000), 50);
        assert_eq!(repeats(20_000, tried, 2_000), 10);
        assert_eq!(repeats(0, tried, 2_000), 0);
        assert_eq!(repeats(900_000_000, tried, 2_000), 2_000);
    }
}
