//! What a machine file says of messages of UDP and of packets: tables that it need not have.

use std::ops::RangeInclusive;

use laxity::calibrate::{PacketCost, Packets, WAYS};
use laxity_model::Service;
use laxity_model::program::upcalls::qos::Cost;

use super::{COSTS, quoted, required, span, text};
use crate::scenario::reader::Section;
use crate::scenario::units::format_span;

/// A table that a file need not have, and its keys: what each takes and what a byte, or why that is not known.
pub(super) const UDP_MESSAGE: &str = "udp_message";
const OF_MESSAGE: [&str; 2] = ["each", "byte_ps"];
const NOT_MEASURED: &str = "not_measured";
/// Another, with a table for each way to an interface: what a look takes, and what a packet each way.
pub(super) const PACKETS: &str = "packets";
const OF_PACKETS: [&str; 5] = ["wake", "receive", "receive_byte_ps", "send", "send_byte_ps"];
/// What a byte of a message may take, in picoseconds.
pub(super) const BYTE_PS: RangeInclusive<u64> = 0..=1_000_000_000;

/// What a UDP message takes, or why that is not known.
pub(super) fn udp_message(root: &Section<'_>) -> Option<Result<Cost, String>> {
    if !root.has(UDP_MESSAGE) {
        let why = "the machine file is of a version that did not measure it";
        return Some(Err(why.to_owned()));
    }
    let section = root.section(UDP_MESSAGE, "[udp_message]")?;
    if section.has(NOT_MEASURED) {
        section.allow(&[NOT_MEASURED]);
        return text(&section, NOT_MEASURED).map(Err);
    }
    section.allow(&OF_MESSAGE);
    Some(Ok(cost_by_size(&section, OF_MESSAGE)?))
}

fn cost_by_size(section: &Section<'_>, [each, byte_ps]: [&str; 2]) -> Option<Cost> {
    let each = span(section, each, &COSTS);
    let byte_ps = required(section, byte_ps, "120", |key| {
        section.integer(key, &BYTE_PS)
    });
    Some(Cost {
        each: Service::from_nanos(each?.as_nanos()),
        byte_ps: byte_ps?,
    })
}

/// What packets take by each way that the file names; none where it is of a version that did not measure that.
pub(super) fn packets(root: &Section<'_>) -> Option<Packets> {
    let Some(section) = root.section(PACKETS, "[packets]") else {
        return (!root.has(PACKETS)).then(Packets::new);
    };
    section.allow(&WAYS);
    let named = WAYS.into_iter().filter(|way| section.has(way));
    let read = named.map(|way| {
        let section = section.section(way, &format!("[packets.{way}]"))?;
        Some((way, packets_by(&section)?))
    });
    // All are read before what is wrong with one ends it.
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}

fn packets_by(section: &Section<'_>) -> Option<Result<PacketCost, String>> {
    if section.has(NOT_MEASURED) {
        section.allow(&[NOT_MEASURED]);
        return text(section, NOT_MEASURED).map(Err);
    }
    section.allow(&OF_PACKETS);
    let [wake, receive, receive_byte, send, send_byte] = OF_PACKETS;
    let wake = span(section, wake, &COSTS);
    let receive = cost_by_size(section, [receive, receive_byte]);
    let send = cost_by_size(section, [send, send_byte]);
    Some(Ok(PacketCost {
        wake: Service::from_nanos(wake?.as_nanos()),
        receive: receive?,
        send: send?,
    }))
}

pub(super) fn rendered_message(message: &Result<Cost, String>) -> String {
    let about = "What a UDP message takes, sent and received over loopback: so much each, and so many picoseconds a byte.";
    let keys = match message {
        Ok(cost) => rendered_cost(OF_MESSAGE, cost),
        Err(why) => format!("{NOT_MEASURED} = {}\n", quoted(why)),
    };
    format!("\n# {about}\n[{UDP_MESSAGE}]\n{keys}")
}

fn rendered_cost([each, byte_ps]: [&str; 2], cost: &Cost) -> String {
    let span = format_span(cost.each.as_dedicated_span());
    format!("{each} = \"{span}\"\n{byte_ps} = {}\n", cost.byte_ps)
}

pub(super) fn rendered_packets(packets: &Packets) -> String {
    let about = "What packets take of a driver's thread, by this way to an interface: each look, and each packet, with so many picoseconds a byte.";
    let table = |(way, cost): (&&str, &Result<PacketCost, String>)| {
        let keys = match cost {
            Ok(cost) => {
                let [wake, receive, receive_byte, send, send_byte] = OF_PACKETS;
                let span = format_span(cost.wake.as_dedicated_span());
                let receive = rendered_cost([receive, receive_byte], &cost.receive);
                let send = rendered_cost([send, send_byte], &cost.send);
                format!("{wake} = \"{span}\"\n{receive}{send}")
            }
            Err(why) => format!("{NOT_MEASURED} = {}\n", quoted(why)),
        };
        format!("\n# {about}\n[{PACKETS}.{way}]\n{keys}")
    };
    packets.iter().map(table).collect()
}
