//! The same story over every wire, live and in the twin: the same packets to the same clients, the same dropped for the same reason, in the same order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use laxity_linux::net::xdp::Mode;
use laxity_linux::net::xdp::early::EarlySettings;
use laxity_linux::net::xdp::program::Rest;
use laxity_linux::net::{AnyLink, PacketLink, Settings, TapLink, UmemFrame, XdpLink, open};
use laxity_linux::os::clock;
use laxity_model::nif::exchange::{Outcome, Reason};
use laxity_model::nif::link::{Facts, Link, LinkError, Losses, Received};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::wire::Framing;
use laxity_model::{Context, Host as _, Instant, Placement, ProcessorId, Program, Span, Step};
use laxity_net::emulated::{Faults, Wire};
use laxity_sim::net::{Cable, Line, Moderation, Shape, Transfers};
use laxity_sim::{Profile, Twin};

use super::namespace::{is_up, pair, up};
use super::story::{Fate, NUMBERS, Story};
use super::support::{free_address, in_namespace};

/// Over each.
const PACKETS: u64 = 100_000;

/// What becomes of all packets over a wire that has a time of its own.
fn told<N, F>(near: N, far: F, fails: impl FnMut() + Send + 'static) -> Vec<Fate>
where
    N: Link<Memory: Send + 'static>,
    F: Link,
{
    of(Story::new(near, far, PACKETS, fails))
}

fn of<N, F>(mut story: Story<N, F>) -> Vec<Fate>
where
    N: Link<Memory: Send + 'static>,
    F: Link,
{
    let latest = clock::now() + Span::from_secs(300);
    while !story.step(clock::now()) {
        assert!(clock::now() < latest, "a packet never came");
        std::thread::sleep(Duration::from_micros(20));
    }
    story.fates()
}

/// Over a wire that takes no time, and that nobody has in between: what all others are held against.
fn plain() -> Vec<Fate> {
    let (wire, near, far) = Wire::new(Faults::default(), 1);
    let fates = told(near, far, move || {
        wire.go_down();
        wire.go_up();
    });
    // All that may become of a packet has happened, and often.
    let drops = [
        Reason::NoBuffer,
        Reason::TooLong,
        Reason::Malformed,
        Reason::Nobodys,
        Reason::Panicked,
    ];
    let outcomes = drops.map(Outcome::Dropped).into_iter();
    for outcome in outcomes.chain([Outcome::Swapped, Outcome::Copied, Outcome::Peeked]) {
        let count = fates
            .iter()
            .filter(|(.., became)| *became == outcome)
            .count();
        assert!(count as u64 > PACKETS / 1_000, "{count} {outcome:?}");
    }
    fates
}

fn agree(live: &[Fate]) {
    let plain = plain();
    let first = plain
        .iter()
        .zip(live)
        .position(|(plain, live)| plain != live);
    let both = first.map(|first| [plain[first], live[first]]);
    assert!(both.is_none() && plain.len() == live.len(), "{both:?}");
}

fn opened(name: &str) -> AnyLink {
    open(&name.parse().unwrap(), &Settings::default())
        .unwrap()
        .link
}

/// And comes up again.
fn goes_down(name: &str) {
    up(name, false);
    up(name, true);
    is_up(name);
}

#[test]
fn udp_carries_the_same_packets_to_the_same_clients() {
    let [near, far] = [(); 2].map(|()| free_address());
    agree(&told(
        opened(&format!("udp:{near}-{far}")),
        opened(&format!("udp:{far}-{near}")),
        || {},
    ));
}

#[test]
fn packet_sockets_carry_the_same_packets_to_the_same_clients() {
    in_namespace(|| {
        pair("near", "far");
        agree(&told(opened("packet:near"), opened("packet:far"), || {
            goes_down("near");
        }));
    });
}

#[test]
fn af_xdp_carries_the_same_packets_to_the_same_clients() {
    in_namespace(|| {
        pair("near", "far");
        agree(&told(opened("xdp:near"), opened("xdp:far"), || {
            goes_down("near");
        }));
    });
}

/// Whose clients are found at its hook.
struct Hooked(XdpLink);

impl Link for Hooked {
    type Memory = UmemFrame;

    fn facts(&self) -> &Facts {
        self.0.facts()
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<UmemFrame>, LinkError> {
        self.0.allocate(packets)
    }

    fn post(&mut self, memory: UmemFrame) -> Result<(), UmemFrame> {
        self.0.post(memory)
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<UmemFrame>>, LinkError> {
        let received = self.0.receive(now)?;
        // What the hook found for nobody the driver looks at.
        Ok(received.map(|packet| Received {
            early: packet.early.and_then(|number| number.checked_sub(1)),
            ..packet
        }))
    }

    fn send(
        &mut self,
        memory: UmemFrame,
        length: usize,
        now: Instant,
    ) -> Result<(), (UmemFrame, LinkError)> {
        self.0.send(memory, length, now)
    }

    fn has_discarded(&self) -> bool {
        self.0.has_discarded()
    }

    fn flush(&mut self, now: Instant) -> Result<(), LinkError> {
        self.0.flush(now)
    }

    fn is_silent(&self) -> bool {
        self.0.is_silent()
    }

    fn has_thrown_away(&self) -> bool {
        self.0.has_thrown_away()
    }

    fn ended(&mut self, client: ClientId) {
        self.0.ended(client);
    }

    fn sent(&mut self, now: Instant) -> Option<UmemFrame> {
        self.0.sent(now)
    }

    fn reclaim(&mut self) -> Option<UmemFrame> {
        self.0.reclaim()
    }

    fn losses(&self) -> Losses {
        self.0.losses()
    }
}

/// What finds no buffer there is dropped before the driver sees it; all else is as everywhere.
#[test]
fn af_xdp_carries_the_same_packets_to_clients_that_are_found_at_its_hook() {
    in_namespace(|| {
        pair("near", "far");
        let settings = EarlySettings {
            flows: 2,
            clients: NUMBERS,
            rest: Rest::ClientZero,
        };
        let near = XdpLink::open_early("near", Mode::Generic, &Settings::default(), &settings);
        let near = near.unwrap();
        let hook = Arc::clone(near.early().unwrap());
        let story = Story::new(Hooked(near), opened("packet:far"), PACKETS, || {
            goes_down("near");
        });
        let live = of(story.with_hook(hook));
        let plain = plain();
        let mut live = live.iter().peekable();
        let dropped: Vec<_> = plain
            .iter()
            .filter(|fate| live.next_if_eq(fate).is_none())
            .collect();
        let other = dropped
            .iter()
            .find(|(.., became)| *became != Outcome::Dropped(Reason::NoBuffer));
        assert_eq!((other, live.next()), (None, None));
        assert!(dropped.len() as u64 > PACKETS / 100);
    });
}

#[test]
fn tap_carries_the_same_packets_to_the_same_clients() {
    in_namespace(|| {
        let near = TapLink::open("lax0", &Settings::default()).unwrap();
        is_up("lax0");
        let far = PacketLink::open("lax0", &Settings::default()).unwrap();
        agree(&told(near, far, || goes_down("lax0")));
    });
}

/// A card, whose hardware takes the time that hardware takes.
#[test]
fn a_card_of_the_twin_carries_the_same_packets_to_the_same_clients() {
    let shape = Shape {
        queues: 1,
        receive: 64,
        send: 64,
        mtu: 1_500,
        transfers: Transfers::default(),
        moderation: Moderation::default(),
    };
    let line = Line::new(100_000_000, Framing::Ethernet, true);
    let (cable, near, far) = Cable::new(line, [shape; 2], 3);
    let mut program = Program::new(1);
    let doorbell = program.semaphore(0);
    let hardware = cable.hardware(doorbell, [vec![], vec![]]);
    let processor = ProcessorId(0);
    program.add("hardware", processor, Placement::External, hardware);
    let [near, far] = [near, far].map(|card| card.queue(0).unwrap());
    let mut story = Story::new(near, far, PACKETS, || {});
    let fates = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&fates);
    let body = move |context: &mut dyn Context| {
        let now = context.now();
        if story.step(now) {
            *tell.lock().unwrap() = story.fates();
            return Step::Finish;
        }
        context.signal(doorbell);
        Step::SleepUntil(now + Span::from_micros(500))
    };
    program.add("story", processor, Placement::External, body);
    let lasts = Span::from_secs(PACKETS / 1_000);
    Twin::new(Profile::IDEAL)
        .admit_and_run(program, lasts)
        .unwrap();
    agree(&fates.lock().unwrap());
}
