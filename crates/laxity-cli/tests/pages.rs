//! The pages as a browser draws them, in a narrow window and a wide one: nothing lies on something else, nothing is cut off, no number is broken, every
//! colour has a name. Skipped where there is no browser that can do without a screen.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Bench, assert_code, shipped};
use laxity::doctor::rights::skip;
use laxity_lab::{machine_file, report};

/// What is looked at in a page once it is laid out: the script leaves what it found as the only text of the page.
const LOOK: &str = include_str!("common/look.js");
/// What was measured of a machine.
const MACHINE: &str = include_str!("../../../docs/results/epyc-2-processors/machine.toml");
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const WIDTHS: [u32; 2] = [800, 1400];
/// One of everything that has columns of its own, with a long name.
const SEVERAL: &str = r#"
devices = { modem = { kind = "soft-modem" }, music-of-the-next-room = { kind = "audio" }, line = { kind = "dsl" }, radio = { kind = "radio" } }
executors = { handlers = { placement = "thread 26", policy = "edf" } }
contracts = { mine = { limits = [{ quantity = "jobs_done", in_every = "100ms", at_least = 4 }] } }
[tasks]
control-of-the-robots-left-arm = { kind = "periodic", period = "5ms", service = "200us" }
decoder = { kind = "periodic", period = "20ms", service = "1ms", on = "handlers" }
spinners = { kind = "spinner", count = 2 }
[defaults]
contracts = ["mine"]
[variants.deferred]
placement = { modem = "deferred", music-of-the-next-room = "deferred", line = "deferred", radio = "deferred" }
expect = "any"
lost = "any"
[variants.by-a-thread-of-high-priority]
placement = { modem = "thread 24", music-of-the-next-room = "thread 24", line = "thread 25", radio = "thread 26" }
expect = "any"
lost = "any"
"#;

/// The first browser that is there.
fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    })
}

/// What is wrong with a page in a window of this width.
fn wrong(browser: &str, page: &Path, width: u32) -> Vec<String> {
    let bench = Bench::new();
    let text = fs::read_to_string(page).expect("the page");
    let looked_at = text.replace("</body>", &format!("<script>{LOOK}</script></body>"));
    assert_ne!(text, looked_at, "a page has an end");
    let path = bench.write("page.html", &looked_at);
    let mut command = Command::new(browser);
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
    ]);
    command.arg(format!(
        "--user-data-dir={}",
        bench.path("profile").display()
    ));
    command.arg(format!("--window-size={width},4000"));
    command.arg(format!("file://{}", path.display()));
    let output = command.output().expect("the browser runs");
    let shown = String::from_utf8(output.stdout).expect("text");
    let found = shown
        .split_once("[[")
        .and_then(|(_, found)| found.split_once("]]"));
    let (found, _) = found.unwrap_or_else(|| panic!("nothing was found: {shown:.2000}"));
    let (seen, found) = found.split_once('\n').expect("how much was looked at");
    let seen: Vec<u32> = seen
        .split(' ')
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert!(
        seen[0].abs_diff(width) < 40,
        "a window as wide as asked for: {seen:?}"
    );
    let written = fs::read_to_string(path).expect("the page");
    let drawings = written.matches("<svg class=\"chart\"").count();
    assert!(
        seen[1] as usize == drawings && seen[2] > 0,
        "{drawings} drawings and some cells were looked at: {seen:?}"
    );
    found
        .lines()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
        .collect()
}

fn assert_right(browser: &str, page: &Path) {
    for width in WIDTHS {
        let wrong = wrong(browser, page, width);
        assert_eq!(wrong, [""; 0], "{} at {width}", page.display());
    }
}

fn made(bench: &Bench, arguments: &[&str]) -> std::path::PathBuf {
    bench.write("several.toml", SEVERAL);
    bench.write("machine.toml", MACHINE);
    let output = bench.run(&[arguments, &["--html=page.html"]].concat());
    assert_code(&output, 0);
    bench.path("page.html")
}

