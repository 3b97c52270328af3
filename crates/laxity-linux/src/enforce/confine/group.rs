//! A cgroup of our own: made below the one we are in, emptied into that and removed when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::enforce::guardian::{self, Undo};

/// Why processes cannot be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The hierarchy that is needed is not mounted.
    #[error("no cgroup hierarchy with {0} is mounted")]
    NotMounted(&'static str),
    /// A file of the group could not be used.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
    /// The process is in another group than this one: it could not be put back from where it came if this process dies.
    #[error("process {process} is in another cgroup than this process")]
    Elsewhere {
        /// The process.
        process: i32,
    },
    /// There is nobody to undo it if this process dies.
    #[error("no guardian process: {0}")]
    NoGuardian(io::Error),
}

pub(super) fn file_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> ConfineError {
    let path = path.to_owned();
    move |source| ConfineError::File {
        action,
        path,
        source,
    }
}

/// Which hierarchy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hierarchy {
    /// Version 2.
    Unified,
    /// Version 1, with this controller.
    V1(&'static str),
}

/// A cgroup of our own.
#[derive(Debug)]
pub(super) struct Group {
    hierarchy: Hierarchy,
    path: PathBuf,
    parent: PathBuf,
}

impl Group {
    /// Makes it below the group this process is in, and registers it with the guardian.
    pub(super) fn create(hierarchy: Hierarchy, name: &str) -> Result<Self, ConfineError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let guardian = guardian::start().map_err(ConfineError::NoGuardian)?;
        let parent = group_of(hierarchy, "self")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = std::process::id();
        let path = parent.join(format!("laxity-{own}-{number}-{name}"));
        // The guardian knows before the group exists: there is no moment at which a death would leave it behind.
        let watched = guardian.watch(Undo::Group(&path));
        watched.map_err(ConfineError::NoGuardian)?;
        fs::create_dir(&path).map_err(file_error("make", &path))?;
        Ok(Self {
            hierarchy,
            path,
            parent,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves a process there with all its threads, and what it starts later. It must be in the group that this process was in
    /// when it made this one, as its children are: that is where all are put back.
    pub(super) fn add(&self, process: i32) -> Result<(), ConfineError> {
        if group_of(self.hierarchy, &process.to_string())? != self.parent {
            return Err(ConfineError::Elsewhere { process });
        }
        let file = self.path.join("cgroup.procs");
        fs::write(&file, process.to_string()).map_err(file_error("write", &file))
    }

    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), ConfineError> {
        let file = self.path.join(file);
        fs::write(&file, value).map_err(file_error("write", &file))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What cannot be undone here (a process that is just dying) is gone a moment later; the guardian tries again at the end.
        let procs = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for process in procs.lines() {
            let _ = fs::write(self.parent.join("cgroup.procs"), process);
        }
        let removed = (0..200).any(|_| match fs::remove_dir(&self.path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(1));
                false
            }
            _ => true,
        });
        if removed && let Ok(guardian) = guardian::start() {
            let _ = guardian.forget(Undo::Group(&self.path));
        }
    }
}

/// The directory of the group that a process is in: its number, or `self`.
fn group_of(hierarchy: Hierarchy, process: &str) -> Result<PathBuf, ConfineError> {
    let read = |path: &str| fs::read_to_string(path).map_err(file_error("read", Path::new(path)));
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read(&format!("/proc/{process}/cgroup"))?;
    find_group(hierarchy, &mounts, &groups).ok_or(ConfineError::NotMounted(match hierarchy {
        Hierarchy::Unified => "version 2",
        Hierarchy::V1(controller) => controller,
    }))
}

fn find_group(hierarchy: Hierarchy, mounts: &str, own: &str) -> Option<PathBuf> {
    let (mount_root, mount_point) = mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let (kind, _, options) = (filesystem.next()?, filesystem.next()?, filesystem.next()?);
        let right = match hierarchy {
            Hierarchy::Unified => kind == "cgroup2",
            Hierarchy::V1(controller) => {
                kind == "cgroup" && options.split(',').any(|option| option == controller)
            }
        };
        let mut mount = mount.split(' ').skip(3);
        right.then_some((mount.next()?, mount.next()?))
    })?;
    let own = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let right = match hierarchy {
            Hierarchy::Unified => controllers.is_empty(),
            Hierarchy::V1(wanted) => controllers.split(',').any(|found| found == wanted),
        };
        right.then_some(path)
    })?;
    // In a container the mount may show a part of the hierarchy only; a path outside that part cannot be named.
    let below = Path::new(own).strip_prefix(mount_root).ok()?;
    Some(Path::new(mount_point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup rw,relatime shared:8 - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
40 30 0:36 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 none rw
";

    #[test]
    fn the_own_group_is_found_in_both_versions() {
        let own = "3:cpuset:/\n1:cpu,cpuacct:/jobs/a\n0::/user.slice\n";
        let find = |hierarchy| find_group(hierarchy, MOUNTS, own);
        assert_eq!(
            find(Hierarchy::Unified),
            Some(PathBuf::from("/sys/fs/cgroup/unified/user.slice"))
        );
        assert_eq!(
            find(Hierarchy::V1("cpu")),
            Some(PathBuf::from("/sys/fs/cgroup/cpu/jobs/a"))
        );
        assert_eq!(find(Hierarchy::V1("freezer")), None);
    }
}
