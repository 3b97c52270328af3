//! How a call waits: it tries, sleeps until its client is rung for or its protocol has something to do, and tries again.

use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::base::bell::Bell;
use laxity_model::nif::link::Memory;
use laxity_model::{Instant, Span};

use crate::lock;
use crate::stack::{Common, Endpoint};

/// Whether a socket's calls block, and for how long.
#[derive(Debug, Default)]
pub(super) struct Mode {
    does_not_block: AtomicBool,
    /// To read, to write.
    most: [Mutex<Option<Span>>; 2],
}

/// Which limit of time a call has.
#[derive(Clone, Copy)]
pub(super) enum Way {
    In = 0,
    Out = 1,
}

impl Mode {
    pub(super) fn set_nonblocking(&self, does_not_block: bool) {
        self.does_not_block.store(does_not_block, Ordering::Relaxed);
    }

    pub(super) fn set_most(&self, way: Way, most: Option<Span>) {
        *lock(&self.most[way as usize]) = most;
    }

    fn is_nonblocking(&self) -> bool {
        self.does_not_block.load(Ordering::Relaxed)
    }
}

/// Tries until there is an answer, or as long as the socket's mode allows. `failed`: what it is that there is no client.
pub(super) fn attempt<M: Memory + 'static, T>(
    common: &Common<M>,
    (endpoint, bell): (&Mutex<Endpoint<M>>, &Bell),
    (mode, way): (&Mode, Way),
    failed: ErrorKind,
    mut answer: impl FnMut(&mut Endpoint<M>, Instant) -> Option<io::Result<T>>,
) -> io::Result<T> {
    let mut once = || {
        let now = (common.clock)();
        let mut endpoint = lock(endpoint);
        endpoint.poll(now);
        let answered = match endpoint.failed() {
            Some(why) => Some(Err(io::Error::new(failed, why.to_owned()))),
            None if endpoint.is_starting() => None,
            None => answer(&mut endpoint, now),
        };
        let again = endpoint.poll(now);
        (answered, again)
    };
    let (answered, mut again) = once();
    if let Some(answered) = answered {
        return answered;
    }
    if mode.is_nonblocking() {
        return Err(ErrorKind::WouldBlock.into());
    }
    let most = *lock(&mode.most[way as usize]);
    let limit = most.map(|most| (common.clock)() + most);
    loop {
        let until = [again, limit].into_iter().flatten().min();
        let answered = bell.wait_for(&common.sleeper, until, || {
            let (answered, next) = once();
            let is_sooner = next.is_some_and(|next| until.is_none_or(|until| next < until));
            again = next;
            (answered.is_some() || is_sooner).then_some(answered)
        });
        if let Some(Some(answered)) = answered {
            return answered;
        }
        if limit.is_some_and(|limit| limit <= (common.clock)()) {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}
