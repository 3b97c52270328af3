//! Real-time upcalls for C and C++. `include/rts.h` is the interface, and says what each function does; `examples/upcalls.c` uses it.

mod coordinated;
mod group;
mod quantum;
mod table;
mod told;
mod types;
mod virtual_time;
mod wanted;

use std::ffi::{CString, c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use laxity::hold::HoldError;
use laxity::upcalls::{Call, Departed, Error, Group, Options, Upcall, Upcalls};
use laxity::{Grade, Instant, PerProcess, Span};

use crate::edge::{self, Failure, edge};
pub use coordinated::{rts_departed, rts_join, rts_settle};
pub use group::{rts_bound, rts_group, rts_ungroup, rts_usage_of};
pub use quantum::rts_yield;
use table::Table;
pub use told::{rts_list, rts_name, rts_read};
pub use types::*;
use virtual_time::Served;
pub use virtual_time::{rts_creat_virtual, rts_serve};
use wanted::{spec, wanted};

/// So long the end of an executor is waited for: a handler that takes longer does not come back.
const PATIENCE: Span = Span::from_secs(10);

/// What this process has; a child that is forked begins with nothing.
#[derive(Default)]
struct All {
    /// By descriptor. What handlers call for an upcall finds it here, without a lock.
    upcalls: Table<Named>,
    own: Mutex<Own>,
    /// Told when an executor is started, or was not.
    settled: Condvar,
}

/// Locked for as long as it takes to look, never while an executor or a coordinator is waited for.
#[derive(Default)]
struct Own {
    executor: Option<Arc<Upcalls>>,
    /// Somebody starts one just now.
    is_starting: bool,
    /// By number, the first of which is 1.
    groups: Vec<Option<Group>>,
    /// Processes that have gone, and are not settled.
    departed: Vec<Departed>,
}

/// An upcall with its name.
struct Named {
    what: What,
    name: CString,
    group: Option<Group>,
}

/// What a descriptor stands for.
enum What {
    /// What time, arrivals or another's call releases.
    Paced {
        upcall: Upcall,
        /// As long as its handler may be called.
        work: Weak<()>,
    },
    Virtual(Served),
}

impl Named {
    /// What has releases.
    fn paced(&self) -> Result<&Upcall, Failure> {
        let text = "it is of virtual time, and has no releases";
        match &self.what {
            What::Paced { upcall, .. } => Ok(upcall),
            What::Virtual(_) => Err(Failure::new(libc::EINVAL, text.to_owned())),
        }
    }
}

impl Own {
    fn has(&self, executor: &Arc<Upcalls>) -> bool {
        let own = self.executor.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, executor))
    }
}

impl All {
    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same when nobody starts an executor.
    fn settled(&self) -> MutexGuard<'_, Own> {
        let settled = self.settled.wait_while(self.own(), |own| own.is_starting);
        settled.unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of whom this is true.
    fn set_of(&self, is_in: impl Fn(&Named) -> bool) -> rts_set {
        let mut rtus = rts_set::default();
        for (rtu, named) in self.upcalls.all() {
            rtus.bits[rtu / 64] |= u64::from(is_in(&named)) << (rtu % 64);
        }
        rtus
    }

    /// The descriptor of an upcall of this executor, unless that has been ended meanwhile.
    fn keep(&self, executor: &Arc<Upcalls>, named: Arc<Named>) -> Result<c_int, Failure> {
        let own = self.own();
        if !own.has(executor) {
            return Err(Error::Over.into());
        }
        let placed = self.upcalls.put(named);
        drop(own);
        // One that is refused is closed here, for which it is waited.
        let rtu = placed.map_err(|_| Failure::from(Error::Full))?;
        Ok(rtu as c_int)
    }

    /// This executor has ended: all that it had is nobody's any more.
    fn clear(&self, executor: &Arc<Upcalls>) {
        let mut own = self.own();
        if !own.has(executor) {
            return;
        }
        for (rtu, named) in self.upcalls.all() {
            self.upcalls.take(rtu, &named);
        }
        let ended = std::mem::take(&mut *own);
        drop(own);
        drop(ended);
    }
}

