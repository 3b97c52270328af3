//! What is installed in the process while somebody needs it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something that the first installs who needs it, and the last takes away.
pub(crate) struct Shared<T: 'static> {
    state: Mutex<State<T>>,
    take_away: fn(T),
}

struct State<T> {
    users: usize,
    installed: Option<T>,
}

/// Somebody needs it, until this is dropped.
pub(crate) struct Needed<T: 'static>(&'static Shared<T>);

impl<T> Shared<T> {
    pub(crate) const fn new(take_away: fn(T)) -> Self {
        let state = State {
            users: 0,
            installed: None,
        };
        Self {
            state: Mutex::new(state),
            take_away,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs it, if nobody has needed it until now.
    pub(crate) fn need<E>(
        &'static self,
        install: impl FnOnce() -> Result<T, E>,
    ) -> Result<Needed<T>, E> {
        let mut state = self.lock();
        if state.users == 0 {
            state.installed = Some(install()?);
        }
        state.users += 1;
        Ok(Needed(self))
    }
}

impl<T> Drop for Needed<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        if state.users == 0
            && let Some(installed) = state.installed.take()
        {
            (self.0.take_away)(installed);
        }
    }
}

impl<T> fmt::Debug for Needed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Needed")
    }
}
