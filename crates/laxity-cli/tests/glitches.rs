//! A control loop of 250 Hz beside sixteen spinners on its processor: late without a reservation, in time with one. `LAXITY_GLITCH_SECONDS` says how
//! long each run takes; without it, five seconds.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use common::{Bench, json};
use laxity_linux::doctor::rights::{self, Right};

/// Children that are killed with this.
struct Spinners(Vec<Child>);

/// So many that a fair share, a seventeenth of the processor, is less than the eighth that the loop needs: without a reservation it is late,
/// however soon the kernel wakes who sleeps. Beside four, a fifth is enough on some machines.
const SPINNERS: usize = 16;

impl Spinners {
    fn on(processor: &str) -> Self {
        let spinner = |_| {
            let mut command = Command::new("taskset");
            command.args(["-c", processor, "sh", "-c", "while :; do :; done"]);
            command.spawn().unwrap()
        };
        Self((0..SPINNERS).map(spinner).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // They end by this alone.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How many rounds were late.
fn late(output: &Output) -> u64 {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    out.trim().parse().unwrap_or_else(|_| panic!("{out}{err}"))
}

/// The loop, compiled here; `None` where there is no compiler.
fn compiled(bench: &Bench) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/glitches/loop.c");
    let program = bench.path("loop");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"])
        .arg(source);
    let output = cc.arg("-o").arg(&program).output().ok()?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(program)
}

#[test]
fn a_loop_of_250_hz_is_late_beside_spinners_and_in_time_with_a_reservation() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    let Some(program) = compiled(&bench) else {
        return rights::lacks("cc is not here");
    };
    let seconds = std::env::var("LAXITY_GLITCH_SECONDS").unwrap_or_else(|_| "5".to_owned());
    let _spinners = Spinners::on("0");
    let mut without = Command::new("taskset");
    let without = without.args(["-c", "0"]).arg(&program).arg(&seconds);
    let without = late(&without.output().unwrap());
    let mut with = bench.command();
    with.args([
        "exec",
        "--reserve",
        "1ms/4ms",
        "--processor",
        "0",
        "--json=r.json",
        "--",
    ]);
    let output = with.arg(&program).arg(&seconds).output().unwrap();
    let with = late(&output);
    let received = json(&bench, "r.json");
    let figure = |name: &str| received["received"][name].as_u64().unwrap();
    // A halt that ends one period and begins the next makes two rounds late.
    let disturbed = 2 * figure("periods_disturbed");
    eprintln!(
        "{without} late without, {with} with: {}",
        text(&output.stderr)
    );
    assert!(without > 0, "a seventeenth was enough for an eighth");
    assert!(
        with <= disturbed && with < without,
        "{with} late, {disturbed} disturbed: {}",
        text(&output.stderr)
    );
}
