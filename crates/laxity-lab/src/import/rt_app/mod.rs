//! Workloads of rt-app (github.com/scheduler-tools/rt-app, `doc/tutorial.txt`): a JSON file with one object a task.
//!
//! JSON is read with what rt-app and its tools allow beside: comments, commas too many or too few, several events of one name in one object,
//! and `suspend` and `yield` without a value. A task has the policy, priority and processors that its own object names: if a phase
//! names others, it is not analysed.
//!
//! * `dialect`: events without a value.
//! * `read`: the file, and what each task says of its scheduling.
//! * `keys`: what rt-app knows, and that there is something else.
//! * `events`: from a task's events to what it needs at most and how often.
//! * `phases`: whether phases are scheduled as their thread is.
//! * `timers`: timers that are one for several threads.

mod dialect;
mod events;
mod keys;
mod phases;
mod timers;

use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;

use jsonc_parser::ast::{Array, NumberLit, Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use laxity_model::Span;
use laxity_model::analysis::Task;
use laxity_model::analysis::multiprocessor::DeadlineRequest;

use super::Wrong;
use super::{Format, MOST_ERRORS, MOST_TASKS, Policy, SetTask, TaskSet};
use crate::plain::{plain, unfit};
use crate::scenario::MOST_PROCESSORS;
use crate::scenario::diagnostic::Source;
use events::{Work, work};
use timers::Timers;

/// rt-app's own default for the real-time policies.
const DEFAULT_PRIORITY: u8 = 10;
const POLICIES: &str =
    "write \"SCHED_OTHER\", \"SCHED_IDLE\", \"SCHED_FIFO\", \"SCHED_RR\" or \"SCHED_DEADLINE\"";

/// Reads a whole file.
pub(super) fn read(source: Source<'_>) -> Result<TaskSet, Vec<Wrong>> {
    let collect = CollectOptions::default();
    let text = dialect::with_values(source.text);
    let parsed = parse_to_ast(&text, &collect, &ParseOptions::default());
    let parsed = parsed.map_err(|error| {
        let range = error.range();
        let remedy = match error.kind() {
            ParseErrorKind::ExpectedColonAfterObjectKey => {
                "write \"name\" : value; `suspend` and `yield` alone need no value"
            }
            _ => "rt-app's files are JSON; comments and commas too many are forgiven",
        };
        vec![source.error(range.start..range.end, error.kind().to_string(), remedy)]
    })?;
    let Some(Value::Object(root)) = &parsed.value else {
        let cause = "this is no JSON object";
        let remedy = "write { \"tasks\": { \"a\": { \"run\": 2000, \"timer\": { \"ref\": \"unique\", \"period\": 10000 } } } }";
        let range = parsed.value.as_ref().map_or(0..0, bytes);
        return Err(vec![source.error(range, cause, remedy)]);
    };
    let breaks = source.text.match_indices('\n');
    let breaks: Vec<usize> = breaks.map(|(at, _)| at).collect();
    let file = File {
        source,
        breaks: &breaks,
    };
    file.set(root)
}

fn bytes(value: &impl Ranged) -> Range<usize> {
    let range = value.range();
    range.start..range.end
}

/// How a task is scheduled, or a phase of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Timesharing,
    Fixed,
    Deadline,
}

/// How a task is scheduled where its phases say no more, and where; and why that is not how it is, if it is not.
struct Scheduling {
    policy: Policy,
    /// Empty: anywhere.
    processors: BTreeSet<u16>,
    doubt: Option<String>,
}

/// What a task does.
struct Found {
    /// The most, or why that cannot be told.
    work: Result<Task, String>,
    /// Whether it sleeps.
    sleeps: bool,
    /// Whether some of its jobs do less than that.
    differ: bool,
}

#[derive(Clone, Copy)]
struct File<'s> {
    source: Source<'s>,
    /// Where its lines end: a file may have a line to be told for each of its keys, and a search through the text would then take minutes.
    breaks: &'s [usize],
}

impl<'s> File<'s> {
    fn wrong(self, at: &impl Ranged, cause: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        self.source.error(bytes(at), cause, remedy)
    }

    fn line(self, at: &impl Ranged) -> usize {
        let start = at.range().start;
        self.breaks.partition_point(|end| *end < start) + 1
    }

