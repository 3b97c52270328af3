//! The framework through its public items: one program, since each costs a link against all of it.

mod conservation;
mod due;
mod ending;
mod registering;
mod sending;
mod support;
mod taps;
mod threads;
mod wire;
mod world;
