//! What a process of another user writes in the memory that it was handed.

use std::process;
use std::sync::mpsc;
use std::time::Duration;

use laxity::now;
use laxity::upcalls::{Call, Region, Upcalls};
use laxity_linux::doctor::rights;
use laxity_model::program::together;
use rustix::process::{Uid, getuid};
use rustix::thread::futex::{Flags, wake};
use rustix::thread::{CapabilitySet, capabilities, set_thread_res_uid};

use crate::{HELD_UP, House, options, spec, went_on_where_it_was};

const NOBODY: u32 = 65_534;
const ROUNDS: usize = 2_000;
/// Where the region says how many seats are used; and whose turn it is, and how often that has changed.
const OF_REGION: [(u64, usize); 2] = [(24, 4), (64, 12)];
/// Where the seats begin, and where each says which thread it has, and how many rows are written.
const SEAT: (u64, usize) = (8, 8);
const SEATS_FROM: u64 = 128;

/// The process: every index and length in the memory is the largest that there is, again and again, and the guards are to look at that.
pub(crate) fn forge(region: &Region) {
    let nobody = Uid::from_raw(NOBODY);
    set_thread_res_uid(nobody, nobody, nobody).unwrap();
    println!("ready");
    let each = (size_of::<together::Region>() as u64 - SEATS_FROM) / together::SEATS as u64;
    let seats = (0..together::SEATS as u64).map(|seat| (SEATS_FROM + seat * each + SEAT.0, SEAT.1));
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
