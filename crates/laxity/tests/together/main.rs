//! Upcalls of several processes that take turns on one processor: this test is the process that guards them, and starts itself again as the others.

mod alone;
mod fed;
mod forged;
mod halts;
mod held;
mod hits;

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::num::NonZeroU32;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::{env, fs, io, process};

use laxity::upcall::First;
use laxity::upcalls::{
    Call, Guard, Options, Rank, Region, Seat, Spec, Upcall, Upcalls, Watch, guard,
};
use laxity::{Instant, Service, Span, now};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_model::program::together::{Standing, detection};
use rustix::process::{Pid, Signal, kill_process};

use forged::forge;
use halts::Halts;
use hits::{CANNOT, FORKED, Tracer, befallen};

const MS: Span = Span::from_millis(1);
const NAP: Span = Span::from_millis(4);
/// One that dies, stops or sleeps holds others up for no longer.
const HELD_UP: Span = MS;
/// What a process is told that this test starts.
const TOLD: &str = "LAXITY_TEST_TOGETHER";

/// A region, and who guards it.
struct House {
    region: Region,
    guard: Guard,
    processor: usize,
    first: Instant,
    _live: LiveTest,
}

/// A process that was started.
struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seat: u16,
}

impl House {
    fn open() -> Option<Self> {
        let live = rights::require(&[Right::RealTime])?;
        let processor = sched::affinity(Tid::current()).unwrap().iter().last();
        let processor = processor.unwrap();
        let region = Region::create().unwrap();
        Some(Self {
            guard: guard(&region, processor, Watch::default()).unwrap(),
            region,
            processor,
            first: now() + MS * 1_000,
            _live: live,
        })
    }

    fn give(&self, to: u32) -> Seat {
        self.guard.give(to).unwrap()
    }

    /// Another process, which does this, and is ready for it.
    fn start(&self, does: &str) -> Other {
        let (own, file) = (process::id(), self.region.as_fd().as_raw_fd());
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["another_process", "--exact", "--nocapture"]);
        let (processor, first) = (self.processor, self.first.as_nanos());
        command.env(
            TOLD,
            format!("/proc/{own}/fd/{file} {processor} {first} {does}"),
        );
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let seat = self.give(child.id()).number;
        writeln!(child.stdin.as_mut().unwrap(), "{seat}").unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut other = Other { child, lines, seat };
        while other.line() != "ready" {}
        other
    }

    /// So many calls of an upcall of this process, 50 ms apart.
    fn own(&self, most: u64) -> Seen {
        let seat = self.give(process::id());
        let number = seat.number;
        let upcalls = Upcalls::start(options(seat, self.processor)).unwrap();
        let mut left = most;
        let (tell, told) = mpsc::channel();
        let upcall = upcalls.create(spec("own", 50, self.first), move |call: &mut Call<'_>| {
            tell.send([call.paced.release, call.began]).unwrap();
            left -= 1;
            if left == 0 {
                call.suspend();
            }
        });
        let upcall = upcall.unwrap();
        let (counts, halts) = Halts::during(self.processor, || {
            upcall.run().unwrap();
            upcalls.sleep(&[&upcall]).unwrap();
            upcall.close().unwrap()
        });
        assert_eq!(counts.calls, most);
        drop(upcalls);
        self.guard.vacate(number);
        let calls: Vec<[Instant; 2]> = told.iter().collect();
        let late = calls
            .iter()
            .map(|[due, began]| began.saturating_since(*due));
        assert_eq!(late.max(), Some(counts.most_late));
        let held_up = calls.iter().map(|[due, began]| halts.beyond(*due, *began));
        let held_up = held_up.max().unwrap();
        eprintln!("latest by {}, {held_up} beyond halts", counts.most_late);
        Seen {
            missed: counts.missed,
            held_up,
        }
    }

    /// Of its own upcall no release is missed meanwhile, and none begins later than so much after.
    fn is_held_up_for(&self, at_most: Span) {
        self.own(12).is_held_up_for(at_most);
    }
}

