//! Whether there is a program, before anything is started.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Where programs are looked for without `PATH`.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Finds the program that would be executed by this name, as `execvp` does: a name without a slash in the directories of `PATH`.
///
/// # Errors
///
/// Why it cannot be executed by who started this process. That it could be does not say that it will.
pub fn look_for(program: &OsStr) -> io::Result<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return executable(program.into());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| WITHOUT_PATH.into());
    look_in(&path, program)
}

fn look_in(path: &OsStr, program: &OsStr) -> io::Result<PathBuf> {
    let mut refused = None;
    let directories = env::split_paths(path).filter(|_| !program.is_empty());
    for directory in directories {
        // An empty one is that in which we are.
        match executable(Path::new(".").join(directory).join(program)) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = Some(error),
            Err(_) => {}
        }
    }
    let program = program.display();
    Err(match refused {
        Some(_) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("no `{program}` in the directories of PATH may be executed"),
        ),
        None => io::Error::new(
            io::ErrorKind::NotFound,
            format!("no directory of PATH has a `{program}`"),
        ),
    })
}

fn executable(path: PathBuf) -> io::Result<PathBuf> {
    if !fs::metadata(&path)?.is_file() {
        return Err(Errno::ACCESS.into());
    }
    access(&path, Access::EXEC_OK)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn it_is_looked_for_as_execvp_does() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        for (at, name, mode) in [
            (&first, "both", 0o644),
            (&second, "both", 0o755),
            (&first, "data", 0o644),
        ] {
            fs::create_dir_all(at).unwrap();
            fs::write(at.join(name), "").unwrap();
            fs::set_permissions(at.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(second.join("folder")).unwrap();
        symlink("both", second.join("link")).unwrap();
        let path = env::join_paths([&directory.path().join("none"), &first, &second]).unwrap();
        let found = |name: &str| {
            let found = look_in(&path, OsStr::new(name));
            found.map_err(|error| error.to_string())
        };
        // Passed over where it may not be executed, as the first is.
        assert_eq!(found("both"), Ok(second.join("both")));
        assert_eq!(found("link"), Ok(second.join("link")));
        let denied = |name| {
            Err(format!(
                "no `{name}` in the directories of PATH may be executed"
            ))
        };
        assert_eq!(found("data"), denied("data"));
        assert_eq!(found("folder"), denied("folder"));
        let none = |name| Err(format!("no directory of PATH has a `{name}`"));
        assert_eq!(found("other"), none("other"));
        assert_eq!(found(""), none(""));

        let kind = |path: PathBuf| look_for(path.as_os_str()).map_err(|error| error.kind());
        assert_eq!(kind(second.join("both")), Ok(second.join("both")));
        assert_eq!(
            kind(first.join("data")),
            Err(io::ErrorKind::PermissionDenied)
        );
        assert_eq!(kind(first.join("none")), Err(io::ErrorKind::NotFound));
    }
}
