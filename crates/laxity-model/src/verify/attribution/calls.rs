//! What each activity took in each of its calls or jobs, held against what it may take.

use alloc::vec::Vec;

use super::{Allowance, Breach, Declared, Holder, Rule, Rules};
use crate::{Instant, Service, Span};

/// One activity's account.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    /// What it has held in the call that is open.
    used: Span,
    open: bool,
    ready: Instant,
    /// The call came before the rate declared allows it.
    undue: bool,
    /// When the last call was due at the earliest, by the rate declared.
    logical: Option<Instant>,
    /// Pieces of the open call that hold excess.
    pub(super) in_excess: Vec<usize>,
    breach: Option<Breach>,
}

/// The budget of one call of an activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    who: Holder,
    limit: Span,
    /// The limit of its class, `None` for threads.
    rule: Option<Service>,
    apart: Option<Span>,
    declared: bool,
}

impl Budget {
    pub(super) fn of(who: Holder, declared: Declared, rules: &Rules) -> Self {
        let rule = match who {
            Holder::Handler(_) => Some(rules.handler),
            Holder::Deferred(_) => Some(rules.deferred),
            _ => None,
        };
        let allowance = declared.allowance;
        let per_job = allowance.map(|allowance: Allowance| allowance.per_job);
        let limit = match (rule, per_job) {
            (Some(rule), Some(own)) => rule.min(own).as_dedicated_span(),
            (Some(rule), None) => rule.as_dedicated_span(),
            (None, Some(own)) => own.as_dedicated_span() + rules.slack,
            (None, None) => Span::ZERO,
        };
        Self {
            who,
            limit,
            rule,
            apart: allowance.and_then(|allowance| allowance.apart),
            declared: allowance.is_some(),
        }
    }

    /// Which rule so many calls of this length together break, if they break one.
    fn broken(&self, (calls, took): (u64, Span), undue: bool, in_the_way: bool) -> Option<Rule> {
        if undue {
            return Some(Rule::Rate);
        }
        if self.rule.is_none() && !self.declared {
            return in_the_way.then_some(Rule::Undeclared);
        }
        let exceeds = |limit: Span| limit.checked_mul(calls).is_some_and(|limit| took > limit);
        if !exceeds(self.limit) {
            return None;
        }
        let class_rule = self.rule.filter(|rule| exceeds(rule.as_dedicated_span()));
        Some(match (self.who, class_rule) {
            (Holder::Handler(_), Some(_)) => Rule::LongHandler,
            (Holder::Deferred(_), Some(_)) => Rule::LongDeferred,
            _ => Rule::Budget,
        })
    }
}

impl Account {
    /// A call or job begins that was released at `at` and could have run since `ready`.
    pub(super) fn begin(&mut self, at: Instant, ready: Instant, budget: &Budget) {
        self.open = true;
        self.ready = ready;
        self.used = Span::ZERO;
        self.undue = false;
        if let Some(apart) = budget.apart {
            let next = |before: Instant| before.checked_add(apart).unwrap_or(Instant::MAX);
            let due = self.logical.map_or(at, |before| next(before).max(at));
            self.undue = due.saturating_since(at) > apart;
            self.logical = Some(due);
        }
    }

    /// Since when the call or job that is open could have run.
    pub(super) fn ready(&self) -> Instant {
        self.ready
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// It holds the processor from `from` to `to`; returns from when on that is excess (`to` if none of it is).
    pub(super) fn hold(&mut self, from: Instant, to: Instant, budget: &Budget) -> Instant {
        let left = if self.undue {
            Span::ZERO
        } else {
            budget.limit.saturating_sub(self.used)
        };
        let length = to - from;
        self.used += length;
        from + left.min(length)
    }

    /// The call or job is over; it says itself what it took, or is taken at what it held, and how many it was in one. Returns whether it kept to the rules after all, so
    /// that what seemed excess was not.
    pub(super) fn end(&mut self, (exact, calls): (Option<Service>, u64), budget: &Budget) -> bool {
        self.open = false;
        let took = exact.map_or(self.used, Service::as_dedicated_span);
        let in_the_way = !self.in_excess.is_empty();
        let Some(rule) = budget.broken((calls, took), self.undue, in_the_way) else {
            return true;
        };
        let first = Breach {
            who: budget.who,
            rule,
            times: 0,
            longest: Span::ZERO,
        };
        let breach = self.breach.get_or_insert(first);
        breach.times += 1;
        breach.longest = breach.longest.max(took);
        false
    }

    pub(super) fn breach(&self) -> Option<Breach> {
        self.breach
    }
}