/// What became of the calls of an upcall.
struct Seen {
    /// How many releases came to nothing.
    missed: u64,
    /// How much later than its release one began at most, halts of the machine apart.
    held_up: Span,
}

impl Seen {
    fn is_held_up_for(&self, at_most: Span) {
        assert_eq!(self.missed, 0);
        let held_up = self.held_up;
        assert!(held_up <= at_most + Halts::UNSEEN, "held up for {held_up}");
    }
}

impl Other {
    fn line(&mut self) -> String {
        self.lines.next().expect("it says more").unwrap()
    }

    /// What it says until its end.
    fn says(mut self) -> Vec<String> {
        let said = self.lines.by_ref().map(Result::unwrap);
        let said = said.take_while(|line| line != "over").collect();
        self.child.wait().unwrap();
        said
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn options(seat: Seat, processor: usize) -> Options {
    Options {
        rank: Rank::Fifo {
            priority: 90,
            processor: Some(processor),
        },
        together: Some(seat.into()),
        ..Options::default()
    }
}

fn spec(name: &str, millis: u64, first: Instant) -> Spec {
    let mut spec = Spec::each(MS * millis, Service::from_micros(400));
    (spec.name, spec.timing.first) = (name.to_owned(), First::At(first));
    spec
}

fn spin(span: Span) {
    let until = now() + span;
    while now() < until {}
}

/// One of the processes, where this test is started as that.
#[test]
fn another_process() {
    let Ok(told) = env::var(TOLD) else {
        return;
    };
    let told: Vec<&str> = told.split(' ').collect();
    let [file, processor, first, does @ ..] = &told[..] else {
        panic!("{told:?}");
    };
    let file = fs::File::options().read(true).write(true).open(file);
    let region = Region::attach(file.unwrap().into()).unwrap();
    let mut number = String::new();
    io::stdin().read_line(&mut number).unwrap();
    let number = number.trim().parse().unwrap();
    if does == ["forges"] {
        return forge(&region);
    }
    let upcalls = Upcalls::start(options(Seat { region, number }, processor.parse().unwrap()));
    let first = Instant::from_nanos(first.parse().unwrap());
    match does {
        ["calls", periods @ ..] => calls(&upcalls.unwrap(), first, periods),
        ["long"] => long(&upcalls.unwrap(), first),
        [hit] => befallen(&upcalls.unwrap(), first, hit),
        other => panic!("{other:?}"),
    }
    println!("over");
}

/// Upcalls of these periods until 400 ms are over; each call is told.
fn calls(upcalls: &Upcalls, first: Instant, periods: &[&str]) {
    let (tell, told) = mpsc::channel();
    let upcall = |period: &&str| {
        let period: u64 = period.parse().unwrap();
        let tell = tell.clone();
        let upcall = upcalls.create(spec("upcall", period, first), move |call: &mut Call<'_>| {
            spin(Span::from_micros(300));
            let times = [call.paced.release, call.began, now()].map(Instant::as_nanos);
            tell.send((period, times)).unwrap();
            if call.paced.release >= first + MS * 400 {
                call.end();
            }
        });
        upcall.unwrap()
    };
    let all: Vec<Upcall> = periods.iter().map(upcall).collect();
    all.iter().for_each(|upcall| upcall.run().unwrap());
    println!("ready");
    for upcall in &all {
        upcalls.sleep(&[upcall]).unwrap();
    }
    for (period, [release, began, ended]) in told.try_iter() {
        println!("{period} {release} {began} {ended}");
    }
}

/// A call of many quanta, which begins just before something befalls another process.
fn long(upcalls: &Upcalls, first: Instant) {
    let (tell, told) = mpsc::channel();
    let mut spec = spec("long", 80, first + MS * 95);
    spec.timing.batch = NonZeroU32::new(60).unwrap();
    let upcall = upcalls.create(spec, move |call: &mut Call<'_>| {
        tell.send(now()).unwrap();
        spin(Span::from_micros(300));
        if call.done() == 59 {
            call.end();
        }
    });
    let upcall = upcall.unwrap();
    upcall.run().unwrap();
    println!("ready");
    upcalls.sleep(&[&upcall]).unwrap();
    for began in told.try_iter() {
        println!("{}", began.as_nanos());
    }
}

