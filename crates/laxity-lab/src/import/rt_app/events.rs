//! From a task's events to the most that a job needs and how often there is one.
//!
//! A task goes through its phases again and again. What it does between two waits for a timer is a job: the jobs of the analysed task are the
//! largest of these at the shortest of the timers' periods, which is no less than the task asks for, whatever the loops. A sleep within a job counts as if it
//! were run (*suspension-oblivious* analysis: Chen et al., "Many suspensions, many problems", Real-Time Systems 55, 2019, §4.1).

use jsonc_parser::ast::{Object, ObjectProp, Value};
use laxity_model::Span;

use super::keys::TIMER;
use super::{File, Wrong};
use crate::plain;

/// What a task does.
pub(super) enum Work {
    /// Jobs of at most `cost`, at least `period` apart but for `jitter`.
    Periodic {
        cost: Span,
        period: Span,
        /// One may come so much earlier than `period` after the one before.
        jitter: Span,
        /// Whether it sleeps within a job, or behind each and by no timer.
        sleeps: bool,
        /// Whether some jobs do less than that, or come less often.
        differ: bool,
        /// What was assumed.
        remarks: Vec<String>,
    },
    /// This, which is no work that an analysis knows.
    Unknown(String),
}

/// What an event does to the thread that comes to it.
enum Event {
    /// Takes processor time.
    Run(Span),
    Sleep(Span),
    /// Waits for the timer of this name, until a period after the last time.
    Timer(String, Span),
    /// Takes no time that counts.
    Passing,
    /// Takes nobody knows how long.
    Unknown(&'static str),
}

/// In the order in which rt-app looks for them: a name need only begin so.
pub(super) const KINDS: [&str; 19] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer",
    "suspend", "resume", "mem", "iorun", "yield", "barrier", "fork", "sem_post", "sem_wait",
];

const NOTHING: &str = "it has no events that take time";

/// Keys of rt-app before it had events: what a job took, how often it came and when it was due.
const OLD_KEYS: [&str; 4] = ["exec", "period", "deadline", "lock_order"];

/// What is no event though it begins like one.
const PROPERTIES: [&str; 1] = ["membind_nodes"];

/// Of what kind an event of this name is, if it is one.
fn kind(name: &str) -> Option<&'static str> {
    let mut kinds = KINDS.into_iter();
    let kind = kinds.find(|kind| name.starts_with(kind));
    kind.filter(|_| !PROPERTIES.contains(&name))
}

/// Whether something of this name is an event.
pub(super) fn is_event(name: &str) -> bool {
    kind(name).is_some()
}

/// Whether it is one that waits for a timer.
pub(super) fn is_timer(name: &str) -> bool {
    kind(name) == Some("timer")
}

/// How rt-app calls a timer that has no name.
const NO_NAME: &str = "unknown";

/// Which timer it is; `None` where its name is no text.
pub(super) fn timer_name<'a>(timer: &'a Object<'_>) -> Option<&'a str> {
    match timer.get("ref").map(|found| &found.value) {
        Some(Value::StringLit(name)) => Some(&name.value),
        Some(_) => None,
        None => Some(NO_NAME),
    }
}

/// What a thread object does.
pub(super) fn work(file: File<'_>, task: &Object<'_>) -> Result<Work, Wrong> {
    let phases: Vec<&Object<'_>> = match task.get("phases") {
        Some(found) => {
            let phases = file.object(&found.value)?;
            let objects = phases
                .properties
                .iter()
                .map(|phase| file.object(&phase.value));
            objects.collect::<Result<_, _>>()?
        }
        None => vec![task],
    };
    let mut jobs = Jobs::default();
    for phase in phases {
        for property in &phase.properties {
            // `runtime` of a thread under SCHED_DEADLINE was its budget once; as an event it stays a run.
            if let Some(event) = event(file, property)? {
                jobs.take(event, file.line(&property.value));
            }
        }
        jobs.end_phase();
    }
    Ok(match jobs.work() {
        Work::Unknown(why) if why == NOTHING => Work::Unknown(old_key(file, task).unwrap_or(why)),
        work => work,
    })
}

