//! Messages about channels. Each may come twice, and late: a receiver does what it says once.

use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::signalling::message::{LISTED, MOST_HOSTS};
use laxity_model::channels::signalling::{
    ChannelId, Confirm, Digest, Hold, HostId, List, Open, Summary,
};
use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::data::LabelLayout;
use super::super::layout::Malformed;
use super::Message;
use super::layout::{Reader, Sink};
use super::reason::{CauseLayout, RefusalLayout};

const OPEN: u16 = 16;
const CONFIRM: u16 = 17;
const REFUSE: u16 = 18;
const SETTLE: u16 = 19;
const TEAR: u16 = 20;
const ENDED: u16 = 21;
const SUMMARY: u16 = 22;
const DIFFERS: u16 = 23;
const LIST: u16 = 24;
const LAST: u16 = 25;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ChannelLayout {
    origin: U32,
    generation: U32,
    number: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct HoldLayout {
    channel: ChannelLayout,
    version: U32,
}

/// What a channel is to carry, but for its name.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(in crate::channels) struct SpecLayout {
    messages: U32,
    period: U64,
    burst: U32,
    largest: U32,
    discard: U32,
}

impl SpecLayout {
    pub(in crate::channels) fn new(traffic: &Traffic, discard: bool) -> Self {
        let (messages, period) = traffic.rate();
        Self {
            messages: messages.get().into(),
            period: period.as_nanos().into(),
            burst: traffic.burst().get().into(),
            largest: traffic.largest().get().into(),
            discard: u32::from(discard).into(),
        }
    }

