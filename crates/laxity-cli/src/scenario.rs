//! Reading the scenario file that a command names.

use std::io::IsTerminal;
use std::path::Path;

use laxity_lab::scenario::{self, Diagnostic, Scenario, Style};

use crate::exit::{ERROR, Failure, USAGE};

/// Reads and checks a scenario. Nothing is started if anything is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(ERROR, format!("{name}: {error}")))?;
    scenario::parse(&text, &name).map_err(|diagnostics| {
        for diagnostic in &diagnostics {
            eprintln!("{}\n", diagnostic.render(style()));
        }
        let errors = diagnostics.len();
        let plural = if errors == 1 { "" } else { "s" };
        Failure::new(
            USAGE,
            format!("{name}: {errors} error{plural}; nothing was started"),
        )
    })
}

/// Prints what is merely worth knowing of a scenario.
pub(crate) fn print_notes(notes: &[Diagnostic]) {
    for note in notes {
        eprintln!("{}", note.render(style()));
    }
}

fn style() -> Style {
    if std::io::stderr().is_terminal() {
        Style::Coloured
    } else {
        Style::Plain
    }
}
