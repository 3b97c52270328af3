//! What a person gets to see of a run.
//!
//! * [`table`]: a short table on the terminal, and the verdicts.
//! * [`html`]: one page that opens offline and needs no script.
//!
//! Both are made from [`RunResults`](crate::evidence::results::RunResults) alone; the same results give the same bytes.

mod chart;
mod format;
pub mod html;
pub mod table;
mod timeline;

pub use timeline::TimelineView;
