//! What packets take of a driver here: measured by each way to an interface, with a driver and a client of ours at one end, and whoever sends and receives at the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use laxity_linux::calibrate::{PacketCost, cost_of, wait};
use laxity_linux::net::pair::joined;
use laxity_linux::net::{AnyLink, AnyMemory, Settings};
use laxity_linux::os::clock;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Left, Link, LinkError, Memory};
use laxity_model::program::upcalls::qos::Unmappable;
use laxity_model::{Service, Span};
use laxity_net::buffers::{Buffer, Filled, Pool, PoolSize, Sending};
use laxity_net::client::{Client, Context};
use laxity_net::driver::{Driver, Host, Interest, Limits, Registered};

/// So many packets a driver handles at a time.
const BATCH: u32 = 32;
/// Of so many bytes, with the Ethernet header.
const SIZES: [u32; 3] = [64, 512, 1_514];
/// Of each size.
const STRETCHES: usize = 20;
/// What is not through after so long was lost.
const PATIENCE: Span = Span::from_millis(200);
/// So long a thread sleeps before it looks: to go to sleep and to wake is a part of what a look takes.
const SLEEP: Span = Span::from_micros(1);
const LOOK: Span = Span::from_millis(5);

/// What packets take by one of the [ways](laxity_linux::calibrate::WAYS), of the calling thread's processor time.
///
/// # Errors
///
/// Why that cannot be measured here, with the remedy.
pub(crate) fn measure(way: &str) -> Result<PacketCost, String> {
    let settings = Settings {
        posted: 2 * BATCH as usize,
        reach: BATCH as usize,
        memory: 8 * BATCH as usize,
        ..Settings::default()
    };
    let links = joined(way, &settings).map_err(|why| format!("{why}; {}", why.remedy()))?;
    let mut ends = Ends::new(links)?;
    let wake = ends.cost(&[0, 1], |ends, _, times| Ok(ends.look(times)))?;
    Ok(PacketCost {
        wake: wake.of(1),
        receive: ends.cost(&SIZES, Ends::receive)?,
        send: ends.cost(&SIZES, Ends::send)?,
    })
}

/// How many packets arrived, and how many frames have left.
#[derive(Default)]
struct Counts {
    arrived: AtomicU32,
    left: AtomicU32,
}

/// Counts, and gives each buffer again.
struct Counting(Arc<Counts>);

/// Only the thread that measures counts.
fn count(one: &AtomicU32) {
    one.store(
        one.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
}

impl Client<AnyMemory> for Counting {
    fn receive(&mut self, packet: Buffer<AnyMemory, Filled>, _: &mut Context<'_>) {
        count(&self.0.arrived);
        packet.emptied().give().ok();
    }

    fn sent(&mut self, _: u64, _: Result<(), LinkError>, _: &mut Context<'_>) {
        count(&self.0.left);
    }
}

/// A datagram of so many bytes with its headers, to the client's port.
fn fill(into: &mut [u8], bytes: u32) {
    let length = bytes as u16;
    into[..bytes as usize].fill(2);
    into[12..26].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
    into[16..18].copy_from_slice(&(length - 14).to_be_bytes());
    into[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0x03, 0xe8, 0x07, 0xd0]);
    into[38..40].copy_from_slice(&(length - 34).to_be_bytes());
    into[40..42].fill(0);
}

