//! Whose reservation it is, as it is seen from outside.

use std::collections::BTreeSet;

use laxity_model::{Instant, Service, Span};

use crate::os::clock;
use crate::os::fact::{Fact, read};
use crate::os::proc::{RealTimeThread, has_gone, stat_of, unless_gone};
use crate::os::sched::Tid;
use crate::os::schedstat::{Account, Counted};

/// What was seen of a holder since the last look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) service: Service,
    /// Waits that ended since.
    pub(crate) waited: Span,
    /// No single one of them was longer.
    pub(crate) longest: Span,
    /// More than one of its threads ran or waited, since the last time that any did.
    pub(crate) several: bool,
    /// It had the processor.
    pub(crate) ran: bool,
    /// A thread of it has ended since the last look: what that had since then nobody saw.
    pub(crate) ended: bool,
    /// It has no thread any more.
    pub(crate) gone: bool,
}

/// What a holder wants that does not run, as the kernel tells. Of several it is the last of these that one of them has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    /// Nothing: it sleeps, or has gone.
    Sleeps,
    /// That is not to be known: a control group that it is in is frozen.
    Frozen,
    /// That is not to be known: a signal, or a debugger, stopped it.
    Stopped,
    /// That cannot be read: it may want one, or sleep.
    Unknown,
    /// A processor.
    Wants,
}

/// The holder of a reservation: a thread, or the threads of a program that share one.
pub(crate) trait Subject: Send {
    /// What it has had since the last look; `None` of what holds nothing itself, or not yet, and only looks for who does.
    fn look(&mut self) -> Option<Part>;

    /// Whether this thread is the holder, or one of its threads, whether it was found yet or not.
    fn has(&self, thread: &RealTimeThread) -> bool;

    /// Whether it wants a processor now. A file of `/proc` is read (10 µs a thread).
    fn state(&self) -> State;
}

/// One thread.
#[derive(Debug)]
pub(crate) struct OneThread {
    tid: Tid,
    account: Account,
    before: Counted,
    /// No later than that was read.
    looked: Instant,
    /// Of this process: it has a better clock than the account, which is behind by up to a tick while it runs.
    is_own: bool,
    /// It has ended, and that was told.
    is_gone: bool,
}

impl OneThread {
    /// From now on.
    pub(crate) fn new(tid: Tid) -> Fact<Self> {
        let account = Account::of(tid)?;
        let before = account.read()?;
        let mut one = Self {
            tid,
            account,
            before,
            looked: clock::now(),
            is_own: clock::service_of(tid).is_some(),
            is_gone: false,
        };
        one.before = one.read()?;
        Ok(one)
    }

    fn read(&self) -> Fact<Counted> {
        let counted = self.account.read()?;
        let own = self.is_own.then(|| clock::service_of(self.tid)).flatten();
        let service = own.unwrap_or(counted.service);
        Ok(Counted { service, ..counted })
    }
}

/// Whether what is counted now, so long after what was counted before, is of another thread: where one that is not the first of its process executes another
/// program, the others end, and it has the number of the first from then on. Of its account nothing shows that but that no thread can have had so much: not
/// beyond the time that passed, by a clock that may be steered, and what was not counted yet of one that ran.
fn is_anothers(before: &Counted, now: &Counted, passed: Span) -> bool {
    let had = now.service.saturating_sub(before.service);
    let is_less = now.service < before.service || now.turns < before.turns;
    is_less || is_too_much(had, passed)
}

/// Whether no thread can have had so much in this time.
pub(super) fn is_too_much(had: Service, passed: Span) -> bool {
    had.as_dedicated_span() > passed + passed / 8 + clock::tick()
}

impl Part {
    /// What nobody has had.
    pub(super) const NOBODY: Self = Self {
        service: Service::ZERO,
        waited: Span::ZERO,
        longest: Span::ZERO,
        several: false,
        ran: false,
        ended: false,
        gone: true,
    };

    /// Whether it ran, or waited and does not any more.
    pub(super) fn acted(&self) -> bool {
        self.ran || !self.waited.is_zero()
    }

    /// What two have had together.
    pub(super) fn add(&mut self, other: Self) {
        self.service += other.service;
        self.waited += other.waited;
        self.longest = self.longest.max(other.longest);
        self.ran |= other.ran;
        self.ended |= other.ended;
        self.gone &= other.gone;
    }
}

