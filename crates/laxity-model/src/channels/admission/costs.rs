//! What a message takes of a processor and of a link, from the constants of the machine (table 1).
//!
//! ```text
//! processor  C = message + interrupt + N·(packet + completion) + M·byte + ⌈N/P⌉·yield + 2·switch + cache
//!            region of n = min(P, N) packets: message + interrupt + n·(packet + completion) + min(P·S, M)·byte + yield
//! link       C = (M + N·H) / rate,      region: one frame
//! ```
//!
//! where M is the largest message, S a packet's payload and N = ⌈M/S⌉; H is what a frame has beside it. *Blocking* by those that are never due, once a busy window: on a processor best
//! effort's P packets, or the wake-up, whichever is longer, for who is asleep is not at work; on a link 1 + q frames of best effort, q of which wait in kernel and card and one of which is on the wire.
//!
//! What is in the kernel is in order for good, whosever it is. With q of zero only those can block that are due later. With more, frames of anybody can be in the way of a message,
//! even of one more urgent that came before its time, and the unit of blocking is the largest frame of all.
//!
//! Fractions of a nanosecond are rounded up, and down where less is safe; what does not fit is an error.

use core::num::{NonZeroU32, NonZeroU64};

use super::Traffic;
use crate::Service;
use crate::analysis::{Overflow, Preemption, Result, Task, TaskError};

const BITS_PER_BYTE: u128 = 8;
const NANOS_PER_SEC: u128 = 1_000_000_000;
const PICOS_PER_NANO: u128 = 1_000;

const TOO_LARGE: Overflow = Overflow("what a message takes");

/// What a processor takes for messages and their packets. One executor has all handlers of it, and completions (see [`crate::executor`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessorCosts {
    /// A message: taken from its queue, and the first packet's more than a further one.
    pub message: Service,
    /// A packet, with what link scheduling takes for it.
    pub packet: Service,
    /// A byte, in picoseconds: copied, sealed.
    pub byte_ps: u64,
    /// To look whether somebody else is to go, once each P packets.
    pub look: Service,
    /// From one handler to another; a message makes two.
    pub switch: Service,
    /// The cache is cold after that.
    pub cache_miss: Service,
    /// From an event to the executor at work, where it slept.
    pub wake_up: Service,
    /// A packet is sent, and the link free.
    pub completion: Service,
    /// An interrupt, and what tells of a message.
    pub interrupt: Service,
    /// P: a handler looks after so many packets whether to yield.
    pub packets_at_once: NonZeroU32,
    /// Whether best effort has a handler here too, with as many packets at once.
    pub carries_best_effort: bool,
}

/// What a link takes for frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LinkCosts {
    /// In bits a second.
    pub rate: NonZeroU64,
    /// H: what a frame has beside the payload, on this link, in bytes: headers, and what the link itself adds (Ethernet: 24).
    pub overhead: u32,
    /// q: so many frames may be in kernel and card beside the one on the wire.
    pub queued: u32,
    /// The largest unit of best effort that cannot be interrupted, as long as it is on the wire, in bytes; zero where there is none.
    pub best_effort: u32,
}

/// A resource that messages go through one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Costs {
    /// A processor. What it hands to a link is sent while it goes on.
    Processor(ProcessorCosts),
    /// A link that is fed so.
    Link(LinkCosts),
    /// A processor that does nothing else while a frame is sent: one resource.
    Both(ProcessorCosts, LinkCosts),
}

/// What one resource has to give for each message of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Need {
    /// C: for the largest message.
    pub cost: Service,
    /// The most for which it cannot be interrupted.
    pub region: Service,
    /// What of it, at its end, is not interrupted, at the least.
    pub last: Service,
}

