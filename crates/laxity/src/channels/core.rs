//! What a node's thread has: the node, its links, and this side of the rings to applications.

use std::collections::HashMap;
use std::sync::Arc;

use laxity_linux::host::ring::Ring;
use laxity_linux::net::Stirs;
use laxity_linux::os::clock;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::ring;
use laxity_model::channels::signalling::{Cause, ChannelId, Hold, LinkId};
use laxity_model::{Instant, Span};
use laxity_net::channels::node::{EndCounts, Event, Filled, Node, Opening};
use laxity_net::channels::path::{self, Label, Lane};

use super::ends::Life;
use super::error::Error;
use super::inward::Inward;
use super::listening::{Listening, Offered, Taken};
use super::notes::{Note, Notes};
use super::outward::{Bytes, Outward};
use super::spare::Spare;
use super::way::Way;
use super::{Asks, Granted};

/// What becomes of an opening or a change.
pub(super) type Settled = Result<Granted, Error>;

/// Is told that; whether anybody wants to know.
pub(super) type Settles = Box<dyn FnOnce(ChannelId, Settled) -> bool + Send>;

/// Who waits for that; of an opening with the node's side of the ring.
struct Waits {
    settles: Settles,
    opens: Option<(Arc<Life>, ring::Receiver<Ring>)>,
}

/// A thread that does not sleep looks so often who has rung.
const HEARS: Span = Span::from_micros(100);

/// What a node's thread has.
pub(super) struct Core {
    pub(super) node: Node<Bytes, Dedicated>,
    pub(super) ways: Vec<Way>,
    pub(super) stirs: Stirs,
    asks: Arc<Asks>,
    outward: HashMap<Label, Outward>,
    inward: HashMap<Label, Inward>,
    /// Of both, by the channel.
    ends: HashMap<ChannelId, Label>,
    waits: HashMap<Hold, Waits>,
    pub(super) listening: HashMap<Name, Listening>,
    /// What was answered with yes, until frames are taken in.
    accepted: HashMap<Hold, Asked>,
    /// The same of applications of other processes, each with its ring.
    taken: HashMap<Hold, Taken>,
    /// Names to which those listen.
    pub(super) served: HashMap<Name, Notes>,
    /// Channels of theirs, and who tells them of the end.
    afar: HashMap<ChannelId, Notes>,
    /// Ends whose rings are looked at before the thread sleeps: the others wake it.
    awake: Vec<Label>,
    pub(super) spare: Spare,
    /// How often the thread has looked at all that there is to do.
    pub(super) looks: u64,
    /// When it last looked who has rung.
    heard: Instant,
}

/// A ring of a channel, as a descriptor that is watched.
fn number(end: Label) -> u64 {
    u64::from(end.index) << 32 | u64::from(end.generation)
}

/// Frames of best effort that a link was handed.
fn best_effort(node: &Node<Bytes, Dedicated>, link: LinkId) -> u64 {
    let counts = node.link_counts(link);
    counts.map_or(0, |counts| counts.best_effort)
}

fn label(number: u64) -> Label {
    Label {
        index: (number >> 32) as u32,
        generation: number as u32,
    }
}

impl Core {
    pub(super) fn new(
        node: Node<Bytes, Dedicated>,
        ways: Vec<Way>,
        stirs: Stirs,
        asks: Arc<Asks>,
    ) -> Self {
        Self {
            node,
            ways,
            stirs,
            asks,
            outward: HashMap::new(),
            inward: HashMap::new(),
            ends: HashMap::new(),
            waits: HashMap::new(),
            listening: HashMap::new(),
            accepted: HashMap::new(),
            taken: HashMap::new(),
            served: HashMap::new(),
            afar: HashMap::new(),
            awake: Vec::new(),
            spare: Spare::new(),
            looks: 0,
            heard: Instant::ZERO,
        }
    }

