//! A network interface that many clients share: each has buffers of its own, gets a packet for each that it gave, and is called when its packet arrives.
//!
//! Liao, Tan, Campbell, "A Fast, Flexible Network Interface Framework", 1996. [`Interface::open`] starts a *driver* on an interface that is there, or that it makes: a thread above all others but those who guard
//! them, which sleeps until packets arrive. Who starves of buffers loses its own packets, and nobody else's.
//!
//! | name | what it is | it takes |
//! |---|---|---|
//! | `xdp:eth0` | packets from the hook of the interface (`AF_XDP`, generic); the kernel has none of its first queue any more | CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW |
//! | `xdp-native:eth0` | the same, in the mode of the interface's own driver | as `xdp:` |
//! | `packet:eth0` | a packet socket; the kernel has all packets, too | CAP_NET_RAW |
//! | `auto:eth0`, or `eth0` | `xdp:`, or else `packet:`: the first of these that can be had | |
//! | `tap:lax0` | a TAP interface, whose other end is this machine's kernel | CAP_NET_ADMIN, or one that was made for the user |
//! | `tun:lax0` | a TUN interface, which carries [IP alone](laxity_model::nif::link::Medium::Ip) | as `tap:` |
//! | `udp:10.0.0.1:4000-10.0.0.2:4000` | Ethernet in UDP, to whoever does the same there | nothing |
//!
//! ```
//! use laxity::net::client::{Context, Loan, Peek};
//! use laxity::net::{Interface, Options};
//!
//! struct Counts(u64);
//!
//! impl Peek for Counts {
//!     fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
//!         self.0 += packet.bytes.len() as u64; // neither wait nor allocate here: this is the driver's thread
//!     }
//! }
//!
//! let interface = Interface::open("udp:127.0.0.1:0-127.0.0.1:9", Options::default())?;
//! interface.peek("udp dst port 5004", Counts(0))?;
//! let tap = interface.tap("udp dst port 5004", Counts(0))?; // both ways, and whosever it is
//! assert!(interface.ask(move |driver| driver.remove_tap(tap))?);
//! println!("{} is {}", interface.facts().name, interface.grade());
//! let counters = interface.counters()?;
//! assert_eq!(counters.account.arrived, 0);
//! # Ok::<(), laxity::net::Error>(())
//! ```
//!
//! Filters are written as in pcap, [without `not`](filter); of those that match, the most specific one has the packet, and one that is more specific than a flow found at the hook is refused. A client of one flow with threads of its own is [`Interface::flow`]: over `xdp:` it is found
//! [at the hook](EarlyOptions), so that a flood for anybody else costs it nothing. [`Interface::stack`] makes a host with addresses of its own, whose [`sockets`] are as those of `std::net`.
//! What a client may do in its call is in [`client`].

pub mod capture;
mod cost;
mod effects;
mod error;
mod flow;
mod hook;
mod link;
mod options;
mod serving;
mod stack;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use laxity_linux::host::alone::Futex;
use laxity_linux::host::alone::served::{Bedside, Served};
use laxity_linux::net::xdp::early::EarlySettings;
use laxity_linux::net::{XdpLink, open};
use laxity_linux::os::clock;
use laxity_linux::os::memory::MemoryLock;
use laxity_linux::os::sched::Tid;
use laxity_model::nif::exchange::{Account, Census};
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::Tail;
use laxity_model::nif::registry::{ClientId, Fallback};
use laxity_model::{ActivityId, Grade};
use laxity_net::buffers::{PoolSize, Sleeper};
use laxity_net::client::{Client, Peek};
use laxity_net::clients::early;
use laxity_net::driver::{
    Driver, Handed, Handle, Host, Interest, Limits, Registered, Scope, TapId,
};

pub use laxity_linux::net::pair::{
    Namespace, PairError, enter_user_namespace, may_pair, pair, pair_with_kernel,
};
pub use laxity_linux::net::world;
pub use laxity_linux::net::xdp::Mode;
pub use laxity_linux::net::xdp::early::Flow;
pub use laxity_linux::net::xdp::program::Rest;
pub use laxity_linux::net::{
    AnyLink, AnyMemory, InterfaceName, OpenCause, OpenError, Opened, Settings, Shown,
    interface_names, shown,
};
/// Where it is recorded what happens to packets, by one thread, and read by another.
pub use laxity_linux::{EventLog, EventReader};
pub use laxity_model::nif::frames::Frames;
pub use laxity_model::nif::link::{Facts, Losses};
pub use laxity_model::nif::most::{Costs, Most};
pub use laxity_model::nif::{exchange, filter, frame, host, registry};
pub use laxity_net::stack::{Config as StackConfig, Count, Moved};
pub use laxity_net::{bodies, buffers, client, clients, driver, sockets};
/// Cards and the wires between them, for the twin.
pub use laxity_sim::net as twin;

