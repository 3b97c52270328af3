//! Every cause, induced for real and told from the others. What a process cannot take back is done in one of its own.
#![allow(unsafe_code, reason = "breaking things takes system calls")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod facts;
mod group;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use calls::{Answer, Resource};
use common::{in_own_process, in_own_process_with, is_own_process, live_turn, until};
use laxity_linux::ThreadReservation;
use laxity_linux::doctor::machine::{CAP_IPC_LOCK, CAP_SYS_NICE};
use laxity_linux::doctor::rights::{lacks, skip};
use laxity_linux::doctor::{
    Cause, Diagnosis, Finding, Machine, Operation, ParameterError, Status, can_run_live, diagnose,
    explain, foresee,
};
use laxity_linux::os::cpuset::CpuSet;
use laxity_model::analysis::multiprocessor::{Bandwidth, DeadlineRequest};
use laxity_model::{Reservation, Service, Span};

fn deadline(runtime_us: u64, deadline_us: u64, period_us: u64) -> DeadlineRequest {
    DeadlineRequest {
        runtime: Service::from_micros(runtime_us),
        deadline: Span::from_micros(deadline_us),
        period: Span::from_micros(period_us),
    }
}

/// Of which no number of processors admits a whole number.
fn a_third_or_so() -> DeadlineRequest {
    deadline(3_100, 10_000, 10_000)
}

/// Whether the tester may schedule at all; says so if not.
fn may_schedule() -> bool {
    let may = Machine::probe().rights.has(CAP_SYS_NICE) == Some(true);
    if !may {
        lacks("inducing this takes CAP_SYS_NICE");
    }
    may
}

/// Explains a failure on the thread that had it, and checks that it was foreseen with the same cause.
fn explained(operation: &Operation, result: Answer) -> Diagnosis {
    let errno = result.expect_err("this was meant to fail");
    let machine = Machine::probe();
    let diagnosis = explain(operation, errno, &machine);
    let foreseen = foresee(operation, &machine).expect("what failed is foreseen");
    assert_eq!(foreseen.errno(), Some(errno));
    assert_eq!(foreseen, diagnosis);
    diagnosis
}

const EPERM: Answer = Err(libc::EPERM);
const EBUSY: Answer = Err(libc::EBUSY);
const EINVAL: Answer = Err(libc::EINVAL);
const ENOMEM: Answer = Err(libc::ENOMEM);

#[test]
fn no_capability() {
    in_own_process("no_capability", || {
        calls::set_limit(Resource::RealTimePriority, 0).unwrap();
        calls::drop_capability(CAP_SYS_NICE);
        let fifo = calls::set_fifo(50);
        assert_eq!(fifo, EPERM);
        let diagnosis = explained(&Operation::SetFifo { priority: 50 }, fifo);
        assert_eq!(diagnosis.cause, Cause::NoCapability("CAP_SYS_NICE"));
        assert!(diagnosis.remedy.contains("setcap cap_sys_nice"));

        let reserved = calls::set_deadline(a_third_or_so(), true);
        let diagnosis = explained(&Operation::SetDeadline(a_third_or_so()), reserved);
        assert_eq!(diagnosis.cause, Cause::NoCapability("CAP_SYS_NICE"));
        assert!(diagnosis.remedy.contains("setcap cap_sys_nice"));
        assert!(!diagnosis.remedy.contains("limits.conf"));

        let live = can_run_live().unwrap_err();
        assert_eq!(live.cause, Cause::NoCapability("CAP_SYS_NICE"));
        let findings = diagnose(&Machine::probe());
        for name in ["fifo", "deadline"] {
            let finding = findings.iter().find(|f| f.name == name).unwrap();
            assert_eq!(finding.status, Status::Missing);
            assert!(finding.remedy.as_ref().unwrap().contains("setcap"));
        }
    });
}

