//! Upcalls that a descriptor releases, beside others of other seats.

use std::io::{PipeReader, Read as _, Write as _};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::{fs, io, process, thread};

use laxity::upcalls::{Call, Guard, Options, Pace, Rank, Region, Spec, State, Upcall, Upcalls};
use laxity::{Instant, Service, Span, now};

use crate::{House, MS, options, spin};

/// It reads a byte at each call; where there is no more, it suspends itself from the third such call on.
struct Fed {
    upcall: Upcall,
    /// What each call has read, and when it was released.
    told: Receiver<(Option<u8>, Instant)>,
}

impl Fed {
    fn new(upcalls: &Upcalls, reader: PipeReader, period: Span) -> Self {
        let mut taken = reader.try_clone().unwrap();
        let mut spec = Spec::each(period, Service::from_micros(100));
        spec.name = "fed".to_owned();
        spec.pace = Pace::Descriptor(Arc::new(OwnedFd::from(reader)));
        let (tell, told) = mpsc::channel();
        let mut ends = 0;
        let upcall = upcalls.create(spec, move |call: &mut Call<'_>| {
            let mut byte = [0];
            let count = taken.read(&mut byte).unwrap();
            ends += u32::from(count == 0);
            if ends >= 3 {
                call.suspend();
            }
            let read = (count > 0).then_some(byte[0]);
            // The last of them is heard by nobody.
            let _ = tell.send((read, call.paced.release));
        });
        let upcall = upcall.unwrap();
        upcall.run().unwrap();
        Self { upcall, told }
    }
}

/// The numbers of the threads of this name, and how many hundredths of a second each has had.
fn had(name: &str) -> Vec<(String, u64)> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |task: io::Result<fs::DirEntry>| {
        let path = task.ok()?.path();
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let (named, rest) = stat.rsplit_once(')')?;
        let is_it = named.ends_with(&format!("({name}"));
        let numbers: Vec<&str> = rest.split_whitespace().collect();
        let ticks = numbers
            .get(11..13)?
            .iter()
            .map(|ticks| ticks.parse::<u64>());
        let ticks = ticks.sum::<Result<u64, _>>().ok()?;
        is_it.then(|| (path.display().to_string(), ticks))
    };
    tasks.filter_map(of).collect()
}

/// An ordinary thread, which needs no right.
fn executor(guard: &Guard, name: &str) -> Upcalls {
    let options = Options {
        name: name.to_owned(),
        rank: Rank::Fair,
        together: guard.give(process::id()).map(Into::into),
        ..Options::default()
    };
    Upcalls::start(options).unwrap()
}

/// Ten units every 10 ms, a look after each; each call is told.
fn busy(upcalls: &Upcalls) -> (Upcall, Receiver<()>) {
    let mut spec = Spec::each(MS * 10, Service::from_micros(300));
    spec.timing.batch = NonZeroU32::new(10).unwrap();
    let (tell, told) = mpsc::channel();
    let busy = upcalls.create(spec, move |call: &mut Call<'_>| {
        spin(Span::from_micros(300));
        if call.done() == 0 {
            let _ = tell.send(());
        }
    });
    let busy = busy.unwrap();
    busy.run().unwrap();
    (busy, told)
}

