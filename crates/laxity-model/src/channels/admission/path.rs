//! A channel's way from host to host: something at all of them, or a no that says what would be granted. It is asked of them as signalling does.

use alloc::vec::Vec;

use super::Traffic;
use super::host::{Held, Host, Lack, total};
use super::nearest::{self, Nearest};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Overflow, Result};
use crate::channels::signalling::{Admits, ChannelId, Delays, Hold, Place};

/// A channel that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Which.
    pub channel: ChannelId,
    /// What it may send.
    pub traffic: Traffic,
    /// D: each message is with the receiver this long after its logical arrival at the source.
    pub within: Span,
    /// What of that the wires take, in all.
    pub propagation: Span,
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
    /// A channel of this name is there already.
    #[error("a channel of this name is there already")]
    Held,
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
    /// The same of its stages ([`Host::stages`]); `None` where it is short of something else, or the channel is there already.
    pub stage: Option<usize>,
    /// Of what, and of how much.
    pub reason: Reason,
    /// Each of these would be granted as all is now.
    pub nearest: Vec<Nearest>,
}

/// The least delays of a path, and what else a channel would have with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quote {
    /// On each hop, in the order of the path.
    pub hops: Vec<Held>,
    /// All delays, and the propagation.
    pub least: Span,
}

/// The hosts of a network on the way of one channel.
#[derive(Debug)]
pub struct Path<'a, S> {
    /// All hosts there are.
    pub network: &'a mut [Host<S>],
    /// Those on the way, from the source to the receiver: each an index into the network, none twice, and what it is of the channel.
    pub way: &'a [(usize, Place)],
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

impl Request {
    /// The only version that there is.
    const fn hold(&self) -> Hold {
        let (channel, version) = (self.channel, 0);
        Hold { channel, version }
    }
}

