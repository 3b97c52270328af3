//! One story for every wire: a sender, a driver, and clients of each policy that come, keep what they get for so many packets, panic and go.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use laxity::net::buffers::{Buffer, Filled, Pool};
use laxity::net::client::{Client, Context, Direction, Loan, Peek};
use laxity::net::exchange::Outcome;
use laxity_linux::net::xdp::early::{Early, Flow};
use laxity_model::Instant;
use laxity_model::base::random::SplitMix64;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Link, LinkError, Memory};
use laxity_model::nif::registry::ClientId;
use laxity_net::buffers::PoolSize;
use laxity_net::driver::{Driver, DriverError, Host, Interest, Limits, Scope};

use super::support::datagram;

/// Packets that are sent at once: fewer than any interface keeps.
const TOGETHER: u64 = 8;
/// What an interface may have.
const POSTED: usize = 32;
/// A client that swaps is replaced after so many packets.
const REPLACED: u64 = 499;
/// And after so many the wire goes down, and up again.
const FAILS: u64 = 33_000;
/// How many clients a hook is to know: one that has nobody's packets, and those of the driver.
pub(crate) const NUMBERS: u32 = 65;
/// Where in a packet its number stands, and whether its client is to panic.
const NUMBER: std::ops::Range<usize> = 42..50;
const PANICS: usize = 50;

/// A packet, whose it was, and what became of it.
pub(crate) type Fate = (u64, Option<ClientId>, Outcome);

/// Looks at all that arrives.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<Fate>, u64)>>);

impl Peek for Log {
    fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
        assert_eq!(packet.direction, Direction::In);
        self.0.lock().unwrap().1 = number_of(packet.bytes);
    }

    fn became(&mut self, whose: Option<ClientId>, outcome: Outcome) {
        let (fates, number) = &mut *self.0.lock().unwrap();
        fates.push((*number, whose, outcome));
    }
}

/// Looks, and that is all.
struct Looks;

impl Peek for Looks {
    fn look(&mut self, _: Loan<'_>, _: &mut Context<'_>) {}
}

fn number_of(packet: &[u8]) -> u64 {
    u64::from_be_bytes(packet[NUMBER].try_into().unwrap())
}

/// What a client keeps, the oldest first.
type Kept<M> = Arc<Mutex<VecDeque<Buffer<M, Filled>>>>;

struct Keeper<M: Memory>(Kept<M>);

impl<M: Memory> Client<M> for Keeper<M> {
    fn receive(&mut self, packet: Buffer<M, Filled>, _: &mut Context<'_>) {
        assert!(packet.bytes()[PANICS] == 0, "it was told to panic");
        self.0.lock().unwrap().push_back(packet);
    }
}

/// Memory of a client's own, smaller than the longest packets.
struct Small([u8; 256]);

