//! The network interface framework's decisions, each against slow and obvious ways to find the same; whose a packet is also against tcpdump.

mod ask;
mod bpf;
mod classic;
mod filter;
mod frame;
mod host;
mod overlong;
mod packets;
mod qos;
mod table;
mod tcpdump;
mod transmit;
mod urgency;