    /// A channel is to be opened; its life.
    pub(super) fn open(
        &mut self,
        opening: Opening,
        ring: ring::Receiver<Ring>,
        settles: Settles,
    ) -> Arc<Life> {
        let channel = self.node.open(clock::now(), opening);
        let life = Arc::new(Life::new(channel, Arc::clone(&self.asks)));
        let hold = Hold {
            channel,
            version: 0,
        };
        let opens = Some((Arc::clone(&life), ring));
        self.waits.insert(hold, Waits { settles, opens });
        life
    }

    /// The same for an application of another process, which is told by these.
    pub(super) fn open_afar(
        &mut self,
        opening: Opening,
        ring: ring::Receiver<Ring>,
        notes: Notes,
    ) -> ChannelId {
        let tell = notes.clone();
        let settles = move |channel, settled| {
            tell.tell(Note::Settled(channel, settled));
            true
        };
        let channel = self.open(opening, ring, Box::new(settles)).channel;
        self.afar.insert(channel, notes);
        channel
    }

    /// A channel that begins here is to be changed.
    pub(super) fn change(
        &mut self,
        channel: ChannelId,
        asked: Asked,
        within: Span,
        settles: Settles,
    ) -> Result<(), Error> {
        let hold = self.node.change(clock::now(), channel, asked, within)?;
        let opens = None;
        self.waits.insert(hold, Waits { settles, opens });
        Ok(())
    }

    /// An application has done with a channel, or has died.
    pub(super) fn close(&mut self, channel: ChannelId, has_died: bool) {
        self.node.close(clock::now(), channel, has_died);
    }

    /// Applications of other processes listen to a name, if nobody does yet.
    pub(super) fn serves(&mut self, name: Name, notes: Notes) -> bool {
        let is_free = !self.listening.contains_key(&name) && !self.served.contains_key(&name);
        if is_free {
            self.served.insert(name, notes);
        }
        is_free
    }

    /// An application of another process takes a channel, or does not.
    pub(super) fn answers(&mut self, hold: Hold, taken: Result<(Asked, Taken), u32>) {
        let answer = taken.map(|(asked, taken)| {
            let listens = taken.listens();
            self.accepted.insert(hold, asked);
            self.taken.insert(hold, taken);
            listens
        });
        if answer.is_err() {
            self.afar.remove(&hold.channel);
        }
        self.node.answer(clock::now(), hold, answer);
        if self.node.signalling().position(hold.channel).is_none() {
            // It has ended since it was asked.
            self.accepted.remove(&hold);
            self.taken.remove(&hold);
            self.afar.remove(&hold.channel);
        }
    }

    /// What came over links is told to the node, and what has left; whether there may be more.
    pub(super) fn take_in(&mut self) -> bool {
        let Self {
            node,
            ways,
            stirs,
            spare,
            ..
        } = self;
        let mut is_more = false;
        for (way, link) in ways.iter_mut().zip((0..).map(LinkId)) {
            let now = clock::now();
            while way.has_left(now) {
                node.left(now, link);
            }
            is_more |= way.came((stirs, spare), |now, at, frame| {
                node.came(now, link, at, frame)
            });
        }
        is_more
    }

    /// Links take as many frames as they have room for.
    pub(super) fn give_out(&mut self) {
        let Self {
            node, ways, spare, ..
        } = self;
        for (way, link) in ways.iter_mut().zip((0..).map(LinkId)) {
            let mut now = clock::now();
            while way.has_room(now) {
                let (since, before) = (now, best_effort(node, link));
                let filled = way.fill(now, |frame, hand| node.fill(now, link, frame, hand));
                if filled != Filled::Handed {
                    break;
                }
                now = clock::now();
                if best_effort(node, link) != before {
                    // Whoever sends more of it waits.
                    spare.spent(since, now);
                }
            }
        }
    }

    /// Messages of applications that are awake are taken to the node; whether there may be more.
    pub(super) fn take_messages(&mut self) -> bool {
        let now = clock::now();
        let mut is_more = false;
        for place in 0..self.awake.len() {
            let end = self.awake[place];
            if let Some(outward) = self.outward.get_mut(&end) {
                match outward.take(now, (&mut self.node, end), &mut self.spare) {
                    Ok(more) => is_more |= more,
                    Err(has_died) => self.breaks(end, has_died),
                }
            } else {
                self.delivers(end, None);
            }
        }
        is_more
    }

