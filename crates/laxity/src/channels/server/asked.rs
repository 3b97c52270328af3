//! What applications ask.

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;

use laxity_linux::host::ring::Ring;
use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Asked, Fits, Name, Scarce, Shortage};
use laxity_model::channels::ring::{Shape, Side};
use laxity_model::channels::signalling::{Cause, Hold, Refusal};
use laxity_net::channels::local::{Answer, Ask, Forbidden, Refused, Takes};
use laxity_net::channels::node;
use laxity_net::channels::told::LENGTH;

use super::super::core::{Core, Settles};
use super::super::ends::shape;
use super::super::listening::Taken;
use super::super::notes::Note;
use super::super::{DECLINED_BUSY, DECLINED_LARGE, Spec, Wanted, opening};
use super::{Application, Channel, Has, Sends, Server};

/// No ring of an application of another process has more bytes: the node's memory is locked.
const MOST_RING: u64 = 1 << 26;

impl Server {
    /// An application says something.
    pub(super) fn said(&mut self, id: u64, bytes: &[u8]) {
        let Some(application) = self.apps.get_mut(&id) else {
            return;
        };
        let ask = match Ask::parse(bytes) {
            Ok(ask) if application.is_greeted || ask == Ask::Hello => ask,
            _ => return self.refuses(id, 0, Refused::Garbled),
        };
        let (number, done) = match ask {
            Ask::Hello => {
                application.is_greeted = true;
                let host = self.node.setup.host;
                return self.say(id, &Answer::Welcome { host }, &[]);
            }
            Ask::Open { number, name, spec } => (number, self.opens(id, number, &name, spec)),
            Ask::Change { number, spec } => (number, self.changes(id, number, &spec)),
            Ask::Close { number } => (number, self.is_to_close(id, number)),
            Ask::Listen { number, name } => (number, self.listens(id, number, name)),
            Ask::Agree { number, takes } => (number, self.agrees(id, number, takes)),
            Ask::Decline { number, why } => match self.comes(id, number) {
                Ok((hold, _)) => {
                    self.declines(hold, why);
                    (number, Ok(()))
                }
                Err(why) => (number, Err(why)),
            },
        };
        if let Err(why) = done {
            self.refuses(id, number, why);
        }
    }

    /// The application, to which this number stands for nothing yet.
    fn free(&self, id: u64, number: u32) -> Result<&Application, Refused> {
        let application = self
            .apps
            .get(&id)
            .filter(|one| !one.has.contains_key(&number));
        application.ok_or(Refused::Number)
    }

    fn opens(
        &mut self,
        id: u64,
        number: u32,
        name: &Name,
        wanted: Option<Wanted>,
    ) -> Result<(), Refused> {
        let user = self.free(id, number)?.user;
        let (wanted, over) = match wanted {
            Some(wanted) => {
                let to = wanted.to;
                let none = || self.refused_here(|at| Refusal::NoLink { at, to });
                (wanted, self.book.routes.get(&to).ok_or_else(none)?)
            }
            None => {
                let known = self.book.channels.get(name).ok_or(Refused::Unnamed)?;
                (known.wanted, &known.over)
            }
        };
        let spec = Spec {
            is_due: true,
            name: name.clone(),
            over: over.clone(),
            traffic: wanted.traffic,
            within: wanted.within,
            excess: wanted.over,
            discard: wanted.discard,
            room: Spec::ROOM,
        };
        let opening = opening(self.node.setup.host, &spec);
        let (room, largest) = (opening.sends.room, wanted.traffic.largest());
        self.may_open(user, name, &wanted.traffic, None)?;
        let made = self.ring((room.get(), largest, 0), Side::Receiver);
        let (ring, other) = match made {
            Ok(made) => made,
            Err(refused) => {
                self.users.closes(user, &wanted.traffic);
                return Err(refused);
            }
        };
        let sends = Sends {
            asked: opening.asked.clone(),
            route: opening.route.to_vec(),
            changes: None,
        };
        let notes = self.notes.clone();
        let begun =
            self.asks(move |core: &mut Core| core.open_afar(opening, ring.receiver(), notes));
        if begun.is_err() {
            self.users.closes(user, &wanted.traffic);
        }
        let channel = Channel {
            id: begun?,
            ring: Some(other),
        };
        self.owners.insert(channel.id, (id, number));
        self.puts(id, number, Has::Sends(channel, sends));
        Ok(())
    }

    fn may_open(
        &mut self,
        user: u32,
        name: &Name,
        traffic: &Traffic,
        before: Option<&Traffic>,
    ) -> Result<(), Refused> {
        let opens = self.users.opens(user, name, traffic, before);
        opens.map_err(|why| match why {
            Forbidden::Name => Refused::Forbidden,
            Forbidden::Quota(short) => self.refused_here(|at| Refusal::Short { at, short }),
        })
    }

