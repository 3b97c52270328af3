//! What a node's thread tells whoever serves applications of other processes.

use std::sync::mpsc;
use std::task::Waker;

use laxity_model::channels::asked::Asked;
use laxity_model::channels::signalling::{Cause, ChannelId, Hold};

use super::core::Settled;

/// What is told.
pub(super) enum Note {
    /// What became of an opening or a change.
    Settled(ChannelId, Settled),
    /// Somebody wants to open a channel to a name that one of them listens to.
    Asked(Hold, Asked),
    /// One that was taken is open.
    Begun(ChannelId),
    /// A channel has ended.
    Ended(ChannelId, Cause),
}

/// By which it is told. Nobody waits for anybody.
#[derive(Clone)]
pub(super) struct Notes {
    to: mpsc::Sender<Note>,
    waker: Waker,
}

impl Notes {
    /// For who is woken so, and takes them there.
    pub(super) fn new(waker: Waker) -> (Self, mpsc::Receiver<Note>) {
        let (to, told) = mpsc::channel();
        (Self { to, waker }, told)
    }

    pub(super) fn tell(&self, note: Note) {
        // Who serves no more wants none.
        if self.to.send(note).is_ok() {
            self.waker.wake_by_ref();
        }
    }
}