    /// What the node tells is carried out.
    pub(super) fn listen(&mut self) {
        while let Some(event) = self.node.event() {
            self.told(event);
        }
    }

    fn told(&mut self, event: Event<Bytes>) {
        match event {
            Event::Opened {
                hold,
                end,
                bounds,
                propagation,
            } => self.opened(
                hold,
                end,
                Granted {
                    bounds,
                    propagation,
                },
            ),
            Event::Refused(hold, refusal) => {
                if hold.version == 0 {
                    self.afar.remove(&hold.channel);
                }
                if let Some(waits) = self.waits.remove(&hold) {
                    (waits.settles)(hold.channel, Err(Error::Refused(refusal)));
                }
            }
            Event::Asked(hold, asked) => self.asked(hold, asked),
            Event::Listening { hold, end } => self.begins(hold, end),
            Event::Ended(channel, cause) => self.ended(channel, cause),
            Event::Back(bytes) => {
                if let Some(outward) = self.outward.get_mut(&bytes.end) {
                    outward.back(bytes);
                }
            }
            Event::Room(end) => {
                if let Some(outward) = self.outward.get_mut(&end) {
                    outward.has_room();
                    self.wake(end);
                }
            }
            Event::Received(end) => self.delivers(end, None),
            Event::Missed(end, missed) => self.delivers(end, Some(missed)),
            Event::Up(_) | Event::Down(..) => self.asks.neighbours_changed(),
            // They work at once here.
            Event::Handler(_) => {}
        }
    }

    /// Something came, or was missed, at this end.
    fn delivers(&mut self, end: Label, missed: Option<path::Event>) {
        let Some(inward) = self.inward.get_mut(&end) else {
            return;
        };
        if let Some(missed) = missed {
            inward.missed(missed);
        }
        let delivered = inward.deliver(&mut self.node, end);
        if inward.is_full() {
            self.wake(end);
        }
        if let Err(has_died) = delivered {
            self.breaks(end, has_died);
        }
    }

    /// Who breaks his ring ends his channel, and nobody else's.
    fn breaks(&mut self, end: Label, has_died: bool) {
        let lives = [
            self.outward.get(&end).map(|outward| &outward.life),
            self.inward.get(&end).map(|inward| &inward.life),
        ];
        if let Some(life) = lives.into_iter().flatten().next() {
            self.node.close(clock::now(), life.channel, has_died);
        }
    }

    /// What came of a channel that begins or ends here, by one of its lanes.
    pub(super) fn counts(&self, channel: ChannelId, lane: Lane) -> Option<EndCounts> {
        self.node.counts(*self.ends.get(&channel)?, lane)
    }

    fn opened(&mut self, hold: Hold, end: Label, granted: Granted) {
        let Some(Waits { settles, opens }) = self.waits.remove(&hold) else {
            return;
        };
        if let Some((life, ring)) = opens {
            if let Err(why) = self.stirs.watch(ring.memory(), number(end)) {
                self.close(hold.channel, false);
                settles(hold.channel, Err(Error::NoDescriptors(why)));
                return;
            }
            self.ends.insert(hold.channel, end);
            self.outward.insert(end, Outward::new(ring, life));
            self.wake(end);
        }
        if !settles(hold.channel, Ok(granted)) && hold.version == 0 {
            // Nobody waits any more who would close it.
            self.close(hold.channel, false);
        }
    }

