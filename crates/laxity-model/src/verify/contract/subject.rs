//! Whom a contract is about: the components of a program.

use alloc::string::String;

use super::Quantity;
use derive_more::Display;

/// A kind of component, and what can be seen of each of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind {
    /// Its word in files: `soft-modem`, `periodic`.
    pub name: &'static str,
    /// The quantities that are observed of a component of this kind.
    pub quantities: &'static [Quantity],
}

impl Kind {
    /// Whether this is observed of such a component, or, of what is summed up in windows, each.
    pub fn shows(&self, quantity: Quantity) -> bool {
        self.quantities.contains(&quantity.of_each())
    }
}

/// A component of a program: a device, a task. Values are observed of one, and contracts are judged for one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Display)]
#[display("{name}")]
pub struct Subject {
    /// Its name, unique within its program.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// The components that a contract is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Subjects {
    /// Each limit is about every component of which its quantity is observed.
    #[default]
    All,
    /// One component.
    Named(String),
    /// All of one kind.
    Kind(Kind),
}

impl Subjects {
    /// Whether this component is among them.
    pub fn include(&self, subject: &Subject) -> bool {
        match self {
            Self::All => true,
            Self::Named(name) => subject.name == *name,
            Self::Kind(kind) => subject.kind.name == kind.name,
        }
    }
}
