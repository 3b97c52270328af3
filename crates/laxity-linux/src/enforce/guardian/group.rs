//! The files of a group on the list. Kernel calls only.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open, rmdir};
use rustix::io::Errno;

use super::Entry;

/// Empties a group into its parent and removes it; `true` when it is gone.
pub(super) fn remove(group: &Entry) -> bool {
    for_each_line(group, b"/cgroup.procs", |process| {
        write_file(group, b"/../cgroup.procs", process);
    });
    let mut buffer = [0; PATH_BYTES];
    let removed = join(group, b"", &mut buffer).map(rmdir);
    matches!(removed, Some(Ok(()) | Err(Errno::NOENT)))
}

/// Room for a group's path with a suffix.
pub(super) const PATH_BYTES: usize = size_of::<Entry>() + 32;

/// A group's path with a suffix, ended by 0.
pub(super) fn join<'a>(
    group: &Entry,
    suffix: &[u8],
    buffer: &'a mut [u8; PATH_BYTES],
) -> Option<&'a CStr> {
    let path = group[1..].split(|byte| *byte == 0).next()?;
    let (start, rest) = buffer.split_at_mut(path.len());
    start.copy_from_slice(path);
    rest.get_mut(..suffix.len())?.copy_from_slice(suffix);
    CStr::from_bytes_until_nul(buffer).ok()
}

/// A file of a group; what cannot be opened belongs to nobody any more.
fn open_file(group: &Entry, suffix: &[u8], flags: OFlags) -> Option<OwnedFd> {
    let mut buffer = [0; PATH_BYTES];
    let path = join(group, suffix, &mut buffer)?;
    open(path, flags, Mode::empty()).ok()
}

pub(super) fn write_file(group: &Entry, suffix: &[u8], value: &[u8]) {
    if let Some(file) = open_file(group, suffix, OFlags::WRONLY) {
        let _ = rustix::io::write(file, value);
    }
}

/// Hands over each line of a file of a group. A line that is cut, where there is more than one reading takes, is read to its end first: a part of it would be
/// somebody else's number.
pub(super) fn for_each_line(group: &Entry, suffix: &[u8], mut with: impl FnMut(&[u8])) {
    let Some(file) = open_file(group, suffix, OFlags::RDONLY) else {
        return;
    };
    let (mut text, mut kept) = ([0; 4096], 0);
    while let Ok(length @ 1..) = rustix::io::read(&file, &mut text[kept..]) {
        let end = kept + length;
        let whole = whole_lines(&text[..end], &mut with);
        text.copy_within(whole..end, 0);
        kept = end - whole;
    }
}

/// Hands over the lines that are there to their ends; tells where the rest begins.
pub(super) fn whole_lines(text: &[u8], with: impl FnMut(&[u8])) -> usize {
    let last = text.iter().rposition(|byte| *byte == b'\n');
    let whole = last.map_or(0, |last| last + 1);
    let lines = text[..whole].split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).for_each(with);
    whole
}
