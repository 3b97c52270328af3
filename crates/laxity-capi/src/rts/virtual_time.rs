//! Upcalls of virtual time: called by threads of the process that wait for upcalls, or serve these.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laxity::upcalls::{Error, State, Virtual, VirtualCall};

use super::quantum::Pcb;
use super::wanted::text;
use super::{
    Named, PATIENCE, RTS_ASKS_SUSPEND, What, all, executor, outside, rts_funargs, rts_handler,
    rts_smstr, running,
};
use crate::edge::{Failure, edge};

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Refuses the handler of one of them what would wait for itself.
fn not_inside() -> Result<(), Failure> {
    match IS_INSIDE.get() {
        true => Err(Error::Inside.into()),
        false => Ok(()),
    }
}

/// Whether its handler is at work, and may be.
#[derive(Default)]
struct Turn {
    is_at_work: Mutex<bool>,
    rests: Condvar,
    is_over: AtomicBool,
}

impl Turn {
    fn is_at_work(&self) -> MutexGuard<'_, bool> {
        let held = self.is_at_work.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }

    /// `false` where it is over. Who says that looks here after it.
    fn begins(&self) -> bool {
        let mut is_at_work = self.is_at_work();
        *is_at_work = !self.is_over.load(Ordering::SeqCst);
        *is_at_work
    }

    fn ends(&self) {
        *self.is_at_work() = false;
        self.rests.notify_all();
    }
}

/// One of them.
pub(super) struct Served {
    upcall: Virtual,
    turn: Arc<Turn>,
}

impl Served {
    fn open(&self) -> Result<&Virtual, Failure> {
        match self.state() {
            State::Suspended | State::Active => Ok(&self.upcall),
            _ => Err(Error::Ended.into()),
        }
    }

    pub(super) fn run(&self) -> Result<(), Failure> {
        self.open().map(Virtual::run)
    }

    pub(super) fn suspend(&self) -> Result<(), Failure> {
        self.open().map(Virtual::suspend)
    }

    pub(super) fn calls(&self) -> u64 {
        self.upcall.calls()
    }

    pub(super) fn state(&self) -> State {
        match self.turn.is_over.load(Ordering::SeqCst) {
            true => State::Ended,
            false => self.upcall.state(),
        }
    }

    /// No call begins any more.
    fn end(&self) {
        self.turn.is_over.store(true, Ordering::SeqCst);
    }

    /// The same, and none is at work when this returns; its own handler may ask for that after the call.
    pub(super) fn close(&self) -> Result<(), Failure> {
        self.end();
        // They are never at work at once: it is the caller's own, or none.
        if IS_INSIDE.get() {
            return Ok(());
        }
        let is_handler = running().is_ok_and(|executor| executor.is_inside());
        let is_at_work = self.turn.is_at_work();
        if is_handler && *is_at_work {
            let text = "it is at work in another thread, for which a handler cannot wait";
            return Err(Failure::new(libc::EALREADY, text.to_owned()));
        }
        let patience = Duration::from_nanos(PATIENCE.as_nanos());
        let waited = self
            .turn
            .rests
            .wait_timeout_while(is_at_work, patience, |is_at_work| *is_at_work);
        let (is_at_work, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match *is_at_work {
            true => Err(Error::NoAnswer(PATIENCE).into()),
            false => Ok(()),
        }
    }
}

/// Ends their executor by this, and all of them: none is at work when this returns.
pub(super) fn end_with(executor: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    not_inside()?;
    let named: Vec<Arc<Named>> = all().upcalls.all().map(|(_, named)| named).collect();
    let served = || {
        named.iter().filter_map(|named| match &named.what {
            What::Virtual(one) => Some(one),
            What::Paced { .. } => None,
        })
    };
    served().for_each(Served::end);
    executor()?;
    served().try_for_each(Served::close)
}

/// One call of a handler.
fn call_once(
    handler: unsafe extern "C" fn(*mut rts_funargs),
    pcb: *mut c_void,
    call: &mut VirtualCall,
) {
    let mut smstr = rts_smstr {
        size: size_of::<rts_smstr>() as u32,
        pdu_goal: 1,
        batch: 1,
        began_ns: laxity::now().as_nanos(),
        ..rts_smstr::default()
    };
    let mut arg = rts_funargs {
        pcb,
        smstr: &raw mut smstr,
    };
    IS_INSIDE.set(true);
    // SAFETY: `rts_creat_virtual` was told that it may be called so, and both structures outlive the call.
    unsafe { handler(&raw mut arg) };
    IS_INSIDE.set(false);
    match smstr.asks {
        0 => {}
        RTS_ASKS_SUSPEND => call.suspend(),
        _ => call.end(),
    }
}

/// Makes an upcall of virtual time.
///
/// # Safety
///
/// The pointers are null or point to what they say, and the name ends with a zero. The handler may be called with `pcb` by other threads until the upcall is closed, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_creat_virtual(
    name: *const c_char,
    handler: rts_handler,
    pcb: *mut c_void,
    rtu: *mut c_int,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let rtu = unsafe { rtu.as_mut() }.ok_or(Failure::null("rtu"))?;
        *rtu = -1;
        let handler = handler.ok_or(Failure::null("handler"))?;
        // SAFETY: the caller says that it ends.
        let name = unsafe { text(name, "upcall") }?;
        let executor = executor()?;
        let (pcb, turn) = (Pcb(pcb), Arc::new(Turn::default()));
        let own = Arc::clone(&turn);
        let work = move |call: &mut VirtualCall| {
            let pcb = &pcb;
            if !own.begins() {
                return call.end();
            }
            call_once(handler, pcb.0, call);
            own.ends();
        };
        let upcall = executor.create_virtual(work);
        let named = Named {
            what: What::Virtual(Served { upcall, turn }),
            // It comes from C, so there is no zero in it.
            name: CString::new(name).unwrap_or_default(),
            group: None,
        };
        *rtu = all().keep(&executor, Arc::new(named))?;
        Ok(())
    })
}