    /// What it may send, and whether what is late is discarded.
    pub(in crate::channels) fn spec(self) -> Result<(Traffic, bool), Malformed> {
        let rate = (self.messages.get(), Span::from_nanos(self.period.get()));
        let traffic = Traffic::new(self.largest.get(), rate, self.burst.get());
        let traffic = traffic.map_err(|_| Malformed::Field("what a channel may send"))?;
        match self.discard.get() {
            0 => Ok((traffic, false)),
            1 => Ok((traffic, true)),
            _ => Err(Malformed::Field("what becomes of what is late")),
        }
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct OpenLayout {
    hold: HoldLayout,
    spec: SpecLayout,
    within: U64,
    propagation: U64,
    hosts: U16,
    hops: U16,
    name: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ConfirmLayout {
    hold: HoldLayout,
    label: LabelLayout,
    propagation: U64,
    hops: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SummaryLayout {
    count: U64,
    sum: U64,
    heard: U64,
}

/// Bytes of the longest message behind its number.
pub(super) const LONGEST: usize = size_of::<U32>() + LISTED * size_of::<ChannelLayout>();

impl From<ChannelId> for ChannelLayout {
    fn from(channel: ChannelId) -> Self {
        Self {
            origin: channel.origin.0.into(),
            generation: channel.generation.into(),
            number: channel.number.into(),
        }
    }
}

impl From<ChannelLayout> for ChannelId {
    fn from(layout: ChannelLayout) -> Self {
        Self {
            origin: HostId(layout.origin.get()),
            generation: layout.generation.get(),
            number: layout.number.get(),
        }
    }
}

impl From<Hold> for HoldLayout {
    fn from(hold: Hold) -> Self {
        Self {
            channel: hold.channel.into(),
            version: hold.version.into(),
        }
    }
}

impl From<HoldLayout> for Hold {
    fn from(layout: HoldLayout) -> Self {
        Self {
            channel: layout.channel.into(),
            version: layout.version.get(),
        }
    }
}

fn channel(reader: &mut Reader<'_>) -> Result<ChannelId, Malformed> {
    let layout: &ChannelLayout = reader.take()?;
    Ok((*layout).into())
}

fn hold(reader: &mut Reader<'_>) -> Result<Hold, Malformed> {
    let layout: &HoldLayout = reader.take()?;
    Ok((*layout).into())
}

fn spans(layout: &[U64]) -> Vec<Span> {
    let spans = layout.iter();
    spans.map(|span| Span::from_nanos(span.get())).collect()
}

fn put_spans(sink: &mut impl Sink, spans: &[Span]) {
    for span in spans {
        sink.put(&U64::new(span.as_nanos()));
    }
}

fn open(reader: &mut Reader<'_>) -> Result<Open<Asked>, Malformed> {
    let layout: &OpenLayout = reader.take()?;
    let (traffic, discard) = layout.spec.spec()?;
    let hosts = layout.hosts.get();
    let route: &[U32] = reader.list(hosts.into(), 2..=MOST_HOSTS)?;
    // Who receives it has a place in the route.
    let least = reader.list(layout.hops.get().into(), ..route.len())?;
    let name = core::str::from_utf8(reader.list(layout.name.get(), ..)?);
    let name = name.ok().and_then(|name| Name::new(name).ok());
    Ok(Open {
        hold: layout.hold.into(),
        route: route.iter().map(|host| HostId(host.get())).collect(),
        asked: Asked {
            name: name.ok_or(Malformed::Field("a channel's name"))?,
            traffic,
            discard,
        },
        within: Span::from_nanos(layout.within.get()),
        propagation: Span::from_nanos(layout.propagation.get()),
        least: spans(least),
    })
}

fn put_open(open: &Open<Asked>, sink: &mut impl Sink) {
    let Asked {
        name,
        traffic,
        discard,
    } = &open.asked;
    sink.put(&OpenLayout {
        hold: open.hold.into(),
        spec: SpecLayout::new(traffic, *discard),
        within: open.within.as_nanos().into(),
        propagation: open.propagation.as_nanos().into(),
        hosts: (open.route.len() as u16).into(),
        hops: (open.least.len() as u16).into(),
        name: (name.as_str().len() as u32).into(),
    });
    for host in &*open.route {
        sink.put(&U32::new(host.0));
    }
    put_spans(sink, &open.least);
    sink.put(name.as_str());
}

fn confirm(reader: &mut Reader<'_>) -> Result<Confirm, Malformed> {
    let layout: &ConfirmLayout = reader.take()?;
    let delays = reader.list(layout.hops.get(), 1..=MOST_HOSTS)?;
    Ok(Confirm {
        hold: layout.hold.into(),
        label: layout.label.into(),
        delays: spans(delays),
        propagation: Span::from_nanos(layout.propagation.get()),
    })
}

fn put_confirm(confirm: &Confirm, sink: &mut impl Sink) {
    sink.put(&ConfirmLayout {
        hold: confirm.hold.into(),
        label: confirm.label.into(),
        propagation: confirm.propagation.as_nanos().into(),
        hops: (confirm.delays.len() as u32).into(),
    });
    put_spans(sink, &confirm.delays);
}

fn list(reader: &mut Reader<'_>, last: bool) -> Result<List, Malformed> {
    let count: &U32 = reader.take()?;
    let channels: &[ChannelLayout] = reader.list(count.get(), ..=LISTED)?;
    let channels: Vec<ChannelId> = channels.iter().map(|layout| (*layout).into()).collect();
    if !channels.is_sorted_by(|one, next| one < next) {
        return Err(Malformed::Field("the order of a list"));
    }
    Ok(List { channels, last })
}

fn put_list(list: &List, sink: &mut impl Sink) {
    sink.put(&U32::new(list.channels.len() as u32));
    for channel in &list.channels {
        sink.put(&ChannelLayout::from(*channel));
    }
}

fn summary(reader: &mut Reader<'_>) -> Result<Summary, Malformed> {
    let layout: &SummaryLayout = reader.take()?;
    Ok(Summary {
        digest: Digest {
            count: layout.count.get(),
            sum: layout.sum.get(),
        },
        heard: layout.heard.get(),
    })
}

/// As a number: what is on the wire.
pub(super) const fn kind(message: &Message) -> u16 {
    match message {
        Message::Open(_) => OPEN,
        Message::Confirm(_) => CONFIRM,
        Message::Refuse(..) => REFUSE,
        Message::Settle(_) => SETTLE,
        Message::Tear(..) => TEAR,
        Message::Ended(..) => ENDED,
        Message::Summary(_) => SUMMARY,
        Message::Differs => DIFFERS,
        Message::List(List { last: false, .. }) => LIST,
        Message::List(List { last: true, .. }) => LAST,
    }
}

pub(super) fn parse(kind: u16, reader: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match kind {
        OPEN => Message::Open(Box::new(open(reader)?)),
        CONFIRM => Message::Confirm(Box::new(confirm(reader)?)),
        REFUSE => {
            let hold = hold(reader)?;
            let why: &RefusalLayout = reader.take()?;
            Message::Refuse(hold, Box::new(why.refusal()?))
        }
        SETTLE => Message::Settle(hold(reader)?),
        TEAR | ENDED => {
            let channel = channel(reader)?;
            let cause: &CauseLayout = reader.take()?;
            let said = [Message::Tear, Message::Ended][usize::from(kind == ENDED)];
            said(channel, cause.cause()?)
        }
        SUMMARY => Message::Summary(summary(reader)?),
        DIFFERS => Message::Differs,
        LIST | LAST => Message::List(list(reader, kind == LAST)?),
        _ => return Err(Malformed::Kind(kind.into())),
    })
}

pub(super) fn put(message: &Message, sink: &mut impl Sink) {
    match message {
        Message::Open(open) => put_open(open, sink),
        Message::Confirm(confirm) => put_confirm(confirm, sink),
        Message::Refuse(hold, why) => {
            sink.put(&HoldLayout::from(*hold));
            sink.put(&RefusalLayout::from(**why));
        }
        Message::Settle(hold) => sink.put(&HoldLayout::from(*hold)),
        Message::Tear(channel, cause) | Message::Ended(channel, cause) => {
            sink.put(&ChannelLayout::from(*channel));
            sink.put(&CauseLayout::from(*cause));
        }
        Message::Summary(Summary { digest, heard }) => sink.put(&SummaryLayout {
            count: digest.count.into(),
            sum: digest.sum.into(),
            heard: (*heard).into(),
        }),
        Message::Differs => {}
        Message::List(list) => put_list(list, sink),
    }
}
