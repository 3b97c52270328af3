//! A channel's way from host to host: all hops of it, or a no that says what would be granted.

use alloc::vec::Vec;

use super::Traffic;
use super::hop::{Arrival, Held, Hop, Lack};
use super::nearest::{self, Nearest};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Overflow, Result};
use crate::base::number::last_of;

/// A channel that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// What it may send.
    pub traffic: Traffic,
    /// D: each message is with the receiver this long after its logical arrival at the source.
    pub within: Span,
    /// What of that the wires take, in all.
    pub propagation: Span,
    /// How much before its logical arrival a hop sends a message on; zero where none works ahead.
    pub horizon: Span,
}

/// Why there is no channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Reason {
    /// All hops can grant a delay, but these are too long together.
    #[error(
        "{} are asked for, and {} can be had: {} are missing",
        within.beside(*least), least.beside(*within), least.saturating_sub(*within)
    )]
    Time {
        /// What was asked for.
        within: Span,
        /// What can be had.
        least: Span,
    },
    /// The hop is short of something whatever the delay.
    #[error(transparent)]
    Lack(#[from] Lack),
}

/// No, and where, and what would be granted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("hop {hop}: {reason}")]
pub struct Refusal {
    /// The hop that is short; where only the sum is, the one that takes longest. An index into the network.
    pub hop: usize,
    /// The same of its stages; `None` where it is short of buffers, or the channel is there already.
    pub stage: Option<usize>,
    /// Of what, and of how much.
    pub reason: Reason,
    /// Each of these would be granted as all is now.
    pub nearest: Vec<Nearest>,
}

/// The least delays of a path, stage by stage, hop by hop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quote {
    /// Of each hop, in the order of the path, d of each stage.
    pub delays: Vec<Vec<Span>>,
    /// Their sum, and the propagation.
    pub least: Span,
}

/// The hops of a network on the way of one channel: indices into it, none twice.
#[derive(Debug)]
pub struct Path<'a, S> {
    /// All hops there are.
    pub network: &'a mut [Hop<S>],
    /// Those on the way, from the source to the receiver.
    pub way: &'a [usize],
}

/// The share of each of so many stages in the slack: equal ones, but for a nanosecond; their sum is the slack.
///
/// ```
/// use laxity_model::Span;
/// use laxity_model::channels::admission::spread;
///
/// let shares: Vec<_> = spread(Span::from_nanos(11), 3).map(Span::as_nanos).collect();
/// assert_eq!(shares, [3, 4, 4]);
/// ```
pub fn spread(slack: Span, stages: usize) -> impl Iterator<Item = Span> {
    let until = move |stage: usize| {
        let part = u128::from(slack.as_nanos()) * stage as u128 / (stages.max(1) as u128);
        // Of the slack a part, which fits.
        Span::from_nanos(part as u64)
    };
    (0..stages).map(move |stage| until(stage + 1) - until(stage))
}

