//! Any bytes are a frame of a channel or none: what is taken is what would be written, of each kind, in a datagram and behind padding.
#![no_main]

use laxity_net::channels::frame::{Body, Frame, Kind, LONGEST, VERSION, check, checked};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // As it is: mostly for lengths and headers.
    let whole = Frame::of_padded(bytes);
    if let Ok(frame) = whole {
        assert_eq!(Frame::of_datagram(frame.bytes()), Ok(frame));
        let _ = check(&frame);
    }
    assert!(Frame::of_datagram(bytes).is_err() || whole.is_ok());
    // As a body: what a checksum would keep random bytes from being.
    let Some((first, body)) = bytes.split_first() else {
        return;
    };
    let kinds = [Kind::Data, Kind::Signal, Kind::First, Kind::Answer];
    let kind = kinds[usize::from(first % 4)];
    let Ok(parsed) = Body::parse(kind, body) else {
        return;
    };
    let mut written = vec![0; parsed.length()];
    parsed.write(&mut written);
    assert_eq!(written, body);
    let mut frame = vec![0; LONGEST];
    let Ok(length) = checked(&parsed, &mut frame) else {
        return;
    };
    assert_eq!(frame[0], VERSION);
    let frame = Frame::of_datagram(&frame[..length]).expect("it was written so");
    assert_eq!(check(&frame), Ok(parsed));
});
