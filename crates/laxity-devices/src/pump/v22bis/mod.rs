//! A V.22bis modem (ITU-T V.22bis, 1988): 2400 bit/s full duplex over two wires.
//!
//! 600 symbols a second of 16 points (or, as a fallback, four: 1200 bit/s), the calling modem on a
//! carrier of 1200 Hz, the answering one on 2400 Hz; both sample at 8 kHz. What it is for: the rates
//! of [`NearPump`](super::NearPump) need the far end of this crate, while this mode connects to any
//! modem of the recommendation.
//! Left out: the answer tone of V.25, the guard tone, loop tests, and retraining, in place of which a
//! new connection is made.
//!
//! | module | what |
//! |---|---|
//! | `startup` | the exchange by which two modems agree on a rate |
//! | `transmitter` | bits to samples |
//! | `receiver`, `pattern`, `equalizer` | samples to bits |
//! | `constellation` | what both need |
//! | `ends` | a modem in a call of this crate |

mod constellation;
mod ends;
mod equalizer;
mod pattern;
mod receiver;
mod startup;
mod transmitter;

pub(crate) use self::ends::End;
use self::receiver::{Receiver, Symbol};
use self::startup::Startup;
use self::transmitter::Transmitter;
use super::handshake::PumpState;
use super::line::round;
use super::scrambler::{Polynomial, Scrambler};
use crate::bits::{BitSink, BitSource};
use crate::signal::root_raised_cosine;

/// Samples a symbol are 40/3: 8000 a second and 600 a second.
const SAMPLES_PER_3_SYMBOLS: usize = 40;
/// The carriers' periods divide 20 samples.
const CARRIER_TABLE: usize = 20;
/// Roll-off of the pulse.
const ROLL_OFF: f64 = 0.75;

/// The pulse of either end, `t` symbols from its middle: a root raised cosine, whose side lobes a cosine calms where it is cut off at `half`.
fn pulse(t: f64, half: f64) -> f64 {
    if t.abs() >= half {
        0.0
    } else {
        root_raised_cosine(t, ROLL_OFF) * libm::cos(core::f64::consts::FRAC_PI_2 * t / half)
    }
}

/// Which of the two ends a modem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends on 1200 Hz.
    Calling,
    /// Sends on 2400 Hz, and first.
    Answering,
}

impl Role {
    fn transmit_hz(self) -> f64 {
        match self {
            Self::Calling => 1200.0,
            Self::Answering => 2400.0,
        }
    }

    fn receive_hz(self) -> f64 {
        match self {
            Self::Calling => 2400.0,
            Self::Answering => 1200.0,
        }
    }
}

/// A rate of data, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// 1200 bit/s: four points, as V.22 has them.
    Bps1200,
    /// 2400 bit/s: sixteen points.
    Bps2400,
}

impl Rate {
    /// Bits a symbol.
    fn bits(self) -> u8 {
        match self {
            Self::Bps1200 => 2,
            Self::Bps2400 => 4,
        }
    }

    /// Bits per second.
    pub fn bits_per_second(self) -> u32 {
        600 * u32::from(self.bits())
    }
}

/// One end of a connection.
#[derive(Debug, Clone)]
pub struct V22bis {
    transmitter: Transmitter,
    receiver: Receiver,
    descrambler: Scrambler,
    startup: Startup,
}

impl V22bis {
    /// An end that begins to connect with its first sample, at 2400 bit/s if the other end can.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self::with_rate(role, Rate::Bps2400)
    }

    /// An end that connects at `highest` or less.
    #[must_use]
    pub fn with_rate(role: Role, highest: Rate) -> Self {
        Self {
            transmitter: Transmitter::new(role),
            receiver: Receiver::new(role),
            descrambler: Scrambler::new(Polynomial::V22bis),
            startup: Startup::new(role, highest),
        }
    }

    /// Takes the samples received and fills `transmit`, both at 8 kHz by one clock. In data mode bits
    /// come from `source` and go to `sink`; the ones the other end sends before its data are bits
    /// too. Blocks of any length; how a stream is cut does not matter.
    ///
    /// # Panics
    /// If the two blocks differ in length.
    pub fn process(
        &mut self,
        received: &[i16],
        transmit: &mut [i16],
        source: &mut dyn BitSource,
        sink: &mut dyn BitSink,
    ) {
        assert_eq!(received.len(), transmit.len(), "both ways have one clock");
        for (received, transmit) in received.iter().zip(transmit) {
            if let Some(symbol) = self.receiver.push(f32::from(*received)) {
                self.receive(symbol, sink);
            }
            let decide = self.startup.tick();
            self.apply(decide);
            *transmit = round(self.transmitter.next(self.startup.signal(), source));
        }
    }

    fn receive(&mut self, symbol: Symbol, sink: &mut dyn BitSink) {
        let decide = self.startup.symbol(symbol);
        self.apply(decide);
        let Some(bits) = symbol.bits else {
            return;
        };
        for place in (0..self.receiver.bits_per_symbol()).rev() {
            let bit = self.descrambler.descramble(bits >> place & 1 == 1);
            if self.startup.receiving() {
                sink.push_bit(bit);
            }
            let decide = self.startup.bit(bit);
            self.apply(decide);
        }
    }

    fn apply(&mut self, decide: Option<Rate>) {
        if let Some(rate) = decide {
            self.receiver.decide(rate);
        }
    }

    /// What this end is doing: it trains while it waits for the other modem or agrees with it on a rate, and is lost when the other fell silent.
    pub fn state(&self) -> PumpState {
        match self.startup.data().map(Rate::bits_per_second) {
            Some(rate) => PumpState::Data {
                down_rate: rate,
                up_rate: rate,
            },
            None if self.startup.lost() => PumpState::Lost,
            None => PumpState::Training,
        }
    }

    /// The signal-to-noise ratio at the slicer, dB; meaningful in data mode.
    pub fn snr_db(&self) -> f32 {
        self.receiver.snr_db()
    }
}
