//! Executors that a coordinator gives their place among those of other processes.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;

use laxity_linux::host::coordinator::{At, Client, Departed, Refusal, Starter};
use laxity_model::executor::Unschedulable;
use laxity_model::executor::account::Account;
use laxity_model::executor::linked::Linked;
use laxity_model::program::coordinator::{Bottleneck, Item};
use laxity_model::program::together::detection;
use laxity_model::program::upcalls::charged;
use laxity_model::{Service, Span};

use super::beside;
use super::core::{Core, PATIENCE};
use super::members::set;
use super::{Error, Rank, Spec};

/// The coordinator of a processor: it has the upcalls of all processes there in one set, admits by that, gives each executor a seat and guards the baton. Where there is none it is started.
///
/// An executor there is at the coordinator's priority, 90 as a rule, or where the coordinator serves ordinary threads, [`Rank::Fair`]. Its upcalls are promised what others leave: where there are several processes, less
/// what one whose handler does not come back takes until that is seen. Where the coordinator ends, what runs goes on, and another coordinator is told what there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coordinated {
    /// By the kernel's number.
    pub processor: usize,
    /// The directory of its socket; `None`: that of the environment's `LAXITY_COORDINATOR_DIRECTORY`, or `$XDG_RUNTIME_DIR/laxity`, or `/run/laxity`.
    pub directory: Option<PathBuf>,
    /// What is started where there is none, as `PROGRAM upcalls serve --processor N --directory D`; `None`: that of the environment's `LAXITY_COORDINATOR`, or the command `laxity` beside the own executable or of the path.
    pub program: Option<PathBuf>,
}

impl Coordinated {
    /// That of this processor, by the kernel's number.
    #[must_use]
    pub const fn on(processor: usize) -> Self {
        Self {
            processor,
            directory: None,
            program: None,
        }
    }

    /// A seat there, for an executor of this rank, which is told the processor.
    pub(super) fn join(self, name: &str, rank: &mut Rank) -> Result<Client, Error> {
        let own = match rank {
            Rank::Fifo { processor, .. } if processor.is_some_and(|on| on != self.processor) => {
                return Err(Error::Coordinator(format!(
                    "the executor is to be on another processor than its coordinator, {}",
                    self.processor
                )));
            }
            Rank::Fifo {
                priority,
                processor,
            } => {
                *processor = Some(self.processor);
                Some(*priority)
            }
            Rank::Reserved(_) => {
                let why =
                    "an executor with a reservation takes no turns with those of other processes";
                return Err(Error::Coordinator(why.to_owned()));
            }
            Rank::Fair => None,
        };
        let at = At::new(self.processor, self.directory);
        let starter = Starter {
            program: self.program,
            ordinary: own.is_none(),
        };
        let client = Client::join(at, starter, name)?;
        let all = client.priority();
        let is_guarded = client.seat().region.terms().is_some();
        if is_guarded != all.is_some() {
            let why = "the memory that processes share does not say what its guards count on: another process has written there";
            return Err(Error::Coordinator(why.to_owned()));
        }
        if own == all {
            return Ok(client);
        }
        let named = |priority: Option<u8>| match priority {
            Some(priority) => format!("at FIFO priority {priority}"),
            None => "ordinary threads".to_owned(),
        };
        Err(Error::Coordinator(format!(
            "the executors there are {}, and this one {}",
            named(all),
            named(own)
        )))
    }
}

/// What an executor has of its coordinator.
pub(super) struct Books {
    client: Client,
}

/// A question to the coordinator, asked for one set after another: the first is what is wanted.
pub(super) struct Question<'a> {
    books: &'a Books,
    names: Vec<&'a str>,
    is_first: Cell<bool>,
    /// Who of another process would be late.
    other: RefCell<Option<String>>,
    failed: RefCell<Option<Error>>,
}

