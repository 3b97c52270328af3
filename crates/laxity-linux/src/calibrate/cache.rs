//! What a thread loses to the caches when another has run.

use laxity_model::Span;

use super::bench::Bench;
use super::samples::Samples;
use super::{Result, clock};

/// What the thread works on: as much as a soft modem's filters, tables and state.
pub const WORKING_SET_BYTES: usize = 64 << 10;
/// What the other one walks through meanwhile: as much as the second cache of many processors holds.
pub const WALKED_BYTES: usize = 1 << 20;

const _: () = assert!(WORKING_SET_BYTES.is_power_of_two() && WALKED_BYTES.is_power_of_two());

const PARTS: usize = 10;
const SAMPLES: usize = 2_000;
/// The shortest line of a cache that is in use.
const LINE_BYTES: usize = 64;
/// A step through the lines that is prime to their number (a power of two) and leaves no pattern that the processor would fetch ahead.
const STRIDE: usize = 389;

/// How much longer a walk through the working set takes after one through the other's than right after itself.
pub(super) fn reloads(bench: &Bench<'_>) -> Result<Samples> {
    let working_set = vec![1_u8; WORKING_SET_BYTES];
    let walked = vec![1_u8; WALKED_BYTES];
    bench.in_parts(SAMPLES, PARTS, |each| {
        let (cold, hot) = bench.alone(|| {
            let (mut cold, mut hot) = (Samples::with_room(each), Samples::with_room(each));
            for _ in 0..each {
                walk(&walked);
                cold.push(timed(&working_set));
                hot.push(timed(&working_set));
            }
            (cold, hot)
        })?;
        Ok(vec![cold.less(hot.median())])
    })
}

fn timed(bytes: &[u8]) -> Span {
    let before = clock::now();
    walk(bytes);
    clock::now().saturating_since(before)
}

/// Reads a byte of each line, in no order that looks like one.
fn walk(bytes: &[u8]) {
    // The compiler must not know what stands there.
    let bytes = std::hint::black_box(bytes);
    // A power of two: a division would take longer than most loads.
    let mask = bytes.len() / LINE_BYTES - 1;
    let sum = (0..=mask).fold(0_u32, |sum, line| {
        sum.wrapping_add(u32::from(bytes[((line * STRIDE) & mask) * LINE_BYTES]))
    });
    std::hint::black_box(sum);
}
