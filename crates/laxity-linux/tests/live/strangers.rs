//! Somebody who is not of the program takes the processor, or lays hands on our own threads: it is noticed, named, and no excuse.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use laxity_linux::host::hold::{HoldRequest, ThreadHold};
use laxity_linux::os::proc::stat_of;

use super::*;
use crate::reservations::two_of_eight;

/// Tells a copy of this binary what stranger it is: rank, busy and period in milliseconds, how often.
const STRANGER: &str = "LAXITY_TEST_STRANGER";

/// Not a test by itself: what a stranger does. It waits for a byte, so that it is nobody before it is told to begin.
#[test]
fn as_a_stranger() {
    let Ok(what) = std::env::var(STRANGER) else {
        return;
    };
    let numbers: Vec<u64> = what.split(' ').map(|n| n.parse().unwrap()).collect();
    let [rank, busy, period, times] = numbers[..] else {
        panic!("{what}");
    };
    // The thread itself: it may have been started before its process could be told where to be.
    let here = CpuSet::single(config().processors[0]);
    sched::set_affinity(Tid::current(), &here).unwrap();
    std::io::stdin().read_exact(&mut [0]).unwrap();
    sched::set_policy(Tid::current(), Policy::Fifo(rank as u8)).unwrap();
    let mut at = clock::now();
    for _ in 0..times {
        while clock::now() < at + ms(busy) {}
        at += ms(period);
        clock::sleep_until(at);
    }
}

/// A process that runs another program than this one, on the program's processor.
struct Stranger {
    child: Child,
    program: PathBuf,
}

impl Stranger {
    fn start(what: &str) -> Self {
        let own = std::env::current_exe().unwrap();
        let program = std::env::temp_dir().join(format!("stranger-{}", std::process::id()));
        fs::copy(own, &program).unwrap();
        let child = Command::new(&program)
            .args(["--exact", "strangers::as_a_stranger", "--test-threads=1"])
            .env(STRANGER, what)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, program }
    }

    /// What has it begin, and waits until it has its rank and sleeps.
    fn rising(&mut self) -> impl FnOnce() + Send + 'static {
        let mut input = self.child.stdin.take().unwrap();
        let pid = self.child.id();
        move || {
            input.write_all(b"x").unwrap();
            let all = || laxity_linux::os::proc::real_time_threads().expect("they can be seen");
            common::until("it sleeps at its rank", || {
                all()
                    .iter()
                    .any(|thread| thread.pid == pid && stat_of(thread.tid, 3) == Ok('S'))
            });
        }
    }

    /// Has it begin so long after a run's start.
    fn begins(&mut self, program: &mut Program, after: Span) {
        let mut input = self.child.stdin.take().unwrap();
        let begin = move || input.write_all(b"x").unwrap();
        meanwhile(program, after, begin, Step::Finish);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.program);
    }
}

/// Has something done once, so long after a run's start, on the processor beside the program's; and what comes then.
fn meanwhile(program: &mut Program, after: Span, act: impl FnOnce() + Send + 'static, then: Step) {
    let (mut at, mut act) = (None, Some(act));
    let mut then = Some(then);
    let body = move |context: &mut dyn Context| match at {
        None => {
            let due = context.now() + after;
            at = Some(due);
            Step::SleepUntil(due)
        }
        Some(_) => {
            if let Some(act) = act.take() {
                act();
            }
            then.take().unwrap_or(Step::Finish)
        }
    };
    program.add("meanwhile", CPU0, Placement::External, body);
}

/// A modem with slots, under the eyes of a witness, for 400 ms.
fn run(prepare: impl FnOnce(&mut Program)) -> (RunRecord, String) {
    let mut config = config();
    config.witnesses = vec![Witness::new(CPU0)];
    let mut program = Program::new(1);
    let id = with_reservation(&mut program, "modem", two_of_eight(), spinner());
    prepare(&mut program);
    let mut host = LiveHost::new(config);
    let record = host.admit_and_run(program, ms(400)).expect("it runs");
    let grant = record.usage[id.index()].grant.clone().expect("a grant");
    let reason = match grant.grade {
        // What the kernel itself may have held up is no matter of these tests.
        Grade::Enforced | Grade::Uncertain { .. } => "enforced".to_owned(),
        Grade::Unenforced { reason } => reason,
    };
    (record, reason)
}

