//! Who has what of a processor, and whether there is time for more.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Answer, Bottleneck, Item, Presence, Told};
use crate::analysis::supply::{Dedicated, Delayed};
use crate::base::plain::plain;
use crate::executor::linked::{self, Linked};
use crate::program::together::{detection, limit};
use crate::request::Share;
use crate::{Instant, Service, Span};

/// So many upcalls of all processes together: what analysis takes grows with the square of it.
pub const MOST_ITEMS: usize = 256;

/// A whole processor.
const WHOLE_PPM: u64 = 1_000_000;

/// By what a coordinator admits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The longest quantum: whoever takes more without a look is taken for one who does not come back.
    pub longest: Service,
    /// So much more than it was admitted with a process may take before it has to make up for that, or is taken for one that does not come back.
    pub tolerance: Service,
    /// Where there are several processes: what it takes beside that until one is seen, and the others go on.
    pub switches: Span,
    /// Where there are several processes: what it takes to hand the baton on and back again, for each call.
    pub pass: Service,
    /// What the processes of one user may [keep from others](Registry::holds) together, in millionths of the processor.
    pub share_ppm: u64,
    /// The same of single users.
    pub quotas: BTreeMap<u32, u64>,
    /// So many processes of one user.
    pub seats_of_one: usize,
    /// So long what a process had that has gone is kept, until all others have settled that.
    pub kept: Span,
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// By the kernel's number.
    pub process: u32,
    /// Whose it is.
    pub user: u32,
}

#[derive(Clone, Debug)]
enum State {
    Here,
    /// It has gone. Those of these seats have not settled that yet, and there is a limit.
    Gone(Vec<u16>, Instant),
    Awaited,
}

#[derive(Clone, Debug)]
struct Process {
    who: Who,
    name: String,
    items: Vec<Item>,
    state: State,
}

/// Who has what of a processor, by seat. What was granted is in here until the seat is free again.
#[derive(Clone, Debug)]
pub struct Registry {
    terms: Terms,
    processes: BTreeMap<u16, Process>,
}

/// What it asks of the processor, in millionths, rounded up.
#[must_use]
pub fn share_ppm(items: &[Item]) -> u64 {
    let of = |item: &Item| {
        let task = &item.linked.task;
        ppm(task.cost().as_nanos(), task.period())
    };
    items.iter().map(of).fold(0, u64::saturating_add)
}

