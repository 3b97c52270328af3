//! On which machine, when, and beside what a calibration was made.

use std::fs;
use std::mem;
use std::time::{SystemTime, UNIX_EPOCH};

use laxity_model::{Instant, Span};

use super::Settings;
use crate::doctor::Machine as Facts;
use crate::os::clock;
use crate::os::fact::Fact;
use crate::os::idle::is_flagged;
use crate::os::proc;

/// Where and when it was measured. Texts are for people; what could not be read is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Circumstances {
    /// The processor's model.
    pub model: String,
    /// How many processors run.
    pub processors: u32,
    /// The hypervisor; empty on hardware.
    pub hypervisor: String,
    /// The kernel's release.
    pub kernel: String,
    /// Where the kernel may be preempted.
    pub preemption: String,
    /// The clock that the kernel keeps time with.
    pub clock_source: String,
    /// The frequency governor of the processor; empty where the kernel controls none, `unknown` where that cannot be read.
    pub governor: String,
    /// The kernel's number of the processor it was measured on.
    pub processor: usize,
    /// The date and time it began, in UTC.
    pub began: String,
    /// How long it took.
    pub took: Span,
    /// Threads that wanted to run when it began, averaged over a minute, in thousandths (the kernel's load average).
    pub load_thousandths: u32,
    /// What the hypervisor took from the processor meanwhile, as far as it tells; `None` if that cannot be read.
    pub steal: Option<Span>,
    /// Real-time threads of other processes that may run on the processor, when it began.
    pub strangers: u32,
}

impl Circumstances {
    /// What can be said of this machine now, by this processor of it, before anything is measured: nothing yet of how long that took, of steal, nor of strangers.
    pub fn now(cpu: usize) -> Self {
        Self::of(Facts::probe(), cpu)
    }

    fn of(facts: Facts, cpu: usize) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let sources = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        Self {
            model: model(&cpuinfo),
            processors: facts.processors.online.map_or(0, |set| set.len() as u32),
            hypervisor: hypervisor(&cpuinfo, &fs::read_to_string(sources).unwrap_or_default()),
            kernel: facts.kernel.release,
            preemption: (facts.kernel.preemption).map_or(String::new(), |model| model.to_string()),
            clock_source: facts.kernel.clock_source.unwrap_or_default(),
            governor: governor(facts.processors.governors, cpu),
            processor: cpu,
            began: date(SystemTime::now()),
            load_thousandths: load(&fs::read_to_string("/proc/loadavg").unwrap_or_default()),
            ..Self::default()
        }
    }

    /// The machine in one line.
    pub fn description(&self) -> String {
        let plural = if self.processors == 1 { "" } else { "s" };
        let mut parts = vec![
            self.model.clone(),
            format!("{} processor{plural}", self.processors),
            self.hypervisor.clone(),
            format!("Linux {}", self.kernel),
        ];
        for (name, value) in [
            ("preemption", &self.preemption),
            ("clock source", &self.clock_source),
            ("governor", &self.governor),
        ] {
            if !value.is_empty() {
                parts.push(format!("{name} {value}"));
            }
        }
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }

    /// When and how, in one line.
    pub(super) fn provenance(&self, settings: &Settings) -> String {
        let quick = match settings.part {
            1 => String::new(),
            part => format!(", a {part}th of the samples"),
        };
        format!(
            "laxity {} calibrate on {}, processor {}, priority {}, {}.{:03} s{quick}",
            env!("CARGO_PKG_VERSION"),
            self.began,
            self.processor,
            settings.priority,
            self.took.as_nanos() / 1_000_000_000,
            self.took.as_nanos() / 1_000_000 % 1_000,
        )
    }
}

/// A calibration begins.
pub(super) struct Start {
    at: Instant,
    steal: Option<Span>,
    circumstances: Circumstances,
}

impl Start {
    pub(super) fn now(cpu: usize) -> Fact<Self> {
        let facts = Facts::probe();
        let threads = facts.threads.clone()?;
        let strangers = threads.iter().filter(|thread| thread.is_stranger_on(cpu));
        let circumstances = Circumstances {
            strangers: strangers.count() as u32,
            ..Circumstances::of(facts, cpu)
        };
        Ok(Self {
            at: clock::now(),
            steal: proc::steal(&[cpu]),
            circumstances,
        })
    }

