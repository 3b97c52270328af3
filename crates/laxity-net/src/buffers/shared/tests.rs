//! A pool that is closed between two steps of whoever gives or sends a buffer: he looked before, and has to look again.

use std::task::Waker;

use laxity_model::Instant;

use super::*;

/// A pool that was closed when its only buffer had just been laid down.
fn closed(place: Place, is_awaited: bool) -> (Arc<Shared<Box<[u8]>>>, u32) {
    let line = Line::new(1, Waker::noop().clone()).map(|line| (Arc::new(line), 0));
    let memory = vec![0; 64].into_boxed_slice();
    let sleeper = Sleeper::portable(|| Instant::MAX);
    let pool = Shared::new(vec![memory], 1, sleeper, line).unwrap();
    let Ok(mut held) = pool.take() else {
        panic!("it is free");
    };
    let index = held.index;
    let mut contents = held.contents.take().unwrap();
    contents.frame.is_awaited = is_awaited;
    pool.slot(index).put(contents, place);
    pool.close();
    (pool, index)
}

#[test]
fn what_is_given_while_a_pool_is_closed_comes_home() {
    let (pool, index) = closed(Place::Given, false);
    pool.show_given(index);
    assert_eq!(pool.census().free, 1);
}

#[test]
fn what_is_sent_while_a_pool_is_closed_comes_home_or_back_to_whoever_waits() {
    let (pool, index) = closed(Place::Sending, false);
    pool.show_outgoing(index, false);
    assert_eq!(pool.census().free, 1);
    let (pool, index) = closed(Place::Sending, true);
    pool.show_outgoing(index, false);
    assert_eq!(pool.census().held, 1);
    let (_held, outcome) = pool.wait_sent(index);
    assert_eq!(outcome, Err(LinkError::Gone));
}
