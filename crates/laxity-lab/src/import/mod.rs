//! Task sets from files: CSV, and rt-app's JSON.
//!
//! [`read`] looks at the file's name and content to know which it is. What it returns can be analysed, or every
//! [`Diagnostic`] says file, line, column, cause and remedy. Nothing is guessed: what of an rt-app task cannot be told (a lock, a wait) is
//! named, and the task has no [`SetTask::work`].

mod csv;
mod rt_app;

use std::collections::BTreeSet;

use laxity_model::analysis::Task;
use laxity_model::analysis::multiprocessor::DeadlineRequest;

use crate::scenario::Diagnostic;
use crate::scenario::diagnostic::Source;

/// An error on its way: small beside what is read.
type Wrong = Box<Diagnostic>;

/// A file may be so large: 4 MiB.
const LARGEST_FILE: usize = 4 << 20;

/// Of one file so many errors are told: who reads more mends these first, and each has the text of its line, which may be the whole file.
const MOST_ERRORS: usize = 50;

/// A set may have so many tasks.
pub const MOST_TASKS: usize = 1_000;

/// What kind of file it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Comma-separated values, a task a line.
    Csv,
    /// A workload of rt-app.
    RtApp,
}

impl Format {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::RtApp => "rt-app",
        }
    }

    /// What a file is, by its name's end, and if that says nothing by its first character; `None` if it is neither.
    #[must_use]
    pub fn of(name: &str, text: &str) -> Option<Self> {
        let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix);
        match suffix.map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => return Some(Self::Csv),
            Some("json") => return Some(Self::RtApp),
            Some("toml") => return None,
            _ => {}
        }
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('{') || text.starts_with("/*") {
            return Some(Self::RtApp);
        }
        let header = text.lines().find(|line| !line.starts_with('#'))?;
        let is_header =
            header.contains([',', ';']) && !header.contains('=') && !header.starts_with('[');
        is_header.then_some(Self::Csv)
    }
}

/// How a task is scheduled, as far as the file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// The file does not say.
    Unsaid,
    /// By a fixed priority; a larger number is more urgent, and equals go in the order in which they come, unless they [take turns](SetTask::takes_turns).
    Priority(u8),
    /// By `SCHED_DEADLINE`.
    Deadline(DeadlineRequest),
    /// By timesharing: nothing is promised to it, and it delays no one of the others.
    Timesharing,
    /// By more than one of these in turn, and nothing says when: at most by this priority, or if none is named by reservations by `SCHED_DEADLINE`. One
    /// that is bound to no processor may be on any.
    Changing(Option<u8>),
}

impl Policy {
    /// The reservation by `SCHED_DEADLINE`.
    pub(crate) const fn reservation(self) -> Option<DeadlineRequest> {
        match self {
            Self::Deadline(request) => Some(request),
            Self::Unsaid | Self::Priority(_) | Self::Timesharing | Self::Changing(_) => None,
        }
    }

    /// The fixed priority.
    pub(crate) const fn priority(self) -> Option<u8> {
        match self {
            Self::Priority(level) => Some(level),
            Self::Unsaid | Self::Deadline(_) | Self::Timesharing | Self::Changing(_) => None,
        }
    }
}

/// One task of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetTask {
    /// Its name; no two alike.
    pub name: String,
    /// How it is scheduled.
    pub policy: Policy,
    /// Where it may be, if the file says; empty: wherever it is placed.
    pub processors: BTreeSet<u16>,
    /// What it does, or why that cannot be told.
    pub work: Result<Task, String>,
    /// Whether it may ask for less than that: its jobs differ, or it begins later than the others, or ends. Who refuses it then has refused more than the
    /// file has.
    pub asks_less: bool,
    /// Whether it sleeps: within its jobs, where the sleep is analysed as if it ran, or behind them and by no timer, so that it comes less often where it
    /// is late.
    pub sleeps: bool,
    /// Whether it takes turns with those of its priority (`SCHED_RR`), so that who came later may go before it is done.
    pub takes_turns: bool,
    /// Whether the file says when its jobs are due, be that the period.
    pub own_deadline: bool,
}

impl SetTask {
    /// The only processor on which it may be, if there is only one.
    pub fn processor(&self) -> Option<u16> {
        let first = self.processors.first().copied();
        first.filter(|_| self.processors.len() == 1)
    }
}

/// What a file has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSet {
    /// The file's name, as it was given.
    pub file: String,
    /// What kind of file it was.
    pub format: Format,
    /// Its tasks, in the order of the file; at least one.
    pub tasks: Vec<SetTask>,
    /// What else is to be known, each a sentence.
    pub notes: Vec<String>,
}

/// Reads a task set.
///
/// # Errors
///
/// What was found wrong, in the order of the file, and no more than anybody reads (of a file that is no JSON at all, the first only).
pub fn read(text: &str, file: &str, format: Format) -> Result<TaskSet, Vec<Diagnostic>> {
    let source = Source { file, text };
    if text.len() > LARGEST_FILE {
        let cause = format!(
            "the file is larger than {} MiB",
            LARGEST_FILE / (1024 * 1024)
        );
        let remedy = format!("a set has at most {MOST_TASKS} tasks");
        return Err(vec![*source.error(0..0, cause, remedy)]);
    }
    let found = match format {
        Format::Csv => csv::read(source),
        Format::RtApp => rt_app::read(source),
    };
    found.map_err(|errors| errors.into_iter().map(|error| *error).collect())
}
