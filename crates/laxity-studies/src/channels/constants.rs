//! Every constant of the experiment that was put in, chosen or read into an unclear sentence, as the report lists them.

use std::collections::BTreeMap;

use laxity_lab::report::{Row, Value};
use laxity_lab::runner::RunError;

use super::figures::{ALIKE, ALL, BARELY, SLIGHTLY};
use super::machine::{
    BYTE, CACHE_MISS, CONTEXT_SWITCH, FIRST_PACKET, FURTHER_PACKET, LINK_SCHEDULING, OFFER,
    PACKET_BYTES, PACKETS, START,
};
use super::sender::BEST_EFFORT_ROOM;
use super::workload::{BEST_EFFORT_MESSAGES, CHANNELS, Channel, KILOBYTE};
use super::{BESIDE, LOADS, ROOMS, TEXT, UNSHAPED, VIOLATIONS};
use crate::register::{self, Constant};

/// As rows of the report.
///
/// # Errors
///
/// [`RunError::CannotRun`] if a constant's value has no such key, or a value has no constant.
pub(super) fn rows() -> Result<Vec<Row>, RunError> {
    let constants: Vec<Constant> = TEXT.quoted("constants");
    register::rows(&constants, values())
}

fn list<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = all.into_iter().map(|one| one.to_string()).collect();
    all.join(", ")
}

fn channel(channel: &Channel) -> Value {
    let Channel {
        bytes,
        period,
        burst,
        delay,
    } = channel;
    let size = bytes / KILOBYTE;
    format!("{size} KB every {period}, {burst} at once, due within {delay}").into()
}

fn values() -> BTreeMap<&'static str, Value> {
    let (bytes, burst) = BEST_EFFORT_MESSAGES;
    let size = bytes / KILOBYTE;
    let percent = |percent: u64| Value::share(percent * 10_000);
    BTreeMap::from([
        ("first", FIRST_PACKET.into()),
        ("further", FURTHER_PACKET.into()),
        ("scheduling", LINK_SCHEDULING.into()),
        ("cache-miss", CACHE_MISS.into()),
        ("switch", CONTEXT_SWITCH.into()),
        ("offer", OFFER.into()),
        ("start", START.into()),
        ("byte", BYTE.into()),
        ("packets", u64::from(PACKETS.get()).into()),
        ("packet-bytes", u64::from(PACKET_BYTES.get()).into()),
        ("channel-0", channel(&CHANNELS[0])),
        ("channel-1", channel(&CHANNELS[1])),
        ("channel-2", channel(&CHANNELS[2])),
        (
            "best-effort",
            format!("{size} KB, up to {burst} at once").into(),
        ),
        ("room", u64::from(BEST_EFFORT_ROOM).into()),
        ("rooms", list(ROOMS).into()),
        ("loads", format!("{} KB/s", list(LOADS)).into()),
        ("beside", format!("{BESIDE} KB/s").into()),
        ("violations", format!("{} %", list(VIOLATIONS)).into()),
        ("unshaped", percent(UNSHAPED)),
        ("all", percent(ALL)),
        ("alike", percent(100 / ALIKE)),
        ("slightly", percent(SLIGHTLY)),
        ("barely", Value::share(BARELY * 1_000)),
    ])
}
