//! The option `--on`.

use clap::ValueEnum;

/// Which host runs a scenario.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum On {
    /// Linux where the rights are there, else the twin, saying so first.
    #[default]
    Auto,
    /// Linux, or exit code 4.
    Linux,
    /// The virtual-time twin.
    Twin,
}
