//! Real-time upcalls: periodic handlers that take turns in one real-time thread, each looking after every few units of work whether somebody more
//! urgent waits.
//!
//! Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees", WUCS-95-06, 1995.
//!
//! [`Upcalls::start`] starts an *executor*: a thread of a processor, which is real-time. [`Upcalls::create`] admits a handler where all that are there, and it, will meet
//! their deadlines, and says what would fit where they would not. A handler is called for one *quantum* of units at a time and is never interrupted by
//! another of its executor. So what they share they have one after the other, and need no lock for it: it is [`Call::shared`], made in the
//! executor's thread ([`Upcalls::sharing`]), and handlers may keep what no other thread may have:
//!
//! ```no_run
//! use std::num::NonZeroU32;
//!
//! use laxity::upcalls::{Options, Spec, Upcalls};
//! use laxity::{Service, Span};
//!
//! #[derive(Default)]
//! struct Window {
//!     unacknowledged: u32,
//! }
//!
//! let upcalls = Upcalls::sharing(Options::default(), Window::default)?;
//! let mut sender = Spec::each(Span::from_millis(40), Service::from_micros(50));
//! sender.name = "sender".into();
//! // Sixteen packets every 40 ms, and a look after every four.
//! sender.timing.batch = NonZeroU32::new(16).unwrap();
//! sender.timing.quantum = NonZeroU32::new(4).unwrap();
//! let sender = upcalls.create(sender, |call| {
//!     for _packet in 0..call.now() {
//!         call.shared.unacknowledged += 1;
//!     }
//!     if call.shared.unacknowledged >= 64 {
//!         call.suspend();
//!     }
//! })?;
//! sender.run()?;
//! upcalls.sleep(&[&sender])?;
//! println!("{:?}", sender.counts());
//! # Ok::<(), laxity::upcalls::Error>(())
//! ```
//!
//! What a handler shares stays in its thread. So it may be of a kind that cannot be sent to another, while what makes the handler is sent:
//!
//! ```compile_fail,E0277
//! # use std::rc::Rc;
//! # use laxity::upcalls::{Options, Spec, Upcalls};
//! # use laxity::{Service, Span};
//! let upcalls = Upcalls::start(Options::default())?;
//! let counter = Rc::new(0);
//! let spec = Spec::each(Span::from_millis(10), Service::from_micros(50));
//! upcalls.create(spec, move |_| println!("{counter}"))?;
//! # Ok::<(), laxity::upcalls::Error>(())
//! ```
//!
//! How often a handler is called, and for how much, follows from what an application needs of it: [`qos`] maps frames that may take so long, a throughput, requests that are to be answered soon, or messages at a high rate, to period, batch and
//! quantum, size of PDUs, bandwidth and buffers, by what the work on a PDU was measured to cost ([`pdu_cost`](crate::calibrate::pdu_cost)); [`Spec::mapped`] is what comes of it:
//!
//! ```
//! use std::num::NonZeroU32;
//!
//! use laxity::calibrate::pdu_cost;
//! use laxity::upcalls::Spec;
//! use laxity::upcalls::qos::{Class, Limits, Path, map};
//! use laxity::Span;
//!
//! let size = |bytes| NonZeroU32::new(bytes).unwrap();
//! let mut packet = vec![0_u8; 1_400];
//! let cost = pdu_cost(&[64, 1_400], |bytes| packet[..bytes as usize].fill(7))?;
//! // 25 frames a second, of 20 kB at the most, each shown 200 ms after it was taken.
//! let video = Class::ContinuousMedia { frame_bytes: size(20_000), every: Span::from_millis(40), delay: Span::from_millis(200) };
//! let path = Path { pdu_bytes: size(1_400), header_bytes: 40, latency: Span::from_millis(20), jitter: Span::from_millis(5) };
//! let mapping = map(&video, &cost, &path, &Limits::default())?;
//! assert!(mapping.throughput() >= 500_000 && mapping.delay <= Some(Span::from_millis(200)));
//! let spec = Spec::mapped("video", &mapping);
//! # let _ = spec;
//! # Ok::<(), laxity::upcalls::qos::Unmappable>(())
//! ```
//!
//! An executor's thread does nothing but its handlers' work: nothing is recorded that grows, and what is counted is read without a lock. What runs there at its rank, before all upcalls, besides their calls: what [makes](Upcalls::create_there) a handler, what is dropped with one, and the
//! program's panic hook where one panics, which by default writes to standard error, waits for that, and looks up a backtrace if `RUST_BACKTRACE` asks for one. A program that cannot have that sets a hook that does less; what a handler panicked with is [told](State::Panicked) anyhow. What they share is
//! made before the thread is real-time, and dropped at its end. No signal to the process is handled there: those are for the program's own threads, and what a handler starts but by a fork begins with them blocked.

