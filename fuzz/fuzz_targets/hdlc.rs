//! Frames in bits: any bits are taken, and after any of them the frame behind a flag arrives whole.
#![no_main]

use laxity_devices::link::hdlc::{Deframer, Framer, MIN_FRAME_OCTETS};
use libfuzzer_sys::fuzz_target;

const MAX_OCTETS: usize = 64;

fuzz_target!(|octets: &[u8]| {
    let mut deframer = Deframer::new(MAX_OCTETS);
    for octet in octets {
        for bit in 0..8 {
            if let Some(Ok(frame)) = deframer.push(octet >> bit & 1 == 1) {
                assert!((MIN_FRAME_OCTETS..=MAX_OCTETS).contains(&frame.len()));
            }
        }
    }
    for payload in octets.chunks(MAX_OCTETS) {
        if payload.len() >= MIN_FRAME_OCTETS {
            assert_eq!(deliver(&mut deframer, payload).as_deref(), Some(payload));
        }
    }
});

/// The last frame that arrives when this one is sent between flags.
fn deliver(deframer: &mut Deframer, payload: &[u8]) -> Option<Vec<u8>> {
    let mut framer = Framer::default();
    let mut arrived = None;
    // A flag that ends what was before, one to begin with, the frame with an inserted zero for every five bits, and its flag.
    let bits = 8 * (payload.len() + 2) * 6 / 5 + 5 * 8;
    for sent in 0..bits {
        if sent == 16 {
            framer.begin(payload);
        }
        if let Some(Ok(frame)) = deframer.push(framer.next_bit()) {
            arrived = Some(frame.to_vec());
        }
    }
    arrived
}