#[test]
fn a_capability_of_a_user_namespace_does_not_count() {
    let prepare = |command: &mut Command| {
        // SAFETY: the closure runs between fork and exec in a process of one thread. It allocates, which the C library makes safe
        // after a fork.
        unsafe { command.pre_exec(calls::enter_user_namespace) };
    };
    if !is_own_process() {
        let mut attempt = Command::new("true");
        prepare(&mut attempt);
        if let Err(error) = attempt.status() {
            lacks(&format!("user namespaces are not allowed here: {error}"));
            return;
        }
    }
    let name = "a_capability_of_a_user_namespace_does_not_count";
    in_own_process_with(name, prepare, || {
        let machine = Machine::probe();
        assert_eq!(machine.rights.initial_user_namespace, Ok(false));
        assert_eq!(machine.rights.capabilities.unwrap() >> CAP_SYS_NICE & 1, 1);
        if machine.rights.rtprio != Some(0) {
            calls::set_limit(Resource::RealTimePriority, 0).unwrap();
        }
        let fifo = calls::set_fifo(50);
        assert_eq!(fifo, EPERM);
        let diagnosis = explained(&Operation::SetFifo { priority: 50 }, fifo);
        assert_eq!(
            diagnosis.cause,
            Cause::CapabilityOfNamespace("CAP_SYS_NICE")
        );
        assert!(diagnosis.remedy.contains("prlimit"));
    });
}

#[test]
fn rtprio_too_low() {
    let _alone = live_turn();
    in_own_process("rtprio_too_low", || {
        if calls::set_limit(Resource::RealTimePriority, 10).is_err() {
            skip("raising RLIMIT_RTPRIO takes CAP_SYS_RESOURCE");
            return;
        }
        calls::drop_capability(CAP_SYS_NICE);
        let within = Operation::SetFifo { priority: 10 };
        assert_eq!(foresee(&within, &Machine::probe()), None);
        assert_eq!(calls::set_fifo(10), Ok(()));
        let diagnosis = explained(&Operation::SetFifo { priority: 50 }, calls::set_fifo(50));
        assert_eq!(
            diagnosis.cause,
            Cause::RtprioTooLow {
                limit: 10,
                priority: 50
            }
        );
        assert!(diagnosis.remedy.contains("--rtprio=50"));
    });
}

#[test]
fn affinity_narrower_than_the_root_domain() {
    let _alone = live_turn();
    in_own_process("affinity_narrower_than_the_root_domain", || {
        if !may_schedule() {
            return;
        }
        let machine = Machine::probe();
        let whole = machine.own_root_domain().unwrap().clone();
        if whole.len() < 2 {
            lacks("a root domain of one processor cannot be narrowed");
            return;
        }
        let narrow: CpuSet = whole.iter().take(1).collect();
        calls::set_affinity(&narrow).unwrap();
        let asked = deadline(100, 100_000, 100_000);
        let operation = Operation::SetDeadline(asked);
        let reserved = calls::set_deadline(asked, true);
        assert_eq!(reserved, EPERM);
        let diagnosis = explained(&operation, reserved);
        assert_eq!(
            diagnosis.cause,
            Cause::AffinityNarrowerThanRootDomain {
                affinity: narrow.clone(),
                root_domain: whole.clone()
            }
        );
        assert!(diagnosis.remedy.contains(&format!("taskset -pc {whole}")));
        // FIFO has no such condition; and the remedy is one.
        assert_eq!(calls::set_fifo(1), Ok(()));
        calls::set_affinity(&whole).unwrap();
        assert_eq!(calls::set_deadline(asked, true), Ok(()));
    });
}

