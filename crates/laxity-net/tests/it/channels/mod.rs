//! Frames and sessions of channels.

mod bodies;
mod forged;
mod frames;
mod golden;
mod handshakes;
mod hosts;
mod node;
mod local;
mod path;
mod sessions;
