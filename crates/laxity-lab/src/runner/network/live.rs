//! A network of this machine: two interfaces that are joined, in a namespace that is gone with them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use laxity::LiveHost;
use laxity::net::{AnyLink, PairError, Settings, pair, pair_with_kernel};
use laxity_model::{HostError, SemaphoreId};

use super::kernel::{ADDRESS, Sockets};
use super::{End, POSTED, clients_of};
use crate::scenario::{ResolvedTask, ResolvedVariant, Taking};

/// Both interfaces, open, or the kernel's sockets in place of the near one.
pub struct Wires {
    near: Result<AnyLink, Sockets>,
    far: AnyLink,
    ports: Ports,
}

/// Where their interrupts are raised, once that is known.
type Ports = Arc<OnceLock<[SemaphoreId; 2]>>;

/// What raises the interrupts of both.
pub struct Fed {
    /// `None` of what the kernel has.
    descriptors: [Option<OwnedFd>; 2],
    ports: Ports,
}

impl Wires {
    /// For a variant that has a network.
    ///
    /// # Errors
    ///
    /// [`HostError::CannotRun`].
    pub(crate) fn of(variant: &ResolvedVariant) -> Result<Option<(Self, Fed)>, HostError> {
        let tasks: Vec<&ResolvedTask> = variant.tasks.iter().collect();
        let mut clients = clients_of(&tasks);
        if clients.any(|(_, client)| client.taking == Taking::FromKernel) {
            let open = || Sockets::open(&tasks);
            let made = pair_with_kernel(&settings(), ADDRESS, open);
            let (sockets, far) = made.map_err(|why| cannot(&why))?;
            return Self::new(Err(sockets), far).map(Some);
        }
        variant.has_network().then(Self::open).transpose()
    }

    /// Makes the interfaces.
    ///
    /// # Errors
    ///
    /// [`HostError::CannotRun`], with the remedy.
    pub fn open() -> Result<(Self, Fed), HostError> {
        let [near, far] = pair(&settings()).map_err(|why| cannot(&why))?;
        Self::new(Ok(near), far)
    }

    fn new(near: Result<AnyLink, Sockets>, far: AnyLink) -> Result<(Self, Fed), HostError> {
        let own = |link: &AnyLink| link.as_fd().try_clone_to_owned();
        let own = |link| own(link).map_err(|why| HostError::CannotRun(why.to_string()));
        let descriptors = [near.as_ref().ok().map(own).transpose()?, Some(own(&far)?)];
        let ports = Ports::default();
        let fed = Fed {
            descriptors,
            ports: Arc::clone(&ports),
        };
        Ok((Self { near, far, ports }, fed))
    }

    /// The ends of the wire, whose interrupts are raised there.
    ///
    /// # Errors
    ///
    /// [`HostError::BadProgram`] where the kernel has the near one.
    pub fn ends(self, raised: [SemaphoreId; 2]) -> Result<[End<AnyLink>; 2], HostError> {
        let (near, far) = self.split(raised);
        let kernels = |_| HostError::BadProgram("the kernel has the near end".into());
        Ok([near.map_err(kernels)?, far])
    }

    /// The same, or what the kernel has in place of the near one.
    pub(super) fn split(
        self,
        raised: [SemaphoreId; 2],
    ) -> (Result<End<AnyLink>, Sockets>, End<AnyLink>) {
        let Self { near, far, ports } = self;
        // They are an end once.
        ports.set(raised).ok();
        let end = |link, raised| End {
            link,
            unmask: Box::new(|_| {}),
            raised,
            again: None,
        };
        (near.map(|near| end(near, raised[0])), end(far, raised[1]))
    }
}

fn settings() -> Settings {
    Settings {
        posted: POSTED,
        ..Settings::default()
    }
}

fn cannot(why: &PairError) -> HostError {
    HostError::CannotRun(format!("{why}; {}", why.remedy()))
}

impl Fed {
    /// Has the host raise them in its next run, of the program that has the ends.
    pub fn feed(self, host: &mut LiveHost) {
        let ports = self.ports.get().copied().into_iter().flatten();
        for (port, descriptor) in ports.zip(self.descriptors) {
            if let Some(descriptor) = descriptor {
                host.feed(port, descriptor);
            }
        }
    }
}
