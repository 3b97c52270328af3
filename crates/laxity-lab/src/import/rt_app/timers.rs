//! Timers that are one for several threads.
//!
//! Of a timer whose name begins with `unique` each thread has one of its own; any other is one for all that name it. Each wait puts it on by a period and
//! lasts until then, whoever waits: the threads take turns, and each comes less often than its period says.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jsonc_parser::ast::{Object, Value};

use super::events::{is_timer, timer_name};
use crate::import::TaskSet;
use crate::plain;

/// So many names are told of those that share a timer.
const MOST_NAMES: usize = 8;

/// By name, which tasks of a set wait for a timer that is no thread's own.
#[derive(Default)]
pub(super) struct Timers<'a> {
    tasks: BTreeMap<&'a str, Vec<Range<usize>>>,
}

impl<'a> Timers<'a> {
    /// Takes a thread object, of which these tasks were made.
    pub(super) fn take(&mut self, object: &'a Value<'_>, tasks: Range<usize>) {
        for name in object.as_object().into_iter().flat_map(waited_for) {
            self.tasks.entry(name).or_default().push(tasks.clone());
        }
    }

    /// Says of tasks that share a timer that they may ask for less than is analysed.
    pub(super) fn tell(self, set: &mut TaskSet) {
        for (timer, ranges) in self.tasks {
            let waiting: Vec<usize> = ranges.into_iter().flatten().collect();
            if waiting.len() < 2 {
                continue;
            }
            for task in &waiting {
                set.tasks[*task].asks_less = true;
            }
            let told = waiting.iter().take(MOST_NAMES);
            let names: Vec<String> = told
                .map(|task| format!("`{}`", set.tasks[*task].name))
                .collect();
            let more = if waiting.len() > MOST_NAMES {
                ", …"
            } else {
                ""
            };
            set.notes.push(format!(
                "{}{more} wait for one timer, `{}`, and take turns: each may ask for less than is analysed, but who comes to it late makes up for that first. A timer whose name begins with `unique` is each thread's own",
                names.join(", "),
                plain(timer)
            ));
        }
    }
}

/// The timers for which others may wait, too.
fn waited_for<'a>(task: &'a Object<'_>) -> BTreeSet<&'a str> {
    let phases = task.get("phases").and_then(|found| found.value.as_object());
    let objects: Vec<&Object<'_>> = match phases {
        Some(phases) => {
            let phases = phases.properties.iter();
            phases.filter_map(|phase| phase.value.as_object()).collect()
        }
        None => vec![task],
    };
    let events = objects.into_iter().flat_map(|object| &object.properties);
    let timers = events.filter(|event| is_timer(event.name.as_str()));
    let timers = timers.filter_map(|timer| timer.value.as_object());
    let names = timers.filter_map(timer_name);
    names.filter(|name| !name.starts_with("unique")).collect()
}
