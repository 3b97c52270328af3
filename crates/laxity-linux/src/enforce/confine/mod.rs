//! Confinement of other processes: they run in their slots and not otherwise, by a cgroup of our own.
//!
//! | means | outside the slot | what the program may notice |
//! |---|---|---|
//! | [`Freezer`] | nothing runs | a call that cannot be restarted (`epoll_wait`, `nanosleep` with a remainder) returns `EINTR` |
//! | [`FairQuota`] | at most 1 ms in each second, on average ≤ 0.1 % of a processor, in bursts | what it starts waits until it is found, up to 20 ms, and for its next slot |
//!
//! Not used: SIGSTOP, which the parent is told of; the freezer of cgroup v1, which costs 100 µs an edge; `SCHED_IDLE`, which does
//! not confine. The [guardian](crate::enforce::guardian) undoes it all if this process dies.

mod freezer;
mod group;
mod quota;

pub use freezer::Freezer;
pub use group::ConfineError;
pub use quota::FairQuota;
