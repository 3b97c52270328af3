//! The thread of a host's node: one thing after the other, each of which takes its time, and the order of a live node's thread.
//!
//! A turn takes in what came and has left, then messages of applications, then has the node do what is due, and fills the links. Between turns it sleeps, and wakes as late as admission takes it to.
//! What admission charges of a packet is its receipt and its sending together: here each has half of it, so that a relay has all of it and both ends half. Nobody yields, so looks cost nothing.

use std::collections::VecDeque;

use laxity_model::channels::admission::ProcessorCosts;
use laxity_model::channels::signalling::LinkId;
use laxity_model::{Instant, Span};

use crate::channels::frame::{DATA, HEADER, TAG};
use crate::channels::node::Event;
use crate::channels::path::Label;

/// What a thread does that cannot be interrupted.
#[derive(Debug)]
pub(super) enum Unit {
    /// It wakes up, or stands still.
    Pause(Span),
    /// A frame came over a link when the host's clock said this.
    Came(LinkId, Instant, Vec<u8>),
    /// A frame has left.
    Left(LinkId),
    /// An application sends.
    Send(Label, Vec<u8>),
    /// The time has come, if it has.
    Wake,
    /// A link may have room.
    Fill(LinkId),
    /// A frame of so many bytes was handed over.
    Handed(usize),
    /// Applications are told.
    Tell,
}

/// A node's thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// What its work takes; no time, where that is not said.
    pub(super) costs: Option<ProcessorCosts>,
    /// What it does, and when that is done.
    pub(super) doing: Option<(Instant, Unit)>,
    /// The rest of this turn.
    todo: VecDeque<Unit>,
    /// For the next one.
    came: VecDeque<Unit>,
    messages: VecDeque<Unit>,
    /// Whether somebody has called the node beside it.
    pub(super) is_stirred: bool,
    is_awake: bool,
    /// What applications are to be told.
    pub(super) events: VecDeque<Event<Vec<u8>>>,
    /// For how long it was at work.
    pub(super) worked: Span,
}

impl Thread {
    /// Something happens to the host.
    pub(super) fn happens(&mut self, unit: Unit) {
        match unit {
            Unit::Send(..) => self.messages.push_back(unit),
            unit => self.came.push_back(unit),
        }
    }

    /// What comes next in this turn, before the rest of it.
    pub(super) fn first(&mut self, unit: Unit) {
        self.todo.push_front(unit);
    }

    /// All that it has to do, and was to tell, is gone: it begins anew.
    pub(super) fn clear(&mut self) {
        *self = Self {
            costs: self.costs,
            worked: self.worked,
            ..Self::default()
        };
    }

    /// When it goes on by itself; the node is due then.
    pub(super) fn next(&self, now: Instant, due: Instant) -> Instant {
        match &self.doing {
            Some((until, _)) => *until,
            None if self.has_more() => now,
            None => due.max(now),
        }
    }

    fn has_more(&self) -> bool {
        let waiting = [&self.todo, &self.came, &self.messages];
        self.is_stirred || waiting.iter().any(|queue| !queue.is_empty())
    }

    /// What it did that is done by now; `None` while it is at it, or does nothing.
    pub(super) fn done(&mut self, now: Instant) -> Option<Unit> {
        let done = self.doing.take_if(|(until, _)| *until <= now);
        done.map(|(_, unit)| unit)
    }

    /// It begins with the next thing, where there is one: with a turn over so many links, if the one before is over and there is something to do. Whether it does something.
    pub(super) fn begins(&mut self, now: Instant, due: Instant, links: u16) -> bool {
        if self.doing.is_some() {
            return true;
        }
        if self.todo.is_empty() {
            if !self.has_more() && due > now {
                self.is_awake = false;
                return false;
            }
            if self.is_awake {
                self.turn(links);
            } else {
                self.is_awake = true;
                let wakes = self.costs.map_or(0, |costs| costs.wake_up.as_nanos());
                self.first(Unit::Pause(Span::from_nanos(wakes)));
            }
        }
        if let Some(unit) = self.todo.pop_front() {
            let takes = self.takes(&unit);
            if !matches!(unit, Unit::Pause(_)) {
                self.worked += takes;
            }
            self.doing = Some((now + takes, unit));
        }
        true
    }

    fn turn(&mut self, links: u16) {
        self.is_stirred = false;
        self.todo.append(&mut self.came);
        self.todo.append(&mut self.messages);
        self.todo.push_back(Unit::Wake);
        self.todo.extend((0..links).map(LinkId).map(Unit::Fill));
    }

    fn takes(&self, unit: &Unit) -> Span {
        let Some(costs) = &self.costs else {
            return match unit {
                Unit::Pause(span) => *span,
                _ => Span::ZERO,
            };
        };
        let message = [
            costs.message,
            costs.interrupt,
            costs.switch,
            costs.switch,
            costs.cache_miss,
        ];
        let message: u64 = message.iter().map(|cost| cost.as_nanos()).sum();
        let nanos = match unit {
            Unit::Pause(span) => span.as_nanos(),
            Unit::Came(_, _, frame) => half(costs, frame.len()),
            Unit::Handed(length) => half(costs, *length),
            Unit::Send(..) => message,
            Unit::Tell => {
                let received = self.events.iter();
                let received = received.filter(|event| matches!(event, Event::Received(_)));
                message * received.count() as u64
            }
            Unit::Left(_) | Unit::Wake | Unit::Fill(_) => 0,
        };
        Span::from_nanos(nanos)
    }
}

/// The half of what a packet takes whose frame has so many bytes, rounded down.
fn half(costs: &ProcessorCosts, length: usize) -> u64 {
    let payload = length.saturating_sub(HEADER + DATA + TAG) as u64;
    let bytes = payload * costs.byte_ps / 1_000;
    (costs.packet.as_nanos() + costs.completion.as_nanos() + bytes) / 2
}
