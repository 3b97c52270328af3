//! Progress on standard error: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use laxity_lab::plain;
use laxity_lab::runner::Progress;

use crate::files;

/// Nobody needs to be told how far something is that takes less than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells what is under way, how much there is, and for how long.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    is_terminal: bool,
    /// Nothing is told before so much time is over, and no line sooner after another.
    patience: Duration,
    began: Instant,
    last_line: Option<Instant>,
    runs: usize,
    made: usize,
}

impl Reporter {
    /// Tells at once, and every step: for what takes real time. One that is to be quiet never loses its patience.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            bar: None,
            is_terminal: std::io::stderr().is_terminal(),
            patience: if quiet { Duration::MAX } else { Duration::ZERO },
            began: Instant::now(),
            last_line: None,
            runs: 0,
            made: 0,
        }
    }

    /// Tells nothing of what is soon over, and not every one of many steps.
    pub(crate) fn patient(quiet: bool) -> Self {
        let mut reporter = Self::new(quiet);
        reporter.patience = reporter.patience.max(PATIENCE);
        reporter
    }

    /// So many steps of all are made, and this comes next.
    pub(crate) fn tell(&mut self, made: usize, all: usize, what: &str) {
        (self.made, self.runs) = (made, all);
        self.say(what);
    }

    fn say(&mut self, what: &str) {
        let is_over = |since: Instant| since.elapsed() >= self.patience;
        if !is_over(self.began) {
            return;
        }
        if self.is_terminal {
            let bar = self.bar.get_or_insert_with(|| bar(self.began));
            bar.set_length(self.runs as u64);
            bar.set_position(self.made as u64);
            bar.set_message(plain(what).into_owned());
            bar.tick();
        } else if self.last_line.is_none_or(is_over) {
            self.last_line = Some(Instant::now());
            let seconds = self.began.elapsed().as_secs();
            files::say(&format!(
                "{seconds:4} s  {}/{}  {}",
                self.made,
                self.runs,
                plain(what)
            ));
        }
    }
}

fn bar(began: Instant) -> ProgressBar {
    let bar = ProgressBar::new(0).with_elapsed(began.elapsed());
    match ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {msg}") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

impl Progress for Reporter {
    /// What has several parts begins several times.
    fn begin(&mut self, runs: usize) {
        self.runs = self.made + runs;
    }

    fn prepare(&mut self, what: &str) {
        self.say(what);
    }

    fn run(&mut self, variant: &str, repeat: u32) {
        self.made += 1;
        let again = if repeat == 0 {
            String::new()
        } else {
            format!(", repeat {}", repeat + 1)
        };
        self.say(&format!("{variant}{again}"));
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