fn all() -> &'static All {
    static ALL: PerProcess<All> = PerProcess::new(|_| All::default());
    ALL.get()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let errno = match &error {
            Error::Lacks(why) => why.errno().unwrap_or(libc::EPERM),
            Error::Hold(HoldError::Host(why)) => edge::of_host(why),
            Error::Hold(HoldError::Refused { source, .. } | HoldError::Deadline(source)) => {
                source.call().errno().unwrap_or(libc::EIO)
            }
            Error::Sched(why) => why.errno().unwrap_or(libc::EIO),
            Error::NoArrivals
            | Error::NoBudget(..)
            | Error::Events(_)
            | Error::Order
            | Error::Name(_)
            | Error::NoUpcall { .. } => libc::EINVAL,
            Error::Descriptor { errno } => *errno,
            Error::NotHere => libc::EBADF,
            Error::NoBound => libc::EOPNOTSUPP,
            Error::NotAdmitted(_) | Error::Quantum { .. } => libc::EBUSY,
            Error::Coordinator(_) => libc::ECONNREFUSED,
            Error::Full => libc::ENFILE,
            Error::Busy => libc::EAGAIN,
            Error::Inside => libc::EDEADLK,
            Error::NoAnswer(_) => libc::ETIMEDOUT,
            Error::Ended | Error::Panicked(_) => libc::ESRCH,
            Error::Over => libc::ECANCELED,
            _ => libc::EIO,
        };
        let text = match error {
            Error::Order => "executors of several processes are RTS_RMDP, and no other".to_owned(),
            error => error.to_string(),
        };
        Self::new(errno, text)
    }
}

/// Starts the executor of the process.
///
/// # Safety
///
/// `options` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_start(options: *const rts_options) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        start_new(wanted(&unsafe { edge::sized(options, "options") }?)?)
    })
}

/// Ends the executor of the process, with all upcalls.
#[unsafe(no_mangle)]
pub extern "C" fn rts_end() -> c_int {
    edge(|| {
        let executor = all().settled().executor.clone();
        if let Some(executor) = executor {
            let executor = outside(executor)?;
            // Its upcalls end with it, all of them within this.
            virtual_time::end_with(|| Ok(executor.end(PATIENCE)?))?;
            all().clear(&executor);
        }
        Ok(())
    })
}

/// Makes an upcall.
///
/// # Safety
///
/// The pointers are null or point to what they say, what `attributes` points to is as long as its field `size` says, and its name ends with a zero. The handler may be called with `pcb` by
/// another thread until the upcall is closed, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_creat(
    attributes: *const rts_attributes,
    handler: rts_handler,
    pcb: *mut c_void,
    rtu: *mut c_int,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let rtu = unsafe { rtu.as_mut() }.ok_or(Failure::null("rtu"))?;
        *rtu = -1;
        let handler = handler.ok_or(Failure::null("handler"))?;
        // SAFETY: the caller says so.
        let attributes = unsafe { edge::sized(attributes, "attributes") }?;
        // SAFETY: the caller says that its name ends.
        let spec = unsafe { spec(&attributes) }?;
        let executor = executor()?;
        // It comes from C, so there is no zero in it.
        let name = CString::new(spec.name.clone()).unwrap_or_default();
        let (pcb, may_be_called) = (quantum::Pcb(pcb), Arc::new(()));
        let own = Arc::downgrade(&may_be_called);
        let work = move |call: &mut Call| {
            let (pcb, _) = (&pcb, &may_be_called);
            quantum::quantum(handler, pcb.0, call);
        };
        let group = spec.group.clone();
        let upcall = executor.create(spec, work)?;
        let named = Named {
            what: What::Paced { upcall, work: own },
            name,
            group,
        };
        *rtu = all().keep(&executor, Arc::new(named))?;
        Ok(())
    })
}