    /// Somebody wants to open a channel that ends here, or to change it.
    fn asked(&mut self, hold: Hold, asked: Asked) {
        let now = clock::now();
        if let Some(notes) = self.served.get(&asked.name).filter(|_| hold.version == 0) {
            self.afar.insert(hold.channel, notes.clone());
            return notes.tell(Note::Asked(hold, asked));
        }
        let listening = self.listening.get(&asked.name);
        let answer = match self.ends.get(&hold.channel) {
            Some(end) => {
                let inward = self.inward.get(end);
                inward.map_or(Err(super::DECLINED_NOBODY), |inward| inward.answers(&asked))
            }
            None => listening.map_or(Err(super::DECLINED_NOBODY), |one| one.answers(&asked)),
        };
        if answer.is_ok() {
            self.accepted.insert(hold, asked);
        }
        self.node.answer(now, hold, answer);
    }

    /// Frames of a channel that ends here are taken in from now on.
    fn begins(&mut self, hold: Hold, end: Label) {
        let Some(asked) = self.accepted.remove(&hold) else {
            return;
        };
        if self.ends.contains_key(&hold.channel) {
            return;
        }
        let life = Arc::new(Life::new(hold.channel, Arc::clone(&self.asks)));
        let inward = match self.taken.remove(&hold) {
            Some(taken) => Some(taken.begins(life)),
            None => {
                let listening = self.listening.get_mut(&asked.name);
                listening.and_then(|one| one.begins(&life, asked))
            }
        };
        match inward {
            Some(Offered { inward, ring }) if self.stirs.watch(&ring, number(end)).is_ok() => {
                self.ends.insert(hold.channel, end);
                self.inward.insert(end, inward);
                if let Some(notes) = self.afar.get(&hold.channel) {
                    notes.tell(Note::Begun(hold.channel));
                }
            }
            _ => self.close(hold.channel, false),
        }
    }

    fn ended(&mut self, channel: ChannelId, cause: Cause) {
        self.accepted.retain(|hold, _| hold.channel != channel);
        self.taken.retain(|hold, _| hold.channel != channel);
        if let Some(notes) = self.afar.remove(&channel) {
            notes.tell(Note::Ended(channel, cause));
        }
        let Some(end) = self.ends.remove(&channel) else {
            return;
        };
        if let Some(outward) = self.outward.remove(&end) {
            outward.end(cause);
        }
        if let Some(inward) = self.inward.remove(&end) {
            inward.end(cause);
        }
        self.awake.retain(|one| *one != end);
    }

    fn wake(&mut self, end: Label) {
        if !self.awake.contains(&end) {
            self.awake.push(end);
        }
    }

    /// What has rung is looked at from now on, if something has; or where nobody has said so for long, as the thread has not slept.
    pub(super) fn hear(&mut self, now: Instant, has_rung: bool) {
        if !has_rung && now.saturating_since(self.heard) < HEARS {
            return;
        }
        self.heard = now;
        let Self {
            stirs,
            outward,
            inward,
            awake,
            ..
        } = self;
        let heard = stirs.heard(|number| {
            let end = label(number);
            if let Some(outward) = outward.get(&end) {
                outward.clear();
            } else if let Some(inward) = inward.get(&end) {
                inward.clear();
            } else {
                return;
            }
            if !awake.contains(&end) {
                awake.push(end);
            }
        });
        // What cannot be heard is looked at all the same, by who comes back for it.
        drop(heard);
    }

    /// Whether the thread may sleep as far as applications go, and until when; what comes from now on wakes it.
    pub(super) fn rests(&mut self, now: Instant) -> Option<Instant> {
        let Self {
            outward,
            inward,
            awake,
            ..
        } = self;
        let (mut until, mut is_more) = (Instant::MAX, false);
        awake.retain(|end| {
            if let Some(outward) = outward.get_mut(end) {
                if let Some(resumes) = outward.resumes(now) {
                    until = until.min(resumes);
                    return true;
                }
                let rests = outward.rests();
                is_more |= !rests;
                return !rests;
            }
            let rests = inward.get_mut(end).is_none_or(Inward::rests);
            is_more |= !rests;
            !rests
        });
        for way in &self.ways {
            until = way.rests_until(now).map_or(until, |at| until.min(at));
        }
        (!is_more).then_some(until)
    }
}