/// Those of several threads that ran or waited when any was last seen to.
#[derive(Debug, Default)]
pub(super) struct Acted(BTreeSet<Tid>);

impl Acted {
    /// What all of them have had together, of which each has had this; nothing where it cannot be looked at.
    pub(super) fn together(&mut self, each: impl Iterator<Item = (Tid, Option<Part>)>) -> Part {
        let mut all = Part::NOBODY;
        let mut acted = BTreeSet::new();
        for (thread, part) in each {
            acted.extend(part.filter(Part::acted).map(|_| thread));
            all.add(part.unwrap_or(Part::NOBODY));
        }
        if !acted.is_empty() {
            all.several = acted.union(&self.0).count() > 1;
            self.0 = acted;
        }
        all
    }
}

impl Subject for OneThread {
    fn look(&mut self) -> Option<Part> {
        let looks = clock::now();
        let Ok(now) = self.read() else {
            return Some(Part {
                ended: !std::mem::replace(&mut self.is_gone, true),
                ..Part::NOBODY
            });
        };
        let looked = std::mem::replace(&mut self.looked, looks);
        let before = std::mem::replace(&mut self.before, now);
        if is_anothers(&before, &now, clock::now().saturating_since(looked)) {
            return Some(Part {
                ran: true,
                ended: true,
                gone: false,
                ..Part::NOBODY
            });
        }
        let service = now.service.saturating_sub(before.service);
        let waited = now.waited.saturating_sub(before.waited);
        Some(Part {
            service,
            waited,
            longest: waited,
            several: false,
            ran: now.turns != before.turns || !service.is_zero(),
            ended: false,
            gone: false,
        })
    }

    fn has(&self, thread: &RealTimeThread) -> bool {
        thread.tid == self.tid
    }

    fn state(&self) -> State {
        let is_frozen = || is_frozen(self.tid);
        let has_gone = || has_gone(format!("/proc/{}", self.tid));
        state_of(stat_of(self.tid, 3), is_frozen, has_gone)
    }
}

/// What a thread wants, by the state that its `stat` tells.
fn state_of(
    told: Fact<char>,
    is_frozen: impl FnOnce() -> Fact<bool>,
    has_gone: impl FnOnce() -> bool,
) -> State {
    let state = told.and_then(|told| match told {
        'R' => Ok(State::Wants),
        'T' | 't' => Ok(State::Stopped),
        _ if is_frozen()? => Ok(State::Frozen),
        _ => Ok(State::Sleeps),
    });
    state.unwrap_or_else(|_| match has_gone() {
        true => State::Sleeps,
        false => State::Unknown,
    })
}

