//! A stranger that was seen to rank above slots, and what it has had of a processor since: whoever only could have taken it took nothing.

use std::collections::BTreeSet;

use laxity_model::request::Strangers;
use laxity_model::{Instant, Service};

use super::beside::KnownAs;
use crate::doctor::outranking::is_above_slots;
use crate::os::proc::RealTimeThread;
use crate::os::schedstat::Account;

/// A stranger that ranks above slots.
#[derive(Debug)]
pub(crate) struct Sighting {
    pub(crate) thread: RealTimeThread,
    /// When it was seen first; `None` of one that was there before anything began.
    pub(crate) at: Option<Instant>,
    /// The most that it had from one look at it to the next; `None` where that is not known.
    most: Option<Service>,
    /// What it had from the look before to the last, where that is known.
    last: Service,
    /// The processors on which it had something between two looks, and all who did go unnoticed alone and not together.
    crowded: BTreeSet<usize>,
    /// While it ranks above: the kernel's account of it, and what that said at the last look.
    account: Option<(Account, Option<Service>)>,
    /// As what it is known; `None` until somebody looked whose it is.
    known: Option<Known>,
}

/// Whose a thread is that ranks above slots.
#[derive(Debug)]
enum Known {
    /// Nobody's whom we know.
    Stranger,
    /// Of a program that runs beside the run.
    Beside(KnownAs),
}

impl Sighting {
    /// Of one that is seen now. One that came meanwhile may have had all that it ever had since the look before.
    pub(super) fn new(thread: RealTimeThread, at: Option<Instant>) -> Self {
        let account = Account::of(thread.tid).ok();
        let account = account.map(|account| {
            let had = account.service();
            (account, had)
        });
        let had = account.as_ref().and_then(|(_, had)| *had);
        let most = match at {
            None => had.map(|_| Service::ZERO),
            Some(_) => had,
        };
        Self {
            thread,
            at,
            most,
            last: most.unwrap_or_default(),
            crowded: BTreeSet::new(),
            account,
            known: None,
        }
    }

    /// As of one that is there before anything begins, which is now; `None` of one that does not rank above any more, or has gone. One of which nobody tells
    /// what it has is as if it were seen for the first time.
    pub(super) fn anew(self) -> Option<Self> {
        let (account, _) = self.account?;
        let had = account.service()?;
        Some(Self {
            at: None,
            most: Some(Service::ZERO),
            last: Service::ZERO,
            crowded: BTreeSet::new(),
            account: Some((account, Some(had))),
            ..self
        })
    }

    /// Looks whose it is, unless that was done.
    pub(super) fn name_once(&mut self, known_as: impl FnOnce(&RealTimeThread) -> Option<KnownAs>) {
        let thread = &self.thread;
        let look = || known_as(thread).map_or(Known::Stranger, Known::Beside);
        self.known.get_or_insert_with(look);
    }

    /// Whether it is of a program that runs beside the run.
    pub(super) const fn is_beside(&self) -> bool {
        matches!(self.known, Some(Known::Beside(_)))
    }

    /// Whether it has the rank that it was given beside the run.
    pub(super) fn is_as_given(&self) -> bool {
        matches!(&self.known, Some(Known::Beside(known)) if !known.raised)
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        match &self.known {
            Some(Known::Beside(known)) => known.name.clone(),
            Some(Known::Stranger) | None => self.thread.to_string(),
        }
    }

    /// What it had since the last look is weighed; `is_above`: it still ranks above. While it does not, nobody weighs what it has.
    pub(super) fn look(&mut self, is_above: bool) {
        self.last = Service::ZERO;
        let Some((account, had)) = &mut self.account else {
            // It has come back, and since when is not known.
            self.most = self.most.filter(|_| !is_above);
            return;
        };
        let now = account.service();
        let since = now.zip(*had).map(|(now, then)| now.saturating_sub(then));
        self.most = self.most.zip(since).map(|(most, since)| most.max(since));
        *had = now;
        self.last = since.unwrap_or_default();
        if !is_above {
            self.account = None;
        }
    }

    /// Whether it is seen to have taken nothing of a processor, though it might have.
    pub(super) fn is_idle(&self, cpu: usize) -> bool {
        self.is_unnoticed() && !self.crowded.contains(&cpu)
    }

    fn is_unnoticed(&self) -> bool {
        self.most
            .is_some_and(|most| Strangers::go_unnoticed([most]))
    }

    /// What these had from the look before to the last is weighed together, for each processor on which they may have had it.
    pub(super) fn weigh_together(all: &mut [Self], cpus: &[usize]) {
        for cpu in cpus {
            let had_little = |one: &Self| {
                let is_here = is_above_slots(&one.thread, *cpu);
                is_here && one.is_unnoticed() && !one.last.is_zero()
            };
            let here = all.iter().filter(|one| had_little(one));
            if !Strangers::go_unnoticed(here.map(|one| one.last)) {
                for one in all.iter_mut().filter(|one| had_little(one)) {
                    one.crowded.insert(*cpu);
                }
            }
        }
    }

