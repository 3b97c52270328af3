//! What is there by number, for threads that must not wait for each other: handlers look here.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::RTS_MOST;

/// So many there can be.
const MOST: usize = RTS_MOST as usize;

/// Those that are there. Nobody waits for anybody, and nothing is allocated but where one is taken out while somebody looks.
pub(super) struct Table<T> {
    /// Each is a count of its `Arc`, or null.
    places: [AtomicPtr<T>; MOST],
    /// So many threads may have read a place without having counted what they found there.
    looking: AtomicUsize,
    /// What was taken out while somebody looked, the last first.
    gone: AtomicPtr<Gone<T>>,
}

struct Gone<T> {
    what: Arc<T>,
    next: *mut Self,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            places: [const { AtomicPtr::new(ptr::null_mut()) }; MOST],
            looking: AtomicUsize::new(0),
            gone: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

impl<T: Send + Sync> Table<T> {
    /// Puts it at the first place that is free, and tells which; gives it back where there is none.
    pub(super) fn put(&self, what: Arc<T>) -> Result<usize, Arc<T>> {
        let new = Arc::into_raw(what).cast_mut();
        let null = ptr::null_mut();
        let set = Ordering::SeqCst;
        let takes = |place: &AtomicPtr<T>| place.compare_exchange(null, new, set, set).is_ok();
        // SAFETY: it was made above, and nobody else has it.
        let refused = || unsafe { Arc::from_raw(new.cast_const()) };
        self.places.iter().position(takes).ok_or_else(refused)
    }

    /// What is there.
    pub(super) fn get(&self, place: usize) -> Option<Arc<T>> {
        let place = self.places.get(place)?;
        self.looking.fetch_add(1, Ordering::SeqCst);
        let there = place.load(Ordering::SeqCst).cast_const();
        // SAFETY: it is a count of an `Arc`, which is not given up while somebody looks.
        let found = (!there.is_null()).then(|| unsafe {
            Arc::increment_strong_count(there);
            Arc::from_raw(there)
        });
        let is_last = self.looking.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && !self.gone.load(Ordering::SeqCst).is_null() {
            self.clear();
        }
        found
    }

    /// Takes it out, where this is there; `false` if it is not.
    pub(super) fn take(&self, place: usize, known: &Arc<T>) -> bool {
        let own = Arc::as_ptr(known).cast_mut();
        let Some(place) = self.places.get(place) else {
            return false;
        };
        // While it is known nothing else has its address.
        let (null, set) = (ptr::null_mut(), Ordering::SeqCst);
        let is_taken = place.compare_exchange(own, null, set, set).is_ok();
        if is_taken {
            // SAFETY: the table's own count, which nobody finds any more.
            self.release(unsafe { Arc::from_raw(own.cast_const()) });
        }
        is_taken
    }

    /// All that are there, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, Arc<T>)> {
        (0..MOST).filter_map(|place| Some((place, self.get(place)?)))
    }

    /// Gives up the count of one that nobody finds any more, when nobody looks.
    fn release(&self, what: Arc<T>) {
        // Whoever looks from now on finds another one.
        if self.looking.load(Ordering::SeqCst) == 0 {
            return drop(what);
        }
        let next = ptr::null_mut();
        let gone = Box::into_raw(Box::new(Gone { what, next }));
        self.keep(gone, gone);
        self.clear();
    }

    /// Puts a chain of them before those that are kept.
    fn keep(&self, first: *mut Gone<T>, last: *mut Gone<T>) {
        let (mut next, set) = (self.gone.load(Ordering::SeqCst), Ordering::SeqCst);
        loop {
            // SAFETY: until it is put, the chain is the caller's alone.
            unsafe { (*last).next = next };
            match self.gone.compare_exchange(next, first, set, set) {
                Ok(_) => return,
                Err(now) => next = now,
            }
        }
    }

    /// Gives up what is kept, unless somebody looks: then he does that, or the next.
    fn clear(&self) {
        let mut first = self.gone.swap(ptr::null_mut(), Ordering::SeqCst);
        if first.is_null() {
            return;
        }
        // All of these were taken out before this is read.
        if self.looking.load(Ordering::SeqCst) != 0 {
            let mut last = first;
            loop {
                // SAFETY: the chain is this call's alone since the swap.
                let next = unsafe { (*last).next };
                if next.is_null() {
                    return self.keep(first, last);
                }
                last = next;
            }
        }
        while !first.is_null() {
            // SAFETY: as above, and each was made by a box.
            let gone = unsafe { Box::from_raw(first) };
            first = gone.next;
            drop(gone.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;
    use std::thread;

    /// Threads look while others put and take out: what one finds is whole, and in the end nothing is left.
    #[test]
    fn what_is_found_is_whole_and_nothing_is_left() {
        let table = Table::<String>::default();
        let known: Vec<Weak<String>> = thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let come_and_go = (0..20_000).map(|number| {
                            let one = Arc::new(format!("number {number}"));
                            let place = table.put(Arc::clone(&one)).unwrap();
                            assert!(table.take(place, &one));
                            assert!(!table.take(place, &one));
                            Arc::downgrade(&one)
                        });
                        come_and_go.collect::<Vec<_>>()
                    })
                })
                .collect();
            for _ in 0..2 {
                scope.spawn(|| {
                    for turn in 0..40_000 {
                        if let Some(found) = table.get(turn % 3) {
                            assert!(found.starts_with("number "), "{found}");
                        }
                    }
                });
            }
            let all = writers.into_iter().map(|writer| writer.join().unwrap());
            all.flatten().collect()
        });
        assert_eq!(table.all().count(), 0);
        assert!(known.iter().all(|one| one.upgrade().is_none()));
    }

    #[test]
    fn the_first_free_place_is_taken_as_long_as_there_is_one() {
        let table = Table::default();
        let all: Vec<_> = (0..MOST).map(Arc::new).collect();
        for one in &all {
            assert_eq!(table.put(Arc::clone(one)), Ok(**one));
        }
        assert_eq!(table.put(Arc::new(MOST)), Err(Arc::new(MOST)));
        assert_eq!(table.get(MOST), None);
        assert!(!table.take(5, &all[6]) && table.take(6, &all[6]));
        assert_eq!(table.put(Arc::new(7)), Ok(6));
    }
}
