//! A file of packets that a command names.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use laxity_lab::capture_file::{Frame, Packets, Unreadable};
use laxity_lab::plain;

use crate::exit::{ERROR, Failure, failed};
use crate::files;

/// Packets, and what errors call them.
pub(crate) struct Named {
    packets: Packets<Box<dyn Read>>,
    name: String,
}

impl Named {
    /// `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let (name, source): (String, Box<dyn Read>) = match files::is_stream(path) {
            true => ("standard input".to_owned(), Box::new(std::io::stdin())),
            false => {
                let name = plain(&path.display().to_string()).into_owned();
                let file = File::open(path).map_err(failed(&name))?;
                (name, Box::new(file))
            }
        };
        let packets = Packets::read(source).map_err(|error| wrong(&name, &error))?;
        Ok(Self { packets, name })
    }

    /// What errors call the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The packets, with errors that do not name the file.
    pub(crate) fn packets(self) -> Packets<Box<dyn Read>> {
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
