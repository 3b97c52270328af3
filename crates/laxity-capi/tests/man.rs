//! Every function of the headers has a manual page, which says what its comment says, and which is no other's.
#![allow(dead_code, reason = "of the common part")]

#[path = "../build.rs"]
mod build;
mod common;

use std::collections::BTreeSet;
use std::process::Command;

use laxity_linux::doctor::rights;

use common::{install, package, succeed, text};

/// The functions of a header, each with its declaration.
fn functions(header: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(package(&format!("include/{header}.h"))).unwrap();
    let declared = text.lines().filter(|line| {
        line.starts_with(|first: char| first.is_ascii_lowercase())
            && line.ends_with(");")
            && !line.starts_with("typedef")
    });
    let named = declared.map(|line| {
        let before = line.split('(').next().unwrap();
        let name = before.rsplit([' ', '*']).next().unwrap();
        (name.to_owned(), line.to_owned())
    });
    named.collect()
}

/// Words that stand in the comment of a function, and so on its page.
const SAID: [(&str, &str); 5] = [
    (
        "rts_creat",
        ".TP\n.B EBUSY\nit, or another one, would be late; the message names who",
    ),
    ("rts_yield", "rts_smstr *smstr;"),
    ("rts_release", "RTS_DESCRIPTOR: "),
    (
        "laxity_reserve",
        "numbers that are no reservation, or a processor",
    ),
    ("laxity_now_ns", "in nanoseconds of CLOCK_MONOTONIC.\n"),
];

/// Those that functions return, without their first letter.
const ERRORS: [&str; 23] = [
    "2BIG",
    "ALREADY",
    "AGAIN",
    "BADF",
    "BUSY",
    "CANCELED",
    "CONNREFUSED",
    "DEADLK",
    "FAULT",
    "INVAL",
    "IO",
    "MFILE",
    "NFILE",
    "NODATA",
    "NOENT",
    "NOMEM",
    "NOSYS",
    "NOTRECOVERABLE",
    "OPNOTSUPP",
    "PERM",
    "RANGE",
    "SRCH",
    "TIMEDOUT",
];

#[test]
fn every_function_has_a_page_of_its_comment() {
    let prefix = tempfile::tempdir().unwrap();
    install(prefix.path());
    let pages = prefix.path().join("share/man/man3");
    let mut expected = BTreeSet::new();
    for header in ["laxity", "rts"] {
        let functions = functions(header);
        assert!(functions.len() >= 7, "{functions:?}");
        for (name, declaration) in &functions {
            let page = std::fs::read_to_string(pages.join(format!("{name}.3"))).unwrap();
            let synopsis = format!("#include <{header}.h>\n\n{declaration}\n.fi\n");
            assert!(page.contains(&synopsis), "{page}");
            let (_, description) = page.split_once(".SH DESCRIPTION\n").unwrap();
            assert!(
                description.starts_with(|first: char| first.is_uppercase()),
                "{page}"
            );
            let is_told = |error: &str| page.contains(&format!("\n.B {error}\n"));
            let returns_errors = page.contains(".SH RETURN VALUE\n");
            assert_eq!(is_told("ENOTRECOVERABLE"), returns_errors, "{page}");
            let is_by_pointer = returns_errors && declaration.contains('*');
            assert!(is_told("EFAULT") || !is_by_pointer, "{page}");
            // What is read and begins with its size.
            let is_sized = ["request", "options", "coordinator", "attributes", "budget"]
                .into_iter()
                .any(|kind| declaration.contains(&format!("_{kind} *")));
            assert_eq!(is_told("E2BIG"), is_sized, "{page}");
            // Each of these has a number in errno.h.
            for error in page.lines().filter_map(|line| line.strip_prefix(".B E")) {
                assert!(ERRORS.contains(&error), "E{error}: {page}");
            }
            let words = SAID.iter().filter(|(of, _)| of == name);
            for (_, words) in words {
                assert!(page.contains(words), "{page}");
            }
        }
        let names = functions.into_iter().map(|(name, _)| name);
        expected.extend(names.chain([header.to_owned()]).map(|name| name + ".3"));
    }
    let entries = std::fs::read_dir(&pages).unwrap();
    let found = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<BTreeSet<String>>(), expected);
    for page in expected {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-ww", "-Tutf8"]).arg(pages.join(page));
        let Ok(printed) = groff.output() else {
            return rights::skip("groff is not here");
        };
        assert!(
            printed.status.success() && printed.stderr.is_empty(),
            "{}",
            text(&printed)
        );
    }
}

/// By what its manifest says they are taken from where the build has left them, below `share`.
#[test]
fn cargo_c_installs_the_same_pages() {
    let [prefix, built] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    install(prefix.path());
    build::write_pages(built.path());
    let manifest = std::fs::read_to_string(package("Cargo.toml")).unwrap();
    let told = "generated = [{ from = \"man3/*.3\", to = \"man/man3\" }]";
    assert!(manifest.contains(told));
    let pages = |directory| {
        let entries = std::fs::read_dir(directory).unwrap();
        let text = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.unwrap();
            (
                entry.file_name(),
                std::fs::read_to_string(entry.path()).unwrap(),
            )
        };
        entries.map(text).collect::<BTreeSet<_>>()
    };
    assert_eq!(
        pages(built.path().join("man3")),
        pages(prefix.path().join("share/man/man3"))
    );
}

#[test]
fn who_calls_it_wrongly_is_told_how() {
    let usage = Command::new(package("man.sh")).output().unwrap();
    assert_eq!(usage.status.code(), Some(64));
    assert!(text(&usage).contains("HEADER VERSION DIRECTORY"));
    assert_eq!(
        succeed(Command::new("sh").arg("-n").arg(package("man.sh"))),
        ""
    );
}
