//! The experiments as commands: a study that `laxity-lab` lists needs no line here.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use laxity_lab::bench::{Experiment as Study, Text};
use laxity_studies::{ACCEPTANCE, STUDIES};

use crate::arguments::{self, ACCEPTANCE_EXAMPLES, Acceptance};

/// The argument that names figures.
const FIGURES: &str = "figures";

/// Which experiment, and what it is asked.
#[derive(Debug)]
pub(crate) enum Experiment {
    /// How many random task sets each schedulability test accepts.
    Acceptance(Acceptance),
    /// One of the studies, and the keys of the figures wanted.
    Study(&'static dyn Study, Vec<String>, arguments::Study),
}

impl FromArgMatches for Experiment {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        if name == ACCEPTANCE.0 {
            return Acceptance::from_arg_matches(matches).map(Self::Acceptance);
        }
        let study = STUDIES.into_iter().find(|study| study.text().name == name);
        let study = study.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        // A study without figures has no such argument.
        let wanted = matches.try_get_many::<String>(FIGURES).ok().flatten();
        let figures = wanted.unwrap_or_default().cloned().collect();
        let arguments = arguments::Study::from_arg_matches(matches)?;
        Ok(Self::Study(study, figures, arguments))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Experiment {
    fn augment_subcommands(command: Command) -> Command {
        let acceptance = Acceptance::augment_args(Command::new(ACCEPTANCE.0))
            .about(ACCEPTANCE.1)
            .after_help(ACCEPTANCE_EXAMPLES);
        command
            .subcommand(acceptance)
            .subcommands(STUDIES.map(|study| subcommand(study.text())))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == ACCEPTANCE.0 || STUDIES.iter().any(|study| study.text().name == name)
    }
}

/// A study's command. Unknown figures are told with the nearest known one, and help lists all.
fn subcommand(study: &'static Text) -> Command {
    let command = arguments::Study::augment_args(Command::new(study.name.as_str()))
        .about(&study.summary)
        .after_help(examples(study));
    if study.figures.is_empty() {
        return command;
    }
    let values = study.figures.iter();
    let values = values.map(|figure| PossibleValue::new(figure.key.as_str()).help(&figure.shows));
    command.arg(
        Arg::new(FIGURES)
            .value_name("FIGURE")
            .num_args(0..)
            .value_parser(PossibleValuesParser::new(values))
            .help("Only these; without any, all"),
    )
}

fn examples(study: &Text) -> String {
    let name = &study.name;
    let mut lines = vec![
        (
            String::new(),
            "live too where this machine allows it".into(),
        ),
        (
            "--on twin".into(),
            "in virtual time only: the same bytes on every machine".into(),
        ),
        (
            "--on linux --json=-".into(),
            "for CI: exits 4 instead of leaving out what is measured".into(),
        ),
    ];
    if let Some(figure) = study.figures.first() {
        lines.insert(1, (figure.key.clone(), format!("only: {}", figure.shows)));
    }
    let commands: Vec<String> = lines
        .iter()
        .map(|(options, _)| format!("laxity lab {name} {options}").trim_end().to_owned())
        .collect();
    let width = commands.iter().map(String::len).max().unwrap_or(0) + 2;
    let shown = commands.iter().zip(&lines);
    let shown = shown.map(|(command, (_, about))| format!("  {command:<width$}{about}"));
    format!(
        "Exit codes: 0 all checks held; 2 one did not; 1 error; 4 cannot run here; 64 usage.\n\nExamples:\n{}",
        shown.collect::<Vec<_>>().join("\n")
    )
}
