//! How much code there is.

use anyhow::{Result, bail};

use crate::source::Tree;

/// `cargo xtask lines [--at REV]`: code lines under `crates/*/src`, by crate and in all.
///
/// # Errors
///
/// The options are not these, or the sources cannot be read.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let tree = match options {
        [] => Tree::here()?,
        ["--at", revision] => Tree::at(revision)?,
        other => bail!("lines knows --at REVISION, not {other:?}"),
    };
    let mut all = 0;
    for name in tree.crates() {
        let modules = tree.modules(name)?;
        let modules = modules.iter().filter(|module| !module.test);
        let lines: usize = modules.map(|module| module.code.lines()).sum();
        println!("{lines:>7}  {name}");
        all += lines;
    }
    println!("{all:>7}  in all, without blank lines, comments and tests");
    Ok(())
}
