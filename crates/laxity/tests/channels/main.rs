//! Nodes of real-time channels, live: over the loop, and between network namespaces.

mod hosts;
mod loops;
mod served;
mod support;
