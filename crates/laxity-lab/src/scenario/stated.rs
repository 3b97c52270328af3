//! What a client states of its packets: rate, burst and delay, by which its threads are as urgent as these are.

use laxity_model::nif::most::Most;
use laxity_model::nif::urgency::Stated;
use laxity_model::{Priority, Span};

use super::Placing;
use super::keys::{Any, Explained, Integers, Key, Priorities, Within, Without};
use super::placing::show_placing;
use super::quantities::{PACKETS, SPAN};
use super::reader::Section;
use super::sections::DURATIONS;
use super::types::{Demultiplexing, Taking};

pub(super) static RATE: Key<Most> = Key::new(
    "rate",
    &Any(&PACKETS),
    Without::Means("nothing is stated: its threads have one priority"),
    "How fast the packets of each of its connections come, as it states. A packet that comes faster than that is before its time: its logical arrival is when it would have come at this rate. Until then its thread has the priority of its `placement`, and from then on that of `critical`, so that packets that come early never delay current ones of others.",
);
pub(super) static BURST: Key<u32> = Key::new(
    "burst",
    &Integers(1, 65_535),
    Without::Means("as many as the rate has in its time"),
    "With `rate`: so many come at once at the most. One with which there are more counts as `packets_in_excess`, and has its place behind the others all the same.",
);
pub(super) static DELAY: Key<Span> = Key::new(
    "delay",
    &Within(&SPAN, DURATIONS),
    Without::Means("the time of the rate"),
    "With `rate`: so long after its logical arrival a packet is due. One that no thread is done with by then counts as `packets_late`.",
);
pub(super) static CRITICAL: Key<Priority> = Key::new(
    "critical",
    &Priorities,
    Without::Means("it is required with `rate`"),
    "With `rate`: the priority of its threads for what is current, which is above that of its `placement`.",
);

/// What a client states of its packets, if it does; without a placement that is wrong, and has been told.
pub(super) fn taking(
    section: &Section<'_>,
    demultiplexing: Demultiplexing,
    placing: Option<Placing>,
) -> Taking {
    let rate = section.find(&RATE);
    let (burst, delay) = (section.optional(&BURST), section.optional(&DELAY));
    let critical = section.find(&CRITICAL);
    if !section.has(RATE.name) {
        let more: [&dyn Explained; 3] = [&BURST, &DELAY, &CRITICAL];
        for key in more
            .map(Explained::name)
            .into_iter()
            .filter(|key| section.has(key))
        {
            let cause = format!("`{key}` says more of a `rate`, and there is none");
            let remedy = "remove it, or write for example: rate = \"3 packets every 100ms\"";
            section.wrong(key, cause, remedy);
        }
        return Taking::default();
    }
    if demultiplexing != Demultiplexing::Early {
        let cause = "a `rate` is of the packets of one connection, and here all have one queue";
        let remedy = "remove it, or write demultiplexing = \"early\"";
        section.wrong(RATE.name, cause, remedy);
    }
    let Some(placing) = placing else {
        return Taking::default();
    };
    let Placing::Thread(workahead) = placing else {
        let cause = "a reservation says when its thread runs, and a `rate` how urgent that is";
        let remedy = "remove the rate, or write a priority, such as placement = \"thread 8\"";
        section.wrong("placement", cause, remedy);
        return Taking::default();
    };
    if !section.has(CRITICAL.name) {
        section.missing(CRITICAL.name, "24");
    }
    if let Some(found) = critical.as_ref().filter(|found| found.value <= workahead) {
        let cause = format!(
            "what is current is no more urgent than what comes before its time, which has \"{}\"",
            show_placing(placing)
        );
        let remedy =
            "write a priority above that, or place it lower, such as placement = \"thread 8\"";
        section.findings.error(&found.place, cause, remedy);
    }
    // All that is wrong has been told.
    let (Some(rate), Some(critical)) = (rate, critical) else {
        return Taking::default();
    };
    let amount = u32::from(rate.value.packets());
    let every = rate.value.every();
    let burst = burst.unwrap_or(amount);
    Stated::new(amount, every, burst, delay.unwrap_or(every)).map_or(Taking::default(), |stated| {
        Taking::Due(stated, critical.value)
    })
}
