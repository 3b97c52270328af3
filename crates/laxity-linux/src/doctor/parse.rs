//! Readers of the text that `/proc`, `/sys` and cgroup files hold. Pure, and total: any text gives a value or `None`, never a panic.

use laxity_model::Span;

use super::machine::Preemption;
use crate::os::fact::{Fact, Unknown};

/// The value of `Name:` in `/proc/PID/status`, without the blanks around it.
pub fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        Some(value.trim())
    })
}

/// A `kB` value of `/proc/PID/status`, in bytes.
pub fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let kilobytes: u64 = status_field(status, name)?
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    kilobytes.checked_mul(1024)
}

/// How long a real-time thread of a process may run without blocking, in microseconds, by `/proc/PID/limits`; `Some(None)`: for as long as it likes.
pub fn real_time_limit(limits: &str) -> Option<Option<u64>> {
    let mut lines = limits.lines();
    let numbers = lines.find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    let mut words = numbers.split_ascii_whitespace();
    // Where one of both limits is missing it is not known which.
    match [words.next()?, words.next()?, words.next()?] {
        ["unlimited", _, "us"] => Some(None),
        [soft, _, "us"] => soft.parse().ok().map(Some),
        _ => None,
    }
}

/// A hexadecimal set of capabilities of `/proc/PID/status` (`CapEff` and its like).
pub fn status_capabilities(status: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(status_field(status, name)?, 16).ok()
}

/// Whether `/proc/PID/uid_map` is that of the first user namespace: every user is itself.
pub fn is_initial_user_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Whether deadline budgets end by a timer, in the scheduler's `features`: `NO_HRTICK_DL` is no. Kernels before 5.13 have no `HRTICK_DL`:
/// there, `HRTICK` serves deadline threads too.
pub fn hrtick(features: &str) -> Option<bool> {
    let is_on = |name: &str| {
        let mut words = features.split_whitespace();
        words.find_map(|word| match word.strip_prefix("NO_") {
            Some(off) => (off == name).then_some(false),
            None => (word == name).then_some(true),
        })
    };
    is_on("HRTICK_DL").or_else(|| is_on("HRTICK"))
}

/// The word in parentheses or brackets of a file that lists choices: `none voluntary (full)`.
pub fn chosen(choices: &str) -> Option<&str> {
    choices.split_whitespace().find_map(|word| {
        word.strip_prefix(['(', '['])
            .and_then(|word| word.strip_suffix([')', ']']))
    })
}

/// Threads may have their time slice extended by no more than this (`rseq/slice_ext_nsec`).
pub(super) const LONGEST_EXTENSION: Span = Span::from_micros(50);

/// How long any thread may put off the end of its turn, `None` where none can: from what the kernel answers when it is asked, its command line, and the length that it is set to, which few may read: then it is taken for the
/// longest that can be set.
pub fn slice_extension(
    answer: Result<(), i32>,
    command_line: Option<&str>,
    length_ns: Option<u64>,
) -> Fact<Option<Span>> {
    /// The kernel is built without (`ENOTSUPP`, which is none of user space).
    const NOT_SUPPORTED: i32 = 524;
    match answer {
        Err(libc::EINVAL | libc::EOPNOTSUPP | NOT_SUPPORTED) => return Ok(None),
        Err(number) => {
            let why = std::io::Error::from_raw_os_error(number);
            return Err(Unknown(format!("prctl(PR_RSEQ_SLICE_EXTENSION): {why}")));
        }
        Ok(()) => {}
    }
    let chosen = command_line.and_then(|line| boot_option(line, "rseq_slice_ext"));
    if chosen.is_some_and(|chosen| ["0", "n", "no", "off"].contains(&chosen)) {
        return Ok(None);
    }
    Ok(Some(length_ns.map_or(LONGEST_EXTENSION, Span::from_nanos)))
}

/// The value of the last `name=value` on the kernel's command line.
pub fn boot_option<'a>(command_line: &'a str, name: &str) -> Option<&'a str> {
    command_line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .next_back()
}

/// An option of the kernel's build configuration, named without `CONFIG_`: its value, or `n` where it says "is not set".
pub fn build_option<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| {
        if let Some(rest) = line.strip_prefix("# CONFIG_") {
            return (rest.strip_suffix(" is not set") == Some(name)).then_some("n");
        }
        line.strip_prefix("CONFIG_")?
            .strip_prefix(name)?
            .strip_prefix('=')
    })
}

/// The preemption model, from what of these can be read: the kernel's version line (`uname -v`), the scheduler's `preempt` file,
/// the command line and the build configuration.
pub fn preemption(
    version: &str,
    preempt_file: Option<&str>,
    command_line: Option<&str>,
    config: Option<&str>,
) -> Option<Preemption> {
    let has = |word: &str| version.split_whitespace().any(|w| w == word);
    if has("PREEMPT_RT") {
        return Some(Preemption::RealTime);
    }
    if has("PREEMPT_DYNAMIC") {
        let chosen_at_boot = command_line.and_then(|line| boot_option(line, "preempt"));
        return preempt_file
            .and_then(chosen)
            .or(chosen_at_boot)
            .and_then(preemption_named)
            .or_else(|| config.and_then(built_preemption));
    }
    if has("PREEMPT") {
        return Some(Preemption::Full);
    }
    // A kernel that is not preemptible does not say whether it has voluntary preemption points.
    config.and_then(built_preemption)
}

/// One that can be chosen at the start.
fn preemption_named(name: &str) -> Option<Preemption> {
    let mut all = Preemption::ALL.into_iter();
    let named = all.find(|(_, own, _)| *own == name)?.0;
    (named != Preemption::RealTime).then_some(named)
}