mod beside;
mod call;
mod coordinated;
mod core;
mod ending;
mod error;
mod keeper;
mod members;
mod options;
mod upcall;
mod virtual_time;

use std::sync::{Arc, Mutex};

use laxity_linux::doctor::put_off;
use laxity_linux::host::alone::{Alone, Inbox};
pub use laxity_linux::host::coordinator::{self, Departed};
pub use laxity_linux::host::together::{Guard, Region, RegionError, Seat, Watch, guard};
use laxity_linux::os::memory::MemoryLock;
use laxity_model::Grade;
use laxity_model::executor::Unschedulable;
use laxity_model::program::upcalls::{Control, NotAdmitted, admit_among, charged, turns};
use laxity_model::{Service, Span};

pub use laxity_model::executor::pacing::OnOverrun;
pub use laxity_model::executor::share::ShareCounts;
pub use laxity_model::program::upcalls::{Counts, Overhead, qos};

pub use self::call::Call;
pub use self::coordinated::Coordinated;
pub use self::error::Error;
pub use self::members::Group;
pub use self::options::{Options, Policy, Rank, Supply, Together};
pub use self::upcall::{Before, Pace, Spec, State, Upcall, WhenFull};
pub use self::virtual_time::{Virtual, VirtualCall};

use self::beside::{Beside, CHANGED, Footing};
use self::coordinated::Books;
use self::core::{COMMANDS, Core, DOORBELL, Over, PATIENCE, PLACES};
use self::keeper::{Keep, Letter, Letters, When};
use self::members::{Member, Predecessor};
use self::options::MOST_EVENTS;
use crate::doctor::Diagnosis;
use crate::executor::{Edf, Rmdp};
use crate::reserve::lock_memory_now;

/// An executor, and the state `S` that its handlers share. Its upcalls end with it. Other threads of the process may block, and its main thread may end; a child that it forks has no
/// executor: there all is [over](Error::Over). A child that a handler forks (`fork`, not a bare `clone`) is to become another program or end; where that handler returns, or panics, it ends with status 0 as by `_exit`, and calls nobody.
#[must_use = "its upcalls end when this is dropped"]
pub struct Upcalls<S = ()> {
    core: Arc<Core>,
    letters: Letters<S>,
    /// Of one upcall so many arrivals may wait.
    events: u32,
    alone: Alone,
    memory: Option<Result<MemoryLock, Diagnosis>>,
}

impl Upcalls {
    /// Starts an executor whose handlers share nothing but what they bring themselves.
    ///
    /// # Errors
    ///
    /// A missing right with its remedy, a limit by which the kernel ends FIFO threads (`RLIMIT_RTTIME`) too; or what its reservation was refused for. What only makes it worse is told by [`Rank::cautions`].
    pub fn start(options: Options) -> Result<Self, Error> {
        Self::sharing(options, || ())
    }
}

