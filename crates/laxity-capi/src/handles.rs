//! What handles stand for. The reservation itself lives with its thread, and ends with it at the latest; what is told of it, any thread may ask.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity::{Observer, PerProcess, Request, Reserved};

use crate::edge::Failure;
use crate::laxity_handle;

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The reservation of this thread.
struct Own {
    handle: laxity_handle,
    _reserved: Reserved,
}

/// However the thread ends.
impl Drop for Own {
    fn drop(&mut self) {
        all().remove(&self.handle);
    }
}

/// What the threads of a process hold; a child that is forked begins with nothing.
type All = BTreeMap<laxity_handle, Observer>;

fn all() -> MutexGuard<'static, All> {
    static ALL: PerProcess<Mutex<All>> = PerProcess::new(|_| Mutex::default());
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last that was given out. A child goes on with it: what its parent's numbers are is none of its own.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Reserves for the calling thread.
pub(crate) fn reserve(request: &Request) -> Result<laxity_handle, Failure> {
    let reserved = request.reserve()?;
    let handle = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    all().insert(handle, reserved.observer().clone());
    let own = Own {
        handle,
        _reserved: reserved,
    };
    OWN.with_borrow_mut(|place| *place = Some(own));
    Ok(handle)
}

/// Gives back what the calling thread holds.
pub(crate) fn release(handle: laxity_handle) -> Result<(), Failure> {
    observer(handle)?;
    let own = OWN.with_borrow_mut(|own| own.take_if(|own| own.handle == handle));
    match own {
        Some(own) => {
            drop(own);
            Ok(())
        }
        None => {
            let text = "it is another thread's, which alone can give it back".to_owned();
            Err(Failure::new(libc::EPERM, text))
        }
    }
}

/// What tells of a reservation.
pub(crate) fn observer(handle: laxity_handle) -> Result<Observer, Failure> {
    let observer = all().get(&handle).cloned();
    let unknown = || {
        format!(
            "{handle} is no reservation of this process, whose parent may have it, or was given back"
        )
    };
    observer.ok_or_else(|| Failure::new(libc::EBADF, unknown()))
}
