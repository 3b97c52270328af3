//! A thread that serves a descriptor: it does a bounded amount of work at a time, and sleeps until the descriptor can be read, an instant comes, or another thread wakes it.
//!
//! It is for drivers of interfaces, which do what an interrupt's handler does: so it is real-time where that is permitted, and says why where it is not, since packets that are handled late are better than none. It allocates nothing to sleep.
//!
//! Slots that are asked for on its processor are admitted below it: charged what it takes at the most, to which it is held, or `unenforced` where nobody says that. To those that were there before it, it is a stranger, though it is this process's: slots that it takes more from than goes unnoticed are `unenforced`, and it is named.

use std::io;
use std::os::fd::BorrowedFd;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle};

use laxity_model::admission::Driver;
use laxity_model::{Grade, Instant, Scheduling, Service, Span};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{Firmly, Rank, Ranked, StartError, changed};
use crate::os::clock;
use crate::os::descriptor::Alarm;
use crate::os::memory::STACK_BYTES;
use crate::os::signals;
use crate::run::drivers::Entered;

/// What a thread does after some work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// There is more to do.
    Again,
    /// It sleeps until then, or until its descriptor can be read, or somebody wakes it.
    Sleep(Instant),
    /// The same, whatever its descriptor says.
    Pause(Instant),
    /// It sleeps until then, whoever wakes it.
    Rest(Instant),
    /// It ends.
    End,
}

/// What the thread works on. It is dropped by the thread, when that has no rank any more.
pub trait Serve: Send + 'static {
    /// Does what is to be done now, a bounded amount. `is_ready`: its descriptor ended the sleep before.
    fn work(&mut self, now: Instant, is_ready: bool) -> Next;

    /// What can be read when there is something to do.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// What was charged for all that it has done, where it was said what it takes at the most: its thread's time is held against that.
    fn charged(&self) -> Service {
        Service::ZERO
    }
}

/// By which other threads wake it. To wake costs two atomic operations, and a system call where it sleeps.
#[derive(Debug)]
pub struct Bedside {
    alarm: Alarm,
    is_asleep: AtomicBool,
    is_due: AtomicBool,
    is_over: AtomicBool,
}

/// When a wait is refused that never should be, the thread waits so long before its next look.
const REFUSED: Span = Span::from_millis(1);

impl Bedside {
    /// Of a thread that is to be started.
    ///
    /// # Errors
    ///
    /// The kernel has no descriptor for it.
    pub fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            alarm: Alarm::new()?,
            is_asleep: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }))
    }

    /// The same as any library may have it.
    #[must_use]
    pub fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    fn call(&self) {
        // SeqCst on both words: either the thread sees that it is due before it sleeps, or we see that it sleeps.
        self.is_due.store(true, Ordering::SeqCst);
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.alarm.raise();
        }
    }

    /// Sleeps until then, or until it is to end. Who calls meanwhile takes none of the processor for it.
    fn rest(&self, until: Instant) -> bool {
        while !self.is_over.load(Ordering::SeqCst) {
            let left = until.saturating_since(clock::now());
            if left.is_zero() {
                break;
            }
            self.wait(None, left);
        }
        false
    }

    /// Tells whether the descriptor is ready.
    fn sleep(&self, descriptor: Option<BorrowedFd<'_>>, until: Instant) -> bool {
        let mut is_ready = false;
        self.is_asleep.store(true, Ordering::SeqCst);
        let left = until.saturating_since(clock::now());
        if !self.is_due.load(Ordering::SeqCst) && !left.is_zero() {
            is_ready = self.wait(descriptor, left);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
        is_ready
    }

    /// Waits for the alarm and the descriptor; whether that is ready.
    fn wait(&self, descriptor: Option<BorrowedFd<'_>>, left: Span) -> bool {
        let timeout = clock::timespec(Instant::ZERO + left);
        let alarm = PollFd::new(&self.alarm, PollFlags::IN);
        let other = descriptor.map_or(alarm.clone(), |other| {
            PollFd::from_borrowed_fd(other, PollFlags::IN)
        });
        let mut waits = [alarm, other];
        let polled = poll(&mut waits, Some(&timeout));
        if !waits[0].revents().is_empty() {
            self.alarm.clear();
        }
        if polled.is_err_and(|errno| errno != Errno::INTR) {
            clock::sleep_until(clock::now() + REFUSED);
        }
        descriptor.is_some() && !waits[1].revents().is_empty()
    }
}

impl Wake for Bedside {
    fn wake(self: Arc<Self>) {
        self.call();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
    }
}

/// A thread that serves a descriptor. Dropped, it ends, and is waited for.
pub struct Served {
    thread: Option<JoinHandle<()>>,
    process: u32,
    bedside: Arc<Bedside>,
    firmly: Firmly,
    /// Why it is not real-time.
    lacks: Option<String>,
}

impl Served {
    /// Starts a thread of this name, which admission knows so, and that is FIFO at this priority, on one processor or wherever the kernel lets it run; an ordinary one where it lacks the right. All memory of the process is
    /// locked while it is there, where that is permitted.
    ///
    /// # Errors
    ///
    /// [`StartError`] but for a right that is missing; then there is no thread.
    pub fn start(
        (name, driver): (&str, Driver),
        (priority, processor): (u8, Option<usize>),
        bedside: Arc<Bedside>,
        mut serve: impl Serve,
    ) -> Result<Self, StartError> {
        // The kernel keeps 15 bytes of a thread's name.
        let short: String = name.chars().filter(|c| *c != '\0').take(15).collect();
        let builder = thread::Builder::new().name(short).stack_size(STACK_BYTES);
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let own = Arc::clone(&bedside);
        let started = signals::start_deaf(builder, move || {
            let (ranked, lacks) = match begin(priority, processor) {
                Ok(begun) => begun,
                Err(error) => return drop(tell.send(Err(error))),
            };
            let is_above = lacks.is_none() && Scheduling::Fifo(priority).outranks_slots();
            let entered = is_above.then(|| Entered::enter(driver.name, processor, driver.work));
            let _ = tell.send(Ok((ranked.firmly.clone(), lacks)));
            drop(tell);
            drive(&mut serve, &own, entered.as_ref());
            drop(entered);
            drop(ranked);
        });
        let thread = started.map_err(|error| StartError::NoThread(error.to_string()))?;
        let told = told.recv();
        let told = told.unwrap_or_else(|_| Err(StartError::NoThread("it panicked".to_owned())));
        let (firmly, lacks) = told?;
        Ok(Self {
            thread: Some(thread),
            process: process::id(),
            bedside,
            firmly,
            lacks,
        })
    }

