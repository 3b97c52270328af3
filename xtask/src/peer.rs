//! The V.22bis mode against a modem that is not ours: spandsp, where it is installed.

use anyhow::{Result, bail};

use crate::{cargo, output};

/// Runs the peer's tests. Without spandsp (Debian: `libspandsp-dev`) they say so and pass, but not where nothing may be skipped.
pub(crate) fn run() -> Result<()> {
    let mut tests = cargo();
    tests.args([
        "test",
        "--package",
        "laxity-devices",
        "--features",
        "spandsp",
        "--test",
        "v22bis",
        "--test",
        "modem",
    ]);
    let text = output(tests.args(["--", "--nocapture"]))?;
    print!("{text}");
    let must_run = std::env::var("LAXITY_REQUIRE_LIVE").is_ok_and(|value| value == "1");
    if must_run && text.contains("skipped, ") {
        bail!("spandsp is not there: the peer's tests were skipped");
    }
    Ok(())
}
