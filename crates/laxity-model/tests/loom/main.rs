//! What is shared without a lock, under every interleaving that the memory model allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p laxity-model --test loom --release`.

#![allow(unexpected_cfgs)]
#![cfg(loom)]

mod arrivals;
mod bell;
mod ring;
mod shared;
mod stack;
mod together;
mod upcalls;
