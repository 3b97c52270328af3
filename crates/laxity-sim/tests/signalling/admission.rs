//! The admission of a host whose messages take a nanosecond a byte of its processor, and as much of each of its links.

use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::analysis::Fraction;
use laxity_model::analysis::supply::BoundedDelay;
use laxity_model::channels::admission::{Costs, Host, LinkCosts, ProcessorCosts, Traffic};
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::signalling::LinkId;
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};

pub(crate) type Admission = Host<BoundedDelay>;

/// A message a millisecond, whose bytes take so many millionths of that.
pub(crate) fn asked(share: u32) -> Asked {
    Asked {
        name: Name::new("somebody").expect("a name"),
        traffic: Traffic::new(share, (1, Span::from_millis(1)), 1).expect("traffic"),
        discard: false,
    }
}

/// So many millionths of the processor and of each of so many links, and packet buffers. Each message is one packet.
pub(crate) fn host([processor, link, buffers]: [u64; 3], links: u16) -> Admission {
    let none = Service::ZERO;
    let work = Costs::Processor(ProcessorCosts {
        message: none,
        packet: none,
        byte_ps: 1_000,
        look: none,
        switch: none,
        cache_miss: none,
        wake_up: none,
        completion: none,
        interrupt: none,
        packets_at_once: NonZeroU32::MIN,
        carries_best_effort: false,
    });
    let host = Host::new(NonZeroU32::MAX, buffers, Span::ZERO);
    let with_processor = host.through(work, supply(processor), By::Deadline);
    with_links(with_processor.expect("it fits"), link, links)
}

/// All of so many links; its processor and its buffers are nothing to ask for.
pub(crate) fn links(links: u16) -> Admission {
    let host = Host::new(NonZeroU32::MAX, u64::MAX / 2, Span::ZERO);
    with_links(host, 1_000_000, links)
}

fn supply(ppm: u64) -> BoundedDelay {
    let rate = Fraction::new(ppm.min(1_000_000), 1_000_000).expect("a rate");
    BoundedDelay::new(rate, Span::ZERO).expect("no more than there is")
}

fn with_links(host: Admission, ppm: u64, links: u16) -> Admission {
    let wire = Costs::Link(LinkCosts {
        rate: NonZeroU64::new(8_000_000_000).expect("a rate"),
        overhead: 0,
        queued: 0,
        best_effort: 0,
    });
    let all = (0..links).try_fold(host, |host, number| {
        host.over(LinkId(number), wire, supply(ppm), By::Deadline)
    });
    all.expect("it fits")
}
