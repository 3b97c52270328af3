//! What a message of 64 bytes takes from one process to another and back by two rings, against a bare ring and a futex of a few lines; and what it takes to send one to who is awake.
//!
//! `cargo bench -p laxity-linux --bench rings`. The two in turn in every round, by real-time threads where that is permitted, on one processor and on two; median of 51 rounds: on a
//! shared machine the ratio of one run can be trusted, the nanoseconds less.
#![allow(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Instant as Wall;

use laxity_linux::host::ring::Ring;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_model::channels::ring::{Receiver, Sender, Shape, Side, Tag};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex::{self, Flags};

const ROUNDS: usize = 51;
/// Round trips by each of the two in a round.
const TIMES: usize = 400;
/// Messages that are sent to who is awake.
const SENDS: usize = 100_000;
const BYTES: usize = 64;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--other") {
        return other(&args[at + 1..]);
    }
    let usable: Vec<usize> = sched::affinity(Tid::current())?.iter().collect();
    let (first, last) = (usable[0], usable[usable.len() - 1]);
    println!("| 64 B | a bare ring | a ring | ratio of the rounds: median (least, most) |");
    round_trips("there and back on one processor", first, first)?;
    if first != last {
        round_trips("there and back across two", first, last)?;
        sends(first, last)?;
    }
    Ok(())
}

/// What each process has.
struct Both {
    sender: Sender<Ring>,
    receiver: Receiver<Ring>,
    bare: &'static [Bare; 2],
    /// Which of the two it is.
    own: usize,
}

/// A process, the other one, and what this one has.
fn start(what: &str, processor: usize) -> Outcome<(Both, Child)> {
    let shape = Shape::new(64, BYTES as u32)?;
    let (sending, [there, bell]) = Ring::create(shape, Side::Sender)?;
    let (receiving, [back, _back_bell]) = Ring::create(shape, Side::Receiver)?;
    let memory = memfd_create("bare", MemfdFlags::CLOEXEC)?;
    ftruncate(&memory, size_of::<[Bare; 2]>() as u64)?;
    let path = |of: &OwnedFd| format!("/proc/{}/fd/{}", process::id(), of.as_raw_fd());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--other", what, &processor.to_string()]);
    command.args([path(&there), path(&back), path(&memory)]);
    // Nobody waits for a descriptor here: one socket serves for both rings.
    let mut child = command
        .stdin(Stdio::from(bell))
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let both = Both {
        sender: sending.sender(),
        receiver: receiving.receiver(),
        bare: bare(&memory)?,
        own: 0,
    };
    Ok((both, child))
}

/// The other process.
fn other(told: &[String]) -> Outcome {
    let [what, processor, there, back, memory] = told else {
        return Err("five words are needed".into());
    };
    prepare(processor.parse()?, what == "trips")?;
    let open = |path: &String| -> Outcome<OwnedFd> {
        Ok(File::options().read(true).write(true).open(path)?.into())
    };
    let shape = Shape::new(64, BYTES as u32)?;
    let bell = || std::io::stdin().as_fd().try_clone_to_owned();
    let mut both = Both {
        receiver: Ring::attach(shape, Side::Receiver, [open(there)?, bell()?])?.receiver(),
        sender: Ring::attach(shape, Side::Sender, [open(back)?, bell()?])?.sender(),
        bare: bare(&open(memory)?)?,
        own: 1,
    };
    println!("ready");
    std::io::stdout().flush()?;
    if what == "trips" {
        return both.rounds().map(drop);
    }
    let mut bytes = [0; BYTES];
    let mut count = 0;
    while count < SENDS {
        count += usize::from(both.receiver.receive(&mut bytes)?.is_some());
        std::hint::spin_loop();
    }
    Ok(())
}

