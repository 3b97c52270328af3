//! Who hears what a card sends: beyond it, outside the machine.

use std::sync::Arc;

use laxity_model::Instant;

use super::report::Report;
use super::ring::Card;
use super::stream::Format;

/// Checks what a card has sent.
pub trait Listener: Send {
    /// Block `number`, counted from 0 as the driver's calls are, has gone out. Returns whether its frame's CRC was right.
    fn hear(&mut self, number: u64, samples: &[i16]) -> bool;
}

/// Lets somebody hear each block a block after it has gone out, when nothing can change it any more: all that are due at an instant of
/// the card's time. Returns when to listen again.
pub(super) fn listening(
    card: Arc<Card>,
    format: Format,
    report: Arc<Report>,
    mut listener: Box<dyn Listener>,
) -> impl FnMut(Instant) -> Instant + Send + 'static {
    let (mut heard, mut samples) = (0, vec![0; format.block as usize]);
    let setting = format.setting();
    move |now| {
        loop {
            // Before the first call's block goes out what the output was filled with.
            let place = heard + format.silent_blocks();
            let due = Instant::ZERO + setting.duration(setting.samples_in(place + 2));
            if now < due {
                return due;
            }
            let first = setting.samples_in(place);
            for (index, sample) in (first..).zip(&mut samples) {
                *sample = card.departed(0, index);
            }
            match listener.hear(heard, &samples) {
                true => report.frames_good.add(1),
                false => report.hear_wrong(heard),
            }
            heard += 1;
        }
    }
}