/// So many nanoseconds in each window of this length, in millionths, rounded up.
fn ppm(nanos: u64, window: Span) -> u64 {
    let share = u128::from(nanos) * u128::from(WHOLE_PPM);
    let share = share.div_ceil(window.as_nanos().max(1).into());
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Their names are told to other processes, and are shown there.
fn named_plainly(mut items: Vec<Item>) -> Vec<Item> {
    for item in &mut items {
        item.name = plain(&item.name).into_owned();
    }
    items
}

/// What a process of such items does without a look at the most, as it was admitted.
fn longest(items: &[Item]) -> Service {
    let quanta = items.iter().map(|item| item.linked.task.longest_region());
    quanta.max().unwrap_or(Service::ZERO)
}

impl Terms {
    /// A process of such quanta is at work without a look for no longer than this.
    fn limit(&self, quantum: Service) -> Service {
        limit(quantum, self.tolerance, self.longest)
    }

    /// Where there are several processes: so much one of such quanta may take from the others beyond what it was admitted with, whatever one of its handlers does. That is what was
    /// spared of its [account](crate::executor::account::Account), and the time in which one is seen that does not come back. Of one such handler at a time.
    #[must_use]
    pub fn detection(&self, quantum: Service) -> Span {
        let seen = detection(self.limit(quantum)).checked_add(self.switches);
        let spared = self.tolerance.as_dedicated_span();
        seen.and_then(|seen| seen.checked_add(spared))
            .unwrap_or(Span::MAX)
    }
}

impl Registry {
    /// Nobody is there yet.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self {
            terms,
            processes: BTreeMap::new(),
        }
    }

    /// Whether this process may have a seat.
    ///
    /// # Errors
    ///
    /// The answer, for whoever asked.
    pub fn may_join(&self, who: Who) -> Result<(), Answer> {
        self.all_known().map_err(Answer::NotYet)?;
        let own = self
            .processes
            .values()
            .filter(|one| one.who.user == who.user);
        let most = self.terms.seats_of_one;
        match own.count() < most {
            true => Ok(()),
            false => Err(Answer::Refused(format!(
                "user {} has {most} processes here, and may not have more",
                who.user
            ))),
        }
    }

    /// Somebody who is awaited may have anything: until he has said what, nothing can be granted.
    fn all_known(&self) -> Result<(), String> {
        let is_awaited = |one: &&Process| matches!(one.state, State::Awaited);
        match self.processes.values().find(is_awaited) {
            None => Ok(()),
            Some(one) => Err(format!(
                "the coordinator before this one has ended, and process {} has not said yet what it was granted: it is stopped, or has lost its way here",
                one.who.process
            )),
        }
    }

    fn is_awaited(&self, seat: u16) -> bool {
        let found = self.processes.get(&seat);
        found.is_some_and(|one| matches!(one.state, State::Awaited))
    }

    /// A process has this seat, and nothing yet.
    pub fn joins(&mut self, seat: u16, who: Who, name: &str) {
        self.puts(seat, who, name, State::Here);
    }

    /// A process has this seat from the coordinator before.
    pub fn awaits(&mut self, seat: u16, who: Who) {
        self.puts(seat, who, "", State::Awaited);
    }

    fn puts(&mut self, seat: u16, who: Who, name: &str, state: State) {
        let process = Process {
            who,
            name: plain(name).into_owned(),
            items: Vec::new(),
            state,
        };
        self.processes.insert(seat, process);
    }

    /// One that was awaited is there, with what it was granted before. It is believed as far as that is granted again: what its user may have, how long a quantum may be, and whether
    /// all who have come back so far are in time beside it. By the terms by which it was granted all of that passes in any order, as whatever is in time is so with fewer beside it.
    ///
    /// # Errors
    ///
    /// Why not; then its seat is to be taken away.
    pub fn resumes(
        &mut self,
        seat: u16,
        who: Who,
        name: &str,
        items: Vec<Item>,
    ) -> Result<(), String> {
        let waited = self.processes.get(&seat).map(|one| one.who.process);
        if !self.is_awaited(seat) || waited != Some(who.process) {
            return Err(format!(
                "seat {seat} is not awaited of process {}",
                who.process
            ));
        }
        self.permits(seat, who, &items)
            .and_then(|()| self.bounds(seat, &items))
            .map_err(|(_, reason)| reason)?;
        self.puts(seat, who, name, State::Here);
        if let Some(process) = self.processes.get_mut(&seat) {
            process.items = named_plainly(items);
        }
        Ok(())
    }

    /// All that the process of a seat is to have from now on, or where it is not to `keep` that, whether it could. To have fewer of what it has needs nobody else to be known.
    ///
    /// What a user keeps from others, of which there may be a limit, is a density: what each call takes, with all that is charged for it, in its period or until it is due, whichever is shorter; and once, in the
    /// shortest of these, the time that is kept free for a handler that does not come back. It is reckoned as if there were always several processes.
    pub fn holds(&mut self, seat: u16, items: Vec<Item>, keep: bool) -> Answer {
        if let Err(reason) = self.all_known()
            && !(keep && self.gives_back(seat, &items))
        {
            return Answer::NotYet(reason);
        }
        let Some(process) = self.processes.get(&seat) else {
            return Answer::Refused(format!("nobody has seat {seat}"));
        };
        let bounds = self
            .permits(seat, process.who, &items)
            .and_then(|()| self.bounds(seat, &items));
        match bounds {
            Ok(bounds) => {
                if let Some(process) = self.processes.get_mut(&seat).filter(|_| keep) {
                    process.items = named_plainly(items);
                }
                Answer::Held(bounds)
            }
            Err((bottleneck, reason)) => Answer::No { bottleneck, reason },
        }
    }

    /// Whether these are none, or fewer than the process of a seat has, each of them one of those, in their order.
    fn gives_back(&self, seat: u16, items: &[Item]) -> bool {
        let had = self.processes.get(&seat).map(|process| &process.items[..]);
        let had = had.unwrap_or_default();
        let (mut each, mut left) = (items.iter(), had.iter());
        let is_some = each.all(|item| left.any(|before| before.linked == item.linked));
        items.is_empty() || (is_some && items.len() < had.len())
    }

    /// What is asked of each process alone.
    fn permits(&self, seat: u16, who: Who, items: &[Item]) -> Result<(), (Bottleneck, String)> {
        let longest = self.terms.longest;
        let quantum = |item: &Item| item.linked.task.longest_region();
        if let Some(index) = items.iter().position(|item| quantum(item) > longest) {
            let takes = quantum(&items[index]);
            let reason = format!(
                "a quantum of it takes {takes} with what is charged for it, and where processes take turns none may take more than {longest}"
            );
            return Err((Bottleneck::Own(index as u16), reason));
        }
        let others = || self.processes.iter().filter(|(other, _)| **other != seat);
        let there: usize = others().map(|(_, one)| one.items.len()).sum();
        if there + items.len() > MOST_ITEMS {
            let reason = format!(
                "there are {there} upcalls of others, and no room for more than {MOST_ITEMS}"
            );
            return Err((Bottleneck::All, reason));
        }
        let own = others().filter(|(_, one)| one.who.user == who.user);
        let own = own.flat_map(|(_, one)| &one.items).chain(items);
        let quota = self.terms.quotas.get(&who.user);
        let quota = *quota.unwrap_or(&self.terms.share_ppm);
        let asked = self.kept_ppm(own);
        if asked > quota {
            let (asked, quota) = (Share(asked), Share(quota));
            let reason = format!(
                "user {} would keep {asked} of the processor from others, and may keep {quota}",
                who.user
            );
            return Err((Bottleneck::All, reason));
        }
        Ok(())
    }

    /// What these keep from others, in millionths of the processor.
    fn kept_ppm<'a>(&self, items: impl Iterator<Item = &'a Item>) -> u64 {
        let (mut kept, mut shortest, mut quantum) = (0_u64, None, Service::ZERO);
        for item in items {
            let task = self.among(&item.linked, 0, true).task;
            let window = task.period().min(task.deadline());
            let woken = item
                .linked
                .woken()
                .map_or(Service::ZERO, |woken| woken.cost());
            let taken = task.cost().checked_add(woken).unwrap_or(Service::MAX);
            kept = kept.saturating_add(ppm(taken.as_nanos(), window));
            quantum = quantum.max(item.linked.task.longest_region());
            shortest = Some(shortest.map_or(window, |shortest: Span| shortest.min(window)));
        }
        let detection = self.terms.detection(quantum).as_nanos();
        kept.saturating_add(shortest.map_or(0, |shortest| ppm(detection, shortest)))
    }

    /// How long each of these takes at the longest, beside all of the others.
    fn bounds(&self, seat: u16, items: &[Item]) -> Result<Vec<Span>, (Bottleneck, String)> {
        let others = self.processes.iter().filter(|(other, _)| **other != seat);
        let others: Vec<(u32, &[Item])> = others
            .map(|(_, one)| (one.who.process, &*one.items))
            .collect();
        let sets = || core::iter::once(items).chain(others.iter().map(|(_, items)| *items));
        let several = sets().filter(|items| !items.is_empty()).count() > 1;
        let (mut all, mut before) = (Vec::new(), 0);
        for items in sets() {
            all.extend(
                items
                    .iter()
                    .map(|item| self.among(&item.linked, before, several)),
            );
            before += items.len();
        }
        let quantum = sets().map(longest).max().unwrap_or(Service::ZERO);
        let late = if several {
            self.terms.detection(quantum)
        } else {
            Span::ZERO
        };
        let bounds = linked::bounds(&all, &Delayed::new(Dedicated, late));
        match bounds {
            Ok(mut bounds) => {
                bounds.truncate(items.len());
                Ok(bounds)
            }
            Err(no) => {
                let named = others
                    .iter()
                    .flat_map(|(process, items)| items.iter().map(move |item| (process, item)));
                let bottleneck = match no.bottleneck {
                    None => Bottleneck::All,
                    Some(own) if own < items.len() => Bottleneck::Own(own as u16),
                    Some(other) => named.clone().nth(other - items.len()).map_or(
                        Bottleneck::All,
                        |(process, item)| {
                            Bottleneck::Other(format!("{} of process {process}", item.name))
                        },
                    ),
                };
                let reason = match late.is_zero() {
                    true => no.reason,
                    false => format!(
                        "{}; where there are several processes {late} is kept free for seeing a handler that does not come back",
                        no.reason
                    ),
                };
                Err((bottleneck, reason))
            }
        }
    }

    /// One of a process whose first is the so manieth of all.
    fn among(&self, linked: &Linked, before: usize, several: bool) -> Linked {
        let pass = if several {
            self.terms.pass
        } else {
            Service::ZERO
        };
        let all = Service::from_nanos(pass.as_nanos().saturating_mul(linked.calls.into()));
        let cost = linked.task.cost().checked_add(all).unwrap_or(Service::MAX);
        let costly = linked.task.with_cost(cost).unwrap_or(linked.task);
        Linked {
            // Who waits for a quantum of it waits for the baton's way there, too.
            task: costly.with_longer_regions(pass),
            after: linked.after.map(|index| index + before),
            ..*linked
        }
    }

    /// For how long each that has a seat may be at work without a look. Where there is nobody to be kept from anything, for as long as anybody may.
    pub fn limits(&self) -> impl Iterator<Item = (u16, Service)> {
        let all = self.processes.values();
        let several = all.filter(|one| !one.items.is_empty()).count() > 1;
        // One who is awaited may have anything.
        let is_known = move |one: &Process| several && !matches!(one.state, State::Awaited);
        self.processes.iter().map(move |(seat, one)| {
            let limit = match is_known(one) {
                true => self.terms.limit(longest(&one.items)),
                false => self.terms.longest,
            };
            (*seat, limit)
        })
    }

    /// The process of a seat has gone. Tells whom to say so: those who are there, where it had anything.
    pub fn goes(&mut self, seat: u16, now: Instant) -> Vec<u16> {
        let others = self.processes.iter();
        let others =
            others.filter(|(other, one)| **other != seat && matches!(one.state, State::Here));
        let others: Vec<u16> = others.map(|(other, _)| *other).collect();
        let limit = now.checked_add(self.terms.kept).unwrap_or(Instant::MAX);
        for process in self.processes.values_mut() {
            if let State::Gone(unsettled, _) = &mut process.state {
                unsettled.retain(|other| *other != seat);
            }
        }
        let Some(process) = self.processes.get_mut(&seat) else {
            return Vec::new();
        };
        let told = match process.items.is_empty() {
            true => Vec::new(),
            false => others,
        };
        process.state = State::Gone(told.clone(), limit);
        told
    }

    /// The process of this seat has done what was to be done after that one went.
    pub fn settles(&mut self, seat: u16, gone: u16) {
        if let Some(process) = self.processes.get_mut(&gone)
            && let State::Gone(unsettled, _) = &mut process.state
        {
            unsettled.retain(|other| *other != seat);
        }
    }

    /// The seats of those who have gone, whose time is over, and the processes that had them.
    #[must_use]
    pub fn over(&self, now: Instant) -> Vec<(u16, u32)> {
        let is_over = |one: &Process| match &one.state {
            State::Gone(unsettled, limit) => unsettled.is_empty() || *limit <= now,
            State::Here | State::Awaited => false,
        };
        let over = self.processes.iter().filter(|(_, one)| is_over(one));
        over.map(|(seat, one)| (*seat, one.who.process)).collect()
    }

    /// When the first limit passes.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let limit = |one: &Process| match &one.state {
            State::Gone(_, limit) => Some(*limit),
            State::Here | State::Awaited => None,
        };
        self.processes.values().filter_map(limit).min()
    }

    /// This seat is free again.
    pub fn frees(&mut self, seat: u16) {
        self.processes.remove(&seat);
    }

    /// The process that is said to have a seat.
    #[must_use]
    pub fn process(&self, seat: u16) -> Option<u32> {
        self.processes.get(&seat).map(|one| one.who.process)
    }

    /// Whether nobody is there, nor was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Who is there, or was, by seat.
    #[must_use]
    pub fn list(&self) -> Vec<Told> {
        let told = |(seat, one): (&u16, &Process)| Told {
            process: one.who.process,
            user: one.who.user,
            seat: *seat,
            name: one.name.clone(),
            presence: match one.state {
                State::Here => Presence::Here,
                State::Gone(..) => Presence::Gone,
                State::Awaited => Presence::Awaited,
            },
            items: one.items.clone(),
        };
        self.processes.iter().map(told).collect()
    }
}
