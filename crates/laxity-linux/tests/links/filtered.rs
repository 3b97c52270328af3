//! Sockets behind a filter: the kernel runs it, and tags that it has taken out of a packet count as if they stood there.

use laxity_linux::net::{PacketLink, Settings};
use laxity_linux::os::clock;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::parse;
use laxity_model::nif::link::{Link, Memory};
use libtest_mimic::Trial;

use super::common::until;
use super::early::{UDP, datagram};
use super::in_namespace;
use super::namespace::pair;

const TCP: u8 = 6;
/// Of an EtherType for experiments, which ends each round.
const LAST: &str = "ether proto 0x88b5";

fn tagged(frame: &[u8], kind: u16, id: u16) -> Vec<u8> {
    let tag = [kind.to_be_bytes(), id.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

fn frames() -> Vec<Vec<u8>> {
    let plain = datagram("10.0.0.1:1000", "10.0.0.2:53", UDP);
    let mut piece = plain.clone();
    piece[20] = 0x20;
    let mut lying = plain.clone();
    lying[17] = 200;
    vec![
        tagged(&plain, 0x8100, 5),
        tagged(&plain, 0x88a8, 6),
        tagged(&tagged(&plain, 0x8100, 7), 0x88a8, 6),
        datagram("10.0.0.1:1000", "10.1.0.2:54", UDP),
        datagram("10.0.0.1:53", "10.0.0.2:1000", TCP),
        datagram("[fd00::1]:1000", "[fd00::2]:53", UDP),
        plain,
        piece,
        lying,
    ]
}

fn send(link: &mut PacketLink, frame: &[u8]) {
    let mut memory = link.allocate(1).unwrap().pop().unwrap();
    memory.bytes_mut()[..frame.len()].copy_from_slice(frame);
    link.send(memory, frame.len(), clock::now()).unwrap();
    until("it has left", || link.sent(clock::now()).is_some());
}

/// What arrives before the last.
fn arrivals(link: &mut PacketLink) -> Vec<Vec<u8>> {
    let mut arrived = Vec::new();
    until("the last packet", || {
        while let Some(packet) = link.receive(clock::now()).unwrap() {
            arrived.push(packet.memory.bytes()[..packet.length].to_vec());
            assert!(link.post(packet.memory).is_ok());
        }
        arrived
            .last()
            .is_some_and(|last| last[12..14] == [0x88, 0xb5])
    });
    arrived.pop();
    arrived
}

fn the_kernel_takes_what_the_filter_matches() {
    pair("near", "far");
    let mut far = PacketLink::open("far", &Settings::default()).unwrap();
    for text in [
        "udp dst port 53",
        "tcp",
        "vlan 5",
        "vlan 6 and vlan 7",
        "vlan and port 53",
        "net 10.0.0.0/16",
        "host fd00::1 and udp",
        "ip or ip6",
        "src port 1000 or vlan 6",
    ] {
        let filter = Filter::parse(&format!("({text}) or {LAST}"), None).unwrap();
        let program = filter.classic(None).unwrap();
        let mut near = PacketLink::filtered("near", &Settings::default(), &program).unwrap();
        for memory in near.allocate(16).unwrap() {
            assert!(near.post(memory).is_ok());
        }
        let mut last = vec![2; 60];
        last[12..14].copy_from_slice(&[0x88, 0xb5]);
        for frame in frames().iter().chain([&last]) {
            send(&mut far, frame);
        }
        let is_wanted = |frame: &Vec<u8>| filter.matches(&parse(frame, None).key);
        let wanted: Vec<_> = frames().into_iter().filter(is_wanted).collect();
        assert_eq!(arrivals(&mut near), wanted, "{text}");
        assert!(!wanted.is_empty(), "{text}");
    }
}

pub(super) fn trials() -> Vec<Trial> {
    vec![in_namespace(
        "filtered::the_kernel_takes_what_the_filter_matches",
        the_kernel_takes_what_the_filter_matches,
    )]
}
