//! Limits of a program's own by which the kernel ends it for what it has in its slots (`RLIMIT_RTTIME`).

use std::collections::BTreeMap;

use laxity_model::{Instant, Span};

use super::super::command::family::name_of;
use crate::doctor::{self, Cause, Diagnosis};
use crate::os::fact::Fact;
use crate::os::proc::has_gone;
use crate::os::sched::Tid;

const SECOND: u64 = 1_000_000_000;

/// The processes of a program that have such a limit: it was set after they had slots, or who runs by such a limit does not start so.
#[derive(Default)]
pub(super) struct Limits(BTreeMap<u32, Limited>);

#[derive(Clone)]
struct Limited {
    name: String,
    limit: Diagnosis,
    /// It has had this since then, at least.
    since: Instant,
}

impl Limits {
    /// Looks again, at these that are thought to be there; tells of those that have gone and may have been ended by such a limit.
    pub(super) fn look(&mut self, processes: impl Iterator<Item = u32>, now: Instant) -> Vec<u32> {
        self.look_by(processes, now, limit_of)
    }

    /// The same by what tells the name of a process, and its limit.
    fn look_by(
        &mut self,
        processes: impl Iterator<Item = u32>,
        now: Instant,
        limit_of: impl Fn(u32) -> Fact<Option<(String, Diagnosis)>>,
    ) -> Vec<u32> {
        let processes: Vec<u32> = processes.collect();
        let mut gone: Vec<u32> = self.0.keys().copied().collect();
        gone.retain(|process| !processes.contains(process));
        for process in processes {
            match limit_of(process) {
                Ok(None) => {
                    self.0.remove(&process);
                }
                Ok(Some((name, limit))) => {
                    let found = Limited {
                        name,
                        limit,
                        since: now,
                    };
                    let limited = self.0.entry(process).or_insert_with(|| found.clone());
                    // With each signal that it sends by this, the kernel adds a second to it.
                    let more = found
                        .longest()
                        .as_nanos()
                        .checked_sub(limited.longest().as_nanos());
                    if more.is_none_or(|more| !more.is_multiple_of(SECOND)) {
                        *limited = found;
                    }
                }
                Err(_) if has_gone(format!("/proc/{process}")) => gone.push(process),
                // It is there, and limited as it was last seen to be.
                Err(_) => {}
            }
        }
        gone.retain(|process| {
            let limited = self.0.get(process);
            limited.is_some_and(|limited| limited.may_have_ended_it(now))
        });
        gone
    }

    /// What a process was last seen to be limited by, in words.
    pub(super) fn of(&self, process: u32) -> Option<String> {
        let Limited { name, limit, .. } = self.0.get(&process)?;
        Some(format!("process {process} {name:?}: {limit}"))
    }

    /// The same until then, if it has had that for so long.
    pub(super) fn that_may_have_ended(&self, process: u32, until: Instant) -> Option<String> {
        let limited = self.0.get(&process)?;
        let words = self.of(process)?;
        limited.may_have_ended_it(until).then_some(words)
    }

    /// The same of one that has gone, whose number may be somebody else's soon.
    pub(super) fn forget(&mut self, process: u32) -> String {
        let limit = self.of(process).unwrap_or_default();
        self.0.remove(&process);
        limit
    }
}

impl Limited {
    /// For so long it may run.
    fn longest(&self) -> Span {
        match self.limit.cause {
            Cause::RealTimeTimeLimited { limit_us } => {
                Span::from_nanos(limit_us.saturating_mul(1_000))
            }
            _ => Span::MAX,
        }
    }

    /// No more is counted for it than it has lived.
    fn may_have_ended_it(&self, now: Instant) -> bool {
        now.saturating_since(self.since) >= self.longest()
    }
}

/// The name of a process, and its limit if it has one; not known once it has gone.
fn limit_of(process: u32) -> Fact<Option<(String, Diagnosis)>> {
    let limit = doctor::time_limit_of(process)?;
    let name = name_of(Tid(process.cast_signed()))?;
    Ok(limit.map(|limit| (name, limit)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    use super::*;
    use crate::os::fact::Unknown;

    #[test]
    fn who_is_limited_meanwhile_and_goes_may_have_been_ended_by_that() {
        let ms = Instant::from_millis;
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let (process, pid) = (program.id(), Pid::from_child(&program));
        let limit = |current| {
            let maximum = None;
            prlimit(Some(pid), Resource::Rttime, Rlimit { current, maximum }).unwrap();
        };
        let mut limits = Limits::default();
        let all = || std::iter::once(process);
        let mut seen = Vec::new();
        for current in [None, Some(30_000), None, Some(20_000), Some(1_020_000)] {
            limit(current);
            assert_eq!(limits.look(all(), ms(100)), []);
            seen.push(limits.of(process));
        }
        let unread = |_| Err(Unknown("Too many open files".to_owned()));
        assert_eq!(limits.look_by(all(), ms(150), unread), []);
        assert_eq!(limits.of(process), seen[4]);
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!([&seen[0], &seen[2]], [&None, &None]);
        let told = |limit: &Option<String>| {
            let limit = limit.as_deref().unwrap();
            limit.starts_with(&format!("process {process} ")).then(|| {
                ["runs 30000 us without", "runs 20000 us without"].map(|part| limit.contains(part))
            })
        };
        assert_eq!(told(&seen[1]), Some([true, false]));
        assert_eq!(told(&seen[3]), Some([false, true]));
        assert_eq!(seen[4], seen[3]);
        // It has had that for less time than it allows.
        assert_eq!(limits.look(all(), ms(119)), []);
        assert_eq!(limits.look(all(), ms(120)), [process]);
        assert_eq!(limits.look(std::iter::empty(), ms(120)), [process]);
        assert_eq!(Some(limits.forget(process)), seen[3]);
        assert_eq!(limits.look(all(), ms(140)), []);
    }
}
