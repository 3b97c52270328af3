//! A stream without a host: interrupts served as late as a test wants.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::cell::Cell;
use std::sync::Arc;

use laxity_devices::card::{Block, Card, Format, Repeated, Report, Served, StreamUnit};
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

pub(crate) struct Bench {
    pub(crate) card: Arc<Card>,
    pub(crate) report: Arc<Report>,
    format: Format,
    unit: StreamUnit,
}

impl Bench {
    /// A card that is read, if there is a recording, or else written; the work is done twice.
    pub(crate) fn new(
        format: Format,
        recording: Option<Arc<[i16]>>,
        make: impl Fn() -> Box<dyn Block>,
    ) -> Self {
        let card = Arc::new(match recording {
            Some(recording) => Card::capture(format.setting(), recording),
            None => Card::playback(format.setting()),
        });
        let report = Arc::new(Report::default());
        let work = Repeated::new(1, make);
        let cost = Service::from_micros(1);
        let unit = StreamUnit::new(Arc::clone(&card), format, Arc::clone(&report), work, cost);
        Self {
            card,
            report,
            format,
            unit,
        }
    }

    /// The next call begins so many thousandths of a period after its interrupt, or after the call before if that is later.
    pub(crate) fn serve(mut self, late_permille: impl IntoIterator<Item = u64>) -> Arc<Report> {
        let mut now = Instant::ZERO;
        for late in late_permille {
            self.serve_one(&mut now, late);
        }
        assert_eq!(self.report.load_differs.get(), 0);
        self.report
    }

    pub(crate) fn serve_one(&mut self, now: &mut Instant, late_permille: u64) {
        let late = Span::from_nanos(self.format.period().as_nanos() * late_permille / 1_000);
        *now = (*now).max(self.unit.raised_at() + late);
        while self.card.due() <= *now {
            self.card.raise();
        }
        assert!(self.unit.is_due());
        self.unit.begin(*now);
        self.unit.finish(*now);
    }
}

/// Whatever the lateness: no frame fails its CRC whose block was whole, each does whose block lost more than can be spared.
pub(crate) fn damage_and_errors_agree(make: &dyn Fn() -> Bench, most_periods: u64) {
    let cases = std::env::var("LAXITY_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let mut runner = TestRunner::new(Config {
        cases: cases.unwrap_or(12),
        failure_persistence: None,
        ..Config::default()
    });
    let lateness = prop_oneof![
        4 => Just(0),
        1 => 0..1_000 * most_periods,
        1 => (1..=most_periods).prop_map(|periods| 1_000 * periods),
    ];
    let calls = proptest::collection::vec(lateness, 1..60);
    let damaged = Cell::new(0);
    let outcome = runner.run(&calls, |calls| {
        let count = calls.len() as u64;
        let report = make().serve(calls);
        let failed = report.crc_errors.get();
        prop_assert!(failed <= report.blocks_damaged.get());
        prop_assert!(failed >= report.blocks_broken.get());
        prop_assert_eq!(report.frames_good.get() + failed, count);
        if report.damage() == 0 {
            prop_assert_eq!(report.frames_lost(), 0);
        }
        damaged.set(damaged.get() + report.crc_errors.get());
        Ok(())
    });
    outcome.unwrap();
    assert!(
        damaged.get() > 0,
        "no case was late enough to damage anything"
    );
}

/// A number made from all samples.
pub(crate) fn checksum(samples: &[i16]) -> u64 {
    samples.iter().fold(0xcbf2_9ce4_8422_2325, |sum, sample| {
        (sum ^ u64::from(sample.cast_unsigned())).wrapping_mul(0x0100_0000_01b3)
    })
}
