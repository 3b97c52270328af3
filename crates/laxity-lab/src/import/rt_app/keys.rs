//! The keys that rt-app looks for, and what becomes of others: rt-app passes over them, so a slip changes what a task does without a word.

use std::collections::BTreeSet;

use jsonc_parser::ast::{Object, ObjectProp};

use super::events::{KINDS, is_event};
use super::{File, Wrong};
use crate::plain;
use crate::scenario::diagnostic::nearest;

/// The keys of one kind of object.
pub(super) struct Keys {
    /// What it is, in words.
    what: &'static str,
    /// What is analysed.
    read: &'static [&'static str],
    /// What rt-app knows and no analysis: logs, and what moves or binds a task in ways that are not reckoned with.
    ignored: &'static [&'static str],
    /// Whether it has events too.
    has_events: bool,
}

pub(super) static ROOT: Keys = Keys {
    what: "the file",
    read: &["global", "tasks"],
    ignored: &["resources"],
    has_events: false,
};
pub(super) static GLOBAL: Keys = Keys {
    what: "`global`",
    read: &["default_policy"],
    ignored: &[
        "duration",
        "calibration",
        "pi_enabled",
        "lock_pages",
        "logdir",
        "log_basename",
        "log_size",
        "ftrace",
        "gnuplot",
        "io_device",
        "mem_buffer_size",
        "cumulative_slack",
        // Of older ones.
        "frag",
    ],
    has_events: false,
};
/// Of a thread. What only older ones know is among what is read: it is told of where it stands for events.
static TASK: Keys = Keys {
    what: "a thread",
    read: &[
        "instance",
        "delay",
        "loop",
        "phases",
        "policy",
        "priority",
        "cpus",
        "dl-runtime",
        "dl-period",
        "dl-deadline",
        "period",
        "deadline",
        "exec",
        "lock_order",
    ],
    ignored: BOUND,
    has_events: true,
};
/// What a phase says of its scheduling is told of elsewhere, where that is not what its thread says.
static PHASE: Keys = Keys {
    what: "a phase",
    read: &[
        "loop",
        "policy",
        "priority",
        "cpus",
        "dl-runtime",
        "dl-period",
        "dl-deadline",
        "period",
        "deadline",
        "util_min",
        "util_max",
        "nodes_membind",
        "membind_nodes",
        "taskgroup",
    ],
    ignored: &[],
    has_events: true,
};
pub(super) static TIMER: Keys = Keys {
    what: "a timer",
    read: &["ref", "period"],
    ignored: &["mode"],
    has_events: false,
};

/// Where a thread's memory is, how fast its processor is, and what it shares that with.
const BOUND: &[&str] = &[
    "util_min",
    "util_max",
    "nodes_membind",
    // As older ones call it.
    "membind_nodes",
    "taskgroup",
];

/// What an object says beside what is analysed.
#[derive(Default)]
pub(super) struct Besides<'a> {
    /// Known, and not analysed.
    pub(super) ignored: Vec<&'a str>,
    /// Nothing that rt-app knows: its first such key, and in which line.
    pub(super) strange: Option<(&'a str, usize)>,
    /// Its first event that has the name of one before, and in which line.
    again: Option<(&'a str, usize)>,
}

impl Keys {
    /// What has these, in words.
    pub(super) const fn what(&self) -> &'static str {
        self.what
    }

    /// Looks through an object.
    ///
    /// # Errors
    ///
    /// For a key that is near one of these and is none, and for one that stands there twice and is no event.
    pub(super) fn of<'a>(
        &self,
        file: File<'_>,
        object: &'a Object<'_>,
    ) -> Result<Besides<'a>, Wrong> {
        let mut besides = Besides::default();
        let is_known = |name: &str| self.read.contains(&name) || self.ignored.contains(&name);
        let mut seen = BTreeSet::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let is_event = self.has_events && is_event(name);
            match (!seen.insert(name), is_known(name)) {
                (true, true) => return Err(twice(file, property)),
                (true, false) if is_event => {
                    let line = file.line(&property.name);
                    besides.again.get_or_insert((name, line));
                }
                _ => {}
            }
            if self.ignored.contains(&name) {
                if !besides.ignored.contains(&name) {
                    besides.ignored.push(name);
                }
            } else if !is_known(name) && !is_event {
                self.slip(file, property)?;
                let line = file.line(&property.name);
                besides.strange.get_or_insert((name, line));
            }
        }
        Ok(besides)
    }

    fn slip(&self, file: File<'_>, property: &ObjectProp<'_>) -> Result<(), Wrong> {
        let events: &[&str] = if self.has_events { &KINDS } else { &[] };
        let known = [self.read, self.ignored, events].concat();
        let name = property.name.as_str();
        let Some(meant) = nearest(name, known) else {
            return Ok(());
        };
        let cause = format!("{} has no key `{}`", self.what, plain(name));
        Err(file.wrong(&property.name, cause, format!("did you mean `{meant}`?")))
    }
}

