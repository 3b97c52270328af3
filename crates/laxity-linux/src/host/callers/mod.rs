//! Who has called at a socket, as the kernel knows them: how they are let in, heard and let go, without waiting for any of them.

pub(crate) mod wire;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::task::Waker;
use std::thread::{self, JoinHandle};

use laxity_model::program::coordinator::Who;
use laxity_model::{Instant, Span};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use self::wire::{Packet, Wire};
use crate::os::clock;
use crate::os::descriptor::{self, Alarm};
use crate::os::signals;

/// While something is to end by itself, it is looked so often for that.
pub(crate) const LOOK_EVERY: Span = Span::from_millis(20);
/// Whoever is of a namespace whose processes cannot be seen from here counts as of this user, who is nobody.
const UNSEEN: u32 = u32::MAX;
/// Of a thread that only closes something.
const STACK: usize = 1 << 16;

/// How many are let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// So many connections of one user.
    pub(crate) of_one_user: usize,
    /// So many of all.
    pub(crate) of_all: usize,
    /// Who is of no account is let go when nothing was understood of him for so long.
    pub(crate) silence: Span,
}

/// A process that is connected, and what it has.
pub(crate) struct Caller<T> {
    pub(crate) who: Who,
    /// When it last said what can be understood, or came.
    pub(crate) heard_at: Instant,
    pub(crate) has: T,
    wire: Wire,
    /// Can be read when the process has ended, though a child of it has the connection still.
    process: OwnedFd,
}

/// All who are connected, by the number of their connection.
pub(crate) struct Callers<T> {
    all: BTreeMap<u64, Caller<T>>,
    /// So many were ever connected.
    count: u64,
    limits: Limits,
    listener: OwnedFd,
    /// Nobody is let in before: there were no descriptors for it.
    deaf_until: Instant,
    /// Threads that close what users sent.
    closing: Vec<(u32, JoinHandle<()>)>,
    alarm: Arc<Alarm>,
}

