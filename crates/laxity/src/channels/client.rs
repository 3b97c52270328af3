//! An application whose node is in another process: it asks by a socket, and has the same ends of channels.

use std::collections::HashMap;
use std::env;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use laxity_linux::host::local::{Line, Server};
use laxity_linux::host::ring::Ring;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::ring::Side;
use laxity_model::channels::signalling::{HostId, Refusal};
use laxity_model::channels::source::Excess;
use laxity_model::{Grade, Span};
use laxity_net::channels::local::{self, Answer, Ask, NODES, Refused, Spec as Wanted, Takes};
use laxity_net::channels::told::LENGTH;

use super::Granted;
use super::ends::{Life, Reach, Sender, end, shape};
use super::error::Error;
use super::listening::{Accepted, Listener};
use super::setup::Listens;

/// Names the socket of this host's node.
const SOCKET: &str = "LAXITY_CHANNELS";
/// That of root.
const SHARED: &str = "/run/laxity/channels.sock";
/// Who serves greets at once.
const GREETS: Duration = Duration::from_secs(5);
/// The node has said by then why a ring has come to its end.
const EXPLAINS: Duration = Duration::from_secs(1);

/// A connection to this host's node, of which [`Server`](super::Server) tells the other side. It may be dropped: the ends of channels that were opened by it keep what they need of it.
///
/// ```no_run
/// use laxity::channels::{Client, Name};
/// let node = Client::connect(&Client::socket())?;
/// let mut sender = node.open(&Name::new("control")?, None)?;
/// sender.send(b"20 degrees")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    host: HostId,
}

/// What all ends of channels have of the connection.
#[derive(Debug)]
pub(super) struct Shared {
    line: Arc<Line>,
    state: Mutex<State>,
    /// Something of that has changed.
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number that was given last.
    last: u32,
    is_over: bool,
    /// Who waits for what becomes of a number.
    waits: HashMap<u32, SyncSender<Result<Option<Got>, Refused>>>,
    has: HashMap<u32, Has>,
}

/// What a number stands for.
#[derive(Debug)]
enum Has {
    Channel(Weak<Life>, Ring),
    Listens(Listening),
    /// A channel that came to who has that number.
    Comes(u32, Asked),
}

#[derive(Debug)]
struct Listening {
    name: Name,
    listens: Listens,
    accepted: mpsc::Sender<Accepted>,
    /// So many that came were not accepted yet.
    waiting: u32,
}

/// What was granted; with a ring, where it is a new one.
#[derive(Debug)]
struct Got {
    granted: local::Granted,
    opened: Option<(Ring, Arc<Life>)>,
}

impl Client {
    /// Where this host's node is reached: what the environment's `LAXITY_CHANNELS` says; else the user's own, `$XDG_RUNTIME_DIR/laxity/channels.sock`, if that is there; else `/run/laxity/channels.sock`.
    #[must_use]
    pub fn socket() -> PathBuf {
        let there = || own().filter(|own| own.exists());
        let found = named(SOCKET).or_else(there);
        found.unwrap_or_else(|| PathBuf::from(SHARED))
    }

    /// Where a node of this user is to be reached, so that it is [found](Self::socket): what `LAXITY_CHANNELS` says; else of root `/run/laxity/channels.sock`, and of others `$XDG_RUNTIME_DIR/laxity/channels.sock`, if that is a directory's name.
    #[must_use]
    pub fn socket_of_node() -> Option<PathBuf> {
        let shared = || (Server::owner() == 0).then(|| PathBuf::from(SHARED));
        named(SOCKET).or_else(shared).or_else(own)
    }

