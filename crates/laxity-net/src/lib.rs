//! The network interface framework: many clients on one interface, none starves another, each acts at arrival.
//!
//! Liao, Tan, Campbell, "A Fast, Flexible Network Interface Framework", 1996. A [`Driver`] has an interface, any
//! [`Link`](laxity_model::nif::link::Link), and a registry from filters to clients. A [`Client`] gives empty buffers of its own
//! [`Pool`] and gets a packet for each, in a call at the packet's arrival. What becomes of a packet, whose it is and what is sent
//! next is decided in [`laxity_model::nif`].
//!
//! * [`buffers`]: pools, buffers whose state is in their type, messages of several pieces.
//! * [`client`]: what a client is, and what it may do when it is called.
//! * [`driver`]: registering, receiving, sending, taps, and how it ends.
//! * [`clients`]: the two of the paper's protocol stack, late and early demultiplexing, and one whose packets are due, alone or in a group.
//! * [`stack`], [`sockets`]: TCP/IP as a client, and what programs have of it.
//! * [`bodies`]: a driver and its clients' threads in a program, live and in virtual time.
//! * [`channels`]: real-time channels between hosts: frames, sessions, the data path, a node.
//! * [`questions`]: how other threads ask something of one that must not wait.
//! * [`emulated`]: a wire with rate, delay and faults, both of whose ends are interfaces, and a device that only takes time; [`emulated::hosts`]: hosts with nodes of channels in one calendar.
//!
//! ```
//! use laxity_model::Instant;
//! use laxity_model::nif::registry::{Circuit, Circuits};
//! use laxity_net::buffers::{PoolSize, Sending};
//! use laxity_net::clients::late;
//! use laxity_net::driver::{Driver, Host, Interest, Limits};
//! use laxity_net::emulated::{Faults, Wire};
//!
//! // A wire of 10 Mbit/s, with a driver at each end.
//! let (wire, near, far) = Wire::new(Faults { rate: 10_000_000, ..Faults::default() }, 7);
//! let mut near = Driver::new(near, Circuits::default(), Limits::default(), Host::default())?;
//! let mut far = Driver::new(far, Circuits::default(), Limits::default(), Host::default())?;
//!
//! // Whoever takes packets from the queue may be any thread. The client gets as many as it has given buffers.
//! let (client, queue) = late::client(16, &Host::default().sleeper);
//! let video = Circuit { path: 0, channel: 42 };
//! let receiver = far.register(Interest::In(&video), PoolSize::fixed(16), client)?;
//! receiver.pool.give(16);
//!
//! let sender = near.register(Interest::Nothing, PoolSize::fixed(1), late::client(0, &Host::default().sleeper).0)?;
//! let mut packet = video.header().to_vec();
//! packet.extend(b"a frame");
//! let filled = sender.pool.take()?.fill(&packet).map_err(|back| back.why)?;
//! filled.send(Sending::default()).map_err(|back| back.why)?;
//!
//! let millisecond = Instant::from_millis(1);
//! near.poll(Instant::ZERO, &mut ())?;
//! far.poll(millisecond, &mut ())?;
//! assert_eq!(queue.try_next()?.expect("it has arrived").bytes(), packet);
//! # drop(wire);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod bodies;
pub mod buffers;
pub mod channels;
pub mod client;
pub mod clients;
pub mod driver;
pub mod emulated;
pub mod questions;
pub mod sockets;
pub mod stack;

pub use buffers::{Buffer, Pool};
pub use client::Client;
pub use driver::Driver;

/// Whoever panicked under a lock has left nothing half done there.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
