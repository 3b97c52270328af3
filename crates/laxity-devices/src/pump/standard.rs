//! Which signals two modems exchange.

use super::{FarPump, HandshakeConfig, NearPump, Pump};

/// What the modems of a call speak.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Standard {
    /// The rates of the study's modem: up to 50,667 bit/s down and 31,200 bit/s up.
    #[default]
    Study,
    /// V.22bis: 2,400 or 1,200 bit/s in both directions. A modem of it has no further receivers as load.
    #[cfg(feature = "v22bis")]
    V22bis,
}

impl Standard {
    /// The idle end at the card.
    pub(crate) fn near(self, handshake: HandshakeConfig) -> Box<dyn Pump<i16>> {
        match self {
            Self::Study => Box::new(NearPump::new(handshake)),
            #[cfg(feature = "v22bis")]
            Self::V22bis => Box::new(super::v22bis::End::near()),
        }
    }

    /// The idle end in the network.
    pub(crate) fn far(self, handshake: HandshakeConfig) -> Box<dyn Pump<f32>> {
        match self {
            Self::Study => Box::new(FarPump::new(handshake)),
            #[cfg(feature = "v22bis")]
            Self::V22bis => Box::new(super::v22bis::End::far()),
        }
    }
}
