//! The least pairs of rate and burst that cover the messages of a flow, and the one of them that is proposed.

use laxity_model::Span;
use laxity_model::channels::fit::{Arrival, FitError, Rate, Recorded};

use super::messages::{Grouping, Message, messages};
use super::{Selected, lasts};

pub use super::lines::{render, snippet, to_json};

/// A burst, and what goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// Messages.
    pub burst: u32,
    /// The least rate of messages that covers the flow with this burst.
    pub rate: Rate,
    /// So long before its time a message comes at the most, policed by both: it is due so much later than one that came in time.
    pub earliness: Span,
}

/// What a flow is, and what covers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fitted {
    /// Which packets these are.
    pub filter: String,
    /// Of so many flows.
    pub flows: usize,
    /// Pieces of fragmented packets that did not match, having no ports.
    pub pieces: u64,
    /// How packets were made messages.
    pub grouping: Grouping,
    /// How many packets.
    pub packets: u64,
    /// How many messages.
    pub messages: u64,
    /// What they carry.
    pub bytes: u64,
    /// Bytes of the largest message.
    pub largest: u64,
    /// Packets of the one that has the most.
    pub most_packets: u32,
    /// From the first packet to the last.
    pub lasts: Span,
    /// How fast messages came in the mean.
    pub mean: Rate,
    /// By growing bursts, from the least there is to the one that the mean rate, or less, is enough for.
    pub pairs: Vec<Pair>,
    /// The one that is proposed, or was asked for.
    pub chosen: Pair,
}

/// Why nothing covers a flow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PairsError {
    /// Nothing can be fitted at all.
    #[error("nothing can be told of this flow: {0}")]
    Fit(#[from] FitError),
    /// There is but one message, or all began at one instant.
    #[error(
        "nothing can be told of how fast messages come: all of it is one message, or came at one instant; record for longer, or group packets otherwise (`--message`)"
    )]
    NoTime,
    /// The burst that was asked for, and the least there is.
    #[error(
        "{1} messages come at one instant, so no rate covers them with a burst of {0}; write {1} or more"
    )]
    Burst(u32, u64),
}

/// The pairs that cover these packets. Where a burst is asked for, its pair is the chosen one; else that of the least burst with which a rate is enough that is no more than
/// a tenth above the mean.
///
/// # Errors
///
/// [`PairsError`].
pub fn fit(
    selected: &Selected,
    grouping: Grouping,
    burst: Option<u32>,
) -> Result<Fitted, PairsError> {
    let messages = messages(&selected.packets, grouping);
    let arrival = |message: &Message| Arrival {
        at: message.at,
        amount: 1,
    };
    let recorded = Recorded::new(messages.iter().map(arrival).collect())?;
    let mean = recorded.mean().ok_or(PairsError::NoTime)?;
    let mut pairs: Vec<Pair> = bursts(&recorded, mean)
        .filter_map(|burst| pair(&recorded, burst))
        .collect();
    let chosen = match burst {
        Some(burst) => {
            let least = recorded.least_burst();
            let asked = pair(&recorded, burst).ok_or(PairsError::Burst(burst, least))?;
            if let Err(place) = pairs.binary_search_by_key(&burst, |pair| pair.burst) {
                pairs.insert(place, asked);
            }
            asked
        }
        None => proposed(&pairs, mean).ok_or(PairsError::NoTime)?,
    };
    let largest = messages.iter().map(|message| message.bytes).max();
    let most_packets = messages.iter().map(|message| message.packets).max();
    Ok(Fitted {
        filter: selected.filter.clone(),
        flows: selected.flows,
        pieces: selected.pieces,
        grouping,
        packets: selected.packets.len() as u64,
        messages: messages.len() as u64,
        bytes: messages.iter().map(|message| message.bytes).sum(),
        largest: largest.unwrap_or(0),
        most_packets: most_packets.unwrap_or(0),
        lasts: lasts(&selected.packets),
        mean,
        pairs,
        chosen,
    })
}

/// From the least burst to the first for which the mean rate is enough: each, and from 8 on each half as large again.
fn bursts(recorded: &Recorded, mean: Rate) -> impl Iterator<Item = u32> {
    let last = recorded.burst(mean).max(recorded.least_burst());
    let next = move |burst: &u64| {
        let next = match burst {
            0..8 => burst + 1,
            burst => burst + burst / 2,
        };
        (*burst < last).then_some(next.min(last))
    };
    std::iter::successors(Some(recorded.least_burst()), next)
        .map_while(|burst| u32::try_from(burst).ok())
}

