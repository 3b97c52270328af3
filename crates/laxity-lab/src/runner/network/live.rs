//! A network of this machine: two interfaces that are joined, in a namespace that is gone with them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use laxity::LiveHost;
use laxity::net::{AnyLink, Settings, pair};
use laxity_model::{HostError, SemaphoreId};

use super::{End, POSTED};
use crate::scenario::ResolvedVariant;

/// Both interfaces, open.
pub struct Wires {
    links: [AnyLink; 2],
    ports: Ports,
}

/// Where their interrupts are raised, once that is known.
type Ports = Arc<OnceLock<[SemaphoreId; 2]>>;

/// What raises the interrupts of both.
pub struct Fed {
    descriptors: [OwnedFd; 2],
    ports: Ports,
}

impl Wires {
    /// For a variant that has a network.
    ///
    /// # Errors
    ///
    /// [`HostError::CannotRun`].
    pub(crate) fn of(variant: &ResolvedVariant) -> Result<Option<(Self, Fed)>, HostError> {
        variant.has_network().then(Self::open).transpose()
    }

    /// Makes the interfaces.
    ///
    /// # Errors
    ///
    /// [`HostError::CannotRun`], with the remedy.
    pub fn open() -> Result<(Self, Fed), HostError> {
        let cannot = |why: &dyn std::fmt::Display| HostError::CannotRun(why.to_string());
        let settings = Settings {
            posted: POSTED,
            ..Settings::default()
        };
        let links = pair(&settings).map_err(|why| cannot(&format!("{why}; {}", why.remedy())))?;
        let own = links
            .each_ref()
            .map(|link| link.as_fd().try_clone_to_owned());
        let [near, far] = own;
        let descriptors = [
            near.map_err(|why| cannot(&why))?,
            far.map_err(|why| cannot(&why))?,
        ];
        let ports = Ports::default();
        let fed = Fed {
            descriptors,
            ports: Arc::clone(&ports),
        };
        Ok((Self { links, ports }, fed))
    }

    /// The ends of the wire, whose interrupts are raised there.
    pub fn ends(self, raised: [SemaphoreId; 2]) -> [End<AnyLink>; 2] {
        let Self { links, ports } = self;
        // They are an end once.
        ports.set(raised).ok();
        let [near, far] = links;
        let end = |link, raised| End {
            link,
            unmask: Box::new(|_| {}),
            raised,
        };
        [end(near, raised[0]), end(far, raised[1])]
    }
}

impl Fed {
    /// Has the host raise them in its next run, of the program that has the ends.
    pub fn feed(self, host: &mut LiveHost) {
        let ports = self.ports.get().copied().into_iter().flatten();
        for (port, descriptor) in ports.zip(self.descriptors) {
            host.feed(port, descriptor);
        }
    }
}
