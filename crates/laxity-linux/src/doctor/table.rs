//! Findings as a table for people.

use std::fmt::Write as _;

use super::checks::{Finding, Status};
use super::machine::Machine;

/// A line on the machine, a line a finding, the remedies below those that have one, and a count at the end. Plain text, no escapes.
pub fn render(machine: &Machine, findings: &[Finding]) -> String {
    let mut text = String::new();
    let processors = match &machine.processors.online {
        Ok(online) => format!("processors {online}"),
        Err(reason) => format!("processors unknown ({reason})"),
    };
    let release = machine.kernel.release.escape_debug();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "Linux {release}, {processors}\n");
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for finding in findings {
        let (name, status) = (finding.name, finding.status.as_str());
        let _ = writeln!(text, "{name:width$}  {status:7}  {}", finding.cause);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:width$}  {:7}  → {remedy}", "", "");
        }
    }
    let all = [
        Status::Ok,
        Status::Limited,
        Status::Missing,
        Status::Unknown,
    ];
    let counts = all.map(|status| {
        let count = findings.iter().filter(|f| f.status == status).count();
        format!("{count} {status}")
    });
    let _ = writeln!(text, "\n{}", counts.join(", "));
    text
}
