//! A link of 100 Mbit/s, packets of 1400 bytes and 66 more: what a control loop and cameras get, by hand.

use laxity_model::Span;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Costs, Demand, Member, Resource, Traffic};
use laxity_model::policy::multiclass::By;

use super::{PAYLOAD, link};

fn control() -> Traffic {
    Traffic::new(64, (1_000, Span::from_secs(1)), 1).unwrap()
}

fn video() -> Traffic {
    Traffic::new(20_000, (30, Span::from_secs(1)), 3).unwrap()
}

fn demand(traffic: &Traffic) -> Demand {
    let need = Costs::Link(link(0, 1_466)).need(traffic, PAYLOAD);
    Demand {
        need: need.unwrap(),
        interval: traffic.interval(),
    }
}

fn with(queued: u32, by: By) -> Resource<Dedicated> {
    let costs = Costs::Link(link(queued, 1_466));
    let never_due = costs.never_due(PAYLOAD).unwrap();
    Resource::new(Dedicated, by, never_due)
}

#[test]
fn alone_a_message_waits_for_what_is_in_order_for_good() {
    for by in [By::Deadline, By::Priority] {
        for (queued, expected) in [(0, [127_680, 1_796_480]), (2, [362_240, 2_031_040])] {
            let resource = with(queued, by);
            let least = [control(), video()]
                .map(|traffic| resource.least_delay(&demand(&traffic)).unwrap().as_nanos());
            assert_eq!(least, expected);
        }
    }
}

#[test]
fn beside_control_there_is_room_for_so_many_cameras() {
    for by in [By::Deadline, By::Priority] {
        for (millis, expected) in [(5, 2), (10, 5), (33, 19)] {
            let mut resource = with(0, by);
            let member = |channel, traffic, delay| Member {
                channel: super::channel(channel),
                demand: demand(&traffic),
                delay,
            };
            resource
                .admit(member(0, control(), Span::from_millis(1)))
                .unwrap();
            let delay = Span::from_millis(millis);
            let admitted = (1..)
                .take_while(|channel| resource.admit(member(*channel, video(), delay)).is_ok());
            assert_eq!(admitted.count(), expected, "within {delay}");
            assert_eq!(resource.is_met(), Ok(true));
        }
    }
}
