//! What the kernel is told to make of an interface's queues: an HTB with one class for channels and one for all else, and what undoes it.
//!
//! ```text
//! 6c78:            root; what is in no class of it goes to the default, 6c78:20
//! └─ 6c78:1        the link's rate
//!    ├─ 6c78:10    channels: all of the rate is theirs, first; a plain queue
//!    └─ 6c78:20    the kernel's other traffic: whatever of the rate is left; fq_codel, or a plain queue
//! ```

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::Egress;
use super::error::RootQueue;
use crate::os::route;

/// As the kernel calls it.
pub(super) const KIND: &str = "htb";
/// The number of our root, by which it is told from others: below 0x8000, from where the kernel numbers by itself.
pub(super) const MAJOR: u16 = 0x6c78;
/// What is asked for first, and refused where there is no HTB.
pub(super) const ROOT: &str = "the root of its queues";

const LINK: u16 = 1;
/// The class of channels.
pub(super) const CHANNELS: u16 = 0x10;
/// The class of all else.
pub(super) const REST: u16 = 0x20;

/// Of `<linux/pkt_sched.h>`.
const OPTIONS: u16 = 2;
const CLASS: u16 = 1;
const INITIAL: u16 = 2;
const RATE_64: u16 = 6;
const CEIL_64: u16 = 7;
const VERSION: u32 = 3;
/// From a rate to how much is sent in a turn, where that is not said; it is.
const RATE_TO_QUANTUM: u32 = 10;
const ETHERNET: u8 = 1;

/// What is everybody else's own, in bytes a second, since a class has at least that: for the rest it borrows.
const LEAST: u64 = 1_000;
/// Frames in the class of channels, of all sockets. None is dropped for want of room: their owners have a few each there.
const CHANNELS_MOST: u32 = 1_000;
/// Packets in the class of all else where the kernel has no `fq_codel`: as many as `pfifo_fast` has of an interface by default.
const REST_MOST: u32 = 1_000;

/// The queues that are asked for, each with what it is.
pub(super) type Step = (&'static str, Vec<u8>);

/// What is made, in this order.
pub(super) fn steps(index: u32, mtu: usize, egress: &Egress) -> Vec<Step> {
    let class = |minor, parent, own: u64, priority| {
        let shape = Shape {
            egress,
            mtu,
            own,
            priority,
        };
        let message = queue(index, handle(minor), handle(parent), KIND, shape.options());
        made(Message::NewTrafficClass(message))
    };
    let all = egress.shaped() / 8;
    vec![
        (ROOT, made(Message::NewQueueDiscipline(root(index)))),
        ("the link's class", class(LINK, 0, all, 0)),
        ("the class of channels", class(CHANNELS, LINK, all, 0)),
        (
            "the class of all else",
            class(REST, LINK, LEAST.min(all), 1),
        ),
        (
            "the queue of channels",
            leaf(index, CHANNELS, Some(CHANNELS_MOST)),
        ),
    ]
}

/// The queue of all else: the first of these that the kernel has.
pub(super) fn rest_steps(index: u32) -> [Step; 2] {
    let what = "the queue of all else";
    [None, Some(REST_MOST)].map(|most| (what, leaf(index, REST, most)))
}

/// Takes the root away, and all below it, if it has our kind and number.
pub(super) fn delete(index: u32) -> Vec<u8> {
    let message = queue(index, handle(0), TcHandle::ROOT, KIND, Vec::new());
    route::question(Message::DelQueueDiscipline(message), 0)
}

/// Asks for the root.
pub(super) fn ask_root(index: u32) -> Vec<u8> {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    // Else the kernel tells all who listen but the one who asks.
    route::question(Message::GetQueueDiscipline(message), NLM_F_ECHO)
}

/// Asks for an interface.
pub(super) fn ask_link(index: u32) -> Vec<u8> {
    route::question(Message::GetLink(link(index)), 0)
}

/// Lets the kernel leave so many segments to an interface at a time.
pub(super) fn set_segments(index: u32, most: u32) -> Vec<u8> {
    let mut message = link(index);
    message.attributes.push(LinkAttribute::GsoMaxSegs(most));
    route::question(Message::SetLink(message), 0)
}

/// The root of an interface's queues, if the kernel's message is about that. No more of it is read: what there is to say of a queue depends on its kind, of which there are many.
pub(super) fn root_in(message: &[u8]) -> Option<RootQueue> {
    /// Behind the family and the interface's number.
    const HANDLE: usize = route::HEADER + 8;
    const OWN_HEADER: usize = 20;
    const KIND: u16 = 1;
    let kind = route::attribute(message, OWN_HEADER, KIND)?;
    let kind = kind.split(|byte| *byte == 0).next()?;
    Some(RootQueue {
        kind: String::from_utf8_lossy(kind).into_owned(),
        handle: route::word(message, HANDLE)?,
    })
}

fn handle(minor: u16) -> TcHandle {
    TcHandle {
        major: MAJOR,
        minor,
    }
}

fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn queue(
    index: u32,
    own: TcHandle,
    parent: TcHandle,
    kind: &str,
    options: Vec<TcAttribute>,
) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    (message.header.handle, message.header.parent) = (own, parent);
    message.attributes = vec![TcAttribute::Kind(kind.to_owned())];
    message.attributes.extend(options);
    message
}

