//! What a run is judged by: what timeliness means ([`contract`]), who made a job late ([`attribution`]), and what the holder of a reservation
//! received ([`delivery`]).

pub mod attribution;
pub mod contract;
pub mod delivery;
