//! One of the two processes: a client that sends messages, or a server that receives them. Its standard input is its socket, which is connected to the other's.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::time::Duration;

use laxity::calibrate::message_cost;
use laxity::upcalls::{Options, Policy, Rank, Spec, Upcalls};
use laxity::{Instant, Request, Service, Span, now, sleep_until};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::time::{self, MissedTickBehavior};

use crate::peers::{PRIORITY, say, tell};

/// Whoever waits for so long has lost the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a process is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Way {
    /// An ordinary one, which sends or receives in a loop.
    Plain,
    /// An upcall, of an executor that goes by rate.
    Upcall,
    /// The same of one that goes by earliest deadline.
    ByDeadline,
    /// A `SCHED_FIFO` thread, which sleeps until its releases.
    Thread,
    /// The same by `SCHED_DEADLINE`.
    Kernel,
    /// An interval of tokio, in a `SCHED_FIFO` thread.
    Interval,
    /// A program of GStreamer's, whose threads are all `SCHED_FIFO`.
    Threadshare,
}

/// What a process is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// How it is served.
    pub way: Way,
    /// Whether it is the client.
    pub sends: bool,
    /// The length of a message.
    pub bytes: usize,
    /// So many messages at most at each release, of which so many without a look.
    pub batch: NonZeroU32,
    /// The same.
    pub quantum: NonZeroU32,
    /// From release to release.
    pub period_us: u64,
    /// The kernel's number of the processor of its upcalls.
    pub processor: usize,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Told {
    /// Messages sent, or received.
    pub messages: u64,
    /// Those that the kernel refused, or that came out of their order.
    pub wrong: u64,
}

impl Told {
    /// A message of this number has come, of which the next one is known.
    pub(super) fn receives(&mut self, number: u64, is_whole: bool, next: &mut u64) {
        let in_order = is_whole && number >= *next;
        self.messages += u64::from(in_order);
        self.wrong += u64::from(!in_order);
        *next = number + 1;
    }
}

/// From when to when it is released.
#[derive(Clone, Copy)]
struct When {
    from: Instant,
    until: Instant,
}

impl When {
    /// What the first message says. A socket that waits for nothing has none yet.
    fn told(socket: &UdpSocket) -> io::Result<Self> {
        let mut message = [0; 16];
        socket.recv(&mut message)?;
        let all = u128::from_le_bytes(message);
        Ok(Self {
            from: Instant::from_nanos((all >> 64) as u64),
            until: Instant::from_nanos(all as u64),
        })
    }
}

/// The first message: what both are told before they begin.
pub(super) fn begin(from: Instant, until: Instant) -> [u8; 16] {
    let all = u128::from(from.as_nanos()) << 64 | u128::from(until.as_nanos());
    all.to_le_bytes()
}

/// The socket, with what has gone or come through it.
struct End {
    socket: UdpSocket,
    room: Vec<u8>,
    sends: bool,
    /// The number of the next message.
    next: u64,
    told: Told,
}

