//! Files that are there whole, or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, access, fcntl_setfl, linkat};
use rustix::io::Errno;

use crate::plain;

/// A file could not be written; nothing of it was left behind, and what stood there before still does.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}{}", plain(&path.display().to_string()), remedy(cause))]
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
        io::ErrorKind::FileTooLarge => {
            "; it is larger than a file may be here: raise that limit (ulimit -f)"
        }
        _ if cause.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            "; nobody reads it: begin with that, then with this"
        }
        _ => "",
    }
}

impl WriteError {
    fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self { path, cause }
    }
}

/// Writes a file that has no name until it is complete and on the disk: readers see the old file or the new one, and a process that is
/// killed on the way leaves nothing. One that is replaced hands on its mode, and its owner where that may be. What is no regular file (a
/// pipe, a device) is written to. Links are followed, also one whose target is not there yet; another name of a file that is replaced keeps
/// what was.
///
/// # Errors
///
/// [`WriteError`], with what the system said.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let written = match fs::metadata(path) {
        Ok(there) if !there.is_file() => write_into(path, bytes),
        Ok(there) => written_to(path).and_then(|target| replace(&target, bytes, Some(&there))),
        Err(_) => written_to(path).and_then(|target| replace(&target, bytes, None)),
    };
    written.map_err(WriteError::of(path))
}

/// Writes a file of this mode that was not there before, in the same way: whatever has its name is left as it is, a link too.
///
/// # Errors
///
/// [`WriteError`]; its cause is of kind [`AlreadyExists`](io::ErrorKind::AlreadyExists) where the name is taken.
pub fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WriteError> {
    let written = || {
        let directory = directory_of(path);
        let own = || fs::Permissions::from_mode(mode);
        if let Some(mut file) = unnamed_in(directory)? {
            // Before there is anything in it that others are not to read.
            file.set_permissions(own())?;
            fill(&mut file, bytes, None)?;
            return link(&file, path).map_err(io::Error::from);
        }
        let mut file = tempfile::Builder::new()
            .prefix(".laxity-")
            .permissions(own())
            .tempfile_in(directory)?;
        fill(file.as_file_mut(), bytes, None)?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    };
    written().map_err(WriteError::of(path))
}

/// Whether [`write_whole`] could begin now: what stands there can be written to, or a file can be made in its directory. Leaves nothing.
///
/// # Errors
///
/// [`WriteError`], as it would be then.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    let checked = match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(Errno::ISDIR.into()),
        Ok(there) if !there.is_file() => access(path, Access::WRITE_OK).map_err(io::Error::from),
        _ => written_to(path).and_then(|target| match unnamed_in(directory_of(&target)) {
            Ok(None) => readable_temporary(directory_of(&target)).map(drop),
            made => made.map(drop),
        }),
    };
    checked.map_err(WriteError::of(path))
}

/// So many links lead from one to the next at most; the kernel follows no more either.
const MOST_LINKS: usize = 40;

/// The file that is written when this is named, which is no link.
///
/// # Errors
///
/// That links go round, or what the system said.
pub fn written_to(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = directory_of(&target).join(next),
            // It is no link, or not there at all.
            Err(_) => return Ok(target),
        }
    }
    Err(Errno::LOOP.into())
}

/// The directory that a file is in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A pipe or a device, opened to be written into. A pipe that nobody reads is an error: waiting for somebody would keep back all that is told
/// after it, and what else is done meanwhile.
///
/// # Errors
///
/// [`WriteError`], with what the system said.
pub fn open_stream(path: &Path) -> Result<File, WriteError> {
    stream(path).map_err(WriteError::of(path))
}

fn stream(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = opened?;
    // Who reads it may be slower than we are.
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file.into())
}

fn write_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = stream(path)?;
    file.write_all(bytes)?;
    file.flush()
}

fn replace(path: &Path, bytes: &[u8], before: Option<&Metadata>) -> io::Result<()> {
    let directory = directory_of(path);
    if let Some(mut file) = unnamed_in(directory)? {
        fill(&mut file, bytes, before)?;
        return give_name(&file, directory, path);
    }
    // Dropped on any error, which removes it.
    let mut file = readable_temporary(directory)?;
    fill(file.as_file_mut(), bytes, before)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A new file without a name; `None` where the file system has none of that kind.
fn unnamed_in(directory: &Path) -> io::Result<Option<File>> {
    let mode = Mode::from_raw_mode(0o666);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, mode) {
        Ok(unnamed) => Ok(Some(unnamed.into())),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes everything to the disk, and gives the file what the one before it had.
fn fill(file: &mut File, bytes: &[u8], before: Option<&Metadata>) -> io::Result<()> {
    file.write_all(bytes)?;
    if let Some(before) = before {
        // Only root may give a file away; and the mode comes after, since the owner's change takes some of it.
        let _ = fchown(&*file, Some(before.uid()), Some(before.gid()));
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()
}

/// Gives a file a name that nothing has.
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, unnamed.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)
}

/// Gives a complete file its name. One that is taken is replaced by way of another name, which exists for microseconds.
fn give_name(file: &File, directory: &Path, path: &Path) -> io::Result<()> {
    match link(file, path) {
        Err(Errno::EXIST) => {
            let beside = directory.join(format!(
                ".laxity-{}-{}",
                std::process::id(),
                file.as_raw_fd()
            ));
            link(file, &beside)?;
            fs::rename(&beside, path).inspect_err(|_| {
                // The rename's error is the one to tell.
                let _ = fs::remove_file(&beside);
            })
        }
        other => other.map_err(io::Error::from),
    }
}

/// A temporary file with the rights of an ordinary new file; the crate's own default lets nobody else read it.
fn readable_temporary(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".laxity-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
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
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["results.json"]);
    }

    #[test]
    fn a_failure_leaves_nothing_and_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs::create_dir(&path).unwrap();
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
        let cause = fs::write("/dev/full", b"text").unwrap_err();
        let path = PathBuf::from("results.json");
        let text = WriteError { path, cause }.to_string();
        assert!(text.contains("No space left"), "{text}");
        assert!(text.contains("free some space"), "{text}");
    }
}