/// Whether a thread that sleeps, as far as its state tells, does so in a frozen control group: it waits in the kernel where signals are taken, or where version 1
/// keeps it. One that was asleep when its group of version 1 was frozen is not told from one that sleeps.
fn is_frozen(thread: Tid) -> Fact<bool> {
    const WHERE: [&str; 3] = ["get_signal", "do_freezer_trap", "__refrigerator"];
    let path = format!("/proc/{thread}/wchan");
    // Some kernels have no such file.
    let waits_in = unless_gone(&path, read(&path))?;
    Ok(waits_in.is_some_and(|waits_in| WHERE.contains(&waits_in.as_str())))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::doctor::rights::{self, Right};
    use crate::enforce::confine::Freezer;
    use crate::os::fact::Unknown;

    #[test]
    fn several_are_those_who_ran_or_waited_when_any_did_last_and_now() {
        let part = |ran, waited_ms| Part {
            ran,
            waited: Span::from_millis(waited_ms),
            gone: false,
            ..Part::NOBODY
        };
        let (sleeps, runs, waited) = (part(false, 0), part(true, 0), part(false, 3));
        let looks = [
            ([sleeps, sleeps], false),
            ([runs, sleeps], false),
            ([runs, sleeps], false),
            // Nobody did then, and before that the other.
            ([sleeps, sleeps], false),
            ([sleeps, waited], true),
            ([sleeps, runs], false),
            ([runs, waited], true),
            ([runs, sleeps], true),
            ([runs, sleeps], false),
        ];
        let mut acted = Acted::default();
        for (number, (both, several)) in looks.into_iter().enumerate() {
            let each = [1, 2, 3].map(Tid).into_iter();
            let each = each.zip(both.map(Some).into_iter().chain([None]));
            let all = acted.together(each);
            assert_eq!(all.several, several, "{number}");
            assert_eq!(all.ran, both[0].ran || both[1].ran, "{number}");
            assert!(!all.gone);
        }
        assert!(acted.together(std::iter::empty()).gone);
    }

    #[test]
    fn who_cannot_be_read_does_not_sleep_unless_it_has_gone() {
        let hidden = || Unknown("hidden".to_owned());
        let cases = [
            (Ok('R'), Err(hidden()), false, State::Wants),
            (Ok('T'), Err(hidden()), false, State::Stopped),
            (Ok('S'), Ok(true), false, State::Frozen),
            (Ok('S'), Ok(false), false, State::Sleeps),
            (Ok('S'), Err(hidden()), false, State::Unknown),
            (Err(hidden()), Ok(false), false, State::Unknown),
            (Err(hidden()), Ok(false), true, State::Sleeps),
        ];
        for (told, is_frozen, has_gone, expected) in cases {
            let found = state_of(told.clone(), || is_frozen.clone(), || has_gone);
            assert_eq!(found, expected, "{told:?} {is_frozen:?} {has_gone}");
        }
    }

    #[test]
    fn no_thread_has_more_than_the_time_that_passed_and_an_account_with_more_is_anothers() {
        let ms = Service::from_millis;
        let counted = |service, turns| Counted {
            service,
            turns,
            ..Counted::default()
        };
        let before = counted(ms(1_000), 50);
        let tick = clock::tick().as_full_service();
        let table = [
            (counted(ms(1_000), 50), false),
            (counted(ms(1_008), 51), false),
            // What it had before the last look may be counted a tick late.
            (counted(ms(1_008) + tick, 50), false),
            (counted(ms(1_010) + tick, 50), true),
            (counted(ms(2_500), 900), true),
            // Nothing is taken back.
            (counted(ms(999), 51), true),
            (counted(ms(1_001), 49), true),
        ];
        for (now, expected) in table {
            let found = is_anothers(&before, &now, Span::from_millis(8));
            assert_eq!(found, expected, "{now:?}");
        }
    }

    #[test]
    fn who_has_the_number_of_another_is_counted_from_then_on() {
        let mut one = OneThread::new(Tid::current()).unwrap();
        let look = |one: &mut OneThread| one.look().expect("it is there");
        assert!(!look(&mut one).ended);
        one.before.turns = u64::MAX;
        let took_over = look(&mut one);
        assert!(took_over.ended && took_over.ran && !took_over.gone);
        assert_eq!(took_over.service, Service::ZERO);
        clock::spin_until(clock::now() + Span::from_millis(1), || false);
        let since = look(&mut one);
        assert!(!since.ended && since.service > Service::ZERO, "{since:?}");
    }

    #[test]
    fn who_is_frozen_does_not_sleep() {
        if let Some(why) = rights::missing(Right::Freezer) {
            return rights::lacks(&why);
        }
        let freezer = Freezer::create("subject").unwrap();
        let mut program = Command::new("sh");
        let program = program.args(["-c", "while :; do :; done"]);
        let mut program = program.spawn().unwrap();
        freezer.add(program.id().cast_signed()).unwrap();
        let one = OneThread::new(Tid(program.id().cast_signed())).unwrap();
        let becomes = |state| {
            (0..1_000).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                one.state() == state
            })
        };
        freezer.freeze().unwrap();
        let is_frozen = becomes(State::Frozen);
        freezer.thaw().unwrap();
        let wants_again = becomes(State::Wants);
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!([is_frozen, wants_again], [true; 2]);
    }

    #[test]
    fn who_is_stopped_does_not_sleep_and_cannot_want() {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_child(&program);
        let one = OneThread::new(Tid(program.id().cast_signed())).unwrap();
        let becomes = |state| {
            (0..1_000).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                one.state() == state
            })
        };
        let slept = becomes(State::Sleeps);
        kill_process(pid, Signal::STOP).unwrap();
        let stopped = becomes(State::Stopped);
        kill_process(pid, Signal::CONT).unwrap();
        let sleeps_again = becomes(State::Sleeps);
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!([slept, stopped, sleeps_again], [true; 3]);
        assert_eq!(one.state(), State::Sleeps, "it has gone");
    }
}