/// Calls upcalls of virtual time until none is active.
///
/// # Safety
///
/// `calls` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_serve(calls: *mut u64) -> c_int {
    edge(|| {
        not_inside()?;
        let served = outside(running()?)?.serve();
        // SAFETY: the caller says that it is null or points to a number.
        if let Some(calls) = unsafe { calls.as_mut() } {
            *calls = served;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::{ptr, thread};

    use super::super::{RTS_IS_ENDED, rts_close, rts_counts, rts_end, rts_read, rts_run, start};
    use super::*;
    use laxity::upcalls::{Options, Rank};

    struct Block {
        begins: Sender<()>,
        goes_on: Receiver<()>,
        is_over: AtomicBool,
    }

    unsafe extern "C" fn waits(arg: *mut rts_funargs) {
        // SAFETY: it is called with the block below.
        let block = unsafe { &*(*arg).pcb.cast::<Block>() };
        block.begins.send(()).unwrap();
        let _ = block.goes_on.recv();
        block.is_over.store(true, Ordering::SeqCst);
    }

    /// Whoever closes it may free what its handler has.
    #[test]
    fn one_that_is_closed_is_not_at_work() {
        let _alone = super::super::tests::ALONE.lock();
        let options = Options {
            rank: Rank::Fair,
            ..Options::default()
        };
        assert!(start(all().own(), options).is_ok());
        let ((begins, begun), (go_on, goes_on)) = (channel(), channel());
        let block = Box::new(Block {
            begins,
            goes_on,
            is_over: AtomicBool::new(false),
        });
        let (block, mut rtu) = (Box::into_raw(block), -1);
        // SAFETY: the block is there until the upcall is closed.
        let made =
            unsafe { rts_creat_virtual(ptr::null(), Some(waits), block.cast(), &raw mut rtu) };
        assert_eq!((made, rts_run(rtu)), (0, 0));
        // SAFETY: null is allowed.
        let serves = thread::spawn(|| unsafe { rts_serve(ptr::null_mut()) });
        begun.recv().unwrap();
        let closes = thread::spawn(move || rts_close(rtu));
        let mut counts = rts_counts {
            size: size_of::<rts_counts>() as u32,
            ..rts_counts::default()
        };
        while counts.state != RTS_IS_ENDED {
            // SAFETY: it is as long as it says.
            assert_eq!(unsafe { rts_read(rtu, &raw mut counts) }, 0);
            thread::yield_now();
        }
        drop(go_on);
        assert_eq!(closes.join().unwrap(), 0);
        // SAFETY: it was made by a box, and nobody else has it any more.
        let block = unsafe { Box::from_raw(block) };
        assert!(block.is_over.into_inner());
        assert_eq!((serves.join().unwrap(), counts.calls), (0, 1));
        assert_eq!(rts_end(), 0);
    }
}