    fn set(self, root: &Object<'_>) -> Result<TaskSet, Vec<Wrong>> {
        let default = self.default_policy(root).map_err(|error| vec![error])?;
        let Some(tasks) = root.get("tasks") else {
            let remedy = "add \"tasks\": { … } with an object for each task";
            return Err(vec![self.wrong(root, "there is no `tasks` object", remedy)]);
        };
        let tasks = self.object(&tasks.value).map_err(|error| vec![error])?;
        let mut set = TaskSet {
            file: self.source.file.to_owned(),
            format: Format::RtApp,
            tasks: Vec::new(),
            notes: Vec::new(),
        };
        self.besides(root, &mut set.notes)
            .map_err(|error| vec![error])?;
        keys::note_names(self, "`tasks`", tasks, &mut set.notes);
        let (mut errors, mut timers) = (Vec::new(), Timers::default());
        for property in &tasks.properties {
            if errors.len() == MOST_ERRORS {
                break;
            }
            let first = set.tasks.len();
            match self.task(property, default, &mut set) {
                Ok(()) => timers.take(&property.value, first..set.tasks.len()),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() && set.tasks.is_empty() {
            let remedy = "add an object for each task, with \"instance\" of at least 1";
            errors.push(self.wrong(tasks, "there is no task", remedy));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        make_names_differ(&mut set.tasks);
        timers.tell(&mut set);
        Ok(set)
    }

    /// What the file says beside its tasks of which nothing is analysed.
    fn besides(self, root: &Object<'_>, notes: &mut Vec<String>) -> Result<(), Wrong> {
        let global = root.get("global").map(|found| self.object(&found.value));
        let global = global.transpose()?.map(|global| (&keys::GLOBAL, global));
        for (keys, object) in iter::once((&keys::ROOT, root)).chain(global) {
            let besides = keys.of(self, object)?;
            besides.note(keys.what(), notes);
            besides.note_strange(keys.what(), notes);
        }
        Ok(())
    }

    fn default_policy(self, root: &Object<'_>) -> Result<Class, Wrong> {
        let Some(global) = root.get("global") else {
            return Ok(Class::Timesharing);
        };
        let global = self.object(&global.value)?;
        let policy = global.get("default_policy");
        policy.map_or(Ok(Class::Timesharing), |found| self.class(&found.value))
    }

    fn task(
        self,
        property: &ObjectProp<'_>,
        default: Class,
        set: &mut TaskSet,
    ) -> Result<(), Wrong> {
        let name = property.name.as_str();
        if let Some((cause, remedy)) = unfit(name) {
            return Err(self.wrong(&property.name, cause, remedy));
        }
        let object = self.object(&property.value)?;
        let instances = match object.get("instance") {
            Some(found) => self.whole(&found.value, 0)?,
            None => 1,
        };
        if instances > (MOST_TASKS - set.tasks.len()) as u64 {
            let cause = format!("the set has more than {MOST_TASKS} tasks");
            return Err(self.wrong(property, cause, "ask for fewer instances"));
        }
        let scheduling = self.scheduling((name, object), default, &mut set.notes)?;
        let found = self.analysable((name, object), &scheduling, &mut set.notes)?;
        let differ = found.differ.then_some("its jobs differ");
        let asks_less = self.asks_less(object)?.or(differ);
        if let (Ok(_), Some(why)) = (&found.work, asks_less) {
            set.notes.push(format!(
                "`{name}`: {why}; it may ask for less than is analysed"
            ));
        }
        let asks_less = asks_less.is_some();
        let takes_turns = self.takes_turns(property);
        for instance in 1..=instances {
            let name = if instances == 1 {
                name.to_owned()
            } else {
                format!("{name}-{instance}")
            };
            set.tasks.push(SetTask {
                name,
                policy: scheduling.policy,
                processors: scheduling.processors.clone(),
                work: found.work.clone(),
                asks_less,
                sleeps: found.sleeps,
                takes_turns,
                own_deadline: false,
            });
        }
        Ok(())
    }

    fn scheduling(
        self,
        (name, object): (&str, &Object<'_>),
        default: Class,
        notes: &mut Vec<String>,
    ) -> Result<Scheduling, Wrong> {
        let class = match object.get("policy") {
            Some(found) => self.class(&found.value)?,
            None => default,
        };
        if let (Class::Timesharing, None, Some(found)) =
            (class, object.get("policy"), object.get("priority"))
            && self.whole(&found.value, 1).is_ok()
        {
            let line = self.line(&found.name);
            notes.push(format!(
                "`{name}`: `priority` in line {line} is a nice value, as its policy is timesharing; in real time it is with \"policy\": \"SCHED_FIFO\""
            ));
        }
        let policy = self.policy(object, class)?;
        let unread = phases::unread(self, object, class);
        let otherwise = phases::otherwise(self, object, class)?;
        let policy = match (&unread, &otherwise) {
            (Some(_), _) => Policy::Changing(None),
            (None, Some(otherwise)) => otherwise.policy,
            (None, None) => policy,
        };
        // A reservation by deadline is on all processors; whoever may have one is bound to none.
        let moves = otherwise.as_ref().is_some_and(|otherwise| otherwise.moves);
        let processors = match object.get("cpus") {
            Some(found) if !moves && policy != Policy::Changing(None) => {
                self.processors(&found.value)?
            }
            _ => BTreeSet::new(),
        };
        if processors.len() > 1 {
            notes.push(format!(
                "`{name}` may run on {} processors; it is placed on one of them",
                processors.len()
            ));
        }
        Ok(Scheduling {
            policy,
            processors,
            doubt: unread.or(otherwise.map(|otherwise| otherwise.why)),
        })
    }

    /// Whether a task may let others of its priority go before it is done, as far as the text says: by turns, or where it yields.
    fn takes_turns(self, task: &ObjectProp<'_>) -> bool {
        let own = self.source.text.get(bytes(task)).unwrap_or_default();
        // Who says no policy has the file's own.
        let whole = Some(self.source.text).filter(|_| !own.contains("\"policy\""));
        whole.unwrap_or(own).contains("SCHED_RR") || own.contains("yield")
    }

    /// Why a task may ask for less than the largest of its jobs whenever its timer allows, from the first moment on and for ever.
    fn asks_less(self, object: &Object<'_>) -> Result<Option<&'static str>, Wrong> {
        let number = |key| {
            let found = object.get(key);
            found.map_or(Ok(0), |found: &ObjectProp<'_>| self.whole(&found.value, 0))
        };
        let ends = match object.get("loop") {
            // -1 is for ever, as is none.
            Some(found) => self.whole(&found.value, 0).is_ok(),
            None => false,
        };
        let phases = object.get("phases");
        let phases = phases.and_then(|phases| phases.value.as_object());
        let texts = phases.into_iter().flat_map(|phases| &phases.properties);
        let texts = texts.filter_map(|phase| self.source.text.get(bytes(&phase.value)));
        let differ = texts.collect::<BTreeSet<&str>>().len() > 1;
        Ok(if differ {
            Some("its phases differ, and come one after the other")
        } else if number("delay")? > 0 {
            Some("it begins later (`delay`)")
        } else if ends {
            Some("it ends (`loop`)")
        } else {
            None
        })
    }

    /// What a task does, or why that cannot be told.
    fn analysable(
        self,
        (name, object): (&str, &Object<'_>),
        scheduling: &Scheduling,
        notes: &mut Vec<String>,
    ) -> Result<Found, Wrong> {
        let strange = keys::of_task(self, (name, object), notes)?;
        let doubt = strange.or_else(|| scheduling.doubt.clone());
        let work = match (work(self, object)?, doubt) {
            (Work::Periodic { .. }, Some(why)) => Work::Unknown(why),
            (work, _) => work,
        };
        let (cost, period, jitter, [sleeps, differ], remarks) = match work {
            Work::Periodic {
                cost,
                period,
                jitter,
                sleeps,
                differ,
                remarks,
            } => (cost, period, jitter, [sleeps, differ], remarks),
            Work::Unknown(why) => {
                notes.push(format!("`{name}` is not analysed: {why}"));
                return Ok(Found {
                    work: Err(why),
                    sleeps: false,
                    differ: false,
                });
            }
        };
        for remark in remarks {
            notes.push(format!("`{name}`: {remark}"));
        }
        let task = Task::new(cost.as_full_service(), period);
        let task = task.map_err(|error| {
            let remedy = "write run events of more than 0 µs, and a timer of more than 0 µs";
            self.wrong(object, error.to_string(), remedy)
        })?;
        let task = task.with_jitter(jitter);
        // A job of a deadline task is due when its reservation's period says so.
        let task = match scheduling.policy {
            Policy::Deadline(request) => task.with_deadline(request.deadline).unwrap_or(task),
            _ => task,
        };
        Ok(Found {
            work: Ok(task),
            sleeps,
            differ,
        })
    }

    /// The priority of one that has a real-time policy.
    fn level(self, priority: Option<&ObjectProp<'_>>) -> Result<u8, Wrong> {
        let Some(found) = priority else {
            return Ok(DEFAULT_PRIORITY);
        };
        let level = self.whole(&found.value, 1)?;
        let level = u8::try_from(level).ok().filter(|level| *level <= 99);
        level.ok_or_else(|| {
            let cause = "the real-time policies have no such priority";
            let remedy = "write a priority from 1 to 99; a larger one is more urgent";
            self.wrong(&found.value, cause, remedy)
        })
    }

    fn policy(self, object: &Object<'_>, class: Class) -> Result<Policy, Wrong> {
        match class {
            Class::Timesharing => Ok(Policy::Timesharing),
            Class::Fixed => self.level(object.get("priority")).map(Policy::Priority),
            Class::Deadline => {
                let remedy = "write \"dl-runtime\", \"dl-period\" and, if it is less, \"dl-deadline\", in µs";
                let runtime = object.get("dl-runtime");
                if runtime.is_none() {
                    // Elsewhere it is an event, of which there may be several.
                    keys::once(self, object, "runtime")?;
                }
                let Some(runtime) = runtime.or_else(|| object.get("runtime")) else {
                    let cause = "a task under SCHED_DEADLINE has no `dl-runtime`";
                    return Err(self.wrong(object, cause, remedy));
                };
                let runtime = self.micros(&runtime.value, 1)?;
                let of = |names: [&str; 2], default: Span| {
                    let found = names.into_iter().find_map(|name| object.get(name));
                    found.map_or(Ok(default), |found| self.micros(&found.value, 1))
                };
                let period = of(["dl-period", "period"], runtime)?;
                let deadline = of(["dl-deadline", "deadline"], period)?;
                if runtime > deadline || deadline > period {
                    let cause = "the kernel takes runtime ≤ deadline ≤ period only";
                    return Err(self.wrong(object, cause, remedy));
                }
                Ok(Policy::Deadline(DeadlineRequest {
                    runtime: runtime.as_full_service(),
                    period,
                    deadline,
                }))
            }
        }
    }

    fn processors(self, value: &Value<'_>) -> Result<BTreeSet<u16>, Wrong> {
        let Value::Array(Array { elements, .. }) = value else {
            let remedy = "write a list such as [0]";
            return Err(self.wrong(value, "this is no list of processors", remedy));
        };
        let mut processors = BTreeSet::new();
        for element in elements {
            let number = self.whole(element, 0)?;
            let number = u16::try_from(number)
                .ok()
                .filter(|number| *number < MOST_PROCESSORS);
            processors.insert(number.ok_or_else(|| {
                let remedy = format!("processors are numbered from 0 to {}", MOST_PROCESSORS - 1);
                self.wrong(element, "there is no such processor", remedy)
            })?);
        }
        Ok(processors)
    }

    fn class(self, value: &Value<'_>) -> Result<Class, Wrong> {
        match self.text(value)? {
            "SCHED_OTHER" | "SCHED_IDLE" | "SCHED_BATCH" => Ok(Class::Timesharing),
            "SCHED_FIFO" | "SCHED_RR" => Ok(Class::Fixed),
            "SCHED_DEADLINE" => Ok(Class::Deadline),
            other => Err(self.wrong(
                value,
                format!("there is no policy `{}`", plain(other)),
                POLICIES,
            )),
        }
    }

    fn object<'a, 't>(self, value: &'a Value<'t>) -> Result<&'a Object<'t>, Wrong> {
        value
            .as_object()
            .ok_or_else(|| self.wrong(value, "this is no object", "write { … }"))
    }

    fn text<'a>(self, value: &'a Value<'_>) -> Result<&'a str, Wrong> {
        match value {
            Value::StringLit(StringLit { value, .. }) => Ok(value),
            _ => Err(self.wrong(value, "this is no text", "write it in double quotes")),
        }
    }

    /// A whole number that is no less than this.
    fn whole(self, value: &Value<'_>, least: u64) -> Result<u64, Wrong> {
        let number = match value {
            Value::NumberLit(NumberLit { value, .. }) => value.parse::<u64>().ok(),
            _ => None,
        };
        number.filter(|number| *number >= least).ok_or_else(|| {
            let cause = format!("this is no whole number from {least}");
            self.wrong(value, cause, "write digits only")
        })
    }

    /// A time in microseconds, as all of rt-app's are.
    fn micros(self, value: &Value<'_>, least: u64) -> Result<Span, Wrong> {
        let micros = self.whole(value, least)?;
        let nanos = micros.checked_mul(1_000);
        nanos.map(Span::from_nanos).ok_or_else(|| {
            let cause = format!("{micros} µs are more than can be counted");
            self.wrong(value, cause, "write microseconds")
        })
    }
}

/// Objects of one name are several tasks: the second is `x.2`.
fn make_names_differ(tasks: &mut [SetTask]) {
    let mut names = BTreeSet::new();
    for task in tasks {
        let (own, mut number) = (task.name.clone(), 2);
        while !names.insert(task.name.clone()) {
            task.name = format!("{own}.{number}");
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests;
