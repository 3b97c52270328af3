//! A host whose process somebody stops.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use laxity::channels::{Cause, Error, HostId, Node, SecretKey, SendError, Spec, Traffic};
use laxity::{Span, now};
use rustix::process::{Pid, Signal, kill_process};

use super::support::{addresses, listens, name, setups_of};

/// In its environment a process has both hosts' addresses and keys.
const HOST: &str = "LAXITY_TEST_CHANNELS_HOST";

fn spec(to: u32, called: &str) -> Spec {
    let traffic = Traffic::new(64, (1, Span::from_millis(5)), 1).unwrap();
    let within = Span::from_millis(20);
    Spec::new(name(called), vec![HostId(to)], traffic, within)
}

/// The host that is stopped: somebody sends to it, and it sends itself.
fn host(told: &str) {
    let mut told = told.split(' ');
    let mut next = || told.next().unwrap();
    let at: [SocketAddr; 2] = [(); 2].map(|()| next().parse().unwrap());
    let keys = [(); 2].map(|()| SecretKey::from_text(next()).unwrap());
    let [setup, _] = setups_of(at, true, keys);
    let node = Node::start(setup).unwrap();
    let listener = node.listen(name("there"), listens(64), Span::ZERO).unwrap();
    assert!(node.wait_for_neighbours(None).unwrap());
    let _sender = node.open(&spec(1, "back")).unwrap();
    println!("it listens");
    let _receiver = listener.accept(None).unwrap();
    // Until it is killed, or who started it is gone.
    let _ = std::io::stdin().read(&mut [0]);
}

/// 175 ms of silence, and the way to be told.
#[test]
fn the_other_ends_of_a_host_that_is_stopped_are_told_within_250_ms() {
    if let Ok(told) = std::env::var(HOST) {
        return host(&told);
    }
    let at = addresses();
    let keys = [(); 2].map(|()| SecretKey::generate().unwrap());
    let told = [
        at.map(|at| at.to_string()),
        keys.each_ref().map(SecretKey::text),
    ];
    let [_, setup] = setups_of(at, true, keys);
    let node = Node::start(setup).unwrap();
    let listener = node.listen(name("back"), listens(64), Span::ZERO).unwrap();
    let own = "stopped::the_other_ends_of_a_host_that_is_stopped_are_told_within_250_ms";
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", own, "--nocapture"])
        .env(HOST, told.as_flattened().join(" "))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "it listens"));
    let mut sender = node.open(&spec(0, "there")).unwrap();
    let mut receiver = listener.accept(None).unwrap().unwrap();
    let stopped = now();
    kill_process(Pid::from_child(&other), Signal::STOP).unwrap();
    let over = receiver.receive(&mut [0; 64], None).unwrap_err();
    let after = now().saturating_since(stopped);
    assert!(matches!(over, Error::Over(Cause::Lost { .. })), "{over}");
    // Both in one go.
    let over = loop {
        if let Err(over) = sender.send_until(&[0; 64], None) {
            break over;
        }
    };
    assert!(
        matches!(over, SendError::Over(Error::Over(Cause::Lost { .. }))),
        "{over}"
    );
    assert!(after <= Span::from_millis(250), "{after}");
    other.kill().unwrap();
    other.wait().unwrap();
}
