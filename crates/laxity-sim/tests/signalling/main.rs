//! Signalling between the nodes of a network: what is opened, refused, changed and ended, whatever the wire does and whoever dies.

mod admission;
mod counted;
mod hostile;
mod lines;
mod peer;
mod scale;
mod world;
