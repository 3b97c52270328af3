//! How what was admitted is carried out: the dispatcher of slot tables with its making-up, the witness's rule, which Linux policy stands for
//! which placement, what a host must do and hand back, and what a machine costs.

mod dispatcher;
pub mod host;
pub mod machine;
mod making_up;
pub mod ranks;
pub mod slots;
mod witness;

pub use dispatcher::{Command, Dispatcher};
pub use making_up::MakingUp;
pub use witness::{WITNESS_ACTIVITY, Witness};
