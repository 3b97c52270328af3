//! Who runs with real-time policies, looked for again and again. Whoever is known is asked by one system call, and whoever is new is known by the
//! numbers that the kernel gave since the look before: to list all threads of a machine each time would take several times as long.

use std::collections::{BTreeMap, BTreeSet};

use super::fact::{Fact, Unknown, numbers_in, read_as};
use super::proc::{self, RealTimeThread, thread_stat, threads_of, unless_gone};
use super::sched::{self, Policy, Tid};

/// The threads of the machine, from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Every thread there may be, and its process once that was asked for.
    known: BTreeMap<Tid, Option<u32>>,
    /// The last number that the kernel had given at the look before the last, and at the last; `None` before the first.
    given: Option<[u32; 2]>,
    /// How often nobody was listed since all were.
    unlisted: u32,
}

/// At so many looks nobody is listed, and at the next all are: a thread may have its number long before it can be found by it, where whoever makes it is
/// held up meanwhile.
const UNLISTED: u32 = 31;

/// What a thread turned out to be.
enum Found {
    /// There no more.
    Gone,
    /// Scheduled after all real-time threads by its own policy.
    Ordinary,
    RealTime(RealTimeThread),
}

impl Census {
    /// Every real-time thread that can be seen, the caller's own too, by process and thread. Where one `lends`, those threads of its process too
    /// that run at its rank because it waits for a lock that they hold.
    ///
    /// The first time lists all threads, as does each 32nd. Between these, who has a number that was not its turn (`set_tid` of `clone3(2)`, which takes
    /// a privilege), or had it long before it could be found, is not seen.
    pub(crate) fn real_time(
        &mut self,
        lends: impl Fn(&RealTimeThread) -> bool,
    ) -> Fact<Vec<RealTimeThread>> {
        proc::shows_own_numbers()?;
        self.learn()?;
        let (mut found, mut gone) = (Vec::new(), Vec::new());
        for (tid, process) in &mut self.known {
            match ask(*tid, process)? {
                Found::Gone => gone.push(*tid),
                Found::Ordinary => {}
                Found::RealTime(thread) => found.push(thread),
            }
        }
        for tid in gone {
            self.known.remove(&tid);
        }
        boost(&mut found, lends)?;
        found.sort_by_key(|thread| (thread.pid, thread.tid));
        Ok(found)
    }

    /// The next look lists all threads again.
    pub(crate) const fn list_next(&mut self) {
        self.unlisted = UNLISTED;
    }

    /// As if this thread could not be found when it was looked for, twice.
    #[cfg(test)]
    pub(crate) fn overlook(&mut self, tid: Tid) {
        self.known.remove(&tid);
        self.given = self.given.map(|[_, last]| [last; 2]);
    }

    /// Whoever may be there is known from now on.
    fn learn(&mut self) -> Fact<()> {
        // Read before anybody is listed or asked: who comes meanwhile is met again at the next look.
        let last = read_as("/proc/loadavg", last_given)?;
        let Some([before, at_last]) = self.given else {
            self.list()?;
            self.given = Some([last; 2]);
            return Ok(());
        };
        self.unlisted += 1;
        if self.unlisted > UNLISTED {
            self.unlisted = 0;
            self.list()?;
        }
        let largest = if last < before {
            read_as("/proc/sys/kernel/pid_max", |text| text.parse().ok())?
        } else {
            last
        };
        // A thread has its number a moment before it can be found by it, so each number is asked for twice. Whoever had it before may have been of
        // another process.
        let new = given_since(before, last, largest);
        self.known.extend(new.map(|tid| (tid, None)));
        self.given = Some([at_last, last]);
        Ok(())
    }

    fn list(&mut self) -> Fact<()> {
        for pid in numbers_in("/proc")? {
            let threads = unless_gone(format!("/proc/{pid}"), threads_of(pid))?;
            let threads = threads.into_iter().flatten();
            self.known.extend(threads.map(|tid| (tid, Some(pid))));
        }
        Ok(())
    }
}

