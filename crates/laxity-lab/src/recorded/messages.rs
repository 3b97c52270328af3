//! Which packets of a flow are one message.

use std::collections::BTreeMap;

use laxity_model::nif::frame::{Key, UDP};
use laxity_model::{Instant, Span};

use crate::scenario::units::{self, UnitError};

/// By what packets are known to be of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    /// Each is one.
    #[default]
    Each,
    /// A packet that comes more than this behind the one before it begins another.
    Gap(Span),
    /// Those of one source (SSRC) with one timestamp, wherever they stand between others. The marker says nothing of it: it is set in the last packet of a frame of video,
    /// and in the first one of a talkspurt of audio. Each packet of RTCP is one.
    Rtp,
}

/// A way to group packets, as it is written: `packet`, `gap=2ms`, `rtp`.
///
/// # Errors
///
/// It is none of these, or the gap is no time of more than zero.
pub fn grouping(text: &str) -> Result<Grouping, UnitError> {
    let remedy = "write `packet`, `rtp`, or a gap with its unit, such as `gap=2ms`";
    match (text, text.strip_prefix("gap=")) {
        ("packet", _) => Ok(Grouping::Each),
        ("rtp", _) => Ok(Grouping::Rtp),
        (_, Some(gap)) => match units::span(gap)? {
            Span::ZERO => Err(UnitError::new("a gap of nothing is none", remedy)),
            gap => Ok(Grouping::Gap(gap)),
        },
        _ => Err(UnitError::new(
            format!("`{text}` does not say which packets are one message"),
            remedy,
        )),
    }
}

/// A packet of the flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When it came, since 1970.
    pub at: Instant,
    /// What it carries.
    pub bytes: u32,
    /// What RTP says of it, where that is asked for.
    pub rtp: Option<Rtp>,
}

/// What RTP (RFC 3550) says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rtp {
    /// Of which source, and its timestamp.
    Media(u32, u32),
    /// It is one of RTCP, on the same ports (RFC 5761).
    Control,
}

impl Rtp {
    /// Of what a packet with this key carries; `None` where that is something else.
    pub(super) fn of(key: &Key, content: &[u8]) -> Option<Self> {
        let is_udp = key.protocol() == Some(UDP) && key.ports().is_some();
        let [first, kind, ..] = content else {
            return None;
        };
        if !is_udp || first >> 6 != 2 {
            return None;
        }
        let word = |at: usize| Some(u32::from_be_bytes(*content.get(at..)?.first_chunk()?));
        match kind {
            192..=223 => Some(Self::Control),
            _ => Some(Self::Media(word(8)?, word(4)?)),
        }
    }
}

/// Packets that are sent as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// When its first packet came.
    pub at: Instant,
    /// What its packets carry.
    pub bytes: u64,
    /// How many they are.
    pub packets: u32,
}

/// The messages of packets that are in the order of their instants, in the order of their first packets.
#[must_use]
pub fn messages(packets: &[Packet], grouping: Grouping) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // Of each source of RTP its timestamp, and the message that has it.
    let mut open: BTreeMap<u32, (u32, usize)> = BTreeMap::new();
    let mut before: Option<Instant> = None;
    for packet in packets {
        let last = messages.len().checked_sub(1);
        let of = match (grouping, packet.rtp) {
            (Grouping::Gap(gap), _) => {
                let is_near = |before| packet.at.saturating_since(before) <= gap;
                last.filter(|_| before.is_some_and(is_near))
            }
            (Grouping::Rtp, Some(Rtp::Media(source, timestamp))) => {
                let known = open.get(&source).copied();
                let same = known.filter(|(known, _)| *known == timestamp);
                let same = same.map(|(_, message)| message);
                open.insert(source, (timestamp, same.unwrap_or(messages.len())));
                same
            }
            (Grouping::Each | Grouping::Rtp, _) => None,
        };
        before = Some(packet.at);
        match of.map(|of| &mut messages[of]) {
            Some(message) => {
                message.bytes += u64::from(packet.bytes);
                message.packets += 1;
            }
            None => messages.push(Message {
                at: packet.at,
                bytes: packet.bytes.into(),
                packets: 1,
            }),
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(at: u64, bytes: u32, rtp: Option<Rtp>) -> Packet {
        let at = Instant::from_nanos(at);
        Packet { at, bytes, rtp }
    }

    /// At which instants messages begin, and how large each is.
    fn grouped(packets: &[Packet], grouping: Grouping) -> Vec<(u64, u64, u32)> {
        let messages = messages(packets, grouping);
        let parts = |message: &Message| (message.at.as_nanos(), message.bytes, message.packets);
        messages.iter().map(parts).collect()
    }

    #[test]
    fn a_gap_of_more_than_so_much_begins_a_message() {
        let times = [(0, 3), (10, 4), (20, 5), (31, 6), (31, 7)];
        let packets = times.map(|(at, bytes)| packet(at, bytes, None));
        let gap = Grouping::Gap(Span::from_nanos(10));
        assert_eq!(grouped(&packets, gap), [(0, 12, 3), (31, 13, 2)]);
        assert_eq!(grouped(&packets, Grouping::Each).len(), 5);
    }

    #[test]
    fn packets_of_one_source_and_timestamp_are_a_message_wherever_they_stand() {
        let media = |at, source, timestamp| packet(at, 10, Some(Rtp::Media(source, timestamp)));
        let packets = [
            media(0, 1, 90),
            media(1, 2, 90),
            media(2, 1, 90),
            packet(3, 10, Some(Rtp::Control)),
            packet(4, 10, Some(Rtp::Control)),
            media(5, 1, 93),
            media(6, 2, 90),
            media(7, 1, 93),
        ];
        let expected = [(0, 20, 2), (1, 20, 2), (3, 10, 1), (4, 10, 1), (5, 20, 2)];
        assert_eq!(grouped(&packets, Grouping::Rtp), expected);
    }

    #[test]
    fn a_grouping_is_read_as_it_is_written() {
        assert_eq!(grouping("packet"), Ok(Grouping::Each));
        assert_eq!(grouping("rtp"), Ok(Grouping::Rtp));
        let gap = Grouping::Gap(Span::from_millis(2));
        assert_eq!(grouping("gap=2ms"), Ok(gap));
        for wrong in ["", "gap", "gap=", "gap=0ms", "gap=2", "frames"] {
            assert!(grouping(wrong).is_err(), "{wrong}");
        }
    }
}