impl Memory for Small {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A client, as the story has it.
struct Member<M: Memory> {
    id: ClientId,
    port: u16,
    pool: Pool<M>,
    buffers: u32,
    /// It gives a buffer again when so many further packets of anybody's were sent.
    after: u64,
    kept: Kept<M>,
}

impl<M: Memory> Member<M> {
    /// Gives, of what it has kept for long enough, some at once, and lets go of the rest, which it gives the next time.
    fn gives_again(&self, sent: u64) {
        self.pool.give(self.buffers);
        let mut kept = self.kept.lock().unwrap();
        let is_old = |packet: &Buffer<M, Filled>| number_of(packet.bytes()) + self.after <= sent;
        while kept.front().is_some_and(is_old) {
            let packet = kept.pop_front().unwrap();
            if !number_of(packet.bytes()).is_multiple_of(3) {
                packet.emptied().give().ok();
            }
        }
        assert_eq!(self.pool.census().total(), self.buffers);
    }
}

/// Both ends of a wire, and how far the story is.
pub(crate) struct Story<N: Link, F: Link> {
    driver: Driver<N, Frames>,
    far: F,
    /// What the far end sends from; all of it is here when nothing is on its way.
    spare: Vec<F::Memory>,
    log: Log,
    swapping: Vec<Member<N::Memory>>,
    copying: Member<Small>,
    /// Finds the first two clients' packets, each by a number that is greater by 1 than the driver's.
    hook: Option<Arc<Early>>,
    random: SplitMix64,
    sent: u64,
    length: u64,
    /// Has the wire go down and up, where it can.
    fails: Box<dyn FnMut() + Send>,
}

impl<N, F> Story<N, F>
where
    N: Link<Memory: Send + 'static>,
    F: Link,
{
    /// A story of so many packets.
    pub(crate) fn new(
        near: N,
        mut far: F,
        length: u64,
        fails: impl FnMut() + Send + 'static,
    ) -> Self {
        let limits = Limits {
            posted: POSTED,
            ..Limits::default()
        };
        let frames = Frames::new(None, 1);
        let mut driver = Driver::new(near, frames, limits, Host::default()).unwrap();
        let log = Log::default();
        driver.tap(Scope::All, log.clone());
        let swapping = [(5_001, 6, 3), (5_002, 3, 20), (5_005, 4, 2)];
        let swapping = swapping.map(|of| swapping_client(&mut driver, of)).into();
        let filter = filter(5_004);
        let looks = driver.register_peek(Interest::In(&filter), PoolSize::fixed(0), Looks);
        looks.unwrap();
        Self {
            copying: copying_client(&mut driver),
            driver,
            spare: far.allocate(TOGETHER as usize).unwrap(),
            far,
            log,
            swapping,
            hook: None,
            random: SplitMix64::new(23),
            sent: 0,
            length,
            fails: Box::new(fails),
        }
    }

    /// The first two clients are found at the hook of the near end.
    pub(crate) fn with_hook(mut self, hook: Arc<Early>) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Packets that the hook dropped.
    fn dropped(&self) -> u64 {
        let hook = self.hook.iter();
        hook.map(|hook| (0..NUMBERS).map(|number| hook.dropped(number)).sum::<u64>())
            .sum()
    }

    /// As many credits as buffers were given.
    fn steer(&self) {
        let Some(hook) = &self.hook else { return };
        let credit = |number, credits| {
            hook.take_back(number);
            hook.give(number, credits);
        };
        credit(0, TOGETHER as u32);
        for member in &self.swapping[..2] {
            let flow = Flow {
                is_tcp: false,
                own: ([10, 0, 0, 2], member.port).into(),
                far: None,
            };
            hook.steer(&flow, member.id.0 + 1, 0).unwrap();
            credit(member.id.0 + 1, member.pool.census().given);
        }
    }

    /// Does what can be done now, and tells whether the story is over.
    pub(crate) fn step(&mut self, now: Instant) -> bool {
        let polled = self.driver.poll(now, &mut ());
        let is_down = DriverError::Link(LinkError::Down);
        assert!(
            polled.as_ref().err().is_none_or(|error| *error == is_down),
            "{polled:?}"
        );
        while let Some(memory) = self.far.sent(now) {
            self.spare.push(memory);
        }
        let has_come = self.driver.account().arrived + self.dropped();
        let is_under_way = self.spare.len() < TOGETHER as usize || has_come < self.sent;
        if is_under_way {
            return false;
        }
        assert_eq!(self.driver.census().total() as usize, POSTED);
        if self.sent >= self.length {
            return true;
        }
        self.clients_act();
        self.steer();
        if self.sent % FAILS < TOGETHER {
            (self.fails)();
        }
        for _ in 0..TOGETHER {
            self.send(now);
        }
        self.far.flush(now).unwrap();
        false
    }

    fn clients_act(&mut self) {
        for member in &mut self.swapping {
            let has_ended = self.driver.account_of(member.id).is_none();
            if has_ended || self.sent % REPLACED < TOGETHER {
                self.driver.unregister(member.id);
                // What it kept comes home, though it has ended.
                member.kept.lock().unwrap().clear();
                let census = member.pool.census();
                assert_eq!(
                    (census.free, census.total()),
                    (member.buffers, member.buffers)
                );
                let of = (member.port, member.buffers, member.after);
                *member = swapping_client(&mut self.driver, of);
            }
            member.gives_again(self.sent);
        }
        self.copying.gives_again(self.sent);
    }

    fn send(&mut self, now: Instant) {
        let drawn = self.random.draw();
        // One is nobody's.
        let port = 5_001 + drawn % 6;
        let mut frame = datagram(
            "10.0.0.1:9",
            &format!("10.0.0.2:{port}"),
            &vec![0; 18 + (drawn >> 8) as usize % 1_400],
        );
        frame[NUMBER].copy_from_slice(&self.sent.to_be_bytes());
        match (drawn >> 32) % 64 {
            // Of the one that is there for it.
            0..4 if port == 5_005 => frame[PANICS] = 1,
            // A length of UDP that cannot be.
            4 => frame[38..40].copy_from_slice(&[0xff; 2]),
            _ => {}
        }
        let mut memory = self.spare.pop().unwrap();
        memory.bytes_mut()[..frame.len()].copy_from_slice(&frame);
        // That it was down is told once, and a packet socket is told with what it sends next.
        let sent = self.far.send(memory, frame.len(), now);
        let sent = sent.or_else(|(memory, error)| {
            assert_eq!(error, LinkError::Down);
            self.far.send(memory, frame.len(), now)
        });
        assert!(sent.is_ok(), "{:?}", sent.err().map(|(_, error)| error));
        self.sent += 1;
    }

    /// What became of all packets.
    pub(crate) fn fates(&self) -> Vec<Fate> {
        std::mem::take(&mut self.log.0.lock().unwrap().0)
    }
}

fn filter(port: u16) -> Filter {
    Filter::parse(&format!("udp dst port {port}"), None).unwrap()
}

fn swapping_client<L: Link<Memory: Send + 'static>>(
    driver: &mut Driver<L, Frames>,
    (port, buffers, after): (u16, u32, u64),
) -> Member<L::Memory> {
    let kept = Kept::default();
    let size = PoolSize::fixed(buffers);
    let interest = filter(port);
    let registered = driver.register(Interest::In(&interest), size, Keeper(Arc::clone(&kept)));
    let registered = registered.unwrap();
    Member {
        id: registered.id,
        port,
        pool: registered.pool,
        buffers,
        after,
        kept,
    }
}

fn copying_client<L: Link<Memory: Send + 'static>>(
    driver: &mut Driver<L, Frames>,
) -> Member<Small> {
    let (port, buffers) = (5_003, 8);
    let kept = Kept::default();
    let own = (0..buffers).map(|_| Small([0; 256])).collect();
    let size = PoolSize::fixed(0);
    let interest = filter(port);
    let keeper = Keeper(Arc::clone(&kept));
    let registered = driver.register_own(Interest::In(&interest), own, size, keeper);
    let registered = registered.unwrap();
    Member {
        id: registered.id,
        port,
        pool: registered.own,
        buffers,
        after: 30,
        kept,
    }
}