#[test]
fn upcalls_of_several_processes_run_in_one_order_one_at_a_time() {
    let Some(house) = House::open() else {
        return;
    };
    let others = ["calls 10 40", "calls 20 80"].map(|does| house.start(does));
    let said: Vec<String> = others.into_iter().flat_map(Other::says).collect();
    let numbers = |line: &String| {
        let numbers = line.split(' ').map(|number| number.parse().unwrap());
        <[u64; 4]>::try_from(numbers.collect::<Vec<_>>()).unwrap()
    };
    let mut all: Vec<[u64; 4]> = said.iter().map(numbers).collect();
    all.sort_by_key(|call| call[2]);
    assert!(all.len() > 40, "{all:?}");
    for pair in all.windows(2) {
        assert!(pair[0][3] <= pair[1][2], "two at once: {pair:?}");
    }
    for at in 0..5_u64 {
        let release = (house.first + MS * 80 * at).as_nanos();
        let together = all.iter().filter(|call| call[1] == release);
        let periods: Vec<u64> = together.map(|call| call[0]).collect();
        assert_eq!(periods, [10, 20, 40, 80], "at {at}");
    }
}

/// What befalls another process makes no upcall of this one miss, nor begin later than so much after its release.
fn holds_up_for(hit: &str, at_most: Span) -> Option<(House, Other)> {
    let house = House::open()?;
    let other = house.start(hit);
    house.is_held_up_for(at_most);
    Some((house, other))
}

fn holds_up_nobody(hit: &str) -> Option<(House, Other)> {
    holds_up_for(hit, HELD_UP)
}

/// What was interrupted was over before anything more urgent of its own process began.
fn went_on_where_it_was(other: Other) {
    it_went_on(&other.says());
}

fn it_went_on(said: &[String]) {
    if let Some(why) = said.iter().find_map(|line| line.strip_prefix(CANNOT)) {
        return rights::skip(why);
    }
    let hit = said.iter().position(|line| line == "hit");
    let hit = hit.unwrap_or_else(|| panic!("it was not hit: {said:?}"));
    assert_eq!(said[hit + 1], "back", "{said:?}");
    assert_eq!(said.last().map(|line| &**line), Some("true"), "{said:?}");
}

#[test]
fn a_process_that_sleeps_in_a_handler_holds_up_nobody_and_goes_on_where_it_was() {
    if let Some((_house, other)) = holds_up_nobody("sleeps") {
        went_on_where_it_was(other);
    }
}

/// It asks the kernel for nothing, and sleeps.
#[test]
fn nor_does_one_whose_handler_waits_for_a_page() {
    if let Some((_house, other)) = holds_up_nobody("faults") {
        went_on_where_it_was(other);
    }
}

#[test]
fn nor_does_one_whose_handler_forks_and_the_child_ends_with_its_quantum() {
    let Some(house) = House::open() else {
        return;
    };
    let other = house.start("forks");
    let seen = house.own(12);
    let mut said = other.says();
    let forked = |line: &String| line.strip_prefix(FORKED)?.parse().ok();
    let took = Span::from_nanos(said.iter().find_map(forked).unwrap());
    // It is copied with all of its memory: on a slow machine that takes longer than a handler may, and its seat is rightly lost.
    let lost = said.last().map(|line| &**line) == Some("false");
    if lost && took > Watch::default().longest.as_dedicated_span() {
        return rights::skip(&format!("a fork takes {took} here"));
    }
    seen.is_held_up_for(HELD_UP.max(took));
    said.retain(|line| !line.starts_with(FORKED));
    it_went_on(&said);
}

#[test]
fn a_process_that_is_stopped_holds_up_nobody_and_goes_on_where_it_was() {
    let Some((_house, other)) = holds_up_nobody("stops") else {
        return;
    };
    let stopped = Pid::from_raw(other.child.id().cast_signed()).unwrap();
    kill_process(stopped, Signal::CONT).unwrap();
    went_on_where_it_was(other);
}

