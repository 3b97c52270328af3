//! How two hosts come to a session, and to the next one.

use laxity_model::{Instant, Span};
use laxity_net::channels::frame::Cipher;
use laxity_net::channels::session::{
    Budget, Came, Identity, Neighbour, Peer, Refused, SealError, Terms,
};

use super::hosts::{A, Agreed, B, Hosts, MILLISECOND, Outcome, data, identity, peer};

/// Two hosts of which A has begun and both have a session.
fn established(agreed: Agreed) -> Hosts {
    let mut hosts = Hosts::new(agreed);
    hosts.poll(A);
    assert_eq!(hosts.arrive(B), Ok(Outcome::Answered));
    assert_eq!(hosts.arrive(A), Ok(Outcome::Agreed));
    let said = hosts.say(A).unwrap();
    assert_eq!(hosts.arrive(B), Ok(Outcome::Message(said)));
    hosts.assert_agree();
    hosts
}

#[test]
fn one_message_each_way_makes_a_session_with_either_cipher() {
    for cipher in [Cipher::AesGcm, Cipher::ChaChaPoly] {
        let mut hosts = established(Agreed {
            cipher,
            ..Agreed::default()
        });
        let (own, _) = hosts.peers[A].session().unwrap();
        assert_eq!(Peer::neighbour_of(own), Some(6));
        hosts.undisturbed(Span::from_secs(2));
        hosts.assert_agree();
        assert_eq!(hosts.peers[A].session().unwrap().0, own, "it is kept");
    }
}

#[test]
fn whoever_answers_says_nothing_before_he_has_heard() {
    let mut hosts = Hosts::new(Agreed::default());
    assert_eq!(hosts.say(A), Err(SealError::NoSession));
    hosts.poll(A);
    hosts.arrive(B).unwrap();
    assert!(!hosts.peers[B].is_established());
    assert_eq!(hosts.say(B), Err(SealError::NoSession));
}

#[test]
fn a_frame_that_comes_again_is_refused() {
    let mut hosts = established(Agreed::default());
    hosts.say(A).unwrap();
    let frame = hosts.to[B][0].clone();
    assert!(hosts.arrive(B).is_ok());
    assert_eq!(hosts.open(B, frame), Err(Refused::Again));
}

#[test]
fn a_lost_first_message_and_a_lost_answer_are_made_up_for() {
    let mut hosts = Hosts::new(Agreed::default());
    hosts.poll(A);
    hosts.to[B].clear();
    hosts.now = hosts.peers[A].due();
    assert_eq!(hosts.now, Instant::from_millis(1_250));
    hosts.poll(A);
    hosts.arrive(B).unwrap();
    hosts.to[A].clear();
    hosts.now = hosts.peers[A].due();
    assert_eq!(hosts.now, Instant::from_millis(1_750), "twice as long");
    hosts.poll(A);
    hosts.arrive(B).unwrap();
    assert_eq!(hosts.arrive(A), Ok(Outcome::Agreed));
    hosts.say(A).unwrap();
    hosts.arrive(B).unwrap();
    hosts.assert_agree();
}

#[test]
fn of_two_who_begin_at_once_one_goes_on() {
    let mut hosts = Hosts::new(Agreed::default());
    hosts.poll(A);
    hosts.poll(B);
    let outcomes = [hosts.arrive(A), hosts.arrive(B)];
    let stays = outcomes.map(|outcome| outcome == Err(Refused::Unasked));
    assert_eq!(
        stays.iter().filter(|stays| **stays).count(),
        1,
        "{outcomes:?}"
    );
    let first = usize::from(stays[B]);
    assert_eq!(hosts.arrive(first), Ok(Outcome::Agreed));
    hosts.say(first).unwrap();
    hosts.arrive(1 - first).unwrap();
    hosts.assert_agree();
    assert!(
        hosts
            .peers
            .iter()
            .all(|peer| peer.due() > hosts.now + Span::from_secs(60))
    );
}

#[test]
fn who_has_begun_anew_is_heard_although_it_has_forgotten_its_stamps() {
    let mut hosts = established(Agreed::default());
    for _ in 0..3 {
        hosts.restart(A);
        hosts.poll(A);
        // Both begin with stamp 1, and the third time B has heard 2.
        let outcome = hosts.arrive(B);
        if outcome == Err(Refused::Stale) {
            assert_eq!(hosts.arrive(A), Ok(Outcome::Again));
            assert!(hosts.peers[A].due() <= hosts.now);
            hosts.poll(A);
            assert_eq!(hosts.arrive(B), Ok(Outcome::Answered));
        }
        assert_eq!(hosts.arrive(A), Ok(Outcome::Agreed));
        hosts.say(A).unwrap();
        hosts.arrive(B).unwrap();
        hosts.assert_agree();
    }
}

