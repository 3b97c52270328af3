//! Between hosts that are network namespaces, over links that are owned.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity::channels::{Excess, HostId, Node, Own, Receiver, Sender, Setup, Spec, Told, Traffic};
use laxity::{Span, now, sleep_until};
use laxity_linux::doctor::rights;
use laxity_linux::net::pair::Namespace;

use super::support::{name, setups, waits};

/// Two hosts with a link of 100 Mbit/s, and their nodes; `None` where that is not permitted.
pub(crate) fn hosts() -> Option<([Namespace; 2], [Node; 2])> {
    let Ok(near) = Namespace::new() else {
        rights::lacks("no network namespaces");
        return None;
    };
    let far = Namespace::new().unwrap();
    near.join("near", (&far, "far")).unwrap();
    near.set_address("near", "10.0.0.1/24", true).unwrap();
    far.set_address("far", "10.0.0.2/24", true).unwrap();
    let at: [SocketAddr; 2] = ["10.0.0.1:27768", "10.0.0.2:27768"].map(|at| at.parse().unwrap());
    let start = |host: &Namespace, mut setup: Setup| {
        setup.neighbours[0].own = Own::Class;
        host.within(None, || Node::start(setup).unwrap()).unwrap()
    };
    let [one, other] = setups(at, true);
    let nodes = [start(&near, one), start(&far, other)];
    for node in &nodes {
        assert!(node.wait_for_neighbours(None).unwrap());
    }
    Some(([near, far], nodes))
}

/// Sends so many messages at their rate, each with its number and filled with that; how many came, in order and whole.
pub(crate) fn send(
    count: u64,
    traffic: Traffic,
    (mut sender, mut receiver): (Sender, Receiver),
) -> u64 {
    let length = traffic.largest().get() as usize;
    let comes = thread::spawn(move || {
        let (mut into, mut came) = (vec![0; length], 0);
        while came < count {
            match receiver.receive(&mut into, None).unwrap().unwrap() {
                (Told::Message { number, gap, .. }, bytes) => {
                    assert_eq!((number, gap, bytes), (came, 0, length));
                    assert!(into.iter().all(|byte| *byte == number as u8));
                    came += 1;
                }
                // The machine may be so busy.
                (Told::Late { .. }, _) => {}
                (lost @ Told::Lost { .. }, _) => panic!("{lost:?}"),
            }
        }
        came
    });
    let begun = now();
    for number in 0..count {
        sleep_until(begun + traffic.interval() * number);
        sender
            .send_until(&vec![number as u8; length], None)
            .unwrap();
    }
    comes.join().unwrap()
}

#[test]
fn nothing_is_lost_beside_a_flood_of_the_kernels_that_has_what_is_left() {
    let Some((namespaces, [from, to])) = hosts() else {
        return;
    };
    let bind = |host: &Namespace, at| host.within(None, || UdpSocket::bind(at).unwrap()).unwrap();
    let flood = bind(&namespaces[0], "10.0.0.1:0");
    let over = AtomicBool::new(false);
    let flows = [
        (
            "control",
            64,
            (1, Span::from_millis(1)),
            Span::from_millis(10),
            2_000,
        ),
        (
            "video",
            20_000,
            (30, Span::from_secs(1)),
            Span::from_millis(33),
            60,
        ),
    ];
    thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            let mut sent = 0_u64;
            while !over.load(Ordering::Relaxed) {
                sent += u64::from(flood.send_to(&[0; 1_400], "10.0.0.2:9").is_ok());
            }
            sent
        });
        let flows = flows.map(|(called, bytes, rate, within, count)| {
            let traffic = Traffic::new(bytes, rate, 3).unwrap();
            let listener = to.listen(name(called), waits(bytes), Span::ZERO).unwrap();
            let mut spec = Spec::new(name(called), vec![HostId(1)], traffic, within);
            // Whoever was kept from sending for a while has to wait, and loses nothing.
            spec.excess = Excess::Block;
            let sender = from.open(&spec).unwrap();
            assert!(sender.granted().bound() <= within);
            let receiver = listener.accept(None).unwrap().unwrap();
            scope.spawn(move || assert_eq!(send(count, traffic, (sender, receiver)), count))
        });
        for flow in flows {
            flow.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        // 7 Mbit/s are the channels', and at the least a third of the rest was used: 2 s of 31 Mbit/s.
        assert!(flooding.join().unwrap() > 5_500);
    });
}

#[test]
fn a_link_that_is_given_back_is_as_it_was() {
    let Some((namespaces, nodes)) = hosts() else {
        return;
    };
    let queues = || {
        let shown = namespaces[0].within(None, || {
            let mut tc = std::process::Command::new("tc");
            tc.args(["qdisc", "show", "dev", "near"]);
            String::from_utf8(tc.output().unwrap().stdout).unwrap()
        });
        shown.unwrap()
    };
    assert!(queues().contains("htb 6c78:"), "{}", queues());
    drop(nodes);
    assert!(!queues().contains("htb"), "{}", queues());
}
