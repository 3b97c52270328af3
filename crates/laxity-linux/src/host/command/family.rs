//! The processes of a program: the one that was started or named, and what comes of it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::os::children::Children;
use crate::os::fact::{Fact, numbers_in, read, read_as};
use crate::os::proc::{stat_field, unless_gone};
use crate::os::sched::Tid;

/// A process and its descendants, as they were seen.
#[derive(Debug)]
pub(in crate::host) struct Family {
    /// Where the kernel tells of processes.
    proc: PathBuf,
    /// The one that was started or named.
    root: u32,
    /// Whose children belong to it although it does not: the keeper, to whom all comes back that loses its parent.
    keeper: Option<u32>,
    members: BTreeSet<u32>,
    by: By,
    /// Which number the machine gave last to a process or thread, and what was read there: while that stays, nobody has come. It stays open, since it
    /// is read often.
    last_number: Option<(File, Option<u32>)>,
    /// Somebody came before the last look, which may have missed one: who loses its parent during it, or whose sibling ends.
    grew: bool,
}

/// By what descendants are found.
#[derive(Debug)]
enum By {
    /// They are not looked for.
    Nothing,
    /// Whom each thread of the program started: nobody else is looked at, however many there are.
    Children(BTreeMap<Tid, Children>),
    /// The parents of all processes of the machine, where a thread does not tell its children: the kernel has no such files, or no more may be open.
    /// These were looked at, and are of somebody else.
    Parents(BTreeSet<u32>),
}

impl Family {
    pub(in crate::host) fn new(root: u32, keeper: Option<u32>, with_children: bool) -> Self {
        let by = if with_children {
            By::Children(BTreeMap::new())
        } else {
            By::Nothing
        };
        Self {
            proc: PathBuf::from("/proc"),
            root,
            keeper,
            members: BTreeSet::from([root]),
            by,
            last_number: File::open("/proc/loadavg").ok().map(|file| (file, None)),
            grew: false,
        }
    }

    /// The same, with what they start.
    pub(in crate::host) fn with_children(&self) -> Self {
        Self {
            members: self.members.clone(),
            ..Self::new(self.root, self.keeper, true)
        }
    }

    /// Whether it ran before we came, and goes on if we die.
    pub(in crate::host) fn is_adopted(&self) -> bool {
        self.keeper.is_none()
    }

    /// The one that was started or named.
    pub(in crate::host) fn root(&self) -> u32 {
        self.root
    }

