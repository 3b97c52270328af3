//! Interfaces that are open on this machine: over UDP, for which nobody needs a right, and in network namespaces that the tests make.

mod agree;
mod beside;
mod early;
mod ending;
mod events;
mod live;
#[path = "../../../laxity-linux/tests/links/namespace.rs"]
#[allow(dead_code, reason = "another test has the rest")]
mod namespace;
mod peers;
mod story;
mod support;
