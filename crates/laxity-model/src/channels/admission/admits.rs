//! What signalling asks of a host's admission.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::convert::Infallible;

use super::host::{Held, Host, Lack, Stage, most, total};
use super::nearest::{largest, slower};
use super::path::spread;
use super::resource::{Member, Short};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Result};
use crate::base::number::last_of;
use crate::channels::asked::{Asked, Fits, Scarce, Shortage};
use crate::channels::signalling::{Admits, Delays, Hold, Place, Reserved};

use super::Costs;

/// Of what a host may look at for what it would grant instead, one question may take such a part: where one is too near to a full resource, another one is not.
const PART: u64 = 8;

impl<S: SupplyBound> Admits for Host<S> {
    type Asked = Asked;
    type Short = Shortage;

    fn reserve(
        &mut self,
        hold: Hold,
        place: Place,
        asked: &Asked,
        before: Span,
    ) -> Result<Span, Shortage> {
        match self.grant(hold, place, &asked.traffic, before) {
            Ok(held) => Ok(held.delays.own),
            Err(lack) => Err(self.shortage(hold, place, asked, before, lack)),
        }
    }

    fn relax(&mut self, hold: Hold, offered: Delays) -> Delays {
        let versions = self.held(hold.channel);
        let Some(had) = versions.iter().find(|held| held.version == hold.version) else {
            return offered;
        };
        let longer = |extra| self.longer(hold, had, offered, extra);
        let [before, own] = more(had, offered);
        let all = before.saturating_add(own);
        let fits = |extra| Ok::<_, Infallible>(longer(extra).is_some());
        let Ok(extra) = match longer(all) {
            Some(_) => Ok(all),
            None => last_of(0, all, fits),
        };
        let Some(relaxed) = longer(extra) else {
            return had.delays;
        };
        let (had, delays) = (had.delays, relaxed.delays);
        let one = |held: &Held| match held.version == hold.version {
            true => relaxed.clone(),
            false => held.clone(),
        };
        let versions: Vec<Held> = versions.iter().map(one).collect();
        match self.becomes(hold.channel, versions, &Budget::of(0)) {
            Ok(()) => delays,
            Err(_) => had,
        }
    }

    fn release(&mut self, hold: Hold) {
        let left: Vec<Held> = self.others(hold).cloned().collect();
        let released = self.becomes(hold.channel, left, &Budget::of(0));
        debug_assert_eq!(released, Ok(()), "who asks for less is granted it");
    }

    fn agrees<'a>(&self, mut held: impl Iterator<Item = Reserved<'a, Asked>>) -> bool {
        let mut holds = BTreeSet::new();
        let are_there = held.all(|one| {
            let mut versions = self.held(one.hold.channel).iter();
            versions.any(|held| {
                let is_same = (held.version, held.place) == (one.hold.version, one.place);
                is_same && held.traffic == one.asked.traffic && held.delays == one.delays
            }) && holds.insert(one.hold)
        });
        let channels = self
            .channels()
            .filter(|(channel, _)| !channel.is_of_signals());
        let there: usize = channels.map(|(_, versions)| versions.len()).sum();
        are_there && holds.len() == there && self.adds_up() == Ok(true)
    }
}

/// By how much longer the delays are that are offered: before, and here, where there is a stage that has it. In nanoseconds.
fn more(had: &Held, offered: Delays) -> [u64; 2] {
    let before = offered.before.saturating_sub(had.delays.before);
    let own = offered.own.saturating_sub(had.delays.own);
    let has_stages = !had.stages.is_empty();
    [before.as_nanos(), own.as_nanos() * u64::from(has_stages)]
}

impl<S: SupplyBound> Host<S> {
    /// With so many nanoseconds of what is offered: here first, spread over the stages, then at the hop before. `None` where there are no buffers for it.
    fn longer(&self, hold: Hold, had: &Held, offered: Delays, extra: u64) -> Option<Held> {
        let [_, own] = more(had, offered);
        let own = own.min(extra);
        let before = had
            .delays
            .before
            .checked_add(Span::from_nanos(extra - own))?;
        let shares = spread(Span::from_nanos(own), had.stages.len());
        let stages = had.stages.iter().zip(shares);
        let stages =
            stages.map(|((stage, delay), share)| Some((*stage, delay.checked_add(share)?)));
        let stages: Option<Vec<(usize, Span)>> = stages.collect();
        let longer = self.buffered(hold, had.place, &had.traffic, before, stages?);
        longer.ok()
    }

