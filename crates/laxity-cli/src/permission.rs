//! Leave to execute what a scenario names: a scenario may come from anybody.

use std::io::{IsTerminal, stderr, stdin};

use laxity_lab::scenario::Resolved;

use crate::arguments::Run;
use crate::exit::{Failure, USAGE, failed};
use crate::files;

/// Fails unless the scenario executes nothing, or its user has said that it may: by the option, or now, having seen what it is.
pub(crate) fn to_execute(scenario: &Resolved, arguments: &Run) -> Result<(), Failure> {
    let commands = scenario.commands();
    if commands.is_empty() || arguments.allow_commands {
        return Ok(());
    }
    let shown: String = commands
        .iter()
        .map(|command| format!("  {command}\n"))
        .collect();
    let file = &scenario.file;
    let can_ask = stdin().is_terminal() && stderr().is_terminal() && !arguments.quiet;
    if !can_ask {
        let message = format!(
            "{file} executes programs on this machine, as you:\n{shown}if that is what you want, say so: --allow-commands; nothing was started"
        );
        return Err(Failure::new(USAGE, message));
    }
    files::say(&format!(
        "{file} executes programs on this machine, as you:\n{}",
        shown.trim_end()
    ));
    files::tell("Execute them? [y/N] ");
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .map_err(failed("the answer"))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::new(USAGE, "nothing was started")),
    }
}
