//! Files that are there whole, or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use rustix::io::Errno;

/// A file could not be written; nothing of it was left behind, and what stood there before still does.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}{}", path.display(), remedy(cause))]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub cause: io::Error,
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or name a file on another disk"
        }
        io::ErrorKind::NotFound => "; its directory must exist",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; name a file in a directory that you may write to"
        }
        _ => "",
    }
}

/// Writes a file that has no name until it is complete and on the disk: readers see the old file or the new one, and a process that is
/// killed on the way leaves nothing. What is no regular file (a pipe, a device) is written to; a link's target is replaced, not the link.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let failed = |cause| WriteError {
        path: path.to_owned(),
        cause,
    };
    match std::fs::metadata(path) {
        Ok(there) if !there.is_file() => write_into(path, bytes).map_err(failed),
        Ok(_) => path
            .canonicalize()
            .and_then(|target| replace(&target, bytes))
            .map_err(failed),
        Err(_) => replace(path, bytes).map_err(failed),
    }
}

fn write_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mode = Mode::from_raw_mode(0o666);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, mode) {
        Ok(unnamed) => {
            let mut file = File::from(unnamed);
            file.write_all(bytes)?;
            file.sync_all()?;
            give_name(&file, directory, path)
        }
        // Some file systems have no files without a name.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            // Dropped on any error, which removes it.
            let mut file = readable_temporary(directory)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives a complete file its name. One that is taken is replaced by way of another name, which exists for microseconds.
fn give_name(file: &File, directory: &Path, path: &Path) -> io::Result<()> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |to: &Path| linkat(CWD, unnamed.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(path) {
        Err(Errno::EXIST) => {
            let beside = directory.join(format!(
                ".laxity-{}-{}",
                std::process::id(),
                file.as_raw_fd()
            ));
            link(&beside)?;
            std::fs::rename(&beside, path).inspect_err(|_| {
                // The rename's error is the one to tell.
                let _ = std::fs::remove_file(&beside);
            })
        }
        other => other.map_err(io::Error::from),
    }
}

/// A temporary file with the rights of an ordinary new file; the crate's own default lets nobody else read it.
fn readable_temporary(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .prefix(".laxity-")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["results.json"]);
    }

    #[test]
    fn a_failure_leaves_nothing_and_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        std::fs::create_dir(&path).unwrap();
        let error = write_whole(&path, b"text").unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(names(directory.path()), ["taken"]);

        let nowhere = directory.path().join("missing/results.json");
        let error = write_whole(&nowhere, b"text").unwrap_err();
        assert!(error.to_string().ends_with("its directory must exist"));
    }

    #[test]
    fn a_full_disk_leaves_nothing_and_says_so() {
        // The kernel's own always-full file gives the error that a full disk gives.
        let cause = std::fs::write("/dev/full", b"text").unwrap_err();
        let path = PathBuf::from("results.json");
        let text = WriteError { path, cause }.to_string();
        assert!(text.contains("No space left"), "{text}");
        assert!(text.contains("free some space"), "{text}");
    }
}
