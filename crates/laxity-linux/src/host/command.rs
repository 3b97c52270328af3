//! Programs started for a run: in a process group of their own, killed and reaped with whatever they started when the run ends.

use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process_group};

use laxity_model::{HostError, Reservation, Scheduling};

use crate::enforce::deadline::{self, DeadlineError};
use crate::enforce::guardian::{self, Undo};
use crate::os::cpuset::CpuSet;
use crate::os::proc;
use crate::os::sched::{self, Tid};

/// A running program. Dropping it kills it.
///
/// It also dies with the thread that started it (`PR_SET_PDEATHSIG` means the thread, not the process), so this cannot be sent
/// to another; and the [`guardian`] kills its whole process group if this process is killed.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    _not_send: PhantomData<*const ()>,
}

impl RunningCommand {
    /// Starts a program.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let guardian = guardian::start()?;
        let parent = std::process::id();
        command.process_group(0);
        // SAFETY: the closure makes two async-signal-safe calls and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
                // The parent may have died before the call above took effect.
                if libc::getppid() as u32 == parent {
                    Ok(())
                } else {
                    Err(io::Error::from_raw_os_error(libc::ESRCH))
                }
            });
        }
        let child = command.spawn()?;
        let running = Self {
            child,
            _not_send: PhantomData,
        };
        // From here on the whole group is looked after; until here its leader was, by the kernel.
        guardian.watch(Undo::Child(running.id()))?;
        Ok(running)
    }

    /// Has the kernel schedule all its threads like this, on this processor; what they start is scheduled so too.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`], with the call that failed.
    pub fn schedule(&self, scheduling: Scheduling, cpu: usize) -> Result<(), HostError> {
        self.each_thread(|thread| {
            // First the policy, then the processor: the other way round it might starve before it has its policy.
            sched::set_policy_inherited(thread, scheduling.into())?;
            Ok(sched::set_affinity(thread, &CpuSet::single(cpu))?)
        })
    }

    /// Reserves for each of its threads, by `SCHED_DEADLINE`. They keep to no processor, and what they start are ordinary threads.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`], with the call that failed.
    pub fn reserve(&self, reservation: Reservation) -> Result<(), HostError> {
        self.each_thread(|thread| deadline::reserve(thread, reservation))
    }

    fn each_thread(
        &self,
        place: impl Fn(Tid) -> Result<(), DeadlineError>,
    ) -> Result<(), HostError> {
        let threads = proc::threads_of(self.child.id());
        let threads = threads.map_err(|unknown| HostError::Failed(unknown.to_string()))?;
        let placed = threads.into_iter().try_for_each(place);
        placed.map_err(|error| HostError::Failed(error.to_string()))
    }

    /// Its process, which is also its process group.
    pub fn id(&self) -> Tid {
        Tid(self.child.id() as i32)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // The whole group: its number is the child's own, which nobody else has before the child is waited for. What has gone needs no
        // signal, and nothing more can be done about a child that cannot be waited for.
        if let Some(group) = Pid::from_raw(self.id().0) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        if let Ok(guardian) = guardian::start() {
            // Without a guardian there is no list to strike from.
            let _ = guardian.forget(Undo::Child(self.id()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    #[test]
    fn a_dropped_command_takes_its_group_along() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped());
        let mut running = RunningCommand::start(&mut command).unwrap();
        let stdout = running.child.stdout.take().unwrap();
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        assert!(!proc::threads_of(grandchild).unwrap().is_empty());
        drop(running);
        // The pipe ends when nobody holds its other end: when the grandchild is gone too.
        line.clear();
        assert_eq!(reader.read_line(&mut line).unwrap(), 0);
    }
}
