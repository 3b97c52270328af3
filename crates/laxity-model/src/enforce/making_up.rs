//! Making up: a slot that nobody's follows is prolonged by what others above it have taken from it.
//!
//! What takes time from a slot is the clock's interrupts, the witness, the observer, and a device's handlers. A holder that lacks much more
//! than these take was not there to use its slot, or the machine stood still: neither is made up for.

use crate::{Instant, Service, Span};

/// A slot that lacks more than this part of its length is not prolonged.
const MADE_UP_PART: u64 = 8;
/// The kernel counts what interrupt handlers take as the holder's own service: on the machines measured, between a 45th and an 80th of a
/// slot in which the witness wakes every millisecond.
const UNSEEN_PART: u64 = 64;
/// Less than this is not worth a wake-up, which costs about as much.
const MADE_UP_LEAST: Span = Span::from_micros(3);

/// Follows the slot under way, and tells until when it is to be prolonged at its end.
///
/// ```
/// use laxity_model::enforce::MakingUp;
/// use laxity_model::{Instant, Service, Span};
///
/// let mut making_up = MakingUp::default();
/// let (begin, edge) = (Instant::from_millis(10), Instant::from_millis(11));
/// making_up.begin(begin, Service::from_millis(5));
/// // It received 0.95 ms of 1 ms and a 64th.
/// let received = Service::from_micros(5_950);
/// let far = Instant::from_millis(20);
/// let until = making_up.until(edge, received, far, edge);
/// assert_eq!(until, Some(edge + Span::from_nanos(65_625)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MakingUp {
    /// The slot under way: when it began by the table, and what its holder had received before.
    begun: Option<(Instant, Service)>,
}

impl MakingUp {
    /// A slot begins at this edge of the table; its holder has received `service` so far.
    pub const fn begin(&mut self, edge: Instant, service: Service) {
        self.begun = Some((edge, service));
    }

    /// The slot under way is over, or there is none.
    pub const fn end(&mut self) {
        self.begun = None;
    }

    /// Whether a slot is under way.
    pub const fn is_under_way(&self) -> bool {
        self.begun.is_some()
    }

    /// Until when the slot that ends at `edge` is to be prolonged, asked at `now`, when its holder has received `received` in all;
    /// `None` if it is not to be. It never goes past `latest`, when the next slot begins to be prepared.
    pub fn until(
        &self,
        edge: Instant,
        received: Service,
        latest: Instant,
        now: Instant,
    ) -> Option<Instant> {
        let (begun, before) = self.begun?;
        let length = edge.saturating_since(begun).as_nanos();
        let wanted = Service::from_nanos(length.saturating_add(length / UNSEEN_PART));
        let lacking = wanted
            .saturating_sub(received.saturating_sub(before))
            .as_dedicated_span();
        if lacking <= MADE_UP_LEAST || lacking.as_nanos() > length / MADE_UP_PART {
            return None;
        }
        let until = now.checked_add(lacking)?.min(latest);
        (until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Instant = Instant::from_millis(10);
    const EDGE: Instant = Instant::from_millis(11);

    /// What is decided at the edge of a slot of 1 ms whose holder received so much.
    fn until(received_us: u64, latest: Instant, now: Instant) -> Option<Instant> {
        let mut making_up = MakingUp::default();
        let before = Service::from_millis(7);
        making_up.begin(BEGIN, before);
        let received = before + Service::from_micros(received_us);
        making_up.until(EDGE, received, latest, now)
    }

    /// Received of 1 ms, and whether something is made up. A 64th of it is unseen: 1,015.6 µs are wanted, and at most 125 are made up.
    #[test]
    fn little_is_not_worth_it_and_much_was_not_wanted() {
        let far = Instant::from_millis(20);
        for (received_us, made_up) in [
            (1_016, false),
            (1_013, false),
            (1_012, true),
            (1_000, true),
            (891, true),
            (890, false),
            (0, false),
        ] {
            let decided = until(received_us, far, EDGE);
            assert_eq!(decided.is_some(), made_up, "{received_us}");
        }
        let exactly = EDGE + Span::from_nanos(15_625);
        assert_eq!(until(1_000, far, EDGE), Some(exactly));
    }

    #[test]
    fn the_next_slots_preparation_is_left_alone() {
        let latest = EDGE + Span::from_micros(5);
        assert_eq!(until(950, latest, EDGE), Some(latest));
        assert_eq!(until(950, EDGE, EDGE), None);
        assert_eq!(until(950, latest, EDGE + Span::from_micros(6)), None);
    }

    #[test]
    fn nothing_is_made_up_where_no_slot_was_under_way() {
        let mut making_up = MakingUp::default();
        assert_eq!(
            making_up.until(EDGE, Service::ZERO, Instant::MAX, EDGE),
            None
        );
        making_up.begin(BEGIN, Service::ZERO);
        making_up.end();
        assert!(!making_up.is_under_way());
        let received = Service::from_micros(950);
        assert_eq!(making_up.until(EDGE, received, Instant::MAX, EDGE), None);
    }
}
