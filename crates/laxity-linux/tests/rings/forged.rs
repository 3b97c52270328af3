//! A hostile other side, which writes anything anywhere.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_linux::host::ring::Ring;
use laxity_model::Instant;
use laxity_model::channels::ring::{Refused, Side, Tag};
use proptest::prelude::*;

use super::shape;

proptest! {
    /// Whatever stands there: every call returns, and what is taken is within its buffer; what was broken stays so.
    #[test]
    fn forged_memory_is_survived_by_both_sides(
        forged in proptest::collection::vec((0..shape().memory(), any::<[u8; 8]>(), any::<bool>()), 1..80),
    ) {
        for own in [Side::Sender, Side::Receiver] {
            let (ring, [memory, _bell]) = Ring::create(shape(), own).unwrap();
            let mut broken = false;
            let mut told = |refused: Option<Refused>| {
                assert!(!broken || refused == Some(Refused::Broken), "{refused:?}");
                broken |= refused == Some(Refused::Broken);
            };
            let (mut sender, mut receiver) = match own {
                Side::Sender => (Some(ring.sender()), None),
                Side::Receiver => (None, Some(ring.receiver())),
            };
            for (at, mut bytes, is_small) in forged.iter().copied() {
                if is_small {
                    bytes[1..].fill(0);
                }
                rustix::io::pwrite(&memory, &bytes, at & !7).unwrap();
                if let Some(sender) = &mut sender {
                    told(sender.send(&bytes, Tag::default()).err());
                    told(sender.wait(Some(Instant::ZERO)).err());
                    sender.rests();
                }
                if let Some(receiver) = &mut receiver {
                    let taken = receiver.take();
                    told(taken.as_ref().err().copied());
                    if let Ok(Some(taken)) = taken {
                        receiver.copy(&taken, 0, &mut vec![0; taken.length()]);
                        receiver.give_back(taken);
                    }
                    receiver.hold(is_small);
                    receiver.rests();
                }
            }
        }
    }
}

/// Bodies change while they are read, and lists while they are believed: what is read is read once.
#[test]
fn who_writes_at_the_same_time_harms_his_own_messages_only() {
    let (ring, [memory, bell]) = Ring::create(shape(), Side::Receiver).unwrap();
    let again = memory.as_fd().try_clone_to_owned().unwrap();
    let other = Ring::attach(shape(), Side::Sender, [again, bell]).unwrap();
    let (mut sender, mut receiver) = (other.sender(), ring.receiver());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // All but the counts, so that it is not broken at once.
            for round in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let at = 256 + round * 8 % (shape().memory() - 256);
                let lengths = [((round % 4) << 32) | (round % 100), u64::MAX];
                let word = lengths[usize::from(round % 1_000 == 0)];
                rustix::io::pwrite(&memory, &word.to_ne_bytes(), at).unwrap();
            }
        });
        let mut taken = 0;
        for _ in 0..20_000 {
            let _ = sender.send(&[7; 100], Tag::default());
            match receiver.take() {
                Ok(Some(one)) => {
                    let mut bytes = vec![0; one.length()];
                    receiver.copy(&one, 0, &mut bytes);
                    receiver.give_back(one);
                    taken += 1;
                }
                Ok(None) => {}
                Err(why) => {
                    assert_eq!(why, Refused::Broken);
                    break;
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(taken > 0);
    });
}