#[test]
fn each_byte_comes_to_a_call_and_who_does_not_read_keeps_nobody_busy() {
    let guard = Guard::without_threads(&Region::create().unwrap());
    let (one, other) = (executor(&guard, "hung-up"), executor(&guard, "busy"));
    let (_busy, calls) = busy(&other);
    let (reader, mut writer) = io::pipe().unwrap();
    let period = MS * 2;
    let fed = Fed::new(&one, reader, period);
    for byte in 0..100 {
        writer.write_all(&[byte]).unwrap();
        assert_eq!(fed.told.recv().unwrap().0, Some(byte));
    }
    writer.write_all(b"abcde").unwrap();
    let five: Vec<(Option<u8>, Instant)> = fed.told.iter().take(5).collect();
    let read: Vec<u8> = five.iter().filter_map(|(read, _)| *read).collect();
    assert_eq!(read, b"abcde");
    drop(writer);
    one.sleep(&[&fed.upcall]).unwrap();
    let ends: Vec<(Option<u8>, Instant)> = fed.told.try_iter().collect();
    assert_eq!(ends.iter().filter(|(read, _)| read.is_none()).count(), 3);
    let all: Vec<Instant> = five.iter().chain(&ends).map(|(_, at)| *at).collect();
    assert!(all.windows(2).all(|two| two[1] >= two[0] + period));
    assert_eq!(fed.upcall.counts().calls, 108);
    // The end of it is there still, and nobody is called for that, nor looks at it: not while it is suspended, nor when it is closed.
    let mut fed = Some(fed);
    for closes in [false, true] {
        if closes {
            let closed = fed.take().unwrap().upcall.close().unwrap();
            assert_eq!(closed.calls, 108);
        }
        let before = had("hung-up.fed");
        assert_eq!(before.len(), 1, "{before:?}");
        calls.try_iter().for_each(drop);
        // 0.3 s, in which one that is not to be at work may have a tenth.
        assert_eq!(calls.iter().take(31).count(), 31);
        let more = had("hung-up.fed")[0].1 - before[0].1;
        assert!(more <= 3, "{more} hundredths");
    }
    // What has its place is fed by what is its own.
    let (reader, mut writer) = io::pipe().unwrap();
    let next = Fed::new(&one, reader, period);
    writer.write_all(b"n").unwrap();
    assert_eq!(next.told.recv().unwrap().0, Some(b'n'));
    drop(next);
    drop(one);
    // A thread that was joined may be there for a moment.
    while !had("hung-up.fed").is_empty() {
        thread::yield_now();
    }
}

/// As where an executor is alone.
#[test]
fn what_is_always_there_to_read_releases_once_a_period() {
    let guard = Guard::without_threads(&Region::create().unwrap());
    let upcalls = executor(&guard, "filed");
    let mut spec = Spec::each(MS, Service::from_micros(1));
    // The kernel waits for no file.
    let file = tempfile::tempfile().unwrap();
    spec.pace = Pace::Descriptor(Arc::new(file.into()));
    let (tell, told) = mpsc::channel();
    let fed = upcalls.create(spec, move |call: &mut Call<'_>| {
        let _ = tell.send(call.paced.release);
    });
    let fed = fed.unwrap();
    fed.run().unwrap();
    let all: Vec<Instant> = told.iter().take(5).collect();
    assert!(all.windows(2).all(|two| two[1] >= two[0] + MS));
    assert_eq!(fed.state(), State::Active);
    fed.suspend().unwrap();
    let calls = fed.counts().calls;
    fed.suspend().unwrap();
    assert_eq!(fed.counts().calls, calls);
}

#[test]
fn it_is_called_while_another_process_is_at_work() {
    let Some(house) = House::open() else {
        return;
    };
    let other = house.start("calls 2 3 4");
    let seat = house.give(process::id());
    let upcalls = Upcalls::start(options(seat, house.processor)).unwrap();
    let (reader, mut writer) = io::pipe().unwrap();
    let fed = Fed::new(&upcalls, reader, MS);
    let (mut byte, mut beside) = (0_u8, 0);
    while now() < house.first + MS * 400 {
        writer.write_all(&[byte]).unwrap();
        let (read, release) = fed.told.recv().unwrap();
        assert_eq!(read, Some(byte));
        byte = byte.wrapping_add(1);
        beside += u32::from(release >= house.first);
    }
    assert!(beside >= 40, "{beside} calls");
    drop(writer);
    upcalls.sleep(&[&fed.upcall]).unwrap();
    let said = other.says();
    assert!(said.len() > 100, "{} calls", said.len());
}
