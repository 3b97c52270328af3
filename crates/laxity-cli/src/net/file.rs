//! A file of packets that a command names.

use std::fs::File;
use std::io::stdin;
use std::os::fd::AsFd as _;
use std::path::Path;

use laxity::Watch;
use laxity_lab::capture_file::{Frame, Packets, Unreadable};
use laxity_lab::plain;
use rustix::fs::{Mode, OFlags, open};

use super::pipes::In;
use crate::exit::{ERROR, Failure, failed};
use crate::files;

/// Packets, and what errors call them.
pub(crate) struct Named<'a> {
    packets: Packets<In<'a>>,
    name: String,
}

impl<'a> Named<'a> {
    /// `-` is standard input. It is read until this watch catches a signal, which is an error then.
    pub(crate) fn open(path: &Path, watch: Option<&'a Watch>) -> Result<Self, Failure> {
        let (name, file) = match files::is_stream(path) {
            true => {
                let own = stdin().as_fd().try_clone_to_owned();
                ("standard input".to_owned(), own)
            }
            false => {
                // Who will write a pipe is waited for like all that comes of it.
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let file = open(path, flags, Mode::empty());
                let name = plain(&path.display().to_string()).into_owned();
                (name, file.map_err(std::io::Error::from))
            }
        };
        let file = File::from(file.map_err(failed(&name))?);
        let packets = Packets::read(In { file, watch }).map_err(|error| wrong(&name, &error))?;
        Ok(Self { packets, name })
    }

    /// What errors call the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The packets, with errors that do not name the file.
    pub(crate) fn packets(self) -> Packets<In<'a>> {
        self.packets
    }

    /// The next packet; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Result<Frame, Failure>> {
        let packet = self.packets.next()?;
        Some(packet.map_err(|error| wrong(&self.name, &error)))
    }
}

fn wrong(name: &str, error: &Unreadable) -> Failure {
    Failure::new(ERROR, plain(&format!("{name}: {error}")).into_owned())
}
