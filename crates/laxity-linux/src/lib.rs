//! The live host: Linux's own schedulers, and a dispatcher that executes a table of time slots. The only home of system calls.
#![allow(unsafe_code)]

pub mod doctor;
