//! Hosts that record what nobody may do who has ended: what the cases of endings must notice, of any host.

use crate::stage::CPU;
use crate::suite::CASES;
use crate::{Failure, Result, Tolerance};
use laxity_model::admission::{Admitted, Supply};
use laxity_model::{ActivityId, Event, EventKind, Host, HostError, RunRecord, Span};

/// A host that records what another did, and more.
struct Haunted<'a> {
    /// What it adds.
    ghost: Ghost,
    /// The other.
    host: &'a mut dyn Host,
}

/// What a host must not record, so that the case of this name must notice.
#[derive(Clone, Copy, Debug)]
pub struct Ghost {
    /// The case.
    pub case: &'static str,
    /// What the case then says.
    pub noticed: &'static str,
    add: fn(&mut RunRecord),
}

const END_RUN: &str = "a-run-ends-when-a-body-says-so";

/// Longer than any host is given.
const LONG_AFTER: Span = Span::from_secs(3_600);

/// Whoever is ended, and goes on: the device, one who waits for ever, one who works; a run that was over before; and a worker that had finished.
pub const GHOSTS: [Ghost; 5] = [
    Ghost {
        case: END_RUN,
        noticed: "activity 6 went on",
        add: |record| appear(record, 6, Span::ZERO),
    },
    Ghost {
        case: END_RUN,
        noticed: "activity 3 went on",
        add: |record| appear(record, 3, Span::ZERO),
    },
    Ghost {
        case: END_RUN,
        noticed: "not over at",
        add: |record| appear(record, 0, LONG_AFTER),
    },
    Ghost {
        case: END_RUN,
        noticed: "before a body wanted it",
        add: |record| record.end = record.start,
    },
    Ghost {
        case: "a-run-ends-when-all-have-finished",
        noticed: "activity 1 went on",
        add: |record| appear(record, 1, Span::ZERO),
    },
];

/// It has the processor once more, so long after the end.
fn appear(record: &mut RunRecord, who: u16, after: Span) {
    record.events.push(Event {
        at: record.end + after,
        kind: EventKind::Dispatch,
        processor: CPU,
        activity: ActivityId(who),
        args: [0; 2],
    });
}

impl Host for Haunted<'_> {
    fn describe(&self) -> String {
        self.host.describe()
    }

    fn supply(&mut self, processors: u16) -> Result<Supply, HostError> {
        self.host.supply(processors)
    }

    fn run(&mut self, admitted: Admitted, length: Span) -> Result<RunRecord, HostError> {
        let mut record = self.host.run(admitted, length)?;
        (self.ghost.add)(&mut record);
        Ok(record)
    }
}

/// Fails unless the ghost's case notices it in what this host runs.
///
/// # Errors
///
/// What came of the case instead.
pub fn notices(ghost: Ghost, host: &mut dyn Host, tolerance: &Tolerance) -> Result<(), String> {
    let mut cases = CASES.iter();
    let case = cases.find(|case| case.name == ghost.case);
    let case = case.ok_or_else(|| format!("there is no case {}", ghost.case))?;
    match (case.run)(&mut Haunted { ghost, host }, tolerance) {
        Err(Failure::Wrong(said) | Failure::Untimely(said)) if said.contains(ghost.noticed) => {
            Ok(())
        }
        other => Err(format!("{}: {other:?}", ghost.noticed)),
    }
}
