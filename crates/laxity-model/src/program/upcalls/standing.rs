//! What an upcall is, and what a command makes of that.

/// What is asked for an upcall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// To make its handler. It is not called before it is to run.
    Create,
    /// To call it at its releases from now on.
    Run,
    /// Not to call it any more until it is to run again; what is left of a call that has begun is not done.
    Suspend,
    /// To end it, whatever it is at, and to drop its handler.
    Close,
}

impl Command {
    pub(super) const ALL: [Self; 4] = [Self::Create, Self::Run, Self::Suspend, Self::Close];
}

/// What an upcall is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nobody has this place.
    Absent,
    /// It is not called: not yet, or not until it is to run again.
    Suspended,
    /// It is called at its releases.
    Active,
    /// Suspended because it overran, as was chosen for it.
    Overran,
    /// It has ended by itself, or because it overran, and is not called any more.
    Ended,
    /// Its handler panicked, or could not be made, and is not called any more.
    Panicked,
}

impl Standing {
    pub(super) const ALL: [Self; 6] = [
        Self::Absent,
        Self::Suspended,
        Self::Active,
        Self::Overran,
        Self::Ended,
        Self::Panicked,
    ];

    /// What a command does to an upcall that is this.
    ///
    /// # Errors
    ///
    /// [`Denied`]: nothing is done.
    pub const fn asked(self, command: Command) -> Result<Effect, Denied> {
        match (self, command) {
            (Self::Absent, Command::Create) => Ok(Effect::Make),
            (Self::Absent, _) | (_, Command::Create) => Err(Denied),
            (_, Command::Close) => Ok(Effect::Discard),
            (Self::Suspended | Self::Overran, Command::Run) => Ok(Effect::Enter),
            (Self::Active, Command::Suspend) => Ok(Effect::Leave),
            (Self::Ended | Self::Panicked, Command::Run) => Err(Denied),
            (Self::Active, Command::Run) | (_, Command::Suspend) => Ok(Effect::Nothing),
        }
    }
}

/// What is to be done for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It is so already.
    Nothing,
    /// Its handler is made, and suspended.
    Make,
    /// It gets a place among the executor's handlers.
    Enter,
    /// It gives that up, with the job that it has there.
    Leave,
    /// The same, and its handler is dropped.
    Discard,
}

/// The command means nothing to an upcall that is what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it is not there, or has ended")]
pub struct Denied;
