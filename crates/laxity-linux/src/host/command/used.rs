//! What a program and all that it started have had of processors, by the kernel's count: of those too whom nobody saw, as they came and went between two looks.

use laxity_model::{Service, Span};
use rustix::param::clock_ticks_per_second;

use super::family::Family;
use crate::os::clock;
use crate::os::fact::{Fact, Unknown, read_as};
use crate::os::proc::{stat_field, unless_gone};

/// What they have had until now, at least and at most: of children that have ended and were waited for, the kernel tells it in ticks of 10 ms as a rule,
/// and some end while others are asked. Of those that nobody waited for, since their parent ignores their end, nothing is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Used {
    /// They have had this.
    pub least: Service,
    /// They have not had more than this.
    pub most: Service,
}

impl Used {
    /// What a process has had that runs, and what comes of it.
    ///
    /// # Errors
    ///
    /// Where that cannot be seen here.
    pub fn of(process: u32) -> Fact<Self> {
        Self::of_family(process, None)
    }

    /// The same of a program that has a keeper, to whom all comes back that loses its parent.
    pub(super) fn of_family(process: u32, keeper: Option<u32>) -> Fact<Self> {
        let mut family = Family::new(process, keeper, true);
        family.refresh()?;
        let waited_for = || {
            // The youngest first: who ends meanwhile is counted with its parent, who comes later.
            let mut processes: Vec<u32> = family.processes().collect();
            processes.reverse();
            let all = processes.into_iter().chain(keeper);
            all.map(waited_for).sum::<Fact<Ticks>>()
        };
        // Who ends between these is left out of the least, and may be in the most twice.
        let before = waited_for()?;
        let own = family.processes().filter_map(clock::service_of_process);
        let own: Service = own.sum();
        let after = waited_for()?;
        Ok(Self {
            least: own + before.service()?,
            most: own + Ticks(after.0 + after.1, 0).service()?,
        })
    }
}

/// Whole ticks, and how many more there may be.
#[derive(Clone, Copy, Default)]
struct Ticks(u64, u64);

impl std::iter::Sum for Ticks {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| {
            Self(sum.0 + one.0, sum.1 + one.1)
        })
    }
}

impl Ticks {
    /// The whole ones.
    fn service(self) -> Fact<Service> {
        let tick = 1_000_000_000_u64.checked_div(clock_ticks_per_second());
        let tick = tick.map(Span::from_nanos);
        let all = tick.and_then(|tick| tick.checked_mul(self.0));
        let all = all.ok_or_else(|| Unknown("the kernel does not say USER_HZ".to_owned()))?;
        Ok(Service::from_nanos(all.as_nanos()))
    }
}

/// What the children of a process had that it waited for, and theirs; nothing of one that has gone.
fn waited_for(process: u32) -> Fact<Ticks> {
    let directory = format!("/proc/{process}");
    let ticks = read_as(format!("{directory}/stat"), of_children);
    Ok(unless_gone(directory, ticks)?.unwrap_or_default())
}

/// The user's and the system's time of children that were waited for (`cutime`, `cstime` in `proc_pid_stat(5)`); each is rounded down.
fn of_children(stat: &str) -> Option<Ticks> {
    let ticks = |field| stat_field::<u64>(stat.as_bytes(), field);
    Some(Ticks(ticks(16)? + ticks(17)?, 2))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};
    use std::process::Command;

    use super::super::{ProcessGroup, RunningCommand};
    use super::*;

    /// Each is waited for before the next one begins.
    const SHORT_LIVED: &str = "
        i=0; while [ $i -lt 10 ]; do i=$((i+1)); sh -c 'j=0; while [ $j -lt 20000 ]; do j=$((j+1)); done'; done
        echo done; read nothing";

    #[test]
    fn what_children_had_that_have_gone_is_counted() {
        let (reader, writer) = pipe().unwrap();
        let mut command = Command::new("sh");
        let (nothing, _open) = pipe().unwrap();
        command.args(["-c", SHORT_LIVED]);
        command.stdin(nothing).stdout(writer);
        let running = RunningCommand::start(command, ProcessGroup::Own, |_| Ok(())).unwrap();
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).unwrap();
        let used = running.used().unwrap();
        let process = running.id().0.cast_unsigned();
        let alone = clock::service_of_process(process).unwrap();
        let all = running.end().unwrap().service.unwrap();
        assert!(
            used.least > alone * 2,
            "children work, and it waits: {used:?} {alone}"
        );
        assert!(used.least <= all, "{used:?} {all}");
        // It does nothing from now on but to be ended; a machine that stands still is charged to whoever it stops.
        assert!(used.most * 2 > all, "{used:?} {all}");
    }

    #[test]
    fn times_of_children_are_found_behind_any_name() {
        let stat = "42 (a) R (b) S 1 42 42 0 -1 4194560 100 200 0 0 7 8 50 60 20 0 1 0 5";
        let ticks = of_children(stat).map(|ticks| (ticks.0, ticks.1));
        assert_eq!(ticks, Some((110, 2)));
        assert!(of_children("42 (cut off").is_none());
        assert!(of_children("42 (it) S 1 42").is_none());
    }
}
