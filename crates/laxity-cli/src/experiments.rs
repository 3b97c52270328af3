//! The experiments as commands: a study that `laxity-lab` lists needs no line here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, value_parser,
};
use laxity_lab::bench::{self, Text};
use laxity_studies::STUDIES;

use crate::on::On;
use crate::outputs::Json;

/// The argument that names figures.
const FIGURES: &str = "figures";
/// Those that only a study has that says so.
const REPEATS: &str = "repeats";
const FULL: &str = "full";
const MACHINE: &str = "machine";

/// Which experiment, and what it is asked.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) study: &'static dyn bench::Experiment,
    /// The keys of the figures wanted.
    pub(crate) figures: Vec<String>,
    /// What was chosen of its own options.
    pub(crate) options: BTreeMap<String, u64>,
    /// Whether what is measured is measured at full length.
    pub(crate) full: bool,
    /// How often what is repeated is repeated, if that was said.
    pub(crate) repeats: Option<u32>,
    /// What this machine costs, if that was said.
    pub(crate) machine: Option<PathBuf>,
    pub(crate) arguments: Study,
}

/// What a study of [`laxity_studies::STUDIES`] takes besides the figures wanted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Study {
    /// Where to run it, beside the twin: which is always run, and compared with.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on: On,
    /// Threads for the twin; 0: one a processor. Makes no difference to the results.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Everything random follows from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) json: Json,
    /// Where the page goes; without it, `laxity-<EXPERIMENT>.html`.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write each drawing as a file of its own into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) svg: Option<PathBuf>,
    /// No progress, no table: only files, errors and the exit code.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl FromArgMatches for Experiment {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let study = STUDIES.into_iter().find(|study| study.text().name == name);
        let study = study.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        // A study without figures has no such argument.
        let wanted = matches.try_get_many::<String>(FIGURES).ok().flatten();
        let chosen = study.text().options.iter().filter_map(|option| {
            let value = matches.get_one::<u64>(&option.name)?;
            Some((option.name.clone(), *value))
        });
        Ok(Self {
            study,
            figures: wanted.unwrap_or_default().cloned().collect(),
            options: chosen.collect(),
            full: of_its_own(matches, FULL).unwrap_or(false),
            repeats: of_its_own(matches, REPEATS),
            machine: of_its_own(matches, MACHINE),
            arguments: Study::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Experiment {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(STUDIES.map(|study| subcommand(study.text())))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        STUDIES.iter().any(|study| study.text().name == name)
    }
}

/// What was said for an argument that not every study has.
fn of_its_own<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    matches.try_get_one::<T>(name).ok().flatten().cloned()
}

/// A study's command. Unknown figures are told with the nearest known one, and help lists all.
fn subcommand(study: &'static Text) -> Command {
    let mut command = Study::augment_args(Command::new(study.name.as_str()))
        .about(&study.summary)
        .after_help(examples(study));
    if !study.measures {
        command = command.mut_arg("on", |argument| argument.hide(true));
    }
    if study.repeats {
        let repeats = Arg::new(REPEATS)
            .long(REPEATS)
            .value_name("N")
            .value_parser(value_parser!(u32).range(1..=10_000))
            .help("How often what is repeated is repeated; without it, as often as its source did");
        command = command.arg(repeats);
    }
    if study.lengths {
        let full = Arg::new(FULL)
            .long(FULL)
            .action(ArgAction::SetTrue)
            .help("What is measured at full length: more cases, longer, and more often");
        command = command.arg(full);
    }
    if study.predicts {
        let machine = Arg::new(MACHINE)
            .long(MACHINE)
            .value_name("FILE|none")
            .value_parser(value_parser!(PathBuf))
            .help(
                "What this machine costs, for predictions; without it, where `laxity calibrate` leaves it, if something is measured; `none`: no file; \
                 `-` is standard input",
            );
        command = command.arg(machine);
    }
    for option in &study.options {
        let argument = Arg::new(option.name.as_str())
            .long(option.name.as_str())
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..=option.most))
            .help(option.help.as_str());
        command = command.arg(argument);
    }
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
            "--on linux --json".into(),
            "for CI: exits 4 instead of leaving out what is measured".into(),
        ),
    ];
    if let Some(figure) = study.figures.first() {
        lines.insert(1, (figure.key.clone(), format!("only: {}", figure.shows)));
    }
    if !study.measures {
        lines.retain(|(options, _)| !options.contains("--on"));
        lines[0].1 = "the same bytes on every machine, with any number of threads".into();
    }
    if study.lengths {
        let about = "what is measured, at full length";
        lines.push(("--on linux --full".into(), about.into()));
    }
    for option in &study.options {
        let chosen = (option.default * 2).min(option.most);
        lines.push((format!("--{} {chosen}", option.name), option.help.clone()));
    }
    let commands: Vec<String> = lines
        .iter()
        .map(|(options, _)| format!("laxity lab {name} {options}").trim_end().to_owned())
        .collect();
    let width = commands.iter().map(String::len).max().unwrap_or(0) + 2;
    let shown = commands.iter().zip(&lines);
    let shown = shown.map(|(command, (_, about))| format!("  {command:<width$}{about}"));
    format!(
        "Exit codes: 0 all checks held; 2 one did not;{} 1 error; 4 cannot run here; 64 usage.\n\nExamples:\n{}",
        if study.measures {
            " 5 one could not be judged;"
        } else {
            ""
        },
        shown.collect::<Vec<_>>().join("\n")
    )
}