/// That a task says what it does in words that rt-app has no more.
fn old_key(file: File<'_>, task: &Object<'_>) -> Option<String> {
    let mut all = task.properties.iter();
    let old = all.find(|property| OLD_KEYS.contains(&property.name.as_str()))?;
    let (key, line) = (old.name.as_str(), file.line(&old.value));
    Some(format!(
        "`{key}` in line {line} is of an older rt-app, which had no events; write \"run\" and \"timer\""
    ))
}

fn event(file: File<'_>, property: &ObjectProp<'_>) -> Result<Option<Event>, Wrong> {
    let (name, value) = (property.name.as_str(), &property.value);
    let Some(kind) = kind(name) else {
        return Ok(None);
    };
    Ok(Some(match kind {
        "run" | "runtime" => Event::Run(file.micros(value, 0)?),
        "sleep" => Event::Sleep(file.micros(value, 0)?),
        "timer" => timer(file, value)?,
        "signal" | "broad" | "resume" | "yield" | "unlock" | "sem_post" => Event::Passing,
        other => Event::Unknown(other),
    }))
}

fn timer(file: File<'_>, value: &Value<'_>) -> Result<Event, Wrong> {
    let object = file.object(value)?;
    let besides = TIMER.of(file, object)?;
    if let Some((key, _)) = besides.strange {
        let cause = format!("a timer has no key `{}`", plain(key));
        return Err(file.wrong(object, cause, "it has `ref`, `period` and `mode`"));
    }
    let name = match object.get("ref") {
        Some(name) => file.text(&name.value)?,
        None => NO_NAME,
    };
    match object.get("period") {
        Some(period) => Ok(Event::Timer(
            name.to_owned(),
            file.micros(&period.value, 1)?,
        )),
        None => {
            let remedy = "write { \"ref\": \"unique\", \"period\": 10000 }, in µs";
            Err(file.wrong(object, "this timer has no period", remedy))
        }
    }
}

const TOO_LONG: &str = "its events last longer than can be counted";

/// The jobs of a task as its events come.
#[derive(Default)]
struct Jobs {
    /// Of the job at hand: run and slept.
    run: Option<Span>,
    slept: Span,
    /// The largest and the smallest between two timers of one phase.
    largest: Span,
    smallest: Option<Span>,
    /// What comes before the first timer of a phase, and behind the last, at most; the one may follow the other.
    first: Span,
    trailing: Span,
    seen_timer: bool,
    /// The only timer it may have: each runs by itself, so that behind one wait another may be over already.
    timer: Option<String>,
    shortest: Option<Span>,
    differ: bool,
    sleeps: bool,
    /// The largest round of a phase without any timer: run and slept.
    untimed: Option<(Span, Span)>,
    unknown: Option<String>,
}

/// What lasts longer than can be counted stays [`Span::MAX`].
fn sum(a: Span, b: Span) -> Span {
    a.checked_add(b).unwrap_or(Span::MAX)
}

impl Jobs {
    fn take(&mut self, event: Event, line: usize) {
        match event {
            Event::Run(span) => self.run = Some(sum(self.run.unwrap_or(Span::ZERO), span)),
            Event::Sleep(span) => self.slept = sum(self.slept, span),
            Event::Timer(name, period) => {
                if self.timer.get_or_insert_with(|| name.clone()) != &name {
                    let why = format!(
                        "it waits for several timers (`{}` in line {line} is the second): two may be over at once",
                        plain(&name)
                    );
                    self.unknown.get_or_insert(why);
                }
                let job = self.close();
                if self.seen_timer {
                    self.largest = self.largest.max(job);
                    self.smallest = Some(self.smallest.map_or(job, |known| known.min(job)));
                } else {
                    self.first = self.first.max(job);
                }
                self.seen_timer = true;
                self.differ |= self.shortest.is_some_and(|shortest| shortest != period);
                self.shortest = Some(self.shortest.map_or(period, |known| known.min(period)));
            }
            Event::Passing => {}
            Event::Unknown(what) => {
                let why =
                    format!("`{what}` in line {line} takes a time that the file does not tell");
                self.unknown.get_or_insert(why);
            }
        }
    }

    /// The job at hand is over; a sleep counts as run.
    fn close(&mut self) -> Span {
        let run = self.run.take().unwrap_or(Span::ZERO);
        let slept = std::mem::take(&mut self.slept);
        self.sleeps |= !slept.is_zero();
        sum(run, slept)
    }

