//! The ring against a queue.

use std::collections::VecDeque;

use laxity_model::channels::ring::{
    Here, MOST_BUFFERS, MOST_BYTES, MOST_MEMORY, Memory, Receiver, Refused, Sender, Shape,
    ShapeError, Tag, Taken, end,
};
use proptest::prelude::*;
use std::sync::atomic::Ordering::Relaxed;

fn tag(number: u64) -> Tag {
    Tag {
        number,
        stamp: !number,
        flags: number as u32 ^ 7,
    }
}

fn bytes(number: u64, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (number as usize * 31 + at) as u8)
        .collect()
}

#[derive(Clone, Debug)]
enum Op {
    Send(usize),
    /// In pieces of these lengths.
    Fill(Vec<usize>),
    /// A loan that is not sent.
    Drop,
    Take,
    /// One of those that were taken.
    Give(usize),
    Receive(usize),
    Hold(bool),
    End,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..50_usize).prop_map(Op::Send),
        3 => proptest::collection::vec(0..20_usize, 0..4).prop_map(Op::Fill),
        1 => Just(Op::Drop),
        4 => Just(Op::Take),
        4 => any::<usize>().prop_map(Op::Give),
        3 => (0..50_usize).prop_map(Op::Receive),
        2 => any::<bool>().prop_map(Op::Hold),
        1 => Just(Op::End),
    ]
}

/// A queue that takes so many messages, of which those that were taken count until they are given back.
struct Oracle {
    shape: Shape,
    queue: VecDeque<(u64, Vec<u8>)>,
    taken: Vec<(Taken, u64, Vec<u8>)>,
    is_held: bool,
    is_ended: bool,
}

impl Oracle {
    /// Why a message of this length is not sent.
    fn refuses(&self, length: usize) -> Option<Refused> {
        let full = self.queue.len() + self.taken.len() >= self.shape.buffers() as usize;
        let reasons = [
            (
                length > self.shape.bytes() as usize,
                Refused::TooLong(length),
            ),
            (self.is_ended, Refused::Ended),
            (self.is_held, Refused::Held),
            (full, Refused::Full),
        ];
        let mut reasons = reasons.into_iter();
        reasons.find(|(is_so, _)| *is_so).map(|(_, why)| why)
    }

    /// Why none is taken.
    fn nothing(&self) -> Result<(), Refused> {
        match self.is_ended {
            true => Err(Refused::Ended),
            false => Ok(()),
        }
    }
}

