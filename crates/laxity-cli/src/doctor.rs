//! `laxity doctor`: what this machine can do, and the remedy for what it cannot.

use laxity::doctor::{Machine, Status, diagnose, table};
use serde_json::json;

use crate::arguments::Doctor;
use crate::exit::{CANNOT_RUN, Failure};
use crate::files;

/// Prints the findings. Exit code 4 if something is missing that a live run needs.
pub(crate) fn run(arguments: &Doctor) -> Result<u8, Failure> {
    let machine = Machine::probe();
    let findings = diagnose(&machine);
    match &arguments.json {
        Some(path) => {
            let list = findings.iter().map(|finding| {
                json!({
                    "name": finding.name,
                    "status": finding.status.as_str(),
                    "cause": finding.cause,
                    "remedy": finding.remedy,
                })
            });
            let list: Vec<_> = list.collect();
            let text = format!("{:#}\n", json!({ "file_version": 1, "findings": list }));
            files::write(path, text.as_bytes())?;
        }
        None => files::print(&table::render(&machine, &findings))?,
    }
    let mut all = findings.iter();
    let missing = all.any(|finding| finding.status == Status::Missing);
    Ok(if missing { CANNOT_RUN } else { 0 })
}
