//! A flow that was recorded, and the least rate and burst that cover it: what a channel for it has to state.
//!
//! * [`select`]: the packets of a file that belong to it.
//! * [`messages`]: which of them are one message.
//! * [`pairs`](mod@pairs): the pairs of rate and burst, the one that is proposed, and how they are told.

mod lines;
pub mod messages;
pub mod pairs;

use std::collections::HashMap;

use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::{Key, SCTP, TCP, UDP, carried, parse};
use laxity_model::{Instant, Span};

use crate::capture_file::{Frame, Unreadable};
use messages::{Grouping, Packet, Rtp};

/// What a file shows of one flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The filter of exactly its packets.
    pub filter: String,
    /// How many there are.
    pub packets: u64,
    /// What they carry.
    pub bytes: u64,
}

/// The packets of a file that are meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selected {
    /// In the order of their instants.
    pub packets: Vec<Packet>,
    /// Of so many flows.
    pub flows: usize,
    /// As the file has them, or as they were asked for.
    pub filter: String,
    /// Pieces of fragmented packets that did not match: they have no ports, so no filter that looks at ports finds them.
    pub pieces: u64,
}

/// Why a file has no such flow.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Which packet, from 1.
    #[error("packet {0} has no time, so that nothing can be told of how fast packets come")]
    NoTime(u64),
    /// Which packet, from 1.
    #[error(
        "packet {0} is not one of RTP, version 2, over UDP; name the flow by a filter, or group packets by `--message gap=TIME`"
    )]
    NotRtp(u64),
    /// None matches, of so many packets.
    #[error("none of its {0} packets matches{1}")]
    Nothing(u64, &'static str),
    /// Without a filter: these flows, those of the most bytes first.
    #[error("it has packets of several flows")]
    Several(Vec<Seen>),
}

/// A time of a file on the line of instants: since 1970.
const fn instant(at_ns: u64) -> Instant {
    Instant::from_nanos(at_ns)
}

/// More of a frame than the file has is taken to be zero, for so many bytes: no frame is longer.
const LONGEST: usize = 1 << 18;

/// The flows of a file, as they were met.
#[derive(Default)]
struct Census {
    flows: HashMap<Key, (u64, u64)>,
    /// Packets of no flow: they have no ports.
    others: u64,
}

impl Census {
    fn count(&mut self, key: &Key, bytes: u32) {
        if key.ports().is_none() {
            self.others += 1;
            return;
        }
        let (packets, all) = self.flows.entry(*key).or_default();
        *packets += 1;
        *all += u64::from(bytes);
    }

    /// Those of the most bytes first; of as many, by their filters.
    fn seen(&self) -> Vec<Seen> {
        let flows = self.flows.iter().filter_map(|(key, (packets, bytes))| {
            Some(Seen {
                filter: Filter::flow(key)?.to_string(),
                packets: *packets,
                bytes: *bytes,
            })
        });
        let mut seen: Vec<Seen> = flows.collect();
        seen.sort_by(|one, other| {
            let most = other.bytes.cmp(&one.bytes);
            most.then_with(|| one.filter.cmp(&other.filter))
        });
        seen
    }
}

/// The packets of a file that match a filter; without one, those of its only flow.
///
/// # Errors
///
/// [`SelectError`].
pub fn select(
    frames: impl Iterator<Item = Result<Frame, Unreadable>>,
    filter: Option<&Filter>,
    grouping: Grouping,
) -> Result<Selected, SelectError> {
    let mut census = Census::default();
    let (mut packets, mut pieces, mut count) = (Vec::new(), 0, 0);
    // That a packet is none of RTP is wrong only if it is known whose it is.
    let mut not_rtp = None;
    for (number, frame) in (1..).zip(frames) {
        let mut frame = frame?;
        count = number;
        frame.bytes.resize(frame.length.min(LONGEST), 0);
        let key = parse(&frame.bytes, None).key;
        let Some(content) = carried(&frame.bytes) else {
            continue;
        };
        if filter.is_some_and(|filter| !filter.matches(&key)) {
            pieces += u64::from(is_piece(&key));
            continue;
        }
        let at = instant(frame.at_ns.ok_or(SelectError::NoTime(number))?);
        let bytes = content.len() as u32;
        census.count(&key, bytes);
        let rtp = match grouping {
            Grouping::Rtp => Rtp::of(&key, content),
            Grouping::Each | Grouping::Gap(_) => None,
        };
        if grouping == Grouping::Rtp && rtp.is_none() {
            not_rtp = not_rtp.or(Some(number));
        }
        packets.push(Packet { at, bytes, rtp });
    }
    let filter = named(filter, &census, (count, pieces))?;
    if let Some(number) = not_rtp {
        return Err(SelectError::NotRtp(number));
    }
    packets.sort_by_key(|packet| packet.at);
    Ok(Selected {
        packets,
        flows: census.flows.len() + usize::from(census.others > 0),
        filter,
        pieces,
    })
}

/// The filter that was asked for, or that of the only flow there is.
fn named(
    filter: Option<&Filter>,
    census: &Census,
    (count, pieces): (u64, u64),
) -> Result<String, SelectError> {
    if census.flows.is_empty() && census.others == 0 {
        let why = match pieces {
            0 => "",
            _ => {
                ", and there are pieces of fragmented packets among them, which have no ports: name their flow by its hosts"
            }
        };
        return Err(SelectError::Nothing(count, why));
    }
    let Some(filter) = filter else {
        let mut seen = census.seen();
        return match (seen.pop(), seen.is_empty(), census.others) {
            (Some(only), true, 0) => Ok(only.filter),
            (last, ..) => {
                seen.extend(last);
                Err(SelectError::Several(seen))
            }
        };
    };
    Ok(filter.to_string())
}

/// Whether a sound packet is a piece of a fragmented one that would have ports.
fn is_piece(key: &Key) -> bool {
    let has_ports = |protocol| [TCP, UDP, SCTP].contains(&protocol);
    key.ports().is_none() && key.protocol().is_some_and(has_ports)
}

/// From the first packet to the last.
pub(crate) fn lasts(packets: &[Packet]) -> Span {
    match packets {
        [first, .., last] => last.at.saturating_since(first.at),
        _ => Span::ZERO,
    }
}
