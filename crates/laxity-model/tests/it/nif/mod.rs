//! Whose a packet is: frames, filters, tables and arrivals, each against slow and obvious ways to find the same, and against tcpdump.

mod ask;
mod bpf;
mod filter;
mod frame;
mod packets;
mod table;
mod tcpdump;
mod urgency;
