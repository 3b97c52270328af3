//! The trace as a reader that knows the format and nothing of the writer.

use std::collections::BTreeMap;

use super::*;
use crate::evidence::trace::{Trace, samples};
use laxity_model::{Event, EventKind, Instant};

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint is whole");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn number(bytes: &[u8], field: u64) -> Option<u64> {
    fields(bytes)
        .into_iter()
        .find_map(|(f, value)| match value {
            Value::Number(n) if f == field => Some(n),
            _ => None,
        })
}

fn messages(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    let of_field = fields(bytes).into_iter().filter(|(f, _)| *f == field);
    of_field
        .filter_map(|(_, value)| match value {
            Value::Bytes(b) => Some(b),
            Value::Number(_) => None,
        })
        .collect()
}

fn text(bytes: &[u8], field: u64) -> Option<String> {
    let found = messages(bytes, field).into_iter().next()?;
    Some(std::str::from_utf8(found).expect("text is UTF-8").into())
}

/// What has been read of a trace so far.
#[derive(Default)]
struct Reader {
    /// The run and the name of each track.
    tracks: BTreeMap<u64, (String, String)>,
    /// Names, by their sequences and numbers.
    names: BTreeMap<(u64, u64), String>,
    /// When the open slice of a track began, and its name.
    open: BTreeMap<u64, (u64, String)>,
    totals: BTreeMap<(u64, String), (u64, u64)>,
    counter_values: u64,
}

impl Reader {
    fn track(&mut self, track: &[u8]) {
        let process = messages(track, 3).first().map(|p| text(p, 6));
        let uuid = number(track, 1).expect("a track has an id");
        let parent = number(track, 5).and_then(|p| self.tracks.get(&p));
        let run = parent.map(|(run, _)| run.clone()).or(process.flatten());
        let run = run.expect("a process, or a child of one");
        let name = text(track, 2).unwrap_or_default();
        let before = self.tracks.insert(uuid, (run, name));
        assert_eq!(before, None, "track {uuid} is described twice");
    }

    fn event(&mut self, event: &[u8], sequence: u64, at: u64) {
        let track = number(event, 11).expect("an event has a track");
        assert!(self.tracks.contains_key(&track));
        let name = number(event, 10).map(|iid| self.names[&(sequence, iid)].clone());
        let (name, time) = match number(event, 9) {
            Some(1) => {
                let begun = (at, name.expect("a slice has a name"));
                let before = self.open.insert(track, begun);
                assert_eq!(before, None, "slices do not nest");
                return;
            }
            Some(2) => {
                let (since, name) = self.open.remove(&track).expect("a slice is open");
                (name, at - since)
            }
            Some(3) => (name.expect("a point has a name"), 0),
            Some(4) => {
                self.counter_values += 1;
                return;
            }
            other => panic!("event of type {other:?}"),
        };
        let (count, total) = self.totals.entry((track, name)).or_default();
        *count += 1;
        *total += time;
    }
}

/// Reads the whole trace, and fails where a track nests, a name or a track was not announced, or a slice stays open.
fn read(bytes: &[u8]) -> Contents {
    let mut reader = Reader::default();
    for packet in messages(bytes, 1) {
        let sequence = number(packet, 10).expect("every packet is of a sequence");
        for track in messages(packet, 60) {
            reader.track(track);
        }
        for interned in messages(packet, 12) {
            for event in messages(interned, 2) {
                let iid = number(event, 1).expect("a name has a number");
                let name = text(event, 2).expect("and a text");
                reader.names.insert((sequence, iid), name);
            }
        }
        for event in messages(packet, 11) {
            let at = number(packet, 8).expect("an event has a time");
            reader.event(event, sequence, at);
        }
    }
    let Reader { open, tracks, .. } = &reader;
    assert!(open.is_empty(), "open at the end: {open:?}");
    let totals = reader.totals.iter();
    let slices = totals.map(|((track, name), (count, total_duration_ns))| {
        let (run, track) = tracks[track].clone();
        SliceTotal {
            run,
            track,
            name: name.clone(),
            count: *count,
            total_duration_ns: *total_duration_ns,
        }
    });
    Contents {
        slices: slices.collect(),
        counter_values: reader.counter_values,
    }
}

fn sorted(contents: Contents) -> Contents {
    let mut contents = contents;
    contents.slices.sort();
    contents
}

#[test]
fn a_reader_finds_what_the_writer_says() {
    let mut second = samples::busy(333);
    second.name = "interrupt".into();
    let encoded = encode(&[samples::busy(6_500), second]);
    assert_eq!(sorted(read(&encoded.bytes)), sorted(encoded.contents));
}

#[test]
fn durations_are_those_of_the_events() {
    let contents = read(&encode(&[samples::busy(65 * 7)]).bytes);
    let find = |track: &str, name: &str| {
        let mut slices = contents.slices.iter();
        let found = slices.find(|s| s.track == track && s.name == name);
        found.map(|s| (s.count, s.total_duration_ns))
    };
    assert_eq!(find("card", "interrupt"), Some((7, 7 * 5_400)));
    assert_eq!(find("processor 0", "card"), Some((7, 7 * 5_400)));
    assert_eq!(find("driver", "running"), Some((7, 7 * 1_840_000)));
    assert_eq!(find("driver slots", "slot"), Some((7, 7 * 2_000_000)));
    assert_eq!(find("co-thread", "tick"), Some((63, 0)));
    assert_eq!(contents.counter_values, 7);
}

#[test]
fn what_is_open_at_the_end_is_closed_then() {
    let trace = Trace {
        name: "short".into(),
        start: Instant::from_nanos(100),
        end: Instant::from_nanos(700),
        events: vec![Event {
            at: Instant::from_nanos(200),
            kind: EventKind::Dispatch,
            processor: laxity_model::ProcessorId(3),
            activity: laxity_model::ActivityId(9),
            args: [0; 2],
        }],
        ..Trace::default()
    };
    let contents = sorted(read(&encode(&[trace]).bytes));
    let tracks: Vec<_> = contents
        .slices
        .iter()
        .map(|s| (s.track.as_str(), s.name.as_str(), s.total_duration_ns))
        .collect();
    // Without a description an activity goes by its number.
    let expected = [
        ("activity 9", "running", 500),
        ("processor 3", "activity 9", 500),
    ];
    assert_eq!(tracks, expected);
}
