//! Buffers (§2.3): each is in one pair of hands, its state is in its type, and it comes home to its pool whoever lets go of it.
//!
//! A [`Buffer`] is [`Empty`] or [`Filled`]. An empty one is [given](Buffer::give) to the driver that its [`Pool`] was made at, which
//! hands a filled one over for it; there is no other driver that could be named. It cannot be used once it has been given,
//!
//! ```compile_fail,E0382
//! # use laxity_net::buffers::{Buffer, Empty};
//! fn give_and_write(mut buffer: Buffer<Box<[u8]>, Empty>) {
//!     buffer.give().ok();
//!     buffer.space()[0] = 1;
//! }
//! ```
//!
//! nor given twice,
//!
//! ```compile_fail,E0382
//! # use laxity_net::buffers::{Buffer, Empty};
//! fn give_twice(buffer: Buffer<Box<[u8]>, Empty>) {
//!     buffer.give().ok();
//!     buffer.give().ok();
//! }
//! ```
//!
//! nor copied,
//!
//! ```compile_fail,E0599
//! # use laxity_net::buffers::{Buffer, Empty};
//! fn keep_one_back(buffer: Buffer<Box<[u8]>, Empty>) {
//!     buffer.clone().give().ok();
//! }
//! ```
//!
//! nor received into as it is while it is filled,
//!
//! ```compile_fail,E0599
//! # use laxity_net::buffers::{Buffer, Filled};
//! fn give_what_is_in_use(buffer: Buffer<Box<[u8]>, Filled>) {
//!     buffer.give().ok();
//! }
//! ```
//!
//! nor handed to a driver that it is not of, as no driver takes one:
//!
//! ```compile_fail,E0599
//! # use laxity_net::buffers::{Buffer, Empty};
//! # use laxity_net::{Driver, emulated::End};
//! # use laxity_model::nif::registry::Circuits;
//! fn to_another(other: &mut Driver<End, Circuits>, buffer: Buffer<Box<[u8]>, Empty>) {
//!     other.give(buffer);
//! }
//! ```

mod buffer;
mod line;
mod message;
mod pool;
mod shared;
mod sleeper;

pub use buffer::{Arrived, Back, Buffer, Empty, Filled, Sending, Sent, Unavailable};
pub(crate) use line::Line;
pub use message::{Gathered, Message};
pub use pool::{Pool, PoolSize};
pub(crate) use shared::{Frame, Held, Lent, Shared};
pub use sleeper::Sleeper;
