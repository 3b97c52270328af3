//! Packets in octets: any octets are taken, and after any of them the packet behind a flag arrives whole.
#![no_main]

use laxity_devices::link::ppp::{Decoder, MAX_INFORMATION_OCTETS, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let Some((head, rest)) = octets.split_first_chunk::<6>() else {
        return;
    };
    let [a, b, c, d, e, f] = *head;
    let accm = u32::from_le_bytes([a, b, c, d]);
    let mut decoder = Decoder::default();
    decoder.set_accm(accm);
    for octet in rest {
        if let Some(Ok(packet)) = decoder.push(*octet) {
            let (protocol, information) = (packet.protocol, packet.information.to_vec());
            assert!(information.len() <= MAX_INFORMATION_OCTETS);
            assert_arrives(&mut Decoder::default(), protocol, &information, accm);
        }
    }
    let payload = &rest[..rest.len().min(MAX_INFORMATION_OCTETS)];
    assert_arrives(&mut decoder, u16::from_be_bytes([e, f]), payload, accm);
});

/// Sends a packet between flags; it must be the last that comes out.
fn assert_arrives(decoder: &mut Decoder, protocol: u16, information: &[u8], accm: u32) {
    decoder.set_accm(accm);
    let mut line = Vec::new();
    encode(protocol, information, accm, &mut line);
    let mut arrived = None;
    for octet in line {
        if let Some(Ok(packet)) = decoder.push(octet) {
            arrived = Some((packet.protocol, packet.information.to_vec()));
        }
    }
    assert_eq!(arrived, Some((protocol, information.to_vec())));
}
