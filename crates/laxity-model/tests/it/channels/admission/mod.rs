//! Admission of channels: figures by hand, a simulator packet by packet, and every offer taken.

mod bounded;
mod figures;
mod host;
mod oracle;
mod paths;
mod sets;
mod signals;
mod versions;
mod wire;

use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Costs, Host, LinkCosts, ProcessorCosts};
use laxity_model::channels::signalling::{ChannelId, HostId, LinkId};
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};

/// What a packet carries, in bytes, and what a frame has beside it.
pub(crate) const PAYLOAD: NonZeroU32 = NonZeroU32::new(1_400).unwrap();
pub(crate) const OVERHEAD: u32 = 66;

/// One of host 0.
pub(crate) const fn channel(number: u64) -> ChannelId {
    ChannelId {
        origin: HostId(0),
        generation: 0,
        number: number as u32,
    }
}

/// Of 100 Mbit/s, with so many frames in order for good.
pub(crate) fn link(queued: u32, best_effort: u32) -> LinkCosts {
    LinkCosts {
        rate: NonZeroU64::new(100_000_000).unwrap(),
        overhead: OVERHEAD,
        queued,
        best_effort,
    }
}

/// A fast one.
pub(crate) fn processor() -> ProcessorCosts {
    let micros = Service::from_micros;
    ProcessorCosts {
        message: micros(5),
        packet: micros(4),
        byte_ps: 300,
        look: micros(1),
        switch: micros(2),
        cache_miss: micros(3),
        wake_up: micros(60),
        completion: micros(2),
        interrupt: micros(3),
        packets_at_once: NonZeroU32::new(4).unwrap(),
        carries_best_effort: true,
    }
}

/// With this processor, all of it, and these links; each decision may take as long as it does, so that what is offered is the nearest.
pub(crate) fn host(
    processor: ProcessorCosts,
    links: &[LinkCosts],
    by: By,
    (buffers, horizon): (u64, Span),
) -> Host<Dedicated> {
    let host = Host::new(PAYLOAD, buffers, horizon).looking_at(u64::MAX);
    let with_processor = host.through(Costs::Processor(processor), Dedicated, by);
    let mut links = (0..).map(LinkId).zip(links);
    let with_links = links.try_fold(with_processor.unwrap(), |host, (number, link)| {
        host.over(number, Costs::Link(*link), Dedicated, by)
    });
    with_links.unwrap()
}
