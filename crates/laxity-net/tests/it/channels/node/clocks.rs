//! What clocks that do not agree tell of links, which take longer than any host sees.

use laxity_model::Span;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::{Place, Timeliness};
use laxity_model::nif::wire::Faults;
use laxity_net::channels::node::Event;
use laxity_net::channels::path::{self, Label};

use super::world::{Got, Manner, World};
use crate::channels::path::world::message;

/// A channel over two relays, of which nobody has said what links may take unseen; after a while one link does this to frames.
fn line(faults: impl Fn(Faults) -> Faults, link: usize) -> (World, Label) {
    // Frames behind one that took too long may look closer to it than they are.
    let manner = Manner {
        unseen: Span::from_millis(1),
        ..Manner::default()
    };
    let mut world = World::new(4, manner, 5);
    world.listens.unseen = Span::MAX;
    let traffic = Traffic::new(800, (1, Span::from_millis(10)), 2).expect("traffic");
    let opening = World::opening(0, 3, traffic, Span::from_millis(5));
    let (_, [from, to], _) = world.open(opening).expect("granted");
    world.run(Span::from_millis(500));
    let worse = world.hosts.faults(link);
    *worse = faults(*worse);
    for number in 0..100 {
        let at = world.now() + Span::from_millis(10) * number;
        world.sends(at, 0, from, message(0, number, 800));
    }
    world.run(Span::from_millis(1_100));
    (world, to)
}

fn are(got: &[Got], timeliness: Timeliness) -> usize {
    let verdicts = got.iter().filter_map(|one| one.verdict);
    verdicts.filter(|one| one.timeliness == timeliness).count()
}

#[test]
fn what_is_in_time_is_known_to_be_whatever_the_clocks_say() {
    let (world, _) = line(|faults| faults, 1);
    let got = &world.seen[3].got;
    assert_eq!((got.len(), are(got, Timeliness::InTime)), (100, 100));
    for one in got {
        let error = one.verdict.expect("it is due").error;
        assert!(error < Span::from_millis(1), "{error}");
    }
}

#[test]
fn the_link_that_took_too_long_is_told_whichever_it_is() {
    for link in 0..3 {
        let slow = |faults| Faults {
            late: 500_000,
            late_by: Span::from_millis(8),
            ..faults
        };
        let (world, to) = line(slow, link);
        let mut late = 0;
        for (_, event) in &world.seen[3].events {
            let Event::Missed(end, missed) = event else {
                continue;
            };
            assert_eq!(*end, to);
            if let path::Event::Late { guilty, .. } = missed {
                late += 1;
                assert_eq!(*guilty, Some(Place::Link(link as u8)));
            }
        }
        assert!(late >= 10, "{late} by link {link}");
        world.adds_up();
    }
}
