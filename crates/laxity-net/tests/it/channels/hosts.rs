//! Two hosts and what is on the wire between them.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::Arc;

use laxity_model::channels::signalling::Label;
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Body, Cipher, Data, LONGEST, Left};
use laxity_net::channels::session::{
    Budget, Came, Identity, Neighbour, Peer, Refused, SealError, SecretKey, Terms,
};

/// Which of the two.
pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;

pub(crate) const MILLISECOND: Span = Span::from_millis(1);

pub(crate) fn identity(digit: char) -> Arc<Identity> {
    let text = String::from(digit).repeat(64);
    Arc::new(Identity::new(SecretKey::from_text(&text).expect("a key")))
}

/// What two neighbours have agreed on before.
#[derive(Clone, Copy)]
pub(crate) struct Agreed {
    pub(crate) cipher: Cipher,
    pub(crate) terms: Terms,
}

impl Default for Agreed {
    fn default() -> Self {
        Self {
            cipher: Cipher::AesGcm,
            terms: Terms::default(),
        }
    }
}

pub(crate) fn peer(own: &Arc<Identity>, other: &Identity, agreed: Agreed, now: Instant) -> Peer {
    let neighbour = Neighbour {
        key: other.public(),
        number: 6,
        cipher: agreed.cipher,
    };
    Peer::new(Arc::clone(own), neighbour, agreed.terms, 0, now).expect("another host")
}

/// A payload that is told from all others.
pub(crate) fn data(message: u64) -> Body<'static> {
    Body::Data(Data {
        channel: Label {
            index: 0,
            generation: 0,
        },
        message,
        part: 0,
        parts: NonZeroU16::MIN,
        earliness: 0,
        left: Left::UNKNOWN,
        best_effort: false,
        payload: b"something",
    })
}

/// What a frame came to, without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Message(u64),
    Answered,
    Agreed,
    Again,
}

/// Two hosts, and the frames that are on their way to each.
pub(crate) struct Hosts {
    pub(crate) now: Instant,
    pub(crate) identities: [Arc<Identity>; 2],
    pub(crate) peers: [Peer; 2],
    pub(crate) budgets: [Budget; 2],
    pub(crate) to: [Vec<Vec<u8>>; 2],
    /// All that was ever on its way to each.
    pub(crate) seen: [Vec<Vec<u8>>; 2],
    /// What each has said, and what each has heard.
    said: [BTreeSet<u64>; 2],
    heard: [BTreeSet<u64>; 2],
    messages: u64,
    agreed: Agreed,
}

impl Hosts {
    pub(crate) fn new(agreed: Agreed) -> Self {
        let identities = [identity('1'), identity('2')];
        let now = Instant::from_secs(1);
        let peers = [A, B].map(|one| peer(&identities[one], &identities[1 - one], agreed, now));
        Self {
            now,
            peers,
            identities,
            budgets: [A, B].map(|_| Budget::new(1_000_000, 1_000_000).expect("a budget")),
            to: Default::default(),
            seen: Default::default(),
            said: Default::default(),
            heard: Default::default(),
            messages: 0,
            agreed,
        }
    }

    /// All that a host knew is gone.
    pub(crate) fn restart(&mut self, host: usize) {
        let (own, other) = (&self.identities[host], &self.identities[1 - host]);
        self.peers[host] = peer(own, other, self.agreed, self.now);
    }

    fn put(&mut self, from: usize, frames: Vec<Vec<u8>>) {
        self.seen[1 - from].extend(frames.iter().cloned());
        self.to[1 - from].extend(frames);
    }

    pub(crate) fn poll(&mut self, host: usize) {
        let mut frames = Vec::new();
        self.peers[host].poll(self.now, |frame| frames.push(frame.to_vec()));
        self.put(host, frames);
    }

    /// Something is said, if there is a session.
    pub(crate) fn say(&mut self, host: usize) -> Result<u64, SealError> {
        let mut frame = vec![0; LONGEST];
        let message = self.messages;
        let length = self.peers[host].seal(self.now, &data(message), &mut frame)?;
        frame.truncate(length);
        self.messages += 1;
        self.said[host].insert(message);
        self.put(host, vec![frame]);
        Ok(message)
    }

    /// These bytes come to a host. What it hears was said by the other one, and is heard once.
    pub(crate) fn open(&mut self, host: usize, mut bytes: Vec<u8>) -> Result<Outcome, Refused> {
        let mut frames = Vec::new();
        let budget = &mut self.budgets[host];
        let send = |frame: &[u8]| frames.push(frame.to_vec());
        let came = self.peers[host].open(self.now, &mut bytes, budget, send);
        let outcome = came.map(|came| match came {
            Came::Data(data) => {
                assert!(self.said[1 - host].contains(&data.message));
                assert!(self.heard[host].insert(data.message), "heard twice");
                Outcome::Message(data.message)
            }
            Came::Signal(_) => panic!("nobody sends signals"),
            Came::Answered => Outcome::Answered,
            Came::Agreed => Outcome::Agreed,
            Came::Again => Outcome::Again,
        });
        self.put(host, frames);
        outcome
    }

    /// The first frame that is on its way to a host arrives.
    pub(crate) fn arrive(&mut self, host: usize) -> Result<Outcome, Refused> {
        let frame = self.to[host].remove(0);
        self.open(host, frame)
    }

    /// So much time in which each frame arrives a millisecond later in its order, and each host says something every 50 ms.
    pub(crate) fn undisturbed(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            for host in [A, B] {
                if self.peers[host].due() <= self.now {
                    self.poll(host);
                }
                if self.now.as_nanos() % 50_000_000 < 1_000_000 {
                    let _ = self.say(host);
                }
            }
            self.now += MILLISECOND;
            for host in [A, B] {
                for frame in std::mem::take(&mut self.to[host]) {
                    if self.open(host, frame) == Ok(Outcome::Agreed) {
                        self.say(host).expect("there is a session");
                    }
                }
            }
        }
    }

    /// Both use one and the same session, and hear each other.
    pub(crate) fn assert_agree(&mut self) {
        let [a, b] = [A, B].map(|host| self.peers[host].session().expect("a session"));
        assert_eq!(a, (b.1, b.0), "the session of each is the other's");
        self.to = Default::default();
        for host in [A, B] {
            let said = self.say(host).expect("there is a session");
            assert_eq!(self.arrive(1 - host), Ok(Outcome::Message(said)));
        }
    }
}