    /// Connects to the node that is reached by this socket, which is this user's own or root's.
    ///
    /// # Errors
    ///
    /// [`Error::Unreached`], or [`Error::Strange`].
    pub fn connect(path: &Path) -> Result<Self, Error> {
        let unreached = |why| Error::Unreached(path.to_owned(), why);
        let line = Line::connect(path, GREETS).map_err(unreached)?;
        line.say(&Ask::Hello.bytes()).map_err(unreached)?;
        let greeted = line.hear().map_err(unreached)?.ok_or(Error::Ended)?;
        let Ok(Answer::Welcome { host }) = Answer::parse(&greeted.0) else {
            return Err(Error::Strange);
        };
        line.patience(None).map_err(unreached)?;
        let shared = Arc::new(Shared {
            line: Arc::new(line),
            state: Mutex::default(),
            news: Condvar::new(),
        });
        let (line, heard) = (Arc::clone(&shared.line), Arc::downgrade(&shared));
        let builder = thread::Builder::new().name("node's answers".to_owned());
        builder.spawn(move || hear(&line, &heard))?;
        Ok(Self { shared, host })
    }

    /// Which host of the network this is.
    #[must_use]
    pub const fn host(&self) -> HostId {
        self.host
    }

    /// Opens a channel, and waits until it is granted: as the network's file has it under this name, or as is wanted. Whoever drops what this returns closes it.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], with what would fit; [`Error::Forbidden`], [`Error::Unnamed`], or the node has ended.
    pub fn open(&self, name: &Name, wanted: Option<Wanted>) -> Result<Sender, Error> {
        let ask = |number| Ask::Open {
            number,
            name: name.clone(),
            spec: wanted,
        };
        let number = self.shared.number(None);
        let got = self
            .shared
            .asks(number, &ask(number))?
            .ok_or(Error::Strange)?;
        let (ring, life) = got.opened.ok_or(Error::Strange)?;
        let granted = told(got.granted);
        Ok(Sender::new(ring.sender(), life, None, granted))
    }

