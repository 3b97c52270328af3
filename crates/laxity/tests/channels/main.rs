//! Nodes of real-time channels, live: over the loop, and between network namespaces.

mod attacked;
mod forked;
mod hosts;
mod loops;
mod served;
mod stopped;
mod support;
