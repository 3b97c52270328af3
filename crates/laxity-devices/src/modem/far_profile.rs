//! What the far end is: whose modems, and what lies between them and the file.

use laxity_model::Span;

use crate::link::endpoint::Network;
use crate::pump::{HandshakeConfig, Standard, UP_CODES};

use super::phase::Timing;

/// The far end of a call: the study had two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FarProfile {
    /// Its name in tables.
    pub name: &'static str,
    /// What its modems speak; the near end speaks the same.
    pub standard: Standard,
    /// The fastest upstream rate it agrees to, bit/s.
    pub fastest_up_bit_s: u32,
    /// The network between the modems and the file's server; `None`: the file is on the modems' own server.
    pub network: Option<Network>,
}

impl FarProfile {
    /// A 3Com *Total Control* pool, with the file on the company's network behind it (Jones, Saroiu §3.1, §6.5.1): 31.2 kbit/s up (quoted).
    ///
    /// The network is assumed: a switched one of 100 Mbit/s (§3.1) takes 2 ms each way, and up to 8 ms more at random.
    pub const TOTAL_CONTROL: Self = Self {
        name: "3Com Total Control",
        standard: Standard::Study,
        fastest_up_bit_s: 31_200,
        network: Some(Network {
            delay: Span::from_millis(2),
            jitter: Span::from_millis(8),
        }),
    };

    /// A Digi *DataFire* server with the file on its own disk (§3.1, §6.5.2): 28.8 kbit/s up (quoted).
    pub const DATAFIRE: Self = Self {
        name: "Digi DataFire",
        standard: Standard::Study,
        fastest_up_bit_s: 28_800,
        network: None,
    };

    /// As fast as the line allows, no network behind it.
    pub const PLAIN: Self = Self {
        name: "plain",
        standard: Standard::Study,
        fastest_up_bit_s: 31_200,
        network: None,
    };

    /// A modem of V.22bis, no network behind it.
    #[cfg(feature = "v22bis")]
    pub const V22BIS: Self = Self {
        name: "V.22bis",
        standard: Standard::V22bis,
        fastest_up_bit_s: 2_400,
        network: None,
    };

    /// What the near end negotiates. A retraining begins with what a first training begins with, and takes as long (assumed). Four
    /// trainings in a row none of which was good for long enough end the call (5 s of data; calibrated: 4/17 and 7/20, which in the study never
    /// completed).
    pub fn near_handshake(timing: &Timing) -> HandshakeConfig {
        HandshakeConfig {
            lasting_ms: (timing.training_lasts.as_micros() / 1_000) as u32,
            pause_ms: (timing.before_training.as_micros() / 1_000) as u32,
            ..HandshakeConfig::default()
        }
    }

    /// What its modems negotiate.
    pub(crate) fn handshake(&self, timing: &Timing) -> HandshakeConfig {
        let rate = |bits: u8| u32::from(bits) * 800;
        let fastest = UP_CODES
            .iter()
            .position(|code| rate(code.bits) <= self.fastest_up_bit_s);
        HandshakeConfig {
            fastest: fastest.unwrap_or(UP_CODES.len() - 1) as u8,
            ..Self::near_handshake(timing)
        }
    }
}
