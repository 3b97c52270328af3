//! What the node's thread tells, for applications.

use laxity_model::Grade;
use laxity_model::channels::asked::Asked;
use laxity_model::channels::signalling::{Cause, ChannelId, Hold, Refusal};
use laxity_net::channels::local::{self, Answer, Hop, NODES, Refused};

use super::super::core::Settled;
use super::super::error::Error;
use super::super::notes::Note;
use super::super::{DECLINED_NOBODY, Granted};
use super::{Has, Server};

impl Server {
    pub(super) fn noted(&mut self, note: Note) {
        match note {
            Note::Settled(channel, settled) => self.settled(channel, settled),
            Note::Asked(hold, asked) => self.asked(hold, asked),
            Note::Begun(channel) => self.begun(channel),
            Note::Ended(channel, cause) => self.ended(channel, cause),
        }
    }

    fn settled(&mut self, channel: ChannelId, settled: Settled) {
        let Some((id, number)) = self.owners.get(&channel).copied() else {
            return;
        };
        let Some((user, Has::Sends(has, sends))) = self.has(id, number) else {
            return;
        };
        let (ring, changes) = (has.ring.take(), sends.changes.take());
        match settled {
            Ok(granted) => {
                let before = sends.asked.traffic;
                if let Some(after) = changes {
                    sends.asked.traffic = after;
                }
                let route = sends.route.clone();
                if let Some(after) = changes.filter(|after| after.bits() <= before.bits()) {
                    self.users.recounts(user, &after, &before);
                }
                let Granted {
                    bounds,
                    propagation,
                } = granted;
                let hops = route.into_iter().zip(bounds);
                let hops = hops.map(|(host, delay)| Hop { host, delay });
                let granted = self.granted(channel, ring.as_ref().map(|ring| ring.0));
                let granted = local::Granted {
                    propagation,
                    hops: hops.collect(),
                    ..granted
                };
                let with = ring.map(|ring| ring.1);
                let with = with.as_ref().map_or(&[][..], |with| with);
                self.say(id, &Answer::Granted { number, granted }, with);
            }
            Err(why) => {
                let before = sends.asked.traffic;
                let why = match why {
                    Error::Refused(refusal) => Refused::Host(refusal),
                    _ => self.refused_here(|at| Refusal::Busy { at }),
                };
                match changes {
                    None => {
                        self.forgets(channel);
                    }
                    Some(after) if after.bits() > before.bits() => {
                        self.users.recounts(user, &before, &after);
                    }
                    Some(_) => {}
                }
                self.refuses(id, number, why);
            }
        }
    }

    /// What is granted of a channel that ends here.
    fn granted(
        &self,
        channel: ChannelId,
        ring: Option<laxity_model::channels::ring::Shape>,
    ) -> local::Granted {
        local::Granted {
            channel,
            ring,
            propagation: laxity_model::Span::ZERO,
            hops: Vec::new(),
            grade: match self.node.grade() {
                Grade::Enforced => local::Grade::Enforced,
                Grade::Uncertain { reason } | Grade::Unenforced { reason } => {
                    local::Grade::Unenforced(reason)
                }
            },
        }
    }

    /// Somebody opens a channel to a name that is listened to.
    fn asked(&mut self, hold: Hold, asked: Asked) {
        let Some((id, _)) = self.listeners.get(&asked.name).copied() else {
            return self.declines(hold, DECLINED_NOBODY);
        };
        let Some(application) = self.apps.get_mut(&id) else {
            return self.declines(hold, DECLINED_NOBODY);
        };
        let number = loop {
            self.last = self.last.wrapping_add(1) | NODES;
            if !application.has.contains_key(&self.last) {
                break self.last;
            }
        };
        let incoming = Answer::Incoming {
            number,
            name: asked.name.clone(),
            from: hold.channel.origin,
            traffic: asked.traffic,
            discard: asked.discard,
        };
        application.has.insert(number, Has::Comes(hold, asked));
        self.owners.insert(hold.channel, (id, number));
        self.say(id, &incoming, &[]);
    }

    /// A channel that was taken is open.
    fn begun(&mut self, channel: ChannelId) {
        let Some((id, number)) = self.owners.get(&channel).copied() else {
            return;
        };
        let Some((_, Has::Receives(has))) = self.has(id, number) else {
            return;
        };
        if let Some((shape, with)) = has.ring.take() {
            let granted = self.granted(channel, Some(shape));
            self.say(id, &Answer::Granted { number, granted }, &with);
        }
    }

    fn ended(&mut self, channel: ChannelId, cause: Cause) {
        if let Some((id, number)) = self.forgets(channel) {
            self.say(id, &Answer::Ended { number, cause }, &[]);
        }
    }

    /// A channel is no more; whose it was.
    fn forgets(&mut self, channel: ChannelId) -> Option<(u64, u32)> {
        let (id, number) = self.owners.remove(&channel)?;
        let application = self.apps.get_mut(&id)?;
        if let Has::Sends(_, sends) = application.has.remove(&number)? {
            self.users.closes(application.user, &sends.counts());
        }
        Some((id, number))
    }
}
