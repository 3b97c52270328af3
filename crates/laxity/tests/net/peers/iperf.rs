//! `iperf3` against our sockets: its server, as far as one stream from its client goes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use laxity::net::AnyMemory;
use laxity::net::sockets::TcpListener;
use laxity::{Span, now};

use super::super::support::in_namespace;
use super::{Over, Peers, Stream, has};

/// What the two tell each other, one byte each (`iperf_api.h` of iperf 3).
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const EXCHANGE_PARAMETERS: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const DONE: u8 = 16;

const LENGTH: usize = 20 << 20;

fn accept(listener: &TcpListener<AnyMemory>) -> Stream {
    let mut stream = listener.accept(Some(now() + Span::from_secs(20))).unwrap();
    stream.set_read_timeout(Some(Span::from_secs(60)));
    // Each connection says first which test it is of.
    stream.read_exact(&mut [0; 37]).unwrap();
    stream
}

/// A text behind its length.
fn read_text(control: &mut Stream) -> String {
    let mut length = [0; 4];
    control.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn read_state(control: &mut Stream) -> u8 {
    let mut state = [0];
    control.read_exact(&mut state).unwrap();
    state[0]
}

fn serve(listener: &TcpListener<AnyMemory>) -> usize {
    let mut control = accept(listener);
    control.write_all(&[EXCHANGE_PARAMETERS]).unwrap();
    assert!(read_text(&mut control).contains("\"tcp\""));
    control.write_all(&[CREATE_STREAMS]).unwrap();
    let mut stream = accept(listener);
    control.write_all(&[TEST_START, TEST_RUNNING]).unwrap();
    let (mut count, mut piece) = (0, vec![0; 65_536]);
    while count < LENGTH {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            read => count += read,
        }
    }
    assert_eq!(read_state(&mut control), TEST_END);
    control.write_all(&[EXCHANGE_RESULTS]).unwrap();
    assert!(read_text(&mut control).contains("\"streams\""));
    let results = format!(
        "{{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":0,\"streams\":[{{\"id\":1,\"bytes\":{count},\"retransmits\":0,\"jitter\":0,\"errors\":0,\"omitted_errors\":0,\"packets\":0,\"omitted_packets\":0,\"start_time\":0,\"end_time\":1}}]}}"
    );
    let length = (results.len() as u32).to_be_bytes();
    control.write_all(&length).unwrap();
    control.write_all(results.as_bytes()).unwrap();
    control.write_all(&[DISPLAY_RESULTS]).unwrap();
    assert_eq!(read_state(&mut control), DONE);
    count
}

#[test]
fn iperf3_measures_us() {
    if !has("iperf3") {
        return;
    }
    for over in [Over::Packet, Over::Xdp, Over::Tap] {
        in_namespace(|| {
            let peers = Peers::new(over);
            let listener = TcpListener::bind(&peers.host, 5_201, 2).unwrap();
            let iperf = Command::new("iperf3")
                .args(["-c", "10.0.0.2", "-n", "20M", "--json"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // It stops once it has sent as much, which may be a block more.
            assert!(serve(&listener) >= LENGTH, "{over:?}");
            let told = iperf.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&told.stdout).into_owned();
            assert!(told.status.success(), "{over:?}: {text}");
            let counts = text.split("\"bytes\":").skip(1).map(|rest| {
                let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit());
                digits
                    .into_iter()
                    .next()
                    .and_then(|count| count.parse().ok())
            });
            let most: Option<usize> = counts.flatten().max();
            assert!(most >= Some(LENGTH), "{over:?}: {text}");
        });
    }
}