fn built_preemption(config: &str) -> Option<Preemption> {
    let mut all = Preemption::ALL.into_iter();
    let is_built = |option| build_option(config, option) == Some("y");
    all.find_map(|(model, _, option)| is_built(option).then_some(model))
}

/// The numbered lines of `/proc/interrupts`: those of devices.
pub fn interrupts(interrupts: &str) -> Vec<u32> {
    let names = interrupts.lines().filter_map(|line| line.split_once(':'));
    names
        .filter_map(|(name, _)| name.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn status_fields() {
        let status = "Name:\tcat\nVmSize:\t    3060 kB\nCapEff:\t000001fffeffffff\nSeccomp:\t0\n";
        assert_eq!(status_bytes(status, "VmSize"), Some(3060 * 1024));
        assert_eq!(status_capabilities(status, "CapEff"), Some(0x1ff_feff_ffff));
        assert_eq!(status_field(status, "Seccomp"), Some("0"));
        assert_eq!(status_field(status, "Sec"), None);
    }

    #[test]
    fn limits_of_real_time() {
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \nMax realtime priority     0                    0                    \nMax realtime timeout      {soft:<20} unlimited            us        \n"
            )
        };
        assert_eq!(real_time_limit(&limits("200000")), Some(Some(200_000)));
        assert_eq!(real_time_limit(&limits("unlimited")), Some(None));
        for silent in [limits("much"), limits(""), String::new()] {
            assert_eq!(real_time_limit(&silent), None, "{silent}");
        }
        assert_eq!(real_time_limit("Max realtime priority 0 0\n"), None);
    }

    #[test]
    fn user_namespaces() {
        assert!(is_initial_user_namespace(
            "         0          0 4294967295\n"
        ));
        assert!(!is_initial_user_namespace(
            "         0       1000          1\n"
        ));
    }

    #[test]
    fn hrtick_of_old_and_new_kernels() {
        assert_eq!(hrtick("PLACE_LAG NO_HRTICK HRTICK_DL"), Some(true));
        assert_eq!(hrtick("HRTICK NO_HRTICK_DL"), Some(false));
        assert_eq!(hrtick("NO_HRTICK"), Some(false));
        assert_eq!(hrtick("HRTICKS"), None);
    }

    #[test]
    fn who_may_extend_a_slice_and_by_how_much() {
        let of = |answer, line, length| slice_extension(answer, line, length);
        let micros = |micros| Ok(Some(Span::from_micros(micros)));
        for refused in [libc::EINVAL, libc::EOPNOTSUPP, 524] {
            assert_eq!(of(Err(refused), None, Some(5_000)), Ok(None));
        }
        assert_eq!(of(Ok(()), Some("quiet"), Some(5_000)), micros(5));
        assert_eq!(of(Ok(()), None, None), micros(50));
        assert_eq!(
            of(Ok(()), Some("rseq_slice_ext=off"), Some(5_000)),
            Ok(None)
        );
        assert_eq!(of(Ok(()), Some("rseq_slice_ext=on"), None), micros(50));
        let filtered = of(Err(libc::EPERM), None, None).unwrap_err();
        assert!(filtered.0.contains("SLICE_EXTENSION"), "{filtered}");
    }

    #[test]
    fn options() {
        assert_eq!(boot_option("a=1 quiet a=2", "a"), Some("2"));
        assert_eq!(boot_option("ab=1", "a"), None);
        let config = "CONFIG_HZ_250=y\n# CONFIG_PREEMPT is not set\nCONFIG_HZ=250\n";
        assert_eq!(build_option(config, "HZ"), Some("250"));
        assert_eq!(build_option(config, "PREEMPT"), Some("n"));
        assert_eq!(build_option(config, "NUMA"), None);
    }

    #[test]
    fn preemption_takes_the_surest_source_first() {
        let dynamic = "#1 SMP PREEMPT_DYNAMIC Mon";
        let config = "CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT is not set\n";
        let model = |file, line, config| preemption(dynamic, file, line, config);
        assert_eq!(model(None, None, None), None);
        assert_eq!(model(None, None, Some(config)), Some(Preemption::None));
        assert_eq!(
            model(None, Some("preempt=voluntary"), Some(config)),
            Some(Preemption::Voluntary)
        );
        assert_eq!(
            model(
                Some("none voluntary (full) lazy"),
                Some("preempt=none"),
                None
            ),
            Some(Preemption::Full)
        );
        assert_eq!(
            preemption("#1 SMP PREEMPT_RT Mon", None, None, None),
            Some(Preemption::RealTime)
        );
    }

    #[test]
    fn interrupts_of_devices_have_numbers() {
        let text = "           CPU0       CPU1\n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\nNMI: 0 0 Non-maskable\n";
        assert_eq!(interrupts(text), [24]);
    }

    proptest! {
        /// Every reader is given anything at all: it must return.
        #[test]
        fn no_text_panics(text in "(?s).{0,300}", word in "[A-Za-z0-9 ,:()=\\\\\n-]{0,200}") {
            for text in [&text, &word] {
                let _ = status_bytes(text, "VmSize");
                let _ = status_capabilities(text, "CapEff");
                let _ = is_initial_user_namespace(text);
                let _ = hrtick(text);
                let _ = real_time_limit(text);
                let _ = chosen(text);
                let _ = boot_option(text, "a");
                let _ = build_option(text, "A");
                let _ = preemption(text, Some(text), Some(text), Some(text));
                let _ = interrupts(text);
            }
        }
    }
}
