//! How long a million events take to become a file, and how large it is.
//!
//! `cargo bench -p laxity-lab --bench trace`; with `-- --write DIRECTORY` the trace stays there, beside a JSON file of what an
//! independent reader must find in it (`tools/trace-check/check.sh`).

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use laxity_lab::evidence::{perfetto, write_whole};

#[path = "../src/evidence/trace/samples.rs"]
mod samples;

const EVENTS: usize = 1_000_000;
const ROUNDS: usize = 11;

/// Runs the work some times; the median time in milliseconds, and what the work gave.
fn median_ms<T>(mut work: impl FnMut() -> T) -> (f64, T) {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        // Dropped outside the measured time.
        drop(last.take());
        let start = Instant::now();
        last = Some(work());
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (times[ROUNDS / 2], last.expect("there was a round"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let traces = [samples::busy(EVENTS)];
    let show = |name: &str, ms: f64, bytes: usize| {
        println!("{name:22} {ms:8.1} ms {:8.1} MB", bytes as f64 / 1e6);
    };
    println!("{EVENTS} events, median of {ROUNDS}");
    let (ms, encoded) = median_ms(|| perfetto::encode(&traces));
    show("to Perfetto", ms, encoded.bytes.len());

    let mut arguments = std::env::args().skip_while(|a| a != "--write").skip(1);
    if let Some(directory) = arguments.next().map(PathBuf::from) {
        std::fs::create_dir_all(&directory)?;
        let [first] = traces;
        let mut second = samples::busy(EVENTS / 10);
        second.name = "a second run".into();
        let encoded = perfetto::encode(&[first, second]);
        write_whole(&directory.join("sample.pftrace"), &encoded.bytes)?;
        let contents = serde_json::to_vec_pretty(&encoded.contents)?;
        write_whole(&directory.join("sample.expect.json"), &contents)?;
    }
    Ok(())
}