/// Calls it at its releases from now on.
#[unsafe(no_mangle)]
pub extern "C" fn rts_run(rtu: c_int) -> c_int {
    edge(|| match &named(rtu)?.what {
        What::Paced { upcall, .. } => Ok(upcall.run()?),
        What::Virtual(one) => one.run(),
    })
}

/// Does not call it any more until it runs again.
#[unsafe(no_mangle)]
pub extern "C" fn rts_suspend(rtu: c_int) -> c_int {
    edge(|| match &named(rtu)?.what {
        What::Paced { upcall, .. } => Ok(upcall.suspend()?),
        What::Virtual(one) => one.suspend(),
    })
}

/// Ends it.
#[unsafe(no_mangle)]
pub extern "C" fn rts_close(rtu: c_int) -> c_int {
    edge(|| {
        let closed = named(rtu)?;
        match &closed.what {
            What::Paced { upcall, work } => close(upcall, work)?,
            What::Virtual(one) => one.close()?,
        }
        match all().upcalls.take(rtu as usize, &closed) {
            true => Ok(()),
            false => Err(no_upcall(rtu)),
        }
    })
}

fn close(upcall: &Upcall, work: &Weak<()>) -> Result<(), Failure> {
    match upcall.end() {
        // Its executor has ended, and so has all that it called.
        Ok(_) | Err(Error::Over) => Ok(()),
        // It was asked for before, and that is done now.
        Err(Error::Ended) if work.strong_count() == 0 => Ok(()),
        Err(Error::Ended) => {
            let text = "it is being closed: its handler, or another one, has not returned yet";
            Err(Failure::new(libc::EALREADY, text.to_owned()))
        }
        Err(other) => Err(other.into()),
    }
}

/// Waits until one of these is not active.
///
/// # Safety
///
/// The pointers are null or point to sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_sleep(
    rtus: *const rts_set,
    idle: *mut rts_set,
    until_ns: u64,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a set.
        let rtus = *unsafe { rtus.as_ref() }.ok_or(Failure::null("rtus"))?;
        let is_in = |rtu: &c_int| rtus.bits[*rtu as usize / 64] >> (*rtu % 64) & 1 == 1;
        let asked: Vec<c_int> = (0..128).filter(is_in).collect();
        let upcalls: Result<Vec<_>, _> = asked.iter().map(|rtu| named(*rtu)).collect();
        let upcalls = upcalls?;
        let each: Result<Vec<&Upcall>, _> = upcalls.iter().map(|named| named.paced()).collect();
        let each = each?;
        // For none nobody waits.
        let found = match until_ns {
            _ if each.is_empty() => Vec::new(),
            0 => running()?.sleep(&each)?,
            until => running()?.sleep_until(&each, Instant::from_nanos(until))?,
        };
        // SAFETY: the caller says that it is null or points to a set.
        if let Some(idle) = unsafe { idle.as_mut() } {
            *idle = rts_set::default();
            for rtu in found.into_iter().map(|index| asked[index]) {
                idle.bits[rtu as usize / 64] |= 1 << (rtu % 64);
            }
        }
        Ok(())
    })
}

/// Something has arrived for it.
#[unsafe(no_mangle)]
pub extern "C" fn rts_release(rtu: c_int, first: u64, second: u64) -> c_int {
    edge(|| Ok(named(rtu)?.paced()?.release([first, second])?))
}

/// Tells whether the executor's thread has the rank that was asked for: 1 or 0. Where it has not, the message says why.
///
/// # Safety
///
/// `enforced` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_enforced(enforced: *mut c_int) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let enforced = unsafe { enforced.as_mut() }.ok_or(Failure::null("enforced"))?;
        let executor = running()?;
        let grade = match executor.failure() {
            Some(reason) => Grade::Unenforced { reason },
            None => executor.grade(),
        };
        *enforced = c_int::from(grade == Grade::Enforced);
        if let Some(reason) = grade.reason() {
            edge::leave(reason);
        }
        Ok(())
    })
}

