//! The lookout: while a run is under way it looks, now and again and at once when the witness was held up, who of others ranks above the
//! program, and whether the run's own threads still are what they ought to be. A grant is as good as its worst moment.
//!
//! It works just above ordinary threads, on the processor of the external activities, and takes at most some twentieth of that unless the alarm is
//! raised all the time: less than a hundredth beside a thousand threads. Where there are so many that looks come late by that, it says so.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::thread;

use laxity_model::enforce::{Lateness, Unforeseen, Waits, ranks};
use laxity_model::{HostError, Instant, Span};

use super::beside::{Beside, known_as};
use super::sighting::Sighting;
use crate::doctor::outranking::{self, Hidden};
use crate::enforce::{guardian, witness};
use crate::os::census::Census;
use crate::os::clock;
use crate::os::fact::Fact;
use crate::os::open_files;
use crate::os::proc::RealTimeThread;
use crate::os::sched;
use crate::os::schedstat::Account;
use crate::os::usage;
use crate::run::drivers::{Tallies, TookLonger};
use crate::run::ours;
use crate::run::own::{Changed, Own, Role};
use crate::run::{self, Run, Thread};

/// From one look to the next at most, if looking is cheap: a stranger that is there for longer is seen.
const EVERY: Span = Span::from_millis(100);
/// A look takes no more than one part of so many of the longest that may lie between two.
const SHARE: u64 = 25;
/// Looks that an alarm asks for take no more than one part of so many.
const ALARMED_SHARE: u64 = 5;
/// Whoever comes and goes while nobody looks for longer than this is not seen, though the machine may have stood still, which then leaves it open; and so does as
/// much as lies between two looks ([`EVERY`]) where somebody stopped who looks, and nobody else. Where looking takes so much that it rests longer, a stranger had
/// as much time as that took: no more of it is let pass than lies between two looks in any case. Where somebody held the processor of who looks for longer than
/// that, and for no longer than this, it is left open: it may have been who outranks slots too, and on a virtual machine is most often a neighbour.
const BLIND: Span = Span::from_millis(500);
/// So many strangers are kept by name; more are counted.
const MOST: usize = 32;

/// A thread of ours that somebody changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tampered {
    pub(crate) changed: Changed,
    /// When that was seen.
    pub(crate) at: Instant,
    /// Until then it was seen to be what it ought.
    pub(crate) sound_until: Instant,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) strangers: Vec<Sighting>,
    /// How many more there were at a time.
    pub(crate) more: u64,
    /// Why there may have been others.
    pub(crate) unseen: Option<String>,
    /// Why nobody knows whether anybody can have been there unseen.
    pub(crate) doubted: Option<String>,
    pub(crate) tampered: Vec<Tampered>,
    /// Drivers that slots were admitted below, and that took longer than was said, with when that was seen.
    pub(crate) overlong: Vec<(TookLonger, Instant)>,
    /// What became of the guardian, if it died.
    pub(crate) guardian: Option<String>,
}

/// Looks, and keeps what it saw.
pub(crate) struct Lookout {
    /// Those of our threads that nobody has changed yet.
    own: Vec<Own>,
    /// All threads that it knows of.
    census: Census,
    /// What the drivers of this process took.
    drivers: Tallies,
    /// The processors over which it looks out for others.
    cpus: Vec<usize>,
    /// When the last look began, and the alarm's number then.
    last: Instant,
    alarm: u32,
    /// When it looks though no alarm asks for it: no alarm puts that off, or whoever steps down before it is raised would be met by no look at all.
    regular: Unforeseen,
    /// What each of the last two looks took of the processor.
    took: [Span; 2],
    /// How long the thread that looks has waited for its processor, and had at the beginning of the last look; where the kernel tells.
    waits: Option<Account>,
    waited: Option<Span>,
    /// How often that thread had given its processor up when it woke last.
    given_up: u64,
    /// Somebody has stopped it since the last look.
    stopped: bool,
    /// For how long in all those who watch had stood still by the last look.
    stood: Span,
    /// For so long nobody looked before the last look, since somebody stopped the thread that looks, and what `stood` was before that: whether those who watch
    /// stood still too is known when they have run again.
    still: Option<(Span, Span)>,
    seen: Seen,
}