/// That nobody can tell which of two counts.
fn twice(file: File<'_>, second: &ObjectProp<'_>) -> Wrong {
    let cause = format!("`{}` stands here twice", plain(second.name.as_str()));
    let remedy =
        "keep one: rt-app takes the last, and the first where `workgen` has renamed the others";
    file.wrong(&second.name, cause, remedy)
}

/// Whether a key stands at most once, where nothing else says so.
///
/// # Errors
///
/// If it stands there twice.
pub(super) fn once(file: File<'_>, object: &Object<'_>, key: &str) -> Result<(), Wrong> {
    let properties = object.properties.iter();
    let mut all = properties.filter(|property| property.name.as_str() == key);
    all.nth(1).map_or(Ok(()), |second| Err(twice(file, second)))
}

/// That of tasks, or of phases, some have one name.
pub(super) fn note_names(file: File<'_>, whose: &str, all: &Object<'_>, notes: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let mut all = all.properties.iter();
    if let Some(second) = all.find(|property| !seen.insert(property.name.as_str())) {
        let line = file.line(&second.name);
        note_again(whose, (second.name.as_str(), line), notes);
    }
}

fn note_again(whose: &str, (name, line): (&str, usize), notes: &mut Vec<String>) {
    notes.push(format!(
        "{whose}: `{}` stands there again in line {line}; each counts, as `workgen` renames them for rt-app, which alone takes the last",
        plain(name)
    ));
}

impl Besides<'_> {
    /// What is told of it, of whom or what it is said.
    pub(super) fn note(&self, whose: &str, notes: &mut Vec<String>) {
        if !self.ignored.is_empty() {
            let names: Vec<String> = self.ignored.iter().map(|key| format!("`{key}`")).collect();
            notes.push(format!(
                "{whose}: ignored, as nothing that is analysed depends on it: {}",
                names.join(", ")
            ));
        }
    }

    /// That nobody knows what a key is for, where that may be work.
    pub(super) fn unknown(&self) -> Option<String> {
        let (key, line) = self.strange?;
        Some(format!(
            "`{}` in line {line} is no key of rt-app: nobody knows what it is to do",
            plain(key)
        ))
    }

    /// The same, where it is no work.
    pub(super) fn note_strange(&self, whose: &str, notes: &mut Vec<String>) {
        if let Some((key, line)) = self.strange {
            notes.push(format!(
                "{whose}: `{}` in line {line} is no key of rt-app, and ignored",
                plain(key)
            ));
        }
    }
}

/// Why nobody knows what a thread does, if that is so; what it says besides is noted.
///
/// # Errors
///
/// See [`Keys::of`].
pub(super) fn of_task(
    file: File<'_>,
    (name, task): (&str, &Object<'_>),
    notes: &mut Vec<String>,
) -> Result<Option<String>, Wrong> {
    let mut own = TASK.of(file, task)?;
    let phases = task.get("phases").and_then(|found| found.value.as_object());
    if phases.is_some() {
        // rt-app looks for events in the phases only then.
        let all = task
            .properties
            .iter()
            .map(|property| property.name.as_str());
        own.ignored.extend(all.filter(|name| is_event(name)));
        own.again = None;
    }
    let mut unknown = own.unknown();
    let mut again = own.again;
    for phase in phases.iter().flat_map(|phases| &phases.properties) {
        let Some(phase) = phase.value.as_object() else {
            continue;
        };
        let besides = PHASE.of(file, phase)?;
        unknown = unknown.or(besides.unknown());
        again = again.or(besides.again);
    }
    let whose = format!("`{name}`");
    own.note(&whose, notes);
    if let Some(phases) = phases {
        note_names(file, &format!("the phases of {whose}"), phases, notes);
    }
    if let Some(again) = again {
        note_again(&whose, again, notes);
    }
    Ok(unknown)
}
