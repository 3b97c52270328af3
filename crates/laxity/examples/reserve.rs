//! Reserves 2 ms out of every 8 for its own thread, and logs an event. Takes the right to use `SCHED_DEADLINE`; without it, says why and what to do.

use laxity::{Error, EventLog, Service, Span, reserve};

fn main() -> Result<(), Error> {
    let mut log = EventLog::new("example");
    let granted = log.declare("granted");
    let reserved = reserve(Service::from_millis(2), Span::from_millis(8))?;
    log.mark(granted, [2, 8]);
    println!("{}: {}", reserved.reservation(), reserved.grade());
    for entry in log.events() {
        println!("{entry}");
    }
    Ok(())
}
