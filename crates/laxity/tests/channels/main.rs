//! Nodes of real-time channels, live: over the loop, and between network namespaces.

mod alone;
mod attacked;
mod hosts;
mod loops;
mod served;
mod stopped;
mod support;
