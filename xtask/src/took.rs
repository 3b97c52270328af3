//! What a step takes: time, and the processors' time of all that it starts, which tells of a busy machine what a quiet one would need.

use std::fmt;
use std::time::{Duration, Instant};

/// When something began.
pub(crate) struct Begun {
    at: Instant,
    used: Option<Duration>,
}

/// So long it took.
pub(crate) struct Took {
    pub(crate) time: Duration,
    /// Of all processors together; `None` where the system does not tell.
    used: Option<Duration>,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::now(),
            used: used(),
        }
    }

    pub(crate) fn took(&self) -> Took {
        let used = used().zip(self.used);
        Took {
            time: self.at.elapsed(),
            used: used.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// The processor time of this process and of those that it waited for.
fn used() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The first field after the name is the third of proc_pid_stat(5); these are the 14th to the 17th.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(4).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<u64, _>>().ok()?;
    // Whatever the kernel's own tick is, it counts hundredths of a second for others.
    Some(Duration::from_millis(ticks * 10))
}

/// The heads of what a `Took` is printed as.
pub(crate) const HEADS: &str = "     time  processors";

impl fmt::Display for Took {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>7} s", self.time.as_secs())?;
        match self.used {
            Some(used) => write!(out, "  {:>8} s", used.as_secs()),
            None => write!(out, "  {:>10}", "?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Begun;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn what_a_child_used_counts() {
        let begun = Begun::now();
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(
            Command::new("sh")
                .args(["-c", spin])
                .status()
                .unwrap()
                .success()
        );
        assert!(begun.took().used.unwrap() > Duration::ZERO);
    }
}