impl Costs {
    /// What the largest messages of this traffic take, in packets of so many bytes of payload (S).
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn need(&self, traffic: &Traffic, payload: NonZeroU32) -> Result<Need> {
        match self {
            Self::Processor(processor) => processor.need(traffic, payload),
            Self::Link(link) => link.need(traffic, payload),
            Self::Both(processor, link) => {
                let (work, wire) = (
                    processor.need(traffic, payload)?,
                    link.need(traffic, payload)?,
                );
                let packets = processor.packets_at_once.min(packets(traffic, payload));
                let frames = wire.region.checked_mul(u64::from(packets.get()));
                let sum = |one: Service, other: Service| one.checked_add(other).ok_or(TOO_LARGE);
                let cost = sum(work.cost, wire.cost)?;
                Ok(Need {
                    cost,
                    region: sum(work.region, frames.ok_or(TOO_LARGE)?)?.min(cost),
                    last: sum(work.last, wire.last)?,
                })
            }
        }
    }

    /// For how long those that are never due can be in the way, once a busy window.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn never_due(&self, payload: NonZeroU32) -> Result<Service> {
        match self {
            Self::Processor(processor) => processor.never_due(payload),
            Self::Link(link) => link.never_due(payload),
            Self::Both(processor, link) => {
                let packets = match processor.carries_best_effort {
                    true => u64::from(processor.packets_at_once.get()),
                    false => 1,
                };
                let frames = link.never_due(payload)?.checked_mul(packets);
                frames
                    .and_then(|frames| frames.checked_add(processor.never_due(payload).ok()?))
                    .ok_or(TOO_LARGE)
            }
        }
    }
}

/// N: how many packets the largest message has.
#[must_use]
pub fn packets(traffic: &Traffic, payload: NonZeroU32) -> NonZeroU32 {
    let packets = traffic.largest().get().div_ceil(payload.get());
    NonZeroU32::new(packets).unwrap_or(NonZeroU32::MIN)
}

impl ProcessorCosts {
    /// Of a processor of some 3 GHz that is busy with others, at the most: nothing of this was measured.
    pub const ASSUMED: Self = Self {
        message: Service::from_micros(10),
        packet: Service::from_micros(10),
        byte_ps: 1_000,
        look: Service::from_nanos(100),
        switch: Service::from_micros(2),
        cache_miss: Service::from_micros(5),
        wake_up: Service::from_micros(100),
        completion: Service::from_micros(5),
        interrupt: Service::from_micros(5),
        packets_at_once: NonZeroU32::new(4).expect("it is not 0"),
        carries_best_effort: true,
    };

    /// C_cpu, and what of it is not interrupted.
    fn need(&self, traffic: &Traffic, payload: NonZeroU32) -> Result<Need> {
        let (packets, bytes) = (packets(traffic, payload).get(), traffic.largest().get());
        let at_once = self.packets_at_once.get();
        let looks = packets.div_ceil(at_once);
        let overhead = [
            self.message,
            self.interrupt,
            self.switch,
            self.switch,
            self.cache_miss,
        ];
        let overhead: u128 = overhead.iter().map(|cost| nanos(*cost)).sum();
        let cost = overhead
            + self.body(packets, u64::from(bytes)).0
            + u128::from(looks) * nanos(self.look);
        let rest = packets - (looks - 1) * at_once;
        let before = u64::from(packets - rest) * u64::from(payload.get());
        let last = self.body(rest, u64::from(bytes) - before).1;
        Ok(Need {
            cost: service(cost)?,
            region: service(self.region(packets, u64::from(bytes), payload))?,
            last: service(last.max(1))?,
        })
    }

    fn never_due(&self, payload: NonZeroU32) -> Result<Service> {
        if !self.carries_best_effort {
            return Ok(self.wake_up);
        }
        let region = self.region(u32::MAX, u64::MAX, payload);
        Ok(service(region)?.max(self.wake_up))
    }

