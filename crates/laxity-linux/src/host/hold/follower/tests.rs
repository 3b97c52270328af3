//! Who is found of a program, and what it is given.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use laxity_model::{Enforcer, Outside, Reservation, Service};

use super::super::HoldRequest;
use super::super::above::is_above;
use super::super::places::{Reserving, Slotted, taken_out};
use super::super::program::is_holders;
use super::super::seen::Anew;
use super::*;
use crate::doctor::rights::{self, Right};
use crate::os::cpuset::CpuSet;
use crate::os::sched::{self, Attributes, Policy};

/// A thread is to keep what it has.
struct Keeping(Policy);

impl Places for Keeping {
    fn place(&mut self, _: Tid, _: Attributes) -> Result<(), HoldError> {
        Ok(())
    }

    fn keep(&mut self, _: &Family, _: &[Tid]) {}

    fn is_shared(&self) -> bool {
        false
    }

    fn changed(&self, thread: Tid) -> Option<String> {
        taken_out(sched::policy(thread).ok()?, self.0)
    }
}

fn members() -> Arc<Members> {
    let own = Tid::current();
    let before = (Attributes::of(own).unwrap(), sched::affinity(own).unwrap());
    Arc::new(Members::new(None, before, true).unwrap())
}

/// Of this process only this thread is held.
fn request(only: Tid) -> ProgramRequest {
    let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
    ProgramRequest {
        hold: HoldRequest {
            name: "it".to_owned(),
            reservation: two_of_eight.unwrap(),
            enforcer: Enforcer::Deadline,
            outside: Outside::Confined,
            processor: None,
        },
        choice: Choice {
            only: Some(only),
            ..Choice::default()
        },
        confinement: None,
        witnessed: false,
    }
}

#[test]
fn a_thread_that_leaves_its_reservation_is_named_with_what_it_has() {
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let seen = Seen::new(Grade::Enforced);
    let family = Family::new(program.id(), None, false);
    let is = sched::policy(thread).unwrap();
    let places = Box::new(Keeping(is));
    let mut follower = Follower::new(&request(thread), family, Arc::clone(&seen), places);
    follower.first().unwrap();
    follower.look();
    assert_eq!(seen.grade(), Grade::Enforced);
    sched::set_policy(thread, Policy::Batch { nice: 0 }).unwrap();
    follower.look();
    let reason = seen.grade().reason().map(str::to_owned);
    program.kill().unwrap();
    program.wait().unwrap();
    let named = format!("thread {thread} ");
    let told = format!(
        "of the program was taken out of its reservation: it had SCHED_BATCH nice 0 instead of {is}"
    );
    let reason = reason.expect("it is noticed");
    assert!(
        reason.starts_with(&named) && reason.ends_with(&told),
        "{reason}"
    );
}

/// Whoever is not this thread cannot be placed.
struct Only(Tid);

impl Places for Only {
    fn place(&mut self, thread: Tid, _: Attributes) -> Result<(), HoldError> {
        match thread == self.0 {
            true => Ok(()),
            false => Err(HostError::Failed("there is no room".to_owned()).into()),
        }
    }

    fn keep(&mut self, _: &Family, _: &[Tid]) {}

    fn is_shared(&self) -> bool {
        false
    }

    fn changed(&self, _: Tid) -> Option<String> {
        None
    }
}

/// As where what is open was found while a thread was without its slots: that it is without them still is no less so then.
#[test]
fn a_thread_that_is_not_held_is_told_again_when_what_is_told_begins_anew() {
    let mut command = Command::new("sh");
    command.args(["-c", "read line; cat; true"]);
    let mut program = command.stdin(Stdio::piped()).spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let seen = Seen::new(Grade::Enforced);
    let family = Family::new(program.id(), None, true);
    let mut request = request(thread);
    request.choice = Choice {
        new_threads: true,
        children: true,
        ..Choice::default()
    };
    let mut follower = Follower::new(&request, family, Arc::clone(&seen), Box::new(Only(thread)));
    follower.first().unwrap();
    let mut is_told = || {
        (0..4_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            follower.look();
            let grade = seen.grade();
            grade.reason().is_some_and(|why| why.contains("no room"))
        })
    };
    // What it starts now is without its slots, and stays so.
    program.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let first = is_told();
    seen.begin_anew(Anew {
        reservation: request.hold.reservation,
        looks: None,
        from: clock::now(),
    });
    let anew = (seen.grade(), is_told());
    drop(program.stdin.take());
    program.wait().unwrap();
    assert!(first);
    assert_eq!(anew, (Grade::Enforced, true));
    assert!(seen.leaves_out() && !seen.lacks_bandwidth());
}