impl Lookout {
    /// Begins to look now, for those of others who count on these processors: who is there already is seen by its name, and from now on by what it does.
    pub(crate) fn begin(cpus: Vec<usize>, counts: impl Fn(&RealTimeThread) -> bool) -> Self {
        let mut lookout = Self {
            cpus,
            ..Self::at_own()
        };
        lookout.look_at_others(false, counts);
        lookout
    }

    /// Begins to look at our own threads only. The calling thread is the one that looks.
    pub(crate) fn at_own() -> Self {
        let waits = Account::of_current();
        let now = clock::now();
        let mut lookout = Self {
            own: Vec::new(),
            census: Census::default(),
            drivers: Tallies::default(),
            cpus: Vec::new(),
            last: now,
            alarm: 0,
            regular: Unforeseen::new(now, RandomState::new().hash_one(now.as_nanos())),
            took: [Span::ZERO; 2],
            waits,
            waited: None,
            given_up: usage::waits(),
            stopped: false,
            stood: Span::ZERO,
            still: None,
            seen: Seen::default(),
        };
        lookout.waited = lookout.waited();
        lookout
    }

    /// What is looked after begins now: until then there was nothing to be missed.
    pub(crate) fn start(&mut self) {
        (self.last, self.waited) = (clock::now(), self.waited());
        self.regular.begin(self.last);
        self.given_up = usage::waits();
    }

    /// The thread that looks has slept, once at most, and woke: whether it was stopped since it woke the last time, as whoever gave its processor up more often
    /// than that. There is no other sign of it where a debugger stops this thread alone; a processor that stands still leaves none.
    pub(crate) fn woke(&mut self) -> bool {
        let given_up = usage::waits();
        let stopped = given_up > std::mem::replace(&mut self.given_up, given_up) + 1;
        self.stopped |= stopped;
        stopped
    }

    /// What others did until now counts no more: whoever was seen and is there still was there from the start, and is weighed by what it does from now on.
    /// What became of our own threads stays so, and of drivers.
    pub(crate) fn begin_anew(&mut self) {
        self.still = None;
        let before = std::mem::take(&mut self.seen);
        let strangers = before.strangers.into_iter();
        self.seen.strangers = strangers.filter_map(Sighting::anew).collect();
        self.seen.tampered = before.tampered;
        self.seen.overlong = before.overlong;
        self.seen.guardian = before.guardian;
    }

    fn waited(&self) -> Option<Span> {
        Some(self.waits.as_ref()?.read().ok()?.waited)
    }

    /// All that was seen so far.
    pub(crate) const fn seen(&self) -> &Seen {
        &self.seen
    }

    /// When it is to look again, where the alarm has this number.
    pub(crate) fn due(&self, alarm: u32) -> Instant {
        let regular = self.regular.due(self.pause());
        if alarm == self.alarm {
            regular
        } else {
            regular.min(self.last + self.cost() * ALARMED_SHARE)
        }
    }

    /// The longest from one look to the next.
    fn pause(&self) -> Span {
        EVERY.max(self.cost() * SHARE)
    }

    /// What a look takes of the processor. A halt of the machine counts as taken, and the first look takes more than those after it: what one look alone
    /// took is not what they take.
    fn cost(&self) -> Span {
        let [before, last] = self.took;
        before.min(last)
    }

    /// Looks once for those of others who count, and at the threads of ours that registered with a run. Who comes or goes during the look may be
    /// missed.
    pub(crate) fn look(
        &mut self,
        run: &Run,
        is_over: impl Fn() -> bool,
        counts: impl Fn(&RealTimeThread) -> bool,
    ) {
        let now = self.waited();
        let waited = now.zip(self.waited);
        let waited = waited.map(|(now, then)| now.saturating_sub(then));
        self.waited = now;
        self.doubt_standstill(run.stood());
        self.begin_to_look(clock::now(), waited, run.stood());
        if is_over() {
            self.doubt_standstill(run.stood());
            // The last look misses nobody.
            self.census.list_next();
        }
        self.look_at_own(run, is_over);
        self.look_at_others(true, counts);
        self.look_at_drivers(run.stood());
    }

