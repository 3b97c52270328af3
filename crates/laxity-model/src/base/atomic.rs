//! The atomics of the machine, or those of the model checker that tries every interleaving of them.
#![allow(unexpected_cfgs)]

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
