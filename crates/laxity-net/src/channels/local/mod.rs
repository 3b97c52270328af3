//! What an application and its node say to each other, by a Unix socket that keeps messages apart; messages of channels themselves go by a [ring](laxity_model::channels::ring) for each channel.
//!
//! [`Ask`] is what an application says, [`Answer`] what a node does. Bytes are in network byte order, as on the wire between hosts; parsing takes any bytes, and refuses whatever would not have been written. `docs/local.md` has every layout, with examples that a test compares.
//!
//! Who an application is the kernel says, and what its user may do stands in [`Users`]: nothing of that is asked of the application.

mod answer;
mod ask;
mod users;

use core::ops::RangeInclusive;

use laxity_model::channels::asked::Name;
use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::frame::{Count, Malformed, Reader, Sink, Writer};

pub use answer::{Answer, Grade, Granted, Hop, MOST_REASON, Refused};
pub use ask::{Ask, Spec, Takes};
pub use users::{Forbidden, Held, User, Users};

/// The version of all that is said here. Every version begins with this byte.
pub const VERSION: u8 = 1;

/// No message is longer, in bytes.
pub const MOST_BYTES: usize = 1_024;

/// Numbers of channels from here on are given by the node, the others by the application.
pub const NODES: u32 = 1 << 31;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HeaderLayout {
    version: u8,
    kind: u8,
    length: U16,
    /// Of the channel, or of who listens; 0 of what is about neither.
    number: U32,
}

/// Which numbers a kind of message may have.
const NONE: RangeInclusive<u32> = 0..=0;
const APPLICATIONS: RangeInclusive<u32> = 1..=NODES - 1;
const OF_NODE: RangeInclusive<u32> = NODES..=u32::MAX;
const ANY: RangeInclusive<u32> = 1..=u32::MAX;

/// Kind and number of a message, and what is behind its header.
fn parse(bytes: &[u8]) -> Result<(u8, u32, Reader<'_>), Malformed> {
    let mut reader = Reader::new(bytes);
    let header: &HeaderLayout = reader.take()?;
    if header.version != VERSION {
        return Err(Malformed::Version(header.version));
    }
    if bytes.len() > MOST_BYTES || bytes.len() > header.length.get().into() {
        return Err(Malformed::Long);
    }
    if bytes.len() < header.length.get().into() {
        return Err(Malformed::Short);
    }
    Ok((header.kind, header.number.get(), reader))
}

/// The number, if it is one of those.
fn among(number: u32, range: &RangeInclusive<u32>) -> Result<u32, Malformed> {
    let is_among = range.contains(&number);
    is_among
        .then_some(number)
        .ok_or(Malformed::Field("the number of a channel"))
}

/// The bytes of a message whose content is put by this.
fn written(kind: u8, number: u32, put: impl Fn(&mut dyn Put)) -> Vec<u8> {
    let mut count = Count::default();
    put(&mut count);
    let length = size_of::<HeaderLayout>() + count.0;
    let header = HeaderLayout {
        version: VERSION,
        kind,
        // Names, reasons and routes have limits by which none is longer than `MOST_BYTES`.
        length: (length as u16).into(),
        number: number.into(),
    };
    let mut bytes = vec![0; length];
    let (place, rest) = bytes.split_at_mut(size_of::<HeaderLayout>());
    place.copy_from_slice(header.as_bytes());
    let mut writer = Writer::new(rest);
    put(&mut writer);
    writer.end();
    bytes
}

/// Where bytes go to.
trait Put {
    fn bytes(&mut self, bytes: &[u8]);
}

impl<S: Sink> Put for S {
    fn bytes(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }
}

fn name(reader: &mut Reader<'_>) -> Result<Name, Malformed> {
    let length: &U32 = reader.take()?;
    let bytes: &[u8] = reader.list(length.get(), ..)?;
    let name = core::str::from_utf8(bytes).ok();
    let name = name.and_then(|name| Name::new(name).ok());
    name.ok_or(Malformed::Field("a channel's name"))
}

fn put_name(name: &Name, into: &mut dyn Put) {
    into.bytes(U32::new(name.as_str().len() as u32).as_bytes());
    into.bytes(name.as_str().as_bytes());
}
