//! The stack of numbers under every interleaving of its threads that the memory model allows.

use laxity_model::base::stack::Stack;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// A stack and what each of its numbers stands for, which only who has the number touches.
struct Things {
    stack: Stack,
    things: [AtomicU64; 3],
}

impl Things {
    fn put(&self, number: u32) {
        self.things[number as usize].store(u64::from(number) + 7, Ordering::Relaxed);
        self.stack.push(number);
    }

    fn check(&self, number: u32) -> u32 {
        let thing = self.things[number as usize].swap(0, Ordering::Relaxed);
        assert_eq!(thing, u64::from(number) + 7, "taken before it was put");
        number
    }
}

fn two_and_one(take: fn(&Things) -> Vec<u32>) {
    loom::model(move || {
        let things = Arc::new(Things {
            stack: Stack::new(3).unwrap(),
            things: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
        });
        things.put(0);
        let other = Arc::clone(&things);
        let putter = thread::spawn(move || {
            other.put(1);
            let mine = other.stack.pop().map(|number| other.check(number));
            other.put(2);
            mine
        });
        let mut taken = take(&things);
        taken.extend(putter.join().unwrap());
        taken.extend(things.stack.take_all().map(|number| things.check(number)));
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
    });
}

#[test]
fn what_two_threads_take_one_by_one_is_taken_once() {
    two_and_one(|things| {
        let one = |_| things.stack.pop().map(|number| things.check(number));
        (0..2).filter_map(one).collect()
    });
}

#[test]
fn what_is_taken_together_while_another_puts_and_takes_is_taken_once() {
    two_and_one(|things| {
        let all = things.stack.take_all();
        all.map(|number| things.check(number)).collect()
    });
}
