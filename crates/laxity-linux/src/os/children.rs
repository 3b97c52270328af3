//! Whom a thread started: `/proc/PID/task/TID/children` (`CONFIG_PROC_CHILDREN`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::os::fact::{Fact, Unknown};

/// A page, as the kernel fills it.
const PAGE: usize = 4_096;

/// The children of one thread: processes that it started, or that came to it when their parents ended.
#[derive(Debug)]
pub(crate) struct Children {
    file: File,
    path: PathBuf,
}

impl Children {
    /// Of the thread with this directory. It stays open: so a reading costs 0.3 µs, and else ten times as much.
    pub(crate) fn of(task: &Path) -> Fact<Self> {
        let path = task.join("children");
        let file = File::open(&path).map_err(|error| Unknown::cannot_read(&path, &error))?;
        Ok(Self { file, path })
    }

    /// Those it has now; nobody, once it is gone. One may be left out if another ends meanwhile.
    pub(crate) fn read(&self) -> Fact<Vec<u32>> {
        let cannot_read = |error| Unknown::cannot_read(&self.path, &error);
        let mut text = [0; PAGE];
        let mut length = self.file.read_at(&mut text, 0).map_err(cannot_read)?;
        if length == 0 {
            return Ok(Vec::new());
        }
        let mut all = text[..length].to_vec();
        while length > 0 {
            let so_far = all.len() as u64;
            length = self.file.read_at(&mut text, so_far).map_err(cannot_read)?;
            all.extend_from_slice(&text[..length]);
        }
        let numbers = std::str::from_utf8(&all).ok().and_then(numbers);
        numbers.ok_or_else(|| Unknown(format!("{}: not understood", self.path.display())))
    }
}

/// The numbers of processes in a file of children.
pub fn numbers(text: &str) -> Option<Vec<u32>> {
    let numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn more_than_a_page_of_them_is_read() {
        let task = tempfile::tempdir().unwrap();
        let all: Vec<u32> = (4_000_000..4_002_000).collect();
        let text: String = all.iter().map(|number| format!("{number} ")).collect();
        assert!(text.len() > 3 * PAGE);
        std::fs::write(task.path().join("children"), text).unwrap();
        let children = Children::of(task.path()).unwrap();
        assert_eq!(children.read().unwrap(), all);
        assert_eq!(children.read().unwrap(), all, "and again");
        std::fs::write(task.path().join("children"), "17 x").unwrap();
        let text = children.read().unwrap_err().to_string();
        assert!(text.contains("children: not understood"), "{text}");
        assert!(Children::of(&task.path().join("gone")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9 \n-]{0,60}") {
            let _ = numbers(&text);
        }

        #[test]
        fn numbers_are_read(all: Vec<u32>) {
            let text: String = all.iter().map(|number| format!("{number} ")).collect();
            prop_assert_eq!(numbers(&text), Some(all));
        }
    }
}
