//! What is installed serves C and C++: found by pkg-config, compiled without a warning, linked both ways, and run.

use std::path::PathBuf;
use std::process::Command;

mod common;
#[path = "../../laxity/tests/gstreamer/mod.rs"]
mod gstreamer;

use laxity_linux::doctor::rights::{self, Right};

use common::{C11, CXX17, can_compile, compile, flags, install, package, shared, succeed, text};

#[test]
fn the_example_runs_in_c_and_in_cxx() {
    if !can_compile() {
        return;
    }
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let libraries = prefix.join("lib");
    let shared = shared(prefix);
    // The archive itself, and the libraries that it needs.
    let needed = flags(prefix, &["--libs", "--static"]);
    let needed = needed.into_iter().filter(|flag| flag != "-llaxity_capi");
    let archive = libraries.join("liblaxity_capi.a").display().to_string();
    let whole: Vec<String> = std::iter::once(archive).chain(needed).collect();
    let programs = [(C11, &shared), (CXX17, &shared), (C11, &whole)];
    let programs =
        programs.map(|(language, link)| compile(prefix, "examples/reserve.c", language, link));
    for wrong in [&["bogus"][..], &["slots", "deadline"], &[""]] {
        let refused = Command::new(&programs[0]).args(wrong).output().unwrap();
        let said = text(&refused);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {said}");
        assert!(said.contains("reserve [slots|deadline]"), "{said}");
    }
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    for program in programs {
        let ends = [
            ("slots", "lost\n"),
            ("deadline", "lost; halts of the machine are not seen\n"),
        ];
        for (enforcer, ends) in ends {
            let said = succeed(Command::new(&program).arg(enforcer));
            assert!(said.contains("periods kept"), "{said}");
            let is_by_kernel = enforcer == "deadline";
            assert_eq!(
                said.contains("stretches of 3 periods"),
                is_by_kernel,
                "{said}"
            );
            // Beside slots the machine may hold the processor for long, and nobody knows that it was it.
            let in_doubt = !is_by_kernel && said.contains("nobody was found");
            assert!(said.starts_with("enforced: ") || in_doubt, "{said}");
            assert!(said.ends_with(ends), "{said}");
        }
    }
}

/// Has a program as C and as C++, where there is a compiler.
fn in_both_languages(source: &str, mut run: impl FnMut(Command)) {
    if !can_compile() {
        return;
    }
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let shared = shared(prefix);
    for language in [C11, CXX17] {
        run(Command::new(compile(prefix, source, language, &shared)));
    }
}

#[test]
fn upcalls_run_in_c_and_in_cxx() {
    in_both_languages("examples/upcalls.c", |mut program| {
        let said = succeed(program.arg("fair"));
        let lines: Vec<&str> = said.lines().collect();
        let [refused, video, audio] = lines[..] else {
            panic!("{said}");
        };
        assert!(
            refused.starts_with("refused: not admitted: video may be late"),
            "{said}"
        );
        assert_eq!(video, "video: 10 calls, 160 PDUs");
        assert!(audio.starts_with("audio: "), "{said}");
    });
}

#[test]
fn chains_groups_and_queues_work_in_c_and_in_cxx() {
    in_both_languages("tests/links.c", |mut program| {
        assert_eq!(succeed(&mut program), "");
    });
}

#[test]
fn a_message_that_was_kept_is_never_memory_that_was_freed() {
    in_both_languages("tests/messages.c", |mut program| {
        // What is freed is overwritten, so that nobody reads by chance what was there.
        assert_eq!(succeed(program.env("MALLOC_PERTURB_", "165")), "");
    });
}

/// A child has one processor of its own for its slots.
#[test]
fn a_reservation_is_not_that_of_a_child_which_its_thread_forks() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline, Right::Processors(2)])
    else {
        return;
    };
    in_both_languages("tests/forks.c", |program| {
        for holder in ["deadline", "slots", "confined"] {
            let mut again = Command::new(program.get_program());
            assert_eq!(succeed(again.arg(holder)), "", "{holder}");
        }
    });
}

#[test]
fn rtp_is_sent_and_received_by_c_and_by_cxx() {
    if !can_compile() || !gstreamer::is_here() {
        return;
    }
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let shared = shared(prefix);
    let [c, cxx] =
        [C11, CXX17].map(|language| compile(prefix, "examples/rtp.c", language, &shared));
    gstreamer::ours_to_ours(&cxx, &c);
    gstreamer::ours_and_a_stranger(&c, prefix);
}

#[test]
fn the_pkg_config_file_has_the_version() {
    if !can_compile() {
        return;
    }
    let prefix = tempfile::tempdir().unwrap();
    install(prefix.path());
    let version = flags(prefix.path(), &["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
}

const README: &str = include_str!("../README.md");

#[test]
fn what_is_installed_is_what_the_page_lists() {
    let prefix = tempfile::tempdir().unwrap();
    install(prefix.path());
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(prefix.path().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(path),
                false if path.extension().is_some_and(|end| end == "3") => {
                    found.push(directory.join("*.3").display().to_string());
                }
                false => found.push(path.display().to_string()),
            }
        }
    }
    found.sort();
    found.dedup();
    let rows = README.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert_eq!(found, listed);
    let usage = Command::new(package("install.sh")).output().unwrap();
    assert_eq!(usage.status.code(), Some(64), "{}", text(&usage));
    assert!(text(&usage).contains("BUILT PREFIX"), "{}", text(&usage));
}

/// Each makes a program that the loader can start, without a word to it where the library is.
#[test]
fn the_lines_that_are_told_make_the_example() {
    if !can_compile() {
        return;
    }
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let source = "crates/laxity-capi/examples/reserve.c";
    let told = README.lines().filter(|line| line.starts_with("cc "));
    let mut lines: Vec<String> = told.map(str::to_owned).collect();
    for (file, name) in [
        ("examples/reserve.c", "reserve.c"),
        ("include/laxity.h", "program.c"),
    ] {
        let text = std::fs::read_to_string(package(file)).unwrap();
        let mut own = text.lines().filter_map(|line| line.strip_prefix(" *     "));
        let own = own.find(|line| line.starts_with("cc ")).unwrap();
        let compile = own.split(" && ").next().unwrap();
        lines.push(
            compile.replace(name, source)
                + if name == "program.c" {
                    " -o reserve"
                } else {
                    ""
                },
        );
    }
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in lines {
        let program = prefix.join("reserve");
        let line = line.replace("-o reserve", &format!("-o {}", program.display()));
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(package("../.."));
        succeed(command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
        let mut loaded = Command::new(&program);
        loaded
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .env_remove("LD_LIBRARY_PATH");
        let loaded = succeed(&mut loaded);
        assert!(
            loaded.contains("libc.so") && !loaded.contains("not found"),
            "{line}: {loaded}"
        );
        std::fs::remove_file(&program).unwrap();
    }
}