fn root(index: u32) -> TcMessage {
    let numbers = [VERSION, RATE_TO_QUANTUM, u32::from(REST), 0, 0];
    let options = vec![TcOption::Other(DefaultNla::new(INITIAL, words(&numbers)))];
    let options = vec![TcAttribute::Options(options)];
    queue(index, handle(0), TcHandle::ROOT, KIND, options)
}

/// A plain queue of so many packets below a class, or `fq_codel`.
fn leaf(index: u32, class: u16, most: Option<u32>) -> Vec<u8> {
    let own = TcHandle {
        major: MAJOR + class,
        minor: 0,
    };
    let (kind, options) = match most {
        Some(most) => (
            "pfifo",
            vec![TcAttribute::Other(DefaultNla::new(OPTIONS, words(&[most])))],
        ),
        None => ("fq_codel", Vec::new()),
    };
    made(Message::NewQueueDiscipline(queue(
        index,
        own,
        handle(class),
        kind,
        options,
    )))
}

/// What is made anew, and not in place of another.
fn made(message: Message) -> Vec<u8> {
    route::question(message, NLM_F_CREATE | NLM_F_EXCL)
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

/// A class of HTB.
struct Shape<'a> {
    egress: &'a Egress,
    mtu: usize,
    /// What is its own, in bytes a second; more it borrows, up to the link's rate.
    own: u64,
    /// The lowest goes first, of those that borrow and of those that need not.
    priority: u32,
}

impl Shape<'_> {
    fn options(&self) -> Vec<TcAttribute> {
        let most = self.egress.shaped() / 8;
        let mut numbers = self.rate(self.own);
        numbers.extend(self.rate(most));
        let frame = (self.mtu + 18) as u64;
        let burst = |rate| ticks(self.egress.bucket(self.mtu), rate);
        numbers.extend(words(&[
            burst(self.own),
            burst(most),
            frame as u32,
            0,
            self.priority,
        ]));
        let options = [
            (CLASS, numbers),
            (RATE_64, self.own.to_ne_bytes().to_vec()),
            (CEIL_64, most.to_ne_bytes().to_vec()),
        ];
        let options = options.map(|(kind, value)| TcOption::Other(DefaultNla::new(kind, value)));
        vec![TcAttribute::Options(options.to_vec())]
    }

    /// A `tc_ratespec`: no table, and each frame takes so many bytes more than the kernel counts.
    fn rate(&self, bytes: u64) -> Vec<u8> {
        let overhead = self.egress.overhead;
        // The shortest frame on Ethernet; where nothing is added, frames are as short as they are.
        let least = if overhead > 0 { 60 + overhead } else { 0 };
        let mut spec = vec![0, ETHERNET];
        spec.extend([overhead, 0, least].map(u16::to_ne_bytes).as_flattened());
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        spec.extend(bytes.to_ne_bytes());
        spec
    }
}

/// For how long so many bytes take at a rate, in the kernel's ticks of 64 ns.
fn ticks(bytes: u64, rate: u64) -> u32 {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    u32::try_from(nanoseconds / 64).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_told_as_the_time_that_it_takes() {
        // 3,000 bytes at 12.5 MB/s are 240 µs.
        assert_eq!(ticks(3_000, 12_500_000), 3_750);
        assert_eq!(ticks(u64::MAX, 1), u32::MAX);
        assert_eq!(ticks(0, 0), 0);
    }
}
