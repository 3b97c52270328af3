//! What would be granted instead.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::Traffic;
use super::path::{Path, Reason, Refusal, Request, half};
use super::resource::Member;
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::base::number::last_of;
use crate::channels::signalling::ChannelId;

/// So many of those who might give something are asked.
const ASKED: usize = 64;

/// No interval, and nobody's delay, is proposed that is longer than 2²⁰ times what it is.
const DOUBLINGS: u32 = 20;

/// A change after which the channel is granted, all else being as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, derive_more::Display)]
pub enum Nearest {
    /// The least D at this rate and size.
    #[display("within {_0}")]
    Within(Span),
    /// The highest rate at this D and size: a message each interval.
    #[display("a message each {_0}")]
    Each(Span),
    /// The largest message at this D and rate, in bytes.
    #[display("messages of {_0} B")]
    Largest(NonZeroU32),
    /// A channel that is there would have to go without something at the hop that is short.
    #[display("channel {channel} with {give}")]
    Give {
        /// Which.
        channel: ChannelId,
        /// What.
        give: Give,
    },
}

/// What somebody else would have to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug, derive_more::Display)]
pub enum Give {
    /// On the stage that is short it would have to be content with this delay, the shortest that helps.
    #[display("a delay of {_0} there")]
    Delay(Span),
    /// It would have to send a message each interval only, the shortest that helps.
    #[display("a message each {_0}")]
    Each(Span),
}

/// What would be granted instead of what was refused so.
pub(super) fn of<S: SupplyBound>(
    path: &Path<'_, S>,
    request: &Request,
    refusal: &Refusal,
) -> Vec<Nearest> {
    let is_granted = |traffic| {
        path.would_grant(&Request {
            traffic,
            ..*request
        })
    };
    let mut nearest = Vec::new();
    if let Reason::Time { least, .. } = refusal.reason {
        nearest.push(Nearest::Within(least));
    }
    nearest.extend(slower(&request.traffic, is_granted).map(Nearest::Each));
    nearest.extend(largest(&request.traffic, is_granted).map(Nearest::Largest));
    nearest.extend(who_gives(path, request, refusal));
    nearest
}

/// The shortest interval, no shorter than its own, with which this traffic is granted.
pub(super) fn slower(traffic: &Traffic, is_granted: impl Fn(Traffic) -> bool) -> Option<Span> {
    let each = |interval| traffic.with_interval(Span::from_nanos(interval));
    let slower = least_that(traffic.interval().as_nanos(), |interval| {
        each(interval).is_some_and(&is_granted)
    });
    slower.map(Span::from_nanos)
}

/// The largest message with which it is, where that is smaller than its own.
pub(super) fn largest(
    traffic: &Traffic,
    is_granted: impl Fn(Traffic) -> bool,
) -> Option<NonZeroU32> {
    let bytes = |bytes: u64| u32::try_from(bytes).ok().and_then(NonZeroU32::new);
    let holds = |size: u64| {
        Ok::<_, ()>(bytes(size).is_some_and(|size| is_granted(traffic.with_largest(size))))
    };
    let largest = last_of(0, u64::from(traffic.largest().get()), holds);
    largest.ok().and_then(bytes)
}

/// The least number above this of which something holds, if it holds of one that is not far above, and of all behind it.
fn least_that(from: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut above = (0..=DOUBLINGS).map_while(|doublings| from.checked_mul(1 << doublings));
    let high = above.find(|number| holds(*number))?;
    // By the last that does not hold.
    let low = from.max(high / 2).min(high);
    let last = last_of(low.saturating_sub(1), high, |number| {
        Ok::<_, ()>(!holds(number))
    })
    .ok()?;
    Some(last + 1)
}

/// One of those on the stage that is short who could do with less, the greatest share first, so that the newcomer is granted.
fn who_gives<S: SupplyBound>(
    path: &Path<'_, S>,
    request: &Request,
    refusal: &Refusal,
) -> Option<Nearest> {
    let (host, stage) = (&path.network[refusal.hop], refusal.stage?);
    let resource = host.stages()[stage].resource();
    let demand = host.demand(stage, &request.traffic).ok()?;
    let mut delays = path.least_but(request, (refusal.hop, stage))?;
    let place = path.way.iter().position(|(hop, _)| *hop == refusal.hop)?;
    let own = delays[place].iter().position(|(one, _)| *one == stage)?;
    let mut is_granted = |least: Option<Span>| {
        least.is_some_and(|least| {
            delays[place][own].1 = least;
            path.grants(request, &delays)
        })
    };
    let members = resource.members();
    let mut asked: Vec<&Member> = members.filter(|one| !one.channel.is_of_signals()).collect();
    let share = |member: &Member| {
        u128::from(member.demand.need.cost.as_nanos()) * u128::from(u32::MAX)
            / u128::from(member.demand.interval.as_nanos())
    };
    asked.sort_by_key(|member| core::cmp::Reverse(share(member)));
    asked.truncate(ASKED);
    asked.into_iter().find_map(|member| {
        if !is_granted(resource.found_without(member.channel, &demand, &half(host))) {
            return None;
        }
        let mut suffices =
            |changed| is_granted(resource.found_beside(&changed, &demand, &half(host)));
        let delayed = |delay| Member {
            delay: Span::from_nanos(delay),
            ..*member
        };
        let slower = |interval| {
            let mut changed = *member;
            changed.demand.interval = Span::from_nanos(interval);
            changed
        };
        let (delay, interval) = (member.delay.as_nanos(), member.demand.interval.as_nanos());
        let give = least_that(delay, |delay| suffices(delayed(delay)))
            .map(|delay| Give::Delay(Span::from_nanos(delay)));
        let give = give.or_else(|| {
            least_that(interval, |interval| suffices(slower(interval)))
                .map(|each| Give::Each(Span::from_nanos(each)))
        });
        give.map(|give| Nearest::Give {
            channel: member.channel,
            give,
        })
    })
}