/// Both ends.
struct Ends {
    driver: Driver<AnyLink, Frames>,
    pool: Pool<AnyMemory>,
    counts: Arc<Counts>,
    far: AnyLink,
    memory: Vec<AnyMemory>,
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Ends {
    fn new([near, mut far]: [AnyLink; 2]) -> Result<Self, String> {
        let limits = Limits {
            posted: 2 * BATCH as usize,
            reach: BATCH as usize,
            ..Limits::default()
        };
        let driver = Driver::new(near, Frames::new(None, 1), limits, Host::default());
        let mut driver = driver.map_err(words)?;
        let filter = Filter::parse("udp dst port 2000", None).map_err(words)?;
        let counts = Arc::<Counts>::default();
        let size = PoolSize::fixed(2 * BATCH);
        let client = Counting(Arc::clone(&counts));
        let registered = driver.register(Interest::In(&filter), size, client);
        let Registered { pool, .. } = registered.map_err(words)?;
        pool.give(BATCH);
        for memory in far.allocate(2 * BATCH as usize).map_err(words)? {
            // No more than it takes.
            let _ = far.post(memory);
        }
        let memory = far.allocate(BATCH as usize).map_err(words)?;
        Ok(Self {
            driver,
            pool,
            counts,
            far,
            memory,
        })
    }

    /// By size, of work that tells what so many packets of so many bytes took.
    fn cost(
        &mut self,
        sizes: &[u32],
        mut work: impl FnMut(&mut Self, u32, u32) -> Result<Service, String>,
    ) -> Result<laxity_model::program::upcalls::qos::Cost, String> {
        let mut wrong = None;
        let cost = cost_of(sizes, STRETCHES, |bytes, times| {
            let took = match wrong {
                None => work(self, bytes, times),
                // Nothing is waited for again.
                Some(_) => Ok(Service::ZERO),
            };
            took.unwrap_or_else(|why| {
                wrong = Some(why);
                Service::ZERO
            })
        });
        match wrong {
            Some(why) => Err(why),
            None => cost.map_err(|error: Unmappable| error.to_string()),
        }
    }

    /// So many looks that find nothing, each after a sleep, as the thread makes them that serves an interface.
    fn look(&mut self, times: u32) -> Service {
        let before = clock::thread_service();
        for _ in 0..times {
            wait(self.driver.link(), SLEEP);
            // What it finds is nobody's.
            let _ = self.driver.poll(clock::now(), &mut ());
        }
        clock::thread_service().saturating_sub(before)
    }

    /// Polls until so many were counted; tells what that took, but for looks that found nothing and waits.
    fn poll_until(
        &mut self,
        counted: fn(&Counts) -> &AtomicU32,
        until: u32,
    ) -> Result<Service, String> {
        let (mut took, deadline) = (Service::ZERO, clock::now() + PATIENCE);
        while counted(&self.counts).load(Ordering::Relaxed) != until {
            let before = clock::thread_service();
            let polled = self.driver.poll(clock::now(), &mut ()).map_err(words)?;
            let after = clock::thread_service();
            if polled.all() > 0 || counted(&self.counts).load(Ordering::Relaxed) == until {
                took += after.saturating_sub(before);
            } else if clock::now() > deadline {
                return Err(
                    "packets are lost on their way; try again when less runs here".to_owned(),
                );
            } else {
                wait(self.driver.link(), LOOK);
            }
        }
        Ok(took)
    }

    fn receive(&mut self, bytes: u32, times: u32) -> Result<Service, String> {
        let (mut left, mut took) = (times, Service::ZERO);
        while left > 0 {
            let batch = left.min(BATCH);
            left -= batch;
            let until = self
                .counts
                .arrived
                .load(Ordering::Relaxed)
                .wrapping_add(batch);
            for _ in 0..batch {
                let Some(mut memory) = self.memory.pop() else {
                    return Err("frames do not leave".to_owned());
                };
                fill(memory.bytes_mut(), bytes);
                let queued = self
                    .far
                    .queue(memory, bytes as usize, Left::default(), clock::now());
                queued.map_err(|(_, error)| words(error))?;
            }
            self.far.flush(clock::now()).map_err(words)?;
            took += self.poll_until(|counts| &counts.arrived, until)?;
            let deadline = clock::now() + PATIENCE;
            while self.memory.len() < BATCH as usize && clock::now() < deadline {
                self.memory.extend(self.far.sent(clock::now()));
            }
        }
        Ok(took)
    }

    fn send(&mut self, bytes: u32, times: u32) -> Result<Service, String> {
        let (mut left, mut took) = (times, Service::ZERO);
        while left > 0 {
            let batch = left.min(BATCH);
            left -= batch;
            let until = self.counts.left.load(Ordering::Relaxed).wrapping_add(batch);
            let before = clock::thread_service();
            for _ in 0..batch {
                let mut buffer = self.pool.take().map_err(words)?;
                fill(buffer.space(), bytes);
                let filled = buffer
                    .filled(bytes as usize)
                    .map_err(|back| words(back.why))?;
                filled
                    .send(Sending::default())
                    .map_err(|back| words(back.why))?;
            }
            took += clock::thread_service().saturating_sub(before);
            took += self.poll_until(|counts| &counts.left, until)?;
            while let Ok(Some(packet)) = self.far.receive(clock::now()) {
                let _ = self.far.post(packet.memory);
            }
        }
        Ok(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over UDP, for which nobody needs a right.
    #[test]
    fn a_packet_takes_something_of_its_driver_each_way() {
        let cost = measure("udp").unwrap();
        assert!(cost.wake > Service::ZERO, "{cost:?}");
        for way in [cost.receive, cost.send] {
            assert!(
                way.of(64) > Service::ZERO && way.of(1_514) >= way.of(64),
                "{cost:?}"
            );
        }
        let costs = cost.costs();
        assert!(
            costs.each(1_514) >= cost.wake + cost.receive.of(1_514),
            "{cost:?}"
        );
    }

    #[test]
    fn a_way_that_there_is_none_says_so() {
        assert!(measure("no such").is_err());
    }
}
