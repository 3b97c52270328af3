//! Frames and sessions of channels.

mod bodies;
mod forged;
mod frames;
mod golden;
mod handshakes;
mod hosts;
mod local;
mod node;
mod path;
mod sessions;
