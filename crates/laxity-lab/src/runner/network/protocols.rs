//! TCP/IP of the near end, which its clients' threads go through with their packets: so what a packet takes is its thread's, whatever found that thread.

use std::io::ErrorKind;

use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::Link;
use laxity_model::nif::transmit::FirstCome;
use laxity_model::{HostError, Instant};
use laxity_net::driver::Driver;
use laxity_net::emulated::{End, Faults, Wire};
use laxity_net::sockets::{TcpListener, TcpStream};
use laxity_net::stack::Stack;

use super::far::{Time, stack, window};
use super::{Known, POSTED, QUEUE, driver, earliest, failed};

type Packet = Box<[u8]>;
/// Frames are handed over in memory that is there already.
const SPARE: usize = 64;

/// The stack, behind a wire in memory that takes no time: so it is one that any packets can be given to.
pub(super) struct Protocols {
    /// What is given to the stack is sent here, and what it sends arrives.
    outside: End,
    spare: Vec<Packet>,
    driver: Driver<End, Frames>,
    stack: Stack<Packet>,
    time: Time,
    /// Of each flow's connections, by the flow's place.
    listeners: Vec<(usize, TcpListener<Packet>)>,
    streams: Vec<(usize, TcpStream<Packet>)>,
    /// Until when nobody looks at its timers.
    pub(super) next_look: Instant,
}

/// What came of a look at them.
#[derive(Default)]
pub(super) struct Done {
    /// Bytes of a flow's connections that arrived in order.
    pub(super) received: Vec<(usize, u64)>,
    /// Frames to be sent.
    pub(super) frames: Vec<Vec<u8>>,
    /// When to look again.
    pub(super) next: Option<Instant>,
}

impl Protocols {
    pub(super) fn new(flows: &[Known], seed: u64) -> Result<Self, HostError> {
        let (_, mut outside, inside) = Wire::new(Faults::default(), seed);
        let time = Time::default();
        let mut driver = driver(inside, (256, POSTED), (FirstCome::new(QUEUE), seed))?;
        let stack = stack(&mut driver, (2, window(flows)), &time, seed)?;
        let bulk = flows.iter().enumerate();
        let bulk = bulk.filter(|(_, known)| !known.is_video());
        let ports = bulk.flat_map(|(index, known)| {
            (0..known.flow.connections()).map(move |number| (index, known.port(number)))
        });
        let listeners = ports.map(|(index, port)| Ok((index, TcpListener::bind(&stack, port, 4)?)));
        let listeners = listeners.collect::<std::io::Result<_>>().map_err(failed)?;
        let mut spare = outside.allocate(2 * SPARE).map_err(failed)?;
        for memory in spare.split_off(SPARE) {
            outside.post(memory).ok();
        }
        Ok(Self {
            outside,
            spare,
            driver,
            stack,
            time,
            listeners,
            streams: Vec::new(),
            next_look: Instant::MAX,
        })
    }

    /// Takes a frame that has been worked on, and does what follows from it.
    pub(super) fn pass(&mut self, frame: &[u8], now: Instant) -> Done {
        if let Some(mut memory) = self.spare.pop() {
            let length = frame.len().min(memory.len());
            memory[..length].copy_from_slice(&frame[..length]);
            if let Err((memory, _)) = self.outside.send(memory, length, now) {
                self.spare.push(memory);
            }
        }
        self.look(now)
    }

    /// Does what is due.
    pub(super) fn look(&mut self, now: Instant) -> Done {
        self.time.set(now);
        let mut done = Done::default();
        // Once more, for what the driver did in answer to what was asked of it.
        for _ in 0..3 {
            done.next = self.once(now, &mut done);
        }
        while let Some(memory) = self.outside.sent(now) {
            self.spare.push(memory);
        }
        done
    }

    fn once(&mut self, now: Instant, done: &mut Done) -> Option<Instant> {
        // A wire in memory neither fails nor ends.
        let again = self
            .driver
            .poll(now, &mut ())
            .ok()
            .and_then(|polled| polled.again);
        let mut next = earliest([again, self.stack.poll(now)]);
        for (flow, listener) in &self.listeners {
            while let Some(stream) = listener.try_accept() {
                self.streams.push((*flow, stream));
            }
        }
        let mut bytes = [0; 16 * 1_024];
        self.streams.retain(|(flow, stream)| {
            loop {
                match stream.receive(&mut bytes) {
                    Ok(count) if count > 0 => done.received.push((*flow, count as u64)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        next = earliest([next, stream.poll(now)]);
                        return true;
                    }
                    _ => return false,
                }
            }
        });
        self.driver.poll(now, &mut ()).ok();
        while let Ok(Some(sent)) = self.outside.receive(now) {
            done.frames.push(sent.memory[..sent.length].to_vec());
            self.outside.post(sent.memory).ok();
        }
        next
    }
}