/// A thread of this process, by the name that it gave itself.
fn own_thread(name: &str) -> Tid {
    let all = laxity_linux::os::proc::threads_of(std::process::id()).expect("own threads");
    let is_named = |tid: &Tid| {
        let comm = fs::read_to_string(format!("/proc/self/task/{tid}/comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    all.into_iter().find(is_named).expect("it runs")
}

#[test]
fn a_stranger_above_the_witness_is_no_standstill() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let mut stranger = Stranger::start("99 30 100 3");
    let (record, reason) = run(|program| stranger.begins(program, ms(50)));
    let pid = stranger.child.id();
    for named in [
        format!("of process {pid} (SCHED_FIFO priority 99), seen "),
        "ms after the start".to_owned(),
        "processor 0 was held ".to_owned(),
    ] {
        assert!(reason.contains(&named), "{reason}");
    }
    let length = |event: &Event| (event.args[1] - event.args[0]) / 1_000_000;
    let held = record.events.iter().filter(|event| {
        let is_held = event.kind == EventKind::Held;
        is_held && length(event) >= 20
    });
    // The witness wakes every millisecond; the dispatcher, some moments before its edges.
    let is_of_witness =
        |event: &&Event| (event.args[0] - record.start.as_nanos()).is_multiple_of(1_000_000);
    let (by_witness, by_dispatcher): (Vec<&Event>, Vec<&Event>) = held.partition(is_of_witness);
    assert!(by_witness.len() >= 3, "{by_witness:?}: {reason}");
    assert!(by_dispatcher.len() >= 3, "{by_dispatcher:?}: {reason}");
    // One or two may be the machine's own: it took the processor three times.
    let standstills = record.disturbances.iter();
    let as_long = standstills.filter(|still| still.length() >= ms(20)).count();
    assert!(as_long < 3, "{:?}", record.disturbances);
}

#[test]
fn a_stranger_that_comes_and_goes_is_named_with_when() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let mut stranger = Stranger::start("85 30 100 2");
    let (_, reason) = run(|program| stranger.begins(program, ms(20)));
    let named = format!(
        "of process {} (SCHED_FIFO priority 85), seen ",
        stranger.child.id()
    );
    assert!(reason.contains(&named), "{reason}");
    let (_, reason) = run(|_| {});
    assert_eq!(reason, "enforced");
}

/// The witness wakes when all is over, and tells how late it is all the same: what was not served at the end is nobody's fault but his who held on.
#[test]
fn who_holds_the_processor_over_the_end_of_a_run_is_seen() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let mut config = config();
    config.witnesses = vec![Witness::new(CPU0)];
    let here = config.processors[0];
    let hold = move || {
        std::thread::spawn(move || {
            sched::set_affinity(Tid::current(), &CpuSet::single(here)).unwrap();
            sched::set_policy(Tid::current(), Policy::Fifo(99)).unwrap();
            let until = clock::now() + ms(120);
            while clock::now() < until {}
        });
    };
    let mut program = Program::new(1);
    program.add("spinner", CPU0, NORMAL, spinner());
    meanwhile(&mut program, ms(40), hold, Step::Finish);
    let mut host = LiveHost::new(config);
    let record = host.admit_and_run(program, ms(100)).expect("it runs");
    let end = record.end.as_nanos();
    let lasts = |event: &&Event| event.args[0] + 20_000_000 < end && end <= event.args[1];
    let mut late = record.events.iter().filter(lasts);
    assert!(late.any(|event| matches!(event.kind, EventKind::Held | EventKind::Disturbed)));
}

