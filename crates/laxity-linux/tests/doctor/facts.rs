//! Facts and findings, and failures that no fact explains.

use laxity_linux::doctor::machine::{Network, RealTimeGroup, Servers, Source, Unknown};
use laxity_linux::doctor::{Cause, Machine, Operation, Status, diagnose, explain, foresee};
use laxity_linux::net::OpenCause;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc::real_time_threads;
use laxity_linux::os::sched::{Policy, Tid};
use laxity_model::analysis::multiprocessor::Bandwidth;
use laxity_model::{Service, Span};

use super::common::{in_own_process, live_turn};
use super::{a_third_or_so, calls, deadline, may_schedule};

#[test]
fn what_no_fact_explains_is_blamed_on_none() {
    let mut machine = Machine::probe();
    machine.rights.capabilities = Ok(u64::MAX);
    machine.rights.initial_user_namespace = Ok(true);
    machine.rights.group = Ok(RealTimeGroup::Root);
    let fifo = Operation::SetFifo { priority: 1 };
    let refused = libc::EPERM;
    assert_eq!(explain(&fifo, refused, &machine).cause, Cause::Unexplained);
    machine.rights.filtered = Ok(true);
    assert!(explain(&fifo, refused, &machine).what.contains("seccomp"));
    // Bandwidth that nobody is seen to hold is not said to be held by anyone.
    let reservation = Operation::SetDeadline(deadline(10, 100_000, 100_000));
    let busy = libc::EBUSY;
    machine.bandwidth = Ok(None);
    assert_eq!(
        explain(&reservation, busy, &machine).cause,
        Cause::NoBandwidthLeft { missing: None }
    );
}

/// What is advised is enough.
#[test]
fn a_group_is_limited_where_it_has_less_than_its_part_of_the_machines() {
    let told = |runtime_us, whole_period_us| {
        let mut machine = Machine::probe();
        machine.throttling.runtime_us = Ok(Some(950_000));
        machine.throttling.period_us = whole_period_us;
        machine.rights.group = Ok(RealTimeGroup::V1 {
            directory: "/nowhere".to_owned(),
            runtime_us: Some(runtime_us),
            period_us: 12_345,
        });
        let mut findings = diagnose(&machine).into_iter();
        let found = findings.find(|finding| finding.name == "rt-group").unwrap();
        (found.status, found.remedy.unwrap_or_default())
    };
    let (status, remedy) = told(11_726, Ok(1_000_000));
    assert_eq!(status, Status::Limited);
    assert!(remedy.contains("`echo 11727 > /nowhere/"), "{remedy}");
    assert_eq!(told(11_727, Ok(1_000_000)).0, Status::Ok);
    let unknown = Err(Unknown("/proc/sys is hidden".to_owned()));
    assert_eq!(told(11_727, unknown).0, Status::Unknown);
}

#[test]
fn a_root_domain_out_of_sight_is_said_to_be() {
    let mut machine = Machine::probe();
    let set = |list| CpuSet::parse(list).unwrap();
    machine.rights.capabilities = Ok(u64::MAX);
    machine.rights.initial_user_namespace = Ok(true);
    machine.throttling.runtime_us = Ok(Some(950_000));
    machine.processors.online = Ok(set("0-7"));
    machine.processors.isolated = Ok(set("7"));
    machine.processors.affinity = Ok(set("0-1"));
    let reason = "the root of the groups is hidden";
    machine.processors.root_domains = Err(Unknown(reason.to_owned()));
    let operation = Operation::SetDeadline(a_third_or_so());
    // It is not foreseen: it may as well be granted.
    assert_eq!(foresee(&operation, &machine), None);
    let refused = libc::EPERM;
    let diagnosis = explain(&operation, refused, &machine);
    assert_eq!(
        diagnosis.cause,
        Cause::AffinityNarrowerThanRootDomain {
            affinity: set("0-1"),
            root_domain: set("0-6")
        }
    );
    assert!(diagnosis.what.contains(reason));
    machine.processors.affinity = Ok(set("0-6"));
    let diagnosis = explain(&operation, refused, &machine);
    assert_eq!(diagnosis.cause, Cause::Unexplained);
}

#[test]
fn real_time_threads_are_found_with_their_rank() {
    let _alone = live_turn();
    in_own_process("facts::real_time_threads_are_found_with_their_rank", || {
        if !may_schedule() {
            return;
        }
        assert_eq!(calls::set_fifo(7), Ok(()));
        let threads = real_time_threads().unwrap();
        let own = threads.iter().find(|t| t.tid == Tid::current()).unwrap();
        assert_eq!(own.policy, Policy::Fifo(7));
        assert_eq!(own.pid, std::process::id());
        assert!(!own.of_kernel);
        assert_eq!(own.affinity, Machine::probe().processors.affinity);
        assert!(own.outranks(6, own.processor) && !own.outranks(7, own.processor));
        calls::set_ordinary().unwrap();
        let threads = real_time_threads().unwrap();
        assert!(threads.iter().all(|t| t.tid != Tid::current()));
    });
}

#[test]
fn every_check_has_a_finding_and_what_is_missing_a_remedy() {
    let machine = Machine::probe();
    let findings = diagnose(&machine);
    let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), findings.len());
    for finding in &findings {
        if matches!(finding.status, Status::Missing | Status::Limited) {
            assert!(finding.remedy.is_some(), "{finding:?}");
        }
        assert!(!finding.cause.is_empty(), "{finding:?}");
    }
}