    /// Whether what is kept of resources and buffers is what the channels that are held need, and no more than there is; reckoned from nothing.
    fn adds_up(&self) -> Result<bool, Lack> {
        let mut members: Vec<Vec<Member>> = self.stages().iter().map(|_| Vec::new()).collect();
        let mut taken = 0_u64;
        for (channel, versions) in self.channels() {
            for held in versions {
                let hold = Hold {
                    channel,
                    version: held.version,
                };
                let Held {
                    place,
                    traffic,
                    delays,
                    stages,
                    ..
                } = held;
                let again = self.buffered(hold, *place, traffic, delays.before, stages.clone())?;
                let on_way = self.way(*place)?.eq(stages.iter().map(|(stage, _)| *stage));
                if again != *held || !on_way {
                    return Ok(false);
                }
            }
            for (stage, members) in members.iter_mut().enumerate() {
                members.extend(self.member(channel, versions, stage)?);
            }
            taken = taken.saturating_add(most(versions));
        }
        let mut resources = self.stages().iter().map(Stage::resource).zip(members);
        let (said, all) = self.buffers();
        Ok(taken == said && taken <= all && resources.all(|(of, members)| of.agrees(members)))
    }

    /// What is told of a lack, with what would fit.
    fn shortage(
        &self,
        hold: Hold,
        place: Place,
        asked: &Asked,
        before: Span,
        lack: Lack,
    ) -> Shortage {
        let traffic = &asked.traffic;
        let (of, lacks) = match lack {
            Lack::Stage {
                short: Short::Unknown(Doubt::TooLong),
                ..
            } => (Scarce::Search, 0),
            Lack::Stage { stage, short } => {
                let of = match self.stages()[stage].costs() {
                    Costs::Link(_) => Scarce::Link,
                    Costs::Processor(_) | Costs::Both(..) => Scarce::Processor,
                };
                (of, lacks(short, traffic.interval()))
            }
            Lack::Buffers { needed, free } => (Scarce::Buffers, needed.saturating_sub(free)),
            Lack::Link(_) => (Scarce::Link, 0),
            Lack::Overflow(_) => (Scarce::Processor, 0),
        };
        let (rows, budget) = (self.rows, self.budget());
        // Whom a search grants something the decision grants it too: it searches as long, and its test takes no longer.
        let is_granted = |traffic, budget: &Budget| {
            let held = |part: &Budget| self.would_hold(hold, place, &traffic, before, part);
            budget.part(rows / PART, held).is_some()
        };
        let within = match lack {
            Lack::Stage {
                short: Short::Delay { .. },
                ..
            } => {
                let least = self.least_delays(hold, place, traffic, &budget);
                least
                    .ok()
                    .and_then(|all| total(all.iter().map(|(_, delay)| *delay)).ok())
            }
            _ => None,
        };
        let interval = |half: &Budget| slower(traffic, |traffic| is_granted(traffic, half));
        let fits = Fits {
            within,
            interval: budget.part(rows / 2, interval),
            size: largest(traffic, |traffic| is_granted(traffic, &budget)),
        };
        Shortage { of, lacks, fits }
    }
}

/// What a resource is short of, in nanoseconds: of a delay, in each interval, or without an interruption; 0 where no amount would do.
fn lacks(short: Short, interval: Span) -> u64 {
    match short {
        Short::Delay { asked, least } => least.saturating_sub(asked).as_nanos(),
        Short::Share {
            needed_ppm,
            free_ppm,
        } => {
            let missing = u128::from(needed_ppm.saturating_sub(free_ppm));
            let nanos = (missing * u128::from(interval.as_nanos())).div_ceil(1_000_000);
            u64::try_from(nanos).unwrap_or(u64::MAX)
        }
        Short::Region { longest, .. } if longest.is_zero() => 0,
        Short::Region { region, longest } => region.saturating_sub(longest).as_nanos(),
        Short::Unknown(_) | Short::Held | Short::NotHeld | Short::Overflow(_) => 0,
    }
}
