//! The scenario file that a command names, and what is wrong with a file.

use std::path::Path;

use laxity_lab::import::Format;
use laxity_lab::scenario::{self, Diagnostic, Scenario, Severity, Style};

use crate::exit::{Failure, USAGE};
use crate::{colour, files};

/// Reads and checks a scenario. Nothing is started if anything is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Scenario, Failure> {
    let (name, text) = files::read(path)?;
    if Format::of(&name, &text).is_some() {
        let message = format!(
            "{name} is a task set, and no scenario: `laxity plan` reads it; nothing was started"
        );
        return Err(Failure::new(USAGE, message));
    }
    parse(&text, &name)
}

/// The same of a text that has been read.
pub(crate) fn parse(text: &str, name: &str) -> Result<Scenario, Failure> {
    scenario::parse(text, name).map_err(|errors| {
        let mut failure = wrong(name, &errors);
        failure.message.push_str("; nothing was started");
        // What a file is, its name's end says first.
        if name
            .rsplit_once('.')
            .is_some_and(|(_, end)| !end.eq_ignore_ascii_case("toml"))
        {
            failure.message.push_str(OTHERS);
        }
        failure
    })
}

/// What else might have been meant by a file that is no scenario.
const OTHERS: &str = "; it was read as a scenario, in TOML; `laxity plan` reads task sets too, from CSV (.csv) and from rt-app's JSON (.json)";

/// Shows what is wrong with a file, and what is merely worth knowing of it.
pub(crate) fn wrong(name: &str, found: &[Diagnostic]) -> Failure {
    for one in found {
        files::tell(&format!("{}\n\n", one.render(style())));
    }
    let errors = found.iter().filter(|one| one.severity == Severity::Error);
    let errors = errors.count();
    let plural = if errors == 1 { "" } else { "s" };
    Failure::new(USAGE, format!("{name}: {errors} error{plural}"))
}

/// Prints what is merely worth knowing of a scenario.
pub(crate) fn print_notes(notes: &[Diagnostic]) {
    for note in notes {
        files::tell(&format!("{}\n", note.render(style())));
    }
}

fn style() -> Style {
    match colour::is_wanted(&std::io::stderr()) {
        true => Style::Coloured,
        false => Style::Plain,
    }
}
