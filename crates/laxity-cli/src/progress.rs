//! Progress while a scenario runs: a bar on a terminal, a line a run elsewhere.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use laxity_lab::runner::Progress;

/// Tells which run is under way, how many there are, and for how long.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    began: Instant,
    runs: usize,
    made: usize,
}

impl Reporter {
    /// On standard error.
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {msg}");
            match style {
                Ok(style) => bar.with_style(style.progress_chars("=> ")),
                Err(_) => bar,
            }
        });
        Self {
            bar,
            began: Instant::now(),
            runs: 0,
            made: 0,
        }
    }

    fn say(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_string()),
            None => {
                let seconds = self.began.elapsed().as_secs();
                eprintln!("{seconds:4} s  {}/{}  {what}", self.made, self.runs);
            }
        }
    }
}

impl Progress for Reporter {
    fn begin(&mut self, runs: usize) {
        self.runs = runs;
        if let Some(bar) = &self.bar {
            bar.set_length(runs as u64);
        }
    }

    fn prepare(&mut self, what: &str) {
        self.say(what);
        if let Some(bar) = &self.bar {
            bar.tick();
        }
    }

    fn run(&mut self, variant: &str, repeat: u32) {
        self.made += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        let again = if repeat == 0 {
            String::new()
        } else {
            format!(", repeat {}", repeat + 1)
        };
        self.say(&format!("{variant}{again}"));
    }

    fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
