//! What processors of hosts are charged for messages: what a machine file says, and what is assumed where none does.

use core::num::NonZeroU32;

use laxity_model::Service;
use laxity_model::channels::admission::ProcessorCosts;
use laxity_model::enforce::machine::Figure;
use serde::Serialize;

use crate::machine_file::Known;

/// By which way frames go to an interface, of those that are measured.
const WAY: &str = "udp";
/// P: a handler looks after so many packets whether to yield. As in the *channels* paper.
const AT_ONCE: NonZeroU32 = NonZeroU32::new(4).expect("more than none");
const UNMEASURED: &str = "`laxity calibrate` does not measure it";
/// What is charged where nobody measured it: more than the machines took that laxity was tried on, servers of today, and less than a slow board may take.
const ASSUMED: ProcessorCosts = ProcessorCosts {
    message: Service::from_micros(5),
    packet: Service::from_micros(15),
    byte_ps: 1_000,
    look: Service::from_nanos(200),
    switch: Service::from_micros(1),
    cache_miss: Service::from_micros(10),
    wake_up: Service::from_micros(100),
    completion: Service::ZERO,
    interrupt: Service::from_micros(10),
    packets_at_once: AT_ONCE,
    carries_best_effort: true,
};
/// What a byte takes that is opened and sealed again, or whose checksum is: BENCHMARKS.md has 360 ps for it by AES-256-GCM, and 1,090 by ChaCha20-Poly1305.
const SEAL_PS: u64 = 2_000;

/// One of the costs that the processor of each host is charged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CostPlan {
    /// Of what, and what is in it.
    pub of: &'static str,
    /// Each time, in nanoseconds; none of what is charged by the byte.
    pub cost_ns: Option<u64>,
    /// Of each byte, in picoseconds.
    pub byte_ps: Option<u64>,
    /// Whether a machine file says it; else it is assumed.
    pub calibrated: bool,
    /// When and how it was measured, or why it is assumed.
    pub from: String,
}

/// What the processor of a host is charged, and where each of these costs is from. `known` is taken for all hosts.
pub(super) fn charged(known: &Known) -> (ProcessorCosts, Vec<CostPlan>) {
    let mut told = Told(Vec::new());
    let packets = known.packets(WAY);
    let of_packets = |cost: fn(&laxity::calibrate::PacketCost) -> u64| {
        let packets = packets.as_ref().map_err(String::clone);
        packets.map(|(costs, from)| (cost(costs), from.clone()))
    };
    let of_figures = |figures: &[Figure]| {
        let largest = known.largest(figures);
        largest.map(|(span, from)| (span.as_nanos(), from))
    };
    let unmeasured = || Err(UNMEASURED.to_owned());
    let message = told.service(
        "a message (policed, queued, put together, handed over)",
        unmeasured(),
        ASSUMED.message,
    );
    let packet = told.service(
        "a packet (received, sent, and known to have left)",
        of_packets(|cost| (cost.receive.each + cost.send.each).as_nanos()),
        ASSUMED.packet,
    );
    let byte_ps = told.byte(
        "a byte (received and sent)",
        of_packets(|cost| cost.receive.byte_ps.saturating_add(cost.send.byte_ps)),
        ASSUMED.byte_ps,
    );
    let seal_ps = told.byte("a byte (opened and sealed)", unmeasured(), SEAL_PS);
    let look = told.service("a look whether to yield", unmeasured(), ASSUMED.look);
    let switch = told.service("a switch of handlers", unmeasured(), ASSUMED.switch);
    let cache_miss = told.service(
        "a cold cache behind it",
        of_figures(&[Figure::CacheReload]),
        ASSUMED.cache_miss,
    );
    let wake_up = told.service(
        "a wake-up at the longest",
        of_figures(&[Figure::Wakeup, Figure::WakeupIdle]),
        ASSUMED.wake_up,
    );
    let interrupt = told.service(
        "a look for packets after a sleep",
        of_packets(|cost| cost.wake.as_nanos()),
        ASSUMED.interrupt,
    );
    let costs = ProcessorCosts {
        message,
        packet,
        byte_ps: byte_ps.saturating_add(seal_ps),
        look,
        switch,
        cache_miss,
        wake_up,
        interrupt,
        ..ASSUMED
    };
    (costs, told.0)
}

/// All that was said so far.
struct Told(Vec<CostPlan>);

type Found = Result<(u64, String), String>;

impl Told {
    fn service(&mut self, of: &'static str, found: Found, assumed: Service) -> Service {
        let (cost, calibrated, from) = or_assumed(found, assumed.as_nanos());
        self.0.push(CostPlan {
            of,
            cost_ns: Some(cost),
            byte_ps: None,
            calibrated,
            from,
        });
        Service::from_nanos(cost)
    }

    fn byte(&mut self, of: &'static str, found: Found, assumed: u64) -> u64 {
        let (cost, calibrated, from) = or_assumed(found, assumed);
        self.0.push(CostPlan {
            of,
            cost_ns: None,
            byte_ps: Some(cost),
            calibrated,
            from,
        });
        cost
    }
}

/// What it is, whether that was found, and from where, or why it was not.
fn or_assumed(found: Found, assumed: u64) -> (u64, bool, String) {
    match found {
        Ok((cost, from)) => (cost, true, from),
        Err(why) => (assumed, false, why),
    }
}
