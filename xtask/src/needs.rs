//! What steps need beside the toolchain: it is installed where that can be done without asking, or the step is skipped and says why.

use crate::process::{command, output, sh, succeeds};

/// Something that a machine with Rust and nothing else may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// A component of the toolchain: its name, and the subcommand of cargo that it brings.
    Component(&'static str, &'static str),
    /// A nightly toolchain, cargo-fuzz, and the C++ compiler that builds the fuzzer.
    Fuzzer,
    /// The modem that is not ours, and the C compiler that builds its end.
    Spandsp,
    /// The trace processor that is not ours, and what runs it.
    TraceReader,
}

impl Need {
    /// Sees to it that it is there.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub(crate) fn provide(self) -> Result<(), String> {
        match self {
            Self::Component(component, subcommand) => install(
                command("cargo").args([subcommand, "--version"]),
                command("rustup").args(["component", "add", component]),
                component,
            ),
            Self::Fuzzer => fuzzer(),
            Self::Spandsp => spandsp(),
            Self::TraceReader => trace_reader(),
        }
    }
}

/// Runs the second command unless the first one shows that there is no need.
fn install(
    check: &mut std::process::Command,
    install: &mut std::process::Command,
    name: &str,
) -> Result<(), String> {
    if succeeds(check) {
        return Ok(());
    }
    println!("   {name} is not here: {install:?}");
    sh(install).map_err(|error| format!("{name} is not here and cannot be installed: {error:#}"))
}

fn there(program: &str, argument: &str) -> Result<(), String> {
    if succeeds(command(program).arg(argument)) {
        Ok(())
    } else {
        Err(format!("{program} is not here"))
    }
}

fn fuzzer() -> Result<(), String> {
    there("c++", "--version")?;
    install(
        command("cargo").args(["+nightly", "--version"]),
        command("rustup").args(["toolchain", "install", "nightly", "--profile", "minimal"]),
        "a nightly toolchain",
    )?;
    install(
        command("cargo").args(["fuzz", "--version"]),
        command("cargo").args(["install", "--quiet", "--locked", "cargo-fuzz"]),
        "cargo-fuzz",
    )
}

fn spandsp() -> Result<(), String> {
    there("cc", "--version")?;
    let known = ["--exists", "spandsp >= 0.0.6", "spandsp < 0.1"];
    if succeeds(command("pkg-config").args(known)) {
        Ok(())
    } else {
        Err("spandsp 0.0.6 is not here (Debian: libspandsp-dev and pkg-config)".into())
    }
}

/// The first version of node whose standard library has all that the reader uses.
const NODE: u32 = 18;

fn trace_reader() -> Result<(), String> {
    let node = output(command("node").arg("--version")).map_err(|_| "node is not here")?;
    let major = node.trim().trim_start_matches('v').split('.').next();
    if !major.is_some_and(|major| major.parse().is_ok_and(|major: u32| major >= NODE)) {
        return Err(format!("node is {}, not {NODE} or later", node.trim()));
    }
    if !succeeds(command("python3").args(["-m", "pip", "--version"])) {
        return Err("python3 with pip is not here".into());
    }
    sh(command("tools/trace-check/check.sh").arg("--fetch"))
        .map_err(|error| format!("the reader cannot be fetched: {error:#}"))
}