/// The last number that the kernel gave to a thread, by `/proc/loadavg`.
fn last_given(loadavg: &str) -> Option<u32> {
    loadavg.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// The numbers that the kernel gave to threads after one and up to another: it counts up, and from the beginning again where it has come to the largest.
fn given_since(from: u32, to: u32, largest: u32) -> impl Iterator<Item = Tid> {
    let (up_to, again) = if to < from { (largest, to) } else { (to, 0) };
    let numbers = (from.saturating_add(1)..=up_to).chain(1..=again);
    numbers.map(|number| Tid(number.cast_signed()))
}

/// What a thread is now; its process is asked for once.
fn ask(tid: Tid, process: &mut Option<u32>) -> Fact<Found> {
    let path = format!("/proc/{tid}");
    let policy = match sched::policy(tid) {
        Ok(policy) if !policy.is_real_time() => return Ok(Found::Ordinary),
        Ok(policy) => policy,
        Err(error) if error.errno() == Some(libc::ESRCH) => {
            // One that has ended and that nobody has waited for yet, or whose policy is being changed, has its number still.
            return Ok(if proc::has_gone(&path) {
                Found::Gone
            } else {
                Found::Ordinary
            });
        }
        Err(error) => return Err(Unknown(error.to_string())),
    };
    let mut describe = || {
        let pid = match *process {
            Some(pid) => pid,
            None => *process.insert(proc::process_of(tid)?),
        };
        let stat = read_as(format!("/proc/{pid}/task/{tid}/stat"), thread_stat)?;
        // It has its policy until somebody waits for it, and never runs again.
        if stat.has_ended {
            return Ok(Found::Ordinary);
        }
        Ok(Found::RealTime(RealTimeThread::of(pid, tid, policy, stat)))
    };
    let found = unless_gone(&path, describe())?;
    Ok(found.unwrap_or(Found::Gone))
}

/// Adds those who run at the rank of a thread of their process that `lends`. A thread's own policy says nothing of it.
fn boost(found: &mut Vec<RealTimeThread>, lends: impl Fn(&RealTimeThread) -> bool) -> Fact<()> {
    let mut lenders: BTreeMap<u32, Vec<(Tid, Policy)>> = BTreeMap::new();
    for thread in found.iter().filter(|thread| lends(thread)) {
        let of_process = lenders.entry(thread.pid).or_default();
        of_process.push((thread.tid, thread.policy));
    }
    for (pid, lenders) in lenders {
        let own: BTreeSet<Tid> = lenders.iter().map(|(tid, _)| *tid).collect();
        let threads = unless_gone(format!("/proc/{pid}"), threads_of(pid))?;
        let others = threads.into_iter().flatten();
        for tid in others.filter(|tid| !own.contains(tid)) {
            let task = format!("/proc/{pid}/task/{tid}");
            let boosted = unless_gone(&task, boosted(pid, tid, &lenders))?;
            let Some(boosted) = boosted.flatten() else {
                continue;
            };
            found.retain(|thread| thread.tid != tid);
            found.push(boosted);
        }
    }
    Ok(())
}

/// A policy's place among those of all real-time threads, as [`thread_stat`] tells it; `None` of an ordinary thread's.
fn rank_of(policy: Policy) -> Option<u8> {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
        Policy::Deadline(_) => Some(100),
        _ => None,
    }
}

