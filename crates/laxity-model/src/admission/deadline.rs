//! What `SCHED_DEADLINE` makes of requests.
