//! Links that are owned: what is changed of them and put back on every way out, and what is told of who stands against it. `tc` is the witness.

mod killed;
mod order;
mod reach;

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Stdio};
use std::{iter, thread};

use laxity_linux::doctor::rights;
use laxity_linux::net::egress::{
    Bottleneck, Egress, Own, OwnCause, Owned, PutBackCause, Unenforced, unenforced,
};
use laxity_linux::net::{PacketLink, Settings};
use laxity_linux::os::clock;
use laxity_model::nif::link::Link;
use libtest_mimic::Trial;
use rustix::thread::CapabilitySet;

pub(crate) use self::killed::own_and_wait;
use super::in_namespace;
use super::namespace::{ip, pair, shown};
use super::refused::without;

/// The class is the narrowest place of a veth.
pub(super) fn egress(rate: u64) -> Egress {
    Egress {
        rate,
        overhead: 0,
        bottleneck: Bottleneck::Class,
        single_segments: true,
    }
}

/// What `tc` says, in this thread's namespace; `None` where it refuses, or is not there.
pub(super) fn tc(arguments: &str) -> Option<String> {
    let mut command = Command::new("tc");
    command.args(arguments.split(' ')).stderr(Stdio::null());
    let output = command.output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(said)
}

/// All of an interface that owning it changes.
pub(super) fn state(name: &str) -> [String; 3] {
    let link = shown(name);
    let mut words = link.split_whitespace();
    let segments = words.find(|word| *word == "gso_max_segs").and(words.next());
    let queues = tc(&format!("-d qdisc show dev {name}")).expect("it is there");
    let classes = tc(&format!("-d class show dev {name}")).expect("it is there");
    [queues, classes, segments.expect("it is told").to_owned()]
}

/// One of a pair that is owned, and what it was before.
fn owned() -> (Owned, [String; 3]) {
    pair("near", "far");
    let before = state("near");
    let owned = Owned::take("near", egress(100_000_000)).unwrap();
    (owned, before)
}

fn what_is_owned_has_a_class_for_channels_and_is_put_back() {
    let (owned, before) = owned();
    let [queues, classes, segments] = state("near");
    assert!(queues.starts_with("qdisc htb 6c78: root"), "{queues}");
    assert!(queues.contains("default 0x20"), "{queues}");
    for class in [
        "class htb 6c78:10 parent 6c78:1",
        "prio 0 quantum 1518 rate 100Mbit ceil 100Mbit",
    ] {
        assert!(classes.contains(class), "{classes}");
    }
    assert!(
        classes.contains("class htb 6c78:20 parent 6c78:1"),
        "{classes}"
    );
    assert!(
        classes.contains("prio 1 quantum 1518 rate 8Kbit"),
        "{classes}"
    );
    assert_eq!(segments, "1");
    assert_eq!(owned.class().to_string(), "6c78:10");
    owned.put_back().unwrap();
    assert_eq!(state("near"), before);
}

fn segments_are_left_where_that_is_asked_for() {
    pair("near", "far");
    let before = state("near");
    let asked = Egress {
        single_segments: false,
        ..egress(100_000_000)
    };
    let owned = Owned::take("near", asked).unwrap();
    assert_eq!(state("near")[2], before[2]);
    owned.put_back().unwrap();
    assert_eq!(state("near"), before);
}

