//! Reading the scenario file that a command names.

use std::io::IsTerminal;
use std::path::Path;

use laxity_lab::scenario::{self, Scenario, Style};

use crate::exit::{ERROR, Failure, USAGE};

/// Reads and checks a scenario. Nothing is started if anything is wrong with it; what is merely worth knowing is printed.
pub(crate) fn read(path: &Path, quiet: bool) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(ERROR, format!("{name}: {error}")))?;
    let style = if std::io::stderr().is_terminal() {
        Style::Coloured
    } else {
        Style::Plain
    };
    match scenario::parse(&text, &name) {
        Ok(scenario) => {
            for note in scenario.notes.iter().filter(|_| !quiet) {
                eprintln!("{}", note.render(style));
            }
            Ok(scenario)
        }
        Err(diagnostics) => {
            for diagnostic in &diagnostics {
                eprintln!("{}\n", diagnostic.render(style));
            }
            let errors = diagnostics.len();
            let plural = if errors == 1 { "" } else { "s" };
            Err(Failure::new(
                USAGE,
                format!("{name}: {errors} error{plural}; nothing was started"),
            ))
        }
    }
}
