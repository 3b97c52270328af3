//! What the doctor found, as a table for people.

use laxity::doctor::{Finding, Machine, Status};

use crate::layout::wrap_to;

/// A line on the machine, the findings, the remedies below those that have one, and a count at the end, in lines of so many characters. Plain text, no
/// escapes.
pub fn table(machine: &Machine, findings: &[Finding], width: usize) -> String {
    let mut text = String::new();
    let processors = match &machine.processors.online {
        Ok(online) => format!("processors {online}"),
        Err(reason) => format!("processors unknown ({reason})"),
    };
    let release = machine.kernel.release.escape_debug();
    wrap_to(
        width,
        "",
        &format!("Linux {release}, {processors}"),
        &mut text,
    );
    text.push('\n');
    let names = findings.iter().map(|found| found.name.len()).max();
    let names = names.unwrap_or(0);
    for finding in findings {
        let (name, status) = (finding.name, finding.status.as_str());
        let head = format!("{name:names$}  {status:7}  ");
        wrap_to(width, &head, &finding.cause, &mut text);
        if let Some(remedy) = &finding.remedy {
            let head = format!("{:names$}  {:7}  → ", "", "");
            wrap_to(width, &head, remedy, &mut text);
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
    text.push('\n');
    wrap_to(width, "", &counts.join(", "), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use laxity::doctor::diagnose;

    use super::*;

    #[test]
    fn every_finding_is_told_whole_in_lines_that_fit() {
        let machine = Machine::probe();
        let findings = diagnose(&machine);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for width in [80, 100, 1_000] {
            let text = table(&machine, &findings, width);
            assert!(text.starts_with(&format!("Linux {}", machine.kernel.release)));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{text}");
        }
        let text = words(&table(&machine, &findings, 80));
        for finding in &findings {
            // A word that is longer than a line is broken.
            let is_whole = |text: &str| text.split_whitespace().all(|word| word.len() < 50);
            let told = words(&finding.cause);
            assert!(!is_whole(&told) || text.contains(&told), "{told}");
        }
    }
}
