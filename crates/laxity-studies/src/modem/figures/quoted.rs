//! What Jones and Saroiu, "Predictability Requirements of a Soft Modem" (SIGMETRICS 2001), print of figures 1 to 16: in the text, for the
//! drawings themselves have no numbers.

use laxity_model::Span;

/// Interrupts on hook (§6.2.1).
pub(super) const ON_HOOK_INTERVAL: Span = Span::from_micros(2_500);
/// Interrupts while dialing (§6.2.1).
pub(super) const DIALING_INTERVAL: Span = Span::from_micros(12_500);
/// Interrupts once connected: the long and the short interval (§6.2.1).
pub(super) const CONNECTED_INTERVALS: [Span; 2] =
    [Span::from_micros(13_125), Span::from_micros(11_250)];
/// Scattered points of figure 1 (§6.2.1).
pub(super) const OUTLIERS: u64 = 6;
/// On hook for about so long (§6.2.1).
pub(super) const ON_HOOK: Span = Span::from_secs(2);
/// Dialing for the next so long (§6.2.1).
pub(super) const DIALING: Span = Span::from_secs(9);
/// The connection is there after so long (§6.2.3).
pub(super) const CONNECTED_AFTER: Span = Span::from_secs(23);

/// The handler that does the signal processing: typically (§6.2.2).
pub(super) const TYPICAL_PROCESSING: Span = Span::from_micros(1_800);
/// Its repeatable worst case (§6.2.2).
pub(super) const WORST_PROCESSING: Span = Span::from_micros(3_300);
/// Share of the processor once connected, parts per million (§6.2.3).
pub(super) const CPU_SHARE_PPM: u32 = 147_000;

/// The handler that only queues a deferred call: mean and maximum (§6.2.4).
pub(super) const SHORT_HANDLER_MEAN: Span = Span::from_nanos(5_400);
/// See [`SHORT_HANDLER_MEAN`].
pub(super) const SHORT_HANDLER_MAX: Span = Span::from_micros(16);

/// Samples left after the processing, at most, in training and data (§6.2.5).
pub(super) const PENDING_MAX: u64 = 30;

/// Elapsed time of a wake-up of RES 2/8 "at times" (§6.4.2): from and to.
pub(super) const RESERVED_ELAPSED: [Span; 2] = [Span::from_millis(6), Span::from_millis(8)];

/// Wake-ups of the callback in a histogram (§6.3.1).
pub(super) const WAKEUPS: u64 = 30_000;
/// Width of a histogram's buckets (§6.3.1).
pub(super) const BUCKET: Span = Span::from_micros(50);
/// Share of them near 2 ms without a modem, parts per million (§6.3.1).
pub(super) const NEAR_TWO_MS_PPM: u32 = 24_000;
/// How many times more callbacks are one bucket off 1 ms in figure 16 than in figure 13, in thousandths (§6.4.3).
pub(super) const ONE_BUCKET_OFF_RATIO: u64 = 3_000;

/// The largest gap of figure 10: no modem.
pub(super) const GAP_ABSENT: Span = Span::from_micros(1_978);
/// Of figure 11: INT.
pub(super) const GAP_INTERRUPT: Span = Span::from_micros(5_313);
/// Of figure 12: DPC.
pub(super) const GAP_DEFERRED: Span = Span::from_micros(4_396);
/// Of figure 13: THR 24.
pub(super) const GAP_THREAD: Span = Span::from_micros(2_239);
/// Of figure 16: RES 2/8.
pub(super) const GAP_RESERVED: Span = Span::from_micros(1_971);

/// Limits of *PC 99*, as the study quotes them: interrupts held off (§6.2.2).
pub(super) const PC99_INTERRUPT: Span = Span::from_micros(100);
/// All queued deferred calls (§6.2.4).
pub(super) const PC99_DEFERRED: Span = Span::from_micros(500);
