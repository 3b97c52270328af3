//! The modem's signal processing in both directions, and the telephone line between.
//!
//! Downstream the far end puts one of up to 81 levels on each of the network's 8000 samples a
//! second, and the near end recovers them from its card's 16 kHz samples: up to 50,667 bit/s.
//! Upstream the near end sends 3200 symbols a second, quadrature-modulated with up to 30 × 30
//! points: up to 31,200 bit/s. Both are trained, choose their rates, and retrain, over the line
//! alone. All of it is plain arithmetic in fixed order: the same samples give the same bits on
//! every machine.
//!
//! | module | what |
//! |---|---|
//! | `endpoint` | a [`Pump`] at either end: [`NearPump`], [`FarPump`] |
//! | `handshake` | from silence to data and back |
//! | `training` | superframes and frames |
//! | `receiver`, `acquire`, `equalizer`, `normal`, `resample` | samples to bits |
//! | `quality` | when a signal has gone bad |
//! | `transmitter` | bits to samples |
//! | `mapper`, `scrambler` | bits to levels and back |
//! | `line`, `noise` | the telephone line |
//! | `standard` | which of all that two modems speak |
//! | `v22bis` | with the feature `v22bis`: the 2400 bit/s mode, which connects to other makers' modems |

mod acquire;
mod endpoint;
mod equalizer;
mod fir;
mod handshake;
mod line;
mod mapper;
pub(crate) mod noise;
mod normal;
mod quality;
mod receiver;
mod resample;
mod scrambler;
mod standard;
mod training;
mod transmitter;
#[cfg(feature = "v22bis")]
pub mod v22bis;

pub use endpoint::{FarPump, NearPump, Pump};
pub use handshake::{HandshakeConfig, PumpState};
pub use line::{Line, LineConfig};
pub(crate) use mapper::UP_CODES;
pub use quality::{AGREED_POWER, RANDOM_ERROR, SUSPICIOUS_WINDOWS, TWO_LEVEL_RUN};
pub use receiver::PamReceiver;
pub use standard::Standard;
