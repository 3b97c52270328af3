//! `laxity doctor`: what this machine can do, and the remedy for what it cannot.

use laxity::doctor::{Machine, Status, diagnose};
use laxity_lab::report::doctor;
use serde_json::json;

use crate::arguments::Doctor;
use crate::exit::{CANNOT_RUN, Failure};
use crate::files::width;
use crate::outputs;

/// Prints the findings. Exit code 4 if something is missing that a live run needs.
pub(crate) fn run(arguments: &Doctor) -> Result<u8, Failure> {
    outputs::check(None, arguments.json.output().as_slice())?;
    let machine = Machine::probe();
    let findings = diagnose(&machine);
    let people = || doctor::table(&machine, &findings, width());
    outputs::tell(&arguments.json, people, || {
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
        Ok(text.into_bytes())
    })?;
    let mut all = findings.iter();
    let missing = all.any(|finding| finding.status == Status::Missing);
    Ok(if missing { CANNOT_RUN } else { 0 })
}