fn prepare(processor: usize, is_urgent: bool) -> Outcome {
    sched::set_affinity(Tid::current(), &CpuSet::single(processor))?;
    if is_urgent && let Err(error) = sched::set_policy(Tid::current(), Policy::Fifo(90)) {
        eprintln!("not real-time: {error}");
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn round_trips(what: &str, own: usize, other: usize) -> Outcome {
    let (mut both, mut child) = start("trips", other)?;
    prepare(own, true)?;
    let rounds = both.rounds()?;
    child.wait()?;
    sched::set_policy(Tid::current(), Policy::Other { nice: 0 })?;
    let (mut bare, mut ring): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
    let mut ratios: Vec<f64> = rounds.iter().map(|(bare, ring)| ring / bare).collect();
    let ratio = median(&mut ratios);
    println!(
        "| {what} | {:.0} ns | {:.0} ns | {ratio:.2} ({:.2}, {:.2}) |",
        median(&mut bare),
        median(&mut ring),
        ratios[0],
        ratios[ratios.len() - 1]
    );
    Ok(())
}

/// Each send by itself, with a reading of the clock.
fn sends(own: usize, other: usize) -> Outcome {
    let (mut both, mut child) = start("sends", other)?;
    prepare(own, false)?;
    let bytes = [7; BYTES];
    let mut took = Vec::new();
    while took.len() < SENDS {
        if both.sender.ready().is_err() {
            std::hint::spin_loop();
            continue;
        }
        let begin = Wall::now();
        both.sender.send(&bytes, Tag::default())?;
        took.push(begin.elapsed().as_nanos() as f64);
    }
    child.wait()?;
    let middle = median(&mut took);
    println!(
        "| sent to who is awake | | {middle:.0} ns (99 %: {:.0}) | |",
        took[took.len() / 100 * 99]
    );
    Ok(())
}

impl Both {
    /// What a round trip took in each round, bare and by rings, in nanoseconds.
    fn rounds(&mut self) -> Outcome<Vec<(f64, f64)>> {
        let mut each = Vec::new();
        let mut bytes = [7; BYTES];
        let [there, back] = self.bare;
        let (mut sent, mut taken) = (0, 0);
        for _ in 0..ROUNDS {
            let begin = Wall::now();
            for _ in 0..TIMES {
                if self.own == 0 {
                    there.send(&mut sent, &bytes)?;
                    back.receive(&mut taken, &mut bytes)?;
                } else {
                    there.receive(&mut taken, &mut bytes)?;
                    back.send(&mut sent, &bytes)?;
                }
            }
            let middle = Wall::now();
            for _ in 0..TIMES {
                if self.own == 0 {
                    self.sender.send(&bytes, Tag::default())?;
                    self.receive(&mut bytes)?;
                } else {
                    self.receive(&mut bytes)?;
                    self.sender.send(&bytes, Tag::default())?;
                }
            }
            let trip = |span: std::time::Duration| span.as_nanos() as f64 / TIMES as f64;
            each.push((trip(middle - begin), trip(middle.elapsed())));
        }
        Ok(each)
    }

    fn receive(&mut self, bytes: &mut [u8; BYTES]) -> Outcome {
        let taken = self.receiver.wait(None)?.ok_or("nothing came")?;
        self.receiver.copy(&taken, 0, bytes);
        self.receiver.give_back(taken);
        Ok(())
    }
}

/// One way of the bare ring, of which no more than one message is under way: nothing is checked, and no buffer is given back.
#[repr(C, align(128))]
struct Bare {
    head: AtomicU32,
    asleep: AtomicU32,
    slots: [[AtomicU64; BYTES / 8]; 16],
}

fn bare(memory: &OwnedFd) -> Outcome<&'static [Bare; 2]> {
    let (bytes, both) = (size_of::<[Bare; 2]>(), ProtFlags::READ | ProtFlags::WRITE);
    let anywhere = std::ptr::null_mut();
    // SAFETY: a new mapping, which overlaps nothing and is never unmapped; of this size, aligned to a page, and all atomic.
    unsafe {
        let address = mmap(anywhere, bytes, both, MapFlags::SHARED, memory, 0)?;
        Ok(&*address.cast())
    }
}

impl Bare {
    fn send(&self, sent: &mut u32, bytes: &[u8; BYTES]) -> Outcome {
        let slot = &self.slots[*sent as usize % self.slots.len()];
        for (word, bytes) in slot.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        *sent = sent.wrapping_add(1);
        self.head.store(*sent, Release);
        fence(SeqCst);
        if self.asleep.load(Relaxed) != 0 && self.asleep.swap(0, Relaxed) != 0 {
            futex::wake(&self.asleep, Flags::empty(), 1)?;
        }
        Ok(())
    }

    fn receive(&self, taken: &mut u32, bytes: &mut [u8; BYTES]) -> Outcome {
        while self.head.load(Acquire) == *taken {
            self.asleep.store(1, Relaxed);
            fence(SeqCst);
            if self.head.load(Acquire) == *taken {
                let _ = futex::wait(&self.asleep, Flags::empty(), 1, None);
            }
        }
        let slot = &self.slots[*taken as usize % self.slots.len()];
        for (word, bytes) in slot.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        *taken = taken.wrapping_add(1);
        Ok(())
    }
}
