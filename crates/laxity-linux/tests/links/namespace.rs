//! Network namespaces of a thread's own, and interfaces in them. Nothing of them is left when the thread has ended and all that it opened is closed.
#![allow(unsafe_code, reason = "a thread enters a namespace by a system call")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs this in a thread with a network namespace of its own; `None` where that cannot be had.
pub(crate) fn in_own<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: it takes a number, and concerns this thread alone.
            let entered = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
            // The kernel would send on interfaces by itself.
            let is_quiet = ["all", "default"].iter().all(|which| {
                let file = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
                !std::path::Path::new(&file).exists() || std::fs::write(file, "1").is_ok()
            });
            let is_there = Command::new("ip").arg("-V").stdout(Stdio::null()).status();
            (entered && is_quiet && is_there.is_ok_and(|status| status.success())).then(run)
        });
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Whether this command was carried out, in this thread's namespace.
pub(crate) fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Two interfaces that are each other's other end, up.
pub(crate) fn pair(near: &str, far: &str) {
    assert!(ip(&format!("link add {near} type veth peer name {far}")));
    up(near, true);
    up(far, true);
    for name in [near, far] {
        is_up(name);
    }
}

/// Sets an interface up or down.
pub(crate) fn up(name: &str, is_up: bool) {
    let to = if is_up { "up" } else { "down" };
    assert!(ip(&format!("link set {name} {to}")));
}

/// What `ip` shows of an interface.
pub(crate) fn shown(name: &str) -> String {
    let shown = Command::new("ip")
        .args(["-d", "link", "show", name])
        .output();
    String::from_utf8_lossy(&shown.expect("`ip` runs").stdout).into_owned()
}

/// Waits until the kernel says that an interface works: it takes up to a second over that.
pub(crate) fn is_up(name: &str) {
    let begin = Instant::now();
    loop {
        let shown = shown(name);
        let works = ["state UP", "state UNKNOWN"]
            .iter()
            .any(|state| shown.contains(state));
        if works && shown.contains("LOWER_UP") {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "{shown}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
