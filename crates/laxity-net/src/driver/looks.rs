//! When to look again whether frames have left an interface that does not tell, or there is room for one by now.

use laxity_model::{Instant, Span};

/// After the first look a driver looks again after so long, and then twice as long each time.
const APART: [Span; 2] = [Span::from_micros(100), Span::from_millis(10)];

pub(super) struct Looks(Span);

impl Looks {
    pub(super) const fn new() -> Self {
        Self(APART[0])
    }

    /// When, after a poll that handed over so many frames and left so many below, or put back. At once where it handed over any: most have left by then.
    pub(super) fn next(&mut self, now: Instant, sent: usize, open: usize) -> Option<Instant> {
        if sent > 0 || open == 0 {
            self.0 = APART[0];
            return (sent > 0).then_some(now);
        }
        let next = now.checked_add(self.0);
        self.0 = (self.0 * 2).min(APART[1]);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_at_once_and_then_more_and_more_seldom() {
        let mut looks = Looks::new();
        let now = Instant::from_millis(5);
        assert_eq!(looks.next(now, 3, 3), Some(now));
        let micros = |at| Some(now + Span::from_micros(at));
        for apart in [100, 200, 400] {
            assert_eq!(looks.next(now, 0, 2), micros(apart));
        }
        (0..9).for_each(|_| assert!(looks.next(now, 0, 1) > Some(now)));
        assert_eq!(looks.next(now, 0, 1), micros(10_000));
        assert_eq!(looks.next(now, 0, 0), None);
        assert_eq!(looks.next(now, 0, 1), micros(100));
    }
}
