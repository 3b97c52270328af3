//! The trace of a run, opened by a reader that is not ours.

use anyhow::Result;

use crate::process::{cargo, command, sh, target_dir};

/// Runs the minimal scenario in the twin and has its trace checked by Perfetto's own trace processor.
pub(crate) fn run() -> Result<()> {
    let dir = target_dir().join("trace-run");
    std::fs::create_dir_all(&dir)?;
    let trace = dir.join("run.pftrace");
    let expected = dir.join("expected.json");
    let mut run = cargo();
    run.args([
        "run",
        "--release",
        "--quiet",
        "--",
        "run",
        "scenarios/soft-modem.toml",
        "--on",
        "twin",
    ]);
    run.arg(format!("--trace={}", trace.display()));
    run.arg(format!("--trace-summary={}", expected.display()));
    run.arg(format!("--html={}", dir.join("report.html").display()));
    sh(&mut run)?;
    sh(command("tools/trace-check/check.sh")
        .arg(&trace)
        .arg(&expected))
}