    /// Of a message of so many packets and bytes, as much as goes without a look.
    fn region(&self, packets: u32, bytes: u64, payload: NonZeroU32) -> u128 {
        let packets = self.packets_at_once.get().min(packets);
        let bytes = bytes.min(u64::from(packets) * u64::from(payload.get()));
        let overhead = nanos(self.message) + nanos(self.interrupt) + nanos(self.look);
        overhead + self.body(packets, bytes).0
    }

    /// So many packets with so many bytes, in nanoseconds, rounded up, and down.
    fn body(&self, packets: u32, bytes: u64) -> (u128, u128) {
        let packets = u128::from(packets) * (nanos(self.packet) + nanos(self.completion));
        let picos = u128::from(bytes) * u128::from(self.byte_ps);
        (
            packets + picos.div_ceil(PICOS_PER_NANO),
            packets + picos / PICOS_PER_NANO,
        )
    }
}

impl LinkCosts {
    /// C_link, and what of it is not interrupted.
    fn need(&self, traffic: &Traffic, payload: NonZeroU32) -> Result<Need> {
        let (packets, bytes) = (packets(traffic, payload).get(), traffic.largest().get());
        let before = u128::from(packets - 1) * u128::from(payload.get());
        let (all, overhead) = (u128::from(bytes), u128::from(self.overhead));
        let largest = bytes.min(payload.get());
        Ok(Need {
            cost: service(self.takes(all + u128::from(packets) * overhead))?,
            region: service(self.takes(u128::from(largest) + overhead))?,
            last: service(self.bit_times(all - before + overhead) / u128::from(self.rate.get()))?
                .max(Service::from_nanos(1)),
        })
    }

    fn never_due(&self, payload: NonZeroU32) -> Result<Service> {
        let frame = u128::from(payload.get()) + u128::from(self.overhead);
        let best_effort = u128::from(self.best_effort);
        let unit = match self.queued {
            0 => best_effort,
            _ => best_effort.max(frame),
        };
        service(self.takes((u128::from(self.queued) + 1) * unit))
    }

    /// So many bytes on the wire, in nanoseconds, rounded up.
    fn takes(&self, bytes: u128) -> u128 {
        self.bit_times(bytes).div_ceil(u128::from(self.rate.get()))
    }

    /// In nanoseconds, times the rate: below 2¹⁰⁰ for what 64 bits count, so nothing wraps.
    const fn bit_times(&self, bytes: u128) -> u128 {
        bytes * BITS_PER_BYTE * NANOS_PER_SEC
    }
}

impl Need {
    /// The task that a channel is which has a message each interval, due so long after it.
    ///
    /// # Errors
    ///
    /// A number is zero.
    pub fn task(&self, interval: crate::Span, delay: crate::Span) -> Result<Task, TaskError> {
        let cut = Preemption::Fixed {
            longest: self.region.min(self.cost),
            last: self.last.min(self.region).min(self.cost),
        };
        Task::new(self.cost, interval)?
            .with_deadline(delay)?
            .with_preemption(cut)
    }
}

const fn nanos(service: Service) -> u128 {
    service.as_nanos() as u128
}

