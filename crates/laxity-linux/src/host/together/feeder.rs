//! What feeds the ports of an executor in a seat. It sleeps until it has the baton, whoever is at work meanwhile: so another thread of its process waits for the descriptors.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_model::PortId;
use laxity_model::base::port::Arrival;
use rustix::event::PollFlags;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::guard;
use super::sitting::Place;
use crate::host::alone::{Rank, StartError};
use crate::os::clock;
use crate::os::descriptor::Alarm;
use crate::run::port::Ports;

/// Why a descriptor feeds no port.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The kernel said no: there are no descriptors left, or it waits for no more.
    #[error("the descriptor cannot be waited for: {0}")]
    Os(#[from] Errno),
    /// There is no thread that waits for it.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl FeedError {
    pub(crate) fn of(why: &io::Error) -> Self {
        Self::Os(Errno::from_io_error(why).unwrap_or(Errno::IO))
    }
}

/// What is told when nobody is to wait any more.
const END: u64 = u64::MAX;
/// In a slot: no descriptor.
const NONE: u64 = u64::MAX;
/// So many are told at once.
const AT_ONCE: usize = 16;
/// Between two looks whether a descriptor is used still.
const PAUSE: Duration = Duration::from_micros(50);

/// What feeds a port, if anything does.
struct Slot {
    /// [`Fed`], or [`NONE`].
    word: AtomicU64,
    /// So many threads use the descriptor just now.
    users: AtomicU32,
}

/// A descriptor that feeds a port, and a number that no other has which does.
#[derive(Clone, Copy)]
struct Fed {
    serial: u32,
    fd: RawFd,
}

impl Fed {
    fn word(self) -> u64 {
        u64::from(self.serial) << 32 | u64::from(self.fd.cast_unsigned())
    }

    fn of(word: u64) -> Option<Self> {
        (word != NONE).then_some(Self {
            serial: (word >> 32) as u32,
            fd: (word as u32).cast_signed(),
        })
    }
}

/// What the kernel tells of a descriptor: the number, and the port.
fn told(serial: u32, port: PortId) -> EventData {
    EventData::new_u64(u64::from(serial) << 16 | u64::from(port.0))
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            word: AtomicU64::new(NONE),
            users: AtomicU32::new(0),
        }
    }
}

impl Slot {
    /// Does this with the descriptor, which stays open meanwhile; `None` if there is none.
    fn with<T>(&self, work: impl FnOnce(Fed) -> T) -> Option<T> {
        // In this order: whoever takes it away sees that it is used, or it is gone.
        self.users.fetch_add(1, Ordering::SeqCst);
        let fed = Fed::of(self.word.load(Ordering::SeqCst));
        let done = fed.map(work);
        self.users.fetch_sub(1, Ordering::SeqCst);
        done
    }

    /// Nobody begins to use it any more, and those who do so now may still.
    fn take(&self) -> Option<OwnedFd> {
        let fed = Fed::of(self.word.swap(NONE, Ordering::SeqCst))?;
        // SAFETY: it is open, and was the slot's alone.
        Some(unsafe { OwnedFd::from_raw_fd(fed.fd) })
    }
}

/// Descriptors that feed the ports of an executor, each whenever the executor waits for its port: so nobody is woken for one oftener than it comes to a call, whatever there is to read.
/// The thread that waits for them is there from the first on.
pub(crate) struct Feeder {
    /// The thread's.
    name: String,
    rank: Rank,
    shared: Arc<Shared>,
    running: OnceLock<Running>,
    /// Held while that is made.
    starting: Mutex<()>,
}

struct Shared {
    ports: Arc<Ports>,
    place: Arc<Place>,
    /// By port.
    slots: Vec<Slot>,
}