    /// Holds the drivers of this process to what was said of them. Without slots nothing was.
    fn look_at_drivers(&mut self, stood: Span) {
        let now = clock::now();
        for found in self.drivers.look(&self.cpus, now, stood) {
            let mut known = self.seen.overlong.iter();
            if !known.any(|(known, _)| known.name == found.name) {
                self.seen.overlong.push((found, now));
            }
        }
    }

    /// `has_begun`: who is not known yet came meanwhile.
    fn look_at_others(&mut self, has_begun: bool, counts: impl Fn(&RealTimeThread) -> bool) {
        let begun = clock::thread_service();
        // Who leaves while all are asked is no stranger.
        let ours = ours::present();
        let is_ours = |thread: &RealTimeThread| {
            thread.pid == std::process::id() && ours.contains(&thread.tid)
        };
        let counts = |thread: &RealTimeThread| !is_ours(thread) && counts(thread);
        let all = (self.census.real_time(counts), Hidden::find());
        // Not before it was seen: what is over by then did not have it above.
        let at = has_begun.then(clock::now);
        self.seen.note(at, all, counts);
        Sighting::weigh_together(&mut self.seen.strangers, &self.cpus);
        let took = clock::thread_service().saturating_sub(begun);
        self.took = [self.took[1], Span::from_nanos(took.as_nanos())];
    }

    /// It looks again now, and was runnable and waited for so long since the last look, if that is known, by which those who watch have stood still for so long
    /// in all: tells itself when it was blind.
    fn begin_to_look(&mut self, now: Instant, waited: Option<Span>, stood: Span) {
        let promised = self.last + EVERY;
        let late = now.saturating_since(promised);
        // An alarm asks for a look at once, not since the last one.
        let due = self.due(self.alarm);
        let rests = due > promised + EVERY;
        let waits = Waits {
            runnable: waited,
            stopped: std::mem::take(&mut self.stopped),
        };
        let lateness = Lateness::of(now.saturating_since(due), waits);
        let stood_before = std::mem::replace(&mut self.stood, stood);
        let (most, why) = match lateness {
            // Whoever rests does so while others work.
            _ if rests => (EVERY, "there are too many threads to look at"),
            Lateness::Standstill => (BLIND, "those who look stood still"),
            Lateness::Stopped => {
                self.still = (late > EVERY).then_some((late, stood_before));
                (BLIND, "those who look stood still")
            }
            Lateness::Held => (EVERY, "somebody held the processor of those who look"),
            Lateness::Untold => (EVERY, "those who look were kept from it"),
        };
        if late > most {
            let blind = format!("nobody looked for {late}: {why}");
            let stood_still = matches!(lateness, Lateness::Standstill | Lateness::Stopped);
            let is_doubtful = !rests && (late <= BLIND || stood_still);
            let told = match is_doubtful {
                true => &mut self.seen.doubted,
                false => &mut self.seen.unseen,
            };
            told.get_or_insert(blind);
        }
    }

    /// Those who watch have stood still for so long in all. Where they were stopped too they tell it; else somebody stopped the thread that looks alone, and may
    /// have come and gone meanwhile.
    fn doubt_standstill(&mut self, stood: Span) {
        let Some((late, before)) = self.still.take() else {
            return;
        };
        if late.saturating_sub(stood.saturating_sub(before)) > EVERY {
            let blind = format!(
                "nobody looked for {late}: somebody stopped those who look, and no witness"
            );
            self.seen.doubted.get_or_insert(blind);
        }
    }

    /// Looks only at the threads of ours that registered with a run.
    pub(crate) fn look_at_own(&mut self, run: &Run, is_over: impl Fn() -> bool) {
        self.look_at_guardian();
        self.alarm = run.alarm();
        self.own.append(&mut run.take_own());
        let sound_until = std::mem::replace(&mut self.last, clock::now());
        self.regular.looked(self.last, self.pause());
        let (tampered, at) = (&mut self.seen.tampered, self.last);
        self.own.retain(|own| {
            // At the end whoever works still is raised or let loose, so that it ends.
            let now = || own.changed().filter(|_| !is_over() && !run.is_overdue());
            let Some(changed) = own.found().or_else(now) else {
                return true;
            };
            tampered.push(Tampered {
                changed,
                at,
                sound_until,
            });
            false
        });
    }

