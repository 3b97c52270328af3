//! `laxity exec`: a program that is not ours, with a reservation or a policy.

mod arguments;
mod measured;
mod program;
mod reserved;
mod status;
mod tell;
mod used;

use std::ffi::OsString;
use std::io::Error;
use std::process::ExitCode;

use laxity::command::open_files;
use laxity::contract::Contract;
use laxity_lab::scenario;

pub(crate) use arguments::{Exec, HELP};

use self::arguments::Asked;
use self::program::{Adopted, End, NotRun, Signals, Started};
use self::reserved::{Over, Reserved};
use self::status::Status;
use self::tell::Received;
use crate::exit::Failure;
use crate::files;
use crate::outputs::{self, Output};

/// Laxity failed, or refused: as `env` says it, so that it is not taken for the program's own.
pub(crate) const OURS: u8 = 125;
/// The command cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
const NO_COMMAND: u8 = 127;
/// The shell's way to say that a signal ended something.
const BY_SIGNAL: u8 = 128;

/// Whether a command line that cannot be read is one of these.
pub(crate) fn is_meant() -> bool {
    begins_with_exec(std::env::args_os().skip(1))
}

/// By the first word that is no option, nor what the only option before commands takes.
fn begins_with_exec(mut words: impl Iterator<Item = OsString>) -> bool {
    while let Some(word) = words.next() {
        if word == "--color" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return word == "exec";
        }
    }
    false
}

/// Runs it to its end; the exit code is the program's, where it has one.
pub(crate) fn run(arguments: &Exec) -> ExitCode {
    let status = perform(arguments).unwrap_or_else(with_remedy);
    if status.is_ours() {
        files::say(&format!("laxity: {}", status.message()));
    }
    let mut code = status.code();
    if let Err(failure) = leave(arguments, &status) {
        if failure.message != status.message() {
            files::say(&format!("laxity: {}", failure.message));
        }
        code = OURS;
    }
    if let (Some(signal), true) = (status.signal(), code != OURS) {
        die_of(signal);
    }
    ExitCode::from(code)
}

/// Writes whose the exit code is, where that is wanted: not over what is to be executed, also where that is why nothing was.
fn leave(arguments: &Exec, status: &Status) -> Result<(), Failure> {
    let Some(path) = &arguments.status_json else {
        return Ok(());
    };
    let (contract, program) = (arguments.contract.as_deref(), arguments.executable());
    outputs::check_beside(contract, program.as_slice(), &[("--status-json", path)])?;
    files::write(path, &status.to_json()?)
}

/// Where no more files may be opened, whoever of us wanted to says so in its own words: what is wrong is the limit, and not the program.
fn with_remedy(status: Status) -> Status {
    let remedy = open_files::remedy(status.message()).filter(|_| status.is_ours());
    match remedy {
        Some(remedy) => Status::ours(OURS, format!("{}: {remedy}", status.message())),
        None => status,
    }
}

/// Ends this process by the signal that ended the program, so that whoever waits for it sees the same.
fn die_of(signal: i32) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // A second image of the same accident helps nobody.
    let maximum = getrlimit(Resource::Core).maximum;
    let current = Some(0);
    let _ = setrlimit(Resource::Core, Rlimit { current, maximum });
    // Where it does not end us, the exit code says the same.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    laxity::command::obey(signal);
}

fn perform(arguments: &Exec) -> Result<Status, Status> {
    let ours = |message: String| Status::ours(OURS, message);
    open_files::allow_most();
    let asked = arguments.asked().map_err(ours)?;
    let contract = contract(arguments).map_err(|failure| ours(failure.message))?;
    check_outputs(arguments).map_err(ours)?;
    // Before the program is there: none that comes then is lost.
    let adopts = arguments.command.is_empty();
    let mut signals = Signals::begin(adopts).map_err(|error| ours(format!("signals: {error}")))?;
    let (end, over) = if adopts {
        adopt(arguments, &asked, &mut signals)
    } else {
        start(arguments, &asked, &mut signals)
    }?;
    let Some(over) = over else {
        // It had a policy, of which nothing is told.
        return Ok(Status::of(end));
    };
    let mut received = Received::new(arguments, over, end);
    received.judge(arguments.judge, contract);
    received.tell(arguments).map_err(|failure| {
        let ended = Status::of(end);
        ours(format!("{}; {}", failure.message, ended.message()))
    })?;
    Ok(Status::judged(end, received.code()))
}

