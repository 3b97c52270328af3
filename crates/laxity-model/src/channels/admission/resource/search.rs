//! What a resource is asked: the least delay, whether all are in time with one more, and what is short.

use super::{Demand, Resource, Short};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Result, Search, Task, edf};
use crate::channels::admission::grid::Sure;
use crate::channels::admission::others::{Others, share};
use crate::channels::admission::{Need, order};
use crate::policy::multiclass::By;
use crate::{Service, Span};

impl<S: SupplyBound> Resource<S> {
    pub(super) fn found(
        &self,
        others: &Others<'_>,
        demand: &Demand,
        budget: &Budget,
    ) -> Option<Span> {
        let (_, least) = self.search(others, demand, budget).ok()?.found()?;
        Some(least)
    }

    pub(super) fn least_among(
        &self,
        others: &Others<'_>,
        demand: &Demand,
        budget: &Budget,
    ) -> Result<Span, Short> {
        match self.search(others, demand, budget)? {
            Search::Found((_, least)) => Ok(least),
            Search::None | Search::Unknown(Doubt::Sufficient) => {
                Err(self.short_of(others, demand, budget)?)
            }
            Search::Unknown(doubt) => Err(Short::Unknown(doubt)),
        }
    }

    /// The place of a newcomer, and its least delay.
    fn search(
        &self,
        others: &Others<'_>,
        demand: &Demand,
        budget: &Budget,
    ) -> Result<Search<(usize, Span)>, Short> {
        let newcomer = demand.task(demand.interval)?;
        if self.members.by() == By::Priority {
            let tasks = others.tasks(Span::MAX, budget)?;
            let found = order::place(&tasks, &newcomer, self.never_due, &self.supply, budget);
            return Ok(found?);
        }
        let quick = self.search_until(others, demand, budget)?;
        let found = match quick {
            Some(found) => found,
            None => {
                let tasks = others.tasks(Span::MAX, budget)?;
                let (never_due, supply) = (self.never_due, &self.supply);
                edf::least_deadline_within(&tasks, &newcomer, never_due, supply, budget)?
            }
        };
        Ok(match found {
            Search::Found(least) => Search::Found((0, least)),
            Search::None => Search::None,
            Search::Unknown(doubt) => Search::Unknown(doubt),
        })
    }

    /// The least delay, where the grid knows from when on all are in time; `None` where all have to be looked at.
    ///
    /// A newcomer waits at least for the longest region of all others: at its deadline that one blocks, or is due itself, and no region is longer than a message.
    pub(super) fn search_until(
        &self,
        others: &Others<'_>,
        demand: &Demand,
        budget: &Budget,
    ) -> Result<Option<Search<Span>>, Short> {
        let region = others.longest_region().max(self.never_due);
        let Some(first) = region.checked_add(demand.need.cost) else {
            return Ok(None);
        };
        let first = self.supply.window_for(first)?;
        let newcomer = demand.task(first)?;
        let blocking = region.max(newcomer.longest_region()).as_nanos();
        Ok(
            match others.looks(&newcomer, blocking, &self.supply, budget)? {
                Sure::MetAfter(0) => Some(Search::Found(first)),
                Sure::MetAfter(until) => {
                    let until = Span::from_nanos(until);
                    let tasks = others.tasks(until, budget)?;
                    let blocking = others.longest_region_behind(until).max(self.never_due);
                    let (supply, until) = (&self.supply, (until, budget));
                    let found =
                        edf::least_deadline_until(&tasks, &newcomer, blocking, supply, until);
                    // What takes too long, or does not fit, is left to the search that knows nothing.
                    found
                        .ok()
                        .filter(|found| !matches!(found, Search::Unknown(Doubt::TooLong)))
                }
                Sure::TooMuch if self.supply.is_attained() => Some(Search::None),
                Sure::TooMuch => Some(Search::Unknown(Doubt::Sufficient)),
                Sure::Nothing => None,
            },
        )
    }

    /// Whether all meet their deadlines with one more.
    pub(super) fn is_met_with(&self, task: &Task, budget: &Budget) -> Result<bool, Short> {
        if let Some(is_met) = self.is_met_until(task, budget)? {
            return Ok(is_met);
        }
        let mut tasks = self.all().tasks(Span::MAX, budget)?;
        tasks.push(*task);
        let is_met = edf::is_met_within(&tasks, self.never_due, &self.supply, (None, budget))?;
        is_met.ok_or(Short::Unknown(Doubt::TooLong))
    }

    /// The same, where the grid knows from when on all are in time; `None` where all have to be looked at.
    pub(super) fn is_met_until(&self, task: &Task, budget: &Budget) -> Result<Option<bool>, Short> {
        let others = self.all();
        let region = others.longest_region().max(self.never_due);
        let region = region.max(task.longest_region()).as_nanos();
        Ok(match others.looks(task, region, &self.supply, budget)? {
            Sure::MetAfter(0) => Some(true),
            Sure::MetAfter(until) => {
                let until = Span::from_nanos(until);
                let mut tasks = others.tasks(until, budget)?;
                let mut blocking = others.longest_region_behind(until).max(self.never_due);
                match task.deadline() <= until {
                    true => tasks.push(*task),
                    false => blocking = blocking.max(task.longest_region()),
                }
                let is_met =
                    edf::is_met_within(&tasks, blocking, &self.supply, (Some(until), budget));
                // What does not fit is left to the test that knows nothing.
                is_met.ok().flatten()
            }
            Sure::TooMuch => Some(false),
            Sure::Nothing => None,
        })
    }

    /// What is short where no delay will do.
    fn short_of(
        &self,
        others: &Others<'_>,
        demand: &Demand,
        budget: &Budget,
    ) -> Result<Short, Short> {
        let newcomer = demand.task(demand.interval)?;
        let rate = self.supply.rate();
        let is_too_much = others.grid().is_too_much(&newcomer, &self.supply) || {
            let mut tasks = others.tasks(Span::MAX, budget)?;
            tasks.push(newcomer);
            let shares = tasks.iter().map(share);
            let ordering = rate.compare_sum_quickly(shares.clone()).or_else(|| {
                let is_allowed = budget.allows_exact_sum(tasks.len());
                is_allowed.then(|| rate.compare_sum(shares))
            });
            ordering.ok_or(Short::Unknown(Doubt::TooLong))?.is_gt()
        };
        if is_too_much {
            let rate_ppm =
                u128::from(rate.numerator()) * 1_000_000 / u128::from(rate.denominator());
            return Ok(Short::Share {
                needed_ppm: share(&newcomer).ppm(),
                // A rate is at most one.
                free_ppm: rate_ppm.saturating_sub(others.grid().ppm()) as u64,
            });
        }
        let region = demand.need.region.as_nanos();
        let longest = crate::base::number::last_of(0, region, |region| {
            let need = Need {
                region: Service::from_nanos(region),
                ..demand.need
            };
            Ok::<_, Short>(matches!(
                self.search(others, &Demand { need, ..*demand }, budget),
                Ok(Search::Found(_))
            ))
        })?;
        Ok(Short::Region {
            region: demand.need.region,
            longest: Service::from_nanos(longest),
        })
    }
}
