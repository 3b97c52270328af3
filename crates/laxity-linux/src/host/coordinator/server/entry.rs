//! Who is let in, and how what comes from strangers is closed.

use std::thread;

use laxity_model::Instant;
use laxity_model::program::together::SEATS;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Connection, Coordinator, LOOK_EVERY};
use crate::host::coordinator::wire::Wire;
use crate::os::signals;

/// So many connections of one user: one for each seat, and a few that only ask.
pub(super) const OF_ONE_USER: usize = SEATS + 4;
/// So many of all.
pub(super) const OF_ALL: usize = 4 * OF_ONE_USER;
/// Whoever is of a namespace whose processes cannot be seen from here counts as of this user, who is nobody.
pub(super) const UNSEEN: u32 = u32::MAX;
/// Of a thread that only closes something.
const STACK: usize = 1 << 16;

impl Coordinator {
    /// Somebody may be new. Who cannot be known, or has enough connections, is not let in. Where there are no descriptors, nobody is for a moment: whoever waits would be seen to wait again at once.
    pub(super) fn accept(&mut self, now: Instant) {
        let Ok(wire) = Wire::accept(&self.listener) else {
            self.deaf_until = now + LOOK_EVERY;
            return;
        };
        let Ok(Some(who)) = wire.peer() else {
            return self.lets_go(UNSEEN, wire);
        };
        let process = Pid::from_raw(who.process.cast_signed());
        let process = process.map(|process| pidfd_open(process, PidfdFlags::empty()));
        let all = self.connections.len() + self.closing.len();
        let has_room = self.count_of(who.user) < OF_ONE_USER && all < OF_ALL;
        let Some(Ok(process)) = process.filter(|_| has_room) else {
            return self.lets_go(who.user, wire);
        };
        let connection = Connection {
            wire,
            process,
            who,
            seat: None,
            heard_at: now,
        };
        self.connections.insert(self.count, connection);
        self.count += 1;
    }

    /// So many connections this user has, and has had that are not closed yet.
    pub(super) fn count_of(&self, user: u32) -> usize {
        let open = self.connections.values();
        let open = open.filter(|one| one.who.user == user).count();
        open + self.closing.iter().filter(|(of, _)| *of == user).count()
    }

    /// The connection comes to its end. What was sent through it and not received goes with it.
    pub(super) fn lets_go(&mut self, user: u32, wire: Wire) {
        wire.end();
        self.closes(user, wire);
    }

    /// What this user has sent is closed by a thread that nobody waits for: it may take as long as whoever sent it likes.
    pub(super) fn closes(&mut self, user: u32, what: impl Send + 'static) {
        let builder = thread::Builder::new().name("closing".to_owned());
        let closing = signals::start_deaf(builder.stack_size(STACK), move || drop(what));
        // Where there is no thread to be had it is closed already.
        self.closing
            .extend(closing.ok().map(|thread| (user, thread)));
    }
}