    /// Whether it has the rank that was asked for until now, and where; else why not. A few system calls.
    pub fn grade(&self) -> Grade {
        if let Some(reason) = self.lacks.clone() {
            return Grade::Unenforced { reason };
        }
        let reason = match &self.firmly {
            Firmly::Kept { thread, policy, on } => match changed(*thread, *policy, on) {
                Ok(None) => return Grade::Enforced,
                Ok(Some(what)) => what,
                Err(error) => error.to_string(),
            },
            Firmly::Hold(observer) => return observer.grade(),
            Firmly::Not => "it is an ordinary thread".to_owned(),
        };
        Grade::Unenforced { reason }
    }

    /// Ends it, and waits until it has ended; what it asks itself it does not wait for.
    pub fn end(&mut self) {
        self.bedside.is_over.store(true, Ordering::SeqCst);
        self.bedside.call();
        // One that rests is told by the alarm alone.
        self.bedside.alarm.raise();
        let Some(thread) = self.thread.take() else {
            return;
        };
        if self.process != process::id() {
            // In a child of the process that has it: there it is not.
            std::mem::forget(thread);
        } else if thread.thread().id() != thread::current().id() {
            // A panic said so on standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// Gives the calling thread its rank, or tells why it has none.
fn begin(priority: u8, processor: Option<usize>) -> Result<(Ranked, Option<String>), StartError> {
    let rank = Rank::Fifo {
        priority,
        processor,
    };
    match Ranked::begin(&rank) {
        Ok(ranked) => Ok((ranked, None)),
        Err(StartError::Lacks(why)) => Ok((Ranked::begin(&Rank::Fair)?, Some(why.to_string()))),
        Err(error) => Err(error),
    }
}

fn drive(serve: &mut impl Serve, bedside: &Bedside, entered: Option<&Entered>) {
    let mut is_ready = false;
    loop {
        // Read and written at once: what others did before they woke it is seen.
        bedside.is_due.swap(false, Ordering::SeqCst);
        if bedside.is_over.load(Ordering::SeqCst) {
            return;
        }
        let next = serve.work(clock::now(), is_ready);
        if let Some(entered) = entered {
            entered.charged(serve.charged());
        }
        is_ready = match next {
            Next::Again => false,
            Next::Sleep(until) => bedside.sleep(Some(serve.descriptor()), until),
            Next::Pause(until) => bedside.sleep(None, until),
            Next::Rest(until) => bedside.rest(until),
            Next::End => return,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::os::sched::Tid;
    use crate::run::ours::is_ours;

    fn driver() -> Driver {
        Driver {
            name: "network driver of nothing".to_owned(),
            work: None,
        }
    }

    struct Tells {
        reader: OwnedFd,
        tell: Sender<Vec<u8>>,
    }

    impl Serve for Tells {
        fn work(&mut self, _: Instant, _: bool) -> Next {
            let mut bytes = [0; 8];
            let length = rustix::io::read(&self.reader, &mut bytes).unwrap_or(0);
            match self.tell.send(bytes[..length].to_vec()) {
                Ok(()) => Next::Sleep(Instant::MAX),
                Err(_) => Next::End,
            }
        }

        fn descriptor(&self) -> BorrowedFd<'_> {
            self.reader.as_fd()
        }
    }

    struct Asks(OwnedFd, Sender<bool>);

    impl Serve for Asks {
        fn work(&mut self, _: Instant, _: bool) -> Next {
            self.1.send(is_ours(Tid::current())).ok();
            Next::End
        }

        fn descriptor(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    /// Who looks for strangers above slots is to find it: nobody has charged what it takes.
    #[test]
    fn it_is_a_stranger_to_those_who_hold_reservations() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let (tell, told) = channel();
        let bedside = Bedside::new().unwrap();
        let served =
            Served::start(("asks", driver()), (1, None), bedside, Asks(reader, tell)).unwrap();
        assert!(!told.recv().unwrap());
        drop(served);
    }

    #[test]
    fn it_works_when_it_begins_when_it_can_read_and_when_it_is_woken() {
        let flags = rustix::pipe::PipeFlags::NONBLOCK;
        let (reader, writer) = rustix::pipe::pipe_with(flags).unwrap();
        let (tell, told) = channel();
        let bedside = Bedside::new().unwrap();
        let serve = Tells { reader, tell };
        let mut served =
            Served::start(("tells", driver()), (1, None), Arc::clone(&bedside), serve).unwrap();
        assert_eq!(told.recv().unwrap(), b"");
        rustix::io::write(&writer, b"here").unwrap();
        assert_eq!(told.recv().unwrap(), b"here");
        for _ in 0..100 {
            bedside.waker().wake();
            assert_eq!(told.recv().unwrap(), b"");
        }
        served.end();
        assert!(
            told.iter().all(|bytes| bytes.is_empty()),
            "it has dropped it"
        );
    }
}
