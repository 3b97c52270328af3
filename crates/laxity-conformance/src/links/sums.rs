//! That memory is never lost nor doubled, and that what is lost is counted.

use std::collections::VecDeque;

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::link::{Left, Link, LinkError, Memory};

use super::frames::Frame;
use super::{Wire, arrives, memory, post, post_many, send, until, wrong};
use crate::{Failure, Result, ensure};

pub(super) fn as_posted<W: Wire>(wire: &mut W) -> Result {
    const POSTED: u32 = 10;
    const SENT: u32 = 25;
    let before = wire.far().losses().no_room;
    post_many(wire.far(), POSTED as usize)?;
    for number in 0..SENT {
        send(wire, W::near, Frame::new(number, 100))?;
    }
    for number in 0..POSTED {
        arrives(wire, W::far, Frame::new(number, 100))?;
    }
    lost(wire, before + u64::from(SENT - POSTED))
}

/// So many are lost for want of memory at the far end, by its count, and no more come.
fn lost<W: Wire>(wire: &mut W, losses: u64) -> Result {
    until(wire, "the count of what was lost", |wire, now| {
        let received = wire.far().receive(now);
        let received = received.map_err(|error| wrong("receive", &error))?;
        ensure!(received.is_none(), "a packet without memory for it");
        let counted = wire.far().losses().no_room;
        ensure!(
            counted <= losses,
            "{counted} were counted as lost, of {losses}"
        );
        Ok((counted == losses).then_some(()))
    })
}

pub(super) fn without_memory<W: Wire>(wire: &mut W) -> Result {
    let before = wire.far().losses().no_room;
    for number in 0..20 {
        send(wire, W::near, Frame::new(number, 100))?;
    }
    lost(wire, before + 20)?;
    // With memory the next one comes.
    post_many(wire.far(), 1)?;
    send(wire, W::near, Frame::new(20, 100))?;
    arrives(wire, W::far, Frame::new(20, 100)).map(drop)
}

pub(super) fn told_once<W: Wire>(wire: &mut W) -> Result {
    let reach = wire.near().facts().reach;
    let mut left: VecDeque<_> = memory(wire.near(), reach)?.into();
    let (mut sent, mut told) = (0, 0);
    until(wire, "word of what has left", |wire, now| {
        if let Some(mut memory) = left.pop_front() {
            Frame::new(sent, 100).write(memory.bytes_mut());
            let taken = wire.near().send(memory, 100, now);
            taken.map_err(|(_, error)| wrong("send", &error))?;
            sent += 1;
        }
        told += u32::from(wire.near().sent(now).is_some());
        Ok((left.is_empty() && told == sent).then_some(()))
    })?;
    for _ in 0..10 {
        wire.pass();
        let now = wire.now();
        ensure!(
            wire.near().sent(now).is_none(),
            "one more was told than sent"
        );
    }
    Ok(())
}

pub(super) fn reach<W: Wire>(wire: &mut W) -> Result {
    let reach = wire.near().facts().reach;
    ensure!(reach >= 1, "nothing can be sent");
    let mut all = memory(wire.near(), reach + 1)?;
    let one_more = all.pop();
    let now = wire.now();
    for mut memory in all {
        Frame::new(0, 100).write(memory.bytes_mut());
        let sent = wire.near().send(memory, 100, now);
        sent.map_err(|(_, error)| wrong("send", &error))?;
    }
    let Some(mut one_more) = one_more else {
        return Err(Failure::Wrong("too little memory came".to_owned()));
    };
    Frame::new(0, 100).write(one_more.bytes_mut());
    let back = match wire.near().send(one_more, 100, now) {
        Err((memory, LinkError::Full)) => memory,
        Err((_, error)) => return Err(wrong("send", &error)),
        Ok(()) => {
            let why = format!("{} are below, where {reach} are the most", reach + 1);
            return Err(Failure::Wrong(why));
        }
    };
    until(wire, "word of what has left", |wire, now| {
        Ok(wire.near().sent(now).map(drop))
    })?;
    let now = wire.now();
    let sent = wire.near().send(back, 100, now);
    sent.map_err(|(_, error)| wrong("send", &error))
}

pub(super) fn dropped<W: Wire>(wire: &mut W) -> Result {
    for _ in 0..100 {
        let all = memory(wire.near(), 64)?;
        let distinct = |at: usize| all[at].bytes().as_ptr();
        ensure!(
            (1..all.len()).all(|at| distinct(at) != distinct(at - 1)),
            "two packets have the same memory"
        );
    }
    Ok(())
}

/// What one end has of memory, and what it did.
struct Books<M> {
    free: Vec<M>,
    posted: usize,
    sending: usize,
    sent: u64,
    received: u64,
    lost_before: u64,
}

const MEMORY: usize = 48;

