//! What nodes say of channels and of each other: a [`Frame`] of the model's, byte by byte.
//!
//! A signal begins with who says it and to whom: the session of the sender's end of the link, that of the receiver's, if it is known, and up to which message everything was heard. Behind that is its content.

mod layout;
mod message;
mod reason;

use core::num::NonZeroU32;

use laxity_model::channels::asked::{Asked, Shortage};
use laxity_model::channels::clocks::{Echo, Stamp};
use laxity_model::channels::signalling::link::Content;
use laxity_model::channels::signalling::{self, Frame, Session};
use laxity_model::{Instant, Span};
use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::{DATA, Malformed};
pub(in crate::channels) use layout::{Count, Reader, Sink, Writer};
pub(in crate::channels) use message::SpecLayout;
pub(in crate::channels) use reason::{CauseLayout, RefusalLayout};

type Message = signalling::Message<Asked, Shortage>;

/// What a node says to its neighbour. One whose lists are longer than a node makes them may not be taken by who receives it.
pub type Signal = Frame<Message>;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SessionLayout {
    incarnation: U32,
    count: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SignalLayout {
    from: SessionLayout,
    to: SessionLayout,
    heard: U64,
    /// 1, if `to` is one; else that is all zeros.
    known: U16,
    content: U16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct EchoLayout {
    sent: U64,
    held: U64,
}

/// Bytes of the longest body of a signal: a list of as many channels as there are in one.
const LONGEST: usize = size_of::<SignalLayout>() + size_of::<U64>() + message::LONGEST;

/// A signal takes no more of a link than a data frame with a payload of so many bytes.
pub const SIGNAL_PAYLOAD: NonZeroU32 = match NonZeroU32::new((LONGEST - DATA) as u32) {
    Some(payload) => payload,
    None => panic!("longer than a data frame's own header"),
};

/// What the content is, as a number: these, and what a message has.
const HEARTBEAT: u16 = 1;
const ECHOING: u16 = 2;
const HEARD: u16 = 3;

impl From<Session> for SessionLayout {
    fn from(session: Session) -> Self {
        Self {
            incarnation: session.incarnation.into(),
            count: session.count.into(),
        }
    }
}

impl From<SessionLayout> for Session {
    fn from(layout: SessionLayout) -> Self {
        Self {
            incarnation: layout.incarnation.get(),
            count: layout.count.get(),
        }
    }
}

const NOBODY: Session = Session {
    incarnation: 0,
    count: 0,
};

pub(super) fn parse(body: &[u8]) -> Result<Signal, Malformed> {
    let mut reader = Reader::new(body);
    let layout: &SignalLayout = reader.take()?;
    let to = match (layout.known.get(), Session::from(layout.to)) {
        (0, NOBODY) => None,
        (1, session) => Some(session),
        _ => return Err(Malformed::Field("whose end is to hear it")),
    };
    let content = match layout.content.get() {
        HEARTBEAT => Content::Heartbeat(Stamp {
            sent: instant(&mut reader)?,
            echo: None,
        }),
        ECHOING => Content::Heartbeat(Stamp {
            sent: instant(&mut reader)?,
            echo: Some(echo(&mut reader)?),
        }),
        HEARD => Content::Heard,
        kind => {
            let number: &U64 = reader.take()?;
            Content::Message(number.get(), message::parse(kind, &mut reader)?)
        }
    };
    reader.end()?;
    Ok(Signal {
        from: layout.from.into(),
        to,
        heard: layout.heard.get(),
        content,
    })
}

fn instant(reader: &mut Reader<'_>) -> Result<Instant, Malformed> {
    let nanos: &U64 = reader.take()?;
    Ok(Instant::from_nanos(nanos.get()))
}

fn echo(reader: &mut Reader<'_>) -> Result<Echo, Malformed> {
    let layout: &EchoLayout = reader.take()?;
    Ok(Echo {
        sent: Instant::from_nanos(layout.sent.get()),
        held: Span::from_nanos(layout.held.get()),
    })
}

pub(super) fn length(signal: &Signal) -> usize {
    let mut count = Count::default();
    put(signal, &mut count);
    count.0
}

/// Into as many bytes as its length.
pub(super) fn write(signal: &Signal, out: &mut [u8]) {
    let mut writer = Writer::new(out);
    put(signal, &mut writer);
    writer.end();
}

fn put(signal: &Signal, sink: &mut impl Sink) {
    let content = match &signal.content {
        Content::Heartbeat(Stamp { echo: None, .. }) => HEARTBEAT,
        Content::Heartbeat(_) => ECHOING,
        Content::Heard => HEARD,
        Content::Message(_, message) => message::kind(message),
    };
    sink.put(&SignalLayout {
        from: signal.from.into(),
        to: signal.to.unwrap_or(NOBODY).into(),
        heard: signal.heard.into(),
        known: u16::from(signal.to.is_some()).into(),
        content: content.into(),
    });
    match &signal.content {
        Content::Heartbeat(stamp) => {
            sink.put(&U64::new(stamp.sent.as_nanos()));
            if let Some(echo) = stamp.echo {
                sink.put(&EchoLayout {
                    sent: echo.sent.as_nanos().into(),
                    held: echo.held.as_nanos().into(),
                });
            }
        }
        Content::Heard => {}
        Content::Message(number, message) => {
            sink.put(&U64::new(*number));
            message::put(message, sink);
        }
    }
}
