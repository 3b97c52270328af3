//! The network interface framework's decisions.

mod transmit;
