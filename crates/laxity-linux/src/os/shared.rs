//! What is installed in the process while somebody needs it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::os::fork::{self, PerProcess};

/// Something that the first installs who needs it, and the last takes away.
pub(crate) struct Shared<T: Send + 'static> {
    state: PerProcess<Mutex<State<T>>>,
    take_away: fn(T),
}

struct State<T> {
    users: usize,
    installed: Option<T>,
}

/// Somebody needs it, until this is dropped.
pub(crate) struct Needed<T: Send + 'static> {
    shared: &'static Shared<T>,
    generation: u32,
}

/// Nobody needs it, and it is installed if it was before.
const fn unneeded<T>(installed: Option<T>) -> Mutex<State<T>> {
    Mutex::new(State {
        users: 0,
        installed,
    })
}

impl<T: Clone + Send + 'static> Shared<T> {
    /// What a child has as its parent has it, unless that was being changed when it forked: then it is installed anew.
    pub(crate) const fn new(take_away: fn(T)) -> Self {
        let make = |parents: Option<&Mutex<State<T>>>| {
            let known = parents.and_then(|state| state.try_lock().ok()?.installed.clone());
            unneeded(known)
        };
        Self {
            state: PerProcess::new(make),
            take_away,
        }
    }
}

impl<T: Send + 'static> Shared<T> {
    /// What a child has nothing of.
    pub(crate) const fn of_one_process(take_away: fn(T)) -> Self {
        Self {
            state: PerProcess::new(|_| unneeded(None)),
            take_away,
        }
    }

    fn lock(&'static self) -> MutexGuard<'static, State<T>> {
        let state = self.state.get().lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs it, if nobody has needed it until now.
    pub(crate) fn need<E>(
        &'static self,
        install: impl FnOnce() -> Result<T, E>,
    ) -> Result<Needed<T>, E> {
        let mut state = self.lock();
        if state.installed.is_none() {
            state.installed = Some(install()?);
        }
        state.users += 1;
        Ok(Needed {
            shared: self,
            generation: fork::generation(),
        })
    }
}

impl<T: Send + 'static> Drop for Needed<T> {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            return;
        }
        let mut state = self.shared.lock();
        state.users -= 1;
        if state.users == 0
            && let Some(installed) = state.installed.take()
        {
            (self.shared.take_away)(installed);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Needed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Needed")
    }
}
