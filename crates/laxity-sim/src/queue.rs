//! First-in first-out queues of activities over one array of links, so that queueing never allocates.
//!
//! An activity waits in at most one queue at a time: for a semaphore, for its interrupt to be accepted, or as a deferred call.

const NOBODY: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u16,
    previous: u16,
}

/// One link for each activity.
#[derive(Debug)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    pub(crate) fn new(activities: usize) -> Self {
        let link = Link {
            next: NOBODY,
            previous: NOBODY,
        };
        Self(vec![link; activities])
    }
}

/// The two ends of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    first: u16,
    last: u16,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self {
        first: NOBODY,
        last: NOBODY,
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NOBODY
    }

    pub(crate) fn push(&mut self, links: &mut Links, activity: u16) {
        links.0[usize::from(activity)] = Link {
            next: NOBODY,
            previous: self.last,
        };
        if self.last == NOBODY {
            self.first = activity;
        } else {
            links.0[usize::from(self.last)].next = activity;
        }
        self.last = activity;
    }

    pub(crate) fn pop(&mut self, links: &mut Links) -> Option<u16> {
        let first = self.first;
        if first == NOBODY {
            return None;
        }
        self.remove(links, first);
        Some(first)
    }

    /// Takes an activity out that is in this queue.
    pub(crate) fn remove(&mut self, links: &mut Links, activity: u16) {
        let Link { next, previous } = links.0[usize::from(activity)];
        if previous == NOBODY {
            self.first = next;
        } else {
            links.0[usize::from(previous)].next = next;
        }
        if next == NOBODY {
            self.last = previous;
        } else {
            links.0[usize::from(next)].previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_also_after_somebody_left_the_middle_or_an_end() {
        for leaver in 0..3 {
            let (mut links, mut queue) = (Links::new(3), Queue::EMPTY);
            for activity in 0..3 {
                queue.push(&mut links, activity);
            }
            queue.remove(&mut links, leaver);
            let rest: Vec<u16> = std::iter::from_fn(|| queue.pop(&mut links)).collect();
            let expected: Vec<u16> = (0..3).filter(|a| *a != leaver).collect();
            assert_eq!(rest, expected);
            assert!(queue.is_empty());
        }
    }
}