struct Running {
    epoll: Arc<OwnedFd>,
    /// Raised once, when nobody is to wait any more.
    alarm: Alarm,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Feeder {
    /// Of an executor's ports; its thread is to have this rank, and a name by that of the executor's.
    pub(crate) fn new(name: &str, rank: Rank, ports: Arc<Ports>, place: Arc<Place>) -> Self {
        // The kernel keeps 15 bytes of a thread's name.
        let short: String = name.chars().filter(|c| *c != '\0').take(11).collect();
        let slots = (0..ports.count()).map(|_| Slot::default()).collect();
        Self {
            name: format!("{short}.fed"),
            rank,
            shared: Arc::new(Shared {
                ports,
                place,
                slots,
            }),
            running: OnceLock::new(),
            starting: Mutex::default(),
        }
    }

    fn start(&self) -> Result<Running, FeedError> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let alarm = Alarm::new().map_err(|why| FeedError::of(&why))?;
        epoll::add(&epoll, &alarm, EventData::new_u64(END), EventFlags::IN)?;
        let (shared, waited) = (Arc::clone(&self.shared), Arc::clone(&epoll));
        let work = move || shared.wait(&waited);
        let thread = guard::start(&self.name, self.rank.clone(), work)?;
        Ok(Running {
            epoll,
            alarm,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn running(&self) -> Result<&Running, FeedError> {
        let starting = self.starting.lock();
        let _alone = starting.unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let running = self.start()?;
        Ok(self.running.get_or_init(|| running))
    }

    /// A copy of this feeds the port, which nothing else does, from the executor's next wait for it on.
    ///
    /// # Errors
    ///
    /// What the kernel says, or what the thread lacks.
    pub(crate) fn feed(&self, port: PortId, with: &OwnedFd) -> Result<(), FeedError> {
        static SERIALS: AtomicU32 = AtomicU32::new(0);
        let slot = self.shared.slots.get(port.index());
        let slot = slot.ok_or(Errno::INVAL)?;
        let running = self.running()?;
        let own = fcntl_dupfd_cloexec(with, 0)?;
        let serial = SERIALS.fetch_add(1, Ordering::Relaxed);
        match epoll::add(
            &running.epoll,
            &own,
            told(serial, port),
            EventFlags::ONESHOT,
        ) {
            // A file is always read at once, and not waited for.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let fd = own.into_raw_fd();
        slot.word.store(Fed { serial, fd }.word(), Ordering::SeqCst);
        Ok(())
    }

    /// Nothing feeds the port any more: what has been told of it and is not there yet comes no more when this returns. Never of the feeder's own thread.
    pub(crate) fn end_feed(&self, port: PortId) {
        // In a child of the process all that the kernel knows of it is the parent's.
        if !self.shared.place.is_own() {
            return;
        }
        let slot = self.shared.slots.get(port.index());
        let taken = slot.and_then(|slot| Some((slot, slot.take()?)));
        if let Some(((slot, own), running)) = taken.zip(self.running.get()) {
            while slot.users.load(Ordering::SeqCst) > 0 {
                // Who uses it may be less urgent than this thread, and have only its processor.
                thread::sleep(PAUSE);
            }
            // To close it is not enough: others have the same open.
            let _ = epoll::delete(&running.epoll, &own);
        }
    }

    /// The executor waits for this port: once more what feeds it is looked at, and the port has an arrival when it can be read, or has come to its end. One system call and no lock; neither where nothing feeds it. Tells what is
    /// there already of what cannot be waited for.
    pub(crate) fn look(&self, port: PortId) -> Option<u64> {
        let running = self.running.get()?;
        let look = |fed: Fed| {
            // SAFETY: it is open as long as its slot is used.
            let fd = unsafe { BorrowedFd::borrow_raw(fed.fd) };
            let once = EventFlags::IN | EventFlags::ONESHOT;
            epoll::modify(&running.epoll, fd, told(fed.serial, port), once)
        };
        match self.shared.slots.get(port.index())?.with(look)? {
            Ok(()) => None,
            Err(Errno::BADF) => Some(PollFlags::NVAL.bits().into()),
            Err(_) => Some(PollFlags::IN.bits().into()),
        }
    }

    /// Ends the thread, and waits for that.
    fn finish(&self) {
        let Some(running) = self.running.get() else {
            return;
        };
        let thread = running.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if !self.shared.place.is_own() {
            // In a child of the process it is not.
            return mem::forget(thread);
        }
        running.alarm.raise();
        if let Some(thread) = thread {
            // A panic said so on standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.finish();
        for slot in &self.shared.slots {
            drop(slot.take());
        }
    }
}

/// Ends the feeder's thread when this is dropped: with the executor.
pub(crate) struct Finishes(pub(crate) Arc<Feeder>);

impl Drop for Finishes {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Shared {
    /// Waits until nobody is to any more, and has something arrive for each that is told of.
    fn wait(&self, epoll: &OwnedFd) {
        let mut space = [const { MaybeUninit::<Event>::uninit() }; AT_ONCE];
        loop {
            let events = match epoll::wait(epoll, &mut space, None) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                // Of what is open and in memory the kernel says nothing else.
                Err(_) => return,
            };
            for event in events {
                let (flags, data) = (event.flags, event.data.u64());
                if data == END {
                    return;
                }
                self.arrives(data, flags);
            }
        }
    }

    /// Puts what was told of, unless another descriptor has the port by now, or none.
    fn arrives(&self, data: u64, flags: EventFlags) {
        let (serial, port) = ((data >> 16) as u32, PortId(data as u16));
        let Some(slot) = self.slots.get(port.index()) else {
            return;
        };
        slot.with(|fed| {
            if fed.serial == serial {
                let (at, payload) = (clock::now(), [flags.bits().into(), 0]);
                // Where there is no room, it is found at the executor's next wait for it.
                if self.ports.put(port, Arrival { at, payload }) == Some(true) {
                    self.place.call(&self.ports, port);
                }
            }
        });
    }
}
