//! Programs in C and C++ that use what is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use laxity_linux::doctor::rights;

/// Where cargo put the libraries: beside this test.
pub(crate) fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

pub(crate) fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(crate) fn there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Whether this can be tested here; says so if not.
pub(crate) fn can_compile() -> bool {
    let programs = ["cc", "c++", "pkg-config"];
    let missing = programs.into_iter().find(|program| !there(program));
    missing.inspect(|missing| rights::lacks(&format!("{missing} is not here")));
    missing.is_none()
}

pub(crate) fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}

/// What `pkg-config` says of what is installed there.
pub(crate) fn flags(prefix: &Path, options: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = succeed(command.args(options).arg("laxity"));
    flags.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn install(prefix: &Path) {
    succeed(Command::new(package("install.sh")).arg(built()).arg(prefix));
}

/// A source of this package as this compiler, language and way of linking make it.
pub(crate) fn compile(
    prefix: &Path,
    source: &str,
    (compiler, language): (&str, &[&str]),
    link: &[String],
) -> PathBuf {
    let name = Path::new(source).file_stem().unwrap().to_string_lossy();
    let program = prefix.join(format!("{name}-{compiler}-{}", link.len()));
    let strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"];
    let mut command = Command::new(compiler);
    command.args(language).args(strict).arg(package(source));
    // What follows is no source in that language.
    command
        .args(["-x", "none"])
        .args(flags(prefix, &["--cflags"]))
        .args(link);
    succeed(command.arg("-o").arg(&program));
    program
}

/// How to link with the shared library that is installed there.
pub(crate) fn shared(prefix: &Path) -> Vec<String> {
    let mut shared = flags(prefix, &["--libs"]);
    shared.push(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
    shared
}

pub(crate) const C11: (&str, &[&str]) = ("cc", &["-std=c11", "-x", "c"]);
pub(crate) const CXX17: (&str, &[&str]) = ("c++", &["-std=c++17", "-x", "c++"]);