/// A thread that holds a reservation and does nothing with it, until it is dropped.
struct Holder {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Holder {
    fn new(asked: DeadlineRequest) -> Result<Self, i32> {
        let (end, ended) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let result = calls::set_deadline(asked, true);
            answer.send(result).expect("the asker waits");
            if result.is_ok() {
                // Until the sender is dropped.
                let _ = ended.recv();
            }
        });
        let result = answered.recv().expect("the thread answers");
        let holder = Self {
            end: Some(end),
            thread: Some(thread),
        };
        result.map(|()| holder)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the kernel answers, once that is what was foreseen: until its zero-lag time a thread that an earlier test had still holds its
/// share, and nobody sees it.
fn as_foreseen(asked: DeadlineRequest) -> Result<Holder, i32> {
    let mut answer = None;
    until("the kernel answers as foreseen", || {
        let foreseen = foresee(&Operation::SetDeadline(asked), &Machine::probe());
        let given = Holder::new(asked);
        let agree = foreseen.is_some() == given.is_err();
        answer = Some(given);
        agree
    });
    answer.expect("asked at least once")
}

#[test]
fn no_bandwidth_left() {
    let _alone = live_turn();
    in_own_process("no_bandwidth_left", || {
        if !may_schedule() {
            return;
        }
        let asked = a_third_or_so();
        let operation = Operation::SetDeadline(asked);
        if !matches!(Machine::probe().bandwidth, Ok(Some(_))) {
            lacks("the machine does not limit deadline bandwidth, or does not show it");
            return;
        }
        let mut holders = Vec::new();
        let failure = loop {
            match as_foreseen(asked) {
                Ok(holder) => holders.push(holder),
                Err(failure) => break failure,
            }
        };
        assert_eq!(Err(failure), EBUSY);
        let machine = Machine::probe();
        let diagnosis = explain(&operation, failure, &machine);
        let Cause::NoBandwidthLeft {
            missing: Some(missing),
        } = diagnosis.cause
        else {
            panic!("{diagnosis:?}");
        };
        let domain = machine.own_bandwidth().unwrap();
        let wanted = Bandwidth::of(asked.runtime, asked.period);
        assert_eq!(wanted.checked_sub(domain.free()), Some(missing));
        // The nearest that would do is named, with who holds the rest; and it does.
        let nearest = domain.free().longest_runtime(asked.period);
        assert!(diagnosis.remedy.contains(&nearest.to_string()));
        assert!(
            diagnosis
                .remedy
                .contains(&format!("of process {} ", std::process::id()))
        );
        let admitted = holders.len();
        let rest = DeadlineRequest {
            runtime: nearest,
            ..asked
        };
        until("what is left is granted", || {
            Holder::new(rest).map(|holder| holders.push(holder)).is_ok()
        });
        drop(holders);
        until("the bandwidth comes back at the zero-lag times", || {
            let again: Vec<_> = (0..admitted)
                .map_while(|_| Holder::new(asked).ok())
                .collect();
            again.len() == admitted
        });
    });
}

/// What has ended before its zero-lag time is missing in the kernel's books once anybody reads the limit, and is taken off all the same.
#[test]
fn bandwidth_that_was_taken_off_twice_is_reckoned_anew() {
    let _alone = live_turn();
    in_own_process(
        "bandwidth_that_was_taken_off_twice_is_reckoned_anew",
        || {
            if !may_schedule() {
                return;
            }
            let used = std::thread::spawn(|| {
                calls::set_deadline(deadline(400_000, 1_000_000, 1_000_000), true).unwrap();
                let until = Instant::now() + Duration::from_millis(350);
                while Instant::now() < until {}
            });
            used.join().unwrap();
            let _ = std::fs::read("/proc/sys/kernel/sched_rt_runtime_us");
            let until = Instant::now() + Duration::from_secs(2);
            while Holder::new(deadline(1_000, 10_000, 10_000)).is_ok() {
                if Instant::now() > until {
                    return skip("this kernel does not reckon anew when its limit is read");
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let some = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
            ThreadReservation::deadline(some).unwrap();
        },
    );
}

#[test]
fn parameters_out_of_range() {
    let _alone = live_turn();
    in_own_process("parameters_out_of_range", || {
        let bounds = Machine::probe().throttling;
        let shortest = bounds.deadline_period_min.unwrap().as_micros();
        let longest = bounds.deadline_period_max.unwrap().as_micros();
        let short = DeadlineRequest {
            runtime: Service::from_nanos(1023),
            ..deadline(1, 10_000, 10_000)
        };
        let cases = [
            (short, ParameterError::RuntimeTooShort),
            (
                deadline(5_000, 4_000, 10_000),
                ParameterError::RuntimeOverDeadline,
            ),
            (
                deadline(1_000, 20_000, 10_000),
                ParameterError::DeadlineOverPeriod,
            ),
            (
                deadline(10, shortest - 1, shortest - 1),
                ParameterError::PeriodTooShort,
            ),
            (
                deadline(100, longest + 1, longest + 1),
                ParameterError::PeriodTooLong,
            ),
        ];
        // The kernel looks at the numbers before the rights: anybody may run this.
        for (asked, wrong) in cases {
            let result = calls::set_deadline(asked, true);
            assert_eq!(result, EINVAL, "{asked:?}");
            let diagnosis = explained(&Operation::SetDeadline(asked), result);
            assert_eq!(diagnosis.cause, Cause::OutOfRange(wrong));
            assert!(diagnosis.remedy.starts_with("ask for"));
        }
        for priority in [0, 100] {
            let result = calls::set_fifo(priority);
            assert_eq!(result, EINVAL);
            let diagnosis = explained(&Operation::SetFifo { priority }, result);
            assert_eq!(diagnosis.cause, Cause::OutOfRange(ParameterError::Priority));
        }
        if may_schedule() {
            // The bounds themselves are allowed.
            for period in [shortest, longest] {
                let edge = deadline(2, period, period);
                assert_eq!(
                    foresee(&Operation::SetDeadline(edge), &Machine::probe()),
                    None
                );
                assert_eq!(calls::set_deadline(edge, true), Ok(()));
                assert_eq!(calls::set_ordinary(), Ok(()));
            }
        }
    });
}

#[test]
fn fork_without_reset_on_fork() {
    let _alone = live_turn();
    in_own_process("fork_without_reset_on_fork", || {
        if !may_schedule() {
            return;
        }
        let start = || Command::new("true").status().map(|status| status.success());
        let asked = deadline(5_000, 100_000, 100_000);
        assert_eq!(calls::set_deadline(asked, false), Ok(()));
        let error = start().unwrap_err().raw_os_error();
        assert_eq!(error, Some(libc::EAGAIN));
        let diagnosis = explained(&Operation::Fork, Err(libc::EAGAIN));
        assert_eq!(diagnosis.cause, Cause::ForkWithoutResetOnFork);
        assert!(diagnosis.remedy.contains("SCHED_FLAG_RESET_ON_FORK"));
        // The remedy is one.
        assert_eq!(calls::set_deadline(asked, true), Ok(()));
        assert_eq!(foresee(&Operation::Fork, &Machine::probe()), None);
        assert!(start().unwrap());
    });
}

/// Runs as FIFO without blocking, for at most two seconds: long enough to be ended.
fn spin_as_fifo() -> std::io::Result<()> {
    if calls::set_fifo(1).is_err() {
        return Err(std::io::Error::last_os_error());
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {}
    Ok(())
}

#[test]
fn real_time_time_limited() {
    let _alone = live_turn();
    in_own_process("real_time_time_limited", || {
        if !may_schedule() {
            return;
        }
        calls::set_limit(Resource::CoreBytes, 0).unwrap();
        calls::set_limit(Resource::RealTimeTimeUs, 20_000).unwrap();
        let mut command = Command::new("true");
        // SAFETY: the closure makes system calls only, in a process of one thread.
        unsafe { command.pre_exec(spin_as_fifo) };
        let status = command.status().expect("the process starts");
        let signal = status.signal().expect("the process is ended by a signal");
        assert_eq!(signal, libc::SIGXCPU);
        let machine = Machine::probe();
        let limited = can_run_live().unwrap_err();
        assert_eq!(
            limited.cause,
            Cause::RealTimeTimeLimited { limit_us: 20_000 }
        );
        assert_eq!(limited.errno(), None, "no call is refused for it");
        let finding = time_limit(&machine);
        assert_eq!(finding.status, Status::Limited);
        assert_eq!(finding.cause, limited.what);
        assert!(finding.remedy.unwrap().contains("--rttime=unlimited"));
        // The policy itself is not refused for it.
        assert_eq!(foresee(&Operation::SetFifo { priority: 1 }, &machine), None);
        // The remedy is one.
        calls::set_limit(Resource::RealTimeTimeUs, libc::RLIM_INFINITY).unwrap();
        assert_eq!(time_limit(&Machine::probe()).status, Status::Ok);
    });
}

/// What is found of the limit on real-time processor time.
fn time_limit(machine: &Machine) -> Finding {
    let mut findings = diagnose(machine).into_iter();
    findings
        .find(|finding| finding.name == "rt-time-limit")
        .unwrap()
}

#[test]
fn memory_lock_refused() {
    let _alone = live_turn();
    in_own_process("memory_lock_refused", || {
        calls::drop_capability(CAP_IPC_LOCK);
        // A limit that is too low has another number than none at all.
        for (limit_bytes, error) in [(65_536, ENOMEM), (0, EPERM)] {
            calls::set_limit(Resource::LockedMemoryBytes, limit_bytes).unwrap();
            let locked = calls::lock_memory();
            assert_eq!(locked, error);
            let diagnosis = explained(&Operation::LockMemory, locked);
            let Cause::MemoryLockRefused {
                limit_bytes: limit,
                needed_bytes: Some(needed),
            } = diagnosis.cause
            else {
                panic!("{diagnosis:?}");
            };
            assert_eq!(limit, limit_bytes);
            assert!(needed > limit);
            assert!(diagnosis.remedy.contains("memlock unlimited"));
        }
        if may_schedule() {
            assert!(matches!(
                can_run_live().unwrap_err().cause,
                Cause::MemoryLockRefused { limit_bytes: 0, .. }
            ));
        }
    });
}
