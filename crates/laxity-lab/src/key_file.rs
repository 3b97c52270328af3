//! The file with a host's private key, by which a node is who its public key says: 64 hexadecimal digits that nobody but its user may read.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use laxity_net::channels::session::{KeyError, PublicKey, SecretKey};

use crate::evidence::{WriteError, write_new};
use crate::machine_file::configuration;
use crate::plain;

/// Of a larger file no more than this is read, which is no key.
const LARGEST_FILE: u64 = 1 << 12;
/// Read and written by its owner, and by nobody else.
const MODE: u32 = 0o600;
/// What is anybody else's.
const OTHERS: u32 = 0o077;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It was there before, and stays what it is.
    #[error(
        "{0} is there already, and a key is never written over: `laxity channel key --show` tells its public one, or name another file"
    )]
    There(String),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It could not be read.
    #[error("cannot read {name}: {cause}{}", if cause.kind() == ErrorKind::NotFound { "; `laxity channel key` makes one" } else { "" })]
    Read {
        /// The file's.
        name: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Somebody else may have read it.
    #[error(
        "{name} may be read or written by others (mode {mode:03o}): if nobody has, chmod 600 it; else make another key, and tell the other hosts"
    )]
    Open {
        /// The file's.
        name: String,
        /// What others, and its owner, may do.
        mode: u32,
    },
    /// There is something else in it.
    #[error("{name} is no file of a private key: {cause}; `laxity channel key` makes one")]
    NoKey {
        /// The file's.
        name: String,
        /// Why.
        #[source]
        cause: KeyError,
    },
    /// The system has no random numbers.
    #[error("no key can be made: {0}")]
    Random(KeyError),
}

/// Where it is unless told otherwise: `laxity/channel.key` in `$XDG_CONFIG_HOME`, or in `~/.config`. `None` without either.
pub fn default_path() -> Option<PathBuf> {
    Some(configuration()?.join("channel.key"))
}

/// Makes a new key, and the file for it, which is there whole or not at all; tells the public one.
///
/// # Errors
///
/// [`KeyFileError`]: also where a file, or anything else, has this name, which is left as it is.
pub fn make(path: &Path) -> Result<PublicKey, KeyFileError> {
    let secret = SecretKey::generate().map_err(KeyFileError::Random)?;
    let text = secret.text() + "\n";
    write_new(path, text.as_bytes(), MODE).map_err(|error| match error.cause.kind() {
        ErrorKind::AlreadyExists => KeyFileError::There(name(path)),
        _ => error.into(),
    })?;
    Ok(secret.public())
}

/// The key in a file that only its owner may read.
///
/// # Errors
///
/// [`KeyFileError`].
pub fn read(path: &Path) -> Result<SecretKey, KeyFileError> {
    let name = name(path);
    let failed = |cause| KeyFileError::Read {
        name: name.clone(),
        cause,
    };
    // A pipe that nobody writes to is not waited for.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        let cause = io::Error::other("it is no file");
        return Err(failed(cause));
    }
    let file = File::open(path).map_err(failed)?;
    // Of what is open, which nobody can have replaced meanwhile.
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyFileError::Open { name, mode });
    }
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_FILE).read_to_end(&mut bytes);
    read.map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let secret = SecretKey::from_text(&text);
    secret.map_err(|cause| KeyFileError::NoKey { name, cause })
}

fn name(path: &Path) -> String {
    plain(&path.display().to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn restrict(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_is_made_once_and_is_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("channel.key");
        let public = make(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(read(&path).unwrap().public(), public);
        let before = fs::read(&path).unwrap();
        assert!(matches!(make(&path), Err(KeyFileError::There(_))));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        // A link to nowhere is a name that is taken.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        assert!(matches!(make(&link), Err(KeyFileError::There(_))));
        let others = ["a", "b"].map(|name| make(&directory.path().join(name)).unwrap());
        assert_eq!(BTreeSet::from([public, others[0], others[1]]).len(), 3);
    }

    #[test]
    fn what_is_no_key_or_may_be_read_by_others_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("channel.key");
        assert!(matches!(read(&path), Err(KeyFileError::Read { .. })));
        make(&path).unwrap();
        for open in [0o640, 0o604, 0o620, 0o602, 0o610] {
            restrict(&path, open);
            let error = read(&path).unwrap_err();
            assert!(matches!(error, KeyFileError::Open { mode, .. } if mode == open));
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        restrict(&path, 0o400);
        read(&path).unwrap();
        restrict(&path, 0o600);
        for text in ["", "5dab", "not a key", &"0".repeat(64), &"1".repeat(65)] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err();
            assert!(matches!(error, KeyFileError::NoKey { .. }), "{error}");
            // What may be a secret is not repeated.
            assert!(text.is_empty() || !error.to_string().contains(text));
        }
        assert!(matches!(
            read(directory.path()),
            Err(KeyFileError::Read { .. })
        ));
    }
}
