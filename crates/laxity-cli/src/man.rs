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
    let man = Man::new(command.clone());
    fs::write(directory.join(man.get_filename()), page(command, &man)?)
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
