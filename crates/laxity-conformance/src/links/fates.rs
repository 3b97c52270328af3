//! What befalls an interface: it goes down and up again, and it is deleted.

use laxity_model::nif::link::{Link, LinkError, Memory};

use super::frames::Frame;
use super::sums::post_all_but;
use super::{Wire, memory, post_many, until, wrong};
use crate::{Failure, Result, ensure};

pub(super) fn down_and_up<W: Wire>(wire: &mut W) -> Result {
    post_many(wire.near(), 4)?;
    if !wire.set_up(false) {
        return Ok(());
    }
    until(wire, "word that it is down", |wire, now| {
        match wire.near().receive(now) {
            Err(LinkError::Down) => Ok(Some(())),
            Err(error) => Err(wrong("receive", &error)),
            Ok(_) => Ok(None),
        }
    })?;
    for _ in 0..1_000 {
        wire.pass();
        let now = wire.now();
        let again = wire.near().receive(now);
        ensure!(again.is_ok(), "it was told again: {:?}", again.err());
    }
    let mut held = memory(wire.near(), 1)?;
    let Some(mut one) = held.pop() else {
        return Err(Failure::Wrong("no memory came".to_owned()));
    };
    Frame::new(0, 100).write(one.bytes_mut());
    let now = wire.now();
    match wire.near().send(one, 100, now) {
        Err((_, LinkError::Down)) => {}
        Err((_, error)) => return Err(wrong("send", &error)),
        Ok(()) => return Err(Failure::Wrong("it sends while it is down".to_owned())),
    }
    ensure!(wire.set_up(true), "it cannot be set up again");
    post_many(wire.far(), 4)?;
    // The wire may take a moment, in which frames are lost as on any.
    let mut number = 0;
    until(wire, "a packet after it was up again", |wire, now| {
        number += 1;
        if let Some(mut one) = memory(wire.near(), 1)?.pop() {
            Frame::new(number, 100).write(one.bytes_mut());
            match wire.near().send(one, 100, now) {
                Ok(()) | Err((_, LinkError::Down | LinkError::Full)) => {}
                Err((_, error)) => return Err(wrong("send", &error)),
            }
        }
        while wire.near().sent(now).is_some() {}
        match wire.far().receive(now) {
            Ok(received) => Ok(received.map(drop)),
            // Its end of the wire was down too.
            Err(LinkError::Down) => Ok(None),
            Err(error) => Err(wrong("receive", &error)),
        }
    })
}

pub(super) fn gone<W: Wire>(wire: &mut W) -> Result {
    const ALL: usize = 32;
    const SENT: usize = 4;
    const KEPT: usize = 3;
    let all = memory(wire.near(), ALL)?;
    let mut kept = post_all_but(wire.near(), all, KEPT + SENT)?;
    let now = wire.now();
    let count = SENT.min(wire.near().facts().reach);
    for mut memory in kept.split_off(kept.len() - count) {
        Frame::new(0, 100).write(memory.bytes_mut());
        let sent = wire.near().send(memory, 100, now);
        sent.map_err(|(_, error)| wrong("send", &error))?;
    }
    ensure!(wire.near().reclaim().is_none(), "memory came home too soon");
    if !wire.delete() {
        return Ok(());
    }
    until(wire, "word that it is gone", |wire, now| {
        match wire.near().receive(now) {
            Err(LinkError::Gone) => Ok(Some(())),
            Ok(None) | Err(LinkError::Down) => Ok(None),
            Ok(Some(_)) => Err(Failure::Wrong("a packet that nobody sent".to_owned())),
            Err(error) => Err(wrong("receive", &error)),
        }
    })?;
    let now = wire.now();
    let again = wire.near().receive(now);
    ensure!(
        matches!(again, Err(LinkError::Gone)),
        "it is not gone for good"
    );
    let mut home = kept.len();
    while wire.near().sent(now).is_some() {
        home += 1;
    }
    while wire.near().reclaim().is_some() {
        home += 1;
    }
    ensure!(home == ALL, "{home} of {ALL} came home");
    ensure!(
        wire.near().allocate(1).is_err(),
        "there is memory of an interface that is gone"
    );
    if let Some(memory) = kept.pop() {
        let refused = wire.near().send(memory, 100, now);
        ensure!(
            matches!(refused, Err((_, LinkError::Gone | LinkError::Full))),
            "it sends though it is gone"
        );
    }
    Ok(())
}
