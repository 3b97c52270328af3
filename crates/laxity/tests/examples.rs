//! The examples do what they say, with the rights and without.

mod gstreamer;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use laxity::net::sockets::TcpStream;
use laxity::net::{Interface, LiveStack, Options, StackConfig};
use laxity_linux::doctor::rights::{self, Right};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// Where an example is; built by cargo where it is not up to date.
fn built(name: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // Of one package alone cargo would choose other features of what it depends on than for all tests, and build all of that once more.
    cargo.args(["build", "--quiet", "--workspace", "--example", name]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    // Examples lie in a directory beside that of the tests.
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}

fn example(name: &str) -> Output {
    Command::new(built(name)).output().unwrap()
}

/// The same, by a thread that can give no program `CAP_SYS_NICE`.
fn example_without_rights(name: &'static str) -> Output {
    let run = move || {
        if rights::missing(Right::Deadline).is_none() {
            remove_capability_from_bounding_set(CapabilitySet::SYS_NICE).unwrap();
        }
        example(name)
    };
    thread::spawn(run).join().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn reserve_says_what_was_granted_and_shows_its_event() {
    let Some(_live) = rights::require(&[Right::Deadline]) else {
        return;
    };
    let output = example("reserve");
    let (shown, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{error}");
    let lines: Vec<&str> = shown.lines().collect();
    let [grant, event] = lines[..] else {
        panic!("{shown}");
    };
    assert_eq!(grant, "2ms/8ms: enforced");
    assert!(event.ends_with("s  example  granted  2 8"), "{event}");
}

#[test]
fn reserve_without_the_right_says_why_and_what_to_do() {
    let output = example_without_rights("reserve");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty());
    for part in ["2ms/8ms", "CAP_SYS_NICE", "remedy", "setcap", "caused by"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn two_hosts_runs_the_same_program_on_both() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let output = example("two_hosts");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut lines = shown.lines();
    let twin = lines.next().unwrap_or_default();
    assert!(
        twin.starts_with("twin ") && twin.ends_with(": met"),
        "{twin}"
    );
    // What becomes of it live is the machine's affair; that it is judged is not.
    let live = lines.next().unwrap_or_default();
    let verdict = live.rsplit(' ').next().unwrap_or_default();
    assert!(live.starts_with("linux "), "{live}");
    assert!(
        ["met", "violated", "inconclusive"].contains(&verdict),
        "{live}"
    );
}

#[test]
fn two_hosts_without_the_rights_runs_in_the_twin_and_says_so() {
    let output = example_without_rights("two_hosts");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let last = shown.lines().last().unwrap_or_default();
    assert!(
        shown.starts_with("twin ") && last.starts_with("not run live: "),
        "{shown}"
    );
    assert!(last.contains("remedy"), "{last}");
}

#[test]
fn own_policy_runs_what_its_test_admits_and_nothing_else() {
    let output = example("own_policy");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<&str> = shown.lines().collect();
    let [fits, refused] = lines[..] else {
        panic!("{shown}");
    };
    assert_eq!(fits, "three handlers: the executor received 504ms");
    for part in ["a fourth is refused", "executor", "Liu and Layland"] {
        assert!(refused.contains(part), "{part} is not in {refused}");
    }
}

#[test]
fn upcalls_serves_two_streams_and_refuses_what_does_not_fit() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let output = example("upcalls");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<&str> = shown.lines().collect();
    let [refused, video, audio, grade] = lines[..] else {
        panic!("{shown}");
    };
    for part in ["refused: video may be late", "would fit"] {
        assert!(refused.contains(part), "{part} is not in {refused}");
    }
    assert_eq!(video, "video: Suspended, 10 calls, 160 packets");
    assert!(audio.starts_with("audio: Suspended, "), "{audio}");
    assert_eq!(grade, "enforced");
}

#[test]
fn qos_maps_four_classes_and_serves_them_together() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let output = example("qos");
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(shown.starts_with("a packet takes "), "{shown}");
    for name in ["video", "transfer", "requests", "messages"] {
        let of = format!("{name}: ");
        let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with(&of)).collect();
        let [mapped, done] = lines[..] else {
            panic!("{name}: {shown}");
        };
        assert!(mapped.contains("bytes a second on the link"), "{mapped}");
        assert!(done.contains("Suspended after 20 calls"), "{done}");
    }
}

