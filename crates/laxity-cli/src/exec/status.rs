//! Whose the exit code is.

use serde::Serialize;

use super::BY_SIGNAL;
use super::program::End;
use super::tell::{FILE_VERSION, json};
use crate::exit::{Failure, MET};

/// Whose the exit code is, and why.
#[derive(Serialize, Debug)]
pub(super) struct Status {
    file_version: u32,
    /// `program`, `laxity`, or `verdict`.
    by: &'static str,
    /// `None` of a program that has none yet, or of which nobody tells us.
    exit_code: Option<u8>,
    /// The signal that ended the program.
    signal: Option<i32>,
    message: String,
}

impl Status {
    pub(super) fn ours(exit_code: u8, message: String) -> Self {
        Self {
            file_version: FILE_VERSION,
            by: "laxity",
            exit_code: Some(exit_code),
            signal: None,
            message,
        }
    }

    pub(super) fn of(end: End) -> Self {
        let (exit_code, signal, message) = match end {
            End::Exited(code) => (Some(code), None, format!("the program exited with {code}")),
            End::Killed(signal) => {
                let code = u8::try_from(signal).map_or(u8::MAX, |n| BY_SIGNAL.saturating_add(n));
                (
                    Some(code),
                    Some(signal),
                    format!("signal {signal} ended the program"),
                )
            }
            End::Gone => {
                let message = "it has ended; how, its parent alone is told";
                (None, None, message.to_owned())
            }
            End::LetGo => (None, None, "the program runs on".to_owned()),
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
        match verdict.filter(|_| status.code() == MET) {
            None => status,
            exit_code => Self {
                by: "verdict",
                exit_code,
                ..status
            },
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.by == "laxity"
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// That of this process: where the program has none, it has done what it was asked for.
    pub(super) fn code(&self) -> u8 {
        self.exit_code.unwrap_or(MET)
    }

    pub(super) fn signal(&self) -> Option<i32> {
        self.signal
    }

    pub(super) fn to_json(&self) -> Result<Vec<u8>, Failure> {
        json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_knows_of_a_programs_end_is_not_told() {
        let parent = "it has ended; how, its parent alone is told";
        let cases = [
            (End::Exited(0), None, "program", Some(0), "exited with 0"),
            (End::Exited(7), Some(2), "program", Some(7), "exited with 7"),
            (End::Exited(0), Some(2), "verdict", Some(2), "exited with 0"),
            (End::Killed(9), Some(2), "program", Some(137), "signal 9"),
            (End::Gone, None, "program", None, parent),
            (End::Gone, Some(0), "verdict", Some(0), parent),
            (End::Gone, Some(5), "verdict", Some(5), parent),
            (End::LetGo, None, "program", None, "the program runs on"),
            (End::LetGo, Some(2), "verdict", Some(2), "runs on"),
        ];
        for (end, verdict, by, exit_code, message) in cases {
            let status = Status::judged(end, verdict);
            assert_eq!(status.code(), exit_code.unwrap_or(0), "{end:?} {verdict:?}");
            assert!(status.message().contains(message), "{status:?}");
            let file = status.to_json().unwrap();
            let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
            assert_eq!(file["by"], by, "{file}");
            assert_eq!(file["exit_code"], serde_json::json!(exit_code), "{file}");
        }
    }
}
