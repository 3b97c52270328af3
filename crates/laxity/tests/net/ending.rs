//! However an interface ends, every buffer comes home, clients are told, and nothing is left.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity::Grade;
use laxity::net::buffers::Unavailable;
use laxity::net::client::News;
use laxity::net::clients::NoPacket;
use laxity::net::{Ended, Error, Flow, FlowOptions, FlowQueue, Interface, Options};

use super::namespace::{ip, pair, shown};
use super::support::{Heard, datagram, eventually, in_namespace, next, over_udp, send, tells};

const FAR: &str = "10.0.0.1:1000";
const OWN: &str = "10.0.0.2:2000";

fn flow(interface: &Interface, buffers: u32) -> FlowQueue {
    let flow = Flow {
        is_tcp: false,
        own: OWN.parse().unwrap(),
        far: None,
    };
    let options = FlowOptions {
        buffers,
        raises: None,
    };
    interface.flow(flow, &options).unwrap()
}

#[test]
fn whoever_waits_is_told_when_it_is_closed() {
    let (interface, far) = over_udp(Options::default());
    let (client, told) = tells();
    let client = interface.register("arp", 3, client).unwrap();
    client.pool.give(2);
    let held = client.pool.take().unwrap();
    let queue = flow(&interface, 2);
    far.send(&datagram(FAR, OWN, b"waits")).unwrap();
    let packet = queue.next(None).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.next(None).map(drop));
        drop(interface);
        assert_eq!(waiter.join().unwrap(), Err(NoPacket::Over));
    });
    assert_eq!(next(&told), Heard::News(News::Gone));
    assert!(told.recv().is_err(), "the client is gone, too");
    assert_eq!(client.pool.census().free, 2);
    assert_eq!(client.pool.take().err(), Some(Unavailable::Closed));
    drop(held);
    assert_eq!(client.pool.census().free, 3);
    drop(packet);
    assert_eq!(queue.pool().census().free, 2);
    assert!(queue.counts().is_err());
}

/// Before anything is allocated for it, so that the process lives.
#[test]
fn a_client_of_a_flow_with_more_buffers_than_may_be_is_refused() {
    let (interface, _far) = over_udp(Options::default());
    let wanted = Flow {
        is_tcp: false,
        own: OWN.parse().unwrap(),
        far: None,
    };
    for buffers in [FlowOptions::MOST_BUFFERS + 1, u32::MAX] {
        let options = FlowOptions {
            buffers,
            raises: None,
        };
        let Err(refused) = interface.flow(wanted, &options) else {
            panic!("{buffers} buffers");
        };
        assert!(refused.to_string().contains("65536 buffers at the most"));
    }
    // A pool of any other client, too.
    let (client, _told) = tells();
    assert!(interface.register("arp", u32::MAX, client).is_err());
    drop(flow(&interface, 2));
}

#[test]
fn a_driver_that_panics_ends_as_one_that_is_closed() {
    let (interface, _far) = over_udp(Options::default());
    let (client, told) = tells();
    let client = interface.register("ip", 3, client).unwrap();
    client.pool.give(3);
    let queue = flow(&interface, 1);
    let asked = interface.ask(|_| panic!("this panic is part of a test"));
    assert!(matches!(asked, Err(Error::Ended(_))));
    assert_eq!(queue.next(None).err(), Some(NoPacket::Over));
    assert_eq!(next(&told), Heard::News(News::Gone));
    assert_eq!(client.pool.census().free, 3);
    assert_eq!(interface.ended(), Some(Ended::Panicked));
    let reason = Ended::Panicked.to_string();
    assert_eq!(interface.grade(), Grade::Unenforced { reason });
}

#[test]
fn an_interface_that_is_deleted_ends_its_driver() {
    in_namespace(|| {
        for way in ["xdp", "packet"] {
            pair("near", "far");
            let near = Interface::open(&format!("{way}:near"), Options::default()).unwrap();
            let (client, told) = tells();
            let client = near.register("ip", 8, client).unwrap();
            client.pool.give(4);
            let held = client.pool.take().unwrap();
            assert!(ip("link del near"));
            while next(&told) != Heard::News(News::Gone) {}
            assert_eq!(client.pool.census().free, 7);
            eventually("the thread has ended", || near.ended() == Some(Ended::Gone));
            assert!(matches!(near.counters(), Err(Error::Ended(Ended::Gone))));
            drop(near);
            drop(held);
            assert_eq!(client.pool.census().free, 8);
        }
    });
}

