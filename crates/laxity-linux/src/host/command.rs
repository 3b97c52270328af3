//! Programs started for a run: in a process group of their own, killed and reaped with whatever they started when the run ends.

use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::enforce::guardian::{self, Undo};
use crate::os::sched::Tid;

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

    /// Its process, which is also its process group.
    #[must_use]
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
        assert!(!crate::os::proc::threads_of(grandchild).unwrap().is_empty());
        drop(running);
        // The pipe ends when nobody holds its other end: when the grandchild is gone too.
        line.clear();
        assert_eq!(reader.read_line(&mut line).unwrap(), 0);
    }
}