#[test]
fn the_pages_of_runs_and_of_studies_are_drawn_as_they_are_meant() {
    let Some(browser) = browser() else {
        return skip("there is no browser here");
    };
    let [modem, audio, turns] = ["soft-modem.toml", "audio.toml", "turns.toml"].map(shipped);
    let pages: [&[&str]; 9] = [
        &["run", "--on=twin", &modem],
        &["run", "--on=twin", &audio],
        &["run", "--on=twin", &turns],
        &["run", "--on=twin", "several.toml"],
        &[
            "lab",
            "modem",
            "figure-1",
            "figure-10",
            "figure-11",
            "figure-14",
            "figure-16",
            "--on=twin",
        ],
        &["lab", "acceptance", "region-at-0.85", "quoted"],
        &["lab", "adaptive", "admission", "--on=twin"],
        &["lab", "fault", "--on=twin"],
        &[
            "lab",
            "prediction",
            "--on=twin",
            "--repeats=1",
            "--machine=machine.toml",
        ],
    ];
    for arguments in pages {
        let bench = Bench::new();
        assert_right(browser, &made(&bench, arguments));
    }
}

#[test]
fn the_page_of_a_calibration_is_drawn_as_it_is_meant() {
    let Some(browser) = browser() else {
        return skip("there is no browser here");
    };
    let found = machine_file::parse(MACHINE, "machine.toml").expect("the file is right");
    let page = report::page::render(&report::calibration::report(&found)).expect("a page");
    let bench = Bench::new();
    assert_right(browser, &bench.write("page.html", &page));
}

/// The script sees what it looks for: each of these is wrong in one way.
#[test]
fn a_page_with_a_fault_is_not_passed() {
    let Some(browser) = browser() else {
        return skip("there is no browser here");
    };
    let right = r#"<svg class="chart" viewBox="0 0 300 100"><g class="s0"><path class="bars" d="M0 0h9v9z"/></g><text x="20" y="9">it</text><path class="grid" d="M0 50h300"/><text x="9" y="90">0</text><text x="99" y="90">1</text><g class="s0"><path class="bars" d="M9 50h9v9z"/></g></svg><div class="scroll"><table><tbody><tr><td>a</td><td>met</td></tr></tbody></table></div>"#;
    let faults: [(&str, &str, &str); 8] = [
        (r#"x="99" y="90""#, r#"x="12" y="90""#, "texts collide"),
        (
            r#"<g class="s0"><path class="bars" d="M9"#,
            r#"<g class="s1"><path class="bars" d="M9"#,
            "no name for the colour s1",
        ),
        (
            "<td>a</td>",
            r#"<td style="padding-right:3000px">a</td>"#,
            "cut off",
        ),
        (
            "<td>a</td>",
            r#"<td style="padding-right:3px">a</td>"#,
            "columns touch",
        ),
        (
            "<td>a</td>",
            r#"<td style="position:relative;left:9px">a</td>"#,
            "covered",
        ),
        (
            "<td>a</td>",
            r#"<td style="position:absolute;left:2000px">a</td>"#,
            "wider than its window",
        ),
        (
            "<td>a</td>",
            r#"<td><p style="width:3ch">122 ms</p></td>"#,
            "broken number",
        ),
        (
            "<td>met</td></tr>",
            r#"<td>1<i class="o M">measured</i></td></tr><tr><td>b</td><td>2<i class="o M">measured</i></td></tr>"#,
            "the same badge on all of a column",
        ),
    ];
    let style = "<style>.scroll{overflow-x:auto} table{border-collapse:collapse} td{padding:5px} svg{display:block;width:100%}</style>";
    let bench = Bench::new();
    let found = |body: &str| {
        let page = bench.write(
            "page.html",
            &format!("<!doctype html><html><head>{style}</head><body>{body}</body></html>"),
        );
        wrong(browser, &page, WIDTHS[0])
    };
    assert_eq!(found(right), [""; 0]);
    for (was, is, words) in faults {
        let body = right.replace(was, is);
        assert_ne!(body, right, "{words}");
        let found = found(&body);
        let is_told = found.iter().any(|line| line.contains(words));
        assert!(is_told, "{words}: {found:?}");
    }
}
