//! What a run is judged by: what timeliness means ([`contract`]), and who made a job late ([`attribution`]).

pub mod attribution;
pub mod contract;
