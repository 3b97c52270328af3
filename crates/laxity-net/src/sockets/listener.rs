//! Connections that are taken.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::Instant;
use laxity_model::base::bell::Bell;
use laxity_model::nif::link::Memory;

use super::TcpStream;
use crate::lock;
use crate::stack::{Listening, Stack};

/// A port that connections are taken at. Up to its backlog begin by themselves, each with a client of its own, and wait to be accepted; the first packet of one more is
/// dropped and counted, so that its peer tries again.
pub struct TcpListener<M: Memory + 'static> {
    stack: Stack<M>,
    port: u16,
    listening: Arc<Listening<M>>,
}

impl<M: Memory + 'static> TcpListener<M> {
    /// Listens at a port of all addresses of the stack.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](ErrorKind::AddrInUse); [`InvalidInput`](ErrorKind::InvalidInput) for port 0 or no backlog.
    pub fn bind(stack: &Stack<M>, port: u16, backlog: usize) -> io::Result<Self> {
        if port == 0 || backlog == 0 {
            return Err(ErrorKind::InvalidInput.into());
        }
        let listening = Arc::new(Listening {
            waiting: Some(VecDeque::new()).into(),
            bell: Bell::default(),
            backlog,
            open: 0.into(),
            refused: 0.into(),
        });
        let mut listeners = lock(&stack.0.listeners);
        if listeners.contains_key(&port) {
            return Err(ErrorKind::AddrInUse.into());
        }
        listeners.insert(port, Arc::clone(&listening));
        drop(listeners);
        Ok(Self {
            stack: stack.clone(),
            port,
            listening,
        })
    }

    /// The connection that waits for the longest time; `None` if there is none now.
    #[must_use]
    pub fn try_accept(&self) -> Option<TcpStream<M>> {
        let connection = lock(&self.listening.waiting).as_mut()?.pop_front()?;
        self.listening.open.fetch_sub(1, Ordering::SeqCst);
        let stream = TcpStream::of(&self.stack, connection);
        stream.set_nonblocking(true);
        Some(stream)
    }

    /// The same, waiting for one, no longer than until then; the stream blocks. `None`: time is up.
    pub fn accept(&self, until: Option<Instant>) -> Option<TcpStream<M>> {
        let sleeper = &self.stack.0.common.sleeper;
        let stream = self
            .listening
            .bell
            .wait_for(sleeper, until, || self.try_accept())?;
        stream.set_nonblocking(false);
        Some(stream)
    }

    /// First packets that found the backlog full.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.listening.refused.load(Ordering::SeqCst)
    }
}

impl<M: Memory + 'static> Drop for TcpListener<M> {
    /// What waits to be accepted is reset, and so is what begins.
    fn drop(&mut self) {
        lock(&self.stack.0.listeners).remove(&self.port);
        let waiting = lock(&self.listening.waiting).take();
        for connection in waiting.into_iter().flatten() {
            TcpStream::of(&self.stack, connection).abort();
        }
        self.stack.0.bell.ring(&self.stack.0.common.sleeper);
    }
}
