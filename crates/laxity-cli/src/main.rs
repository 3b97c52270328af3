//! The `laxity` command: arguments in, exit code out. What is done is done by `laxity-lab` and `laxity-linux`.
#![forbid(unsafe_code)]
// They panic where it cannot be written.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod arguments;
mod calibrate;
mod channel;
mod colour;
mod doctor;
mod enforcer;
mod exec;
mod exit;
mod experiments;
mod files;
mod lab;
mod machine;
mod man;
mod net;
mod on;
mod outputs;
mod permission;
mod plan;
mod progress;
mod run;
mod scenario;
mod upcalls;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use laxity_lab::plain;

use arguments::{Arguments, Command};
use exit::{CANNOT_RUN, Failure, MET, USAGE};
use laxity_lab::scenario::{network_reference, reference};

/// The main thread does with a quarter of it whatever it is asked.
const LEAST_STACK: u64 = 512 << 10;

fn main() -> ExitCode {
    match small_stack() {
        None => perform(),
        Some(why) => {
            files::say(&format!("laxity: {why}"));
            let cannot = if exec::is_meant() {
                exec::OURS
            } else {
                CANNOT_RUN
            };
            ExitCode::from(cannot)
        }
    }
}

/// That the stack is too small, if it is: who overflows it is ended by a signal, and says nothing of use.
fn small_stack() -> Option<String> {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Stack).current?;
    (limit < LEAST_STACK).then(|| {
        format!(
            "a stack of {} KiB is too small, {} are needed; allow more: `ulimit -s 8192`",
            limit >> 10,
            LEAST_STACK >> 10
        )
    })
}

/// By itself, as all that it needs of the stack is taken when it begins.
#[inline(never)]
fn perform() -> ExitCode {
    // A file that may not grow is then an error like any other, and not the end.
    laxity::survive_file_size_limit();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(mut error) => {
            make_plain(&mut error);
            if let Some((word, right)) = json_behind_a_space() {
                error.insert(ContextKind::InvalidArg, ContextValue::String(word));
                let tip = StyledStr::from(format!("the file stands behind `=`: '{right}'"));
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            } else if let Some(word) = command_without_dashes(&error) {
                let tip = StyledStr::from(format!("the command stands behind `--`: '-- {word}'"));
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            }
            colour::Colour::asked(std::env::args_os()).choose();
            let asked = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            // What cannot be printed cannot be reported either.
            let _ = error.print();
            let wrong = if exec::is_meant() { exec::OURS } else { USAGE };
            return ExitCode::from(if asked { 0 } else { wrong });
        }
    };
    arguments.color.choose();
    let result = match &arguments.command {
        Command::Run(run) => run::run(run),
        Command::Plan(plan) => plan::run(plan),
        Command::Doctor(doctor) => doctor::run(doctor),
        Command::Calibrate(calibrate) => calibrate::run(calibrate),
        Command::Exec(exec) => return exec::run(exec),
        Command::Lab(lab) => lab::run(lab),
        Command::Upcalls { what } => upcalls::run(what),
        Command::Net { what } => net::run(what),
        Command::Channel { what } => channel::run(what),
        Command::Keys { network: false } => files::print(&reference()).map(|()| MET),
        Command::Keys { network: true } => files::print(&network_reference()).map(|()| MET),
        Command::Man { directory } => man::run(directory),
        Command::Peer { experiment, part } => lab::peer(experiment, part),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(Failure { code, message }) => {
            files::say(&format!("laxity: {message}"));
            ExitCode::from(code)
        }
    }
}

/// The word behind `--json`, where it would be the name of its file if it stood behind `=`, and what would then be right. Only if nothing else is wrong:
/// without a file `--json` stands for standard output, so the word may as well be meant for another argument.
fn json_behind_a_space() -> Option<(String, String)> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let mut own = words.iter().take_while(|word| *word != "--");
    let option = own.position(|word| word == "--json")?;
    let file = own.next()?.clone();
    let mut right = OsString::from("--json=");
    right.push(&file);
    words.splice(option..option + 2, [right.clone()]);
    Arguments::try_parse_from(words).ok()?;
    let shown = |word: &OsStr| plain(&word.to_string_lossy()).into_owned();
    Some((shown(&file), shown(&right)))
}

/// The first word of the command of `exec`, where only the `--` before it is missing: without that it would not be known which options are whose.
fn command_without_dashes(error: &clap::Error) -> Option<String> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if !exec::is_meant() || words.iter().any(|word| word == "--") {
        return None;
    }
    let Some(ContextValue::String(first)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let shown = |word: &OsString| plain(&word.to_string_lossy()).into_owned();
    let at = words.iter().position(|word| shown(word) == *first)?;
    words.insert(at, OsString::from("--"));
    Arguments::try_parse_from(words).ok()?;
    Some(first.clone())
}

/// What was written on the command line is part of some messages: nothing in it is to steer the terminal.
fn make_plain(error: &mut clap::Error) {
    let made = error.context().filter_map(|(kind, value)| {
        let value = match value {
            ContextValue::String(text) => ContextValue::String(plain(text).into_owned()),
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| plain(text).into_owned());
                ContextValue::Strings(texts.collect())
            }
            // Tips that repeat it are left out: they are styled already.
            ContextValue::StyledStrs(texts) => {
                let is_plain = |text: &StyledStr| plain(&text.to_string()) == text.to_string();
                if texts.iter().all(is_plain) {
                    return None;
                }
                ContextValue::None
            }
            _ => return None,
        };
        Some((kind, value))
    });
    let made: Vec<_> = made.collect();
    for (kind, value) in made {
        error.insert(kind, value);
    }
}
