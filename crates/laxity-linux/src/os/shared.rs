//! What is installed in the process while somebody needs it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::os::fork;

/// Something that the first installs who needs it, and the last takes away.
pub(crate) struct Shared<T: 'static> {
    state: Mutex<State<T>>,
    take_away: fn(T),
    /// Whether a child has it too.
    is_inherited: bool,
}

struct State<T> {
    users: usize,
    installed: Option<T>,
    /// Of the process that has these users.
    generation: u32,
}

/// Somebody needs it, until this is dropped.
pub(crate) struct Needed<T: 'static> {
    shared: &'static Shared<T>,
    generation: u32,
}

impl<T> Shared<T> {
    /// What a child has as its parent has it.
    pub(crate) const fn new(take_away: fn(T)) -> Self {
        let state = State {
            users: 0,
            installed: None,
            generation: 0,
        };
        Self {
            state: Mutex::new(state),
            take_away,
            is_inherited: true,
        }
    }

    /// What a child has nothing of.
    pub(crate) const fn of_one_process(take_away: fn(T)) -> Self {
        let mut shared = Self::new(take_away);
        shared.is_inherited = false;
        shared
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = fork::generation();
        if state.generation != generation {
            (state.users, state.generation) = (0, generation);
            if !self.is_inherited {
                // Not taken away: it is the parent's.
                std::mem::forget(state.installed.take());
            }
        }
        state
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
            generation: state.generation,
        })
    }
}

impl<T> Drop for Needed<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if self.generation != state.generation {
            return;
        }
        state.users -= 1;
        if state.users == 0
            && let Some(installed) = state.installed.take()
        {
            (self.shared.take_away)(installed);
        }
    }
}

impl<T> fmt::Debug for Needed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Needed")
    }
}