    /// Whether somebody may have come whom no look has seen. One small file is read.
    pub(in crate::host) fn may_have_grown(&mut self) -> bool {
        let Some((file, before)) = &mut self.last_number else {
            return true;
        };
        let mut bytes = [0; 128];
        let read = file.read_at(&mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..read]);
        let last = text.split_whitespace().last();
        let last = last.and_then(|number| number.parse().ok());
        let same = last.is_some() && last == *before;
        *before = last;
        std::mem::replace(&mut self.grew, !same) || !same
    }

    /// Looks for new processes, and leaves out who has gone. Its threads, of those processes that are there still.
    pub(in crate::host) fn refresh(&mut self) -> Fact<Vec<Tid>> {
        if let By::Children(_) = self.by {
            if let Ok(threads) = self.walk() {
                return Ok(threads);
            }
            self.by = By::Parents(BTreeSet::new());
        }
        self.search()?;
        self.walk()
    }

    /// Goes from each of its processes to those that it started. The keeper's come last: who loses its parent meanwhile is among them.
    fn walk(&mut self) -> Fact<Vec<Tid>> {
        let mut threads = Vec::new();
        let mut next: Vec<u32> = self.processes().collect();
        let mut keeper = self.keeper;
        while let Some(process) = next.pop().or_else(|| keeper.take()) {
            let task = self.proc.join(format!("{process}/task"));
            // It has one thread, and nothing of it belongs to the program.
            let is_keeper = self.keeper == Some(process);
            let numbers = if is_keeper {
                Ok(vec![process])
            } else {
                numbers_in(&task)
            };
            let Some(numbers) = unless_gone(&task, numbers)? else {
                self.members.remove(&process);
                continue;
            };
            for thread in numbers.into_iter().map(|number| Tid(number as i32)) {
                for child in self.started_by(&task, thread)? {
                    // Who holds for a program that started it is none of it, nor is what it started.
                    if child != std::process::id() && self.members.insert(child) {
                        next.push(child);
                    }
                }
                if !is_keeper {
                    threads.push(thread);
                }
            }
        }
        if let By::Children(open) = &mut self.by {
            let of_keeper = self.keeper.map(|process| Tid(process as i32));
            open.retain(|thread, _| threads.contains(thread) || of_keeper == Some(*thread));
        }
        Ok(threads)
    }

    /// Whom a thread started, where that is how they are found.
    fn started_by(&mut self, task: &Path, thread: Tid) -> Fact<Vec<u32>> {
        let By::Children(open) = &mut self.by else {
            return Ok(Vec::new());
        };
        match open.entry(thread) {
            Entry::Occupied(children) => children.get().read(),
            Entry::Vacant(place) => {
                let directory = task.join(thread.to_string());
                let children = Children::of(&directory);
                let children = unless_gone(directory, children)?;
                children.map_or(Ok(Vec::new()), |children| place.insert(children).read())
            }
        }
    }

    /// Asks every process of the machine for its parent, where that is how they are found.
    fn search(&mut self) -> Fact<()> {
        let By::Parents(others) = &mut self.by else {
            return Ok(());
        };
        let here: BTreeSet<u32> = numbers_in(&self.proc)?.into_iter().collect();
        others.retain(|process| here.contains(process));
        // Who holds for a program that started it is none of it, nor is what it started.
        others.insert(std::process::id());
        // Each round finds one generation at least: a child may have a smaller number than its parent.
        loop {
            let before = self.members.len();
            for process in &here {
                if self.members.contains(process) || others.contains(process) {
                    continue;
                }
                let directory = self.proc.join(process.to_string());
                let parent = unless_gone(&directory, parent_in(&directory))?;
                match parent.flatten() {
                    Some(parent)
                        if self.members.contains(&parent) || self.keeper == Some(parent) =>
                    {
                        self.members.insert(*process);
                    }
                    // Of one whose parent is gone or not known yet, the next look tells.
                    Some(parent) if parent != 0 && !others.contains(&parent) => {}
                    _ => {
                        others.insert(*process);
                    }
                }
            }
            if self.members.len() == before {
                return Ok(());
            }
        }
    }

    /// Whether a process is one of it that had this parent when it was seen: also one that no look has found yet, or that has gone since.
    /// Who cannot be told to be one is none. It need not be one that is looked for.
    pub(in crate::host) fn has(&self, process: u32, parent: u32) -> bool {
        if self.members.contains(&process) {
            return true;
        }
        if process == std::process::id() {
            return false;
        }
        // Where one between them has gone since, it was handed on.
        let parent_now = || {
            parent_in(&self.proc.join(process.to_string()))
                .ok()
                .flatten()
        };
        self.begot(parent) || parent_now().is_some_and(|now| now != parent && self.begot(now))
    }

    /// Whether what this process starts belongs to it.
    fn begot(&self, mut process: u32) -> bool {
        // Who holds for a program that started it is none of it, nor is what it started.
        while process > 1 && process != std::process::id() {
            if self.members.contains(&process) || self.keeper == Some(process) {
                return true;
            }
            let Ok(Some(parent)) = parent_in(&self.proc.join(process.to_string())) else {
                return false;
            };
            process = parent;
        }
        false
    }

    /// Its processes.
    pub(in crate::host) fn processes(&self) -> impl Iterator<Item = u32> {
        self.members.iter().copied()
    }
}

/// The parent of a process, 0 for one that has none.
pub(in crate::host) fn parent_of(process: u32) -> Fact<Option<u32>> {
    parent_in(Path::new(&format!("/proc/{process}")))
}

/// The parent of the process with this directory.
fn parent_in(directory: &Path) -> Fact<Option<u32>> {
    read_as(directory.join("stat"), |stat| {
        stat_field(stat.as_bytes(), 4).map(Some)
    })
}

