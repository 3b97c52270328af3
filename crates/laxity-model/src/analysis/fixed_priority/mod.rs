//! Fixed priorities: the tasks of a set are given by priority, the highest first, no two alike.
//!
//! * [`response_times`], [`response_time`], [`test()`]: exact response times, and whether all deadlines are met.
//! * [`response_time_among`], [`busy_window_among`]: for other orders that are not one line.
//! * [`longest_regions`]: how long less urgent tasks may keep the processor.
//! * [`best_order`], [`best_order_with_final_regions`], [`rate_monotonic`], [`deadline_monotonic`]: who should be how urgent.
//! * [`fifo`]: no priorities at all.
//!
//! Everything works on any [supply](super::supply).

mod deadlines;
mod fifo;
mod order;
mod regions;
mod requests;
mod response;
mod window;

pub use deadlines::test;
pub use fifo::fifo;
pub use order::{best_order, best_order_with_final_regions, deadline_monotonic, rate_monotonic};
pub use regions::longest_regions;
pub use response::{
    busy_window_among, response_time, response_time_among, response_time_within, response_times,
};