#[test]
fn the_tick_is_what_the_kernel_was_built_with() {
    let machine = Machine::probe();
    let tick = machine.kernel.tick;
    // HZ is 100, 250, 300, 1000 or a board's own choice between.
    let hz = 1_000_000_000 / tick.as_nanos();
    assert!((24..=1200).contains(&hz), "{hz}");
    let online = machine.processors.online.unwrap();
    let steal = machine.processors.steal.unwrap();
    let counted: CpuSet = steal.iter().map(|(cpu, _)| *cpu).collect();
    assert_eq!(counted, online);
}

#[test]
fn who_may_take_a_processor_from_real_time_threads_is_told() {
    let mut machine = Machine::probe();
    let found = |machine: &Machine, name: &str| {
        let findings = diagnose(machine).into_iter();
        let mut named = findings.filter(|finding| finding.name == name);
        named.next().expect("it is looked at")
    };
    machine.kernel.slice_extension = Ok(None);
    assert_eq!(found(&machine, "slice-extension").status, Status::Ok);
    machine.kernel.slice_extension = Ok(Some(Span::from_micros(5)));
    let extended = found(&machine, "slice-extension");
    assert_eq!(extended.status, Status::Limited);
    assert!(extended.cause.contains("5us"), "{extended:?}");
    machine.kernel.slice_extension = Err(Unknown("refused".to_owned()));
    assert_eq!(found(&machine, "slice-extension").status, Status::Unknown);

    let share = Bandwidth::of(Service::from_millis(50), Span::from_secs(1));
    let servers = |fair, ext| Servers {
        fair,
        ext,
        from: Source::Read,
    };
    machine.servers = Ok(servers(share, Bandwidth::ZERO));
    let usual = found(&machine, "servers");
    assert_eq!(usual.status, Status::Ok, "{usual:?}");
    machine.servers = Ok(servers(share, share));
    let both = found(&machine, "servers");
    assert_eq!(both.status, Status::Limited);
    assert!(both.remedy.unwrap().contains("ext_server"));
}

#[test]
fn a_kernel_without_a_limit_is_told_with_what_it_means() {
    let mut machine = Machine::probe();
    machine.throttling.runtime_us = Ok(None);
    machine.throttling.period_us = Ok(1_000_000);
    machine.bandwidth = Ok(None);
    let causes = |machine: &Machine| {
        let told = |name: &str| {
            let findings = diagnose(machine);
            let found = findings.into_iter().find(|found| found.name == name);
            let found = found.expect("it is looked at");
            assert_eq!(found.status, Status::Limited, "{found:?}");
            found.cause
        };
        ["rt-throttling", "deadline-bandwidth"].map(told)
    };
    machine.kernel.version = Ok((6, 11));
    let [runaway, bandwidth] = causes(&machine);
    assert!(
        runaway.ends_with("stops its processor for good"),
        "{runaway}"
    );
    assert!(bandwidth.ends_with("none is enforced"), "{bandwidth}");
    machine.kernel.version = Ok((6, 12));
    let [runaway, _] = causes(&machine);
    assert!(runaway.contains("keeps for ordinary threads"), "{runaway}");
}

#[test]
fn each_way_to_an_interface_is_told_with_what_it_takes() {
    let mut machine = Machine::probe();
    let found = |machine: &Machine, name: &str| {
        let mut findings = diagnose(machine).into_iter();
        let found = findings.find(|finding| finding.name == name).unwrap();
        (found.status, found.cause, found.remedy.unwrap_or_default())
    };
    machine.network = Network {
        packet: Ok(()),
        xdp: Ok(()),
        tap: Ok(()),
        unfinished: Ok(Vec::new()),
    };
    let rows = ["packet-sockets", "xdp", "tap", "unfinished-packets"];
    for row in rows {
        assert_eq!(found(&machine, row).0, Status::Ok, "{row}");
    }
    machine.network = Network {
        packet: Err(OpenCause::NoRawSockets),
        xdp: Err(OpenCause::MemoryLocked(2 << 20)),
        tap: Err(OpenCause::NoTunDevice),
        unfinished: Ok(vec!["veth0".to_owned()]),
    };
    // Some way is always there, by UDP: what lacks ends no live run.
    let words = [
        "cap_net_raw",
        "2048 KiB are needed",
        "modprobe tun",
        "tx off",
    ];
    for (row, word) in rows.into_iter().zip(words) {
        let (status, _, remedy) = found(&machine, row);
        assert_eq!(status, Status::Limited, "{row}");
        assert!(remedy.contains(word), "{row}: {remedy}");
    }
    assert!(found(&machine, "unfinished-packets").1.contains("veth0"));
    // That the device may be opened is no right to make an interface.
    machine.network.tap = Err(OpenCause::NoInterfaceRights);
    let (status, cause, remedy) = found(&machine, "tap");
    assert_eq!(status, Status::Limited);
    assert!(cause.contains("made for this user"), "{cause}");
    assert!(remedy.contains("ip tuntap add"), "{remedy}");
    machine.network.unfinished = Err(Unknown("/sys is hidden".to_owned()));
    let unknown = found(&machine, "unfinished-packets");
    assert_eq!(unknown.0, Status::Unknown);
}
