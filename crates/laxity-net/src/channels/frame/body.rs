//! What is between a frame's header and its trailer.

use super::data::Data;
use super::handshake::{Answer, First};
use super::layout::{Kind, Malformed};
use super::signal::{self, Signal};

/// The body of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// A part of a message of a channel.
    Data(Data<'a>),
    /// Nodes about channels and about each other.
    Signal(Signal),
    /// The first message of a handshake.
    First(First),
    /// Its answer.
    Answer(Answer),
}

impl<'a> Body<'a> {
    /// Of the bytes of a body of this kind. O(n) of a signal, whose lists are copied, O(1) of all others.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn parse(kind: Kind, bytes: &'a [u8]) -> Result<Self, Malformed> {
        match kind {
            Kind::Data => Data::parse(bytes).map(Self::Data),
            Kind::Signal => signal::parse(bytes).map(Self::Signal),
            Kind::First => First::parse(bytes).map(Self::First),
            Kind::Answer => Answer::parse(bytes).map(Self::Answer),
        }
    }

    /// Of which kind of frame.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Data(_) => Kind::Data,
            Self::Signal(_) => Kind::Signal,
            Self::First(_) => Kind::First,
            Self::Answer(_) => Kind::Answer,
        }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Data(data) => data.length(),
            Self::Signal(signal) => signal::length(signal),
            Self::First(_) => First::LENGTH,
            Self::Answer(_) => Answer::LENGTH,
        }
    }

    /// Writes it to exactly as many bytes.
    ///
    /// # Panics
    ///
    /// There are more or fewer.
    pub fn write(&self, out: &mut [u8]) {
        match self {
            Self::Data(data) => data.write(out),
            Self::Signal(signal) => signal::write(signal, out),
            Self::First(first) => first.write(out),
            Self::Answer(answer) => answer.write(out),
        }
    }
}
