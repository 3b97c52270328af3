//! Folders of inputs, each with what is told of it beside it: of `<name>.toml` that is `<name>.txt`. After a change of wording, run the tests with `UPDATE_EXPECT=1` and read the difference.

use std::fs;
use std::path::{Path, PathBuf};

use laxity_lab::scenario::{Diagnostic, Severity, Style};

/// A path below the crate.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in a folder of `tests` with this extension, by name.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path("tests").join(folder)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let is_one = |path: &PathBuf| path.extension().is_some_and(|other| other == extension);
    let mut paths: Vec<_> = paths.filter(is_one).collect();
    paths.sort();
    paths
}

/// Of each input in the folder, of which there are so many at least, that is told which stands beside it. `tell` has its text and its name.
#[track_caller]
pub(crate) fn assert_told(folder: &str, least: usize, tell: impl Fn(&str, &str) -> String) {
    let inputs = files(folder, "toml");
    assert!(inputs.len() >= least, "only {} in {folder}", inputs.len());
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for input in &inputs {
        let name = input.file_name().expect("a file").to_string_lossy();
        let told = tell(&read(input), &name);
        let golden = input.with_extension("txt");
        if update {
            fs::write(&golden, &told).expect("the folder can be written");
        }
        if read(&golden) != told {
            wrong.push(format!("--- {name}\n{told}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "not as in the .txt beside it:\n{}",
        wrong.join("\n")
    );
    let golden = files(folder, "txt").len();
    assert_eq!(golden, inputs.len(), "a .txt has lost its .toml");
}

/// What a person sees of what was found in a text, in which the fields that a program reads say the same, and one is an error.
#[track_caller]
pub(crate) fn explained(text: &str, name: &str, found: &[Diagnostic]) -> String {
    let mut errors = found.iter().map(|one| one.severity);
    assert!(errors.any(|one| one == Severity::Error), "{name}");
    let explain = |one: &Diagnostic| {
        assert_eq!(one.file, name);
        assert!(!one.cause.is_empty() && !one.remedy.is_empty(), "{one:?}");
        let lines = text.split('\n').count();
        assert!((1..=lines).contains(&one.line), "{name}: {one:?}");
        let rendered = one.render(Style::Plain);
        let place = format!("{name}:{}:{}", one.line, one.column);
        assert!(rendered.contains(&place), "{place} is not in\n{rendered}");
        assert!(rendered.contains(&one.remedy), "{rendered}");
        assert!(!rendered.contains('\u{1b}'), "{rendered}");
        rendered
    };
    let rendered: Vec<_> = found.iter().map(explain).collect();
    rendered.join("\n\n") + "\n"
}
