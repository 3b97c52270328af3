//! What it takes to pass the baton between two processes on one processor, against a bare hand-over by a futex; and what of that is to write in the memory that they share, and to read it.
//!
//! `cargo bench -p laxity-linux --bench baton`. The two in turn in every round, on one memory, by real-time threads where that is permitted; median of 101 rounds: on a
//! shared machine the ratio of one run can be trusted, the nanoseconds less.

use std::error::Error;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Instant as Wall;

use laxity_linux::host::together::Region;
use laxity_linux::os::clock::now;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_model::executor::Claim;
use laxity_model::program::together::{Act, Member, Others as _};
use rustix::thread::futex::{self, Flags};

const ROUNDS: usize = 101;
/// Hand-overs of each of the two in a round.
const TIMES: u32 = 500;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--other") {
        let region = Region::attach(
            File::options()
                .read(true)
                .write(true)
                .open(&args[at + 1])?
                .into(),
        )?;
        return rounds(&region, 1).map(drop);
    }
    let region = Region::create()?;
    // The word of the third is for the bare hand-over.
    (0..3).for_each(|seat| region.gives(seat));
    let file = format!("/proc/{}/fd/{}", process::id(), region.as_fd().as_raw_fd());
    let mut other = Command::new(std::env::current_exe()?)
        .args(["--other", &file])
        .spawn()?;
    let (mut bare, mut baton): (Vec<f64>, Vec<f64>) = rounds(&region, 0)?.into_iter().unzip();
    other.wait()?;
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (bare, baton) = (median(&mut bare), median(&mut baton));
    let page = median(&mut pages()?);
    println!("| a bare hand-over by a futex | {bare:.0} ns | |");
    println!(
        "| the baton is passed | {baton:.0} ns | {:.2} × |",
        baton / bare
    );
    println!(
        "| the own claim is written, and another's read | {page:.0} ns | {:.2} × |",
        page / bare
    );
    Ok(())
}

/// What it takes to write the own claim and to read that of one who waits, in each round, in nanoseconds: so much of a hand-over is no system call.
fn pages() -> Outcome<Vec<f64>> {
    let region = Region::create()?;
    (0..2).for_each(|seat| region.gives(seat));
    let sit = |seat: u16| Member::sit(region.clone(), seat, u32::from(seat) + 1).ok_or("no seat");
    let (mut own, mut other) = (sit(0)?, sit(1)?);
    for member in [&mut own, &mut other] {
        publish(member);
        // The first gets the baton, and the second waits for it.
        let _ = member.wait(now());
    }
    if !own.holds() {
        return Err("no baton".into());
    }
    let round = |_| {
        let begin = Wall::now();
        (0..TIMES).for_each(|_| publish(&mut own));
        begin.elapsed().as_nanos() as f64 / f64::from(TIMES)
    };
    Ok((0..ROUNDS).map(round).collect())
}

/// What one hand-over took in each round, bare and by the baton, in nanoseconds.
fn rounds(region: &Region, own: u16) -> Outcome<Vec<(f64, f64)>> {
    let usable = sched::affinity(Tid::current())?;
    let processor = usable.iter().last().ok_or("no processor")?;
    sched::set_affinity(Tid::current(), &CpuSet::single(processor))?;
    if let Err(error) = sched::set_policy(Tid::current(), Policy::Fifo(90)) {
        eprintln!("not real-time: {error}");
    }
    let mut member = Member::sit(region.clone(), own, 1).ok_or("no seat")?;
    let word = region.word(2).ok_or("no word")?;
    let mut each = Vec::new();
    for _ in 0..ROUNDS {
        bare(word, own.into(), 2 * TIMES)?;
        let begin = Wall::now();
        bare(word, own.into(), 2 * TIMES)?;
        let middle = Wall::now();
        for _ in 0..TIMES {
            pass(region, &mut member, own)?;
        }
        if member.holds() {
            // Whichever of the two began: the other waits for its last turn.
            member.publish(now(), &mut std::iter::empty());
            if let Act::Wake(other) = member.wait(now()) {
                wake(region.word(other).ok_or("no word")?)?;
            }
        }
        let hand_over = |span: std::time::Duration| span.as_nanos() as f64 / f64::from(2 * TIMES);
        each.push((hand_over(middle - begin), hand_over(middle.elapsed())));
    }
    // The other is not waited for any more.
    if let Some(next) = member.leave(now()) {
        wake(region.word(next).ok_or("no word")?)?;
    }
    Ok(each)
}

fn wake(word: &AtomicU32) -> Outcome {
    futex::wake(word, Flags::empty(), 1)?;
    Ok(())
}

/// Two count up in turns, one the even numbers and the other the odd ones.
fn bare(word: &AtomicU32, own: u32, times: u32) -> Outcome {
    let mut left = times / 2;
    while left > 0 {
        let found = word.load(SeqCst);
        if found % 2 != own {
            let _ = futex::wait(word, Flags::empty(), found, None);
            continue;
        }
        word.store(found + 1, SeqCst);
        wake(word)?;
        left -= 1;
    }
    Ok(())
}

/// As an executor does it: it has the baton, looks, has something to do that was released after what the other has, says so, and waits for its turn.
fn pass(region: &Region, member: &mut Member<Region>, own: u16) -> Outcome {
    let word = region.word(own).ok_or("no word")?;
    let mut passed = false;
    publish(member);
    loop {
        match member.wait(now()) {
            Act::Go | Act::Took if passed => return Ok(()),
            Act::Go | Act::Took => {
                // The other is not there yet.
                rustix::thread::sched_yield();
                publish(member);
            }
            Act::Wake(other) => {
                passed = true;
                wake(region.word(other).ok_or("no word")?)?;
            }
            Act::Sleep { word: expected, .. } => {
                passed |= !member.holds();
                let _ = futex::wait(word, Flags::empty(), expected, None);
            }
            Act::Removed => return Err("its seat was taken away".into()),
        }
    }
}

fn publish(member: &mut Member<Region>) {
    let release = now();
    let claim = Claim {
        rank_ns: 1_000_000,
        release,
    };
    member.hear();
    member.is_turn(release, &mut [claim].into_iter());
    member.publish(release, &mut [claim].into_iter());
}