/// The last of several looks is at the end: whoever comes just before it is seen all the same. The run ends when it has come, however long that takes.
#[test]
fn a_stranger_that_comes_last_is_seen_at_the_end() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let mut stranger = Stranger::start("85 0 60000 1");
    let rising = stranger.rising();
    let (_, reason) = run(|program| meanwhile(program, ms(200), rising, Step::EndRun));
    let named = format!(
        "of process {} (SCHED_FIFO priority 85), seen ",
        stranger.child.id()
    );
    assert!(reason.contains(&named), "{reason}");
}

/// As rtkit's watchdog is on every desktop: it could take the processor at any time, and does not.
#[test]
fn a_stranger_that_sleeps_all_the_time_is_told_and_spoils_nothing() {
    let Some((_turn, mut host)) = live() else {
        return;
    };
    let mut stranger = Stranger::start("99 0 60000 1");
    stranger.rising()();
    let named = format!(
        "of process {} (SCHED_FIFO priority 99)",
        stranger.child.id()
    );
    let (record, reason) = run(|_| {});
    assert_eq!(reason, "enforced");
    let told = record.notices.iter().filter(|told| told.contains(&named));
    let told: Vec<_> = told.collect();
    assert!(
        told.len() == 1 && told[0].contains("was seen to take nothing"),
        "{:?}",
        record.notices
    );
    // What it might do is no promise: before a run, and while somebody holds slots, it counts.
    let mut program = Program::new(1);
    with_reservation(&mut program, "modem", two_of_eight(), spinner());
    let supply = host.supply(1).expect("a supply");
    let admitted = laxity_model::admission::admit(program, &supply).expect("it is admitted");
    let asked = admitted.requests[0].asked.as_ref().expect("slots");
    let promised = asked.grade.reason().expect("a reason");
    assert!(promised.contains(&named), "{promised}");
    let held = hold();
    let while_held = held.observer().grade();
    assert!(
        while_held.reason().is_some_and(|why| why.contains(&named)),
        "{while_held:?}"
    );
    let observer = held.observer().clone();
    drop(held);
    expect_enforced(&observer.grade()); // it never ran
}

#[test]
fn threads_of_ours_that_somebody_changes_hold_nothing_any_more() {
    let Some((_turn, _)) = live() else {
        return;
    };
    type Change = fn();
    let beside = config().external;
    let changes: [(Change, String); 6] = [
        (
            || sched::set_policy(own_thread("dispatcher/0"), Policy::Other { nice: 0 }).unwrap(),
            "the dispatcher of processor 0 had SCHED_OTHER nice 0 instead of SCHED_FIFO priority 98".into(),
        ),
        (
            || sched::set_policy(own_thread("witness/0"), Policy::Fifo(10)).unwrap(),
            "the witness of processor 0 had SCHED_FIFO priority 10 instead of SCHED_FIFO priority 99".into(),
        ),
        (
            || sched::set_affinity(own_thread("modem"), &CpuSet::single(1)).unwrap(),
            "`modem` might run on processors 1 instead of 0".into(),
        ),
        (
            || sched::set_policy(own_thread("modem"), Policy::Other { nice: 0 }).unwrap(),
            "`modem` had SCHED_OTHER nice 0 instead of SCHED_FIFO priority 80".into(),
        ),
        (
            || sched::set_policy(own_thread("lookout"), Policy::Other { nice: 0 }).unwrap(),
            format!("the lookout of processor {beside} had SCHED_OTHER nice 0 instead of SCHED_FIFO priority 1"),
        ),
        (
            || sched::set_affinity(own_thread("lookout"), &CpuSet::single(0)).unwrap(),
            format!("the lookout of processor {beside} might run on processors 0 instead of {beside}"),
        ),
    ];
    for (change, told) in changes {
        let (_, reason) = run(|program| meanwhile(program, ms(100), change, Step::Finish));
        assert!(reason.contains(&format!("{told}, seen ")), "{reason}");
    }
}

