//! Control groups by whose limit the kernel may stop a program in its slots (`CONFIG_RT_GROUP_SCHED`).

use std::collections::BTreeMap;

use laxity_model::{Instant, Span};

use crate::doctor::{self, Diagnosis};
use crate::os::clock;
use crate::os::fact::{Fact, read};
use crate::os::sched::Tid;

/// To look at them takes no more than one part of so many of the time: of each thread a file is read, and of each group half a dozen.
const SHARE: u64 = 100;
/// But no later than this after the look before, however long that was kept from the processor.
const SELDOM: Span = Span::from_secs(1);

/// The groups that a program's threads are in. Whoever has the right may move one at any time, or take from a group what it has.
#[derive(Default)]
pub(super) struct Groups {
    /// What is to be said of the group that was made to confine the program. It has more than the slots take.
    made: Option<Diagnosis>,
    look_at: Instant,
}

impl Groups {
    /// Of a program of these processes that was put into a group which was made for it just now.
    pub(super) fn made_for(mut processes: impl Iterator<Item = u32>) -> Self {
        Self {
            made: processes.find_map(doctor::group_limit_of),
            ..Self::default()
        }
    }

    /// Looks again, if it is time: the first of these threads that is in a group for which nothing can be promised to it, and why.
    pub(super) fn look(
        &mut self,
        threads: impl Iterator<Item = Tid>,
        now: Instant,
    ) -> Option<(Tid, Diagnosis)> {
        if now < self.look_at {
            return None;
        }
        let begun = clock::now();
        let group_of = |thread| read(format!("/proc/{thread}/cgroup"));
        let limit_of = |thread: Tid| doctor::group_limit_of(thread.0.cast_unsigned());
        let found = self.look_by(threads, group_of, limit_of);
        let took = clock::now().saturating_since(begun);
        self.look_at = now + (took * SHARE).min(SELDOM);
        found
    }

    /// The same by what tells the groups of a thread, and for what nothing can be promised to it. Of threads in the same groups one is asked about. Who cannot
    /// be read has gone, or is where it was.
    fn look_by(
        &self,
        threads: impl Iterator<Item = Tid>,
        group_of: impl Fn(Tid) -> Fact<String>,
        limit_of: impl Fn(Tid) -> Option<Diagnosis>,
    ) -> Option<(Tid, Diagnosis)> {
        let mut one_of_each = BTreeMap::new();
        for thread in threads {
            if let Ok(group) = group_of(thread) {
                one_of_each.entry(group).or_insert(thread);
            }
        }
        one_of_each.into_values().find_map(|thread| {
            let found = limit_of(thread)?;
            let is_made = self.made.as_ref().is_some_and(|it| it.what == found.what);
            (!is_made).then_some((thread, found))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::doctor::Cause;
    use crate::os::fact::Unknown;

    fn limited(group: &str, runtime_us: u64) -> Diagnosis {
        Diagnosis {
            cause: Cause::RealTimeGroupLimited {
                group: group.to_owned(),
            },
            what: format!("{group} has {runtime_us} us"),
            remedy: "leave it".to_owned(),
        }
    }

    #[test]
    fn who_is_in_a_limited_group_is_found_but_in_the_one_that_was_made_for_it() {
        let asked = Cell::new(0);
        let find = |made: Option<u64>, now_us, groups: &[&str]| {
            let groups_of = Groups {
                made: made.map(|runtime_us| limited("made", runtime_us)),
                ..Groups::default()
            };
            let threads = (0..groups.len() as i32).map(Tid);
            let group = |thread: Tid| groups[thread.0 as usize];
            let group_of = |thread| match group(thread) {
                "" => Err(Unknown("it has gone".to_owned())),
                group => Ok(group.to_owned()),
            };
            let limit_of = |thread| {
                asked.set(asked.get() + 1);
                (group(thread) != "free").then(|| limited(group(thread), now_us))
            };
            let found = groups_of.look_by(threads, group_of, limit_of);
            found.map(|(thread, why)| (thread.0, why.what))
        };
        assert_eq!(find(None, 1, &["free"; 50]), None);
        assert_eq!(asked.get(), 1, "one for all that are in it");
        let other = |thread| Some((thread, "other has 7 us".to_owned()));
        assert_eq!(
            find(None, 7, &["free", "", "free", "other", "other"]),
            other(3)
        );
        assert_eq!(find(Some(7), 7, &["made", "made"]), None);
        assert_eq!(find(Some(7), 7, &["made", "other"]), other(1));
        let less = Some((0, "made has 6 us".to_owned()));
        assert_eq!(find(Some(7), 6, &["made"]), less, "somebody took of it");
    }

    #[test]
    fn no_more_than_a_part_of_the_time_is_spent_on_it() {
        let mut groups = Groups::default();
        let own = || std::iter::once(Tid::current());
        let now = clock::now();
        let _ = groups.look(own(), now);
        let next = groups.look_at;
        assert!(next > now && next < now + SELDOM * 2, "{next:?}");
        let _ = groups.look(own(), now);
        assert_eq!(groups.look_at, next);
    }
}