#[test]
fn nor_does_one_that_a_debugger_stops() {
    let Some(house) = House::open() else {
        return;
    };
    let other = house.start("traced");
    let Some(tracer) = Tracer::seize(house.region.thread(other.seat).unwrap()) else {
        return rights::skip("processes may not be traced here");
    };
    house.is_held_up_for(HELD_UP);
    tracer.lets_go();
    went_on_where_it_was(other);
}

#[test]
fn a_process_that_is_killed_holds_up_nobody_and_its_seat_is_free_again() {
    let Some((house, mut other)) = holds_up_nobody("dies") else {
        return;
    };
    other.child.wait().unwrap();
    house.guard.vacate(other.seat);
    assert_eq!(house.region.standing(other.seat), Some(Standing::Free));
    assert_eq!(house.own(3).missed, 0);
}

/// One that does not come back either.
#[test]
fn a_program_that_a_handler_executes_is_stopped() {
    let at_most = detection(Watch::default().longest) * 2;
    let Some((house, other)) = holds_up_for("execs", at_most) else {
        return;
    };
    // Nobody of it comes back.
    assert_eq!(house.region.standing(other.seat), Some(Standing::Removed));
    assert_ne!(house.region.turn().seat(), Some(other.seat));
    let first = Tid(other.child.id().cast_signed());
    assert_eq!(sched::policy(first), Ok(Policy::Other { nice: 0 }));
}

/// Of one that does not come back, whatever it did before.
fn is_removed(hit: &str) {
    // Between two looks it must have had more than it may: where looking and the test's own thread take a part of that, it takes looks more.
    let at_most = detection(Watch::default().longest) * 2;
    let Some((house, other)) = holds_up_for(hit, at_most) else {
        return;
    };
    assert_eq!(house.guard.removed(), [(other.seat, None)]);
    assert_eq!(house.region.standing(other.seat), Some(Standing::Removed));
    let thread = house.region.thread(other.seat).unwrap();
    let policy = sched::policy(Tid(thread.cast_signed())).unwrap();
    assert!(matches!(policy, Policy::Other { .. }), "{policy}");
    // Its process is told when it comes back.
    let said = other.says();
    let told = said.iter().any(|line| line.contains("taken away"));
    assert!(
        told && said.last().map(|line| &**line) == Some("false"),
        "{said:?}"
    );
}

#[test]
fn a_handler_that_does_not_come_back_loses_its_seat_and_its_rank() {
    is_removed("spins");
}

#[test]
fn so_does_one_that_sleeps_before() {
    is_removed("strays");
}

#[test]
fn an_urgent_upcall_of_one_that_comes_back_waits_for_a_quantum_of_another() {
    let Some(house) = House::open() else {
        return;
    };
    let [naps, long] = ["naps", "long"].map(|does| house.start(does));
    let quanta: Vec<u64> = long
        .says()
        .iter()
        .map(|line| line.parse().unwrap())
        .collect();
    let said = naps.says();
    let numbers = |line: &str, of: &str| -> Option<Vec<u64>> {
        let numbers = line.strip_prefix(of)?.split_whitespace();
        Some(numbers.map(|number| number.parse().unwrap()).collect())
    };
    let back = said.iter().find_map(|line| numbers(line, "naps ")).unwrap()[0];
    for call in said.iter().filter_map(|line| numbers(line, "fast ")) {
        // One is at work when the process comes back, and one when the upcall is released.
        let ready = call[0].max(back);
        let between = quanta
            .iter()
            .filter(|began| (ready..call[1]).contains(began));
        assert!(between.count() <= 1, "{call:?} after {back}: {quanta:?}");
    }
    assert_eq!(quanta.len(), 60);
}

/// So the tests above can fail.
#[test]
fn without_a_guard_one_that_sleeps_holds_up_all() {
    let Some(mut house) = House::open() else {
        return;
    };
    house.guard = Guard::without_threads(&house.region);
    let _other = house.start("sleeps");
    let seen = house.own(12);
    assert!(seen.missed > 0);
    let held_up = seen.held_up;
    assert!(held_up > HELD_UP + Halts::UNSEEN, "held up for {held_up}");
}
