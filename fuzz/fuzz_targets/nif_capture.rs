//! Any bytes are a capture or an error, whoever gives them in whatever pieces: no packet has more than the file, and none is another one where it comes through a pipe.
#![no_main]

use std::io::{self, Read};

use laxity_lab::capture_file::{Frame, Packets};
use libfuzzer_sys::fuzz_target;

/// A source that gives a few bytes at a time.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let piece = into.len().min(3);
        self.0.read(&mut into[..piece])
    }
}

/// The packets of it, and whether it ended with an error.
fn packets(source: impl Read) -> (Vec<Frame>, bool) {
    let Ok(mut packets) = Packets::read(source) else {
        return (Vec::new(), true);
    };
    let mut found = Vec::new();
    loop {
        match packets.next() {
            Some(Ok(frame)) => found.push(frame),
            Some(Err(error)) => {
                assert!(!error.to_string().is_empty());
                return (found, true);
            }
            None => return (found, false),
        }
    }
}

fuzz_target!(|file: &[u8]| {
    let found = packets(file);
    let bytes: usize = found.0.iter().map(|frame| frame.bytes.len()).sum();
    assert!(bytes <= file.len());
    assert_eq!(packets(Pieces(file)), found);
});
