//! Sockets above a [`Stack`](crate::stack::Stack), in the manner of `std::net`: blocking, with a limit of time, or neither.
//!
//! A socket is worked on in its own calls, by the thread that calls: there is no lock but its own. One that does not block
//! ([`set_nonblocking`](TcpStream::set_nonblocking)) answers [`WouldBlock`](std::io::ErrorKind::WouldBlock); it is to be called again when the stack's port is
//! [rung](crate::stack::Config::rings), or at the instant that its `poll` tells. So a body of either host uses it: it cannot block.
//!
//! An echo over an emulated wire; in virtual time the two hosts take turns:
//!
//! ```
//! use std::io::{ErrorKind, Read, Write};
//! use std::sync::{Arc, atomic::{AtomicU64, Ordering::SeqCst}};
//! use laxity_model::{Instant, nif::frames::Frames};
//! use laxity_net::buffers::Sleeper;
//! use laxity_net::driver::{Driver, Host, Limits};
//! use laxity_net::emulated::{Faults, Wire};
//! use laxity_net::sockets::{TcpListener, TcpStream};
//! use laxity_net::stack::{Config, Stack};
//!
//! let time = Arc::new(AtomicU64::new(0));
//! let (_wire, near, far) = Wire::new(Faults::default(), 7);
//! let [mut near, mut far] = [near, far].map(|end| Driver::new(end, Frames::new(None, 1), Limits::default(), Host::default()).unwrap());
//! let [client, server] = [(&mut near, 1), (&mut far, 2)].map(|(driver, last)| {
//!     let config = Config { hardware: [2, 0, 0, 0, 0, last], addresses: vec![([10, 0, 0, last].into(), 24)], seed: last.into(), ..Config::default() };
//!     let time = Arc::clone(&time);
//!     let clock = Arc::new(move || Instant::from_micros(time.load(SeqCst)));
//!     Stack::new(driver, config, Sleeper::portable(|| Instant::MAX), clock).unwrap()
//! });
//! let listener = TcpListener::bind(&server, 7, 4)?;
//! let mut stream = TcpStream::start(&client, ([10, 0, 0, 2], 7).into())?;
//! let (mut taken, mut said, mut heard) = (None, 0, Vec::<u8>::new());
//! while heard != b"hello" {
//!     let now = Instant::from_micros(time.fetch_add(100, SeqCst));
//!     near.poll(now, &mut ())?;
//!     far.poll(now, &mut ())?;
//!     (client.poll(now), server.poll(now));
//!     taken = taken.or_else(|| listener.try_accept());
//!     said += stream.write(&b"hello"[said..]).or_else(|e| if e.kind() == ErrorKind::WouldBlock { Ok(0) } else { Err(e) })?;
//!     let mut bytes = [0; 16];
//!     if let Some(Ok(count)) = taken.as_mut().map(|peer| peer.read(&mut bytes)) { taken.as_mut().unwrap().write(&bytes[..count])?; }
//!     if let Ok(count) = stream.read(&mut bytes) { heard.extend(&bytes[..count]); }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocking;
mod listener;
mod stream;
mod udp;

pub use listener::TcpListener;
pub use stream::TcpStream;
pub use udp::UdpSocket;
