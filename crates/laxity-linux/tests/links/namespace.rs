//! Network namespaces of a thread's own, interfaces in them, and packets for these. Nothing of them is left when the thread has ended and all that it opened is closed.
#![allow(unsafe_code, reason = "a thread enters a namespace by a system call")]

use std::net::SocketAddr;
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

/// How many have asked an interface for what is addressed to others, too.
pub(crate) fn promiscuity(name: &str) -> u32 {
    let shown = shown(name);
    let mut words = shown.split_whitespace();
    let count = words.find(|word| *word == "promiscuity");
    count
        .and_then(|_| words.next()?.parse().ok())
        .expect(&shown)
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
        assert!(begin.elapsed() < Duration::from_secs(20), "{shown}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A packet over IPv4 or IPv6 with what a datagram of UDP has behind that, as it stands on a wire; nobody looks at its checksums.
pub(crate) fn packet(from: &str, to: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
    let length = 8 + payload.len() as u16;
    let mut frame = vec![2; 12];
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + length).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend([from.ip().octets(), to.ip().octets()].concat());
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([from.ip().octets(), to.ip().octets()].concat());
        }
        _ => panic!("both are of one kind"),
    }
    for number in [from.port(), to.port(), length, 0] {
        frame.extend(number.to_be_bytes());
    }
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}
