//! The order of frames is the sender's up to the last one in the kernel, and channels go before the kernel's other traffic. Told by order and by counts, never by time.

use std::net::UdpSocket;

use laxity_linux::net::Stirs;
use laxity_linux::net::egress::Owned;
use laxity_linux::net::{PacketLink, Settings, UdpLink};
use laxity_linux::os::clock;
use laxity_model::Instant;
use laxity_model::Priority;
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::transmit::{ByPriority, Next, Outgoing, Transmit};

use super::super::namespace::pair;
use super::egress;
use super::reach::{SLOW, arrived, by_class, departed, hosts, number_of, numbered, post, send};

pub(super) const TESTS: [(&str, fn()); 2] = [
    (
        "an_urgent_frame_waits_for_those_in_the_kernel_alone",
        urgent,
    ),
    (
        "channels_go_before_the_kernels_other_traffic",
        before_others,
    ),
];

const REACH: usize = 2;
const BEST_EFFORT: u32 = 20;
const CONTROL: u32 = 1_000;

/// Behind a saturated queue of best effort: within (1 + q) frames.
fn urgent() {
    pair("near", "far");
    let _owned = Owned::take("near", egress(SLOW)).unwrap();
    let mut near = PacketLink::open("near", &by_class(REACH)).unwrap();
    let mut far = PacketLink::open("far", &Settings::default()).unwrap();
    post(&mut far);
    let departures = Stirs::of_departures([&near]).unwrap();
    let mut transmit = Transmit::new(Box::new(ByPriority::new(64)), 64, REACH);
    let offer = |transmit: &mut Transmit<ByPriority>, priority| {
        let outgoing = Outgoing {
            client: ClientId(0),
            length: 1_514,
            priority,
            due: Instant::MAX,
        };
        transmit.offer(&outgoing, clock::now()).unwrap()
    };
    for _ in 0..BEST_EFFORT {
        offer(&mut transmit, Priority::NORMAL);
    }
    let (mut handed, mut told, mut control) = (0, 0, None);
    while told < BEST_EFFORT + 1 {
        while let Next::Frame(frame) = transmit.next(clock::now()).unwrap() {
            let is_control = control.is_some_and(|(control, _)| control == frame);
            let number = if is_control { CONTROL } else { handed };
            send(&mut near, &numbered(number, 1_514)).unwrap();
            handed += 1;
        }
        if told >= 5 && control.is_none() {
            assert!(handed - told <= REACH as u32, "{handed} but {told}");
            control = Some((offer(&mut transmit, Priority::HIGHEST), handed));
        }
        for _ in 0..departed(&mut near, &departures) {
            transmit.sent().unwrap();
            told += 1;
        }
    }
    let (_, before) = control.unwrap();
    let order = arrived(&mut far, BEST_EFFORT + 1);
    let place = order.iter().position(|number| *number == CONTROL);
    assert_eq!(place, Some(before as usize), "{order:?}");
}

/// The kernel's own socket has filled the class of all else before a channel's frame is offered.
fn before_others() {
    const OTHERS: u32 = 60;
    let ([host, other], [local, remote]) = hosts();
    let far = other
        .within(None, || UdpSocket::bind(remote))
        .unwrap()
        .unwrap();
    host.within(None, || {
        let kernels = UdpSocket::bind("10.0.0.1:0").unwrap();
        let mut channel = UdpLink::open(local, remote, &by_class(REACH)).unwrap();
        let mut received = [0; 2_048];
        // Their kernels have to ask for each other's address first.
        kernels.send_to(&[0], remote).unwrap();
        far.recv(&mut received).unwrap();
        let _owned = Owned::take("near", egress(SLOW)).unwrap();
        for number in 0..OTHERS {
            kernels.send_to(&numbered(number, 1_400), remote).unwrap();
        }
        send(&mut channel, &numbered(OTHERS, 64)).unwrap();
        let mut before = 0;
        loop {
            let length = far.recv(&mut received).unwrap();
            if number_of(&received[..length]) == OTHERS {
                break;
            }
            before += 1;
        }
        // Behind them it would be the last. It waits for what left before it was offered, two frames at once, and for the one on its way.
        assert!(before < OTHERS / 2, "{before} went before it");
    })
    .unwrap();
}