impl End {
    /// Sends or receives a message; `false`: nothing waits to be received.
    fn message(&mut self) -> io::Result<bool> {
        if self.sends {
            self.room[..8].copy_from_slice(&self.next.to_le_bytes());
            match self.socket.send(&self.room) {
                Ok(_) => self.told.messages += 1,
                Err(_) => self.told.wrong += 1,
            }
            self.next += 1;
            return Ok(true);
        }
        match self.socket.recv(&mut self.room) {
            Ok(length) => {
                let mut number = [0; 8];
                number.copy_from_slice(&self.room[..8]);
                let number = u64::from_le_bytes(number);
                let is_whole = length == self.room.len();
                self.told.receives(number, is_whole, &mut self.next);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// So many messages at most; tells how many there were.
    fn messages(&mut self, most: u32) -> io::Result<u32> {
        for number in 0..most {
            if !self.message()? {
                return Ok(number);
            }
        }
        Ok(most)
    }
}

impl Part {
    fn period(&self) -> Span {
        Span::from_micros(self.period_us)
    }

    /// When it is not released any more: a server has two more periods for what was sent last.
    fn over(&self, when: When) -> Instant {
        when.until + self.period() * if self.sends { 0 } else { 2 }
    }

    /// Says that it is ready, and waits.
    fn await_when(end: &End) -> io::Result<When> {
        say("ready")?;
        let when = When::told(&end.socket)?;
        end.socket.set_nonblocking(true)?;
        Ok(when)
    }

    /// An ordinary process: whatever it can.
    fn in_a_loop(mut end: End) -> io::Result<End> {
        let when = Self::await_when(&end)?;
        end.socket.set_nonblocking(false)?;
        // A server looks now and then whether it is over.
        end.socket
            .set_read_timeout(Some(Duration::from_millis(50)))?;
        sleep_until(when.from);
        loop {
            let has_more = end.message()? && !end.sends;
            if !has_more && now() >= when.until {
                return Ok(end);
            }
        }
    }

    /// A thread: whatever it is scheduled by.
    fn on_a_grid(&self, mut end: End) -> io::Result<End> {
        let when = Self::await_when(&end)?;
        let mut release = when.from;
        while release < self.over(when) {
            sleep_until(release);
            end.messages(self.batch.get())?;
            while release <= now() {
                release += self.period();
            }
        }
        Ok(end)
    }

    /// What a message is admitted and reserved with: what it is measured to take here and now at both ends, and this is one of them.
    fn service(&self) -> Result<Service, Box<dyn std::error::Error>> {
        let bytes = u32::try_from(self.bytes)?;
        Ok(message_cost(&[bytes / 2, bytes])?.of(bytes))
    }

    fn reserved(&self, end: End) -> Result<End, Box<dyn std::error::Error>> {
        let service = self.service()? * u64::from(self.batch.get());
        let _reserved = Request::new(service, self.period())?.reserve()?;
        Ok(self.on_a_grid(end)?)
    }

    fn by_intervals(&self, mut end: End) -> io::Result<End> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let when = Self::await_when(&end)?;
        let nanos = |span: Span| Duration::from_nanos(span.as_nanos());
        runtime.block_on(async {
            let first = time::Instant::now() + nanos(when.from.saturating_since(now()));
            let mut ticks = time::interval_at(first, nanos(self.period()));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                if now() >= self.over(when) {
                    return Ok(end);
                }
                end.messages(self.batch.get())?;
            }
        })
    }

    /// The upcall is called from before it is told when, so that nothing is left to be done then by a thread that is not real-time.
    fn by_upcalls(&self, end: End) -> Result<End, Box<dyn std::error::Error>> {
        let service = self.service()?;
        let policy = match self.way {
            Way::ByDeadline => Policy::Edf,
            _ => Policy::Rmdp,
        };
        let options = Options {
            policy,
            rank: Rank::Fifo {
                priority: PRIORITY,
                processor: Some(self.processor),
            },
            ..Options::default()
        };
        let upcalls = Upcalls::start(options)?;
        let mut spec = Spec::each(self.period(), service);
        spec.name = if self.sends { "client" } else { "server" }.to_owned();
        spec.timing.batch = self.batch;
        spec.timing.quantum = self.quantum;
        end.socket.set_nonblocking(true)?;
        let (tell, told) = mpsc::channel();
        let (part, mut when, mut held) = (*self, None, Some(end));
        let upcall = upcalls.create(spec, move |call| {
            let Some(end) = &mut held else {
                return call.suspend();
            };
            match part.called(end, &mut when, (call.paced.release, call.now())) {
                Ok(Some(done)) if done < call.now() => call.finish_after(done),
                Ok(Some(_)) => {}
                Ok(None) => {
                    call.suspend();
                    let _ = tell.send(Ok(held.take()));
                }
                Err(error) => {
                    call.suspend();
                    let _ = tell.send(Err(error));
                }
            }
        })?;
        upcall.run()?;
        say("ready")?;
        upcalls.sleep(&[&upcall])?;
        let end = told.recv()??;
        end.ok_or_else(|| "the upcall lost its socket".into())
    }

    /// A quantum of so many messages of a call that was released then: tells how many there were, or `None` when it is over.
    fn called(
        &self,
        end: &mut End,
        known: &mut Option<When>,
        (release, most): (Instant, u32),
    ) -> io::Result<Option<u32>> {
        if known.is_none() {
            *known = match When::told(&end.socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                told => Some(told?),
            };
        }
        match *known {
            Some(when) if release >= self.over(when) => Ok(None),
            Some(when) if release >= when.from => end.messages(most).map(Some),
            _ => Ok(Some(0)),
        }
    }
}

/// Does what a process is to do, as it is told; says that it is ready, and at its end what has become of it, each in a line.
///
/// # Errors
///
/// What it lacks, or lost: a right, its socket, the other process.
pub fn run(part: &str) -> Result<(), Box<dyn std::error::Error>> {
    let part: Part = serde_json::from_str(part)?;
    let socket = UdpSocket::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_read_timeout(Some(PATIENCE))?;
    let end = End {
        socket,
        room: vec![0; part.bytes.max(8)],
        sends: part.sends,
        next: 0,
        told: Told::default(),
    };
    let mut end = match part.way {
        Way::Plain => Part::in_a_loop(end)?,
        Way::Upcall | Way::ByDeadline => part.by_upcalls(end)?,
        Way::Thread => part.on_a_grid(end)?,
        Way::Kernel => part.reserved(end)?,
        Way::Interval => part.by_intervals(end)?,
        Way::Threadshare => return Err("GStreamer's own program does that".into()),
    };
    // What still waits was no loss of the server's buffer.
    end.socket.set_nonblocking(true)?;
    while !end.sends && end.message()? {}
    Ok(tell(&end.told)?)
}
