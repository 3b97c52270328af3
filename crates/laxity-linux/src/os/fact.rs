//! What the kernel tells in files: a fact, or the reason why it is not known.

use std::fs;
use std::io;
use std::path::Path;

/// A fact, or the reason why it is not known.
pub type Fact<T> = Result<T, Unknown>;

/// Why a fact is not known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unknown(pub String);

/// What is not known makes nothing known that follows from it.
impl From<&Self> for Unknown {
    fn from(why: &Self) -> Self {
        why.clone()
    }
}

impl Unknown {
    pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

/// The text of a file, or why it cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Fact<String> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|error| Unknown::cannot_read(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value in a file, or why there is none.
pub(crate) fn read_as<T>(path: impl AsRef<Path>, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
    let path = path.as_ref();
    let text = read(path)?;
    parse(text.trim_end())
        .ok_or_else(|| Unknown(format!("{}: not understood: {text:.80?}", path.display())))
}

/// The number in a file, or why there is none.
pub(crate) fn number(path: impl AsRef<Path>) -> Fact<u64> {
    read_as(path, |text| text.parse().ok())
}

/// The names in a directory that are text, in order.
pub(crate) fn names_in(directory: impl AsRef<Path>) -> Fact<Vec<String>> {
    let directory = directory.as_ref();
    let cannot_read = |error: io::Error| Unknown::cannot_read(directory, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(cannot_read)? {
        names.extend(entry.map_err(cannot_read)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// The names in a directory that are numbers, in order.
pub(crate) fn numbers_in(directory: impl AsRef<Path>) -> Fact<Vec<u32>> {
    let names = names_in(directory)?.into_iter();
    let mut numbers: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
