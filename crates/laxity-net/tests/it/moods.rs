//! Interfaces that throw away, have no room, keep what they were given, or go: what their driver makes of it.

use laxity_model::Instant;
use laxity_model::nif::link::{Facts, Link, LinkError, Losses, Received};
use laxity_model::nif::registry::Circuits;
use laxity_model::nif::registry::ClientId;
use laxity_net::buffers::{Pool, PoolSize, Sending};
use laxity_net::client::News;
use laxity_net::driver::{Driver, DriverError, Host, Interest, Limits, Scope};
use laxity_net::emulated::{End, Faults, Wire};

use crate::support::{Keeper, Own};

type Memory = Box<[u8]>;

/// A client that sends, and its buffers.
fn client(driver: &mut Driver<Moody, Circuits>, buffers: u32) -> (Keeper<Memory>, Pool<Memory>) {
    let keeper = Keeper::default();
    let client = driver.register(Interest::Nothing, PoolSize::fixed(buffers), keeper.clone());
    (keeper, client.unwrap().pool)
}

fn driver(link: Moody) -> Driver<Moody, Circuits> {
    let limits = Limits::default();
    Driver::new(link, Circuits::default(), limits, Host::default()).unwrap()
}

fn send(pool: &Pool<Memory>, tag: u64) {
    let filled = pool.take().unwrap().fill(&[1; 60]).unwrap();
    let sending = Sending {
        tag,
        ..Sending::default()
    };
    filled.send(sending).unwrap();
}

/// What an interface throws away takes its time, too.
#[test]
fn what_an_interface_throws_away_is_bounded_as_what_is_taken() {
    let (_wire, near, _far) = Wire::new(Faults::default(), 1);
    let link = Moody {
        waiting: 5,
        ..Moody::new(near)
    };
    let mut driver = driver(link);
    for discarded in [2, 2, 1, 0] {
        let polled = driver.poll_at_most(Instant::ZERO, &mut (), 2).unwrap();
        assert_eq!((polled.discarded, polled.all()), (discarded, discarded));
        assert_eq!(polled.is_more, discarded == 2);
    }
}

/// Nobody tells that there is room again where nothing is on its way.
#[test]
fn a_frame_for_which_there_is_no_room_is_tried_again_though_nothing_is_below() {
    let (_wire, near, _far) = Wire::new(Faults::default(), 1);
    let link = Moody {
        full: 3,
        ..Moody::new(near)
    };
    let mut driver = driver(link);
    let (keeper, pool) = client(&mut driver, 1);
    let tap = Keeper::<Own>::default();
    driver.tap(Scope::All, tap.clone());
    send(&pool, 7);
    let mut now = Instant::ZERO;
    for tries in 1.. {
        let polled = driver.poll(now, &mut ()).unwrap();
        if polled.sent > 0 {
            assert_eq!(tries, 4);
            break;
        }
        now = polled.again.expect("it is tried again");
        assert!(now <= Instant::from_millis(1));
    }
    driver.poll(now, &mut ()).unwrap();
    assert_eq!(keeper.sent(), [(7, Ok(()))]);
    assert_eq!(tap.bytes().len(), 1, "however often it was tried");
}

/// Whoever polls need not do so again, once he is told that it is gone.
#[test]
fn an_interface_that_is_gone_when_frames_leave_ends_its_driver_as_any() {
    let (wire, near, _far) = Wire::new(Faults::default(), 1);
    let link = Moody {
        goes: Some(wire),
        ..Moody::new(near)
    };
    let mut driver = driver(link);
    let (keeper, pool) = client(&mut driver, 2);
    send(&pool, 7);
    let polled = driver.poll(Instant::ZERO, &mut ()).unwrap();
    assert!(polled.is_more);
    let polled = driver.poll(Instant::ZERO, &mut ());
    assert_eq!(polled, Err(DriverError::Link(LinkError::Gone)));
    assert_eq!((keeper.news(), pool.census().free), (vec![News::Gone], 2));
}

/// It is still below when the driver ends, and the interface does not give its memory back.
#[test]
fn a_buffer_comes_home_without_what_its_interface_keeps() {
    let (_wire, near, _far) = Wire::new(Faults::default(), 1);
    let link = Moody {
        keeps: true,
        ..Moody::new(near)
    };
    let mut driver = driver(link);
    let (_, pool) = client(&mut driver, 1);
    let filled = pool.take().unwrap().fill(&[1; 60]).unwrap();
    let waits = std::thread::spawn(|| filled.send_and_wait(Sending::default()).unwrap().outcome);
    while driver.poll(Instant::ZERO, &mut ()).unwrap().sent == 0 {}
    drop(driver);
    assert_eq!(waits.join().unwrap(), Err(LinkError::Gone));
    assert_eq!(pool.census().free, 1);
}

/// An interface that does not tell when frames have left, and has its moods.
struct Moody {
    end: End,
    /// So many packets wait, all of which are too long.
    waiting: usize,
    has_discarded: bool,
    /// So many times there is no room for a frame.
    full: usize,
    /// It is deleted when frames are to leave.
    goes: Option<Wire>,
    /// It gives nothing back.
    keeps: bool,
}

impl Moody {
    const fn new(end: End) -> Self {
        Self {
            end,
            waiting: 0,
            has_discarded: false,
            full: 0,
            goes: None,
            keeps: false,
        }
    }
}

impl Link for Moody {
    type Memory = Memory;

    fn facts(&self) -> &Facts {
        self.end.facts()
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Memory>, LinkError> {
        self.end.allocate(packets)
    }

    fn post(&mut self, memory: Memory) -> Result<(), Memory> {
        self.end.post(memory)
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<Memory>>, LinkError> {
        self.has_discarded = self.waiting > 0;
        self.waiting -= usize::from(self.has_discarded);
        self.end.receive(now)
    }

    fn is_silent(&self) -> bool {
        true
    }

    fn flush(&mut self, _: Instant) -> Result<(), LinkError> {
        let Some(wire) = &self.goes else {
            return Ok(());
        };
        wire.delete();
        Err(LinkError::Gone)
    }

    fn has_discarded(&self) -> bool {
        self.has_discarded
    }

    fn send(
        &mut self,
        memory: Memory,
        length: usize,
        now: Instant,
    ) -> Result<(), (Memory, LinkError)> {
        if let Some(full) = self.full.checked_sub(1) {
            self.full = full;
            return Err((memory, LinkError::Full));
        }
        self.end.send(memory, length, now)
    }

    fn has_thrown_away(&self) -> bool {
        false
    }

    fn ended(&mut self, _: ClientId) {}

    fn sent(&mut self, now: Instant) -> Option<Memory> {
        if self.keeps {
            return None;
        }
        self.end.sent(now)
    }

    fn reclaim(&mut self) -> Option<Memory> {
        if self.keeps {
            return None;
        }
        self.end.reclaim()
    }

    fn losses(&self) -> Losses {
        self.end.losses()
    }
}
