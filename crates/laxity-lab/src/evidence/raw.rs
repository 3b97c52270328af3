//! The raw trace file: what the ring held, on disk.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `LAXEVENT` |
//! | 4 | format version, 1 |
//! | 4 | n, the length of the names |
//! | n | JSON: name, processors, activities, marks, start_ns, end_ns, events, events_lost |
//! | to a multiple of 32 | spaces |
//! | 32 each | events: [`Event::to_words`] |
//!
//! All numbers are little-endian. The records begin at a multiple of their size, so a program may map them as they are.

use laxity_model::{Event, Instant};
use serde::{Deserialize, Serialize};

use super::trace::{Trace, TraceActivity, TraceMark};

const MAGIC: &[u8; 8] = b"LAXEVENT";
const VERSION: u32 = 1;
const PREFIX_BYTES: usize = 16;
const RECORD_BYTES: usize = 32;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: String,
    processors: u16,
    activities: Vec<TraceActivity>,
    marks: Vec<TraceMark>,
    start_ns: u64,
    end_ns: u64,
    events: u64,
    events_lost: u64,
}

/// Why bytes are no raw trace.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// They begin with something else.
    #[error("not a laxity event file: it does not begin with LAXEVENT")]
    NotOurs,
    /// They are of a later format.
    #[error("event file of format {0}; this program reads format {VERSION}")]
    Version(u32),
    /// They end too early.
    #[error("event file cut short: {expected} bytes were announced, {found} are there")]
    Truncated {
        /// The length that the header tells, in bytes.
        expected: u64,
        /// The length there is.
        found: u64,
    },
    /// They go on after the last record.
    #[error("event file too long: {expected} bytes were announced, {found} are there")]
    TooLong {
        /// The length that the header tells, in bytes.
        expected: u64,
        /// The length there is.
        found: u64,
    },
    /// The names cannot be read.
    #[error("event file with an unreadable header: {0}")]
    Header(#[from] serde_json::Error),
    /// A record is of no known kind.
    #[error("event file damaged: record {index} is of no known kind")]
    Record {
        /// Which one, from 0.
        index: usize,
    },
}

/// The trace as a file's bytes.
///
/// # Panics
///
/// Where the names are longer than 4 GB.
#[must_use]
pub fn encode(trace: &Trace) -> Vec<u8> {
    let header = Header {
        name: trace.name.clone(),
        processors: trace.processors,
        activities: trace.activities.clone(),
        marks: trace.marks.clone(),
        start_ns: trace.start.as_nanos(),
        end_ns: trace.end.as_nanos(),
        events: trace.events.len() as u64,
        events_lost: trace.events_lost,
    };
    let names = serde_json::to_vec(&header).expect("plain names and numbers are always JSON");
    let length = u32::try_from(names.len()).expect("names of more than 4 GB");
    let records_at = (PREFIX_BYTES + names.len()).next_multiple_of(RECORD_BYTES);
    let mut bytes = Vec::with_capacity(records_at + trace.events.len() * RECORD_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&names);
    bytes.resize(records_at, b' ');
    for event in &trace.events {
        for word in event.to_words() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    bytes
}

/// The trace in a file's bytes. Never panics, and takes memory in proportion to the bytes that are there, whatever they announce.
pub fn decode(bytes: &[u8]) -> Result<Trace, RawError> {
    let found = bytes.len() as u64;
    let cut_short = |expected: u64| RawError::Truncated { expected, found };
    if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
        return Err(RawError::NotOurs);
    }
    let prefix = bytes
        .first_chunk::<PREFIX_BYTES>()
        .ok_or(cut_short(PREFIX_BYTES as u64))?;
    let number = |at: usize| {
        u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
    };
    if number(8) != VERSION {
        return Err(RawError::Version(number(8)));
    }
    let names_end = PREFIX_BYTES as u64 + u64::from(number(12));
    let records_at = names_end.next_multiple_of(RECORD_BYTES as u64);
    let (Some(names), Some(records)) = (
        bytes.get(PREFIX_BYTES..names_end as usize),
        bytes.get(records_at as usize..),
    ) else {
        return Err(cut_short(records_at));
    };
    let header: Header = serde_json::from_slice(names)?;
    let expected = header
        .events
        .saturating_mul(RECORD_BYTES as u64)
        .saturating_add(records_at);
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(cut_short(expected)),
        std::cmp::Ordering::Greater => Err(RawError::TooLong { expected, found }),
        std::cmp::Ordering::Equal => Ok(Trace {
            name: header.name,
            processors: header.processors,
            activities: header.activities,
            marks: header.marks,
            start: Instant::from_nanos(header.start_ns),
            end: Instant::from_nanos(header.end_ns),
            events: records_of(records)?,
            events_lost: header.events_lost,
        }),
    }
}

fn records_of(bytes: &[u8]) -> Result<Vec<Event>, RawError> {
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    let mut events = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let (words, _) = record.as_chunks::<8>();
        let words = [0, 1, 2, 3].map(|i: usize| u64::from_le_bytes(words[i]));
        events.push(Event::from_words(words).ok_or(RawError::Record { index })?);
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::super::trace::samples;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_trace_survives_the_disk() {
        let trace = samples::busy(500);
        assert_eq!(decode(&encode(&trace)).unwrap(), trace);
        assert_eq!(
            decode(&encode(&Trace::default())).unwrap(),
            Trace::default()
        );
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = encode(&samples::busy(5));
        for length in 0..bytes.len() {
            let error = decode(&bytes[..length]).unwrap_err();
            assert!(
                matches!(error, RawError::Truncated { .. }),
                "{length}: {error}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(decode(&longer), Err(RawError::TooLong { .. })));
    }

    #[test]
    fn damage_is_named() {
        assert!(matches!(
            decode(b"GIF89a: a picture"),
            Err(RawError::NotOurs)
        ));
        let good = encode(&samples::busy(5));
        let mut later = good.clone();
        later[8] = 9;
        assert!(matches!(decode(&later), Err(RawError::Version(9))));
        let mut header = good.clone();
        header[PREFIX_BYTES] = b'!';
        assert!(matches!(decode(&header), Err(RawError::Header(_))));
        let mut record = good;
        let third = record.len() - 3 * RECORD_BYTES + 8;
        record[third..third + 2].copy_from_slice(&0x7fff_u16.to_le_bytes());
        assert!(matches!(
            decode(&record),
            Err(RawError::Record { index: 2 })
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            change in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut bytes = encode(&samples::busy(4));
            for (index, byte) in change {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(trace) = decode(&bytes) {
                prop_assert_eq!(trace.events.len(), 4);
            }
        }
    }
}