/// Before the program is there: that what is to be told of it can be.
fn check_outputs(arguments: &Exec) -> Result<(), String> {
    let others = [
        ("--html", &arguments.html),
        ("--status-json", &arguments.status_json),
    ];
    let others = others.into_iter();
    let others = others.filter_map(|(option, path)| Some((option, path.as_deref()?)));
    let wanted: Vec<Output<'_>> = arguments.json.output().into_iter().chain(others).collect();
    let is_stream = |(_, path): &&Output<'_>| files::is_stream(path);
    if let (false, Some((option, _))) =
        (arguments.command.is_empty(), wanted.iter().find(is_stream))
    {
        return Err(format!(
            "{option} would be mixed with what the program writes to standard output: name a file, {option}=FILE"
        ));
    }
    let contract = arguments.contract.as_deref();
    let program = arguments.executable();
    let checked = outputs::check_beside(contract, program.as_slice(), &wanted);
    checked.map_err(|failure| failure.message)
}

fn start(
    arguments: &Exec,
    asked: &Asked,
    signals: &mut Signals,
) -> Result<(End, Option<Over>), Status> {
    let mut started = Started::start(arguments, asked).map_err(|why| not_run(arguments, why))?;
    let end = started.wait(signals);
    let over = started.reserved.take().and_then(Reserved::end);
    let left = started.leave();
    let end = end.and_then(|end| left.map(|used| (end, used)));
    let (end, used) = end.map_err(|message| Status::ours(OURS, message))?;
    Ok((end, over.map(|over| over.with_used(used))))
}

fn adopt(
    arguments: &Exec,
    asked: &Asked,
    signals: &mut Signals,
) -> Result<(End, Option<Over>), Status> {
    let mut adopted = Adopted::adopt(arguments, asked).map_err(|why| not_run(arguments, why))?;
    let end = adopted.wait(signals);
    Ok((end, adopted.reserved.end()))
}

fn not_run(arguments: &Exec, why: NotRun) -> Status {
    match why {
        NotRun::NotStarted(error) => {
            let (code, remedy) = why_not_started(&error);
            Status::ours(code, format!("{}: {error}{remedy}", arguments.name()))
        }
        NotRun::NotPlaced(why) => Status::ours(OURS, why),
    }
}

/// Whose fault it is that a command does not start, as an exit code, and what would help.
fn why_not_started(error: &Error) -> (u8, &'static str) {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => (NO_COMMAND, ""),
        // It was not tried: there is no process, or no file, to be had for it.
        Some(Errno::AGAIN) => (
            OURS,
            ": no more processes and threads may be started; end some, or allow more: `ulimit -u`, `pids.max` of a control group",
        ),
        // Nor does the kernel, or a filter before it, know what it is started by.
        Some(Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::NOSYS) | None => (OURS, ""),
        Some(_) => (NOT_EXECUTABLE, ""),
    }
}

/// The contract that is named, if one is.
fn contract(arguments: &Exec) -> Result<Option<Contract>, Failure> {
    let Some(path) = &arguments.contract else {
        return Ok(None);
    };
    let (name, text) = files::read(path)?;
    let contract = scenario::parse_contract(&text, &name);
    contract
        .map(Some)
        .map_err(|errors| crate::scenario::wrong(&name, &errors))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_is_wrong_is_ours_wherever_the_option_of_all_commands_stands() {
        let cases = [
            ("exec --reserve 2/8 -- true", true),
            ("--color=never exec", true),
            ("--color never exec", true),
            ("--no-such-option exec", true),
            ("--color exec run", false),
            ("run exec", false),
            ("--version", false),
            ("", false),
        ];
        for (line, is_ours) in cases {
            let words = line.split_whitespace().map(OsString::from);
            assert_eq!(begins_with_exec(words), is_ours, "{line}");
        }
    }

    #[test]
    fn what_was_not_tried_is_told_from_what_cannot_be_executed() {
        let cases = [
            (Errno::NOENT, NO_COMMAND),
            (Errno::ACCESS, NOT_EXECUTABLE),
            (Errno::NOEXEC, NOT_EXECUTABLE),
            (Errno::AGAIN, OURS),
            (Errno::NOMEM, OURS),
            (Errno::MFILE, OURS),
            (Errno::NOSYS, OURS),
        ];
        for (errno, code) in cases {
            let (found, remedy) = why_not_started(&Error::from(errno));
            assert_eq!(found, code, "{errno}");
            assert_eq!(remedy.contains("ulimit -u"), errno == Errno::AGAIN);
        }
    }
}