    pub(super) fn end(self) -> Circumstances {
        let mut circumstances = self.circumstances;
        let stolen = proc::steal(&[circumstances.processor]);
        circumstances.took = clock::now().saturating_since(self.at);
        let steal = stolen.zip(self.steal);
        circumstances.steal = steal.map(|(after, before)| after.saturating_sub(before));
        circumstances
    }
}

/// That of a processor, as [`Circumstances::governor`] has it.
fn governor(governors: Fact<Vec<(usize, String)>>, cpu: usize) -> String {
    let Ok(governors) = governors else {
        return "unknown".to_owned();
    };
    let own = governors.into_iter().find(|(number, _)| *number == cpu);
    own.map_or(String::new(), |(_, name)| name)
}

/// The model's name, as x86 has it; of other architectures their own lines.
fn model(cpuinfo: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let names = ["model name", "Model", "Hardware", "cpu model"];
    names.into_iter().find_map(field).unwrap_or_default()
}

/// The hypervisor, by what it offers as a clock; a machine without one says nothing.
fn hypervisor(cpuinfo: &str, clock_sources: &str) -> String {
    let by_clock = [("kvm", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let mut by_clock = by_clock.into_iter();
    let named = by_clock.find(|(part, _)| clock_sources.contains(part));
    match named {
        Some((_, name)) => name.to_owned(),
        None if is_flagged(cpuinfo) => "a hypervisor".to_owned(),
        None => String::new(),
    }
}

/// The first number of `/proc/loadavg`, which has two decimals.
fn load(text: &str) -> u32 {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    let (whole, hundredths) = first.split_once('.').unwrap_or((first, "0"));
    let number = |digits: &str| digits.parse::<u32>().unwrap_or(0);
    number(whole)
        .saturating_mul(1_000)
        .saturating_add(number(hundredths) * 10)
}

/// `2026-03-01 14:05 UTC`.
fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs().cast_signed());
    // SAFETY: all-zero bytes are a valid date.
    let mut date: libc::tm = unsafe { mem::zeroed() };
    // SAFETY: the first is only read and the second only written; both outlive the call.
    unsafe { libc::gmtime_r(&raw const seconds, &raw mut date) };
    let (year, month, day) = (date.tm_year + 1_900, date.tm_mon + 1, date.tm_mday);
    let (hour, minute) = (date.tm_hour, date.tm_min);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fact::Unknown;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(at(1_772_323_199), "2026-02-28 23:59 UTC");
        assert_eq!(at(1_772_323_200), "2026-03-01 00:00 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn the_kernels_texts_are_read() {
        assert_eq!(load("0.07 15.20 3.00 2/345 6789\n"), 70);
        assert_eq!(load("15.20 1.00 0.00 1/2 3"), 15_200);
        assert_eq!(load(""), 0);
        let cpuinfo = "processor\t: 0\nmodel name\t: Some Model 3\nflags\t: fpu hypervisor sse\n";
        assert_eq!(model(cpuinfo), "Some Model 3");
        assert_eq!(hypervisor(cpuinfo, "tsc kvm-clock"), "KVM");
        assert_eq!(hypervisor(cpuinfo, "tsc hpet"), "a hypervisor");
        assert_eq!(hypervisor("flags : fpu", "tsc hpet"), "");
    }

    #[test]
    fn a_governor_that_cannot_be_read_is_not_none() {
        let of_one = || vec![(1, "performance".to_owned())];
        assert_eq!(governor(Ok(of_one()), 1), "performance");
        assert_eq!(governor(Ok(of_one()), 0), "");
        assert_eq!(governor(Err(Unknown("denied".to_owned())), 0), "unknown");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let circumstances = Circumstances {
            model: "Some Model".to_owned(),
            processors: 1,
            kernel: "6.1".to_owned(),
            ..Circumstances::default()
        };
        assert_eq!(
            circumstances.description(),
            "Some Model, 1 processor, Linux 6.1"
        );
    }
}
