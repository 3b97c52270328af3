//! The ring that two processes share, under every interleaving of its two sides: whom a message, a buffer or an end misses sleeps for ever, which the checker reports.

use laxity_model::Instant;
use laxity_model::base::bell::Sleeping;
use laxity_model::channels::ring::{
    Control, Memory, Receiver, Refused, Sender, Shape, Side, Tag, end,
};
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A futex as the kernel has it, whose value is compared under the lock that wakers take; and a descriptor that stays raised until it was waited for.
#[derive(Default)]
struct Kernel {
    raised: Mutex<bool>,
    woken: Condvar,
}

struct Common {
    control: Control,
    words: Vec<AtomicU64>,
    kernel: [Kernel; 2],
}

#[derive(Clone)]
struct Here(Arc<Common>);

impl Common {
    fn kernel(&self, side: Side) -> &Kernel {
        &self.kernel[usize::from(side == Side::Receiver)]
    }

    /// Waits for the descriptor.
    fn poll(&self, side: Side) {
        let Kernel { raised, woken } = self.kernel(side);
        let mut raised = raised.lock().unwrap();
        while !*raised {
            raised = woken.wait(raised).unwrap();
        }
        *raised = false;
    }
}

impl Sleeping for Here {
    fn sleep(&self, word: &AtomicU32, seen: u32, _: Option<Instant>) -> bool {
        // Which of the two words it is does not matter: whoever is woken for nothing looks again.
        let Kernel { raised, woken } = &self.0.kernel[0];
        let asleep = raised.lock().unwrap();
        if word.load(Ordering::SeqCst) == seen {
            drop(woken.wait(asleep).unwrap());
        }
        true
    }

    fn wake_all(&self, _: &AtomicU32) {
        let Kernel { raised, woken } = &self.0.kernel[0];
        drop(raised.lock().unwrap());
        woken.notify_all();
    }
}

impl Memory for Here {
    fn control(&self) -> &Control {
        &self.0.control
    }

    fn words(&self) -> &[AtomicU64] {
        &self.0.words
    }

    fn raise(&self, side: Side) {
        let Kernel { raised, woken } = self.0.kernel(side);
        *raised.lock().unwrap() = true;
        woken.notify_all();
    }
}

fn ring(buffers: u32) -> (Sender<Here>, Receiver<Here>) {
    let shape = Shape::new(buffers, 8).unwrap();
    let memory = Here(Arc::new(Common {
        control: Control::default(),
        words: (0..shape.words()).map(|_| AtomicU64::new(0)).collect(),
        kernel: Default::default(),
    }));
    let sender = Sender::new(memory.clone(), shape).unwrap();
    (sender, Receiver::new(memory, shape).unwrap())
}

fn tag(number: u64) -> Tag {
    Tag {
        number,
        stamp: !number,
        flags: 0,
    }
}

/// Every interleaving in which no thread is interrupted more often than three times, beside where it waits.
fn each(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn who_waits_on_a_word_gets_every_message_and_every_buffer() {
    each(|| {
        let (mut sender, mut receiver) = ring(1);
        let other = thread::spawn(move || {
            for number in 0..2_u64 {
                sender.wait(None).unwrap();
                sender.send(&number.to_ne_bytes(), tag(number)).unwrap();
            }
        });
        for number in 0..2 {
            let taken = receiver.wait(None).unwrap().unwrap();
            let (said, mut bytes) = (taken.tag, [0; 8]);
            receiver.copy(&taken, 0, &mut bytes);
            receiver.give_back(taken);
            assert_eq!((said, bytes), (tag(number), number.to_ne_bytes()));
        }
        other.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_descriptor_gets_every_message_and_every_buffer() {
    each(|| {
        let (mut sender, mut receiver) = ring(1);
        let other = thread::spawn(move || {
            for number in 0..2_u64 {
                while sender.ready().is_err() {
                    if sender.rests() {
                        sender.memory().0.poll(Side::Sender);
                    }
                }
                sender.send(&number.to_ne_bytes(), tag(number)).unwrap();
            }
        });
        let mut bytes = [0; 8];
        for number in 0..2 {
            let said = loop {
                match receiver.receive(&mut bytes).unwrap() {
                    Some((_, said)) => break said,
                    None if receiver.rests() => receiver.memory().0.poll(Side::Receiver),
                    None => {}
                }
            };
            assert_eq!((said, bytes), (tag(number), number.to_ne_bytes()));
        }
        other.join().unwrap();
    });
}

#[test]
fn who_is_held_goes_on_when_that_ends() {
    each(|| {
        let (mut sender, mut receiver) = ring(2);
        receiver.hold(true);
        let other = thread::spawn(move || {
            sender.wait(None).unwrap();
            sender.send(&1_u64.to_ne_bytes(), tag(1)).unwrap();
        });
        receiver.hold(false);
        assert_eq!(receiver.wait(None).unwrap().unwrap().tag, tag(1));
        other.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_message_learns_of_the_end_behind_what_was_sent() {
    each(|| {
        let (mut sender, mut receiver) = ring(1);
        let other = thread::spawn(move || {
            sender.send(&0_u64.to_ne_bytes(), tag(0)).unwrap();
            end(sender.memory());
        });
        assert_eq!(receiver.wait(None).unwrap().unwrap().tag, tag(0));
        assert_eq!(receiver.wait(None), Err(Refused::Ended));
        other.join().unwrap();
    });
}

#[test]
fn who_waits_for_a_buffer_learns_of_the_end() {
    each(|| {
        let (mut sender, receiver) = ring(1);
        sender.send(&0_u64.to_ne_bytes(), tag(0)).unwrap();
        let other = thread::spawn(move || end(receiver.memory()));
        assert_eq!(sender.wait(None), Err(Refused::Ended));
        assert!(!sender.rests());
        other.join().unwrap();
    });
}
