//! What is left of the programs that a process started when it is killed: nothing.
//!
//! A program of its own instead of tests in the usual frame, since it starts itself again as the process to be killed.

mod common;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use laxity_linux::host::command::RunningCommand;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    if std::env::args().any(|argument| argument == "--victim") {
        return start_and_wait();
    }
    let mut victim = Command::new(std::env::current_exe()?)
        .arg("--victim")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let stdout = victim.stdout.take().ok_or("no pipe")?;
    BufReader::new(stdout).read_line(&mut line)?;
    // The leader dies with its parent, whoever watches. What it started is left to the guardian.
    let grandchild = format!("/proc/{}", line.trim().parse::<u32>()?);
    assert!(Path::new(&grandchild).exists(), "{grandchild} runs");
    victim.kill()?;
    victim.wait()?;
    common::until("the grandchild is gone", || {
        !Path::new(&grandchild).exists()
    });
    println!("test a_killed_process_leaves_no_child_of_a_program_it_started ... ok");
    Ok(())
}

/// The process to be killed: starts a program that starts another, tells the other's number, and waits.
fn start_and_wait() -> Outcome {
    let mut program = Command::new("sh");
    program.args(["-c", "sleep 1000 & echo $!; wait"]);
    let _running = RunningCommand::start(&mut program)?;
    loop {
        std::thread::park();
    }
}