proptest! {
    #[test]
    fn behaves_as_a_queue_of_so_many(
        buffers in 1..6_u32,
        length in 1..40_u32,
        ops in proptest::collection::vec(op(), 0..150),
    ) {
        let shape = Shape::new(buffers, length).unwrap();
        let memory = Here::new(shape);
        let mut sender = Sender::new(&memory, shape).unwrap();
        let mut receiver = Receiver::new(&memory, shape).unwrap();
        let (queue, taken) = (VecDeque::new(), Vec::new());
        let mut oracle = Oracle { shape, queue, taken, is_held: false, is_ended: false };
        for (number, op) in (0..).zip(ops) {
            match op {
                Op::Send(length) => {
                    let bytes = bytes(number, length);
                    let refused = oracle.refuses(length);
                    prop_assert_eq!(sender.send(&bytes, tag(number)).err(), refused);
                    if refused.is_none() {
                        oracle.queue.push_back((number, bytes));
                    }
                }
                Op::Fill(pieces) => {
                    let whole = bytes(number, pieces.iter().sum());
                    let loan = sender.loan();
                    prop_assert_eq!(loan.as_ref().err().copied(), oracle.refuses(0));
                    if let (Ok(mut loan), true) = (loan, whole.len() <= length as usize) {
                        // The last first, so that no piece is written over by one behind it.
                        let mut end = whole.len();
                        for piece in pieces.iter().rev() {
                            loan.write(end - piece, &whole[end - piece..end]);
                            end -= piece;
                        }
                        loan.commit(whole.len() as u32, tag(number));
                        oracle.queue.push_back((number, whole));
                    }
                }
                Op::Drop => prop_assert_eq!(sender.loan().err(), oracle.refuses(0)),
                Op::Take => match oracle.queue.pop_front() {
                    None => prop_assert_eq!(receiver.take(), oracle.nothing().map(|()| None)),
                    Some((number, bytes)) => {
                        let taken = receiver.take().unwrap().unwrap();
                        prop_assert_eq!((taken.tag, taken.length()), (tag(number), bytes.len()));
                        oracle.taken.push((taken, number, bytes));
                    }
                },
                Op::Give(which) => if !oracle.taken.is_empty() {
                    let which = which % oracle.taken.len();
                    let (taken, _, bytes) = oracle.taken.swap_remove(which);
                    let from = which.min(bytes.len());
                    let mut read = vec![0; bytes.len() - from];
                    receiver.copy(&taken, from, &mut read);
                    prop_assert_eq!(&read, &bytes[from..]);
                    receiver.give_back(taken);
                },
                Op::Receive(room) => {
                    let mut into = vec![0; room];
                    let expected = oracle.queue.pop_front().map(|(number, bytes)| (bytes, tag(number)));
                    let received = receiver.receive(&mut into);
                    match expected {
                        None => prop_assert_eq!(received, oracle.nothing().map(|()| None)),
                        Some((bytes, tag)) => {
                            let length = bytes.len().min(room);
                            prop_assert_eq!(received, Ok(Some((length, tag))));
                            prop_assert_eq!(&into[..length], &bytes[..length]);
                        }
                    }
                }
                Op::Hold(holds) => {
                    receiver.hold(holds);
                    oracle.is_held = holds;
                }
                Op::End => {
                    end(&memory);
                    oracle.is_ended = true;
                }
            }
            // Who may rest has nothing to do, and waits in vain.
            let is_blocked = matches!(oracle.refuses(0), Some(Refused::Full | Refused::Held));
            prop_assert_eq!(sender.rests(), is_blocked);
            prop_assert_eq!(sender.wait(None).err(), oracle.refuses(0));
            prop_assert_eq!(receiver.rests(), oracle.queue.is_empty() && !oracle.is_ended);
        }
    }

    /// Whatever is written to what is shared: all that is taken is within its buffer, and no buffer is taken twice.
    #[test]
    fn forged_lists_break_their_own_ring_only(
        forged in proptest::collection::vec((0..20_usize, prop_oneof![any::<u64>(), 0..9_u64, (0..9_u64).prop_map(|buffer| buffer << 32 | 3)]), 1..60),
    ) {
        let shape = Shape::new(4, 16).unwrap();
        let memory = Here::new(shape);
        let mut sender = Sender::new(&memory, shape).unwrap();
        let mut receiver = Receiver::new(&memory, shape).unwrap();
        let mut taken = Vec::new();
        for (at, word) in forged {
            let sent = sender.send(b"message", tag(0));
            memory.words()[at].store(word, Relaxed);
            match receiver.take() {
                Ok(Some(one)) => {
                    receiver.copy(&one, 0, &mut vec![0; one.length()]);
                    taken.push(one);
                }
                Ok(None) => prop_assert!(sent.is_err()),
                Err(why) => {
                    prop_assert_eq!(why, Refused::Broken);
                    prop_assert_eq!(receiver.take(), Err(Refused::Broken));
                    prop_assert!(!receiver.rests());
                }
            }
            if taken.len() > 2 {
                receiver.give_back(taken.swap_remove(at % 3));
            }
        }
    }
}

#[test]
fn a_ring_has_as_much_memory_as_it_says_and_no_more_than_may_be() {
    let most = Shape::new(
        MOST_BUFFERS,
        (MOST_MEMORY / u64::from(MOST_BUFFERS)) as u32 - 48,
    );
    assert!(most.unwrap().memory() <= MOST_MEMORY);
    for (buffers, bytes) in [(0, 1), (1, 0), (MOST_BUFFERS + 1, 1), (1, MOST_BYTES + 1)] {
        assert_eq!(Shape::new(buffers, bytes), Err(ShapeError::Extent));
    }
    let too_much = Shape::new(MOST_BUFFERS, MOST_BYTES);
    assert_eq!(too_much, Err(ShapeError::Extent));
    let (two, three) = (Shape::new(2, 8).unwrap(), Shape::new(3, 8).unwrap());
    let memory = Here::new(two);
    assert_eq!(Sender::new(&memory, three).err(), Some(ShapeError::Memory));
    assert_eq!(
        Receiver::new(&memory, three).err(),
        Some(ShapeError::Memory)
    );
}

#[test]
#[should_panic(expected = "another ring")]
fn a_message_is_given_back_to_its_own_ring() {
    let shape = Shape::new(2, 8).unwrap();
    let (one, other) = (Here::new(shape), Here::new(shape));
    let (mut sender, mut receiver) = (
        Sender::new(&one, shape).unwrap(),
        Receiver::new(&one, shape).unwrap(),
    );
    sender.send(b"message", Tag::default()).unwrap();
    let taken = receiver.take().unwrap().unwrap();
    Receiver::new(&other, shape).unwrap().give_back(taken);
}
