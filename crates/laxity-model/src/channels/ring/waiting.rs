//! Who sleeps, and who wakes whom.
//!
//! Whoever is about to sleep says so and then looks once more; whoever has done something then looks whether the other sleeps. A fence between the two of each keeps both from missing the other.

use super::{Memory, Side, Written};
use crate::Instant;
use crate::base::atomic::{Ordering, fence};

/// How a side sleeps, in its word.
const AWAKE: u32 = 0;
const ON_WORD: u32 = 1;
const ON_DESCRIPTOR: u32 = 2;

/// Something has changed for this side: it is woken if it sleeps.
pub(super) fn rouse(memory: &impl Memory, side: Side) {
    let Written { sleeps, .. } = memory.control().of(side);
    fence(Ordering::SeqCst);
    if sleeps.load(Ordering::Relaxed) == AWAKE {
        return;
    }
    match sleeps.swap(AWAKE, Ordering::Relaxed) {
        AWAKE => {}
        ON_DESCRIPTOR => memory.raise(side),
        _ => memory.wake_all(sleeps),
    }
}

/// Says that this side waits for its descriptor from now on; whether it may. Where there is something for it already, it stays awake.
pub(super) fn rests<O, M: Memory>(
    own: &mut O,
    (memory, side): (impl Fn(&O) -> &M, Side),
    is_there: impl FnOnce(&mut O) -> bool,
) -> bool {
    says(memory(own), side, ON_DESCRIPTOR);
    let rests = !is_there(own);
    if !rests {
        says(memory(own), side, AWAKE);
    }
    rests
}

/// Waits until it is found; `None` if `until` comes first.
pub(super) fn wait<O, M: Memory, T>(
    own: &mut O,
    (memory, side): (impl Fn(&O) -> &M, Side),
    until: Option<Instant>,
    mut look: impl FnMut(&mut O) -> Option<T>,
) -> Option<T> {
    if let Some(found) = look(own) {
        return Some(found);
    }
    let found = loop {
        says(memory(own), side, ON_WORD);
        if let Some(found) = look(own) {
            break Some(found);
        }
        let sleeps = &memory(own).control().of(side).sleeps;
        if !memory(own).sleep(sleeps, ON_WORD, until) {
            break look(own);
        }
    };
    says(memory(own), side, AWAKE);
    found
}

fn says(memory: &impl Memory, side: Side, how: u32) {
    memory
        .control()
        .of(side)
        .sleeps
        .store(how, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// Ends a ring, by whichever side or any thread of it: nothing is sent any more, what was sent is there to be taken, and nobody waits. For who learns elsewhere that the other side is gone.
pub fn end(memory: &impl Memory) {
    for side in [Side::Sender, Side::Receiver] {
        memory.control().of(side).ended.store(1, Ordering::Release);
    }
    fence(Ordering::SeqCst);
    for side in [Side::Sender, Side::Receiver] {
        let Written { sleeps, .. } = memory.control().of(side);
        // Whatever stands there: who was killed may have written that this side is awake, and not woken it.
        sleeps.store(AWAKE, Ordering::Relaxed);
        memory.wake_all(sleeps);
        memory.raise(side);
    }
}

/// Whether it was ended, as it stands among what the other side of this one writes: that is looked at anyway.
pub(super) fn is_ended(other: &Written) -> bool {
    other.ended.load(Ordering::Acquire) != 0
}
