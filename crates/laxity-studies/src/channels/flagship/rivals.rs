//! Others' programs that carry the same messages. They are built outside the workspace (`tools/rivals/README.md`) and found in the folder that `LAXITY_RIVALS` names.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use super::Who;
use super::flows::Flow;

const FOLDER: &str = "LAXITY_RIVALS";

/// The program of one of them, or why there is none.
///
/// # Errors
///
/// What is missing.
pub(super) fn program(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
    let folder = folder.ok_or_else(|| {
        format!(
            "{FOLDER} names no folder of programs; tools/rivals/README.md says how they are built"
        )
    })?;
    let program = PathBuf::from(folder).join(name);
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("{} is not there", program.display())),
    }
}

/// What a program is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) sends: bool,
    /// The addresses of the near host and of the far one, by which the other knows it.
    pub(super) hosts: [Ipv4Addr; 2],
    /// The first that is free for it.
    pub(super) port: u16,
    pub(super) flows: &'a [Flow],
}

impl Told<'_> {
    /// As arguments: `send how interface near far port control:64:1000000 …`.
    pub(super) fn command(&self, who: Who) -> Option<Result<Command, String>> {
        let (name, how) = who.program()?;
        let (does, interface) = match self.sends {
            true => ("send", "right"),
            false => ("receive", "left"),
        };
        let command = |program| {
            let mut command = Command::new(program);
            command.args([does, how, interface]);
            command.args(self.hosts.map(|host| host.to_string()));
            command.arg(self.port.to_string());
            command.args(self.flows.iter().map(|flow| {
                let period = flow.period().as_nanos();
                format!("{}:{}:{period}", flow.name(), flow.bytes())
            }));
            command
        };
        Some(program(name).map(command))
    }
}
