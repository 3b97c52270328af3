//! A reservation of which every stretch is kept: for who judges it beside what became of the machine meanwhile.

use laxity_model::verify::delivery::{Delivery, Stretch};
use laxity_model::{Enforcer, Grade, Outside, Reservation};

use super::super::command::Held;
use super::program::{Choice, ProgramHold, ProgramRequest};
use super::{HoldError, HoldRequest};
use crate::os::fact::Fact;

/// The reservation of a program's first thread by `SCHED_DEADLINE`, looked at once a period. What the program starts are ordinary threads.
#[derive(Debug)]
pub struct CloseHold(ProgramHold);

impl CloseHold {
    /// Holds for a program before it executes; `name`: for messages.
    ///
    /// # Errors
    ///
    /// [`HoldError`]; nothing of the program was changed.
    pub fn of_held(name: &str, reservation: Reservation, held: &Held) -> Result<Self, HoldError> {
        let request = ProgramRequest {
            hold: HoldRequest {
                name: name.to_owned(),
                reservation,
                enforcer: Enforcer::Deadline,
                outside: Outside::Confined,
                processor: None,
            },
            choice: Choice::default(),
            confinement: None,
            witnessed: false,
        };
        ProgramHold::closely(&request, held).map(Self)
    }

    /// Gives it back. What was seen of the thread as long as it lived, in all and 24 bytes for each stretch of a period or so, or why that cannot be seen here:
    /// the kernel does not tell how long a thread waits; and how firmly it was held, by the worst moment that was seen.
    pub fn end(self) -> (Fact<(Delivery, Vec<Stretch>)>, Grade) {
        let observer = self.0.end();
        let seen = observer.delivery();
        let seen = seen.and_then(|delivery| Ok((delivery, observer.stretches()?)));
        (seen, observer.grade())
    }
}