#[test]
fn a_thread_that_is_moved_from_its_slots_is_named_with_where_it_might_be() {
    let all = sched::affinity(Tid::current()).unwrap();
    if all.len() < 2 {
        eprintln!("skipped: there is one processor, and nowhere to move to");
        return;
    }
    let cpu = all.iter().next().unwrap();
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let seen = Seen::new(Grade::Enforced);
    let family = Family::new(program.id(), None, false);
    let members = members();
    let passed = None;
    let places = Box::new(Slotted {
        members,
        cpu,
        passed,
    });
    let mut follower = Follower::new(&request(thread), family, Arc::clone(&seen), places);
    follower.first().unwrap();
    follower.look();
    let before = seen.grade();
    sched::set_affinity(thread, &all).unwrap();
    follower.look();
    let after = seen.grade();
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(before, Grade::Enforced);
    let reason = after.reason().expect("it is noticed").to_owned();
    let told = format!("it might run on processors {all} instead of {cpu}");
    assert!(
        reason.starts_with(&format!("thread {thread} ")) && reason.ends_with(&told),
        "{reason}"
    );
}

#[test]
fn of_a_program_that_has_ended_nobody_saw_the_last() {
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let thread = Tid(program.id().cast_signed());
    let family = Family::new(program.id(), None, false);
    let members = members();
    let cpu = sched::affinity(thread).unwrap().iter().next().unwrap();
    let passed = None;
    let places = Box::new(Slotted {
        members,
        cpu,
        passed,
    });
    let seen = Seen::new(Grade::Enforced);
    let mut follower = Follower::new(&request(thread), family, seen, places);
    follower.first().unwrap();
    let looked = |part: Option<Part>| part.map(|part| (part.ended, part.gone));
    let alive = looked(follower.look());
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(alive, Some((false, false)));
    assert_eq!(looked(follower.look()), Some((true, true)));
    assert_eq!(
        looked(follower.look()),
        Some((false, true)),
        "it is told once"
    );
}

/// One of this process, on the first processor alone.
fn ranked((pid, parent): (u32, u32), tid: Tid, policy: Policy) -> RealTimeThread {
    RealTimeThread {
        pid,
        parent,
        tid,
        name: "it".to_owned(),
        policy,
        affinity: Ok(CpuSet::single(0)),
        processor: 0,
        of_kernel: false,
        of_laxity: false,
        boosted: None,
    }
}

/// A thread with this name, which ends with what is handed back beside its number.
fn named(name: &str) -> (Tid, mpsc::Sender<()>) {
    let (tell, told) = mpsc::channel();
    let (stay, stays) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        tell.send(Tid::current()).unwrap();
        stays.recv().unwrap_err();
    });
    started.unwrap();
    (told.recv().unwrap(), stay)
}

#[test]
fn a_thread_that_is_not_meant_and_ranks_above_the_holder_is_a_stranger() {
    let own = std::process::id();
    let [(good, _good_stays), (evil, _evil_stays)] = ["is-meant", "is-not-meant"].map(named);
    let by_number = request(good).choice;
    let by_name = Choice {
        names: vec!["is-meant".to_owned()],
        new_threads: true,
        ..Choice::default()
    };
    for choice in [by_number, by_name] {
        let mut request = request(good);
        request.choice = choice;
        let family = Family::new(own, None, false);
        let keeping = Keeping(sched::policy(good).unwrap());
        let seen = Seen::new(Grade::Enforced);
        let mut follower = Follower::new(&request, family, seen, Box::new(keeping));
        follower.first().unwrap();
        let before_any_look = is_holders(&request, &Family::new(own, None, false));
        let counts = |tid, name: &str, policy| {
            let thread = RealTimeThread {
                name: name.to_owned(),
                ..ranked((own, 1), tid, policy)
            };
            [
                is_above(&thread, 0, |thread| follower.has(thread)),
                is_above(&thread, 0, &before_any_look),
            ]
        };
        let meant = counts(good, "is-meant", Members::INSIDE);
        assert_eq!(meant, [false; 2], "{request:?}");
        // What it had from the holder it has given back: it has that rank by itself.
        for policy in [Policy::Fifo(90), Members::INSIDE] {
            let not_meant = counts(evil, "is-not-meant", policy);
            assert_eq!(not_meant, [true; 2], "{request:?}");
        }
    }
}

#[test]
fn of_a_running_program_a_thread_of_each_name_must_be_there() {
    let (_, _stays) = named("is-there");
    let (other, _other_stays) = named("is-another");
    let held = |names: &[&str], only| {
        let mut request = request(other);
        request.choice = Choice {
            names: names.iter().map(ToString::to_string).collect(),
            only,
            ..Choice::default()
        };
        let family = Family::new(std::process::id(), None, false);
        let keeping = Keeping(sched::policy(other).unwrap());
        let seen = Seen::new(Grade::Enforced);
        let mut follower = Follower::new(&request, family, seen, Box::new(keeping));
        let first = follower.first().map_err(|error| error.to_string());
        // Who is refused was never placed.
        let is_placed = follower.threads.values().any(|it| it.restore.is_some());
        assert_eq!(is_placed, first.is_ok(), "{names:?}");
        first
    };
    assert_eq!(held(&["is-there", "is-another"], None), Ok(()));
    assert_eq!(held(&["is-there", "is-another"], Some(other)), Ok(()));
    for names in [&["is-there", "is-missing"][..], &["is-missing"]] {
        let why = held(names, None).unwrap_err();
        let (missing, there) = why.split_once(": there is ").expect(&why);
        assert!(missing.ends_with("no thread named \"is-missing\""), "{why}");
        assert!(there.contains("\"is-there\""), "{why}");
    }
    let why = held(&["is-there"], Some(other)).unwrap_err();
    let told = format!("thread {other} is not named \"is-there\": there is \"is-another\"");
    assert!(why.ends_with(&told), "{why}");
}