/// Slots for the calling thread.
pub(crate) fn hold() -> ThreadHold {
    let asked = two_of_eight();
    let request = HoldRequest {
        name: "holder".to_owned(),
        reservation: asked.reservation,
        enforcer: Enforcer::Slots,
        outside: Outside::Timesharing(Priority::NORMAL),
        processor: Some(config().processors[0]),
    };
    ThreadHold::begin(&request).expect("slots")
}

/// Why what is held is not enforced any more, once that is seen. What the kernel itself may have held up is no matter of these tests.
fn why_not(hold: &ThreadHold) -> String {
    let mut why = None;
    common::until("it is not enforced", || {
        if let Grade::Unenforced { reason } = hold.observer().grade() {
            why = Some(reason);
        }
        why.is_some()
    });
    why.expect("a reason")
}

/// That nobody was seen to take anything of what is held.
fn expect_enforced(grade: &Grade) {
    assert!(!matches!(grade, Grade::Unenforced { .. }), "{grade:?}");
}

#[test]
fn what_a_thread_holds_by_itself_is_looked_after_as_a_run_is() {
    let Some((_turn, _)) = live() else {
        return;
    };
    let held = hold();
    expect_enforced(&held.observer().grade());
    sched::set_policy(own_thread("dispatcher/0"), Policy::Fifo(97)).expect("a policy");
    let reason = why_not(&held);
    let changed = "the dispatcher of processor 0 had SCHED_FIFO priority 97 instead of SCHED_FIFO priority 98";
    assert!(reason.starts_with(changed), "{reason}");
    drop(held);
    let mut stranger = Stranger::start("85 0 60000 1");
    let held = hold();
    let mut input = stranger.child.stdin.take().expect("its input");
    input.write_all(b"x").expect("it reads");
    let named = format!(
        "of process {} (SCHED_FIFO priority 85)",
        stranger.child.id()
    );
    let reason = why_not(&held);
    assert!(reason.contains(&named), "{reason}");
}

/// What is told where not everybody can be seen: before a run, after it, and to a thread that holds slots by itself.
fn expect_unseen(why: &str) {
    let Some((_turn, _)) = live() else {
        return;
    };
    let (_, reason) = run(|_| {});
    // What held the processor is said after it: of nobody can be told that it was the kernel.
    let blind = format!("cannot see who outranks the slot: {why}");
    assert!(reason.starts_with(&blind), "{reason}");
    let reason = why_not(&hold());
    assert!(reason.starts_with(&blind), "{reason}");
    let machine = laxity_linux::doctor::Machine::probe();
    let findings = laxity_linux::doctor::diagnose(&machine);
    let finding = findings
        .iter()
        .find(|finding| finding.name == "outranking")
        .unwrap();
    assert!(finding.cause.ends_with(why), "{}", finding.cause);
    assert!(finding.remedy.is_some());
}

#[test]
fn who_is_in_a_namespace_of_processes_grants_nothing() {
    common::in_own_process_under(
        "strangers::who_is_in_a_namespace_of_processes_grants_nothing",
        &["unshare", "--pid", "--fork", "--mount-proc"],
        || expect_unseen("processes outside this PID namespace are hidden"),
    );
}

#[test]
fn whom_proc_hides_others_from_grants_nothing() {
    let hide = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace \"$@\"";
    common::in_own_process_under(
        "strangers::whom_proc_hides_others_from_grants_nothing",
        &["unshare", "--mount", "sh", "-c", hide, "sh"],
        || {
            let why = "/proc hides the processes of others (hidepid=invisible)";
            expect_unseen(why);
        },
    );
}

#[test]
fn who_has_no_proc_grants_nothing() {
    let cover = "mount -t tmpfs none /proc && exec \"$@\"";
    common::in_own_process_under(
        "strangers::who_has_no_proc_grants_nothing",
        &["unshare", "--mount", "sh", "-c", cover, "sh"],
        || {
            let why = "/proc does not show this process (/proc/self: No such file or directory (os error 2))";
            expect_unseen(why);
        },
    );
}
