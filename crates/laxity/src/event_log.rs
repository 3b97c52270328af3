//! An application's own events, by name.

use std::fmt;

use laxity_linux::EventReader;
use laxity_model::{ActivityId, EventKind, Instant, Mark, ProcessorId};

/// Events that fit between two readings unless said otherwise.
const CAPACITY: usize = 1 << 14;

/// What one activity records of itself while it works: cheap to write (a reading of the processor's counter and 32 bytes, no allocation,
/// no system call where the clock source is that counter), and read afterwards.
///
/// Several threads have a log each; as all read the same clock, their entries can be merged by [`LogEntry::at`].
///
/// ```
/// let mut log = laxity::EventLog::new("modem");
/// let block = log.declare("block");
/// let late = log.declare("late");
///
/// log.mark(block, [1, 0]);
/// log.mark(late, [1, 250]);
///
/// let entries = log.events();
/// assert_eq!((entries[0].name, entries[1].name), ("block", "late"));
/// assert!(entries[0].at <= entries[1].at);
/// assert_eq!(log.lost(), 0);
/// ```
pub struct EventLog {
    activity: &'static str,
    names: Vec<&'static str>,
    writer: laxity_linux::EventLog,
    reader: EventReader,
}

/// One event, as it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// When, by the clock of [`now`](crate::now); exact to well under a microsecond.
    pub at: Instant,
    /// Whose log it is from.
    pub activity: &'static str,
    /// What happened.
    pub name: &'static str,
    /// Two numbers, as they were given.
    pub args: [u64; 2],
}

impl EventLog {
    /// The log of an activity, with room for 16384 events (512 KiB) between two readings.
    #[must_use]
    pub fn new(activity: &'static str) -> Self {
        Self::with_capacity(activity, CAPACITY)
    }

    /// The same, with room for at least so many events, of 32 bytes each. The memory is touched here, not while events are recorded.
    #[must_use]
    pub fn with_capacity(activity: &'static str, events: usize) -> Self {
        // Neither number is known of a thread that is not an activity of a program, and neither is shown.
        let (writer, reader) =
            laxity_linux::EventLog::new(events, ActivityId::default(), ProcessorId::default());
        Self {
            activity,
            names: Vec::new(),
            writer,
            reader,
        }
    }

    /// Names an event of this log's. Allocates: declare before the work begins.
    ///
    /// # Panics
    ///
    /// At the 32769th name.
    pub fn declare(&mut self, name: &'static str) -> Mark {
        const MOST: usize = 1 << 15;
        assert!(
            self.names.len() < MOST,
            "a log has at most {MOST} names; {name:?} is one more"
        );
        self.names.push(name);
        Mark((self.names.len() - 1) as u16)
    }

    /// Records an event, now. Where the log is full it is only counted, as [`lost`](Self::lost), and the answer is `false`.
    #[inline]
    pub fn mark(&mut self, mark: Mark, args: [u64; 2]) -> bool {
        self.writer.mark(mark, args)
    }

    /// What was recorded since the last reading, oldest first; makes room for as much again. A mark that this log did not
    /// declare has the name `undeclared`.
    #[must_use = "what is read is no longer in the log"]
    pub fn events(&mut self) -> Vec<LogEntry> {
        let mut events = Vec::new();
        self.reader.drain(&mut events);
        let entries = events.into_iter().map(|event| LogEntry {
            at: event.at,
            activity: self.activity,
            name: self.name(event.kind),
            args: event.args,
        });
        entries.collect()
    }

    /// How many events found the log full.
    pub fn lost(&self) -> u64 {
        self.writer.lost()
    }

    fn name(&self, kind: EventKind) -> &'static str {
        let name = match kind {
            EventKind::Mark(mark) => self.names.get(usize::from(mark.0)),
            _ => None,
        };
        name.copied().unwrap_or("undeclared")
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("activity", &self.activity)
            .field("names", &self.names)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

/// `17.003250118 s  modem  late  1 250`.
impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS_PER_SEC: u64 = 1_000_000_000;
        let nanos = self.at.as_nanos();
        let (seconds, rest) = (nanos / NANOS_PER_SEC, nanos % NANOS_PER_SEC);
        let [first, second] = self.args;
        let Self { activity, name, .. } = self;
        write!(
            f,
            "{seconds}.{rest:09} s  {activity}  {name}  {first} {second}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn an_entry_prints_to_the_nanosecond() {
        let entry = LogEntry {
            at: Instant::from_nanos(17_003_250_118),
            activity: "modem",
            name: "late",
            args: [1, 250],
        };
        assert_eq!(entry.to_string(), "17.003250118 s  modem  late  1 250");
    }

    #[test]
    fn a_mark_of_another_log_has_no_name_here() {
        let mut log = EventLog::with_capacity("modem", 4);
        log.mark(Mark(3), [0; 2]);
        assert_eq!(log.events()[0].name, "undeclared");
    }

    #[test]
    fn a_log_may_be_filled_in_one_thread_and_read_in_another() {
        let mut log = EventLog::new("modem");
        let block = log.declare("block");
        let mut log = std::thread::spawn(move || {
            log.mark(block, [7, 8]);
            log
        })
        .join()
        .unwrap();
        let entries = log.events();
        assert_eq!((entries[0].name, entries[0].args), ("block", [7, 8]));
    }

    proptest! {
        /// Against a queue that is written and read in the same way.
        #[test]
        fn what_fits_comes_out_in_order_and_the_rest_is_counted(bursts in prop::collection::vec(0usize..12, 1..20)) {
            let mut log = EventLog::with_capacity("modem", 8);
            let marks = ["even", "odd"].map(|name| (log.declare(name), name));
            let (mut expected, mut lost, mut number) = (VecDeque::new(), 0, 0u64);
            let mut latest = crate::now();
            for burst in bursts {
                for _ in 0..burst {
                    let (mark, name) = marks[(number % 2) as usize];
                    let fits = expected.len() < 8;
                    prop_assert_eq!(log.mark(mark, [number, 0]), fits);
                    if fits {
                        expected.push_back((name, number));
                    } else {
                        lost += 1;
                    }
                    number += 1;
                }
                for entry in log.events() {
                    prop_assert_eq!(Some((entry.name, entry.args[0])), expected.pop_front());
                    // Two readings place events on lines of their own, which meet to well under a microsecond.
                    prop_assert!(entry.at + laxity_model::Span::from_micros(5) >= latest);
                    latest = latest.max(entry.at);
                }
                prop_assert!(expected.is_empty());
                prop_assert_eq!(log.lost(), lost);
            }
        }
    }
}