    /// Listens to a name: channels that are opened under it are accepted there.
    ///
    /// # Errors
    ///
    /// [`Error::Taken`], [`Error::Forbidden`], or the node has ended.
    pub fn listen(&self, name: Name, listens: Listens) -> Result<Listener, Error> {
        // No ring may be too large only when somebody opens.
        shape(listens.room.get(), listens.largest, LENGTH)?;
        let (tell, accepted) = mpsc::channel();
        let number = self.shared.number(Some(Listening {
            name: name.clone(),
            listens,
            accepted: tell,
            waiting: 0,
        }));
        let own = name.clone();
        let asked = self.shared.asks(number, &Ask::Listen { number, name: own });
        if let Err(why) = asked {
            self.shared.state().has.remove(&number);
            return Err(why);
        }
        let via = (Arc::clone(&self.shared), number);
        Ok(Listener::afar(name, via, accepted))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that stands for nothing else.
    fn number(&self, listening: Option<Listening>) -> u32 {
        let mut state = self.state();
        loop {
            state.last = state.last % (NODES - 1) + 1;
            let number = state.last;
            if state.has.contains_key(&number) || state.waits.contains_key(&number) {
                continue;
            }
            if let Some(listening) = listening {
                state.has.insert(number, Has::Listens(listening));
            }
            return number;
        }
    }

    /// Asks, and waits for the answer.
    fn asks(&self, number: u32, ask: &Ask) -> Result<Option<Got>, Error> {
        let (tell, told) = sync_channel(1);
        {
            let mut state = self.state();
            if state.is_over {
                return Err(Error::Ended);
            }
            state.waits.insert(number, tell);
        }
        if self.line.say(&ask.bytes()).is_err() {
            self.state().waits.remove(&number);
            return Err(Error::Ended);
        }
        told.recv().map_err(|_| Error::Ended)?.map_err(error)
    }

    /// A channel is to carry something else.
    pub(super) fn change(
        &self,
        number: u32,
        traffic: Traffic,
        within: Span,
    ) -> Result<(Granted, Grade), Error> {
        let spec = Wanted {
            to: HostId(0),
            traffic,
            discard: false,
            within,
            over: Excess::Shape,
        };
        let got = self.asks(number, &Ask::Change { number, spec })?;
        Ok(told(got.ok_or(Error::Strange)?.granted))
    }

    /// Nobody has it any more.
    pub(super) fn close(&self, number: u32) {
        // A node that is gone has closed it.
        let _ = self.line.say(&Ask::Close { number }.bytes());
    }

    /// A channel that came to who has this number was accepted.
    pub(super) fn accepted(&self, number: u32) {
        if let Some(Has::Listens(listening)) = self.state().has.get_mut(&number) {
            listening.waiting = listening.waiting.saturating_sub(1);
        }
    }

    /// Why a channel is over: waits until the node has said that, or is gone, or takes too long.
    pub(super) fn error(&self, life: &Life) -> Error {
        let state = self.state();
        let is_open = |state: &mut State| life.cause.get().is_none() && !state.is_over;
        let waited = self.news.wait_timeout_while(state, EXPLAINS, is_open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match life.cause.get() {
            Some(cause) => Error::Over(*cause),
            None if state.is_over => Error::Ended,
            None => Error::Broken,
        }
    }

    /// What the node says; `Err`: it cannot be so.
    fn heard(self: &Arc<Self>, answer: Answer, with: Vec<OwnedFd>) -> Result<(), Error> {
        match answer {
            Answer::Welcome { .. } => return Err(Error::Strange),
            Answer::Granted { number, granted } => self.granted(number, granted, with)?,
            Answer::Refused { number, why } => {
                let mut state = self.state();
                if let Some(waits) = state.waits.remove(&number) {
                    let _ = waits.try_send(Err(why));
                } else if let Some(Has::Comes(listener, _)) = state.has.get(&number) {
                    let listener = *listener;
                    state.comes_not(number, listener);
                }
            }
            Answer::Incoming {
                number,
                name,
                traffic,
                discard,
                ..
            } => {
                let asked = Asked {
                    name,
                    traffic,
                    discard,
                };
                let ask = self.state().comes(number, asked);
                // Where it is gone, the next look at the line tells.
                let _ = self.line.say(&ask.bytes());
            }
            Answer::Listens { number } => {
                if let Some(waits) = self.state().waits.remove(&number) {
                    let _ = waits.try_send(Ok(None));
                }
            }
            Answer::Ended { number, cause } => {
                let (has, waits) = {
                    let mut state = self.state();
                    (state.has.remove(&number), state.waits.remove(&number))
                };
                if let Some(waits) = waits {
                    let _ = waits.try_send(Err(Refused::Host(Refusal::Ended(cause))));
                }
                match has {
                    Some(Has::Channel(life, ring)) => {
                        // Whoever waits for it has looked, or will see it.
                        let state = self.state();
                        if let Some(life) = life.upgrade() {
                            let _ = life.cause.set(cause);
                        }
                        drop(state);
                        self.news.notify_all();
                        end(&ring);
                    }
                    Some(Has::Comes(listener, _)) => self.state().comes_not(number, listener),
                    Some(Has::Listens(_)) | None => {}
                }
            }
        }
        Ok(())
    }

    fn granted(
        self: &Arc<Self>,
        number: u32,
        granted: local::Granted,
        with: Vec<OwnedFd>,
    ) -> Result<(), Error> {
        let mut state = self.state();
        let waits = state.waits.remove(&number);
        let side = if waits.is_some() {
            Side::Sender
        } else {
            Side::Receiver
        };
        let opened = match granted.ring {
            None => None,
            Some(shape) => {
                let with = with.try_into().map_err(|_| Error::Strange)?;
                let ring = Ring::attach(shape, side, with)?;
                let reach = Reach::Line(Arc::clone(self), number);
                Some((ring, Arc::new(Life::reached(granted.channel, reach))))
            }
        };
        let before = match &opened {
            Some((ring, life)) => {
                let has = Has::Channel(Arc::downgrade(life), ring.clone());
                state.has.insert(number, has)
            }
            None => None,
        };
        let accepted = match (&before, &opened) {
            (Some(Has::Comes(listener, asked)), Some((ring, life))) => {
                let accepted = Accepted {
                    ring: ring.clone(),
                    life: Arc::clone(life),
                    asked: asked.clone(),
                };
                match state.has.get(listener) {
                    Some(Has::Listens(one)) => one.accepted.send(accepted).is_ok(),
                    _ => false,
                }
            }
            _ => false,
        };
        drop(state);
        // Where nobody waits any more, or listens, the end is dropped, which closes the channel.
        match waits {
            Some(waits) if waits.try_send(Ok(Some(Got { granted, opened }))).is_ok() => {}
            None if accepted => {}
            _ => self.close(number),
        }
        Ok(())
    }

    /// Nobody serves any more: whoever waits is told.
    fn over(&self) {
        let has = {
            let mut state = self.state();
            state.is_over = true;
            state.waits.clear();
            std::mem::take(&mut state.has)
        };
        self.news.notify_all();
        for has in has.into_values() {
            if let Has::Channel(_, ring) = has {
                end(&ring);
            }
        }
    }
}

impl State {
    /// A channel comes to a name: what is said of it.
    fn comes(&mut self, number: u32, asked: Asked) -> Ask {
        let largest = asked.traffic.largest();
        let listener = self.has.iter_mut().find_map(|(listener, has)| match has {
            Has::Listens(one) if one.name == asked.name => Some((*listener, one)),
            _ => None,
        });
        let why = match listener {
            None => super::DECLINED_NOBODY,
            Some((_, one)) if one.waiting >= one.listens.backlog.max(1) => super::DECLINED_BUSY,
            Some((_, one)) if largest > one.listens.largest => super::DECLINED_LARGE,
            Some((listener, one)) => {
                one.waiting += 1;
                let takes = Takes {
                    largest: one.listens.largest,
                    room: one.listens.room,
                    patience: one.listens.patience,
                };
                self.has.insert(number, Has::Comes(listener, asked));
                return Ask::Agree { number, takes };
            }
        };
        Ask::Decline { number, why }
    }

    /// One that was agreed to does not come.
    fn comes_not(&mut self, number: u32, listener: u32) {
        self.has.remove(&number);
        if let Some(Has::Listens(one)) = self.has.get_mut(&listener) {
            one.waiting = one.waiting.saturating_sub(1);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.line.end();
    }
}

/// Hears what the node says, until nobody has anything of it any more.
fn hear(line: &Line, shared: &Weak<Shared>) {
    loop {
        let heard = line.hear();
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let done = match heard {
            Ok(Some((bytes, with))) => match Answer::parse(&bytes) {
                Ok(answer) => shared.heard(answer, with),
                Err(_) => Err(Error::Strange),
            },
            Ok(None) => Err(Error::Ended),
            Err(why) if why.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(_) => Err(Error::Ended),
        };
        if done.is_err() {
            line.end();
            return shared.over();
        }
    }
}

fn named(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// The user's own.
fn own() -> Option<PathBuf> {
    Some(named("XDG_RUNTIME_DIR")?.join("laxity/channels.sock"))
}

fn told(granted: local::Granted) -> (Granted, Grade) {
    let grade = match granted.grade {
        local::Grade::Enforced => Grade::Enforced,
        local::Grade::Unenforced(reason) => Grade::Unenforced { reason },
    };
    let granted = Granted {
        bounds: granted.hops.iter().map(|hop| hop.delay).collect(),
        propagation: granted.propagation,
    };
    (granted, grade)
}

fn error(why: Refused) -> Error {
    match why {
        Refused::Host(refusal) => Error::Refused(refusal),
        Refused::Forbidden => Error::Forbidden,
        Refused::Unnamed => Error::Unnamed,
        Refused::Listened => Error::Taken,
        Refused::Number | Refused::Garbled => Error::Strange,
    }
}
