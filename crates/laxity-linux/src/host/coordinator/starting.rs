//! The way to a coordinator, which is started where there is none.

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Instant;

use super::client::{PATIENCE, TRY_EVERY};
use super::{At, CoordinatorError, PROGRAM};
use crate::host::callers::wire::Wire;
use crate::os::{descriptor, signals};

/// The program that serves, where none is named.
const COMMAND: &str = "laxity";
/// Who names another one.
const NAMED: &str = "LAXITY_COORDINATOR says which program is started";

/// What is started where there is no coordinator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Starter {
    /// The program; `None`: that of the environment's `LAXITY_COORDINATOR`, or the command `laxity` beside the own executable or of the path.
    pub program: Option<PathBuf>,
    /// It is to serve ordinary threads.
    pub ordinary: bool,
}

/// A connection; where nobody serves, a coordinator is started.
pub(super) fn reach(at: &At, starter: &Starter, until: Instant) -> Result<Wire, CoordinatorError> {
    let mut started: Option<Receiver<Result<String, String>>> = None;
    let mut last = None;
    loop {
        if let Some(wire) = connect(at)? {
            return Ok(wire);
        }
        let not_started = |why| CoordinatorError::NotStarted(at.processor, why);
        let ended = started.as_ref().map(Receiver::try_recv);
        started = match ended {
            None => Some(start(at, starter)),
            // It has ended: another one serves, or it was the last one's end that we saw.
            Some(Ok(Ok(why))) => {
                last = Some(why);
                Some(start(at, starter))
            }
            Some(Ok(Err(why))) => return Err(not_started(why)),
            Some(Err(TryRecvError::Empty)) => started,
            Some(Err(TryRecvError::Disconnected)) => None,
        };
        if Instant::now() >= until {
            return Err(last.map_or(CoordinatorError::Lost(at.processor), not_started));
        }
        thread::sleep(TRY_EVERY);
    }
}

/// A connection; `None` where nobody serves.
pub(super) fn connect(at: &At) -> Result<Option<Wire>, CoordinatorError> {
    let path = at.path("sock");
    let wire = match Wire::connect(&path, PATIENCE) {
        Ok(wire) => wire,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                io::ErrorKind::WouldBlock => Err(CoordinatorError::Lost(at.processor)),
                _ => Err(CoordinatorError::File(path, error)),
            };
        }
    };
    let own = rustix::process::geteuid().as_raw();
    match wire.peer().map(|peer| peer.map(|peer| peer.user)) {
        Ok(Some(user)) if user != own && user != 0 => Err(CoordinatorError::Stranger(path, user)),
        Ok(Some(_)) => Ok(Some(wire)),
        Ok(None) => Err(CoordinatorError::Unseen(path)),
        Err(error) => Err(CoordinatorError::File(path, error)),
    }
}

/// Starts the program that serves; tells when it has ended, and of what, which is no error where it ended with 0.
fn start(at: &At, starter: &Starter) -> Receiver<Result<String, String>> {
    let own = env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(COMMAND)));
    let there = || beside.clone().filter(|beside| beside.exists());
    let named = || {
        env::var_os(PROGRAM)
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
    };
    let program = starter.program.clone().or_else(named).or_else(there);
    let program = program.unwrap_or_else(|| PathBuf::from(COMMAND));
    // It is started elsewhere. A command alone is of the path.
    let is_path = program.components().nth(1).is_some();
    let found = if is_path {
        absolute(&program)
    } else {
        program.clone()
    };
    let mut command = Command::new(found);
    command.args(["upcalls", "serve", "--processor", &at.processor.to_string()]);
    command.arg("--directory").arg(absolute(&at.directory));
    command.args(starter.ordinary.then_some("--ordinary"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // What is typed for this process is not for all who have the coordinator.
    command.process_group(0);
    // SAFETY: it takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            // Whoever asks for it may be a thread that hears no signals; the program is to.
            signals::hear_again();
            // It stays when this process has ended, and is to keep no file of it open, no lock of it and no file system in use.
            descriptor::close(3..=u32::MAX, true);
            libc::chdir(c"/".as_ptr());
            Ok(())
        });
    }
    let (tell, told) = mpsc::channel();
    match command.spawn() {
        Err(error) => drop(tell.send(Err(unstarted(&program, beside.as_deref(), &error)))),
        Ok(child) => {
            // It is waited for, so that it leaves nothing behind; by a thread that is there as long as it is.
            let waits = signals::start_deaf(thread::Builder::new(), move || {
                let ended = match child.wait_with_output() {
                    Ok(output) if output.status.success() => Ok(ended(&program, &output)),
                    Ok(output) => Err(ended(&program, &output)),
                    Err(error) => Err(error.to_string()),
                };
                let _ = tell.send(ended);
            });
            // Where there is no thread, nobody tells, which is heard.
            drop(waits);
        }
    }
    told
}

/// Wherever the process is, which has no working directory any more where it is a relative one still.
fn absolute(path: &Path) -> PathBuf {
    path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Why the program cannot be started, and where it was looked for.
fn unstarted(program: &Path, beside: Option<&Path>, error: &io::Error) -> String {
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    match beside.filter(|_| is_missing && program == Path::new(COMMAND)) {
        Some(beside) => format!(
            "there is neither `{}` nor a `{COMMAND}` in PATH: `cargo install --path crates/laxity-cli` installs it, or {PROGRAM} names another program",
            beside.display()
        ),
        None => format!("`{}`: {error} ({NAMED})", program.display()),
    }
}

/// How the program has ended, and what it said.
fn ended(program: &Path, output: &Output) -> String {
    let (program, status) = (program.display(), output.status);
    let said = String::from_utf8_lossy(&output.stderr);
    match said.trim() {
        "" => format!("`{program}` has ended ({status}), and nobody serves ({NAMED})"),
        said => format!("`{program}` has ended ({status}): {said}"),
    }
}
