//! What later steps build, built while live tests run: these wait for their turn and for instants, and leave half of the processors to whoever takes only what nobody else wants.

use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::process::command;
use crate::{checks, fuzz, twin};

/// The step during whose tests that is done.
pub(crate) const DURING: &str = "tests";

/// Begins to build what these steps will want, one after the other.
///
/// What comes of it the steps themselves say, which build what is not there yet; they wait for each other as any two builds do.
pub(crate) fn begin(steps: &[&str]) -> JoinHandle<()> {
    let builds: Vec<Command> = steps.iter().filter_map(|step| build(step)).collect();
    thread::spawn(move || builds.iter().for_each(run))
}

/// What this step builds first.
fn build(step: &str) -> Option<Command> {
    match step {
        "loom" => Some(checks::loom_build()),
        "readme" => Some(twin::plain_build()),
        "twin" => Some(twin::wide_build()),
        "fuzz" => Some(fuzz::build()),
        _ => None,
    }
}

/// Runs what it is given at the class behind all others, and, as the kernel weighs sessions first, in a session of its own that weighs the least. It ends with us.
const IDLE: &str = r#"echo 19 2>/dev/null > /proc/self/autogroup; exec setpriv --pdeathsig TERM chrt --idle 0 "$@""#;

fn run(build: &Command) {
    let mut idle = command("setsid");
    idle.args(["--wait", "sh", "-c", IDLE, "sh"]);
    idle.arg(build.get_program()).args(build.get_args());
    for (name, value) in build.get_envs() {
        match value {
            Some(value) => idle.env(name, value),
            None => idle.env_remove(name),
        };
    }
    let _ = idle.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
