//! What an application is told of a channel that ends with it, in front of each message in its [ring](laxity_model::channels::ring): which message it is and whether it was in time, or that some never came.
//!
//! Both sides are of one host, so numbers are in its order of bytes. An application believes its node.

use laxity_model::Span;
use laxity_model::channels::clocks::{Delivered, Place, Timeliness};

use super::path::{Event, Lane, Received};

/// Bytes of what stands in front of a message.
pub const LENGTH: usize = 5 * WORD;
const WORD: usize = size_of::<u64>();

/// A message, or why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A message is behind this.
    Message {
        /// Which way it went.
        lane: Lane,
        /// Which of its lane's messages, from 0.
        number: u64,
        /// So many are missing between the one before and it.
        gap: u64,
        /// Whether it was in time; `None`: it was never due.
        delivered: Option<Delivered>,
    },
    /// This one was late, by so many nanoseconds at the least, and who took too long if that is known. It may have been discarded.
    Late {
        /// Which.
        number: u64,
        /// By how much.
        by: u64,
        /// Who took too long.
        guilty: Option<Place>,
    },
    /// So many from this one on were lost.
    Lost {
        /// Which of the two lanes.
        lane: Lane,
        /// The first.
        first: u64,
        /// So many.
        count: u64,
    },
}

const MESSAGE: u8 = 1;
const LATE: u8 = 2;
const LOST: u8 = 3;

const NEVER_DUE: u8 = 0;
const TIMELINESS: [Timeliness; 3] = [
    Timeliness::InTime,
    Timeliness::Late,
    Timeliness::WithinError,
];

impl Told {
    /// Of a message that was received.
    #[must_use]
    pub const fn received(message: &Received) -> Self {
        Self::Message {
            lane: message.lane,
            number: message.message,
            gap: message.gap,
            delivered: message.delivered,
        }
    }

    /// Of what was missed.
    #[must_use]
    pub const fn missed(event: Event) -> Self {
        match event {
            Event::Late {
                message,
                by,
                guilty,
            } => Self::Late {
                number: message,
                by,
                guilty,
            },
            Event::Lost {
                lane, first, count, ..
            } => Self::Lost { lane, first, count },
        }
    }

    /// As it stands in front.
    #[must_use]
    pub fn bytes(&self) -> [u8; LENGTH] {
        let (kinds, words) = match *self {
            Self::Message {
                lane,
                number,
                gap,
                delivered,
            } => {
                let timeliness = delivered.map(|one| one.timeliness);
                let code = TIMELINESS.iter().position(|one| Some(*one) == timeliness);
                let code = code.map_or(NEVER_DUE, |place| place as u8 + 1);
                let [at, of] = place(delivered.and_then(|one| one.late));
                let (laxity, error) = delivered.map_or((0, 0), |one| {
                    (one.laxity.cast_unsigned(), one.error.as_nanos())
                });
                (
                    [MESSAGE, lane as u8, code, at, of],
                    [number, gap, laxity, error],
                )
            }
            Self::Late { number, by, guilty } => {
                let [at, of] = place(guilty);
                ([LATE, 0, 0, at, of], [number, by, 0, 0])
            }
            Self::Lost { lane, first, count } => {
                ([LOST, lane as u8, 0, 0, 0], [first, count, 0, 0])
            }
        };
        let mut bytes = [0; LENGTH];
        bytes[..kinds.len()].copy_from_slice(&kinds);
        for (into, word) in bytes[WORD..].chunks_exact_mut(WORD).zip(words) {
            into.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// As it was written; `None` where nobody would have written that.
    #[must_use]
    pub fn read(bytes: &[u8; LENGTH]) -> Option<Self> {
        let [kind, lane, code, at, of, ..] = *bytes;
        let lane = *Lane::ALL.get(usize::from(lane))?;
        let word = |number: usize| {
            let word = bytes[WORD * (number + 1)..].first_chunk();
            word.map(|word| u64::from_ne_bytes(*word))
        };
        let [first, second, third, fourth] = [word(0)?, word(1)?, word(2)?, word(3)?];
        let late = place_of(at, of)?;
        let told = match kind {
            MESSAGE => Self::Message {
                lane,
                number: first,
                gap: second,
                delivered: match code.checked_sub(1) {
                    None => None,
                    Some(code) => Some(Delivered {
                        timeliness: *TIMELINESS.get(usize::from(code))?,
                        laxity: third.cast_signed(),
                        error: Span::from_nanos(fourth),
                        late,
                    }),
                },
            },
            LATE => Self::Late {
                number: first,
                by: second,
                guilty: late,
            },
            LOST => Self::Lost {
                lane,
                first,
                count: second,
            },
            _ => return None,
        };
        Some(told)
    }
}

const fn place(place: Option<Place>) -> [u8; 2] {
    match place {
        None => [0, 0],
        Some(Place::Host(host)) => [1, host],
        Some(Place::Link(link)) => [2, link],
    }
}

fn place_of(at: u8, of: u8) -> Option<Option<Place>> {
    match at {
        0 => Some(None),
        1 => Some(Some(Place::Host(of))),
        2 => Some(Some(Place::Link(of))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane() -> impl Strategy<Value = Lane> {
        prop::sample::select(&Lane::ALL[..])
    }

    fn somebody() -> impl Strategy<Value = Option<Place>> {
        let place = (any::<bool>(), any::<u8>());
        prop::option::of(place.prop_map(|(is_host, number)| match is_host {
            true => Place::Host(number),
            false => Place::Link(number),
        }))
    }

    fn delivered() -> impl Strategy<Value = Delivered> {
        let timeliness = prop::sample::select(&TIMELINESS[..]);
        (timeliness, any::<i64>(), any::<u64>(), somebody()).prop_map(
            |(timeliness, laxity, error, late)| Delivered {
                timeliness,
                laxity,
                error: Span::from_nanos(error),
                late,
            },
        )
    }

    fn told() -> impl Strategy<Value = Told> {
        let message = (lane(), any::<[u64; 2]>(), prop::option::of(delivered()));
        let message = message.prop_map(|(lane, [number, gap], delivered)| Told::Message {
            lane,
            number,
            gap,
            delivered,
        });
        let late = (any::<[u64; 2]>(), somebody());
        let late = late.prop_map(|([number, by], guilty)| Told::Late { number, by, guilty });
        let lost = (lane(), any::<[u64; 2]>());
        let lost = lost.prop_map(|(lane, [first, count])| Told::Lost { lane, first, count });
        prop_oneof![message, late, lost]
    }

    proptest! {
        #[test]
        fn what_is_told_is_what_is_read(told in told()) {
            prop_assert_eq!(Told::read(&told.bytes()), Some(told));
        }

        #[test]
        fn whatever_is_read_would_have_been_written_so(kinds in any::<[u8; 5]>(), words in any::<[u64; 4]>()) {
            let mut bytes = [0; LENGTH];
            bytes[..5].copy_from_slice(&kinds.map(|kind| kind % 5));
            for (into, word) in bytes[WORD..].chunks_exact_mut(WORD).zip(words) {
                into.copy_from_slice(&word.to_ne_bytes());
            }
            if let Some(told) = Told::read(&bytes) {
                prop_assert_eq!(Told::read(&told.bytes()), Some(told));
            }
        }
    }
}