#[test]
fn each_name_of_a_program_that_was_started_is_awaited_until_one_comes() {
    let (first, _first_stays) = named("comes-first");
    let mut request = request(first);
    request.choice = Choice {
        names: ["comes-first", "comes-later", "never-comes"]
            .map(str::to_owned)
            .to_vec(),
        ..Choice::default()
    };
    // Its keeper is looked at by nobody who follows no children.
    let family = Family::new(std::process::id(), Some(1), false);
    let keeping = Keeping(sched::policy(first).unwrap());
    let seen = Seen::new(Grade::Enforced);
    let mut follower = Follower::new(&request, family, Arc::clone(&seen), Box::new(keeping));
    follower.first().unwrap();
    assert_eq!(seen.missing(), ["comes-later", "never-comes"]);
    // Both are there at the look at which the name is awaited.
    let [(one, _one_stays), (two, _two_stays)] = ["comes-later"; 2].map(named);
    let (again, _again_stays) = named("comes-first");
    follower.look();
    assert_eq!(seen.missing(), ["never-comes"]);
    let is_held = |tid| {
        follower
            .threads
            .get(&tid)
            .is_some_and(|it| it.restore.is_some())
    };
    assert!(
        is_held(first) && !is_held(again),
        "later ones are not followed"
    );
    assert!(is_held(one) && is_held(two));
}

#[test]
fn what_a_program_starts_is_its_own_before_it_is_found_and_a_stranger_is_not() {
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
    let (process, other) = (program.id(), stranger.id());
    let family = |children| Family::new(process, None, children);
    let places = || {
        let members = members();
        Box::new(Slotted {
            members,
            cpu: 0,
            passed: None,
        })
    };
    let seen = || Seen::new(Grade::Enforced);
    let [with, without] = [true, false].map(|children| {
        let mut request = request(Tid(process.cast_signed()));
        request.choice.children = children;
        let before_any_look = is_holders(&request, &family(children));
        let follower = Follower::new(&request, family(children), seen(), places());
        (follower, before_any_look)
    });
    let ranked = |pid: u32, parent, policy| ranked((pid, parent), Tid(pid.cast_signed()), policy);
    // It has ended since it was seen: such a number there never is.
    let child = ranked(u32::MAX / 2, process, Members::INSIDE);
    let its_parent_is_no_member = ranked(other, std::process::id(), Members::INSIDE);
    // That it has from nobody who is meant.
    let ranks_itself = ranked(u32::MAX / 2, process, Policy::Fifo(90));
    let found = [&with, &without].map(|(follower, before_any_look)| {
        let counts = |thread| {
            [
                is_above(thread, 0, |thread| follower.has(thread)),
                is_above(thread, 0, before_any_look),
            ]
        };
        [&child, &its_parent_is_no_member, &ranks_itself].map(counts)
    });
    for process in [&mut program, &mut stranger] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    // Who is not to be followed, and is not stopped either, takes from the slot.
    let expected = [[false, true, true], [true, true, true]];
    assert_eq!(found, expected.map(|row| row.map(|counts| [counts; 2])));
}

#[test]
fn what_a_program_starts_has_the_rank_that_the_program_has_outside_its_slots() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let process = program.id();
    let thread = Tid(process.cast_signed());
    sched::set_policy_inherited(thread, Policy::Fifo(85)).unwrap();
    let found = [true, false].map(|children| {
        let mut request = request(thread);
        request.choice.children = children;
        let places = Box::new(Slotted {
            members: members(),
            cpu: sched::affinity(thread).unwrap().iter().next().unwrap(),
            passed: None,
        });
        let family = Family::new(process, None, children);
        let seen = Seen::new(Grade::Enforced);
        let mut follower = Follower::new(&request, family, seen, places);
        follower.first().unwrap();
        // It is not found yet.
        let child = |rank| ranked((u32::MAX / 2, process), Tid(i32::MAX), Policy::Fifo(rank));
        [85, 86].map(|rank| follower.has(&child(rank)))
    });
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(found, [[true, false], [false; 2]]);
}

#[test]
fn by_the_kernel_a_thread_ought_to_have_just_what_is_reserved() {
    let two_of_eight = request(Tid(1)).hold.reservation;
    let ought = Policy::Deadline(two_of_eight.into());
    assert_eq!(taken_out(ought, ought), None);
    let own = Tid::current();
    let is = sched::policy(own).unwrap();
    assert_eq!(Reserving(two_of_eight).changed(own), taken_out(is, ought));
}
