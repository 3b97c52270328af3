//! Signalling's own channel: there before all others, and in nobody's books.

use std::iter;
use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::Span;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{
    Costs, Host, Lack, LinkCosts, Nearest, Path, Request, Short, Signals, Traffic,
};
use laxity_model::channels::signalling::{Admits, Hold, LinkId, Place, Terms};
use laxity_model::policy::multiclass::By;

use super::channel;
use super::oracle::host;

const LINK: LinkId = LinkId(0);
const OUT: Place = Place {
    from: None,
    to: Some(LINK),
};

fn signals() -> Signals {
    Signals::new(&Terms::default(), NonZeroU32::new(776).unwrap()).unwrap()
}

/// A link of this rate, and no processor.
fn of_rate(rate: u64) -> Host<Dedicated> {
    let costs = Costs::Link(LinkCosts {
        rate: NonZeroU64::new(rate).unwrap(),
        overhead: 130,
        queued: 2,
        best_effort: 1_538,
    });
    Host::new(NonZeroU32::new(1_408).unwrap(), 1_000, Span::ZERO)
        .over(LINK, costs, Dedicated, By::Deadline)
        .unwrap()
}

/// A frame each 5 ms, within 5 ms, four of them on the way out: the figures of the terms.
#[test]
fn what_is_said_is_heard_before_it_is_said_again() {
    let signals = signals();
    let [half, out, into] = [5, 4, 1].map(Span::from_millis);
    assert_eq!(signals.traffic.interval(), half);
    assert_eq!((signals.out, signals.into), (out, into));
    assert_eq!(signals.most, Span::from_millis(25));
    let mut host = host();
    assert_eq!(host.signals(LINK, &signals), Ok([out, into]));
    assert_eq!(host.signals(LinkId(1), &signals), Ok([out, into]));
    let members = host
        .stages()
        .iter()
        .map(|stage| stage.resource().members().len());
    // Each link's ways out and in on the processor.
    assert_eq!(members.collect::<Vec<_>>(), [4, 1, 1]);
}

/// Channels take all that is left of the link; what signalling has it keeps, and none of it is offered to who is refused.
#[test]
fn channels_fill_a_link_and_signalling_keeps_its_time() {
    let mut host = [of_rate(100_000_000)];
    host[0].signals(LINK, &signals()).unwrap();
    let ours = host[0].stages()[0]
        .resource()
        .members()
        .copied()
        .collect::<Vec<_>>();
    let way = [(0, OUT)];
    let request = |number| Request {
        channel: channel(number),
        traffic: Traffic::new(1_400, (1, Span::from_millis(1)), 1).unwrap(),
        within: Span::from_millis(20),
        propagation: Span::ZERO,
    };
    let mut path = Path {
        network: &mut host,
        way: &way,
    };
    let opened = (0..).take_while(|number| path.open(&request(*number)).is_ok());
    assert_eq!(opened.count(), 8);
    for number in 0..8 {
        path.close(channel(number));
    }
    // Who asks for more than the link has beside signalling alone.
    let most = Request {
        traffic: Traffic::new(1_400, (1, Span::from_nanos(123_000)), 1).unwrap(),
        ..request(9)
    };
    let refusal = path.open(&most).unwrap_err();
    let gives = |nearest: &Nearest| matches!(nearest, Nearest::Give { .. });
    assert!(!refusal.nearest.iter().any(gives), "{refusal:?}");
    let resource = host[0].stages()[0].resource();
    assert_eq!(resource.members().copied().collect::<Vec<_>>(), ours);
    assert_eq!(resource.is_met(), Ok(true));
}

/// A node says which channels it has; what is signalling's is none of them.
#[test]
fn the_books_agree_without_signalling() {
    let mut host = host();
    host.signals(LINK, &signals()).unwrap();
    assert!(host.agrees(iter::empty()));
    let traffic = Traffic::new(64, (1, Span::from_millis(1)), 1).unwrap();
    let hold = Hold {
        channel: channel(1),
        version: 0,
    };
    host.grant(hold, OUT, &traffic, Span::ZERO).unwrap();
    assert!(!host.agrees(iter::empty()));
    host.release(hold);
    assert!(host.agrees(iter::empty()));
}

/// 10 Mbit/s: as soon as it can. 1.6 Mbit/s: a neighbour would be taken for dead. 1 Mbit/s: it is more than there is.
#[test]
fn a_slow_link_has_later_signalling_or_none() {
    let mut slow = of_rate(10_000_000);
    let [out, _] = slow.signals(LINK, &signals()).unwrap();
    // Three frames of others in the way, and one of 906 bytes.
    assert_eq!(out, Span::from_nanos((3 * 1_538 + 906) * 800));
    let full = of_rate(1_000_000).signals(LINK, &signals());
    let is_share = |lack: &Lack| {
        matches!(
            lack,
            Lack::Stage {
                short: Short::Share { .. },
                ..
            }
        )
    };
    assert!(full.as_ref().is_err_and(is_share), "{full:?}");
    let mut host = of_rate(1_600_000);
    let (asked, least) = (signals().most, Span::from_nanos((3 * 1_538 + 906) * 5_000));
    let short = Short::Delay { asked, least };
    let lack = Lack::Stage { stage: 0, short };
    assert_eq!(host.signals(LINK, &signals()), Err(lack));
    assert_eq!((host.channels().count(), host.buffers().0), (0, 0));
    assert_eq!(host.stages()[0].resource().members().len(), 0);
}
