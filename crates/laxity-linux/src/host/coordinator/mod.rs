//! Coordinators: one for each processor on which executors of several processes take turns. It gives the seats, admits all upcalls of all of them together, and guards the baton.
//!
//! What is decided there is decided in [`laxity_model::program::coordinator`]. A coordinator is a process that others reach by a socket, and start where there is none
//! ([`Client::join`]). Beside the socket it has files of its own. One is locked while it serves, so there are never two. For each seat that it has given there is another,
//! which whoever has the seat has open and locked: so one that begins knows which seats the one before it has given, whatever is said to it. It waits then until those who have
//! them have said what they have, or have ended, and grants nothing before.

mod client;
mod server;
mod settings;
mod starting;

use std::fs::DirEntry;
use std::io;
use std::path::PathBuf;

pub use self::client::{Client, Departed, Refusal, list};
pub use self::server::{Coordinator, Heard};
pub use self::settings::Settings;
pub use self::starting::Starter;

use super::alone::StartError;
use super::together::RegionError;

/// Names the directory of the coordinators' sockets.
pub const DIRECTORY: &str = "LAXITY_COORDINATOR_DIRECTORY";
/// Names the program that is started where there is no coordinator.
pub const PROGRAM: &str = "LAXITY_COORDINATOR";

/// Where a coordinator is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    /// The processor, by the kernel's number.
    pub processor: usize,
    /// The directory of its socket.
    pub directory: PathBuf,
}

impl At {
    /// In this directory, or in that of the environment's `LAXITY_COORDINATOR_DIRECTORY`; else the user's own, `$XDG_RUNTIME_DIR/laxity`, or where there is none, `/run/laxity`.
    #[must_use]
    pub fn new(processor: usize, directory: Option<PathBuf>) -> Self {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let chosen = || named(DIRECTORY).map(PathBuf::from);
        let own = || named("XDG_RUNTIME_DIR").map(|own| PathBuf::from(own).join("laxity"));
        let directory = directory.or_else(chosen).or_else(own);
        Self {
            processor,
            directory: directory.unwrap_or_else(|| PathBuf::from("/run/laxity")),
        }
    }

    /// The processors that have, or had, a coordinator in the same directory: none where there is no directory.
    ///
    /// # Errors
    ///
    /// The directory cannot be read, as somebody else's.
    pub fn processors(&self) -> io::Result<Vec<usize>> {
        let files = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files?,
        };
        let number = |file: io::Result<DirEntry>| {
            let name = file.ok()?.file_name();
            let name = name.to_str()?.strip_prefix("cpu")?;
            name.strip_suffix(".sock")?.parse().ok()
        };
        let mut all: Vec<usize> = files.filter_map(number).collect();
        all.sort_unstable();
        Ok(all)
    }

    fn path(&self, what: &str) -> PathBuf {
        self.directory.join(format!("cpu{}.{what}", self.processor))
    }
}

/// What helps who may not be where coordinators are.
fn own_place(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            ": let {DIRECTORY} name a directory of this user's own, or XDG_RUNTIME_DIR one in which that can be made; without both it is /run/laxity, which is root's"
        ),
        _ => String::new(),
    }
}

/// Why there is no coordinator, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// Another one serves this processor.
    #[error("processor {0} has a coordinator already")]
    Served(usize),
    /// It is not there, or is not switched on.
    #[error("there is no processor {0}, or it is off")]
    NoProcessor(usize),
    /// A file or a socket of it.
    #[error("{0}: {1}{remedy}", remedy = own_place(.1))]
    File(PathBuf, io::Error),
    /// Others could put files of theirs in the place of its own.
    #[error("{0} is not this user's own, or others may write in it")]
    Shared(PathBuf),
    /// The memory that processes share.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Its guards lack a right.
    #[error("the baton cannot be guarded: {0}")]
    Guard(#[from] StartError),
    /// The program that would be it was not started, or has ended.
    #[error("no coordinator can be started for processor {0}: {1}")]
    NotStarted(usize, String),
    /// Another user's, who is not root.
    #[error("{0} is of user {1}, and not of this one or root")]
    Stranger(PathBuf, u32),
    /// Nobody can say who serves there.
    #[error("who serves {0} cannot be seen from here: it is of another PID namespace")]
    Unseen(PathBuf),
    /// It does not answer, or has ended; what was asked for may be asked for again.
    #[error("the coordinator of processor {0} does not answer, or has ended; try again")]
    Lost(usize),
    /// It said no.
    #[error("the coordinator of processor {0} says no: {1}")]
    Refused(usize, String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_be_where_coordinators_are_is_told_where_he_may() {
        let said = |kind: io::ErrorKind| {
            CoordinatorError::File("/run/laxity".into(), kind.into()).to_string()
        };
        let denied = said(io::ErrorKind::PermissionDenied);
        assert!(
            denied.starts_with("/run/laxity: ") && denied.contains(DIRECTORY),
            "{denied}"
        );
        assert!(!said(io::ErrorKind::NotFound).contains(DIRECTORY));
    }
}