pub(crate) use self::cost::measure;
pub use self::error::{Ended, Error};
pub use self::flow::{FlowOptions, FlowQueue, Packet};
pub use self::link::LiveLink;
pub use self::options::{EarlyOptions, Options, Put};
pub use self::stack::LiveStack;

use self::effects::{Live, Threads};
use self::hook::Hook;
use self::serving::{Serving, Told};
use crate::doctor::Diagnosis;
use crate::reserve::lock_memory_now;

/// The driver of a live interface.
pub type LiveDriver = Driver<LiveLink, Frames>;

/// An interface that is open, and the thread of its driver. Dropped, every buffer has come home but for those that clients hold, the thread has ended, and nothing of it is left in the kernel.
///
/// What it is asked is answered by that thread, in its next poll: a client must not ask from within its call.
pub struct Interface {
    /// Ended first.
    served: Served,
    handle: Handle<LiveLink, Frames>,
    told: Arc<Told>,
    threads: Arc<Threads>,
    hook: Option<(Arc<Hook>, Rest)>,
    facts: Facts,
    lost: Option<String>,
    tail: Option<Tail>,
    memory: Result<MemoryLock, Diagnosis>,
}

/// What became of packets, in the driver and below it: `came` = delivered + the kernel's + dropped, by reason + lost below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters {
    /// What came as far as the driver.
    pub account: Account,
    /// What was lost below it: by the interface, or, where clients are found early, for want of a buffer.
    pub losses: Losses,
    /// Where the driver's own buffers are.
    pub census: Census,
    /// What it handed over to be sent, and how often that was copied.
    pub handed: Handed,
}

impl Counters {
    /// All packets that came.
    pub const fn came(&self) -> u64 {
        self.account.arrived + self.losses.no_room + self.losses.too_long
    }
}

impl Interface {
    /// Opens an interface by its name, and starts its driver.
    ///
    /// # Errors
    ///
    /// [`Error`]: what stands against it, with what mends it. That its thread may not be real-time is none: its [grade](Self::grade) says so.
    pub fn open(name: &str, options: Options) -> Result<Self, Error> {
        Self::open_named(&name.parse()?, options)
    }

