//! An executor among those of other processes, where a coordinator gives it its place.

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use laxity::upcalls::{Coordinated, Options, Together};

use super::wanted::{bytes, invalid, text, wanted};
use super::{RTS_RESERVED, all, outside, rts_coordinator, rts_options, running, start_new};
use crate::edge::{self, Failure, edge};

/// Starts the executor of the process where a coordinator gives it its place.
///
/// # Safety
///
/// The pointers are null or point to as many bytes as the field `size` there says, and the texts of `coordinator` end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_join(
    options: *const rts_options,
    coordinator: *const rts_coordinator,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        let options = unsafe { edge::sized(options, "options") }?;
        // SAFETY: as above.
        let coordinator = unsafe { edge::sized(coordinator, "coordinator") }?;
        if coordinator.reserved != 0 {
            return Err(invalid(
                "meaning of `reserved`",
                coordinator.reserved,
                "say 0",
            ));
        }
        if options.rank == RTS_RESERVED {
            let text =
                "one with a reservation takes no turns with other processes: ask for RTS_FIFO";
            return Err(Failure::new(libc::EINVAL, text.to_owned()));
        }
        let wanted = wanted(&options)?;
        let processor = usize::try_from(options.processor).map_err(|_| {
            let text = "a coordinator has one processor: say which in `processor`";
            Failure::new(libc::EINVAL, text.to_owned())
        })?;
        // SAFETY: the caller says that they end.
        let (name, directory, program) = unsafe {
            (
                text(coordinator.name, &wanted.name)?,
                path(coordinator.directory, "directory")?,
                path(coordinator.program, "program")?,
            )
        };
        start_new(Options {
            name,
            together: Some(Together::Coordinated(Coordinated {
                directory,
                program,
                ..Coordinated::on(processor)
            })),
            ..wanted
        })
    })
}

/// A path, which is not empty.
///
/// # Safety
///
/// It is null or ends with a zero.
unsafe fn path(text: *const c_char, what: &str) -> Result<Option<PathBuf>, Failure> {
    // SAFETY: the caller says so.
    match unsafe { bytes(text) } {
        Some(b"") => Err(invalid(what, "without a name", "say which, or NULL")),
        path => Ok(path.map(|path| PathBuf::from(OsStr::from_bytes(path)))),
    }
}

/// Tells a process that had upcalls there and has gone; 0 where there is none.
///
/// # Safety
///
/// `process` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_departed(process: *mut c_int) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let process = unsafe { process.as_mut() }.ok_or(Failure::null("process"))?;
        *process = 0;
        let found = outside(running()?)?.departed();
        let mut own = all().own();
        own.departed.extend(found);
        if let Some(first) = own.departed.first() {
            *process = first.process() as c_int;
        }
        Ok(())
    })
}

/// What a process had that has gone may be others'.
#[unsafe(no_mangle)]
pub extern "C" fn rts_settle(process: c_int) -> c_int {
    edge(|| {
        outside(running()?)?;
        let is_that = |gone: &mut laxity::upcalls::Departed| gone.process() as c_int == process;
        let settled: Vec<_> = all().own().departed.extract_if(.., is_that).collect();
        let unknown = || format!("{process} is no process that has gone, or is settled already");
        // What tells the coordinator is their end, for which nobody else waits.
        match settled.is_empty() {
            true => Err(Failure::new(libc::EBADF, unknown())),
            false => Ok(()),
        }
    })
}
