//! What a cable and its cards do by themselves: a body outside the machine.

use laxity_model::{Body, Context, Instant, SemaphoreId, Step};

use super::cable::Cable;

/// The semaphores that are signalled for the interrupts of one card's queues, in order; none for a card that is only polled.
type Lines = Vec<SemaphoreId>;

impl Cable {
    /// The hardware, for [outside the machine](laxity_model::Placement::External). It signals a semaphore when that queue's interrupt is
    /// raised; `doorbell` is to be signalled by whoever sends a frame or unmasks an interrupt, or has the wire go down or up.
    #[must_use]
    pub fn hardware(&self, doorbell: SemaphoreId, lines: [Lines; 2]) -> impl Body + use<> {
        let cable = self.clone();
        move |context: &mut dyn Context| {
            let now = context.now();
            match cable.happen(now, &lines, |line| context.signal(line)) {
                Some(next) => Step::WaitUntil(doorbell, next),
                None => Step::Wait(doorbell),
            }
        }
    }

    /// Raises what is due, and tells when something is next.
    fn happen(
        &self,
        now: Instant,
        lines: &[Lines; 2],
        mut raise: impl FnMut(SemaphoreId),
    ) -> Option<Instant> {
        let mut state = self.at(now);
        let mut next = state.next();
        let downs = state.downs;
        for (side, lines) in state.sides.iter_mut().zip(lines) {
            let moderation = side.shape.moderation;
            for (ring, line) in side.queues.iter_mut().zip(lines) {
                let news = (!ring.is_masked && ring.told < downs).then_some(now);
                match news.or_else(|| ring.due(moderation)) {
                    Some(due) if due <= now => {
                        ring.is_masked = true;
                        raise(*line);
                    }
                    due => next = next.into_iter().chain(due).min(),
                }
            }
        }
        next
    }
}