#[test]
fn a_first_message_that_comes_again_changes_nothing() {
    let mut hosts = established(Agreed::default());
    let first = hosts.seen[B][0].clone();
    let before = hosts.peers[B].session();
    assert_eq!(hosts.open(B, first), Err(Refused::Stale));
    assert_eq!(hosts.peers[B].session(), before);
    // Its answer goes to whoever the address was of, who has asked nothing.
    assert_eq!(hosts.arrive(A), Err(Refused::Unasked));
    hosts.assert_agree();
}

#[test]
fn more_first_messages_than_the_budget_are_not_looked_into() {
    let mut hosts = established(Agreed::default());
    let first = hosts.seen[B][0].clone();
    hosts.budgets[B] = Budget::new(100, 10).unwrap();
    let mut outcomes = Vec::new();
    for _ in 0..10_000 {
        outcomes.push(hosts.open(B, first.clone()));
        hosts.now += Span::from_micros(100);
    }
    let looked = outcomes.iter().filter(|one| **one == Err(Refused::Stale));
    // The ten at once, and what comes of a second.
    assert_eq!(looked.count(), 10 + 99);
    let others = outcomes.iter().filter(|one| **one == Err(Refused::Budget));
    assert_eq!(others.count(), 10_000 - 10 - 99);
    hosts.assert_agree();
}

#[test]
fn a_first_message_of_somebody_else_or_for_somebody_else_is_forged() {
    let [a, b, c] = ['1', '2', '3'].map(identity);
    let now = Instant::ZERO;
    let agreed = Agreed::default();
    let mut budget = Budget::new(100, 100).unwrap();
    let mut open = |peer: &mut Peer, mut frame: Vec<u8>| {
        let came = peer.open(now, &mut frame, &mut budget, |_| panic!("an answer"));
        came.err()
    };
    let first_of = |mut peer: Peer| {
        let mut first = Vec::new();
        peer.poll(now, |frame| first = frame.to_vec());
        first
    };
    // C says that it is A to B, whose link it is on; what is for C comes to B.
    let mut b_of_a = peer(&b, &a, agreed, now);
    let of_c = first_of(peer(&c, &b, agreed, now));
    assert_eq!(open(&mut b_of_a, of_c), Some(Refused::Forged));
    let for_c = first_of(peer(&a, &c, agreed, now));
    assert_eq!(open(&mut b_of_a, for_c), Some(Refused::Forged));
    let other = Agreed {
        cipher: Cipher::ChaChaPoly,
        ..agreed
    };
    let other = first_of(peer(&a, &b, other, now));
    assert_eq!(open(&mut b_of_a, other), Some(Refused::Cipher));
    assert!(!b_of_a.is_established());
    let oneself = Neighbour {
        key: a.public(),
        number: 0,
        cipher: Cipher::AesGcm,
    };
    assert!(Peer::new(a, oneself, Terms::default(), 0, now).is_err());
}

#[test]
fn fresh_keys_come_within_the_old_session_and_lose_no_frame() {
    let mut hosts = established(Agreed::default());
    let before = hosts.peers[A].session().unwrap();
    assert_eq!(hosts.peers[A].due(), hosts.now + Span::from_secs(120));
    hosts.now = hosts.peers[A].due();
    // Nobody outside has a first message looked into.
    for budget in &mut hosts.budgets {
        *budget = Budget::new(1, 1).unwrap();
        assert!(budget.take(hosts.now));
    }
    hosts.poll(A);
    let under_way = [hosts.say(A).unwrap(), hosts.say(B).unwrap()];
    assert_eq!(hosts.arrive(B), Ok(Outcome::Answered));
    assert_eq!(hosts.arrive(B), Ok(Outcome::Message(under_way[A])));
    let late = hosts.to[A].remove(0);
    assert_eq!(hosts.arrive(A), Ok(Outcome::Agreed));
    assert_eq!(hosts.open(A, late), Ok(Outcome::Message(under_way[B])));
    let old = hosts.say(B).unwrap();
    assert_eq!(hosts.arrive(A), Ok(Outcome::Message(old)));
    hosts.say(A).unwrap();
    hosts.arrive(B).unwrap();
    hosts.assert_agree();
    let after = hosts.peers[A].session().unwrap();
    assert_ne!(before, after);
}