impl Books {
    pub(super) const fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn question<'a>(&'a self, names: Vec<&'a str>) -> Question<'a> {
        Question {
            books: self,
            names,
            is_first: Cell::new(true),
            other: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// The bounds of these.
    pub(super) fn bounds(&self, names: &[&str], all: &[Linked]) -> Result<Vec<Span>, Error> {
        let bounds = self.client.hold(&items(names, all), false);
        bounds.map_err(|refusal| match refusal {
            Refusal::No(_, reason) => Error::Coordinator(reason),
            Refusal::Failed(error) => error.into(),
        })
    }

    pub(super) fn departed(&self) -> Vec<Departed> {
        self.client.departed()
    }

    /// The executor has ended.
    pub(super) fn leave(&self) {
        self.client.leave();
    }
}

fn items(names: &[&str], all: &[Linked]) -> Vec<Item> {
    let item = |(name, linked): (&&str, &Linked)| Item {
        name: (*name).to_owned(),
        linked: *linked,
    };
    names.iter().zip(all).map(item).collect()
}

impl Question<'_> {
    /// Whether all of these have a place there; the first set that is asked for has it then.
    pub(super) fn ask(&self, all: &[Linked]) -> Result<(), Unschedulable> {
        let no = |bottleneck, reason| Err(Unschedulable { bottleneck, reason });
        if self.failed.borrow().is_some() {
            return no(None, String::new());
        }
        let keep = self.is_first.replace(false);
        match self.books.client.hold(&items(&self.names, all), keep) {
            Ok(_) => Ok(()),
            Err(Refusal::No(Bottleneck::Own(index), reason)) => no(Some(index.into()), reason),
            Err(Refusal::No(Bottleneck::Other(name), reason)) => {
                self.other.borrow_mut().get_or_insert(name);
                no(None, reason)
            }
            Err(Refusal::No(Bottleneck::All, reason)) => no(None, reason),
            Err(Refusal::Failed(error)) => {
                *self.failed.borrow_mut() = Some(error.into());
                no(None, String::new())
            }
        }
    }

    /// A set of one's own is refused already: nothing that is asked for is kept.
    pub(super) fn is_refused(&self) {
        self.is_first.set(false);
    }

    /// What became of it, where the answer was no.
    pub(super) fn refusal(self, mut no: super::NotAdmitted) -> Error {
        if let Some(error) = self.failed.into_inner() {
            return error;
        }
        if let Some(other) = self.other.into_inner() {
            no.bottleneck = other;
        }
        Error::NotAdmitted(Box::new(no))
    }
}

impl Core {
    /// What an upcall is held to, where those of other processes were admitted beside it. A group has a budget for all of its own.
    pub(super) fn account(&self, spec: &Spec) -> Option<Account> {
        let terms = self.footing.region()?.terms();
        let terms = terms.filter(|_| self.books.is_some() && spec.group.is_none())?;
        let batch = spec.timing.batch.get();
        let budget = spec.service.as_nanos().saturating_mul(batch.into());
        let budget = Service::from_nanos(budget);
        // Who takes more than that in one stretch has lost its seat.
        let most = Service::from_nanos(detection(terms.longest).as_nanos());
        Account::new(budget, spec.timing.period, terms.tolerance, most)
    }

    /// What is closed is the others' again, once it [counts](Core::closed) no more. By a handler that is not said, which would wait: then it is by whatever is created or closed next.
    pub(super) fn gives_back(self: &Arc<Self>) {
        let Some(books) = self.books.as_ref().filter(|_| !beside::is_handler()) else {
            return;
        };
        if self.is_elsewhere() {
            return;
        }
        let until = crate::now() + PATIENCE;
        let is_done = || beside::closed(self)[0].is_empty() || self.is_over();
        beside::CHANGED.wait_for(Some(until), || is_done().then_some(()));
        let members = self.members();
        let set = set(self.counted(&members));
        let all = charged(set.linked(), self.footing.overhead);
        books.client.give_back(&items(&set.names(), &all));
    }
}
