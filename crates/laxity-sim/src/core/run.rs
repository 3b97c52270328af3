//! A program under way in a machine, which can be taken from instant to instant.

use laxity_model::{Body, HostError, Instant, Placement, Program, RunEnd, RunRecord, Span};

use super::{Core, Machinery, Parts};

/// The code of a program's activities, by their numbers.
pub(crate) type Bodies = [Box<dyn Body>];

/// A program under way in a twin. It goes on as far as it is told to, so that several machines can share one calendar: whoever is due
/// first goes first.
///
/// ```
/// use laxity_model::{Context, Host, Instant, Placement, Priority, ProcessorId, Program, Service, Span, Step};
/// use laxity_sim::{Profile, Twin};
///
/// let mut program = Program::new(1);
/// let thread = Placement::Thread(Priority::NORMAL);
/// program.add("spinner", ProcessorId(0), thread, |_: &mut dyn Context| {
///     Step::Burn(Service::from_millis(1))
/// });
/// let mut twin = Twin::new(Profile::IDEAL);
/// let admitted = twin.admit(program)?;
/// let mut machine = twin.load(admitted, Span::from_millis(20))?;
/// machine.advance(Instant::from_millis(5))?;
/// assert!(machine.next_due() >= Some(Instant::from_millis(5)));
/// assert_eq!(machine.finish()?.usage[0].service, Service::from_millis(20));
/// # Ok::<(), laxity_model::HostError>(())
/// ```
pub struct Machine(Box<dyn Steps>);

impl Machine {
    /// When something happens next; `None`: nothing does before the run's end.
    pub fn next_due(&self) -> Option<Instant> {
        self.0.next_due()
    }

    /// Does everything that is due before `until` and before the run's end. An instant that has passed changes nothing.
    ///
    /// # Errors
    /// What a body did wrong: the machine goes no further.
    pub fn advance(&mut self, until: Instant) -> Result<(), HostError> {
        self.0.advance(until)
    }

    /// Goes on to the end of the run, and tells what happened.
    ///
    /// # Errors
    /// What a body did wrong.
    pub fn finish(mut self) -> Result<RunRecord, HostError> {
        self.0.advance(Instant::MAX)?;
        Ok(self.0.into_record())
    }
}

trait Steps {
    fn next_due(&self) -> Option<Instant>;
    fn advance(&mut self, until: Instant) -> Result<(), HostError>;
    fn into_record(self: Box<Self>) -> RunRecord;
}

/// A machine of one kind, with the code that it runs.
pub(crate) struct Loaded<P: Parts> {
    core: Core<P>,
    /// Beside the machine, so that they can change it.
    bodies: Vec<Box<dyn Body>>,
    names: Vec<String>,
    end: Instant,
    ended_by: Option<RunEnd>,
}

impl<P: Parts + 'static> Loaded<P>
where
    Core<P>: Machinery,
{
    /// The run begins: nothing has been stepped yet.
    pub(crate) fn begin(mut core: Core<P>, program: Program, length: Span) -> Machine {
        core.begin();
        let end = super::later(core.start, length);
        for (who, activity) in (0..).zip(&program.activities) {
            if let Placement::On { .. } = activity.placement {
                core.leave_to_executor(who);
            }
        }
        let activities = program.activities.into_iter();
        let (bodies, names) = activities.map(|own| (own.body, own.name)).unzip();
        Machine(Box::new(Self {
            core,
            bodies,
            names,
            end,
            ended_by: None,
        }))
    }
}

impl<P: Parts> Steps for Loaded<P>
where
    Core<P>: Machinery,
{
    fn next_due(&self) -> Option<Instant> {
        let next = self.core.next_due();
        (self.ended_by.is_none() && next < self.end).then_some(next)
    }

    fn advance(&mut self, until: Instant) -> Result<(), HostError> {
        if self.ended_by.is_none() {
            let ended = self.core.advance(&mut self.bodies, until.min(self.end));
            self.ended_by = ended.map_err(|(who, fault)| fault.by(&self.names[who as usize]))?;
        }
        Ok(())
    }

    fn into_record(mut self: Box<Self>) -> RunRecord {
        let ended_by = self.ended_by.unwrap_or_else(|| {
            self.core.now = self.end;
            RunEnd::Length
        });
        for processor in 0..self.core.processors.len() {
            self.core.settle(processor);
        }
        self.core.into_record(ended_by, self.bodies.len())
    }
}
