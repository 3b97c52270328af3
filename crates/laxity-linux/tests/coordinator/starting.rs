//! What a program leaves to the coordinator that it starts.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use laxity_linux::host::coordinator::{At, Client, Starter};
use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;

/// Says which files it has, where it is and what it is told, and ends.
const SAYS: &str = "#!/bin/sh
readlink /proc/$$/fd/* > ${0%/*}/files
pwd > ${0%/*}/place
echo \"$6\" > ${0%/*}/told
exit 1
";

#[test]
fn a_coordinator_keeps_nothing_of_whoever_starts_it() {
    let directory = TempDir::new().unwrap();
    let place = |name: &str| directory.path().join(name);
    let program = place("says");
    fs::write(&program, SAYS).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let held = File::create(place("held")).unwrap();
    fcntl_setfd(&held, FdFlags::empty()).unwrap();
    let starter = Starter {
        program: Some(program),
        ordinary: true,
    };
    let relative = Path::new("here").to_owned();
    let joined = Client::join(At::new(0, Some(relative.clone())), starter, "one");
    assert!(joined.is_err());
    let said = |name: &str| fs::read_to_string(place(name)).unwrap();
    assert!(!said("files").contains("held"), "{}", said("files"));
    assert_eq!(said("place"), "/\n");
    let here = std::env::current_dir().unwrap().join(relative);
    assert_eq!(Path::new(said("told").trim_end()), here);
}