fn service(nanos: u128) -> Result<Service> {
    u64::try_from(nanos)
        .map(Service::from_nanos)
        .map_err(|_| TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use proptest::prelude::*;

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("not zero")
    }

    fn traffic(largest: u32) -> Traffic {
        Traffic::new(largest, (1, Span::from_millis(1)), 1).expect("traffic")
    }

    fn link(queued: u32) -> LinkCosts {
        LinkCosts {
            rate: NonZeroU64::new(100_000_000).expect("a rate"),
            overhead: 66,
            queued,
            best_effort: 1466,
        }
    }

    /// The paper's, in nanoseconds.
    fn processor() -> ProcessorCosts {
        let micros = Service::from_micros;
        ProcessorCosts {
            message: micros(250),
            packet: micros(330),
            byte_ps: 0,
            look: Service::ZERO,
            switch: micros(55),
            cache_miss: micros(90),
            wake_up: micros(40),
            completion: micros(40),
            interrupt: Service::ZERO,
            packets_at_once: number(4),
            carries_best_effort: true,
        }
    }

    #[test]
    fn a_link_of_100_mbit_takes_80_ns_a_byte() {
        let need = |bytes| link(0).need(&traffic(bytes), number(1400)).expect("fits");
        assert_eq!(need(64).cost, Service::from_nanos(10_400));
        assert_eq!(need(64).region, need(64).cost);
        let video = need(20_000);
        assert_eq!(video.cost, Service::from_nanos(1_679_200));
        assert_eq!(video.region, Service::from_nanos(117_280));
        // The fifteenth packet has 400 bytes.
        assert_eq!(video.last, Service::from_nanos(466 * 80));
        for queued in 0..3 {
            let blocked = link(queued).never_due(number(1400)).expect("fits");
            assert_eq!(
                blocked,
                Service::from_nanos(117_280) * u64::from(queued + 1)
            );
        }
    }

    #[test]
    fn a_handler_looks_after_every_p_packets() {
        let need = |bytes| {
            processor()
                .need(&traffic(bytes), number(4096))
                .expect("fits")
        };
        let packets = |count: u64| 250 + count * 370;
        assert_eq!(need(60).cost, Service::from_micros(packets(1) + 200));
        assert_eq!(need(40_960).cost, Service::from_micros(packets(10) + 200));
        assert_eq!(need(40_960).region, Service::from_micros(packets(4)));
        // Two packets are behind the last look.
        assert_eq!(need(40_960).last, Service::from_micros(2 * 370));
        let blocked = processor().never_due(number(4096)).expect("fits");
        assert_eq!(blocked, Service::from_micros(packets(4)));
        let mut elsewhere = processor();
        elsewhere.carries_best_effort = false;
        assert_eq!(
            elsewhere.never_due(number(4096)),
            Ok(Service::from_micros(40))
        );
    }

    #[test]
    fn as_one_resource_both_take_their_time() {
        let both = Costs::Both(processor(), link(0));
        let need = both.need(&traffic(20_000), number(1400)).expect("fits");
        assert_eq!(
            need.cost,
            Service::from_nanos(1_679_200 + 1_000 * (450 + 15 * 370))
        );
        assert_eq!(
            need.region,
            Service::from_nanos(4 * 117_280 + 1_000 * (250 + 4 * 370))
        );
        let blocked = both.never_due(number(1400)).expect("fits");
        assert_eq!(blocked, need.region);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut slow = link(u32::MAX);
        slow.rate = NonZeroU64::MIN;
        assert!(slow.need(&traffic(u32::MAX), number(1)).is_err());
        assert!(slow.never_due(number(u32::MAX)).is_err());
        let mut slow = processor();
        slow.packet = Service::MAX;
        assert!(slow.need(&traffic(3), number(1)).is_err());
    }

    proptest! {
        /// No less than the exact time, and less than a nanosecond more.
        #[test]
        fn a_fraction_of_a_nanosecond_is_rounded_up(
            rate in 1..20_000_000_000_u64, bytes in 1..200_000_u32,
            payload in 1..9_000_u32, overhead in 0..200_u32,
        ) {
            let mut link = link(0);
            (link.rate, link.overhead) = (NonZeroU64::new(rate).expect("not zero"), overhead);
            let need = link.need(&traffic(bytes), number(payload));
            let packets = u128::from(bytes.div_ceil(payload));
            let exact = (u128::from(bytes) + packets * u128::from(overhead)) * 8_000_000_000;
            let rate = u128::from(rate);
            match need {
                Ok(need) => {
                    let cost = u128::from(need.cost.as_nanos()) * rate;
                    prop_assert!(exact <= cost && cost < exact + rate);
                    prop_assert!(need.last <= need.region && need.region <= need.cost);
                }
                Err(_) => prop_assert!(exact / rate >= u128::from(u64::MAX)),
            }
        }
    }
}
