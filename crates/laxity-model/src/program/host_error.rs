//! Why a program did not run.

use alloc::string::String;

/// Why a program did not run, or did not run to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// Admission said no; nothing was started. The text names the resource and the amount missing.
    #[error("not admitted: {0}")]
    Refused(String),
    /// This host cannot run such a program at all (rights or kernel missing, or a placement it does not have).
    #[error("cannot run here: {0}")]
    CannotRun(String),
    /// A processor that was named is none of those that may be used.
    #[error("processor {missing} may not be used, only {usable}")]
    NoProcessor {
        /// By the kernel's number; several as the kernel lists them.
        missing: String,
        /// As the kernel lists them.
        usable: String,
    },
    /// The program is wrong: an id that does not exist, a reservation for an interrupt handler.
    #[error("bad program: {0}")]
    BadProgram(String),
    /// Something failed on the way; everything was restored.
    #[error("the run failed: {0}")]
    Failed(String),
    /// So much came in between that what must be known before the run could not be measured: nobody knows what would be granted. Everything was
    /// restored.
    #[error("{0}")]
    Disturbed(String),
    /// The run was stopped from outside (SIGINT, SIGTERM); everything was restored.
    #[error("interrupted by {0}")]
    Interrupted(&'static str),
}
