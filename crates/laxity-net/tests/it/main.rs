//! The framework through its public items: one program, since each costs a link against all of it.

mod apart;
mod channels;
mod conservation;
mod due;
mod ending;
mod moods;
mod registering;
mod sending;
mod stack;
mod support;
mod taps;
mod threads;
mod twin;
mod wire;
mod world;