    /// Whether it is this thread, as it ranks now.
    pub(super) fn is(&self, thread: &RealTimeThread) -> bool {
        self.thread.tid == thread.tid && self.thread.policy == thread.policy
    }

    /// One that had so much at most.
    #[cfg(test)]
    pub(super) fn that_had(
        thread: RealTimeThread,
        at: Option<Instant>,
        most: Option<Service>,
    ) -> Self {
        Self {
            thread,
            at,
            most,
            last: most.unwrap_or_default(),
            crowded: BTreeSet::new(),
            account: None,
            known: None,
        }
    }
}

#[cfg(test)]
pub(super) mod worker;

#[cfg(test)]
mod tests {
    use laxity_model::Span;

    use super::worker::Worker;
    use super::*;
    use crate::os::clock;
    use crate::os::cpuset::CpuSet;
    use crate::os::sched::Policy;

    /// As if it ranked above slots.
    fn above(worker: &Worker) -> RealTimeThread {
        RealTimeThread {
            pid: 41,
            parent: 1,
            tid: worker.tid,
            name: "watchdog".to_owned(),
            policy: Policy::Fifo(99),
            boosted: None,
            affinity: Ok(CpuSet::single(0)),
            processor: 0,
            of_kernel: false,
            of_laxity: false,
        }
    }

    #[test]
    fn who_sleeps_all_the_time_took_nothing_and_who_works_did() {
        let worker = Worker::start();
        worker.work();
        let mut seen = Sighting::new(above(&worker), None);
        seen.look(true);
        assert!(seen.is_idle(0), "{seen:?}");
        worker.work();
        seen.look(true);
        assert!(!seen.is_idle(0), "{seen:?}");
        seen.look(true);
        assert!(!seen.is_idle(0), "the worst moment counts");
    }

    #[test]
    fn who_is_there_when_it_begins_anew_took_nothing_yet() {
        let worker = Worker::start();
        worker.work();
        let seen = Sighting::new(above(&worker), Some(Instant::ZERO));
        let mut seen = seen.anew().expect("it is there");
        assert_eq!(seen.at, None);
        seen.look(true);
        assert!(seen.is_idle(0), "{seen:?}");
        worker.work();
        seen.look(true);
        assert!(!seen.is_idle(0), "{seen:?}");
        seen.look(false);
        assert!(seen.anew().is_none(), "it does not rank above any more");
    }

    #[test]
    fn what_is_not_seen_counts() {
        let worker = Worker::start();
        worker.work();
        let came = Sighting::new(above(&worker), Some(Instant::ZERO));
        assert!(!came.is_idle(0), "it may have worked just now: {came:?}");
        let mut left = Sighting::new(above(&worker), None);
        left.look(false);
        worker.work();
        left.look(false);
        assert!(left.is_idle(0), "it worked below slots: {left:?}");
        left.look(true);
        assert!(!left.is_idle(0), "since when it is back nobody knows");
        let mut gone = Sighting::new(above(&worker), None);
        worker.end();
        // A joined thread may be on its way out of the kernel for a moment.
        let latest = clock::now() + Span::from_secs(10);
        while gone.is_idle(0) {
            assert!(clock::now() < latest, "it is counted for ever");
            gone.look(true);
        }
        assert!(!Sighting::new(gone.thread, None).is_idle(0));
    }

    #[test]
    fn who_takes_little_beside_others_who_do_on_the_same_processor_is_not_idle() {
        let asleep = Worker::start();
        let of = |cpu, micros| {
            let mut thread = above(&asleep);
            thread.affinity = Ok(CpuSet::single(cpu));
            Sighting::that_had(thread, None, Some(Service::from_micros(micros)))
        };
        let idle = |all: &mut [Sighting], cpu| {
            Sighting::weigh_together(all, &[0, 1]);
            all.iter().map(|one| one.is_idle(cpu)).collect::<Vec<_>>()
        };
        let mut all = [of(0, 60), of(0, 40), of(0, 0), of(1, 90)];
        assert_eq!(idle(&mut all, 0), [true; 4]);
        // Whoever had more by itself is named for it, and for the others no less.
        let mut all = [of(0, 60), of(0, 40), of(0, 101)];
        assert_eq!(idle(&mut all, 0), [true, true, false]);
        let mut all = [of(0, 60), of(0, 41), of(0, 0), of(1, 90)];
        assert_eq!(idle(&mut all, 0), [false, false, true, true]);
        assert_eq!(idle(&mut all, 1), [true; 4]);
        // The worst moment counts.
        all.iter_mut().for_each(|one| one.look(true));
        let mut both = [of(0, 60), of(0, 60)];
        both.iter_mut().for_each(|one| one.last = Service::ZERO);
        assert_eq!(idle(&mut both, 0), [true; 2], "it was not at one time");
    }
}
