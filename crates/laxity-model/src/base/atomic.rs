//! The atomics of the machine, or those of the model checker that tries every interleaving of them.
#![allow(unexpected_cfgs)]

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