impl<S: SupplyBound> Path<'_, S> {
    /// Reserves what the channel needs on each hop, or nothing: the least delays, and on the way back what of D is left, an equal share of it each, as far as there are buffers for it. Answers what it has on each hop.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; nothing has changed then.
    pub fn open(&mut self, request: &Request) -> Result<Vec<Held>, Refusal> {
        let mut hops = self.way.iter().map(|(hop, _)| *hop);
        if let Some(hop) = hops.find(|hop| !self.network[*hop].held(request.channel).is_empty()) {
            return Err(refusal(hop, Reason::Held));
        }
        let quote = self.judged(request).map_err(|mut refusal| {
            refusal.nearest = nearest::of(self, request, &refusal);
            refusal
        })?;
        let hold = request.hold();
        for ((hop, place), least) in self.way.iter().zip(&quote.hops) {
            let before = least.delays.before;
            let granted = self.network[*hop].grant(hold, *place, &request.traffic, before);
            if let Err(lack) = granted {
                self.close(request.channel);
                return Err(refusal(*hop, lack.into()));
            }
        }
        let shares = spread(request.within - quote.least, self.way.len());
        let least = quote.hops.iter().map(|held| held.delays.own);
        let mut delays: Vec<Span> = least.zip(shares).map(|(own, share)| own + share).collect();
        for (at, (hop, _)) in self.way.iter().enumerate().rev() {
            let before = at.checked_sub(1);
            let offered = Delays {
                before: before.map_or(Span::ZERO, |before| delays[before]),
                own: delays[at],
            };
            let took = self.network[*hop].relax(hold, offered);
            delays[at] = took.own;
            if let Some(before) = before {
                delays[before] = took.before;
            }
        }
        let held = self
            .way
            .iter()
            .flat_map(|(hop, _)| self.network[*hop].held(request.channel));
        Ok(held.cloned().collect())
    }

    /// Whatever the channel has on the way is free again.
    pub fn close(&mut self, channel: ChannelId) {
        let hold = Hold {
            channel,
            version: 0,
        };
        for (hop, _) in self.way {
            self.network[*hop].release(hold);
        }
    }

    /// What all hops can grant now, whatever the sum; [`Refusal::nearest`] is empty.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: the first hop that can grant nothing.
    pub fn quote(&self, request: &Request) -> Result<Quote, Refusal> {
        let (mut before, mut hops) = (Span::ZERO, Vec::with_capacity(self.way.len()));
        for (hop, place) in self.way {
            let quote = self.network[*hop].quote(request.hold(), *place, &request.traffic, before);
            let held = quote.map_err(|lack| refusal(*hop, lack.into()))?;
            before = held.delays.own;
            hops.push(held);
        }
        let delays = hops.iter().map(|held| held.delays.own);
        let least = total(delays.chain([request.propagation]));
        let overflow = |overflow: Overflow| {
            let first = self.way.first().map_or(0, |(hop, _)| *hop);
            refusal(first, Reason::Lack(overflow.into()))
        };
        let least = least.map_err(overflow)?;
        Ok(Quote { hops, least })
    }

    /// The same, if the sum is not too long.
    fn judged(&self, request: &Request) -> Result<Quote, Refusal> {
        let quote = self.quote(request)?;
        if quote.least <= request.within {
            return Ok(quote);
        }
        // Who takes longest.
        let all = self.way.iter().zip(&quote.hops);
        let all = all.flat_map(|((hop, _), held)| held.stages.iter().map(move |of| (hop, of)));
        let longest = all.max_by_key(|(_, (_, delay))| *delay);
        let (hop, stage) = longest.map_or((0, None), |(hop, (stage, _))| (*hop, Some(*stage)));
        let (within, least) = (request.within, quote.least);
        let reason = Reason::Time { within, least };
        Err(Refusal {
            stage,
            ..refusal(hop, reason)
        })
    }

    /// Whether it would be granted: who asks does not want to know why not.
    pub(super) fn would_grant(&self, request: &Request) -> bool {
        let (mut before, mut sum) = (Span::ZERO, Some(request.propagation));
        self.way.iter().all(|(hop, place)| {
            let host = &self.network[*hop];
            let held = host.would_hold(
                request.hold(),
                *place,
                &request.traffic,
                before,
                &half(host),
            );
            held.is_some_and(|held| {
                before = held.delays.own;
                sum = sum.and_then(|sum| sum.checked_add(before));
                sum.is_some_and(|sum| sum <= request.within)
            })
        })
    }

    /// The least delays of all stages but this one, of which nothing is asked: it has zero.
    pub(super) fn least_but(
        &self,
        request: &Request,
        but: (usize, usize),
    ) -> Option<Vec<Vec<(usize, Span)>>> {
        let of_hop = |(hop, place): &(usize, Place)| {
            let host = &self.network[*hop];
            let least = |stage| match (*hop, stage) == but {
                true => Some((stage, Span::ZERO)),
                false => {
                    let least =
                        host.least_delay(request.hold(), stage, &request.traffic, &half(host));
                    least.ok().map(|least| (stage, least))
                }
            };
            host.way(*place).ok()?.map(least).collect()
        };
        self.way.iter().map(of_hop).collect()
    }

    /// Whether these delays are short enough, and there are buffers for them.
    pub(super) fn grants(&self, request: &Request, delays: &[Vec<(usize, Span)>]) -> bool {
        let (mut before, mut sum) = (Span::ZERO, Some(request.propagation));
        let has_buffers = self.way.iter().zip(delays).all(|((hop, place), stages)| {
            let host = &self.network[*hop];
            let stages = stages.clone();
            let held = host.buffered(request.hold(), *place, &request.traffic, before, stages);
            held.is_ok_and(|held| {
                before = held.delays.own;
                sum = sum.and_then(|sum| sum.checked_add(before));
                true
            })
        });
        has_buffers && sum.is_some_and(|sum| sum <= request.within)
    }
}

fn refusal(hop: usize, reason: Reason) -> Refusal {
    let stage = match reason {
        Reason::Lack(Lack::Stage { stage, .. }) => Some(stage),
        _ => None,
    };
    Refusal {
        hop,
        stage,
        reason,
        nearest: Vec::new(),
    }
}

/// What a search for an offer may look at: a decision searches as long, and its test takes no longer.
pub(super) const fn half<S>(host: &Host<S>) -> Budget {
    Budget::of(host.rows / 2)
}
