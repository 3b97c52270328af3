//! The socket by which a node's applications reach it. What is said there is the affair of who serves: here are only who they are, as the kernel knows it, and their messages.
//!
//! Nobody is waited for: who takes no answer, sends descriptors or more than a message may have is let go, and harms nobody else.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::task::Waker;
use std::time::Duration;

use laxity_model::program::coordinator::Who;
use laxity_model::{Instant, Span};

use super::callers::wire::Wire;
use super::callers::{Callers, Limits, directory};

const LIMITS: Limits = Limits {
    of_one_user: 64,
    of_all: 1_024,
    // Who says nothing is let go by who serves, where that is wanted.
    silence: Span::MAX,
};

/// What is new.
#[derive(PartialEq, Eq, Debug)]
pub enum News {
    /// Somebody has come, who has this number from now on.
    Came(u64, Who),
    /// He says this: one message, whole.
    Said(u64, Vec<u8>),
    /// He has gone, or his process has ended.
    Gone(u64),
}

/// Who is reached by a socket. The socket is gone with it.
pub struct Server {
    callers: Callers<()>,
    path: PathBuf,
}

impl Server {
    /// At a socket of this path, in place of what is there; for everyone, or for this user and root alone. Its directory is made where there is none.
    ///
    /// # Errors
    ///
    /// What the kernel says; or that others might put files in the directory, with [`io::ErrorKind::PermissionDenied`].
    pub fn open(path: &Path, everyone: bool) -> io::Result<Self> {
        let place = path.parent().filter(|place| !place.as_os_str().is_empty());
        if !directory(place.unwrap_or(Path::new(".")), everyone)? {
            let why = "the directory is not this user's own, or others may write in it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Self {
            callers: Callers::new(path, everyone, LIMITS)?,
            path: path.to_owned(),
        })
    }

    /// The number of the user who serves.
    #[must_use]
    pub fn owner() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Waits until there is something new or its [waker](Self::waker) is called, until then at the latest; `None` where `ends` can be read.
    ///
    /// # Errors
    ///
    /// What the kernel says of waiting.
    pub fn hear(
        &mut self,
        ends: Option<&OwnedFd>,
        until: Option<Instant>,
    ) -> io::Result<Option<Vec<News>>> {
        let now = crate::os::clock::now();
        self.callers.tidy(now, |_| false);
        let next = self.callers.next(now, |_| false);
        let until = [until, next].into_iter().flatten().min();
        let before = self.callers.count();
        let Some(heard) = self.callers.hear(ends, until, |_| false)? else {
            return Ok(None);
        };
        let mut news = Vec::new();
        for (id, (bytes, with)) in heard {
            let user = self.callers.get(id).map(|one| one.who.user);
            self.callers.closes_of(user, with);
            match bytes {
                Some(bytes) => news.push(News::Said(id, bytes)),
                None => {
                    self.callers.ends(id);
                    news.push(News::Gone(id));
                }
            }
        }
        let new = self.callers.iter().filter(|(id, _)| *id >= before);
        news.extend(new.map(|(id, one)| News::Came(id, one.who)));
        Ok(Some(news))
    }

    /// By which another thread ends that wait, or the next one; one system call.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.callers.waker()
    }

    /// Tells one something, with descriptors; whether he took it. Who did not is to be [let go](Self::let_go).
    #[must_use]
    pub fn say(&self, id: u64, bytes: &[u8], with: &[BorrowedFd<'_>]) -> bool {
        self.callers.says(id, bytes, with)
    }

    /// Who has this number, as long as he is there.
    #[must_use]
    pub fn who(&self, id: u64) -> Option<Who> {
        self.callers.get(id).map(|one| one.who)
    }

    /// The connection comes to its end; nothing is told of it any more.
    pub fn let_go(&mut self, id: u64) {
        self.callers.ends(id);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// An application's connection to who serves. It can be polled.
#[derive(Debug)]
pub struct Line(Wire);

impl Line {
    /// To who serves at this path; for no longer than this, as nothing is waited for longer later.
    ///
    /// # Errors
    ///
    /// What the kernel says; or that it is neither this user's nor root's, with [`io::ErrorKind::PermissionDenied`].
    pub fn connect(path: &Path, patience: Duration) -> io::Result<Self> {
        let wire = Wire::connect(path, patience)?;
        let own = rustix::process::geteuid().as_raw();
        match wire.peer()? {
            Some(Who { user, .. }) if user == own || user == 0 => Ok(Self(wire)),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// From now on nothing is waited for longer than this; `None`: for as long as it takes.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn patience(&self, limit: Option<Duration>) -> io::Result<()> {
        self.0.patience(limit)
    }

    /// Says something: one message, whole.
    ///
    /// # Errors
    ///
    /// Nobody serves there any more, or takes it in time.
    pub fn say(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(bytes, &[])
    }

    /// The next that is told, with its descriptors; `None` at the end.
    ///
    /// # Errors
    ///
    /// Nothing is told in time.
    pub fn hear(&self) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let (bytes, with) = self.0.receive()?;
        Ok(bytes.map(|bytes| (bytes, with)))
    }

    /// It comes to its end, for who waits for it in another thread, too.
    pub fn end(&self) {
        self.0.end();
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
