//! Blocks that differ, and blocks that come in pieces.

use laxity_model::analysis::devices::{Device, DeviceError};
use laxity_model::{Service, Span};
use proptest::prelude::*;

use super::simulation::is_as_counted;
use super::{cases, table};

/// Small ones whose blocks differ and come in pieces. Samples and pieces fall on whole ticks, so that nothing is rounded.
fn uneven() -> impl Strategy<Value = Device> {
    let blocks = prop_oneof![
        Just([3, 3, 3]),
        Just([4, 4, 1]),
        Just([2, 4, 3]),
        Just([1, 5, 3]),
        Just([4, 3, 2]),
        Just([2, 2, 5]),
    ];
    let numbers = (1_u64..5, 1_u64..4, 1_u64..6, 1_u64..9, 1_u64..4);
    (blocks, numbers, 0..3, prop::option::of(2_u64..12)).prop_map(|(blocks, numbers, kind, g)| {
        let (c, apart, more, lead, pieces) = numbers;
        let pieces = pieces.min(blocks.into_iter().min().unwrap());
        let (work, period) = (Service::from_nanos(c * pieces), Span::from_nanos(3 * apart));
        let ring = blocks.into_iter().max().unwrap() + more;
        let device = match kind {
            0 => Device::capture(work, period, 3, ring),
            1 => Device::playback(work, period, 3, lead),
            _ => Device::duplex(work, period, 3, ring, lead),
        };
        let device = device.and_then(|device| device.uneven(blocks)?.in_pieces(pieces));
        let device = device.unwrap();
        g.map_or(device, |g| device.called_every(Span::from_nanos(g)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256 * cases()))]

    /// Whichever of the blocks is the first, and with work that delivers while it goes on.
    #[test]
    fn of_uneven_blocks_the_answer_is_what_counting_samples_finds(device in uneven(), table in table()) {
        is_as_counted(&device, &table)?;
    }
}

#[test]
fn blocks_and_pieces_that_cannot_be_are_refused() {
    let (work, period) = (Service::from_nanos(1), Span::from_nanos(4));
    let even = Device::duplex(work, period, 3, 4, 8).unwrap();
    assert_eq!(even.uneven([0, 3, 6]), Err(DeviceError::NoBlock));
    let full = even.uneven([4, 2, 3]);
    assert_eq!(full, Err(DeviceError::Ring { ring: 4, block: 4 }));
    let other = even.uneven([4, 3, 3]).unwrap_err();
    let why = "blocks of 4, 3 and 3 samples have not 3 on average";
    assert_eq!(other.to_string(), why);
    let pieces = DeviceError::Pieces {
        block: 3,
        pieces: 4,
    };
    assert_eq!(even.in_pieces(4), Err(pieces));
    assert_eq!(even.paced(Span::ZERO), Err(DeviceError::NoPeriod));
}