/// A directory, which is made where there is none; whether it is this user's own and nobody else may put files there.
pub(crate) fn directory(path: &Path, everyone: bool) -> io::Result<bool> {
    let mode = if everyone { 0o755 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    let found = fs::metadata(path)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    Ok(is_own && found.mode() & 0o022 == 0)
}

impl<T> Callers<T> {
    /// None yet, at a socket of this path in place of what is there.
    pub(crate) fn new(path: &Path, everyone: bool, limits: Limits) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = wire::listen(path)?;
        let mode = if everyone { 0o666 } else { 0o600 };
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(Self {
            all: BTreeMap::new(),
            count: 0,
            limits,
            listener,
            deaf_until: Instant::ZERO,
            closing: Vec::new(),
            alarm: Arc::new(Alarm::new()?),
        })
    }

    /// Waits until there is something to hear, until then at the latest; `None` where this descriptor can be read. What was said, with the ends of connections. Descriptors are taken along only of messages of which this says so.
    pub(crate) fn hear(
        &mut self,
        ends: Option<&OwnedFd>,
        until: Option<Instant>,
        takes: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Option<Vec<(u64, Packet)>>>
    where
        T: Default,
    {
        let is_deaf = clock::now() < self.deaf_until || self.closing.len() >= self.limits.of_all;
        let mut waited = Vec::new();
        for caller in self.all.values() {
            waited.extend([caller.wire.as_fd(), caller.process.as_fd()]);
        }
        waited.extend(ends.map(OwnedFd::as_fd));
        let callers = waited.len();
        waited.extend((!is_deaf).then(|| self.listener.as_fd()));
        let ready = descriptor::wait(&waited, &self.alarm, until)?;
        let is_said = |place: usize| ready.get(place).is_some_and(|ready| *ready != 0);
        if ends.is_some() && is_said(callers - 1) {
            return Ok(None);
        }
        let mut heard = Vec::new();
        for ((id, caller), ready) in self.all.iter().zip(ready.chunks(2)) {
            if ready[0] != 0 {
                let has_room = || self.count_of(caller.who.user) < self.limits.of_one_user;
                let takes = |bytes: &[u8]| takes(bytes) && has_room();
                match caller.wire.receive_at_once(takes) {
                    Ok(packet) => heard.push((*id, packet)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => heard.push((*id, (None, Vec::new()))),
                }
            } else if ready[1] != 0 {
                heard.push((*id, (None, Vec::new())));
            }
        }
        if is_said(callers) {
            self.accept(clock::now());
        }
        Ok(Some(heard))
    }

    /// Somebody may be new. Who cannot be known, or has enough connections, is not let in. Where there are no descriptors, nobody is for a moment: whoever waits would be seen to wait again at once.
    fn accept(&mut self, now: Instant)
    where
        T: Default,
    {
        let Ok(wire) = Wire::accept(&self.listener) else {
            self.deaf_until = now + LOOK_EVERY;
            return;
        };
        let Ok(Some(who)) = wire.peer() else {
            return self.lets_go(UNSEEN, wire);
        };
        let process = Pid::from_raw(who.process.cast_signed());
        let process = process.map(|process| pidfd_open(process, PidfdFlags::empty()));
        let all = self.all.len() + self.closing.len();
        let has_room =
            self.count_of(who.user) < self.limits.of_one_user && all < self.limits.of_all;
        let Some(Ok(process)) = process.filter(|_| has_room) else {
            return self.lets_go(who.user, wire);
        };
        let caller = Caller {
            who,
            heard_at: now,
            has: T::default(),
            wire,
            process,
        };
        self.all.insert(self.count, caller);
        self.count += 1;
    }

    /// So many connections this user has, and has had that are not closed yet.
    fn count_of(&self, user: u32) -> usize {
        let open = self.all.values();
        let open = open.filter(|one| one.who.user == user).count();
        open + self.closing.iter().filter(|(of, _)| *of == user).count()
    }

    /// The connection comes to its end. What was sent through it and not received goes with it.
    fn lets_go(&mut self, user: u32, wire: Wire) {
        wire.end();
        self.closes(user, wire);
    }

    /// What this user has sent is closed by a thread that nobody waits for: it may take as long as whoever sent it likes.
    fn closes(&mut self, user: u32, what: impl Send + 'static) {
        let builder = thread::Builder::new().name("closing".to_owned());
        let closing = signals::start_deaf(builder.stack_size(STACK), move || drop(what));
        // Where there is no thread to be had it is closed already.
        self.closing
            .extend(closing.ok().map(|thread| (user, thread)));
    }

    /// What this caller has sent along is closed.
    pub(crate) fn closes_of(&mut self, user: Option<u32>, with: Vec<OwnedFd>) {
        if !with.is_empty() {
            self.closes(user.unwrap_or(UNSEEN), with);
        }
    }

    /// The connection comes to its end; who had it, and what.
    pub(crate) fn ends(&mut self, id: u64) -> Option<(Who, T)> {
        let Caller { who, has, wire, .. } = self.all.remove(&id)?;
        self.lets_go(who.user, wire);
        Some((who, has))
    }

    /// When there is something to do at the latest, though nobody says anything. Who is of no account is let go when he is silent.
    pub(crate) fn next(
        &self,
        now: Instant,
        is_idle: impl Fn(&Caller<T>) -> bool,
    ) -> Option<Instant> {
        let idle = self.all.values().filter(|one| is_idle(one));
        let others = [
            Some(self.deaf_until).filter(|until| now < *until),
            (!self.closing.is_empty()).then(|| now + LOOK_EVERY),
        ];
        let silent = idle.filter_map(|one| self.ends_silence(one));
        others.into_iter().flatten().chain(silent).min()
    }

    fn ends_silence(&self, one: &Caller<T>) -> Option<Instant> {
        one.heard_at.checked_add(self.limits.silence)
    }

    /// Those of no account who have been silent for too long. What was to be closed by threads that have ended is.
    pub(crate) fn tidy(&mut self, now: Instant, is_idle: impl Fn(&Caller<T>) -> bool) -> Vec<u64> {
        self.closing.retain(|(_, thread)| !thread.is_finished());
        let is_over = |one: &Caller<T>| self.ends_silence(one).is_some_and(|ends| ends <= now);
        let silent = self
            .all
            .iter()
            .filter(|(_, one)| is_idle(one) && is_over(one));
        silent.map(|(id, _)| *id).collect()
    }

    /// Who does not take it is not waited for; whether he did.
    pub(crate) fn says(&self, id: u64, bytes: &[u8], with: &[BorrowedFd<'_>]) -> bool {
        let caller = self.all.get(&id);
        caller.is_some_and(|caller| caller.wire.send_at_once(bytes, with).is_ok())
    }

    /// By which another thread ends its [wait](Self::hear), also the next.
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.alarm))
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Caller<T>> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Caller<T>> {
        self.all.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Caller<T>)> {
        self.all.iter().map(|(id, caller)| (*id, caller))
    }

    /// So many were ever connected: the next has this number.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
