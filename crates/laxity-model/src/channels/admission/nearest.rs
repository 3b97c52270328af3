//! What would be granted instead.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::path::{Path, Reason, Refusal, Request};
use super::resource::{Member, Short};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::base::number::last_of;

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
        channel: u64,
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
        path.judged(&Request {
            traffic,
            ..*request
        })
        .is_ok()
    };
    let mut nearest = Vec::new();
    if let Reason::Time { least, .. } = refusal.reason {
        nearest.push(Nearest::Within(least));
    }
    let interval = request.traffic.interval();
    let each = |interval| request.traffic.with_interval(Span::from_nanos(interval));
    let slower = least_that(interval.as_nanos(), |interval| {
        each(interval).is_some_and(is_granted)
    });
    nearest.extend(slower.map(|each| Nearest::Each(Span::from_nanos(each))));
    nearest.extend(largest(request, is_granted));
    nearest.extend(who_gives(path, request, refusal));
    nearest
}

/// The largest message with which it is granted.
fn largest(request: &Request, is_granted: impl Fn(super::Traffic) -> bool) -> Option<Nearest> {
    let asked = u64::from(request.traffic.largest().get());
    let holds = |bytes: u64| {
        let bytes = u32::try_from(bytes).ok().and_then(NonZeroU32::new);
        Ok::<_, ()>(bytes.is_some_and(|bytes| is_granted(request.traffic.with_largest(bytes))))
    };
    let largest = last_of(0, asked, holds).ok()?;
    let largest = u32::try_from(largest).ok().and_then(NonZeroU32::new)?;
    Some(Nearest::Largest(largest))
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
    let (hop, stage) = (&path.network[refusal.hop], refusal.stage?);
    let resource = hop.stages()[stage].resource();
    let demand = hop.demand(stage, &request.traffic).ok()?;
    let mut delays = path.quote_but(request, (refusal.hop, stage))?;
    let place = path.way.iter().position(|hop| *hop == refusal.hop)?;
    let mut is_granted = |least: Result<Span, Short>| {
        least.is_ok_and(|least| {
            delays[place][stage] = least;
            path.grants(request, &delays)
        })
    };
    let mut asked: Vec<&Member> = resource.members().iter().collect();
    let share = |member: &Member| {
        u128::from(member.demand.need.cost.as_nanos()) * u128::from(u32::MAX)
            / u128::from(member.demand.interval.as_nanos())
    };
    asked.sort_by_key(|member| core::cmp::Reverse(share(member)));
    asked.truncate(ASKED);
    asked.into_iter().find_map(|member| {
        if !is_granted(resource.least_delay_without(member.channel, &demand)) {
            return None;
        }
        let mut suffices = |changed| is_granted(resource.least_delay_beside(&changed, &demand));
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