    fn end_phase(&mut self) {
        if self.seen_timer {
            let rest = self.close();
            self.trailing = self.trailing.max(rest);
        } else if self.run.is_some() || !self.slept.is_zero() {
            let run = self.run.take().unwrap_or(Span::ZERO);
            let slept = std::mem::take(&mut self.slept);
            // Several such phases follow each other before a timer comes, or none does.
            let (all_run, all_slept) = self.untimed.unwrap_or((Span::ZERO, Span::ZERO));
            self.untimed = Some((sum(all_run, run), sum(all_slept, slept)));
        }
        self.seen_timer = false;
    }

    fn work(self) -> Work {
        if let Some(why) = self.unknown {
            return Work::Unknown(why);
        }
        match (self.shortest, self.untimed) {
            (Some(_), Some(_)) => Work::Unknown(
                "some of its phases have a timer and some have not: how often they come is not told"
                    .into(),
            ),
            (Some(period), None) => self.timed(period),
            (None, Some((run, slept))) => untimed(run, slept),
            (None, None) => Work::Unknown(NOTHING.into()),
        }
    }

    fn timed(&self, period: Span) -> Work {
        let around = sum(self.first, self.trailing);
        let cost = self.largest.max(around);
        if cost == Span::MAX {
            return Work::Unknown(TOO_LONG.into());
        }
        if cost.is_zero() {
            // One that only wakes others: what that takes is not told.
            return Work::Unknown(NOTHING.into());
        }
        let mut remarks = Vec::new();
        if self.differ {
            remarks.push(format!(
                "its timers differ; analysed as its largest job every {period}, the shortest of them"
            ));
        }
        if self.sleeps {
            remarks.push("it sleeps within a job; the sleep is analysed as if it ran".into());
        }
        let smallest = self.smallest.map(|smallest| smallest.min(around));
        Work::Periodic {
            cost,
            period,
            jitter: Span::ZERO,
            sleeps: self.sleeps,
            differ: self.differ || smallest.is_some_and(|smallest| smallest < cost),
            remarks,
        }
    }
}

/// Rounds of run and sleep. `run` is the most that a round runs: one that runs less brings the next earlier, by `run` at most. So they are
/// jobs every run + sleep with a jitter of run. What begins in a window of length t, k rounds run + sleep and r more, is at most k + 1 jobs if
/// r ≤ sleep and k + 2 if not, which is what the jitter gives: ⌈(t + run) / (run + sleep)⌉.
fn untimed(run: Span, slept: Span) -> Work {
    if run == Span::MAX {
        return Work::Unknown(TOO_LONG.into());
    }
    if slept.is_zero() {
        return Work::Unknown("it runs without ever waiting".into());
    }
    match run.checked_add(slept) {
        Some(period) if !run.is_zero() => Work::Periodic {
            cost: run,
            period,
            jitter: run,
            sleeps: true,
            differ: false,
            remarks: vec![format!(
                "it sleeps {slept} behind each job; analysed as one every {period} that may come {run} early, as a run that takes less than {run} brings the next one earlier"
            )],
        },
        Some(_) => Work::Unknown("it only sleeps".into()),
        None => Work::Unknown(TOO_LONG.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any runs of at most `run` with sleeps between: no window has more work than the task with jitter asks for.
        #[test]
        fn rounds_of_run_and_sleep_ask_for_no_more_than_is_analysed(
            sleep in 1_u64..12,
            runs in prop::collection::vec(0_u64..=12, 1..24),
        ) {
            let run = runs.iter().copied().max().unwrap_or(0).max(1);
            let Work::Periodic { cost, period, jitter, .. } =
                untimed(Span::from_nanos(run), Span::from_nanos(sleep))
            else {
                panic!("{run} and {sleep} are jobs");
            };
            let mut starts = Vec::new();
            let mut now = 0;
            for taken in &runs {
                starts.push(now);
                now += taken + sleep;
            }
            for from in 0..runs.len() {
                let mut asked = 0;
                for to in from..runs.len() {
                    asked += runs[to];
                    // The shortest half-open window that has both beginnings.
                    let window = starts[to] - starts[from] + 1;
                    let jobs = (window + jitter.as_nanos()).div_ceil(period.as_nanos());
                    prop_assert!(asked <= jobs * cost.as_nanos(), "{asked} in {window}");
                }
            }
        }
    }
}
