//! The manual pages: one of each command, and `man` reads them.

mod common;

use std::process::Command;

use common::{Bench, assert_code, names};
use laxity::doctor::rights;

#[test]
fn each_command_has_a_page_that_man_reads() {
    let bench = Bench::new();
    assert_code(&bench.run(&["man", "pages"]), 0);
    let pages = bench.path("pages");
    let all = names(&pages);
    for name in [
        "laxity.1",
        "laxity-exec.1",
        "laxity-net-show.1",
        "laxity-upcalls-list.1",
    ] {
        assert!(all.iter().any(|page| page == name), "{name} of {all:?}");
    }
    assert!(!all.iter().any(|page| page.contains("peer")), "{all:?}");
    for name in &all {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-ww", "-Tutf8"]).arg(pages.join(name));
        let Ok(printed) = groff.output() else {
            return rights::skip("groff is not here");
        };
        let complaints = String::from_utf8_lossy(&printed.stderr);
        // Lines that are too long for a terminal are shown as they are.
        let wrong = complaints
            .lines()
            .find(|line| !line.contains("cannot adjust line"));
        assert_eq!(wrong, None, "{name}");
    }
    let read = |name| std::fs::read_to_string(pages.join(name)).expect("it was written");
    for (name, words) in [
        (
            "laxity-net-capture.1",
            &[
                "[\\-\\-for <SPAN>]",
                "[\\-\\-count <N>]",
                " \\-\\-write <FILE> ",
            ][..],
        ),
        (
            "laxity-net-capture.1",
            &["[\\-\\-quiet]", " <INTERFACE> [FILTER]...\n"],
        ),
        ("laxity-net-show.1", &["[\\-\\-json[=<FILE>]]"]),
        ("laxity-exec.1", &["[\\-\\- <CMD>...]\n"]),
        ("laxity-net.1", &[" <COMMAND>\n"]),
        ("laxity-lab.1", &[" [COMMAND]\n"]),
    ] {
        let page = read(name);
        let synopsis = page.split_once(".SH SYNOPSIS").expect("a synopsis").1;
        let synopsis = synopsis.split(".SH").next().unwrap_or_default();
        assert!(
            words.iter().all(|word| synopsis.contains(word)),
            "{synopsis}"
        );
    }
    let page = read("laxity-net.1");
    assert!(
        page.contains("tcpdump \\-r \\-"),
        "examples are as in the help: {page}"
    );
}
