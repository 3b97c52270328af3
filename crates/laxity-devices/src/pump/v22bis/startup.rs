//! From silence to data: the operating sequences of V.22bis.

use super::pattern::Pattern;
use super::receiver::{PATTERN_DELAY, Symbol};
use super::transmitter::Signal;
use super::{Rate, Role};

/// Samples a millisecond.
const MS: u32 = 8;
/// Before an answering modem sends its first ones (V.25).
const SILENCE: u32 = 75 * MS;
/// Ones by which a calling modem knows that it is answered.
const ONES_SEEN: u32 = 155 * MS;
/// Its silence thereafter.
const ONES_WAIT: u32 = 456 * MS;
const S1_SENT: u32 = 100 * MS;
/// After the end of S1 received.
const DECIDE_2400: u32 = 450 * MS;
const SEND_2400: u32 = 600 * MS;
const DATA_2400: u32 = 800 * MS;
/// Scrambled ones by which a modem knows that 1200 bit/s is meant.
const ONES_1200: u32 = 270 * 1200 / 1000;
const DATA_1200: u32 = 765 * MS;
/// Scrambled ones after which 2400 bit/s are received.
const ONES_2400: u32 = 32;
/// Symbols of S1 that are enough.
const S1_SYMBOLS: u32 = 10;
/// Symbols of silence that end a connection: 65 ms beside those of the detector.
const LOST: u32 = 39;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreed {
    No,
    /// 2400 bit/s, by an S1 whose end was so many samples ago.
    High(u32),
    /// 1200 bit/s, since so many samples.
    Low(u32),
    Lost,
}

#[derive(Debug, Clone)]
pub(super) struct Startup {
    role: Role,
    highest: Rate,
    /// Samples since the transmitter's signal changed.
    since: u32,
    signal: Signal,
    /// Samples the answering modem's ones were seen; calling modem only.
    ones: u32,
    answered: bool,
    s1: u32,
    agreed: Agreed,
    scrambled_ones: u32,
    receiving: bool,
    silent: u32,
}

impl Startup {
    pub(super) fn new(role: Role, highest: Rate) -> Self {
        Self {
            role,
            highest,
            since: 0,
            signal: Signal::Silence,
            ones: 0,
            answered: false,
            s1: 0,
            agreed: Agreed::No,
            scrambled_ones: 0,
            receiving: false,
            silent: 0,
        }
    }

    /// What is to be sent.
    pub(super) fn signal(&self) -> Signal {
        self.signal
    }

    /// Whether received bits are data.
    pub(super) fn receiving(&self) -> bool {
        self.receiving
    }

    pub(super) fn lost(&self) -> bool {
        self.agreed == Agreed::Lost
    }

    /// The rate of data in both directions.
    pub(super) fn data(&self) -> Option<Rate> {
        match self.signal {
            Signal::Data(rate) if self.receiving => Some(rate),
            _ => None,
        }
    }

    fn send(&mut self, signal: Signal) {
        (self.signal, self.since) = (signal, 0);
    }

    /// A sample later.
    pub(super) fn tick(&mut self) -> Option<Rate> {
        self.since = self.since.saturating_add(1);
        match &mut self.agreed {
            Agreed::High(since) | Agreed::Low(since) => *since = since.saturating_add(1),
            Agreed::No | Agreed::Lost => {}
        }
        match (self.role, self.signal) {
            (Role::Calling, Signal::Silence) if self.answered && self.since == ONES_WAIT => {
                self.send(match self.highest {
                    Rate::Bps2400 => Signal::S1,
                    Rate::Bps1200 => Signal::ScrambledOnes(Rate::Bps1200),
                });
            }
            (Role::Answering, Signal::Silence) if self.since == SILENCE => self.send(Signal::Ones),
            (_, Signal::S1) if self.since == S1_SENT => {
                self.send(Signal::ScrambledOnes(Rate::Bps1200));
            }
            _ => {}
        }
        match self.agreed {
            Agreed::High(DECIDE_2400) => return Some(Rate::Bps2400),
            Agreed::High(SEND_2400) => self.send(Signal::ScrambledOnes(Rate::Bps2400)),
            Agreed::High(DATA_2400) => self.send(Signal::Data(Rate::Bps2400)),
            Agreed::Low(DATA_1200) => self.send(Signal::Data(Rate::Bps1200)),
            _ => {}
        }
        None
    }

    /// A symbol was received.
    pub(super) fn symbol(&mut self, symbol: Symbol) -> Option<Rate> {
        self.watch_silence(symbol.pattern);
        if self.agreed != Agreed::No {
            return None;
        }
        if self.role == Role::Calling && !self.answered {
            self.watch_ones(symbol.pattern);
            return None;
        }
        self.watch_s1(symbol.pattern)
    }

    fn watch_silence(&mut self, pattern: Pattern) {
        let connected = matches!(self.agreed, Agreed::High(_) | Agreed::Low(_));
        if pattern != Pattern::Silence || !connected {
            self.silent = 0;
            return;
        }
        self.silent += 1;
        if self.silent == LOST {
            self.agreed = Agreed::Lost;
            self.receiving = false;
            self.send(Signal::Silence);
        }
    }

    fn watch_ones(&mut self, pattern: Pattern) {
        const SYMBOL_X3: u32 = 40;
        if pattern != Pattern::Ones {
            self.ones = 0;
            return;
        }
        self.ones += SYMBOL_X3;
        if self.ones >= 3 * ONES_SEEN {
            self.answered = true;
            self.since = 0;
        }
    }

    fn watch_s1(&mut self, pattern: Pattern) -> Option<Rate> {
        if pattern == Pattern::S1 && self.highest == Rate::Bps2400 {
            self.s1 += 1;
            return None;
        }
        let seen = self.s1 >= S1_SYMBOLS;
        self.s1 = 0;
        if !seen {
            return None;
        }
        self.agreed = Agreed::High(PATTERN_DELAY);
        if self.role == Role::Answering {
            self.send(Signal::S1);
        }
        Some(Rate::Bps1200)
    }

    /// A bit was received and descrambled.
    pub(super) fn bit(&mut self, bit: bool) -> Option<Rate> {
        if self.receiving {
            return None;
        }
        self.scrambled_ones = if bit { self.scrambled_ones + 1 } else { 0 };
        match self.agreed {
            Agreed::High(since) if since >= DECIDE_2400 => {
                self.receiving = self.scrambled_ones >= ONES_2400;
                None
            }
            Agreed::No if self.scrambled_ones >= ONES_1200 => {
                self.agreed = Agreed::Low(0);
                self.receiving = true;
                if self.role == Role::Answering {
                    self.send(Signal::ScrambledOnes(Rate::Bps1200));
                }
                Some(Rate::Bps1200)
            }
            Agreed::No | Agreed::High(_) | Agreed::Low(_) | Agreed::Lost => None,
        }
    }
}
