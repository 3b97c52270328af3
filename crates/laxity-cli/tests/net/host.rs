//! Whether a host stays on the network while an interface of its is looked at, and what else of that interface is changed.

use std::process::{Child, Command, Stdio};

use laxity::doctor::rights::skip;

use crate::common::machine::threads_of;
use crate::common::{Bench, assert_code, assert_says, eventually, said};
use crate::namespace::{ip, pair, promiscuity};
use crate::{in_namespace, interrupted, written_far_apart};

/// Who holds the namespace of another host, until it is let go of.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether the other end of an interface, in a namespace of its own, hears this one's kernel.
fn is_answered(holder: &Other) -> bool {
    let target = holder.0.id().to_string();
    let mut command = Command::new("nsenter");
    command.args([
        "-t", &target, "-n", "ping", "-c", "1", "-W", "2", "10.9.0.1",
    ]);
    let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    ended.is_ok_and(|status| status.success())
}

/// The far end of a pair is another host's, with an address; it is so as long as this process lives.
fn another_host() -> Option<Other> {
    let mut command = Command::new("unshare");
    command.args(["-n", "sleep", "600"]).stdout(Stdio::null());
    let holder = Other(command.spawn().ok()?);
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    eventually("it has a namespace", || {
        let others = std::fs::read_link(format!("/proc/{}/ns/net", holder.0.id()));
        others.is_ok_and(|others| others != own)
    });
    let target = holder.0.id().to_string();
    assert!(ip(&format!("link set far netns {target}")));
    assert!(ip("address add 10.9.0.1/24 dev near"));
    let mut is_set = true;
    for arguments in ["address add 10.9.0.2/24 dev far", "link set far up"] {
        let mut command = Command::new("nsenter");
        command
            .args(["-t", &target, "-n", "ip"])
            .args(arguments.split(' '));
        is_set &= command.status().is_ok_and(|status| status.success());
    }
    if !is_set {
        skip("there is no nsenter here");
        return None;
    }
    Some(holder)
}

/// Where no way is named what comes stays the kernel's, as does a login over the interface; who takes it says so first.
#[test]
fn the_host_stays_on_the_network_unless_it_is_said_that_it_does_not() {
    in_namespace(|| {
        pair("near", "far");
        let Some(other) = another_host() else {
            return;
        };
        eventually("they hear each other", || is_answered(&other));
        let bench = Bench::new();
        written_far_apart(&bench);
        let capture = ["--write", "ours.pcapng"];
        for (name, does_answer, words) in [
            ("auto:near", true, "auto:near is packet:near here"),
            ("xdp:near", false, "xdp:near takes from the kernel"),
        ] {
            for command in [
                &["show", name, "--for", "600s"][..],
                &[&["capture", name], &capture[..]].concat(),
            ] {
                let mut child = bench.command();
                let child = child.arg("net").args(command).stderr(Stdio::piped());
                let child = child.stdout(Stdio::piped()).spawn().unwrap();
                is_open(&child, name);
                assert_eq!(is_answered(&other), does_answer, "{command:?}");
                let output = interrupted(child);
                assert_code(&output, 0);
                assert_says(&said(&output), &[words]);
            }
            // It only sends, and takes nothing in any case.
            let mut child = bench.command();
            let child = child.args(["net", "replay", "in.pcap", name]);
            let child = child.stderr(Stdio::piped()).spawn().unwrap();
            is_open(&child, name);
            assert!(is_answered(&other), "replay {name}");
            assert!(!said(&interrupted(child)).contains("takes"), "{name}");
        }
    });
}

#[test]
fn what_is_addressed_to_others_is_taken_only_where_that_is_asked_for_and_until_the_end() {
    in_namespace(|| {
        pair("near", "far");
        let bench = Bench::new();
        for name in ["packet:near", "xdp:near"] {
            let capture = ["capture", name, "--write", "ours.pcapng"];
            for (command, promiscuous) in [
                (&["show", name, "--for", "600s", "--promiscuous"][..], 1),
                (&[&capture[..], &["--promiscuous"]].concat(), 1),
                (&capture[..], 0),
            ] {
                let mut child = bench.command();
                let child = child.arg("net").args(command).stderr(Stdio::piped());
                let child = child.stdout(Stdio::piped()).spawn().unwrap();
                is_open(&child, name);
                let asked = promiscuity("near");
                assert_code(&interrupted(child), 0);
                assert_eq!(asked, promiscuous, "{command:?}");
                assert_eq!(promiscuity("near"), 0, "after {command:?}");
            }
        }
    });
}

/// The driver of an interface runs.
fn is_open(child: &Child, name: &str) {
    let name = name.replace("auto:", "packet:");
    eventually("it is open", || {
        let threads = threads_of(child.id());
        threads.iter().any(|thread| thread.name == name)
    });
}
