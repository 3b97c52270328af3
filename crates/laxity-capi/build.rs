//! For `cargo cinstall`, which asks for the feature `capi`: writes the manual pages to where it takes them from.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-changed=man.sh");
    if std::env::var_os("CARGO_FEATURE_CAPI").is_some() {
        let out = std::env::var_os("OUT_DIR").expect("cargo says where to write");
        write_pages(&PathBuf::from(out));
    }
}

/// Into the directory of their section, below this one.
pub(crate) fn write_pages(below: &Path) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for header in ["laxity", "rts"] {
        let mut command = Command::new(package.join("man.sh"));
        command.arg(package.join(format!("include/{header}.h")));
        command.args([Path::new(env!("CARGO_PKG_VERSION")), &below.join("man3")]);
        let status = command.status().expect("there is a shell");
        assert!(status.success(), "{command:?}: {status}");
    }
}
