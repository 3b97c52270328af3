//! Real-time channels against what is counted.

mod handler;
mod fit;
mod reassembly;
mod replay;
mod source;
