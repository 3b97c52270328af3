//! Programs of the distribution.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::thread;

use laxity::net::sockets::{TcpListener, TcpStream};
use laxity::{Span, now};

use super::super::support::{eventually, in_namespace};
use super::{ALL, KERNELS, Over, Peers, has, pattern, run};

#[test]
fn ping_is_answered_by_both_protocols_and_a_flood_of_it_too() {
    if !has("ping") {
        return;
    }
    for over in ALL {
        in_namespace(|| {
            let _peers = Peers::new(over);
            for arguments in [
                "-c 3 -i 0.01 -W 10 10.0.0.2",
                "-6 -c 3 -i 0.01 -W 10 fd00::2",
                "-c 2 -s 1472 -M do -W 10 10.0.0.2",
                "-f -c 1000 10.0.0.2",
                "-6 -f -c 1000 fd00::2",
            ] {
                let told = run("ping", arguments);
                let text = String::from_utf8_lossy(&told.stdout).into_owned();
                assert!(
                    told.status.success(),
                    "{over:?}: ping {arguments}: {told:?}"
                );
                assert!(
                    text.contains(" 0% packet loss"),
                    "{over:?}: ping {arguments}: {text}"
                );
            }
        });
    }
}

#[test]
fn nc_sends_and_hears_in_both_roles() {
    if !has("nc") {
        return;
    }
    in_namespace(|| {
        let Peers { host, .. } = &Peers::new(Over::Tap);
        let said = pattern(1_000_000, 3);
        let listener = TcpListener::bind(host, 5_000, 1).unwrap();
        let nc = Command::new("nc")
            .args(["-N", "10.0.0.2", "5000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stream = listener.accept(Some(now() + Span::from_secs(20))).unwrap();
        assert!(echo(nc, stream, &said) == said);
        let nc = Command::new("nc")
            .args(["-N", "-l", "10.0.0.1", "5001"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = (KERNELS, 5_001).into();
        let mut stream = None;
        eventually("it listens", || {
            stream = TcpStream::connect(host, to).ok();
            stream.is_some()
        });
        assert!(echo(nc, stream.unwrap(), &said) == said);
    });
}

/// What `nc` hears of what it said, from who says it again.
fn echo(mut nc: std::process::Child, mut stream: super::Stream, said: &[u8]) -> Vec<u8> {
    let (mut mouth, mut ear) = (nc.stdin.take().unwrap(), nc.stdout.take().unwrap());
    thread::scope(|scope| {
        scope.spawn(move || mouth.write_all(said).unwrap());
        scope.spawn(move || {
            stream.set_read_timeout(Some(Span::from_secs(60)));
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).unwrap();
            stream.write_all(&heard).unwrap();
            stream.shutdown(Shutdown::Write);
        });
        let mut heard = Vec::new();
        ear.read_to_end(&mut heard).unwrap();
        assert!(nc.wait().unwrap().success());
        heard
    })
}