    fn look_at_guardian(&mut self) {
        let told = match guardian::look_after() {
            Ok(false) => return,
            Ok(true) => "the guardian process, which gives back what others had if this process is killed, had died: another took its place".to_owned(),
            Err(error) => format!(
                "the guardian process has died, and no other can be started ({error}): what others had stays lost if this process is killed"
            ),
        };
        self.seen.guardian = Some(told);
    }

    /// Waits until it is to look again; `false` if the run ended first.
    fn waits(&mut self, run: &Run) -> bool {
        let alarm = run.wait_for_alarm(self.alarm, self.due(self.alarm));
        self.woke();
        let goes_on = run.sleep_until(self.due(alarm));
        self.woke();
        goes_on && !run.ended()
    }
}

impl Seen {
    /// These real-time threads were seen, beside those that are hidden; `at`: when, once all have begun.
    fn note(
        &mut self,
        at: Option<Instant>,
        (threads, hidden): (Fact<Vec<RealTimeThread>>, Option<Hidden>),
        counts: impl Fn(&RealTimeThread) -> bool,
    ) {
        let unreadable = threads.as_ref().err().map(ToString::to_string);
        let unseen = hidden.map(|hidden| hidden.to_string()).or(unreadable);
        if let Some(why) = unseen {
            // That this process may open no more files says nothing of anybody.
            let told = match open_files::remedy(&why) {
                Some(_) => &mut self.doubted,
                None => &mut self.unseen,
            };
            told.get_or_insert(why);
        }
        let mut above: Vec<RealTimeThread> = threads.into_iter().flatten().collect();
        above.retain(&counts);
        // Who has become one of those who are looked after is no stranger any more.
        self.strangers.retain(|one| counts(&one.thread));
        for one in &mut self.strangers {
            one.look(above.iter().any(|thread| one.is(thread)));
        }
        above.retain(|thread| !self.strangers.iter().any(|one| one.is(thread)));
        let room = MOST.saturating_sub(self.strangers.len()).min(above.len());
        self.more = self.more.max((above.len() - room) as u64);
        let new = above.into_iter().take(room);
        self.strangers
            .extend(new.map(|thread| Sighting::new(thread, at)));
    }

    /// Whoever was not looked at before is known from now on, if it belongs to one of these programs.
    fn name(&mut self, beside: &[Beside]) {
        for one in &mut self.strangers {
            one.name_once(|thread| known_as(thread, beside));
        }
    }
}

/// Gives the calling thread, which is to look, its processor and its rank: just above ordinary threads, so that looking at all of them takes nothing from
/// anybody's real-time work. Where that starves it, or somebody changes it, it knows and says so.
pub(crate) fn settle(cpu: usize, run: &Run) -> Result<(), HostError> {
    sched::pin(cpu)
        .and_then(|()| witness::settle(Role::Lookout, cpu, ranks::COLLECTOR, run))
        .map(drop)
        .map_err(|error| HostError::Failed(format!("the lookout: {error}")))
}

/// Starts the lookout over these processors, beside which these programs run, itself on another; it ends with the run, after a last look.
pub(crate) fn spawn(
    (cpus, beside): (Vec<usize>, Vec<Beside>),
    external: usize,
    run: Arc<Run>,
) -> Result<Thread<Seen>, HostError> {
    run::spawn("lookout".to_owned(), run, move |run| {
        settle(external, run)?;
        let above =
            |thread: &RealTimeThread| cpus.iter().any(|cpu| outranking::outranks(thread, *cpu));
        let mut lookout = Lookout::begin(cpus.clone(), above);
        lookout.seen.name(&beside);
        if run.wait_for_start().is_none() {
            return Ok(Seen::default());
        }
        lookout.start();
        while lookout.waits(run) {
            lookout.look(run, || run.ended(), above);
            lookout.seen.name(&beside);
            // Whoever empties the event rings has the same rank.
            thread::yield_now();
        }
        // Whoever came after the look before is seen by this one.
        lookout.look(run, || run.ended(), above);
        lookout.seen.name(&beside);
        Ok(lookout.seen)
    })
}

#[cfg(test)]
mod tests;
