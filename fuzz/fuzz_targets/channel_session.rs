//! Two hosts, and somebody between them who sees every frame and sends what he likes: neither hears what the other one has not said, or hears it twice, and without him they have a session.
#![no_main]

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::Arc;

use laxity_model::channels::signalling::Label;
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Body, Cipher, Data, LONGEST, Left};
use laxity_net::channels::session::{Budget, Came, Identity, Neighbour, Peer, SecretKey, Terms};
use libfuzzer_sys::fuzz_target;

struct Host {
    peer: Peer,
    budget: Budget,
    /// What was ever sent to it.
    to: Vec<Vec<u8>>,
    said: BTreeSet<u64>,
    heard: BTreeSet<u64>,
}

fn hosts() -> [Host; 2] {
    let identity = |digit: &str| {
        let key = SecretKey::from_text(&digit.repeat(64)).expect("a key");
        Arc::new(Identity::new(key))
    };
    let both = [identity("1"), identity("2")];
    [0, 1].map(|own| {
        let neighbour = Neighbour {
            key: both[1 - own].public(),
            number: 0,
            cipher: Cipher::ChaChaPoly,
        };
        let own = Arc::clone(&both[own]);
        Host {
            peer: Peer::new(own, neighbour, Terms::default(), 0, Instant::ZERO).expect("another"),
            budget: Budget::new(100, 10).expect("a budget"),
            to: Vec::new(),
            said: BTreeSet::new(),
            heard: BTreeSet::new(),
        }
    })
}

fn poll(hosts: &mut [Host; 2], host: usize, now: Instant) {
    let mut sent = Vec::new();
    hosts[host]
        .peer
        .poll(now, |frame| sent.push(frame.to_vec()));
    hosts[1 - host].to.extend(sent);
}

fn say(hosts: &mut [Host; 2], host: usize, now: Instant) {
    let message = hosts[host].said.len() as u64;
    let body = Body::Data(Data {
        channel: Label {
            index: 1,
            generation: 0,
        },
        message,
        part: 0,
        parts: NonZeroU16::MIN,
        earliness: 0,
        left: Left::UNKNOWN,
        best_effort: false,
        payload: b"said",
    });
    let mut frame = vec![0; LONGEST];
    if let Ok(length) = hosts[host].peer.seal(now, &body, &mut frame) {
        hosts[host].said.insert(message);
        hosts[1 - host].to.push(frame[..length].to_vec());
    }
}

fn open(hosts: &mut [Host; 2], host: usize, mut frame: Vec<u8>, now: Instant) {
    let mut sent = Vec::new();
    let [one, other] = hosts;
    let (own, other) = if host == 0 {
        (one, other)
    } else {
        (other, one)
    };
    let came = own.peer.open(now, &mut frame, &mut own.budget, |frame| {
        sent.push(frame.to_vec())
    });
    let is_agreed = match came {
        Ok(Came::Data(data)) => {
            assert!(other.said.contains(&data.message), "nobody has said it");
            assert!(own.heard.insert(data.message), "it was heard before");
            false
        }
        Ok(came) => came == Came::Agreed,
        Err(_) => false,
    };
    other.to.extend(sent);
    if is_agreed {
        say(hosts, host, now);
    }
}

fuzz_target!(|script: &[u8]| {
    let mut hosts = hosts();
    let mut now = Instant::ZERO;
    let mut script = script;
    while let [operation, which, value, rest @ ..] = script {
        script = rest;
        let host = usize::from(operation & 1);
        let place = usize::from(*which) % hosts[host].to.len().max(1);
        let seen = hosts[host].to.get(place).cloned();
        match (operation >> 1) % 6 {
            0 => poll(&mut hosts, host, now),
            1 => say(&mut hosts, host, now),
            2 => now += Span::from_millis(u64::from(*value) * 10),
            3 => open(&mut hosts, host, seen.unwrap_or_default(), now),
            4 => {
                let mut frame = seen.unwrap_or_default();
                let at = usize::from(*value) % frame.len().max(1);
                frame
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|byte| *byte ^= which | 1);
                open(&mut hosts, host, frame, now);
            }
            _ => {
                let (frame, after) = script.split_at(script.len().min(usize::from(*value)));
                script = after;
                open(&mut hosts, host, frame.to_vec(), now);
            }
        }
    }
    // Undisturbed: the longest wait for a further try, and a handshake.
    hosts.iter_mut().for_each(|host| host.to.clear());
    for _ in 0..10 {
        now += Span::from_millis(500);
        for host in [0, 1] {
            poll(&mut hosts, host, now);
            say(&mut hosts, host, now);
        }
        for _ in 0..4 {
            for host in [0, 1] {
                for frame in std::mem::take(&mut hosts[host].to) {
                    open(&mut hosts, host, frame, now);
                }
            }
        }
    }
    let [a, b] = &hosts;
    let (a, b) = (
        a.peer.session().expect("one"),
        b.peer.session().expect("one"),
    );
    assert_eq!(a, (b.1, b.0));
});