/// A thread, if it runs at the rank of one of these and has no such rank itself.
fn boosted(pid: u32, tid: Tid, lenders: &[(Tid, Policy)]) -> Fact<Option<RealTimeThread>> {
    let stat = read_as(format!("/proc/{pid}/task/{tid}/stat"), thread_stat)?;
    let mut policies = lenders.iter().map(|(_, policy)| *policy);
    let Some(lent) = policies.find(|lent| stat.rank.is_some() && rank_of(*lent) == stat.rank)
    else {
        return Ok(None);
    };
    let policy = sched::policy(tid).map_err(|error| Unknown(error.to_string()))?;
    // Whoever has the rank by its own policy got that after it was asked: it is met at the next look.
    let is_lent = rank_of(policy) < stat.rank;
    Ok(is_lent.then(|| RealTimeThread {
        boosted: Some(lent),
        ..RealTimeThread::of(pid, tid, policy, stat)
    }))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc;
    use std::thread;

    use laxity_model::Span;
    use proptest::prelude::*;
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    use rustix::thread::futex::{Flags, lock_pi, unlock_pi};

    use super::*;
    use crate::doctor::rights::{self, Right};
    use crate::os::clock;

    #[test]
    fn the_last_number_given_is_the_fifth_word() {
        let told = last_given("0.50 0.25 0.12 2/6102 32122\n");
        assert_eq!(told, Some(32_122));
        assert_eq!(last_given("0.50 0.25 0.12 2/6102"), None);
    }

    #[test]
    fn numbers_are_given_upwards_and_from_the_beginning_again() {
        let since = |from, to| -> Vec<i32> {
            let numbers = given_since(from, to, 32);
            numbers.map(|tid| tid.0).collect()
        };
        assert_eq!(since(5, 8), [6, 7, 8]);
        assert_eq!(since(5, 5), []);
        assert_eq!(since(30, 3), [31, 32, 1, 2, 3]);
        assert_eq!(since(32, 1), [1]);
    }

    /// A thread that is there until the sender is dropped.
    fn who_comes() -> (Tid, mpsc::Sender<()>, thread::JoinHandle<()>) {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let new = thread::spawn(move || {
            tell.send(Tid::current()).unwrap();
            ended.recv().unwrap_err();
        });
        (told.recv().unwrap(), end, new)
    }

    #[test]
    fn who_came_is_known_without_a_list_and_who_left_is_forgotten() {
        let mut census = Census::default();
        census.real_time(|_| false).unwrap();
        let listed = census.known.clone();
        let (tid, end, new) = who_comes();
        assert!(!listed.contains_key(&tid));
        census.real_time(|_| false).unwrap();
        census.real_time(|_| false).unwrap();
        assert!(census.known.contains_key(&tid));
        drop(end);
        new.join().unwrap();
        // A joined thread may be on its way out of the kernel for a moment.
        let latest = clock::now() + Span::from_secs(10);
        while census.known.contains_key(&tid) {
            assert!(clock::now() < latest, "it is known for ever");
            census.real_time(|_| false).unwrap();
        }
    }

    /// It has its number before it can be found by it.
    #[test]
    fn who_could_not_be_found_yet_is_looked_for_once_more() {
        let mut census = Census::default();
        census.real_time(|_| false).unwrap();
        let (tid, end, new) = who_comes();
        let mut is_found = || {
            census.real_time(|_| false).unwrap();
            census.known.remove(&tid).is_some()
        };
        let found = [is_found(), is_found(), is_found()];
        drop(end);
        new.join().unwrap();
        assert_eq!(found, [true, true, false]);
    }

    #[test]
    fn who_has_ended_is_in_nobodys_way_though_nobody_has_waited_for_it() {
        let Some(_live) = rights::require(&[Right::RealTime]) else {
            return;
        };
        let mut command = Command::new("cat");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let process = Tid(child.id().cast_signed());
        sched::set_policy(process, Policy::Fifo(1)).unwrap();
        let is_seen = || {
            let found = Census::default().real_time(|_| false).unwrap();
            found.iter().any(|thread| thread.tid == process)
        };
        assert!(is_seen());
        drop(child.stdin.take());
        let number = WaitId::Pid(Pid::from_child(&child));
        waitid(number, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(!is_seen());
        child.wait().unwrap();
    }

    #[test]
    fn who_was_overlooked_is_found_before_long_or_when_that_is_asked_for() {
        let own = Tid::current();
        for (asks, most) in [(false, UNLISTED + 1), (true, 1)] {
            let mut census = Census::default();
            census.real_time(|_| false).unwrap();
            census.known.remove(&own);
            if asks {
                census.list_next();
            }
            let mut looks = (1..).take_while(|_| {
                census.real_time(|_| false).unwrap();
                !census.known.contains_key(&own)
            });
            assert!(looks.by_ref().count() < most as usize);
        }
    }

    #[test]
    fn who_holds_a_lock_that_a_lender_waits_for_runs_at_its_rank() {
        let Some(_live) = rights::require(&[Right::RealTime]) else {
            return;
        };
        let own = Tid::current();
        let word = AtomicU32::new(own.0.cast_unsigned());
        let lender = Policy::Fifo(90);
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                tell.send(Tid::current()).unwrap();
                sched::set_policy(Tid::current(), lender).unwrap();
                lock_pi(&word, Flags::PRIVATE, None).unwrap();
            });
            let waiter = told.recv().unwrap();
            let mut census = Census::default();
            let mut look = |lends| {
                let found = census.real_time(|thread| lends && thread.tid == waiter);
                let found = found.unwrap().into_iter();
                found.into_iter().find(|thread| thread.tid == own)
            };
            let latest = clock::now() + Span::from_secs(10);
            let found = loop {
                if let Some(found) = look(true) {
                    break found;
                }
                assert!(clock::now() < latest, "nothing is inherited");
                thread::yield_now();
            };
            assert_eq!(found.boosted, Some(lender));
            assert!(found.outranks(89, found.processor) && !found.outranks(90, found.processor));
            assert!(!found.policy.is_real_time());
            assert_eq!(look(false), None, "of a process that lends nothing");
            unlock_pi(&word, Flags::PRIVATE).unwrap();
            assert_eq!(look(true), None);
        });
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,100}", word in "[0-9./ ]{0,60}") {
            let _ = (last_given(&text), last_given(&word));
        }
    }
}
