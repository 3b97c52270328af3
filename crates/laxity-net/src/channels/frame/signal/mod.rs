//! What nodes say of channels and of each other.
//!
//! A signal begins with who says it and to whom: the life of the sender's end of the link, that of the receiver's, if it is known, and up to which message everything was heard. Behind that is its content. Lists are read where they lie, so their numbers are in network byte order.

mod layout;
mod message;
mod reason;

use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::Malformed;
use layout::{Count, Reader, Sink, Writer};

pub use message::{
    Confirm, Digest, Hold, LISTED, List, MOST_HOSTS, MOST_NAME, Message, Name, Open, Spec,
};
pub use reason::{Cause, Nearest, Refusal, Resource};

/// One end's count of its lives, and of how often it gave the other end up in this one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Life {
    /// The node's.
    pub incarnation: u32,
    /// From 0 in that.
    pub count: u32,
}

/// What a node says to its neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal<'a> {
    /// Whose end of the link says it.
    pub from: Life,
    /// Whose is to hear it, where that is known.
    pub to: Option<Life>,
    /// All messages of the other end below this number have been heard.
    pub heard: u64,
    /// What else it says.
    pub content: Content<'a>,
}

/// What a signal is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// Who sends it lives.
    Heartbeat(Beat),
    /// No more than what was heard.
    Heard,
    /// The message of this number, counted from 0 in the life of the sender's end.
    Message(u64, Message<'a>),
}

/// Round-trip stamps. Instants are in nanoseconds of whoever's clock; no other clock is compared with them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Beat {
    /// When it left, by the sender's clock.
    pub sent: u64,
    /// Of the receiver's last one that has come.
    pub echo: Option<Echo>,
}

/// What is sent back of a heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Echo {
    /// When it left, by the clock of whoever sent it.
    pub sent: u64,
    /// For how many nanoseconds it was held until this one left.
    pub held: u64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LifeLayout {
    incarnation: U32,
    count: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SignalLayout {
    from: LifeLayout,
    to: LifeLayout,
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

/// What the content is, as a number: these, and what a message has.
const HEARTBEAT: u16 = 1;
const ECHOING: u16 = 2;
const HEARD: u16 = 3;

impl From<Life> for LifeLayout {
    fn from(life: Life) -> Self {
        Self {
            incarnation: life.incarnation.into(),
            count: life.count.into(),
        }
    }
}

impl From<LifeLayout> for Life {
    fn from(layout: LifeLayout) -> Self {
        Self {
            incarnation: layout.incarnation.get(),
            count: layout.count.get(),
        }
    }
}

const NOBODY: Life = Life {
    incarnation: 0,
    count: 0,
};

impl<'a> Signal<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let layout: &SignalLayout = reader.take()?;
        let to = match (layout.known.get(), Life::from(layout.to)) {
            (0, NOBODY) => None,
            (1, life) => Some(life),
            _ => return Err(Malformed::Field("whose end is to hear it")),
        };
        let content = match layout.content.get() {
            HEARTBEAT => {
                let sent: &U64 = reader.take()?;
                Content::Heartbeat(Beat {
                    sent: sent.get(),
                    echo: None,
                })
            }
            ECHOING => {
                let sent: &U64 = reader.take()?;
                let echo: &EchoLayout = reader.take()?;
                Content::Heartbeat(Beat {
                    sent: sent.get(),
                    echo: Some(Echo {
                        sent: echo.sent.get(),
                        held: echo.held.get(),
                    }),
                })
            }
            HEARD => Content::Heard,
            kind => {
                let number: &U64 = reader.take()?;
                Content::Message(number.get(), Message::parse(kind, &mut reader)?)
            }
        };
        reader.end()?;
        Ok(Self {
            from: layout.from.into(),
            to,
            heard: layout.heard.get(),
            content,
        })
    }

    pub(super) fn length(&self) -> usize {
        let mut count = Count::default();
        self.put(&mut count);
        count.0
    }

    pub(super) fn write(&self, out: &mut [u8]) {
        let mut writer = Writer::new(out);
        self.put(&mut writer);
        writer.end();
    }

    fn put(&self, sink: &mut impl Sink) {
        let content = match &self.content {
            Content::Heartbeat(Beat { echo: None, .. }) => HEARTBEAT,
            Content::Heartbeat(_) => ECHOING,
            Content::Heard => HEARD,
            Content::Message(_, message) => message.kind(),
        };
        sink.put(&SignalLayout {
            from: self.from.into(),
            to: self.to.unwrap_or(NOBODY).into(),
            heard: self.heard.into(),
            known: u16::from(self.to.is_some()).into(),
            content: content.into(),
        });
        match &self.content {
            Content::Heartbeat(beat) => {
                sink.put(&U64::new(beat.sent));
                if let Some(echo) = beat.echo {
                    sink.put(&EchoLayout {
                        sent: echo.sent.into(),
                        held: echo.held.into(),
                    });
                }
            }
            Content::Heard => {}
            Content::Message(number, message) => {
                sink.put(&U64::new(*number));
                message.put(sink);
            }
        }
    }
}
