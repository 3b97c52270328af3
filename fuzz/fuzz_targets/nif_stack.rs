//! Any frames reach a host that listens, has a datagram socket and connects: nothing panics, no poll runs away, and what is answered is a frame to one host or a question.
#![no_main]

use std::net::SocketAddr;
use std::sync::Arc;

use laxity_model::Instant;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::Link;
use laxity_net::buffers::Sleeper;
use laxity_net::driver::{Driver, Host, Limits};
use laxity_net::emulated::{Faults, Wire};
use laxity_net::sockets::{TcpListener, TcpStream, UdpSocket};
use laxity_net::stack::{Config, Stack};
use libfuzzer_sys::fuzz_target;

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];

fuzz_target!(|bytes: &[u8]| {
    let (_, near, mut far) = Wire::new(Faults::default(), 7);
    let mut driver = Driver::new(
        near,
        Frames::new(None, 1),
        Limits::default(),
        Host::default(),
    )
    .unwrap();
    let own = [10, 0, 0, 1].into();
    let config = Config {
        hardware: OURS,
        addresses: vec![(own, 24), ([0xfd00_u16, 0, 0, 0, 0, 0, 0, 1].into(), 64)],
        buffers: 4,
        window: 2048,
        ..Config::default()
    };
    let clock = Arc::new(|| Instant::from_millis(1));
    let stack = Stack::new(
        &mut driver,
        config,
        Sleeper::portable(|| Instant::MAX),
        clock,
    )
    .unwrap();
    let listener = TcpListener::bind(&stack, 7, 2).unwrap();
    let datagrams = UdpSocket::bind(&stack, SocketAddr::new(own, 53)).unwrap();
    datagrams.set_nonblocking(true);
    let stream = TcpStream::start(&stack, ([10, 0, 0, 2], 80).into()).unwrap();
    for memory in far.allocate(64).unwrap() {
        far.post(memory).unwrap();
    }
    let mut rest = bytes;
    let mut accepted = Vec::new();
    for step in 0..32 {
        let now = Instant::from_millis(step);
        // Each frame is behind its length; every second one is to this host, so that more is looked at.
        if let [length, behind @ ..] = rest {
            let (frame, behind) = behind.split_at(behind.len().min(usize::from(*length) * 2));
            rest = behind;
            let mut memory = far.allocate(1).unwrap().remove(0);
            let length = frame.len().max(14);
            memory[..length].fill(0);
            memory[..frame.len()].copy_from_slice(frame);
            if step % 2 == 0 {
                memory[..6].copy_from_slice(&OURS);
            }
            far.send(memory, length, now).ok();
        }
        driver.poll(now, &mut ()).unwrap();
        stack.poll(now);
        stream.poll(now);
        accepted.extend(listener.try_accept());
        datagrams.recv_from(&mut [0; 64]).ok();
        while let Ok(Some(answer)) = far.receive(now) {
            let answer = &answer.memory[..answer.length];
            assert_eq!(answer[6..12], OURS);
            assert!(
                answer[0] & 1 == 0 || answer[12..14] == [8, 6] || answer[12..14] == [0x86, 0xdd]
            );
        }
    }
    assert_eq!(driver.census().total(), 64);
});