    /// The node's side of a new ring, and what the application's is made of.
    fn ring(
        &self,
        (room, largest, in_front): (u32, NonZeroU32, usize),
        side: Side,
    ) -> Result<(Ring, (Shape, [OwnedFd; 2])), Refused> {
        let shape = shape(room, largest, in_front).ok();
        let shape = shape.filter(|shape| shape.memory() <= MOST_RING);
        let ring = shape.and_then(|shape| Some((shape, Ring::create(shape, side).ok()?)));
        let none = Shortage {
            of: Scarce::Buffers,
            lacks: 0,
            fits: Fits::default(),
        };
        let (shape, (ring, other)) =
            ring.ok_or_else(|| self.refused_here(|at| Refusal::Short { at, short: none }))?;
        Ok((ring, (shape, other)))
    }

    fn puts(&mut self, id: u64, number: u32, has: Has) {
        if let Some(application) = self.apps.get_mut(&id) {
            application.has.insert(number, has);
        }
    }

    fn changes(&mut self, id: u64, number: u32, wanted: &Wanted) -> Result<(), Refused> {
        let Wanted {
            traffic, within, ..
        } = *wanted;
        let Some((user, Has::Sends(channel, sends))) = self.has(id, number) else {
            return Err(Refused::Number);
        };
        // One that waits to be opened or changed is not changed.
        if channel.ring.is_some() || sends.changes.is_some() {
            return Err(Refused::Number);
        }
        let (channel, before) = (channel.id, sends.asked.traffic);
        let asked = Asked {
            traffic,
            ..sends.asked.clone()
        };
        let is_more = traffic.bits() > before.bits();
        if is_more {
            self.may_open(user, &asked.name, &traffic, Some(&before))?;
        }
        let notes = self.notes.clone();
        let settles: Settles = Box::new(move |channel, settled| {
            notes.tell(Note::Settled(channel, settled));
            true
        });
        let begun = self.asks(move |core| core.change(channel, asked, within, settles));
        let Ok(Ok(())) = begun else {
            if is_more {
                self.users.recounts(user, &before, &traffic);
            }
            return Err(Refused::Number);
        };
        if let Some((_, Has::Sends(_, sends))) = self.has(id, number) {
            sends.changes = Some(traffic);
        }
        Ok(())
    }

    /// What an application has by this number, and whose it is.
    pub(super) fn has(&mut self, id: u64, number: u32) -> Option<(u32, &mut Has)> {
        let application = self.apps.get_mut(&id)?;
        Some((application.user, application.has.get_mut(&number)?))
    }

    fn is_to_close(&mut self, id: u64, number: u32) -> Result<(), Refused> {
        match self.has(id, number).ok_or(Refused::Number)?.1 {
            Has::Sends(channel, _) | Has::Receives(channel) => {
                // Its end is told when it is there.
                let channel = channel.id;
                self.closes(channel, false);
                return Ok(());
            }
            Has::Comes(..) => return Err(Refused::Number),
            Has::Listens(name) => {
                let name = name.clone();
                self.listens_no_more(name);
            }
        }
        if let Some(application) = self.apps.get_mut(&id) {
            application.has.remove(&number);
        }
        let cause = Cause::Closed(self.node.setup.host);
        self.say(id, &Answer::Ended { number, cause }, &[]);
        Ok(())
    }

    fn listens(&mut self, id: u64, number: u32, name: Name) -> Result<(), Refused> {
        let user = self.free(id, number)?.user;
        let may = self.users.may_listen(user, &name);
        may.map_err(|_| Refused::Forbidden)?;
        let (own, notes) = (name.clone(), self.notes.clone());
        let is_free = self.asks(move |core: &mut Core| core.serves(own, notes))?;
        if !is_free {
            return Err(Refused::Listened);
        }
        self.listeners.insert(name.clone(), (id, number));
        self.puts(id, number, Has::Listens(name));
        self.say(id, &Answer::Listens { number }, &[]);
        Ok(())
    }

    /// A channel that came to him, and of which he has said nothing yet.
    fn comes(&mut self, id: u64, number: u32) -> Result<(Hold, Asked), Refused> {
        let application = self.apps.get_mut(&id).ok_or(Refused::Number)?;
        match application.has.remove(&number) {
            Some(Has::Comes(hold, asked)) => Ok((hold, asked)),
            Some(other) => {
                application.has.insert(number, other);
                Err(Refused::Number)
            }
            None => Err(Refused::Number),
        }
    }

    fn agrees(&mut self, id: u64, number: u32, takes: Takes) -> Result<(), Refused> {
        let (hold, asked) = self.comes(id, number)?;
        let Takes {
            largest,
            room,
            patience,
        } = takes;
        if asked.traffic.largest() > largest {
            self.declines(hold, DECLINED_LARGE);
            return Err(Refused::Host(Refusal::Declined(DECLINED_LARGE)));
        }
        let made = self.ring((room.get(), largest, LENGTH), Side::Sender);
        let (ring, other) = made.inspect_err(|_| self.declines(hold, DECLINED_BUSY))?;
        let listens = node::Listens {
            room,
            largest: largest.get(),
            patience,
            // Nobody knows how long a frame waits in a socket, or for a link that is not owned: what clocks tell bounds it.
            unseen: Span::MAX,
        };
        let taken = Taken { ring, listens };
        let channel = Channel {
            id: hold.channel,
            ring: Some(other),
        };
        self.puts(id, number, Has::Receives(channel));
        self.asks(move |core: &mut Core| core.answers(hold, Ok((asked, taken))))
    }
}
