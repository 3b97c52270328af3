//! Frames of every kind that somebody has damaged, cut or made up change nothing.

use laxity_model::Span;
use laxity_net::channels::session::Refused;

use super::hosts::{A, Agreed, B, Hosts, Outcome};

/// What a host knows, as far as it can be seen from outside.
fn state(hosts: &Hosts, host: usize) -> impl PartialEq + std::fmt::Debug {
    let peer = &hosts.peers[host];
    (peer.session(), peer.due(), hosts.to[1 - host].clone())
}

/// Each bit of a frame flipped, and each of its beginnings, is refused and changes nothing; then the frame itself is taken.
fn attacked(hosts: &mut Hosts, host: usize, expected: Outcome) {
    let frame = hosts.to[host].remove(0);
    let before = format!("{:?}", state(hosts, host));
    let refused = |hosts: &mut Hosts, bytes: Vec<u8>| {
        let outcome = hosts.open(host, bytes);
        assert!(outcome.is_err(), "{outcome:?}");
        assert_eq!(format!("{:?}", state(hosts, host)), before);
    };
    for bit in 0..8 * frame.len() {
        let mut flipped = frame.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        refused(hosts, flipped);
    }
    for length in 0..frame.len() {
        refused(hosts, frame[..length].to_vec());
    }
    let mut longer = frame.clone();
    longer.push(0);
    refused(hosts, longer);
    assert_eq!(hosts.open(host, frame), Ok(expected));
}

#[test]
fn the_messages_of_a_handshake_and_what_is_sealed() {
    let mut hosts = Hosts::new(Agreed::default());
    hosts.poll(A);
    attacked(&mut hosts, B, Outcome::Answered);
    attacked(&mut hosts, A, Outcome::Agreed);
    let said = hosts.say(A).unwrap();
    attacked(&mut hosts, B, Outcome::Message(said));
    // And those that go within a session.
    hosts.now += Span::from_secs(120);
    hosts.poll(A);
    attacked(&mut hosts, B, Outcome::Answered);
    attacked(&mut hosts, A, Outcome::Agreed);
    hosts.say(A).unwrap();
    hosts.arrive(B).unwrap();
    hosts.assert_agree();
}

/// The checksum is no secret: whoever changes what it covers can make it right again.
#[test]
fn a_first_message_whose_checksum_is_right_again() {
    let mut hosts = Hosts::new(Agreed::default());
    hosts.poll(A);
    let first = hosts.to[B].remove(0);
    let before = format!("{:?}", state(&hosts, B));
    let end = first.len() - 4;
    for place in 16..end {
        let mut forged = first.clone();
        forged[place] ^= 0x40;
        let checksum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&forged[..end]);
        forged[end..].copy_from_slice(&checksum.to_be_bytes());
        let refused = hosts.open(B, forged).unwrap_err();
        assert!(
            matches!(refused, Refused::Forged | Refused::Malformed(_)),
            "{place}: {refused}"
        );
        assert_eq!(format!("{:?}", state(&hosts, B)), before);
    }
    assert_eq!(hosts.open(B, first), Ok(Outcome::Answered));
}
