//! Real-time channels against what is counted.

mod handler;
mod reassembly;
mod replay;
mod source;
