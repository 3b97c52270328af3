//! One run as the packets of one sequence.

use laxity_model::Instant;

use super::super::lanes::{Drawn, Edge, Label, Lane, entry};
use super::super::trace::Trace;
use super::wire::Message;
use super::{Contents, SliceTotal};

/// Field numbers of `perfetto.protos.Trace` and what is in it.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;
    pub(super) const PACKET_TIMESTAMP: u32 = 8;
    pub(super) const PACKET_SEQUENCE_ID: u32 = 10;
    pub(super) const PACKET_TRACK_EVENT: u32 = 11;
    pub(super) const PACKET_INTERNED_DATA: u32 = 12;
    pub(super) const PACKET_SEQUENCE_FLAGS: u32 = 13;
    pub(super) const PACKET_TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const EVENT_DEBUG_ANNOTATION: u32 = 4;
    pub(super) const EVENT_TYPE: u32 = 9;
    pub(super) const EVENT_NAME_IID: u32 = 10;
    pub(super) const EVENT_TRACK_UUID: u32 = 11;
    pub(super) const EVENT_COUNTER_VALUE: u32 = 30;
    pub(super) const ANNOTATION_NAME_IID: u32 = 1;
    pub(super) const ANNOTATION_UINT_VALUE: u32 = 3;
    pub(super) const INTERNED_EVENT_NAMES: u32 = 2;
    pub(super) const INTERNED_ANNOTATION_NAMES: u32 = 3;
    pub(super) const INTERNED_IID: u32 = 1;
    pub(super) const INTERNED_NAME: u32 = 2;
    pub(super) const DESCRIPTOR_UUID: u32 = 1;
    pub(super) const DESCRIPTOR_NAME: u32 = 2;
    pub(super) const DESCRIPTOR_PROCESS: u32 = 3;
    pub(super) const DESCRIPTOR_PARENT_UUID: u32 = 5;
    pub(super) const DESCRIPTOR_COUNTER: u32 = 8;
    pub(super) const DESCRIPTOR_CHILD_ORDERING: u32 = 11;
    pub(super) const DESCRIPTOR_SIBLING_ORDER_RANK: u32 = 12;
    pub(super) const DESCRIPTOR_PROCESS_PID: u32 = 1;
    pub(super) const DESCRIPTOR_PROCESS_NAME: u32 = 6;
}

/// `TrackEvent.Type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// `TrackDescriptor.ChildTracksOrdering`: by rank.
const EXPLICIT: u64 = 3;
/// `TracePacket.SequenceFlags`.
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// The names of numbers that go with an event, at the place of their interned number − 1.
const ANNOTATIONS: [&str; 3] = ["first", "second", "latency_ns"];
const FIRST: u64 = 1;
const SECOND: u64 = 2;
const LATENCY: u64 = 3;

/// What is known of a track once something was drawn on it.
struct Track {
    uuid: u64,
    name: String,
    /// The open slice: its name's number, and since when.
    open: Option<(u64, u64)>,
    /// Slices, and their time together in nanoseconds, by their name's number.
    totals: Vec<(u64, u64)>,
}

impl Track {
    fn count(&mut self, iid: u64, duration_ns: u64) {
        let (count, total_duration_ns) = entry(&mut self.totals, iid as usize);
        *count += 1;
        *total_duration_ns += duration_ns;
    }
}

/// The state of one run's sequence of packets.
pub(super) struct Run<'a> {
    out: Message,
    trace: &'a Trace,
    sequence: u64,
    process_uuid: u64,
    next_uuid: u64,
    /// By kind of lane, then by number.
    tracks: [Vec<Option<Track>>; 5],
    /// The names that were sent, by their number.
    names: Vec<Option<String>>,
    counter_values: u64,
}

/// The kind of lane, and which one of them.
fn place(lane: Lane) -> (usize, usize) {
    match lane {
        Lane::Processor(p) => (0, p.index()),
        Lane::Disturbed(p) => (1, p.index()),
        Lane::Activity(a) => (2, a.index()),
        Lane::Slots(a) => (3, a.index()),
        Lane::Level(mark) => (4, usize::from(mark.0)),
    }
}

impl<'a> Run<'a> {
    /// Begins a sequence: names its process, and the numbers that go with events.
    pub(super) fn open(out: Message, trace: &'a Trace, sequence: u64, uuid: u64) -> Self {
        let mut run = Self {
            out,
            trace,
            sequence,
            process_uuid: uuid,
            next_uuid: uuid + 1,
            tracks: Default::default(),
            names: Vec::new(),
            counter_values: 0,
        };
        run.packet(STATE_CLEARED, |packet| {
            packet.nested(field::PACKET_INTERNED_DATA, |interned| {
                for (iid, name) in (1..).zip(ANNOTATIONS) {
                    interned.nested(field::INTERNED_ANNOTATION_NAMES, |annotation| {
                        annotation.number(field::INTERNED_IID, iid);
                        annotation.text(field::INTERNED_NAME, name);
                    });
                }
            });
        });
        run.packet(NEEDS_STATE, |packet| {
            packet.nested(field::PACKET_TRACK_DESCRIPTOR, |track| {
                track.number(field::DESCRIPTOR_UUID, uuid);
                track.number(field::DESCRIPTOR_CHILD_ORDERING, EXPLICIT);
                track.nested(field::DESCRIPTOR_PROCESS, |process| {
                    process.number(field::DESCRIPTOR_PROCESS_PID, sequence);
                    process.text(field::DESCRIPTOR_PROCESS_NAME, &trace.name);
                });
            });
        });
        run
    }