#[test]
fn what_is_sent_while_it_is_down_leaves_when_it_is_up_and_both_are_told_once() {
    in_namespace(|| {
        for way in ["xdp", "packet"] {
            pair("near", "far");
            let near = Interface::open(&format!("{way}:near"), Options::default()).unwrap();
            let (client, told) = tells();
            let client = near.register("ip", 8, client).unwrap();
            client.pool.give(4);
            super::namespace::up("near", false);
            while next(&told) != Heard::News(News::Down) {}
            send(&client.pool, &datagram(OWN, FAR, b""), 1);
            super::namespace::up("near", true);
            super::namespace::is_up("near");
            let far = Interface::open("packet:far", Options::default()).unwrap();
            let sender = far.sender(1, tells().0).unwrap();
            let frame = datagram(FAR, OWN, b"again");
            send(&sender.pool, &frame, 2);
            let mut heard = Vec::new();
            while !(heard.contains(&Heard::Packet(frame.clone()))
                && heard.contains(&Heard::Sent(1, Ok(()))))
            {
                heard.push(next(&told));
            }
            let mut news = heard.iter().filter(|heard| matches!(heard, Heard::News(_)));
            assert_eq!(news.next(), Some(&Heard::News(News::Up)), "{way}");
            assert_eq!(news.next(), None, "{way}");
            drop((near, far));
            assert!(ip("link del near"));
        }
    });
}

/// What this process has open, mapped of sockets and maps, and how many threads and programs.
fn footprint() -> [usize; 4] {
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let of_sockets = |line: &&str| line.contains("socket:") || line.contains("bpf-map");
    let programs = fs::read_dir("/proc/self/fdinfo").unwrap();
    let of_bpf = programs.filter(|file| {
        let file = file.as_ref().unwrap().path();
        fs::read_to_string(file)
            .is_ok_and(|text| text.contains("prog_id") || text.contains("map_id"))
    });
    [
        count("/proc/self/fd"),
        count("/proc/self/task"),
        maps.lines().filter(of_sockets).count(),
        of_bpf.count(),
    ]
}

/// Bytes of the process's address space.
fn pages() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// In a process of its own, as others open and close something meanwhile.
fn nothing_is_left(name: &str, cycles: usize) {
    let cycle = || {
        let interface = Interface::open(name, Options::default()).unwrap();
        let queue = flow(&interface, 4);
        let (client, _told) = tells();
        let client = interface.register("arp", 4, client).unwrap();
        client.pool.give(4);
        drop(interface);
        drop(queue);
    };
    for _ in 0..10 {
        cycle();
    }
    let before = (footprint(), pages());
    for _ in 0..cycles {
        cycle();
    }
    let after = (footprint(), pages());
    assert_eq!(after.0, before.0, "{name}");
    // The allocator keeps what was freed, and not a page for each time.
    assert!(
        after.1 <= before.1 + cycles / 4,
        "{name}: {before:?}, {after:?}"
    );
}

const ALONE: &str = "LAXITY_TEST_CYCLES";

#[test]
fn opened_and_closed_again_and_again_it_leaves_nothing() {
    if std::env::var_os(ALONE).is_none() {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args([
            "opened_and_closed_again_and_again_it_leaves_nothing",
            "--nocapture",
        ]);
        let output = own.env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        return;
    }
    nothing_is_left("udp:127.0.0.1:0-127.0.0.1:9", 1_000);
    in_namespace(|| {
        nothing_is_left("tap:lax0", 100);
        pair("near", "far");
        // The kernel takes tens of milliseconds over each of these.
        nothing_is_left("packet:near", 30);
        // As do these, a tenth of a second each; a thousand where that is asked for.
        let cycles = std::env::var("LAXITY_CYCLES").map_or(250, |cycles| cycles.parse().unwrap());
        nothing_is_left("xdp:near", cycles);
        assert!(!shown("near").contains("xdp"), "{}", shown("near"));
    });
}

#[test]
fn it_may_be_dropped_while_packets_flow() {
    let is_over = Arc::new(AtomicBool::new(false));
    for round in 0..50 {
        let (interface, far) = over_udp(Options::default());
        let queue = flow(&interface, 8);
        let (client, _told) = tells();
        let client = interface.register("udp", 4, client).unwrap();
        client.pool.give(4);
        is_over.store(false, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let frames = [OWN, "10.0.0.2:9"].map(|own| datagram(FAR, own, b""));
                let mut frames = frames.iter().cycle();
                // Its other end is gone at last.
                while !is_over.load(Ordering::SeqCst) {
                    let _ = far.send(frames.next().unwrap());
                }
            });
            scope.spawn(|| while queue.next(None).is_ok() {});
            for _ in 0..round {
                let _ = interface.counters().unwrap();
            }
            drop(interface);
            is_over.store(true, Ordering::SeqCst);
        });
        assert_eq!(queue.pool().census().free, 8);
        assert_eq!(client.pool.census().free, 4);
    }
}
