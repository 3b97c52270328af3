//! `laxity channel key`: a host's private key, and the public one as a network's file has it.

use std::path::{Path, PathBuf};

use clap::Args;
use laxity_lab::{key_file, plain};

use crate::exit::{ERROR, Failure, MET, USAGE, failed};
use crate::files;

/// What `key` takes.
#[derive(Args, Debug)]
pub(crate) struct Key {
    /// The file of the private key; without it, laxity/channel.key in $XDG_CONFIG_HOME or ~/.config.
    file: Option<PathBuf>,
    /// Make none, and tell the public key to the private one that is there.
    #[arg(long)]
    show: bool,
}

pub(super) fn run(arguments: &Key) -> Result<u8, Failure> {
    let path = match &arguments.file {
        Some(path) if files::is_stream(path) => {
            let message = "a private key is in a file, and not in a stream: name one";
            return Err(Failure::new(USAGE, message));
        }
        Some(path) => path.clone(),
        None => default_path()?,
    };
    let public = match arguments.show {
        true => key_file::read(&path).map(|secret| secret.public()),
        false => {
            if arguments.file.is_none() {
                make_directory(&path)?;
            }
            key_file::make(&path)
        }
    };
    let public = public.map_err(|error| Failure::new(ERROR, error.to_string()))?;
    if !arguments.show {
        let name = path.display().to_string();
        files::say(&format!(
            "The private key is in {}, and is nobody's but this host's. This is the public one, for network.toml:",
            plain(&name)
        ));
    }
    files::print(&format!("key = \"{public}\"\n"))?;
    Ok(MET)
}

pub(super) fn default_path() -> Result<PathBuf, Failure> {
    let message = "neither XDG_CONFIG_HOME nor HOME says where the key is to be: name a file";
    key_file::default_path().ok_or_else(|| Failure::new(USAGE, message))
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    let Some(directory) = path.parent() else {
        return Ok(());
    };
    let what = format!("cannot make {}", plain(&directory.display().to_string()));
    std::fs::create_dir_all(directory).map_err(failed(what))
}