impl<M: Memory> Books<M> {
    fn open<L: Link<Memory = M>>(link: &mut L) -> Result<Self> {
        Ok(Self {
            free: memory(link, MEMORY)?,
            posted: 0,
            sending: 0,
            sent: 0,
            received: 0,
            lost_before: losses(link),
        })
    }

    fn total(&self) -> usize {
        self.free.len() + self.posted + self.sending
    }
}

fn losses<L: Link>(link: &L) -> u64 {
    let losses = link.losses();
    losses.no_room + losses.too_long
}

/// A hundred thousand random operations at both ends; after each, what is free, posted and being sent is all that there is.
pub(super) fn adds_up<W: Wire>(wire: &mut W) -> Result {
    let mut near = Books::open(wire.near())?;
    let mut far = Books::open(wire.far())?;
    let mut random = SplitMix64::new(12);
    for _ in 0..100_000 {
        let choice = random.draw();
        match choice & 1 {
            0 => operate(wire, W::near, &mut near, choice >> 1)?,
            _ => operate(wire, W::far, &mut far, choice >> 1)?,
        }
        ensure!(
            near.total() == MEMORY && far.total() == MEMORY,
            "of {MEMORY} packets' memory there are {} and {}",
            near.total(),
            far.total()
        );
    }
    until(wire, "the end of all that is under way", |wire, now| {
        finish(wire.near(), &mut near, now)?;
        finish(wire.far(), &mut far, now)?;
        let gone = near.sending + far.sending == 0;
        let there = near.sent == far.received + losses(wire.far()) - far.lost_before;
        let back = far.sent == near.received + losses(wire.near()) - near.lost_before;
        Ok((gone && there && back).then_some(()))
    })
    .map_err(|_| {
        let lost = [losses(wire.near()), losses(wire.far())];
        Failure::Wrong(format!(
            "sent {} and {}, received {} and {}, counted as lost {lost:?}, not told {} and {}",
            near.sent, far.sent, near.received, far.received, near.sending, far.sending
        ))
    })
}

fn finish<L: Link>(
    link: &mut L,
    books: &mut Books<L::Memory>,
    now: laxity_model::Instant,
) -> Result {
    link.flush(now).map_err(|error| wrong("flush", &error))?;
    take(link, books, now)?;
    tell(link, books, now);
    Ok(())
}

fn take<L: Link>(link: &mut L, books: &mut Books<L::Memory>, now: laxity_model::Instant) -> Result {
    let received = link.receive(now);
    if let Some(received) = received.map_err(|error| wrong("receive", &error))? {
        ensure!(books.posted > 0, "a packet in memory that nobody posted");
        books.posted -= 1;
        books.received += 1;
        books.free.push(received.memory);
    }
    Ok(())
}

fn tell<L: Link>(link: &mut L, books: &mut Books<L::Memory>, now: laxity_model::Instant) {
    if let Some(memory) = link.sent(now) {
        books.sending = books.sending.saturating_sub(1);
        books.free.push(memory);
    }
}

fn operate<W: Wire, L: Link>(
    wire: &mut W,
    end: fn(&mut W) -> &mut L,
    books: &mut Books<L::Memory>,
    choice: u64,
) -> Result {
    let now = wire.now();
    let link = end(wire);
    let length = 60 + (choice >> 8) as usize % 1_400;
    match choice % 8 {
        0 | 1 => {
            if let Some(memory) = books.free.pop() {
                match link.post(memory) {
                    Ok(()) => books.posted += 1,
                    Err(memory) => books.free.push(memory),
                }
            }
        }
        2 | 3 => take(link, books, now)?,
        4 => tell(link, books, now),
        5 => {
            // Dropped, and there again.
            if books.free.pop().is_some() {
                books.free.append(&mut memory(link, 1)?);
            }
        }
        kind => {
            let Some(mut memory) = books.free.pop() else {
                return Ok(());
            };
            Frame::new(choice as u32, length).write(memory.bytes_mut());
            let sent = match kind {
                6 => link.send(memory, length, now),
                _ => link.queue(memory, length, Left::default(), now),
            };
            match sent {
                Ok(()) => {
                    books.sending += 1;
                    books.sent += 1;
                }
                Err((memory, LinkError::Full)) => books.free.push(memory),
                Err((_, error)) => return Err(wrong("send", &error)),
            }
        }
    }
    Ok(())
}

/// Posts all but so many, for a test of what comes home.
pub(super) fn post_all_but<L: Link>(
    link: &mut L,
    all: Vec<L::Memory>,
    kept: usize,
) -> Result<Vec<L::Memory>> {
    let mut all = all;
    let rest = all.split_off(kept.min(all.len()));
    for memory in rest {
        post(link, memory)?;
    }
    Ok(all)
}