    /// The same of a name that was read.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn open_named(name: &InterfaceName, options: Options) -> Result<Self, Error> {
        let memory = lock_memory_now();
        let bedside = Bedside::new().map_err(Error::NoAlarm)?;
        let host = Host {
            sleeper: Sleeper::new(Futex),
            waker: bedside.waker(),
        };
        let Below {
            link,
            lost,
            hook,
            limits,
        } = Below::open(name, &options)?;
        let frames = Frames::new(options.tail, RandomState::new().hash_one(clock::now()));
        let link = LiveLink::new(link, hook.as_ref().map(|(hook, _)| Arc::clone(hook)));
        let driver = Driver::new(link, frames, limits, host)?;
        if let Some((hook, Rest::ClientZero)) = &hook {
            hook.open_rest(options.limits.posted as u32);
        }
        let (handle, facts) = (driver.handle(), driver.facts().clone());
        let (told, threads) = (Arc::default(), Threads::new(options.activities));
        let effects = Live::new(options.ports, Arc::clone(&threads), options.events);
        let bound = (options.most, options.costs);
        let serving = Serving::new(driver, effects, Arc::clone(&told), bound);
        let bounded = options.most.zip(options.costs);
        let driver = laxity_model::admission::Driver {
            name: format!("network driver of {}", facts.name),
            work: bounded.map(|(most, costs)| most.work(costs, serving::longest(&facts))),
        };
        let thread = (options.priority, options.processor);
        Ok(Self {
            served: Served::start((&facts.name, driver), thread, bedside, serving)?,
            handle,
            told,
            threads,
            hook,
            facts,
            lost,
            tail: options.tail,
            memory,
        })
    }

    /// What it is.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What is lost against what a bare name would rather have had, and why; `None` where nothing is.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Whether the driver's thread has been as it was asked for until now; else why not. A few system calls.
    pub fn grade(&self) -> Grade {
        match self.ended() {
            Some(ended) => Grade::Unenforced {
                reason: ended.to_string(),
            },
            None => self.served.grade(),
        }
    }

    /// Whether all memory of the process is locked; else why not, and what mends that.
    pub fn memory(&self) -> Result<(), &Diagnosis> {
        self.memory.as_ref().map(drop)
    }

    /// Why there is no driver any more; `None` while there is one.
    pub fn ended(&self) -> Option<Ended> {
        self.told.ended.get().copied()
    }

    /// How often a look at the interface failed otherwise, and why last.
    pub fn failures(&self) -> (u64, Option<String>) {
        self.told.failures()
    }

    /// A way to the driver for other threads, which answers in its next poll.
    pub const fn handle(&self) -> &Handle<LiveLink, Frames> {
        &self.handle
    }

    /// Asks the driver whatever it can do, and waits for the answer: until its next poll.
    ///
    /// # Errors
    ///
    /// There is no driver any more.
    pub fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut LiveDriver) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let answer = self.handle.ask(question).wait();
        answer.map_err(|_| Error::Ended(self.ended().unwrap_or(Ended::Closed)))
    }

    fn filter(&self, text: &str) -> Result<Filter, Error> {
        if let Some((_, Rest::Kernel)) = self.hook {
            return Err(Error::OnlyFlows);
        }
        Ok(Filter::parse(text, self.tail)?)
    }

    /// Registers a client for what a filter matches, with so many buffers; those that it gives to the driver it gets packets for.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`], [`Error::Register`], or there is no driver any more.
    pub fn register(
        &self,
        filter: &str,
        buffers: u32,
        client: impl Client<AnyMemory> + 'static,
    ) -> Result<Registered<AnyMemory>, Error> {
        let filter = self.filter(filter)?;
        let size = PoolSize::fixed(buffers);
        Ok(self.ask(move |driver| driver.register(Interest::In(&filter), size, client))??)
    }

    /// Registers a client that only sends, from so many buffers.
    ///
    /// # Errors
    ///
    /// As of [`register`](Self::register).
    pub fn sender(
        &self,
        buffers: u32,
        client: impl Client<AnyMemory> + 'static,
    ) -> Result<Registered<AnyMemory>, Error> {
        let size = PoolSize::fixed(buffers);
        Ok(self.ask(move |driver| driver.register(Interest::Nothing, size, client))??)
    }

    /// Registers a client that only looks, at what a filter matches and no more specific one has.
    ///
    /// # Errors
    ///
    /// As of [`register`](Self::register).
    pub fn peek(&self, filter: &str, peek: impl Peek + 'static) -> Result<ClientId, Error> {
        let filter = self.filter(filter)?;
        let size = PoolSize::fixed(0);
        let asked = self.ask(move |driver| {
            let registered = driver.register_peek(Interest::In(&filter), size, peek);
            registered.map(|registered| registered.id)
        });
        Ok(asked??)
    }

    /// Lets somebody look at all that a filter matches, whosever it is, both ways.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`], or there is no driver any more.
    pub fn tap(&self, filter: &str, peek: impl Peek + 'static) -> Result<TapId, Error> {
        let scope = Scope::In(Filter::parse(filter, self.tail)?);
        self.ask(move |driver| driver.tap(scope, peek))
    }

    /// A client for one flow, whose threads take its packets from a queue. Where clients are [found early](Options::early), it is found at the interface's hook: beside it, nobody who is not found there has a filter that is more specific, and whoever asks second is refused.
    ///
    /// # Errors
    ///
    /// [`Error::NoBuffers`], [`Error::TooManyBuffers`]; [`Error::FlowPort`], [`Error::FlowEnd`]; [`Error::TooManyFlows`] and [`Error::Hook`] of one that is found early; those of [`register`](Self::register).
    pub fn flow(&self, flow: Flow, options: &FlowOptions) -> Result<FlowQueue, Error> {
        if options.buffers > FlowOptions::MOST_BUFFERS {
            return Err(Error::TooManyBuffers(options.buffers));
        }
        flow::check(&flow, options.buffers)?;
        let filter = Filter::to(flow.is_tcp, flow.own, flow.far)?;
        let (buffers, sleeper) = (options.buffers, Sleeper::new(Futex));
        let (client, queue) = early::client(buffers as usize, options.raises, &sleeper);
        let hook = self.hook.as_ref().map(|(hook, _)| Arc::clone(hook));
        let entered = self.ask(move |driver| -> Result<_, Error> {
            let size = PoolSize::fixed(buffers);
            let interest = match &hook {
                Some(_) => Interest::Found(&filter),
                None => Interest::In(&filter),
            };
            let Registered { id, pool } = driver.register(interest, size, client)?;
            pool.give(buffers);
            let steered = hook.map(|hook| hook.steer(flow, id, buffers, clock::now()));
            match steered.transpose() {
                Ok(steered) => Ok((id, pool, steered)),
                Err(error) => {
                    driver.unregister(id);
                    Err(error)
                }
            }
        });
        let (id, pool, steered) = entered??;
        Ok(FlowQueue {
            queue,
            pool,
            id,
            steered,
            handle: self.handle.clone(),
            events: None,
        })
    }

    /// Leaves what nobody registers for to the kernel, which has it already, or to nobody.
    ///
    /// # Errors
    ///
    /// The kernel has nothing of this interface, or a client has the default.
    pub fn leave_rest(&self, to: Fallback) -> Result<(), Error> {
        let to_kernel = to == Fallback::Kernel;
        Ok(self.ask(move |driver| driver.leave_default(to_kernel))??)
    }

    /// Which thread of this process an activity is that clients [raise](client::Context::raise): its priority is set at the arrival of a packet, as [`Scheduling`](crate::Scheduling) of threads is. `None`: none any more, which is to be said before the
    /// thread ends. `false` if the interface was opened for fewer activities.
    pub fn raises(&self, activity: ActivityId, thread: Option<Tid>) -> bool {
        self.threads.set(activity, thread)
    }

    /// How often the kernel refused to raise one.
    pub fn refused_raises(&self) -> u64 {
        self.threads.refused()
    }

    /// What became of all packets until now.
    ///
    /// # Errors
    ///
    /// There is no driver any more.
    pub fn counters(&self) -> Result<Counters, Error> {
        self.ask(|driver| Counters {
            account: *driver.account(),
            losses: driver.losses(),
            census: driver.census(),
            handed: driver.handed(),
        })
    }
}

