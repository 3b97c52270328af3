//! A bar on the terminal while a scenario runs.

use indicatif::{ProgressBar, ProgressStyle};
use laxity_lab::runner::Progress;

/// One line that tells which run is under way, how many there are, and for how long.
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar on standard error; nothing where that is no terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {msg}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }
}

impl Progress for Bar {
    fn begin(&mut self, runs: usize) {
        self.bar.set_length(runs as u64);
    }

    fn prepare(&mut self, what: &str) {
        self.bar.set_message(what.to_string());
        self.bar.tick();
    }

    fn run(&mut self, variant: &str, repeat: u32) {
        let again = if repeat == 0 { String::new() } else { format!(" ({})", repeat + 1) };
        self.bar.set_message(format!("{variant}{again}"));
        self.bar.inc(1);
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
