//! How the modem's card is set in the phases of a call.

pub use crate::card::Setting;

/// Samples in each of the card's rings (Jones, Saroiu §4: 1,024 bytes of 16-bit samples).
pub const RING_SAMPLES: u64 = 512;

impl Setting {
    /// Ring detection: 18 samples at 7.2 kHz, an interrupt every 2.5 ms (§4).
    pub const ON_HOOK: Self = Self {
        rate_hz: 7_200,
        blocks: [18; 3],
        ring: RING_SAMPLES,
    };
    /// Dialing and waiting: 90 samples at 7.2 kHz, an interrupt every 12.5 ms (§4).
    pub const DIALING: Self = Self {
        blocks: [90; 3],
        ..Self::ON_HOOK
    };
    /// Training and data: 210, 210 and 180 samples at 16 kHz, every 13.125 or 11.25 ms and 12.5 ms on average (§6.2.1; the
    /// order two to one is our reading).
    pub const CONNECTED: Self = Self {
        rate_hz: 16_000,
        blocks: [210, 210, 180],
        ring: RING_SAMPLES,
    };
}
