//! What a process of another user writes in the memory that it was handed.

use std::sync::mpsc;
use std::time::Duration;
use std::{fs, process, thread};

use laxity::upcalls::{Call, Region, Upcalls, Watch, guard};
use laxity::{Grade, now};
use laxity_linux::doctor::rights;
use laxity_model::program::together::{self, Standing};
use rustix::process::{Uid, getuid};
use rustix::thread::futex::{Flags, wake};
use rustix::thread::{CapabilitySet, capabilities, set_thread_res_uid};

use crate::{HELD_UP, House, MS, options, spec, went_on_where_it_was};

const NOBODY: u32 = 65_534;
const ROUNDS: usize = 2_000;
/// Where the region says how many seats are used; and whose turn it is, and how often that has changed.
const OF_REGION: [(u64, usize); 2] = [(24, 4), (64, 12)];
/// Where the seats begin, and where each says which thread it has, and how many rows are written.
const SEAT: (u64, usize) = (8, 8);
const SEATS_FROM: u64 = 128;

/// Where this seat begins: there stands what it is.
fn begin_of(seat: u16) -> u64 {
    let each = (size_of::<together::Region>() as u64 - SEATS_FROM) / together::SEATS as u64;
    SEATS_FROM + u64::from(seat) * each
}

/// The process: every index and length in the memory is the largest that there is, again and again, and the guards are to look at that.
pub(crate) fn forge(region: &Region) {
    let nobody = Uid::from_raw(NOBODY);
    set_thread_res_uid(nobody, nobody, nobody).unwrap();
    println!("ready");
    let seats = (0..together::SEATS as u16).map(|seat| (begin_of(seat) + SEAT.0, SEAT.1));
    let places: Vec<(u64, usize)> = OF_REGION.into_iter().chain(seats).collect();
    for _ in 0..ROUNDS {
        for (at, length) in &places {
            let written = rustix::io::pwrite(region, &[0xff; 16][..*length], *at);
            assert_eq!(written, Ok(*length));
        }
        for word in region.guards() {
            wake(word, Flags::empty(), 1).unwrap();
        }
    }
    println!("{}", getuid().as_raw());
    println!("over");
}

/// It leads nobody to what is elsewhere, the turn that it forged is taken back, and who was called is called on.
#[test]
fn what_another_user_writes_leads_nobody_elsewhere_and_the_baton_goes_on() {
    let own = capabilities(None).unwrap().effective;
    if !own.contains(CapabilitySet::SETUID) {
        return rights::lacks("only root can become another user");
    }
    let Some(house) = House::open() else {
        return;
    };
    let seat = house.give(process::id());
    let number = seat.number;
    let upcalls = Upcalls::start(options(seat, house.processor)).unwrap();
    let (tell, told) = mpsc::channel();
    let beside = upcalls.create(spec("beside", 10, now()), move |_: &mut Call<'_>| {
        let _ = tell.send(());
    });
    let beside = beside.unwrap();
    beside.run().unwrap();
    let is_called = || told.recv_timeout(Duration::from_secs(60)).unwrap();
    // The watchdog knows its thread by then.
    is_called();
    let forger = house.start("forges");
    let forged = forger.seat;
    assert_eq!(forger.says(), [NOBODY.to_string()]);
    while told.try_recv().is_ok() {}
    (0..10).for_each(|_| is_called());
    let guard = &house.guard;
    assert_eq!(guard.removed(), []);
    drop((beside, upcalls));
    for seat in [number, forged] {
        guard.vacate(seat);
    }
    // It is guarded as before.
    let other = house.start("sleeps");
    house.is_held_up_for(HELD_UP);
    went_on_where_it_was(other);
}

/// An executor that waits, and of which somebody has written that it does not, would be called no more: its grade says so, and it goes on.
#[test]
fn who_is_silenced_is_told_so_by_its_grade_and_goes_on() {
    let Some(house) = House::open() else {
        return;
    };
    let seat = house.give(process::id());
    let number = seat.number;
    let upcalls = Upcalls::start(options(seat, house.processor)).unwrap();
    let own = house.region.thread(number).unwrap();
    // One that is on its way to sleep may say so once more, whatever is written meanwhile.
    let sleeps = || {
        let stat = fs::read_to_string(format!("/proc/self/task/{own}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('S')
    };
    let waits = || {
        let until = now() + MS * 60_000;
        while !sleeps() || house.region.standing(number) != Some(Standing::Waiting) {
            assert!(now() < until, "it waits again");
            thread::yield_now();
        }
    };
    for silent in [Standing::Left, Standing::Withdrawn] {
        waits();
        assert_eq!(upcalls.grade(), Grade::Enforced);
        waits();
        let bytes = (silent as u32).to_ne_bytes();
        let written = rustix::io::pwrite(&house.region, &bytes, begin_of(number));
        assert_eq!(written, Ok(bytes.len()));
        let Grade::Unenforced { reason } = upcalls.grade() else {
            panic!("it is called no more");
        };
        assert!(reason.contains("does not wait"), "{reason}");
    }
    waits();
    drop(upcalls);
    house.guard.vacate(number);
}

/// As where a coordinator is stopped, or has ended; until another one looks.
#[test]
fn who_is_guarded_by_nobody_is_told_so_by_its_grade() {
    let Some(house) = House::open() else {
        return;
    };
    let upcalls = Upcalls::start(options(house.give(process::id()), house.processor)).unwrap();
    assert_eq!(upcalls.grade(), Grade::Enforced);
    let House {
        region,
        guard: first,
        processor,
        _live,
        ..
    } = house;
    drop(first);
    let until = now() + MS * 60_000;
    let reason = loop {
        if let Grade::Unenforced { reason } = upcalls.grade() {
            break reason;
        }
        assert!(now() < until, "nobody looks");
    };
    assert!(reason.contains("does not look"), "{reason}");
    let _guard = guard(&region, processor, Watch::default()).unwrap();
    assert_eq!(upcalls.grade(), Grade::Enforced);
}