/// The version of this library's upcalls.
#[unsafe(no_mangle)]
pub extern "C" fn rts_version() -> u32 {
    RTS_VERSION
}

/// While it lives an executor is started.
struct Starting;

impl Drop for Starting {
    fn drop(&mut self) {
        all().own().is_starting = false;
        all().settled.notify_all();
    }
}

/// Starts an executor, where there is none and nobody starts one.
fn start(mut own: MutexGuard<'_, Own>, options: Options) -> Result<Arc<Upcalls>, Failure> {
    own.is_starting = true;
    let _starting = Starting;
    // It may take long, and others, and whoever forks, wait for this lock.
    drop(own);
    let executor = Arc::new(Upcalls::start(options)?);
    all().own().executor = Some(Arc::clone(&executor));
    Ok(executor)
}

/// Starts the executor of the process, which has none.
fn start_new(options: Options) -> Result<(), Failure> {
    let own = all().settled();
    if own.executor.is_some() {
        let text = "the executor of this process is started already".to_owned();
        return Err(Failure::new(libc::EALREADY, text));
    }
    start(own, options).map(drop)
}

/// The executor of the process, started as it is by default where nobody has.
fn executor() -> Result<Arc<Upcalls>, Failure> {
    let own = all().settled();
    if let Some(executor) = own.executor.clone() {
        return Ok(executor);
    }
    start(own, Options::default())
}

/// The executor of the process, if it has one.
fn running() -> Result<Arc<Upcalls>, Failure> {
    let none = || Failure::new(libc::ESRCH, "this process has no executor".to_owned());
    all().own().executor.clone().ok_or_else(none)
}

/// The same executor to whoever may wait for it, or for its coordinator: a handler may not.
fn outside(executor: Arc<Upcalls>) -> Result<Arc<Upcalls>, Failure> {
    match executor.is_inside() {
        true => Err(Error::Inside.into()),
        false => Ok(executor),
    }
}

fn named(rtu: c_int) -> Result<Arc<Named>, Failure> {
    let found = usize::try_from(rtu).ok();
    let found = found.and_then(|rtu| all().upcalls.get(rtu));
    found.ok_or_else(|| no_upcall(rtu))
}

fn no_upcall(rtu: c_int) -> Failure {
    Failure::new(libc::EBADF, format!("{rtu} is no upcall, or was closed"))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use laxity::Service;
    use laxity::upcalls::{Rank, Spec};

    use super::*;

    /// Held by whoever has, or has not, the one executor of this process.
    pub(super) static ALONE: Mutex<()> = Mutex::new(());

    /// Whoever ends it takes its upcalls from those who have found one already, and ask about it.
    #[test]
    fn who_asks_about_an_upcall_starts_no_executor() {
        let _alone = ALONE.lock();
        let gone = Upcalls::start(Options {
            rank: Rank::Fair,
            ..Options::default()
        });
        let spec = Spec::each(Span::from_millis(1), Service::from_micros(1));
        let upcall = gone.unwrap().create(spec, |_| ()).unwrap();
        let named = Arc::new(Named {
            what: What::Paced {
                upcall,
                work: Weak::new(),
            },
            name: CString::default(),
            group: None,
        });
        let rtu = all().upcalls.put(Arc::clone(&named)).ok().unwrap();
        let (mut rtus, mut bound) = (rts_set::default(), 0);
        rtus.bits[rtu / 64] = 1 << (rtu % 64);
        // SAFETY: all are there, or null where that is allowed.
        let errors = unsafe {
            [
                rts_bound(rtu as c_int, &raw mut bound),
                rts_sleep(&raw const rtus, ptr::null_mut(), 0),
                rts_sleep(&raw const rtus, ptr::null_mut(), 1),
            ]
        };
        assert!(all().upcalls.take(rtu, &named));
        assert!(all().own().executor.take().is_none());
        assert_eq!(errors, [libc::ESRCH; 3]);
    }
}