impl<S: SupplyBound> Path<'_, S> {
    /// Reserves what the channel needs on each hop, or nothing: the least delays, and what of D is left spread over all stages, as far as there are buffers for it. Answers what it has on each hop.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; nothing has changed then.
    pub fn open(&mut self, channel: u64, request: &Request) -> Result<Vec<Held>, Refusal> {
        if let Some(hop) = self.holder(channel) {
            return Err(refusal(hop, None, Lack::Held));
        }
        let quote = match self.judged(request) {
            Ok(quote) => quote,
            Err(mut refusal) => {
                refusal.nearest = nearest::of(self, request, &refusal);
                return Err(refusal);
            }
        };
        let most = (request.within - quote.least).as_nanos();
        let fits = |slack| {
            Ok::<_, Refusal>(
                self.lacks_buffers(request, &self.spread_over(&quote, slack)?)
                    .is_none(),
            )
        };
        let slack = if fits(most)? {
            most
        } else {
            last_of(0, most, fits)?
        };
        let delays = self.spread_over(&quote, slack)?;
        for (place, hop) in self.way.iter().enumerate() {
            let arrival = arrival(request, &delays, place);
            let reserved = self.network[*hop].reserve_these(
                channel,
                &request.traffic,
                delays[place].clone(),
                arrival,
            );
            if let Err(lack) = reserved {
                let refusal = refusal(*hop, None, lack);
                self.close(channel);
                return Err(refusal);
            }
        }
        let held = self
            .way
            .iter()
            .filter_map(|hop| self.network[*hop].held(channel));
        Ok(held.cloned().collect())
    }

    /// Grants a channel that is there something else, or leaves it as it is.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; it has what it had then. What is said to be nearest is so while it has that.
    pub fn change(&mut self, channel: u64, request: &Request) -> Result<Vec<Held>, Refusal> {
        let mut taken_out = Vec::new();
        for hop in self.way {
            taken_out.push((*hop, self.network[*hop].take_out(channel)));
        }
        let opened = self.open(channel, request);
        if opened.is_err() {
            for (hop, before) in taken_out {
                before
                    .into_iter()
                    .for_each(|before| self.network[hop].put_back(channel, before));
            }
        }
        opened
    }

    /// Whatever the channel has on the way is free again. Whether it had anything.
    pub fn close(&mut self, channel: u64) -> bool {
        let mut had = false;
        for hop in self.way {
            had |= self.network[*hop].release(channel);
        }
        had
    }

    /// The least delays that all hops can grant now, whatever their sum; [`Refusal::nearest`] is empty.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: the first hop that can grant none, or has no buffers for it.
    pub fn quote(&self, request: &Request) -> Result<Quote, Refusal> {
        let mut delays = Vec::with_capacity(self.way.len());
        for hop in self.way {
            let least = self.network[*hop].least_delays(&request.traffic);
            delays.push(least.map_err(|lack| refusal(*hop, stage_of(&lack), lack))?);
        }
        if let Some(refusal) = self.lacks_buffers(request, &delays) {
            return Err(refusal);
        }
        let sum = |sum: Option<Span>, one: &Span| sum?.checked_add(*one);
        let least = delays.iter().flatten().fold(Some(request.propagation), sum);
        let overflow = || refusal(self.first(), None, Lack::Overflow(Overflow("a delay")));
        Ok(Quote {
            least: least.ok_or_else(overflow)?,
            delays,
        })
    }

    /// The same, if the sum is not too long.
    pub(super) fn judged(&self, request: &Request) -> Result<Quote, Refusal> {
        let quote = self.quote(request)?;
        if quote.least <= request.within {
            return Ok(quote);
        }
        // Who takes longest.
        let all = quote.delays.iter().enumerate();
        let all = all.flat_map(|(place, hop)| {
            hop.iter()
                .enumerate()
                .map(move |(stage, delay)| (*delay, place, stage))
        });
        let longest = all
            .max_by_key(|(delay, ..)| *delay)
            .map_or((0, 0), |(_, place, stage)| (place, stage));
        Err(Refusal {
            hop: self.way.get(longest.0).copied().unwrap_or(0),
            stage: Some(longest.1),
            reason: Reason::Time {
                within: request.within,
                least: quote.least,
            },
            nearest: Vec::new(),
        })
    }

    /// The least delays of all stages but this one, of which nothing is asked: it has zero.
    pub(super) fn quote_but(
        &self,
        request: &Request,
        (hop, stage): (usize, usize),
    ) -> Option<Vec<Vec<Span>>> {
        let least = |(number, of): (usize, &Hop<S>), wanted: usize| {
            if (number, wanted) == (hop, stage) {
                return Some(Span::ZERO);
            }
            let demand = of.demand(wanted, &request.traffic).ok()?;
            of.stages()[wanted].resource().least_delay(&demand).ok()
        };
        let of_hop = |number: &usize| {
            let of = &self.network[*number];
            (0..of.stages().len())
                .map(|wanted| least((*number, of), wanted))
                .collect()
        };
        self.way.iter().map(of_hop).collect()
    }

    /// Whether these delays are short enough, and there are buffers for them.
    pub(super) fn grants(&self, request: &Request, delays: &[Vec<Span>]) -> bool {
        let sum = |sum: Option<Span>, one: &Span| sum?.checked_add(*one);
        let least = delays.iter().flatten().fold(Some(request.propagation), sum);
        least.is_some_and(|least| least <= request.within)
            && self.lacks_buffers(request, delays).is_none()
    }

    fn first(&self) -> usize {
        self.way.first().copied().unwrap_or(0)
    }

    fn holder(&self, channel: u64) -> Option<usize> {
        self.way
            .iter()
            .copied()
            .find(|hop| self.network[*hop].held(channel).is_some())
    }

    /// The delays with so much slack, in nanoseconds, spread over them.
    fn spread_over(&self, quote: &Quote, slack: u64) -> Result<Vec<Vec<Span>>, Refusal> {
        let stages = quote.delays.iter().map(Vec::len).sum();
        let mut shares = spread(Span::from_nanos(slack), stages);
        let mut longer = |delay: &Span| delay.checked_add(shares.next().unwrap_or_default());
        let all = quote
            .delays
            .iter()
            .map(|hop| hop.iter().map(&mut longer).collect());
        let all: Option<Vec<Vec<Span>>> = all.collect();
        all.ok_or_else(|| refusal(self.first(), None, Lack::Overflow(Overflow("a delay"))))
    }

    /// The first hop that has too few buffers for these delays.
    fn lacks_buffers(&self, request: &Request, delays: &[Vec<Span>]) -> Option<Refusal> {
        self.way.iter().enumerate().find_map(|(place, hop)| {
            let arrival = arrival(request, delays, place);
            let room = self.network[*hop].room(&request.traffic, &delays[place], arrival);
            room.err().map(|lack| refusal(*hop, None, lack))
        })
    }
}

fn arrival(request: &Request, delays: &[Vec<Span>], place: usize) -> Arrival {
    match place.checked_sub(1) {
        None => Arrival::AtSource,
        Some(before) => Arrival::From {
            delay: Span::from_nanos(
                delays[before]
                    .iter()
                    .fold(0, |sum: u64, delay| sum.saturating_add(delay.as_nanos())),
            ),
            horizon: request.horizon,
        },
    }
}

const fn stage_of(lack: &Lack) -> Option<usize> {
    match lack {
        Lack::Stage { stage, .. } => Some(*stage),
        _ => None,
    }
}

fn refusal(hop: usize, stage: Option<usize>, lack: Lack) -> Refusal {
    Refusal {
        hop,
        stage,
        reason: lack.into(),
        nearest: Vec::new(),
    }
}
