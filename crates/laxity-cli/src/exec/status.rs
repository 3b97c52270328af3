//! Whose the exit code is.

use serde::Serialize;

use super::BY_SIGNAL;
use super::program::End;
use super::tell::{FILE_VERSION, json};

/// Whose the exit code is, and why.
#[derive(Serialize, Debug)]
pub(super) struct Status {
    file_version: u32,
    /// `program`, `laxity`, or `verdict`.
    by: &'static str,
    exit_code: u8,
    /// The signal that ended the program.
    signal: Option<i32>,
    message: String,
}

impl Status {
    pub(super) fn ours(exit_code: u8, message: String) -> Self {
        Self {
            file_version: FILE_VERSION,
            by: "laxity",
            exit_code,
            signal: None,
            message,
        }
    }

    pub(super) fn of(end: End) -> Self {
        let (exit_code, signal, message) = match end {
            End::Exited(code) => (code, None, format!("the program exited with {code}")),
            End::Killed(signal) => {
                let code = u8::try_from(signal).map_or(u8::MAX, |n| BY_SIGNAL.saturating_add(n));
                (
                    code,
                    Some(signal),
                    format!("signal {signal} ended the program"),
                )
            }
            End::LetGo => (0, None, "the program runs on".to_owned()),
        };
        Self {
            file_version: FILE_VERSION,
            by: "program",
            exit_code,
            signal,
            message,
        }
    }

    /// The verdict is the exit code of a program that has none of its own to tell.
    pub(super) fn judged(end: End, verdict: Option<u8>) -> Self {
        let status = Self::of(end);
        match verdict.filter(|_| status.exit_code == 0) {
            Some(exit_code) => Self {
                by: "verdict",
                exit_code,
                ..status
            },
            None => status,
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.by == "laxity"
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn code(&self) -> u8 {
        self.exit_code
    }

    pub(super) fn signal(&self) -> Option<i32> {
        self.signal
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        json(self)
    }
}