/// `None` where no rate covers the flow with this burst.
fn pair(recorded: &Recorded, burst: u32) -> Option<Pair> {
    let rate = recorded.rate(burst.into())?;
    let stated = rate.stated(burst, Span::ZERO).ok()?;
    Some(Pair {
        burst,
        rate,
        earliness: recorded.earliness(stated),
    })
}

/// The first that is no more than a tenth above the mean, or else the last.
fn proposed(pairs: &[Pair], mean: Rate) -> Option<Pair> {
    let mut near = pairs
        .iter()
        .filter(|pair| beside(pair.rate, mean) <= 1_100_000);
    near.next().or(pairs.last()).copied()
}

/// A rate beside another one, in parts per million, rounded down.
pub(super) fn beside(rate: Rate, other: Rate) -> u64 {
    let nanos = |rate: Rate| u128::from(rate.period().as_nanos());
    let amount = |rate: Rate| u128::from(rate.amount());
    // Both are of messages that a file has, which 40 bits count.
    let (one, all) = (amount(rate) * nanos(other), amount(other) * nanos(rate));
    let ppm = one.saturating_mul(1_000_000).checked_div(all);
    ppm.map_or(0, |ppm| u64::try_from(ppm).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use laxity_model::Instant;

    use super::super::messages::Packet;
    use super::*;

    fn selected(times: impl IntoIterator<Item = u64>) -> Selected {
        let packet = |at| Packet {
            at: Instant::from_nanos(at),
            bytes: 100,
            rtp: None,
        };
        Selected {
            packets: times.into_iter().map(packet).collect(),
            flows: 1,
            filter: "udp".to_owned(),
            pieces: 0,
        }
    }

    fn fitted(times: impl IntoIterator<Item = u64>) -> Fitted {
        fit(&selected(times), Grouping::Each, None).unwrap()
    }

    #[test]
    fn a_steady_flow_has_one_pair_and_one_that_stutters_is_given_a_burst() {
        let steady = fitted((0..100).map(|number| number * 1_000));
        assert_eq!(steady.pairs.len(), 1);
        assert_eq!((steady.chosen.burst, steady.chosen.rate), (1, steady.mean));
        assert_eq!(steady.chosen.earliness, Span::ZERO);
        // Every tenth comes with the one behind it.
        let stutters = (0..100_u64).map(|number| (number + u64::from(number % 10 == 0)) * 1_000);
        let stutters = fitted(stutters);
        assert_eq!(stutters.chosen.burst, 2);
        assert!(stutters.chosen.rate <= Rate::new(11, Span::from_nanos(10_000)).unwrap());
        assert!(stutters.chosen.earliness > Span::ZERO);
    }

    #[test]
    fn rates_fall_to_the_mean_as_bursts_grow_and_the_last_burst_is_one_that_it_is_enough_for() {
        // A thousand at once every second, ten seconds long, and a thousand in the last one's place.
        let times = (0..10_u64).flat_map(|second| {
            (0..1_000_u64).map(move |number| second * 1_000_000_000 + number * 10_000)
        });
        let fitted = fitted(times);
        let pairs = &fitted.pairs;
        assert!(pairs.len() < 30, "{pairs:?}");
        for both in pairs.windows(2) {
            assert!(both[0].burst < both[1].burst && both[1].rate < both[0].rate);
        }
        let [.., before, last] = pairs.as_slice() else {
            panic!("{pairs:?}");
        };
        assert!(before.rate > fitted.mean && last.rate <= fitted.mean);
    }

    #[test]
    fn a_burst_that_is_asked_for_is_the_chosen_one_and_has_its_place() {
        let times: Vec<u64> = (0..100).flat_map(|number| [number * 1_000; 3]).collect();
        let selected = selected(times);
        let asked = fit(&selected, Grouping::Each, Some(50)).unwrap();
        assert_eq!(asked.chosen.burst, 50);
        let bursts: Vec<u32> = asked.pairs.iter().map(|pair| pair.burst).collect();
        assert!(bursts.is_sorted() && bursts.contains(&50), "{bursts:?}");
        let refused = fit(&selected, Grouping::Each, Some(2));
        assert_eq!(refused, Err(PairsError::Burst(2, 3)));
    }

    #[test]
    fn of_one_instant_nothing_can_be_told() {
        for times in [vec![], vec![5], vec![5, 5]] {
            assert!(fit(&selected(times), Grouping::Each, None).is_err());
        }
        let gap = Grouping::Gap(Span::from_secs(1));
        assert_eq!(
            fit(&selected([1, 2, 3]), gap, None),
            Err(PairsError::NoTime)
        );
    }
}
