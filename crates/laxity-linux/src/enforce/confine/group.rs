//! A cgroup of our own: made below the one we are in, emptied into that and removed when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::enforce::guardian::{self, Undo};
use crate::os::cgroup::{self, Hierarchy};
use crate::os::fact::Unknown;

/// Why processes cannot be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The hierarchy that is needed is not mounted.
    #[error("no cgroup hierarchy with {0} is mounted")]
    NotMounted(&'static str),
    /// A file of the group could not be used.
    #[error("{action} {}: {source}{}", path.display(), remedy(source))]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The answer.
        source: io::Error,
    },
    /// The group that a process is in cannot be seen from here.
    #[error(transparent)]
    Hidden(#[from] Unknown),
    /// The process is in another group than this one: it could not be put back from where it came if this process dies.
    #[error("process {process} is in another cgroup than this process")]
    Elsewhere {
        /// The process.
        process: i32,
    },
    /// The machine's real-time groups have not so much left together.
    #[error(
        "the kernel has no {runtime_us} us of each second left for real-time work in a control group of its own (cpu.rt_runtime_us), which groups on all processors share: end the others, or stop the program by `freeze`"
    )]
    NoRuntime {
        /// Of each second, in microseconds.
        runtime_us: String,
    },
    /// There is nobody to undo it if this process dies.
    #[error("no guardian process: {0}")]
    NoGuardian(io::Error),
}

/// What helps where the group's files are somebody else's.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "; remedy: run as root, or without confinement; `freeze` also does in a control group of this user's own (`systemd-run --user --scope -p Delegate=yes`)"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; remedy: run where control groups may be made (a container's are often read-only), or without confinement"
        }
        _ => "",
    }
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

/// A cgroup of our own.
#[derive(Debug)]
pub(super) struct Group {
    hierarchy: Hierarchy<'static>,
    path: PathBuf,
    parent: PathBuf,
}

impl Group {
    /// Makes it below the group this process is in, and registers it with the guardian.
    pub(super) fn create(hierarchy: Hierarchy<'static>, name: &str) -> Result<Self, ConfineError> {
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

    pub(super) fn has(&self, process: i32) -> Result<bool, ConfineError> {
        Ok(group_of(self.hierarchy, &process.to_string())? == self.path)
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
        if remove(&self.path)
            && let Ok(guardian) = guardian::start()
        {
            let _ = guardian.forget(Undo::Group(&self.path));
        }
    }
}

/// Removes a group; whether it is no more. A process that is just dying keeps it busy for a moment.
fn remove(path: &Path) -> bool {
    for _ in 0..200 {
        match fs::remove_dir(path).map_err(|error| error.raw_os_error()) {
            Ok(()) | Err(Some(libc::ENOENT)) => return true,
            Err(Some(libc::EBUSY)) => thread::sleep(Duration::from_millis(1)),
            Err(_) => return false,
        }
    }
    false
}

/// The directory of the group that a process is in: its number, or `self`.
fn group_of(hierarchy: Hierarchy<'static>, process: &str) -> Result<PathBuf, ConfineError> {
    let read = |path: &str| fs::read_to_string(path).map_err(file_error("read", Path::new(path)));
    let mounts = cgroup::mounts(&read("/proc/self/mountinfo")?);
    let groups = read(&format!("/proc/{process}/cgroup"))?;
    let place = hierarchy.mount(&mounts).zip(hierarchy.group(&groups));
    let (mount, group) = place.ok_or(ConfineError::NotMounted(match hierarchy {
        Hierarchy::Unified => "version 2",
        Hierarchy::V1(controller) => controller,
    }))?;
    Ok(mount.directory(group)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_removed_is_not_called_removed() {
        let place = tempfile::tempdir().unwrap();
        let [full, file, gone] = ["full", "file", "gone"].map(|name| place.path().join(name));
        fs::create_dir(&full).unwrap();
        fs::write(full.join("within"), "").unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(
            [&full, &file, &gone].map(|path| remove(path)),
            [false, false, true]
        );
        fs::remove_file(full.join("within")).unwrap();
        assert!(remove(&full));
    }

    #[test]
    fn where_a_group_may_not_be_made_it_is_said_what_helps() {
        let told = |kind: io::ErrorKind| {
            file_error("make", Path::new("/sys/fs/cgroup/x"))(kind.into()).to_string()
        };
        for kind in [
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
        ] {
            let told = told(kind);
            assert!(told.contains("; remedy: run "), "{told}");
        }
        assert!(!told(io::ErrorKind::NotFound).contains("remedy"));
    }
}