impl<S: 'static> Upcalls<S> {
    /// The same, with a state that is made in the executor's thread, before that has its rank, and stays there.
    ///
    /// # Errors
    ///
    /// Those of [`Upcalls::start`]; or what is shared could not be made.
    pub fn sharing(
        mut options: Options,
        share: impl FnOnce() -> S + Send + 'static,
    ) -> Result<Self, Error> {
        error::named(&options.name)?;
        // Locked first: to fault everything in would take many periods.
        let memory = (options.rank != Rank::Fair).then(lock_memory_now);
        let overhead = options.overhead_put_off_by(put_off());
        if !(1..=MOST_EVENTS).contains(&options.events) {
            return Err(Error::Events(options.events));
        }
        let policy = options.policy;
        let shares = options.together.is_some();
        if shares && policy != Policy::Rmdp {
            return Err(Error::Order);
        }
        let mut books = None;
        let seat = match options.together.take() {
            Some(Together::Coordinated(coordinated)) => {
                let client = coordinated.join(&options.name, &mut options.rank)?;
                let seat = client.seat();
                books = Some(Books::new(client));
                Some(seat)
            }
            Some(Together::Seat(seat)) => Some(seat),
            None => None,
        };
        let region = seat.as_ref().map(|seat| seat.region.clone());
        let footing = Footing::new(&mut options, region, overhead)?;
        let mut inbox = Inbox::new(&core::ports(options.events));
        if let Some(seat) = seat {
            let rank = options.rank.clone().into();
            inbox = inbox.in_seat(seat, &options.name, &rank);
        }
        let core = Arc::new(Core::new(inbox, footing, books));
        let letters: Letters<S> = (0..PLACES).map(|_| Mutex::new(None)).collect();
        let keeper = Keep::new(Arc::clone(&core), Arc::clone(&letters), options.events);
        let own = Arc::clone(&core);
        let body = move || {
            let shared = own.try_to(share).map_err(keeper::text);
            own.begins(shared.as_ref().err().cloned());
            let boards = Arc::clone(&own.boards);
            if let Ok(shared) = shared {
                keeper::install(shared);
            } else {
                own.inbox.close();
            }
            let control = Box::new(Control::new([COMMANDS, core::arrivals(0)], boards, keeper));
            match policy {
                Policy::Rmdp => own.host(turns(Rmdp::default(), DOORBELL, control, shares)),
                Policy::Edf => own.host(turns(Edf::default(), DOORBELL, control, shares)),
            }
        };
        let over = Over(Arc::clone(&core));
        let rank = options.rank.into();
        let alone = Alone::start(&options.name, rank, &core.inbox, (body, over))?;
        core.await_begin()?;
        beside::register(&core);
        Ok(Self {
            core,
            letters,
            events: options.events,
            alone,
            memory,
        })
    }

    /// Admits a handler, which is suspended until it is to [run](Upcall::run). The handler is sent to the executor's thread; one that keeps what cannot be sent is
    /// [made there](Self::create_there).
    ///
    /// # Errors
    ///
    /// [`Error::NoUpcall`] and [`Error::Name`] of what can be none. [`Error::NotAdmitted`] with who would be late and what would fit; then nothing has changed. One that was called and has ended or is closed counts until the executor has had nothing to do, and so have those of this process that it may have kept from a processor: for that this waits where it would fit then. [`Error::Quantum`] of one that takes turns with other processes; [`Error::Descriptor`] of one that is paced by a descriptor, and of that [`Error::Lacks`] where it takes turns with other processes. [`Error::Full`]; [`Error::Inside`] of a handler; or the executor does not answer.
    pub fn create(
        &self,
        spec: Spec,
        handler: impl FnMut(&mut Call<'_, S>) + Send + 'static,
    ) -> Result<Upcall, Error> {
        self.create_there(spec, move |_| handler)
    }

    /// The same with a handler that is made in the executor's thread, by what sees there what is shared: it may keep what no other thread may have. How long that takes no upcall
    /// is called.
    ///
    /// # Errors
    ///
    /// Those of [`Self::create`]; or its making panicked.
    pub fn create_there<H: FnMut(&mut Call<'_, S>) + 'static>(
        &self,
        spec: Spec,
        make: impl FnOnce(&mut S) -> H + Send + 'static,
    ) -> Result<Upcall, Error> {
        if self.core.is_inside() {
            return Err(Error::Inside);
        }
        if self.core.is_over() {
            return Err(Error::Over);
        }
        spec.check(self.events)?;
        if let Some(region) = self.core.footing.region() {
            let longest = region.terms().map(|terms| terms.longest);
            spec.can_share(longest, self.core.footing.overhead.of(1, 1))?;
        }
        let id = self.admit(&spec)?;
        // From here on it is closed when it is dropped.
        let upcall = Upcall::new(Arc::clone(&self.core), id, &spec);
        upcall.feed(&spec.pace)?;
        let when = When {
            deadline: spec.deadline(),
            paced_by: spec.pace.port(id.place, spec.timing.period),
            unit: spec.service,
            share: spec.group.as_ref().map(|group| Arc::clone(&group.0.share)),
            account: self.core.account(&spec).map(Arc::new),
            serial: id.serial,
            after: spec.after_whom(),
            timing: spec.timing,
        };
        let letter = Letter {
            when,
            make: Box::new(move |shared| Box::new(make(shared))),
        };
        *self.letters[usize::from(id.place)]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(letter);
        upcall.make(|| {
            let place = self.letters[usize::from(id.place)].lock();
            let unsent = place
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take();
            // What its handler had may do anything when it is dropped.
            drop(unsent);
        })?;
        Ok(upcall)
    }

    /// A place for it, if there is time for it. Where there would be if those that are closed did not count any more it waits for that: it comes as soon as nobody has anything to do.
    fn admit(&self, spec: &Spec) -> Result<Predecessor, Error> {
        let until = crate::now() + PATIENCE;
        loop {
            let mut beside = Beside::of(&self.core);
            let mut members = self.core.members();
            // Whoever rests while it is judged counted then.
            let closed = self.core.closed(&members);
            let rest = [closed.clone(), beside.closed()].concat();
            let refused = match self.placed(spec, &members, &beside, true) {
                Ok((place, member)) => {
                    let serial = member.serial;
                    members[place] = Some(member);
                    let place = place as u16;
                    return Ok(Predecessor { place, serial });
                }
                Err(refused) => refused,
            };
            let mut others = members.clone();
            drop(members);
            for other in &mut others {
                other.take_if(|member| closed.contains(&member.serial));
            }
            beside.rests();
            let fits = !rest.is_empty() && self.placed(spec, &others, &beside, false).is_ok();
            drop(beside);
            let may_wait = fits && !beside::is_handler();
            let changes = || {
                let changed = beside::closed(&self.core).concat() != rest;
                (changed || self.core.is_over()).then_some(())
            };
            let waited = may_wait && CHANGED.wait_for(Some(until), changes).is_some();
            if !waited || self.core.is_over() {
                return Err(refused);
            }
        }
    }

    /// What it would be beside these, and where. A coordinator is asked where it is to be so.
    fn placed(
        &self,
        spec: &Spec,
        members: &[Option<Member>],
        beside: &Beside,
        asks: bool,
    ) -> Result<(usize, Member), Error> {
        let footing = &self.core.footing;
        let free = members.iter().position(Option::is_none);
        let place = free.ok_or(Error::Full)?;
        let present: Vec<&Member> = self.core.counted(members).collect();
        let closed = self.core.closed(members);
        members::can_link(&self.core, spec, &present, &closed)?;
        let asked = (
            spec.name.as_str(),
            &spec.timing,
            spec.service,
            spec.deadline(),
        );
        let new = Member::new(spec, footing.region().is_some());
        let of = |task| Member {
            task: Some(task),
            ..new.clone()
        };
        let with = |task| members::set(present.iter().copied().chain([&of(task)])).linked();
        let names = members::set(present.iter().copied().chain([&new]));
        let books = self.core.books.as_ref().filter(|_| asks);
        let question = books.map(|books| books.question(names.names()));
        let names: Vec<&str> = names.names().into_iter().chain(beside.names()).collect();
        let policy = |all: &[_]| {
            let own = beside.admit(footing, all);
            match &question {
                Some(question) if own.is_ok() => question.ask(all),
                Some(question) => own.inspect_err(|_| question.is_refused()),
                None => own,
            }
        };
        let task = admit_among((&names, &with), asked, footing.overhead, &policy);
        let task = task.map_err(|no: NotAdmitted| match question {
            Some(question) => question.refusal(no),
            None => Error::NotAdmitted(Box::new(no)),
        })?;
        Ok((place, of(task)))
    }

    /// From the release of the first of its chain to the end of its call, at the longest, beside all that are admitted now. Others may be admitted who make that longer, though never longer than its
    /// deadline. Of one in a group: when the group's budget was to be had, from the begin of the group's period.
    ///
    /// # Errors
    ///
    /// [`Error::NotHere`]: it is closed, or of another executor; [`Error::Ended`]; [`Error::NoBound`]: the order is by deadline; [`Error::NotAdmitted`]: there is none any more; [`Error::Coordinator`]; [`Error::Over`]: its executor has ended.
    pub fn bound(&self, upcall: &Upcall) -> Result<Span, Error> {
        if self.core.is_over() {
            return Err(Error::Over);
        }
        let is_own = upcall.is_of(&self.core);
        let (beside, footing) = (Beside::of(&self.core), &self.core.footing);
        let members = self.core.members();
        let set = members::set(self.core.counted(&members));
        // One that has ended may be counted still, and not a moment later.
        match upcall.state() {
            State::Ended | State::Panicked(_) if is_own => return Err(Error::Ended),
            State::Closed => return Err(Error::NotHere),
            _ => {}
        }
        let index = set.index(upcall.id.serial).filter(|_| is_own);
        let index = index.ok_or(Error::NotHere)?;
        if footing.policy == Policy::Edf {
            return Err(Error::NoBound);
        }
        let all = charged(set.linked(), footing.overhead);
        let refused = |no: Unschedulable| {
            let names: Vec<&str> = set.names().into_iter().chain(beside.names()).collect();
            let name = |place: usize| names.get(place).copied().unwrap_or_default().to_owned();
            Error::NotAdmitted(Box::new(NotAdmitted {
                asked: name(index),
                bottleneck: name(no.bottleneck.unwrap_or(index)),
                reason: no.reason,
                fits: None,
            }))
        };
        let here = beside.bounds(footing, &all).map_err(refused)?;
        // A coordinator knows of other processes, and not of other executors of this one.
        let there = self.core.books.as_ref();
        let there = there.map(|books| books.bounds(&set.names(), &all));
        let there = there.transpose()?.map_or(Span::ZERO, |all| all[index]);
        Ok(here[index].max(there))
    }

    /// A group, of this name, whose upcalls together have this budget of every period.
    ///
    /// # Errors
    ///
    /// [`Error::NoBudget`]: it is zero, or more than the period. [`Error::Name`].
    pub fn group(&self, name: &str, budget: Service, period: Span) -> Result<Group, Error> {
        error::named(name)?;
        self.core.group(name, budget, period)
    }

    /// Waits until one of these is not active: suspended, ended or closed. Tells which are not, as indices. Meanwhile upcalls of [virtual time](Virtual) are called, each call of which is over before this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Inside`]: a handler would wait for itself; [`Error::NotHere`]: one of them is of another executor.
    pub fn sleep(&self, upcalls: &[&Upcall]) -> Result<Vec<usize>, Error> {
        upcall::sleep(&self.core, upcalls, None)
    }

    /// The same, no longer than until this instant: then none may be told.
    ///
    /// # Errors
    ///
    /// Those of [`Self::sleep`].
    pub fn sleep_until(
        &self,
        upcalls: &[&Upcall],
        until: crate::Instant,
    ) -> Result<Vec<usize>, Error> {
        upcall::sleep(&self.core, upcalls, Some(until))
    }

    /// An upcall of virtual time, which is suspended until it is to [run](Virtual::run).
    pub fn create_virtual(
        &self,
        handler: impl FnMut(&mut VirtualCall) + Send + 'static,
    ) -> Virtual {
        self.core.create_virtual(Box::new(handler))
    }

    /// Calls upcalls of [virtual time](Virtual) in the calling thread until none is active, or another thread calls one. How many calls that were.
    pub fn serve(&self) -> u64 {
        let calls = std::iter::repeat_with(|| self.core.call_virtual());
        calls.take_while(|called| *called).count() as u64
    }

    /// All upcalls there are, by name, each with its state and what it has done; none in a child that was forked. Takes no lock that the executor takes.
    pub fn list(&self) -> Vec<(String, State, Counts)> {
        self.core.list(|_| true)
    }

    /// Whether the caller is a handler of this executor, which cannot wait for it.
    pub fn is_inside(&self) -> bool {
        self.core.is_inside()
    }

    /// Why its executor has ended by itself, if it has: its seat among other processes was taken away, since a handler did not come back.
    pub fn failure(&self) -> Option<String> {
        self.alone.failure().map(|error| error.to_string())
    }

    /// The processes that had upcalls where a [coordinator](Coordinated) admits, and have gone since this was asked last. What each had is kept until all have dropped what they are told of it here, or a limit passes: a second, as a rule.
    /// Of those of whom nobody asks the last 128 are told. None in a child that was forked.
    pub fn departed(&self) -> Vec<Departed> {
        let books = self.core.books.as_ref();
        let books = books.filter(|_| !self.core.is_elsewhere());
        books.map_or_else(Vec::new, Books::departed)
    }

    /// Whether its thread has the rank that was asked for, on the processors that it was started on: by the worst that is seen now. Among several processes it is unenforced, too, while whoever guards its seat does not look, as a coordinator that is stopped, or while somebody has written there that it does not wait; that takes
    /// a tenth of a second to see. What is [`Rank::Fair`] is unenforced always.
    pub fn grade(&self) -> Grade {
        self.alone.grade()
    }

    /// Whether the process's memory is locked while this lives, so that no page fault waits for a disk; if not, why not, and the remedy. It is not asked for at [`Rank::Fair`].
    pub fn memory_locked(&self) -> Option<Result<(), &Diagnosis>> {
        self.memory.as_ref().map(|lock| lock.as_ref().map(|_| ()))
    }
}