#[test]
fn who_answered_begins_later_and_what_is_too_old_is_over() {
    let mut hosts = established(Agreed::default());
    let since = hosts.now;
    assert_eq!(hosts.peers[B].due(), since + Span::from_secs(135));
    hosts.now = since + Span::from_secs(180);
    assert_eq!(hosts.say(A), Err(SealError::NoSession));
    let frame = {
        // Of a clock that is slow.
        hosts.now = since + Span::from_secs(179);
        hosts.say(B).unwrap();
        hosts.to[A].pop().unwrap()
    };
    hosts.now = since + Span::from_secs(180);
    assert_eq!(hosts.open(A, frame), Err(Refused::NoSession));
    hosts.poll(A);
    hosts.poll(B);
    assert!(hosts.peers.iter().all(|peer| !peer.is_established()));
    hosts.undisturbed(Span::from_secs(1));
    hosts.assert_agree();
}

#[test]
fn keys_that_have_sealed_enough_are_followed_by_others_and_those_that_have_sealed_too_much_seal_no_more()
 {
    let terms = Terms {
        fresh_frames: 10,
        most_frames: 20,
        ..Terms::default()
    };
    let mut hosts = established(Agreed {
        terms,
        ..Agreed::default()
    });
    let mut said = 0;
    while hosts.say(A).is_ok() {
        said += 1;
    }
    assert_eq!(hosts.say(A), Err(SealError::UsedUp));
    // Two were said before.
    assert_eq!(said + 2, 20);
    assert!(hosts.peers[A].due() <= hosts.now);
    hosts.undisturbed(Span::from_secs(5));
    hosts.assert_agree();
}

#[test]
fn a_forged_answer_does_not_spoil_the_true_one() {
    let mut hosts = Hosts::new(Agreed::default());
    hosts.poll(A);
    hosts.arrive(B).unwrap();
    let answer = hosts.to[A][0].clone();
    // Of another session of the same two, for this one by its number: its code and checksum are right.
    let mut other = Hosts::new(Agreed::default());
    other.poll(A);
    other.arrive(B).unwrap();
    let forged = other.to[A][0].clone();
    assert_ne!(forged, answer);
    assert_eq!(hosts.open(A, forged), Err(Refused::Forged));
    assert_eq!(hosts.arrive(A), Ok(Outcome::Agreed));
    hosts.say(A).unwrap();
    hosts.arrive(B).unwrap();
    hosts.assert_agree();
}

#[test]
fn what_is_not_sealed_is_refused_where_all_is() {
    let mut hosts = established(Agreed::default());
    let mut frame = vec![0; 200];
    let length = laxity_net::channels::frame::checked(&data(1), &mut frame).unwrap();
    frame.truncate(length);
    assert_eq!(hosts.open(B, frame), Err(Refused::Open));
    hosts.now += MILLISECOND;
    hosts.assert_agree();
}

#[test]
fn who_does_not_know_the_receiver_is_refused_before_the_budget() {
    let [a, b, c] = ['1', '2', '3'].map(identity);
    let now = Instant::ZERO;
    let mut budget = Budget::new(1, 1).unwrap();
    let mut b_of_a = peer(&b, &a, Agreed::default(), now);
    let first_for = |other: &Identity| {
        let mut first = Vec::new();
        peer(&a, other, Agreed::default(), now).poll(now, |frame| first = frame.to_vec());
        first
    };
    for _ in 0..100 {
        let mut for_c = first_for(c.as_ref());
        let came = b_of_a.open(now, &mut for_c, &mut budget, |_| panic!("an answer"));
        assert_eq!(came, Err(Refused::Forged));
    }
    let mut genuine = first_for(b.as_ref());
    let came = b_of_a.open(now, &mut genuine, &mut budget, |_| ());
    assert_eq!(came, Ok(Came::Answered));
}

#[test]
fn no_session_has_the_number_of_another_one_that_is_alive() {
    let mut hosts = established(Agreed::default());
    let before = hosts.peers[B].session().unwrap();
    // Each of them takes a number, and there are 256; the next one would be that of the session.
    let first = hosts.seen[B][0].clone();
    for _ in 0..255 {
        assert_eq!(hosts.open(B, first.clone()), Err(Refused::Stale));
    }
    hosts.to[A].clear();
    hosts.now = hosts.peers[A].due();
    hosts.poll(A);
    hosts.arrive(B).unwrap();
    hosts.arrive(A).unwrap();
    hosts.say(A).unwrap();
    hosts.arrive(B).unwrap();
    assert_ne!(hosts.peers[B].session().unwrap().0, before.0);
    hosts.assert_agree();
}
