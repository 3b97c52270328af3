//! `laxity man`: the manual pages of all commands, in the words of their help.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::exit::{Failure, MET, failed};

/// Writes a page for each command: `laxity.1`, `laxity-net.1`, `laxity-net-show.1`, ...
pub(crate) fn run(directory: &Path) -> Result<u8, Failure> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let shown = || directory.display().to_string();
    fs::create_dir_all(directory).map_err(failed(shown()))?;
    write(&command, directory).map_err(failed(shown()))?;
    Ok(MET)
}

fn write(command: &clap::Command, directory: &Path) -> io::Result<()> {
    let commands = command.get_subcommands();
    commands
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write(command, directory))?;
    let man = Man::new(command.clone().override_usage(usage(command)));
    fs::write(directory.join(man.get_filename()), page(command, &man)?)
}

/// A command with all that may stand behind it, as its help calls it: what the library makes of it lacks what options take and what may be repeated.
fn usage(command: &clap::Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let (places, options): (Vec<_>, Vec<_>) = shown.partition(|one| one.is_positional());
    let options = options.into_iter().map(|one| match one.is_required_set() {
        true => one.to_string(),
        false => format!("[{one}]"),
    });
    let places = places.into_iter().map(|one| match one.is_last_set() {
        true => format!("[-- {}]", one.clone().required(true)),
        false => one.to_string(),
    });
    let commands = match command.is_subcommand_required_set() {
        true => "<COMMAND>",
        false => "[COMMAND]",
    };
    let commands = command.has_subcommands().then(|| commands.to_owned());
    let words = [name.to_owned()].into_iter().chain(options);
    let words: Vec<String> = words.chain(places).chain(commands).collect();
    words.join(" ")
}

fn page(command: &clap::Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(more) = command.get_after_help() {
        let more = more.to_string();
        let (notes, examples) = more.split_once("Examples:\n").unwrap_or((&more, ""));
        // Lines of examples are columns; others are broken where they are too long.
        let sections = [("NOTES", notes, ".ad l"), ("EXAMPLES", examples, ".nf")];
        for (heading, text, mode) in sections.iter().filter(|(_, text, _)| !text.is_empty()) {
            page.extend(section(heading, text.trim_end(), mode).into_bytes());
        }
    }
    Ok(page)
}

/// Each line begins a line of the page.
fn section(heading: &str, text: &str, mode: &str) -> String {
    let mut section = format!(".SH {heading}\n{mode}\n");
    for line in text.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins so would be a request.
        let mark = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        // Writing to a string does not fail.
        let _ = writeln!(section, "{mark}{line}\n.br");
    }
    section + ".fi\n.ad b\n"
}
