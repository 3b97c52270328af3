//! The `laxity` command: arguments in, exit code out. What is done is done by `laxity-lab` and `laxity-linux`.
#![forbid(unsafe_code)]

mod arguments;
mod calibrate;
mod doctor;
mod exit;
mod experiments;
mod files;
mod lab;
mod on;
mod plan;
mod progress;
mod run;
mod scenario;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use arguments::{Arguments, Command};
use exit::{Failure, USAGE};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let asked = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            // What cannot be printed cannot be reported either.
            let _ = error.print();
            return ExitCode::from(if asked { 0 } else { USAGE });
        }
    };
    let result = match &arguments.command {
        Command::Run(run) => run::run(run),
        Command::Plan(plan) => plan::run(plan),
        Command::Doctor(doctor) => doctor::run(doctor),
        Command::Calibrate(calibrate) => calibrate::run(calibrate),
        Command::Lab(lab) => lab::run(lab),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(Failure { code, message }) => {
            eprintln!("laxity: {message}");
            ExitCode::from(code)
        }
    }
}
