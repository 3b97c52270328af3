//! Real-time channels between hosts: what is on the wire, and whom a host believes.
//!
//! * [`frame`]: the frames, byte by byte, as `docs/wire.md` has them.
//! * [`node`]: a host's node, which joins all of this with signalling and admission, and does no I/O.
//! * [`local`]: what an application and its node say to each other, as `docs/local.md` has it, and what a user may do.
//! * [`path`](mod@path): from messages to frames, on to the next host, and back to messages.
//! * [`told`]: what an application is told with each message.
//! * [`session`]: keys, sealed frames, and how two hosts agree on them.
//!
//! What a channel is, and what becomes of its messages, is decided in [`laxity_model::channels`].

pub mod frame;
pub mod local;
pub mod node;
pub mod path;
pub mod session;
pub mod told;