#[test]
fn upcalls_without_the_right_says_why_and_what_to_do() {
    let output = example_without_rights("upcalls");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    for part in ["cannot be real-time", "CAP_SYS_NICE", "remedy", "setcap"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn a_second_of_two_rtp_sessions_arrives_whole() {
    let rtp = built("rtp");
    gstreamer::ours_to_ours(&rtp, &rtp);
}

#[test]
fn a_stranger_hears_rtp_and_is_heard() {
    if !gstreamer::is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    gstreamer::ours_and_a_stranger(&built("rtp"), directory.path());
}

/// An example with its arguments, of an interface over UDP to which frames go all the time.
fn example_over_udp(name: &str, rest: &[&str]) -> Output {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let remote = far.local_addr().unwrap();
    // The kernel gives such numbers out in turn, so that it stays free.
    let local = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let local = local.unwrap();
    far.connect(local).unwrap();
    let mut command = Command::new(built(name));
    command.arg(format!("udp:{local}-{remote}")).args(rest);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // A datagram of no bytes to port 2000 of 10.0.0.2.
    let mut frame = vec![2; 60];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17]);
    frame[24..38].copy_from_slice(&[0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 3, 0xe8, 7, 0xd0]);
    frame[38..42].copy_from_slice(&[0, 8, 0, 0]);
    while child.try_wait().unwrap().is_none() {
        // Nobody may be there yet.
        let _ = far.send(&frame);
        thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn peek_and_early_tell_of_the_packets_that_arrive() {
    for (name, arguments) in [("peek", "udp dst port 2000"), ("early", "10.0.0.2:2000")] {
        let output = example_over_udp(name, &[arguments]);
        let shown = text(&output.stdout);
        assert!(output.status.success(), "{shown}");
        let mut words = shown.split(|c: char| !c.is_alphanumeric());
        let before = words.by_ref().take_while(|word| *word != "packets").last();
        let packets: u32 = before.unwrap().parse().unwrap();
        assert!(packets > 10, "{shown}");
        // A driver that could be taken from says by whom, or what it lacks.
        assert!(!shown.contains("is unenforced; "), "{shown}");
    }
}

#[test]
fn examples_of_packets_say_what_is_wrong_with_its_remedy() {
    for (name, rest) in [
        ("peek", &["udp"][..]),
        ("early", &["10.0.0.2:2000"]),
        ("tcp_server", &["10.0.0.2/24", "7"]),
    ] {
        let mut command = Command::new(built(name));
        let output = command.arg("a:b:c").args(rest).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("remedy: name it `auto:NAME`"), "{error}");
    }
}

#[test]
fn a_server_of_tcp_counts_what_it_sent_back_before_a_connection_failed() {
    let (server, _interface, host) = server_and_host();
    let mut stream = TcpStream::connect(&host, ([10, 0, 0, 2], 7).into()).unwrap();
    stream.write_all(&[1; 1_000]).unwrap();
    stream.read_exact(&mut [0; 1_000]).unwrap();
    stream.abort();
    drop(stream);
    let output = server.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.ends_with("1 connections, 1000 bytes\n"), "{shown}");
}

/// A server of TCP over UDP, and a host beside it.
fn server_and_host() -> (Child, Interface, LiveStack) {
    // The kernel gives such numbers out in turn, so that they stay free.
    let free = || UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let (own, servers) = (free().unwrap(), free().unwrap());
    let mut command = Command::new(built("tcp_server"));
    command.args([&format!("udp:{servers}-{own}"), "10.0.0.2/24", "7"]);
    let server = command.stdout(Stdio::piped()).spawn().unwrap();
    let interface = Interface::open(&format!("udp:{own}-{servers}"), Options::default()).unwrap();
    let host = interface.stack(StackConfig {
        addresses: vec![([10, 0, 0, 1].into(), 24)],
        ..StackConfig::default()
    });
    let host = host.unwrap();
    (server, interface, host)
}

#[test]
fn a_server_of_tcp_sends_back_what_comes() {
    let (server, _interface, host) = server_and_host();
    // What is sent before the server is there is sent again.
    let mut stream = TcpStream::connect(&host, ([10, 0, 0, 2], 7).into()).unwrap();
    let sent: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let mut heard = Vec::new();
    for part in sent.chunks(10_000) {
        stream.write_all(part).unwrap();
        let mut back = vec![0; part.len()];
        stream.read_exact(&mut back).unwrap();
        heard.extend(back);
    }
    assert!(heard == sent);
    stream.shutdown(Shutdown::Write);
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    drop(stream);
    let output = server.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.ends_with("1 connections, 100000 bytes\n"), "{shown}");
}
