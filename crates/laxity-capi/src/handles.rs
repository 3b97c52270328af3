//! What handles stand for. The reservation itself lives with its thread, and ends with it at the latest; what is told of it, any thread may ask.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity::{Observer, Request, Reserved};

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
        all().held.remove(&self.handle);
    }
}

#[derive(Default)]
struct All {
    last: laxity_handle,
    held: BTreeMap<laxity_handle, Observer>,
}

fn all() -> MutexGuard<'static, All> {
    static ALL: Mutex<All> = Mutex::new(All {
        last: 0,
        held: BTreeMap::new(),
    });
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves for the calling thread.
pub(crate) fn reserve(request: &Request) -> Result<laxity_handle, Failure> {
    let reserved = request.reserve()?;
    let mut all = all();
    all.last += 1;
    let handle = all.last;
    all.held.insert(handle, reserved.observer().clone());
    drop(all);
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
    let observer = all().held.get(&handle).cloned();
    let unknown = || format!("{handle} is no reservation, or was given back");
    observer.ok_or_else(|| Failure::new(libc::EBADF, unknown()))
}
