//! A control group that keeps its threads from being real-time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laxity_linux::doctor::machine::RealTimeGroup;
use laxity_linux::doctor::rights::lacks;
use laxity_linux::doctor::{Cause, Machine, Operation, can_run_live, foresee};

use laxity_linux::host::hold::{Choice, HoldRequest, ProgramHold, ProgramRequest};
use laxity_linux::os::cgroup;
use laxity_linux::os::sched::Tid;
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::{Enforcer, Grade, Host as _, Outside, Priority, Reservation, Service, Span};

use super::common::{in_own_process, in_own_process_with, live_turn, until};
use super::{EPERM, calls, deadline, explained, may_schedule};

fn two_of_eight() -> ProgramRequest {
    let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
    ProgramRequest {
        hold: HoldRequest {
            name: "it".to_owned(),
            reservation: two_of_eight.unwrap(),
            enforcer: Enforcer::Slots,
            outside: Outside::Timesharing(Priority::NORMAL),
            processor: None,
        },
        choice: Choice::default(),
        confinement: None,
        witnessed: false,
    }
}

/// Slots of another's program are in the group that this is in, whatever the caller's is: from the beginning, and who is moved there meanwhile.
fn others_count_by_their_own(group: &Path) {
    let told = format!("{} together have 100000 us", group.display());
    let in_slots = |is_moved_before: bool| {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = program.id();
        let enter = || fs::write(group.join("cgroup.procs"), process.to_string()).unwrap();
        if is_moved_before {
            enter();
        }
        let held = ProgramHold::of_running(&two_of_eight(), process);
        let grade = |hold: &ProgramHold| hold.observer().grade();
        let is_unenforced = |hold: &ProgramHold| matches!(grade(hold), Grade::Unenforced { .. });
        let why = held.map_err(|why| why.to_string()).map(|hold| {
            assert!(!is_unenforced(&hold), "{:?}", grade(&hold));
            enter();
            until("it is noticed", || is_unenforced(&hold));
            grade(&hold).reason().unwrap().to_owned()
        });
        program.kill().unwrap();
        program.wait().unwrap();
        let (Ok(told_of) | Err(told_of)) = &why;
        assert!(told_of.contains(&told), "{told_of}");
        let leave = format!("`echo {process} > ");
        assert!(told_of.contains(&leave), "{told_of}");
        why
    };
    assert!(in_slots(true).is_err());
    assert!(in_slots(false).is_ok());
}

/// A v1 group that is removed when it is dropped; those of test runs that were killed are removed first.
struct Group(PathBuf);

const GROUP: &str = "LAXITY_TEST_GROUP";

impl Group {
    /// Where v1 groups can be made that limit real-time threads.
    fn parent() -> Option<PathBuf> {
        let mounts = cgroup::mounts(&fs::read_to_string("/proc/self/mountinfo").ok()?);
        let of_cpu = mounts.into_iter().find(|mount| {
            mount.file_system == "cgroup" && mount.options.iter().any(|option| option == "cpu")
        })?;
        let point = PathBuf::from(of_cpu.point);
        point.join("cpu.rt_runtime_us").exists().then_some(point)
    }

    fn new(parent: &Path) -> std::io::Result<Self> {
        for stale in fs::read_dir(parent)?.flatten() {
            let name = stale.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.strip_prefix("laxity-doctor-")) else {
                continue;
            };
            if !Path::new("/proc").join(pid).exists() {
                fs::remove_dir(stale.path())?;
            }
        }
        let own = parent.join(format!("laxity-doctor-{}", std::process::id()));
        fs::create_dir(&own)?;
        Ok(Self(own))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The process that was in it took it away if it came to its end.
        if self.0.exists() {
            until("the group is empty", || fs::remove_dir(&self.0).is_ok());
        }
    }
}

#[test]
fn real_time_group_without_runtime() {
    let _alone = live_turn();
    let Some(parent) = Group::parent() else {
        lacks("inducing this takes a v1 cpu group with RT_GROUP_SCHED");
        return;
    };
    let name = "group::real_time_group_without_runtime";
    if let Some(group) = std::env::var_os(GROUP) {
        in_own_process(name, || in_group(&parent, &PathBuf::from(group)));
        return;
    }
    let group = match Group::new(&parent) {
        Ok(group) => group,
        Err(error) => {
            lacks(&format!("{}: {error}", parent.display()));
            return;
        }
    };
    let prepare = |command: &mut Command| {
        command.env(GROUP, &group.0);
    };
    in_own_process_with(name, prepare, || unreachable!("only with a group"));
    drop(group);
}

fn in_group(parent: &Path, path: &Path) {
    if !may_schedule() {
        return;
    }
    let group = Group(path.to_owned());
    let thread = Tid::current().to_string();
    fs::write(path.join("cpu.rt_runtime_us"), "0").unwrap();
    fs::write(path.join("tasks"), &thread).unwrap();
    let directory = path.display().to_string();
    assert_eq!(
        Machine::probe().rights.group,
        Ok(RealTimeGroup::V1 {
            directory: directory.clone(),
            runtime_us: Some(0),
            period_us: 1_000_000
        })
    );
    let operation = Operation::SetFifo { priority: 1 };
    let fifo = calls::set_fifo(1);
    assert_eq!(fifo, EPERM);
    let diagnosis = explained(&operation, fifo);
    let cause = Cause::RealTimeGroupWithoutRuntime { group: directory };
    assert_eq!(diagnosis.cause, cause);
    assert!(diagnosis.remedy.contains("cpu.rt_runtime_us"));
    let way_out = format!("echo $$ > {}/tasks", parent.display());
    assert!(diagnosis.remedy.contains(&way_out), "{}", diagnosis.remedy);
    assert_eq!(can_run_live().unwrap_err().cause, cause);

    // Deadline is not refused for it, and is not said to be.
    let asked = deadline(100, 100_000, 100_000);
    assert_eq!(
        foresee(&Operation::SetDeadline(asked), &Machine::probe()),
        None
    );
    assert_eq!(calls::set_deadline(asked, true), Ok(()));
    assert_eq!(calls::set_ordinary(), Ok(()));

    // The remedy is one.
    fs::write(path.join("cpu.rt_runtime_us"), "100000").unwrap();
    assert_eq!(foresee(&operation, &Machine::probe()), None);
    assert_eq!(calls::set_fifo(1), Ok(()));
    assert_eq!(calls::set_ordinary(), Ok(()));
    // By slots nothing is promised where all real-time threads together have so little.
    let config = LiveConfig::detect(1).unwrap();
    let supply = LiveHost::new(config).supply(1).unwrap();
    let why = supply.processors[0].slots.clone().unwrap_err();
    let told = format!(
        "{} together have 100000 us of every 1000000 us",
        path.display()
    );
    assert!(why.contains(&told), "{why}");
    fs::write(parent.join("tasks"), &thread).unwrap();
    others_count_by_their_own(path);
    drop(group);
    assert!(!path.exists());
}
