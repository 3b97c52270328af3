//! The hosts of a study: a twin, or this machine with a witness.

use laxity::{LiveHost, Twin, Watch};
use laxity_model::request::Strangers;
use laxity_model::{Host, HostError, ProcessorId, Program, RunRecord, Span};

use super::{Here, Said};
use crate::runner::live::{self, watched_host};
use crate::runner::speed::{Reference, Took};
use crate::runner::{RunError, load};
use crate::scenario::Resolved;

/// What is run to find the load of a scenario.
pub(super) const LOAD: &str = "load of the modem";

/// The host that a case runs on.
pub enum Runner<'a> {
    /// A twin.
    Twin(&'a mut Twin),
    /// This machine, and what its runs so far say of themselves.
    Live(&'a mut LiveHost, &'a mut Said),
}

impl Runner<'_> {
    /// Admits a program and runs it for so long, unless it ends before.
    ///
    /// # Errors
    ///
    /// The host's; everything is restored.
    pub fn run(&mut self, program: Program, length: Span) -> Result<RunRecord, HostError> {
        match self {
            Self::Twin(twin) => twin.admit_and_run(program, length),
            Self::Live(host, said) => {
                let record = host.admit_and_run(program, length)?;
                **said = std::mem::take(*said).and(&Said::of(&record));
                Ok(record)
            }
        }
    }

    /// The same, on this machine without a witness: each time that one wakes it preempts what is measured, which counts among its switches. So
    /// such a run says nothing of itself, and what it shows of times is judged against others that were made in turn with it.
    ///
    /// # Errors
    ///
    /// Those of [`Self::run`].
    pub fn run_unwatched(
        &mut self,
        program: Program,
        length: Span,
    ) -> Result<RunRecord, HostError> {
        let Self::Live(host, _) = self else {
            return self.run(program, length);
        };
        let mut config = host.config().clone();
        config.witnesses.clear();
        LiveHost::new(config).admit_and_run(program, length)
    }

    /// What the live runs of the case say of themselves so far.
    pub fn said(&self) -> Said {
        match self {
            Self::Twin(_) => Said::default(),
            Self::Live(_, said) => (*said).clone(),
        }
    }

    /// Those who outrank a slot on a processor of so many, and are not ours: as far as they can be seen.
    ///
    /// # Errors
    ///
    /// The host's.
    pub fn strangers(&mut self, processors: u16, on: ProcessorId) -> Result<Strangers, HostError> {
        match self {
            Self::Twin(twin) => load::strangers(*twin, processors, on),
            Self::Live(host, _) => load::strangers(*host, processors, on),
        }
    }

    /// Whether it is this machine.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Live(..))
    }
}

/// This machine, ready for the runs of a study. From here on a signal ends them in order, wherever it comes.
pub struct Live {
    host: LiveHost,
    watch: Watch,
    processors: u16,
    reference: Reference,
    /// What reference blocks took so far, before the first run and after each.
    took: Vec<Took>,
    /// What those of each case say of themselves.
    said: Vec<Said>,
}

impl Live {
    /// So many processors, each with a witness.
    ///
    /// # Errors
    ///
    /// [`RunError::CannotRun`] if there are too few, or the rights are missing.
    pub fn new(processors: u16) -> Result<Self, RunError> {
        let watch = Watch::begin();
        let host = watched_throughout(processors)?;
        let reference = Reference::new(ProcessorId(0));
        let reference = reference.map_err(|error| RunError::of(error, live::SPEED))?;
        let mut new = Self {
            host,
            watch,
            processors,
            reference,
            took: Vec::new(),
            said: Vec::new(),
        };
        new.measure_speed()?;
        Ok(new)
    }

    fn measure_speed(&mut self) -> Result<(), RunError> {
        let took = self.reference.measure(&mut self.host, self.processors);
        let took = took.map_err(|error| RunError::of(error, live::SPEED))?;
        self.took.push(took);
        Ok(())
    }

    /// What reference blocks took before the first case, and after each; and what the runs of each say of themselves.
    pub(super) fn beside(self) -> (Vec<Took>, Vec<Said>) {
        (self.took, self.said)
    }

    /// What the host calls itself.
    pub(super) fn describe(&self) -> String {
        self.host.describe()
    }

    /// Finds how many receivers take the share of this machine that a scenario's first device asks for.
    pub(super) fn load(&mut self, scenario: &Resolved) -> Result<Here, RunError> {
        let variants = scenario.variants.iter();
        let device = variants.flat_map(|variant| &variant.devices).next();
        let further_receivers = device.map_or(Ok(0), |device| live::calibrate(scenario, device))?;
        // That took its time, and what was measured before it is not what there was right before the first run.
        self.took.clear();
        self.measure_speed()?;
        let config = self.host.config();
        let is_shared = config.processors.contains(&config.external);
        Ok(Here {
            processors: config.processors.len() as u16 + u16::from(!is_shared),
            further_receivers,
        })
    }

    /// Does something with the host.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if a signal has come, and what `run` fails with; everything is restored.
    pub fn run<T>(
        &mut self,
        name: &str,
        run: impl FnOnce(&mut Runner<'_>) -> Result<T, HostError>,
    ) -> Result<T, RunError> {
        if let Some(signal) = self.watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        let mut said = Said::default();
        let made = run(&mut Runner::Live(&mut self.host, &mut said));
        let made = made.map_err(|error| RunError::of(error, name))?;
        self.said.push(said);
        self.measure_speed()?;
        Ok(made)
    }
}

/// A host of so many processors. Studies observe on each of them, and what halts one of which nobody tells would convict who runs there.
fn watched_throughout(processors: u16) -> Result<LiveHost, RunError> {
    let all: Vec<ProcessorId> = (0..processors).map(ProcessorId).collect();
    watched_host(processors, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_of_a_study_has_a_witness() {
        // A machine may have no more than one.
        for processors in [1, 2] {
            if let Ok(host) = watched_throughout(processors) {
                let watched = host.config().witnesses.iter().map(|one| one.processor.0);
                let all: Vec<u16> = (0..processors).collect();
                assert_eq!(watched.collect::<Vec<_>>(), all);
            }
        }
    }
}
