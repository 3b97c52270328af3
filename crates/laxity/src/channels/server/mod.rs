//! A node that applications of other processes reach by a socket: who they are says the kernel, and what they may do the network's file.

mod asked;
mod told;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc;

use laxity_linux::host::local::{self as socket, News};
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::ring::Shape;
use laxity_model::channels::signalling::{ChannelId, Hold, HostId, Refusal};
use laxity_net::channels::local::{Answer, Refused, User, Users};

use super::core::Core;
use super::error::Error;
use super::notes::{Note, Notes};
use super::{Node, Wanted};

/// What a node's applications are told and granted by, beside the node itself: as the network's file has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Book {
    /// The way to each host: those behind this one, the far end last.
    pub routes: BTreeMap<HostId, Vec<HostId>>,
    /// Channels that begin here, and may be opened by their name alone.
    pub channels: BTreeMap<Name, Known>,
    /// What users may do, by the system's numbers of them; beside root and who runs the node, who may do all.
    pub users: BTreeMap<u32, User>,
}

/// A channel that may be opened by its name alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// What it is to be.
    pub wanted: Wanted,
    /// The hosts behind this one, the far end last.
    pub over: Vec<HostId>,
}

/// A [`Node`] that applications of other processes reach by a socket, each as a [`Client`](super::Client): who is no user of the [`Book`] may do nothing, and whoever breaks what is said there harms his own channels alone.
pub struct Server {
    node: Node,
    book: Book,
    users: Users,
    socket: socket::Server,
    notes: Notes,
    told: mpsc::Receiver<Note>,
    apps: HashMap<u64, Application>,
    /// Whose a channel is, and by which number it is known to him.
    owners: HashMap<ChannelId, (u64, u32)>,
    listeners: HashMap<Name, (u64, u32)>,
    /// The number that was given last to a channel that came.
    last: u32,
}

/// An application.
struct Application {
    user: u32,
    is_greeted: bool,
    has: BTreeMap<u32, Has>,
}

/// What a number stands for.
enum Has {
    Listens(Name),
    /// A channel that came, which he is to take or not.
    Comes(Hold, Asked),
    /// One that begins here.
    Sends(Channel, Sends),
    /// One that ends here.
    Receives(Channel),
}

struct Channel {
    id: ChannelId,
    /// His side of its ring, until that is told.
    ring: Option<(Shape, [OwnedFd; 2])>,
}

/// What is known of a channel that begins here.
struct Sends {
    asked: Asked,
    /// All hosts.
    route: Vec<HostId>,
    /// It is being changed to this.
    changes: Option<Traffic>,
}

impl Server {
    /// The node is reached by a socket of this path from now on, in place of what is there; its directory is made where there is none. Users of the book are let in beside root and who runs it. The socket is gone with what this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Unreached`]: what the kernel says, or that others may put files in the directory.
    pub fn open(node: Node, book: Book, path: &Path) -> Result<Self, Error> {
        let socket = socket::Server::open(path, !book.users.is_empty());
        let socket = socket.map_err(|why| Error::Unreached(path.to_owned(), why))?;
        let (notes, told) = Notes::new(socket.waker());
        let owner = socket::Server::owner();
        Ok(Self {
            users: Users::new(owner, book.users.clone()),
            node,
            book,
            socket,
            notes,
            told,
            apps: HashMap::new(),
            owners: HashMap::new(),
            listeners: HashMap::new(),
            last: 0,
        })
    }

    /// The node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Serves, until `ends` can be read. The calling thread may be an ordinary one: messages of channels do not go through it.
    ///
    /// # Errors
    ///
    /// What the kernel says of waiting.
    pub fn serve(&mut self, ends: &OwnedFd) -> io::Result<()> {
        while let Some(news) = self.socket.hear(Some(ends), None)? {
            for news in news {
                match news {
                    News::Came(id, who) => self.came(id, who.user),
                    News::Said(id, bytes) => self.said(id, &bytes),
                    News::Gone(id) => self.gone(id),
                }
            }
            while let Ok(note) = self.told.try_recv() {
                self.noted(note);
            }
        }
        Ok(())
    }

    fn came(&mut self, id: u64, user: u32) {
        let application = Application {
            user,
            is_greeted: false,
            has: BTreeMap::new(),
        };
        self.apps.insert(id, application);
    }

    /// An application has gone, or its process has ended: so have its channels.
    fn gone(&mut self, id: u64) {
        let Some(Application { user, has, .. }) = self.apps.remove(&id) else {
            return;
        };
        for has in has.into_values() {
            match has {
                Has::Listens(name) => self.listens_no_more(name),
                Has::Comes(hold, _) => self.declines(hold, super::DECLINED_NOBODY),
                Has::Sends(Channel { id, .. }, sends) => {
                    self.users.closes(user, &sends.counts());
                    self.closes(id, true);
                }
                Has::Receives(Channel { id, .. }) => self.closes(id, true),
            }
        }
    }

    fn closes(&mut self, channel: ChannelId, has_died: bool) {
        if has_died {
            self.owners.remove(&channel);
        }
        // Nobody waits for that.
        drop(
            self.node
                .asks
                .ask(move |core: &mut Core| core.close(channel, has_died)),
        );
    }

    fn declines(&mut self, hold: Hold, why: u32) {
        self.owners.remove(&hold.channel);
        let answers = move |core: &mut Core| core.answers(hold, Err(why));
        drop(self.node.asks.ask(answers));
    }

    fn listens_no_more(&mut self, name: Name) {
        self.listeners.remove(&name);
        drop(
            self.node
                .asks
                .ask(move |core: &mut Core| core.served.remove(&name).is_some()),
        );
    }

    /// Asks the node's thread, which answers at once.
    fn asks<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Refused> {
        let answer = self.node.asks.ask(question).wait();
        answer.map_err(|_| self.refused_here(|at| Refusal::Busy { at }))
    }

    fn refused_here(
        &self,
        why: impl FnOnce(HostId) -> Refusal<laxity_model::channels::asked::Shortage>,
    ) -> Refused {
        Refused::Host(why(self.node.setup.host))
    }

    /// Tells an application something, with the descriptors of a ring. Who does not take it is let go.
    fn say(&mut self, id: u64, answer: &Answer, with: &[OwnedFd]) {
        use std::os::fd::AsFd as _;
        let with: Vec<_> = with.iter().map(|one| one.as_fd()).collect();
        if !self.socket.say(id, &answer.bytes(), &with) {
            self.socket.let_go(id);
            self.gone(id);
        }
    }

    fn refuses(&mut self, id: u64, number: u32, why: Refused) {
        self.say(id, &Answer::Refused { number, why }, &[]);
    }
}

impl Sends {
    /// What counts of it for its user: the more of what it is and what it may become.
    fn counts(&self) -> Traffic {
        let changes = self
            .changes
            .filter(|one| one.bits() > self.asked.traffic.bits());
        changes.unwrap_or(self.asked.traffic)
    }
}