fn what_is_dropped_in_a_panic_is_put_back() {
    let (owned, before) = owned();
    let panics = AssertUnwindSafe(|| {
        let _owned = owned;
        // As a panic does, without a word.
        resume_unwind(Box::new(()));
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!(state("near"), before);
    // And may be owned again.
    drop(Owned::take("near", egress(1_000_000)).unwrap());
    assert_eq!(state("near"), before);
}

fn who_stands_against_it_is_told() {
    pair("near", "far");
    let take = |name| Owned::take(name, egress(1_000_000)).map_err(|error| error.cause);
    assert_eq!(take("nobody").err(), Some(OwnCause::Missing));
    let none = Owned::take("near", egress(0)).unwrap_err();
    assert_eq!(none.cause, OwnCause::Rate(0));

    tc("qdisc add dev near root handle 7: tbf rate 1mbit burst 3kb limit 9kb").expect("it may");
    let before = state("near");
    let refused = Owned::take("near", egress(1_000_000)).unwrap_err();
    let words = refused.to_string();
    assert!(matches!(refused.cause, OwnCause::Taken(_)), "{words}");
    assert!(
        words.contains("tbf 7:") && words.contains("qdisc del"),
        "{words}"
    );
    assert_eq!(state("near"), before);

    let owned = Owned::take("far", egress(1_000_000)).unwrap();
    assert_eq!(take("far").err(), Some(OwnCause::Owned));
    owned.put_back().unwrap();
}

fn without_the_right_nothing_is_changed() {
    pair("near", "far");
    let before = state("near");
    without(CapabilitySet::NET_ADMIN);
    let refused = Owned::take("near", egress(1_000_000)).unwrap_err();
    assert_eq!(refused.cause, OwnCause::NoRight);
    assert!(
        refused.to_string().contains("setcap cap_net_admin+ep"),
        "{refused}"
    );
    assert_eq!(state("near"), before);
}

fn what_somebody_changed_meanwhile_is_left_and_told() {
    let (owned, _) = owned();
    tc("qdisc replace dev near root handle 7: tbf rate 1mbit burst 3kb limit 9kb").expect("it may");
    assert!(ip("link set near gso_max_segs 9"));
    let theirs = state("near");
    let changed = owned.put_back().unwrap_err();
    let [
        PutBackCause::RootChanged(Some(root)),
        PutBackCause::SegmentsChanged(9),
    ] = &changed.causes[..]
    else {
        panic!("{changed}");
    };
    assert_eq!(root.to_string(), "tbf 7:");
    assert_eq!(state("near"), theirs);
}

fn an_interface_that_is_gone_is_told() {
    let (owned, _) = owned();
    assert!(ip("link del near"));
    let gone = owned.put_back().unwrap_err();
    assert_eq!(gone.causes, [PutBackCause::Gone]);
}

fn a_rate_that_the_card_does_not_have_is_told() {
    pair("near", "far");
    // A veth says 10 Gbit/s.
    assert_eq!(unenforced("near", Own::Class, 10_000_000_000), []);
    let slower = Unenforced::Slower {
        declared: 10_000_000_001,
        carries: 10_000_000_000,
    };
    assert_eq!(unenforced("near", Own::Class, 10_000_000_001), [slower]);
}

/// A connection that is opened then sends single segments over an interface that would take many in one.
fn connections_send_nothing_that_is_to_be_cut() {
    let ([host, other], [_, remote]) = reach::hosts();
    let settings = Settings {
        segments: true,
        ..Settings::default()
    };
    let capture = other
        .within(None, || PacketLink::open("far", &settings))
        .unwrap();
    let mut capture = capture.unwrap();
    let listener = other
        .within(None, || TcpListener::bind(remote))
        .unwrap()
        .unwrap();
    for is_owned in [false, true] {
        for memory in capture.allocate(200).unwrap() {
            // What is still there from before is enough as well.
            let _ = capture.post(memory);
        }
        let send = || {
            let _owned = is_owned.then(|| Owned::take("near", egress(1_000_000_000)).unwrap());
            let mut sender = TcpStream::connect(remote).unwrap();
            let (mut receiver, _) = listener.accept().unwrap();
            let reads = thread::spawn(move || io::copy(&mut receiver, &mut io::sink()).unwrap());
            sender.write_all(&[1; 150_000]).unwrap();
            drop(sender);
            assert_eq!(reads.join().unwrap(), 150_000);
        };
        host.within(None, send).unwrap();
        let mut packets = iter::from_fn(|| capture.receive(clock::now()).unwrap());
        let is_to_be_cut = packets.any(|packet| packet.left.segment > 0);
        assert_eq!(is_to_be_cut, !is_owned);
        packets.for_each(drop);
    }
}

/// A test with `tc`; skipped where that is not there.
fn witnessed(name: &str, run: fn()) -> Trial {
    let has_witness = Command::new("tc").arg("-V").stdout(Stdio::null()).status();
    if has_witness.is_ok_and(|status| status.success()) {
        return in_namespace(name, run);
    }
    Trial::test(name, || {
        rights::lacks("no `tc` to see it by");
        Ok(())
    })
}

pub(super) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 9] = [
        (
            "connections_send_nothing_that_is_to_be_cut",
            connections_send_nothing_that_is_to_be_cut,
        ),
        (
            "what_is_owned_has_a_class_for_channels_and_is_put_back",
            what_is_owned_has_a_class_for_channels_and_is_put_back,
        ),
        (
            "segments_are_left_where_that_is_asked_for",
            segments_are_left_where_that_is_asked_for,
        ),
        (
            "what_is_dropped_in_a_panic_is_put_back",
            what_is_dropped_in_a_panic_is_put_back,
        ),
        (
            "who_stands_against_it_is_told",
            who_stands_against_it_is_told,
        ),
        (
            "without_the_right_nothing_is_changed",
            without_the_right_nothing_is_changed,
        ),
        (
            "what_somebody_changed_meanwhile_is_left_and_told",
            what_somebody_changed_meanwhile_is_left_and_told,
        ),
        (
            "an_interface_that_is_gone_is_told",
            an_interface_that_is_gone_is_told,
        ),
        (
            "a_rate_that_the_card_does_not_have_is_told",
            a_rate_that_the_card_does_not_have_is_told,
        ),
    ];
    let own = tests.into_iter();
    let all = own
        .chain(killed::TESTS)
        .chain(reach::TESTS)
        .chain(order::TESTS);
    all.map(|(name, run)| witnessed(&format!("owned::{name}"), run))
        .collect()
}
