//! Over the loop, for which nobody needs a right.

use laxity::Span;
use laxity::channels::{Cause, Error, HostId, Lane, Refusal, SendError, Told};
use laxity::now;

use super::support::{addresses, listens, name, nodes, spec};

/// Messages come in order, whole, each once, and are told with their numbers.
fn come(seal: bool) {
    let [from, to] = nodes(addresses(), seal);
    let listener = to
        .listen(name("control"), listens(4_000), Span::ZERO)
        .unwrap();
    let mut sender = from.open(&spec(4_000, 8)).unwrap();
    assert_eq!(sender.granted().bounds.len(), 2);
    assert!(sender.granted().bound() <= Span::from_millis(20));
    let mut receiver = listener.accept(None).unwrap().unwrap();
    assert_eq!(receiver.channel(), sender.channel());
    let mut into = [0; 4_000];
    for number in 0..200_u64 {
        let length = [1, 64, 1_396, 1_397, 4_000][number as usize % 5];
        let message = vec![number as u8; length];
        sender.send_until(&message, None).unwrap();
        let (told, came) = receiver.receive(&mut into, None).unwrap().unwrap();
        let Told::Message {
            number: told, gap, ..
        } = told
        else {
            panic!("{told:?}");
        };
        assert_eq!((told, gap), (number, 0));
        assert_eq!(into[..came], message);
    }
    drop(sender);
    let over = receiver.receive(&mut into, None).unwrap_err();
    assert!(
        matches!(over, Error::Over(Cause::Closed(HostId(0)))),
        "{over}"
    );
}

#[test]
fn messages_come_in_order_whole_and_once() {
    come(true);
}

#[test]
fn without_seals_too() {
    come(false);
}

#[test]
fn nobody_listens_and_the_number_says_so() {
    let [from, _to] = nodes(addresses(), true);
    let refused = from.open(&spec(64, 1)).unwrap_err();
    let declined = laxity::channels::DECLINED_NOBODY;
    assert!(
        matches!(refused, Error::Refused(Refusal::Declined(number)) if number == declined),
        "{refused}"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let [from, to] = nodes(addresses(), true);
    let _listener = to
        .listen(name("control"), listens(1 << 20), Span::ZERO)
        .unwrap();
    // 800 Mbit/s over a link of 100.
    let refused = from.open(&spec(100_000, 1)).unwrap_err();
    let Error::Refused(Refusal::Short { at, short }) = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*at, HostId(0));
    assert!(
        short.fits.size.is_some() || short.fits.interval.is_some(),
        "{short}"
    );
}

#[test]
fn time_is_up_where_nothing_comes_and_what_is_closed_is_told() {
    let [from, to] = nodes(addresses(), true);
    let listener = to.listen(name("control"), listens(64), Span::ZERO).unwrap();
    assert!(listener.accept(Some(now())).unwrap().is_none());
    let mut sender = from.open(&spec(64, 1)).unwrap();
    let mut receiver = listener.accept(None).unwrap().unwrap();
    assert!(
        receiver
            .receive(&mut [0; 64], Some(now()))
            .unwrap()
            .is_none()
    );
    drop(receiver);
    while sender.send_until(&[0; 64], None).is_ok() {}
    let over = sender.send(&[0; 64]).unwrap_err().to_string();
    assert!(over.contains("Closed"), "{over}");
}

#[test]
fn a_node_may_be_dropped_before_its_ends() {
    let [from, to] = nodes(addresses(), true);
    let listener = to.listen(name("control"), listens(64), Span::ZERO).unwrap();
    let mut sender = from.open(&spec(64, 1)).unwrap();
    let mut receiver = listener.accept(None).unwrap().unwrap();
    drop((from, to));
    assert!(matches!(sender.send(&[0; 64]), Err(SendError::Over(_))));
    assert!(receiver.receive(&mut [0; 64], None).is_err());
    assert!(listener.accept(None).is_err());
    assert!(matches!(sender.counts(Lane::RealTime), Err(Error::Ended)));
    drop((listener, sender, receiver));
}

/// Else its sender would send to nobody, for as long as both nodes live.
#[test]
fn a_channel_that_nobody_accepts_ends_with_its_listener() {
    let [from, to] = nodes(addresses(), true);
    let listener = to.listen(name("control"), listens(64), Span::ZERO).unwrap();
    let mut sender = from.open(&spec(64, 1)).unwrap();
    // It is there once this has come.
    sender.send(&[0; 64]).unwrap();
    while to.channels().unwrap().is_empty() {}
    drop(listener);
    let over = loop {
        if let Err(over) = sender.send_until(&[0; 64], Some(now() + Span::from_secs(5))) {
            break over;
        }
    };
    assert!(
        matches!(over, SendError::Over(Error::Over(Cause::Closed(HostId(1))))),
        "{over}"
    );
}

#[test]
fn channels_that_are_accepted_stay_when_nobody_listens() {
    let [from, to] = nodes(addresses(), true);
    let listener = to.listen(name("control"), listens(64), Span::ZERO).unwrap();
    let mut sender = from.open(&spec(64, 1)).unwrap();
    let mut receiver = listener.accept(None).unwrap().unwrap();
    drop(listener);
    sender.send(&[7; 64]).unwrap();
    let (told, length) = receiver.receive(&mut [0; 64], None).unwrap().unwrap();
    assert!(matches!(told, Told::Message { .. }) && length == 64);
    let refused = from.open(&spec(64, 1)).unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::Declined(_))));
}