    /// Adds what was drawn to `contents`; returns the bytes so far, and the first unused track number.
    pub(super) fn close(self, contents: &mut Contents) -> (Message, u64) {
        contents.counter_values += self.counter_values;
        for track in self.tracks.into_iter().flatten().flatten() {
            for (iid, (count, total_duration_ns)) in track.totals.into_iter().enumerate() {
                let name = self.names.get(iid).cloned().flatten();
                if let (Some(name), 1..) = (name, count) {
                    contents.slices.push(SliceTotal {
                        run: self.trace.name.clone(),
                        track: track.name.clone(),
                        name,
                        count,
                        total_duration_ns,
                    });
                }
            }
        }
        (self.out, self.next_uuid)
    }

    #[inline]
    fn packet(&mut self, flags: u64, fill: impl FnOnce(&mut Message)) {
        let sequence = self.sequence;
        self.out.nested(field::TRACE_PACKET, |packet| {
            packet.number(field::PACKET_SEQUENCE_ID, sequence);
            if flags != 0 {
                packet.number(field::PACKET_SEQUENCE_FLAGS, flags);
            }
            fill(packet);
        });
    }

    #[inline]
    fn event(&mut self, at: u64, track: u64, kind: u64, fill: impl FnOnce(&mut Message)) {
        // Only names refer to what was sent before.
        let named = kind == SLICE_BEGIN || kind == INSTANT;
        self.packet(if named { NEEDS_STATE } else { 0 }, |packet| {
            packet.number(field::PACKET_TIMESTAMP, at);
            packet.nested(field::PACKET_TRACK_EVENT, |event| {
                event.number(field::EVENT_TYPE, kind);
                event.number(field::EVENT_TRACK_UUID, track);
                fill(event);
            });
        });
    }

    /// Appends one drawn edge.
    pub(super) fn draw(&mut self, drawn: Drawn) {
        let at = self.since_start(drawn.at);
        match drawn.edge {
            Edge::Begin(label, latency) => {
                let iid = self.intern(label);
                let track = self.track(drawn.lane);
                track.open = Some((iid, at));
                let uuid = track.uuid;
                self.event(at, uuid, SLICE_BEGIN, |event| {
                    event.number(field::EVENT_NAME_IID, iid);
                    if let Some(latency) = latency {
                        annotate(event, LATENCY, latency);
                    }
                });
            }
            Edge::End => {
                let track = self.track(drawn.lane);
                if let Some((iid, since)) = track.open.take() {
                    track.count(iid, at.saturating_sub(since));
                }
                let uuid = track.uuid;
                self.event(at, uuid, SLICE_END, |_| ());
            }
            Edge::Point(label, args) => {
                let iid = self.intern(label);
                let track = self.track(drawn.lane);
                track.count(iid, 0);
                let uuid = track.uuid;
                self.event(at, uuid, INSTANT, |event| {
                    event.number(field::EVENT_NAME_IID, iid);
                    for (name, arg) in [FIRST, SECOND].into_iter().zip(args) {
                        if arg != 0 {
                            annotate(event, name, arg);
                        }
                    }
                });
            }
            Edge::Level(value) => {
                let uuid = self.track(drawn.lane).uuid;
                self.counter_values += 1;
                self.event(at, uuid, COUNTER, |event| {
                    event.number(field::EVENT_COUNTER_VALUE, value);
                });
            }
        }
    }

    fn since_start(&self, at: Instant) -> u64 {
        at.saturating_since(self.trace.start).as_nanos()
    }

    /// The number of the label's name, which is sent when it is first used.
    fn intern(&mut self, label: Label) -> u64 {
        let iid = label.number();
        if entry(&mut self.names, iid as usize).is_none() {
            let name = label.name(self.trace).into_owned();
            self.packet(NEEDS_STATE, |packet| {
                packet.nested(field::PACKET_INTERNED_DATA, |interned| {
                    interned.nested(field::INTERNED_EVENT_NAMES, |event| {
                        event.number(field::INTERNED_IID, iid);
                        event.text(field::INTERNED_NAME, &name);
                    });
                });
            });
            self.names[iid as usize] = Some(name);
        }
        iid
    }

    /// The lane's track, which is described when it is first used.
    fn track(&mut self, lane: Lane) -> &mut Track {
        let (kind, index) = place(lane);
        if self.tracks[kind].get(index).is_none_or(Option::is_none) {
            let track = self.describe(lane);
            let table = &mut self.tracks[kind];
            table.resize_with(table.len().max(index + 1), || None);
            table[index] = Some(track);
        }
        self.tracks[kind][index]
            .as_mut()
            .expect("the track was just made")
    }

    fn describe(&mut self, lane: Lane) -> Track {
        let (uuid, parent) = (self.next_uuid, self.process_uuid);
        self.next_uuid += 1;
        let (name, rank) = (lane.name(self.trace).into_owned(), lane.rank(self.trace));
        self.packet(NEEDS_STATE, |packet| {
            packet.nested(field::PACKET_TRACK_DESCRIPTOR, |track| {
                track.number(field::DESCRIPTOR_UUID, uuid);
                track.number(field::DESCRIPTOR_PARENT_UUID, parent);
                track.text(field::DESCRIPTOR_NAME, &name);
                track.number(field::DESCRIPTOR_SIBLING_ORDER_RANK, rank);
                if let Lane::Level(_) = lane {
                    track.nested(field::DESCRIPTOR_COUNTER, |_| ());
                }
            });
        });
        Track {
            uuid,
            name,
            open: None,
            totals: Vec::new(),
        }
    }
}

fn annotate(event: &mut Message, name: u64, value: u64) {
    event.nested(field::EVENT_DEBUG_ANNOTATION, |annotation| {
        annotation.number(field::ANNOTATION_NAME_IID, name);
        annotation.number(field::ANNOTATION_UINT_VALUE, value);
    });
}
