//! A ring whose other side writes any words anywhere at any time: every call returns, what is taken is within its buffer, and what was broken stays so.
#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use laxity_linux::host::ring::Ring;
use laxity_model::Instant;
use laxity_model::channels::ring::{Receiver, Refused, Sender, Shape, Side, Tag, Taken};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let shape = Shape::new(3, 20).expect("a ring");
    for own in [Side::Sender, Side::Receiver] {
        let (ring, [memory, _bell]) = Ring::create(shape, own).expect("memory");
        let memory = File::from(memory);
        let mut side = match own {
            Side::Sender => Own::Sends(ring.sender()),
            Side::Receiver => Own::Receives(ring.receiver(), Vec::new()),
        };
        let mut broken = false;
        // Each ten bytes are a word, and where it is written.
        for written in bytes.as_chunks::<10>().0 {
            let (at, word) = written.split_at(2);
            let at = u64::from(u16::from_le_bytes([at[0], at[1]]));
            let at = at % (shape.memory() / 8) * 8;
            memory.write_all_at(word, at).expect("it is written");
            let refused = side.goes_on(word[0]);
            assert!(!broken || refused == Some(Refused::Broken));
            broken |= refused == Some(Refused::Broken);
        }
    }
});

enum Own {
    Sends(Sender<Ring>),
    Receives(Receiver<Ring>, Vec<Taken>),
}

impl Own {
    fn goes_on(&mut self, choice: u8) -> Option<Refused> {
        match self {
            Self::Sends(sender) => {
                sender.rests();
                let waited = sender.wait(Some(Instant::ZERO));
                let sent = sender.send(&[choice; 20], Tag::default());
                assert!(waited.is_ok() || sent == waited);
                sent.err()
            }
            Self::Receives(receiver, taken) => {
                receiver.rests();
                receiver.hold(choice % 2 == 1);
                let refused = match receiver.take() {
                    Ok(one) => {
                        taken.extend(one);
                        None
                    }
                    Err(why) => Some(why),
                };
                for one in &*taken {
                    receiver.copy(one, 0, &mut vec![0; one.length()]);
                }
                assert!(taken.len() <= 3);
                if choice % 3 == 0 && !taken.is_empty() {
                    receiver.give_back(taken.swap_remove(usize::from(choice) % taken.len()));
                }
                refused
            }
        }
    }
}
