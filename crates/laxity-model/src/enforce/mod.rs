//! How what was admitted is carried out: the dispatcher of slot tables, what a host must do and hand back, and what a machine costs.

mod dispatcher;
pub mod host;
pub mod machine;

pub use dispatcher::{Command, Dispatcher};
