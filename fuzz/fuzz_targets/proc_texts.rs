//! Texts of the kernel: no text makes a reader panic, and what a reader gives is what the text has.
#![no_main]

use laxity_linux::doctor::parse;
use laxity_linux::os::cgroup::{self, Hierarchy};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::{children, claim, proc, schedstat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // The first line names what is looked for.
    let (name, text) = text.split_once('\n').unwrap_or((text, text));
    if let Some(processors) = CpuSet::parse(text) {
        assert_eq!(
            CpuSet::parse(&processors.to_string()).as_ref(),
            Some(&processors)
        );
    }
    if let Some((major, minor)) = proc::kernel_version(text) {
        assert_eq!(
            proc::kernel_version(&format!("{major}.{minor}.7-x")),
            Some((major, minor))
        );
    }
    for value in [
        parse::status_field(text, name),
        Hierarchy::V1(name).group(text),
        Hierarchy::Unified.group(text),
        parse::chosen(text),
        parse::boot_option(text, name),
    ] {
        assert!(value.is_none_or(|value| text.contains(value)));
    }
    if let Some(value) = parse::build_option(text, name) {
        assert!(value == "n" || text.contains(value));
    }
    if let Some(bytes) = parse::status_bytes(text, name) {
        assert_eq!(bytes % 1024, 0);
    }
    if let Some(thread) = proc::thread_stat(text) {
        assert!(text.contains(&format!("({})", thread.name)));
    }
    if let Some(counted) = schedstat::counted(text) {
        assert!(text.split_ascii_whitespace().any(|number| number.parse() == Ok(counted.waited.as_nanos())));
    }
    if let Some(numbers) = children::numbers(text) {
        assert_eq!(numbers.len(), text.split_ascii_whitespace().count());
    }
    let lines = text.lines().count();
    assert!(cgroup::mounts(text).len() <= lines);
    assert!(claim::locked_by(text, (0, 0x15), 7).len() <= lines);
    assert!(proc::steal_ticks(text).len() <= lines);
    assert!(parse::interrupts(text).len() <= lines);
    let _ = parse::status_capabilities(text, name);
    let _ = parse::is_initial_user_namespace(text);
    let _ = parse::hrtick(text);
    let _ = parse::preemption(name, Some(text), Some(text), Some(text));
});
