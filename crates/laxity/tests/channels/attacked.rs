//! A host beside others that do not keep to what was agreed.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity::channels::{
    Excess, HostId, Lane, Node, Receiver, SendError, Sender, Spec, Told, Traffic,
};
use laxity::{Span, now, sleep_until};
use laxity_linux::net::pair::Namespace;

use super::hosts::{hosts, send};
use super::support::{name, waits};

/// A channel of 64 bytes each millisecond, with both of its ends.
fn open([from, to]: &[Node; 2], called: &str, bytes: u32, excess: Excess) -> (Sender, Receiver) {
    let traffic = Traffic::new(bytes, (1, Span::from_millis(1)), 3).unwrap();
    let listener = to.listen(name(called), waits(bytes), Span::ZERO).unwrap();
    let mut spec = Spec::new(
        name(called),
        vec![HostId(1)],
        traffic,
        Span::from_millis(20),
    );
    spec.excess = excess;
    let sender = from.open(&spec).unwrap();
    (sender, listener.accept(None).unwrap().unwrap())
}

/// How many datagrams a second a third host sends with the neighbour's address, which look as if they were sealed in the session, until it is over.
fn forges(third: &Namespace, over: &AtomicBool) -> u64 {
    let socket = third.within(None, || {
        let socket = UdpSocket::bind("10.0.0.1:27768").unwrap();
        socket.connect("10.0.0.2:27768").unwrap();
        socket
    });
    let socket = socket.unwrap();
    let mut frame = [0x55; 100];
    // Version, kind of data, length, and the session.
    frame[..8].copy_from_slice(&[1, 1, 0, 100, 0, 0, 1, 1]);
    let (begun, mut sent) = (now(), 0_u64);
    while !over.load(Ordering::Relaxed) {
        let millis = now().saturating_since(begun).as_nanos() / 1_000_000;
        while sent < 60 * millis {
            // The first session, or the one after it.
            frame[7] = 1 + (sent % 2) as u8;
            frame[8..16].copy_from_slice(&(1 << 32 | sent).to_be_bytes());
            sent += 1;
            // What finds no room is lost.
            let _ = socket.send(&frame);
        }
        sleep_until(begun + Span::from_millis(millis + 1));
    }
    sent * 1_000_000_000 / now().saturating_since(begun).as_nanos()
}

#[test]
fn fifty_thousand_forged_datagrams_a_second_disturb_nobody() {
    let Some(([_near, far], nodes)) = hosts() else {
        return;
    };
    let third = Namespace::new().unwrap();
    third.join("third", (&far, "aside")).unwrap();
    third.set_address("third", "10.0.0.1/24", true).unwrap();
    far.within(None, || {
        for which in ["all", "aside"] {
            let path = format!("/proc/sys/net/ipv4/conf/{which}/rp_filter");
            std::fs::write(path, "0").unwrap();
        }
    })
    .unwrap();
    let ends = open(&nodes, "control", 64, Excess::Block);
    let traffic = Traffic::new(64, (1, Span::from_millis(1)), 3).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Above what else the machine has to do, and far below nodes.
        let forging = scope.spawn(|| {
            third
                .within(Some((0, 1)), || forges(&third, &over))
                .unwrap()
        });
        assert_eq!(send(2_000, traffic, ends), 2_000);
        over.store(true, Ordering::Relaxed);
        let rate = forging.join().unwrap();
        let (is_up, counts) = nodes[1].links().unwrap()[0];
        eprintln!("{rate} forged datagrams a second, {counts:?}");
        assert!(is_up && rate >= 50_000, "{rate}");
        assert!(counts.forged + counts.refused >= rate, "{counts:?}");
    });
}

/// Takes all that come of so many that are told to, by their numbers; how many came, and how many are missed.
fn comes(mut receiver: Receiver) -> thread::JoinHandle<[u64; 2]> {
    thread::spawn(move || {
        let (mut into, mut came, mut lost) = ([0; 1_000], 0, 0);
        loop {
            match receiver.receive(&mut into, None) {
                Ok(Some((Told::Message { .. }, _))) => came += 1,
                Ok(Some((Told::Late { .. }, _))) => {}
                Ok(Some((told @ Told::Lost { .. }, _))) => panic!("{told:?}"),
                Ok(None) => unreachable!("nobody gives up"),
                // Closed by its sender.
                Err(_) => break,
            }
            lost = receiver
                .counts(Lane::RealTime)
                .map_or(lost, |(_, ended)| ended.lost());
        }
        [came, lost]
    })
}

/// Beside one at 10 times its rate, one whose messages are 10 times too large, and one that sends 100 at once: all of them are counted, and what keeps its promise comes.
#[test]
fn who_breaks_promises_harms_nobody_and_is_counted() {
    let Some((_namespaces, nodes)) = hosts() else {
        return;
    };
    let (mut fast, from_fast) = open(&nodes, "fast", 100, Excess::DropNewest);
    let (mut burst, from_burst) = open(&nodes, "bursts", 100, Excess::Shape);
    let (mut large, _from_large) = open(&nodes, "large", 100, Excess::Shape);
    let ends = open(&nodes, "control", 64, Excess::Block);
    let [from_fast, from_burst] = [from_fast, from_burst].map(comes);
    let traffic = Traffic::new(64, (1, Span::from_millis(1)), 3).unwrap();
    let keeps = thread::spawn(move || send(2_000, traffic, ends));
    let begun = now();
    let mut sent = [0_u64; 2];
    for tenth in 0..20_000_u64 {
        sleep_until(begun + Span::from_micros(100) * tenth);
        sent[0] += u64::from(fast.send(&[0; 100]).is_ok());
        if tenth.is_multiple_of(1_000) {
            sent[1] += (0..100).filter(|_| burst.send(&[0; 100]).is_ok()).count() as u64;
        }
        let refused = large.send(&[0; 1_000]);
        assert!(matches!(refused, Err(SendError::TooLong(1_000))));
    }
    assert_eq!(keeps.join().unwrap(), 2_000);
    for ((sender, sent), comes) in [fast, burst]
        .into_iter()
        .zip(sent)
        .zip([from_fast, from_burst])
    {
        let source = loop {
            let (began, packets) = sender.counts(Lane::RealTime).unwrap();
            let source = began.unwrap().source;
            if source.offered == sent && packets.sent == source.offered - source.dropped {
                break source;
            }
        };
        assert!(source.offered >= 400 && source.dropped > 0, "{source:?}");
        // Until the far end has them.
        while nodes[1].links().unwrap()[0].1.data < nodes[0].links().unwrap()[0].1.data {}
        let last = nodes[1].channels().unwrap().len();
        drop(sender);
        while nodes[1].channels().unwrap().len() == last {}
        let [came, lost] = comes.join().unwrap();
        eprintln!("{source:?}: {came} came, {lost} lost");
        assert_eq!((came, lost), (source.taken, 0));
    }
}