/// What a driver is made of, opened.
struct Below {
    link: AnyLink,
    lost: Option<String>,
    hook: Option<(Arc<Hook>, Rest)>,
    limits: Limits,
}

impl Below {
    fn open(name: &InterfaceName, options: &Options) -> Result<Self, Error> {
        let Some(early) = &options.early else {
            let Opened { link, lost } = open(name, &options.settings)?;
            return Ok(Self {
                link,
                lost,
                hook: None,
                limits: options.limits,
            });
        };
        let InterfaceName::Xdp(interface, mode) = name else {
            return Err(Error::NotEarly(name.to_string()));
        };
        let buffers = early.buffers as usize;
        let mut limits = options.limits;
        limits.posted = match early.rest {
            Rest::ClientZero => limits.posted + buffers,
            Rest::Kernel => buffers,
        };
        let settings = Settings {
            posted: limits.posted,
            // What is posted for them, and what they have.
            memory: options.settings.memory + 2 * buffers,
            ..options.settings
        };
        let at_hook = EarlySettings {
            flows: early.flows,
            clients: hook::numbers(early),
            rest: early.rest,
        };
        let link = XdpLink::open_early(interface, *mode, &settings, &at_hook)?;
        let found = link.early().map(Arc::clone);
        let hook = found.map(|found| (Hook::new(found, early), early.rest));
        Ok(Self {
            link: AnyLink::Xdp(Box::new(link)),
            lost: None,
            hook,
            limits,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a refused name is told to be instead are all ways that there are.
    #[test]
    fn the_table_of_names_has_every_way_to_an_interface() {
        let refused = "no:such:way".parse::<InterfaceName>().unwrap_err();
        let is_way = |name: &&str| name.contains(':');
        let way = |name: &str| name.split(':').next().map(str::to_owned);
        let remedy = refused.cause.remedy();
        let ways: BTreeSet<_> = remedy.split('`').filter(is_way).map(way).collect();
        for name in ways.iter().flatten().filter(|way| *way != "udp") {
            assert!(format!("{name}:eth0").parse::<InterfaceName>().is_ok());
        }
        let table = include_str!("mod.rs").lines();
        let first = table.filter_map(|line| line.strip_prefix("//! | `")?.split('|').next());
        let names = first.flat_map(|names| names.split('`')).filter(is_way);
        let told = names.inspect(|name| assert!(name.parse::<InterfaceName>().is_ok(), "{name}"));
        assert_eq!(told.map(way).collect::<BTreeSet<_>>(), ways);
    }
}