/// The name that a thread gave itself.
pub(in crate::host) fn name_of(thread: Tid) -> Fact<String> {
    Ok(read(format!("/proc/{thread}/comm"))?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{BufRead, BufReader, PipeReader, pipe};
    use std::process::Command;
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use crate::host::command::{ProcessGroup, RunningCommand};

    impl Family {
        /// As it is where no thread tells its children.
        fn by_parents(mut self) -> Self {
            self.by = By::Parents(BTreeSet::new());
            self
        }

        fn found(&mut self) -> Vec<u32> {
            self.refresh().unwrap();
            self.processes().collect()
        }
    }

    fn both_ways(root: u32, keeper: Option<u32>) -> [Family; 2] {
        let family = || Family::new(root, keeper, true);
        [family(), family().by_parents()]
    }

    /// A shell with this script, and the numbers that it and all that it starts print.
    fn shell(script: &str) -> (RunningCommand, impl FnMut() -> u32) {
        let (reader, writer) = pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(writer);
        let running = RunningCommand::start(command, ProcessGroup::Own, |_| Ok(())).unwrap();
        let mut output: BufReader<PipeReader> = BufReader::new(reader);
        let number = move || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim().parse().unwrap()
        };
        (running, number)
    }

    #[test]
    fn children_of_children_are_found_and_strangers_are_not() {
        // The second one prints what is found to be a grandchild.
        let (running, mut number) = shell("sh -c 'sleep 1000 & echo $!; wait' & wait");
        let grandchild = number();
        let root = running.id().0 as u32;
        let mut families = both_ways(root, None);
        for family in &mut families {
            assert!(family.may_have_grown(), "nothing was looked at yet");
            let threads = family.refresh().unwrap();
            assert!(threads.contains(&Tid(grandchild as i32)), "{threads:?}");
            let found: Vec<u32> = family.processes().collect();
            assert!(found.contains(&grandchild), "{found:?}");
            assert!(!found.contains(&std::process::id()), "{found:?}");
        }
        let mut without = Family::new(root, None, false);
        assert_eq!(without.found(), [root]);
        drop(running);
        for family in &mut families {
            assert_eq!(family.found(), []);
        }
        assert_eq!(without.found(), []);
    }

    #[test]
    fn sessions_and_orphans_are_found_by_their_keeper() {
        // Half of them have a session of their own; of all, who started them has gone.
        let script = "
            for n in 1 2 3 4 5 6 7 8 9 10; do
                (setsid sh -c 'echo $$; exec sleep 1000' &)
                (((sleep 1000 & echo $!) &) &)
            done
            exec sleep 1000";
        let (running, mut number) = shell(script);
        let mut all: Vec<u32> = (0..20).map(|_| number()).collect();
        let root = running.id().0 as u32;
        all.push(root);
        all.sort_unstable();
        for mut family in both_ways(root, Some(running.keeper())) {
            // Those between them and the keeper end in a moment.
            let latest = Instant::now() + Duration::from_secs(20);
            while family.found() != all {
                assert!(Instant::now() < latest, "{:?}, {all:?}", family.found());
                thread::yield_now();
            }
        }
    }

    #[test]
    fn who_is_started_by_a_thread_is_found_before_and_after_its_end() {
        let (sent, received) = mpsc::channel();
        let (finish, wait) = mpsc::channel::<()>();
        let starter = thread::spawn(move || {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            sent.send(child).unwrap();
            wait.recv().unwrap_err();
        });
        let mut child = received.recv().unwrap();
        let mut families = both_ways(std::process::id(), None);
        let found = |family: &mut Family| family.found().contains(&child.id());
        let before = families.each_mut().map(found);
        drop(finish);
        starter.join().unwrap();
        let after = families.each_mut().map(found);
        let mut new = both_ways(std::process::id(), None);
        let new = new.each_mut().map(found);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!([before, after, new], [[true; 2]; 3]);
    }

    #[test]
    fn who_holds_for_its_own_parent_is_none_of_the_program() {
        let own = std::process::id();
        let parent = parent_of(own).unwrap().unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let found = both_ways(parent, None).map(|mut family| family.found());
        child.kill().unwrap();
        child.wait().unwrap();
        for found in found {
            assert!(found.contains(&parent), "{found:?}");
            assert!(!found.contains(&own), "{found:?}");
            assert!(!found.contains(&child.id()), "{found:?}");
        }
    }

    /// A process 10 with the threads 10 and 11, of which the second started 20; and one that says it is a child of 10's, though 10 does not.
    fn machine() -> (tempfile::TempDir, Family) {
        let proc = tempfile::tempdir().unwrap();
        for (process, threads, parent) in [(10, 10..12, 1), (20, 20..21, 10), (30, 30..31, 10)] {
            let process = proc.path().join(process.to_string());
            for thread in threads {
                let task = process.join(format!("task/{thread}"));
                fs::create_dir_all(&task).unwrap();
                let children = if thread == 11 { "20 " } else { "" };
                fs::write(task.join("children"), children).unwrap();
            }
            fs::write(process.join("stat"), format!("1 (it) S {parent} 1")).unwrap();
        }
        let mut family = Family::new(10, None, true);
        family.proc = proc.path().to_owned();
        (proc, family)
    }

    #[test]
    fn who_was_not_found_yet_belongs_to_it_by_its_parents() {
        let (proc, family) = machine();
        let own = std::process::id();
        for (process, parent) in [(40, 20), (50, own), (60, 1), (own, 10)] {
            let process = proc.path().join(process.to_string());
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("stat"), format!("1 (it) S {parent} 1")).unwrap();
        }
        let mut without = Family::new(10, None, false);
        without.proc = proc.path().to_owned();
        let mut kept = Family::new(10, Some(60), true);
        kept.proc = proc.path().to_owned();
        // The process, its parent when it was seen; of the program's family, of one whose children are not looked for, and of the family with a keeper, 60.
        let cases = [
            (10, 1, [true; 3]),
            // A child, and one of it, also where it has gone already.
            (20, 10, [true; 3]),
            (40, 20, [true; 3]),
            (99, 10, [true; 3]),
            // Who was its parent has gone, and it was handed on.
            (40, 98, [true; 3]),
            (99, 98, [false; 3]),
            // What the holder itself starts, and the holder, are none of it.
            (50, own, [false; 3]),
            (own, 10, [false; 3]),
            // A stranger, and what comes back to the keeper.
            (97, 60, [false, false, true]),
            (60, 1, [false; 3]),
        ];
        for (process, parent, expected) in cases {
            let found = [&family, &without, &kept].map(|family| family.has(process, parent));
            assert_eq!(found, expected, "{process} of {parent}");
        }
    }

    #[test]
    fn nobody_is_asked_for_its_parent_while_threads_tell_their_children() {
        let (_proc, mut family) = machine();
        assert_eq!(family.found(), [10, 20]);
        // A file of each thread is all that was read.
        let By::Children(open) = &family.by else {
            panic!("{family:?}");
        };
        let read: Vec<i32> = open.keys().map(|thread| thread.0).collect();
        assert_eq!(read, [10, 11, 20]);
        assert_eq!(family.by_parents().found(), [10, 20, 30]);
    }

    #[test]
    fn where_a_thread_does_not_tell_its_children_all_are_asked_for_their_parents() {
        let (proc, mut family) = machine();
        fs::remove_file(proc.path().join("20/task/20/children")).unwrap();
        assert_eq!(family.found(), [10, 20, 30]);
    }

    #[test]
    fn who_came_is_looked_for_twice() {
        let (proc, mut family) = machine();
        let numbers = proc.path().join("loadavg");
        let may_have_grown = |family: &mut Family, last: u32| {
            fs::write(&numbers, format!("0.00 0.01 0.05 1/234 {last}\n")).unwrap();
            let (_, before) = family.last_number.take().unwrap();
            family.last_number = Some((File::open(&numbers).unwrap(), before));
            family.may_have_grown()
        };
        let seen = [7, 7, 7, 8, 9, 9, 9].map(|last| may_have_grown(&mut family, last));
        assert_eq!(seen, [true, true, false, true, true, true, false]);
    }

    #[test]
    fn names_and_parents_are_read() {
        let own = std::process::id();
        assert!(parent_of(own).unwrap().is_some());
        assert!(!name_of(Tid::current()).unwrap().is_empty());
        assert!(name_of(Tid(i32::MAX)).is_err());
    }
}
