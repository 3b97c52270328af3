//! A processor and the link that it feeds, in the simulator: every message is out within both delays, and there are never more of a channel than it has buffers.

use std::num::NonZeroU32;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::{Host, Lack, Member, ProcessorCosts, Traffic};
use laxity_model::channels::signalling::{Admits, Delays, Hold, LinkId, Place};
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};

use super::channel;
use super::wire::{Early, First, Flow, Message, Rules, Unit, run};
use crate::edf_support::cases;

const PAYLOAD: u64 = super::PAYLOAD.get() as u64;
const AT_ONCE: u64 = 3;
const MESSAGE: u64 = 9_000;
const PACKET: u64 = 40_000;
const WAKE_UP: u64 = 70_000;
const FRAME: u64 = 117_280;

fn host(queued: u32) -> Host<Dedicated> {
    let nothing = Service::ZERO;
    let processor = ProcessorCosts {
        message: Service::from_nanos(MESSAGE),
        packet: Service::from_nanos(PACKET),
        byte_ps: 0,
        look: nothing,
        switch: nothing,
        cache_miss: nothing,
        wake_up: Service::from_nanos(WAKE_UP),
        completion: nothing,
        interrupt: nothing,
        packets_at_once: NonZeroU32::new(AT_ONCE as u32).unwrap(),
        carries_best_effort: false,
    };
    let links = [super::link(queued, 1_466)];
    super::host(processor, &links, By::Deadline, (1 << 20, Span::ZERO))
}

/// Blocks of packets on the processor.
fn blocks(packets: u64, from: u64) -> Vec<Unit> {
    let block = |first: u64| {
        let overhead = if first == 0 { MESSAGE } else { 0 };
        let takes = overhead + AT_ONCE.min(packets - first) * PACKET;
        Unit { from, takes }
    };
    (0..packets).step_by(AT_ONCE as usize).map(block).collect()
}

/// Messages as they come to the processor, some before their logical arrivals.
fn flow(traffic: &Traffic, delay: u64, until: u64, random: &mut SplitMix64) -> Flow {
    let (interval, burst) = (
        traffic.interval().as_nanos(),
        u64::from(traffic.burst().get()),
    );
    let packets = u64::from(traffic.largest().get()).div_ceil(PAYLOAD);
    let (mut logical, mut came, mut messages) = (random.draw() % interval, 0, Vec::new());
    while logical < until {
        let ahead = random.draw() % ((burst - 1) * interval + 1);
        came = logical.saturating_sub(ahead).max(came);
        messages.push(Message {
            logical,
            due: logical + delay,
            units: blocks(packets, came),
        });
        logical += interval;
    }
    Flow { messages, rank: 0 }
}

/// The same messages on the link: packets come as their blocks are done.
fn on_link(flow: &Flow, done: &[Vec<u64>], bytes: u64, delays: [u64; 2]) -> Flow {
    let packets = bytes.div_ceil(PAYLOAD);
    let message = |(message, done): (&Message, &Vec<u64>)| {
        let packet = |packet: u64| Unit {
            from: done[(packet / AT_ONCE) as usize],
            takes: (PAYLOAD.min(bytes - packet * PAYLOAD) + 66) * 80,
        };
        Message {
            logical: message.logical + delays[0],
            due: message.due + delays[1],
            units: (0..packets).map(packet).collect(),
        }
    };
    Flow {
        messages: flow.messages.iter().zip(done).map(message).collect(),
        rank: 0,
    }
}

/// The most messages that are there at once.
fn most_at_once(flow: &Flow, gone: &[Vec<u64>]) -> usize {
    let came = |message: &Message| message.units[0].from;
    let last = |gone: &Vec<u64>| *gone.last().unwrap();
    let at = |instant| {
        let messages = flow.messages.iter().zip(gone);
        messages
            .filter(|(message, gone)| came(message) <= instant && instant <= last(gone))
            .count()
    };
    flow.messages
        .iter()
        .map(|message| at(came(message)))
        .max()
        .unwrap_or(0)
}

fn rules(queued: usize, best_effort: u64, is_saturated: bool, early: Early) -> Rules {
    Rules {
        queued,
        best_effort,
        first: First::BestEffort,
        is_saturated,
        early,
        by_rank: false,
        chooses_first: true,
    }
}

#[test]
fn through_processor_and_link_all_are_out_within_both_delays_and_have_their_buffers() {
    let mut random = SplitMix64::new(3);
    for _ in 0..cases(25) {
        let queued = random.draw() as u32 % 3;
        let mut host = host(queued);
        let place = Place {
            from: None,
            to: Some(LinkId(0)),
        };
        let mut channels: Vec<Traffic> = Vec::new();
        for _ in 0..12 {
            let bytes = 1 + random.draw() % 30_000;
            let interval = Span::from_micros(2_000 + random.draw() % 40_000);
            let traffic =
                Traffic::new(bytes as u32, (1, interval), 1 + random.draw() as u32 % 4).unwrap();
            let hold = Hold {
                channel: channel(channels.len() as u64),
                version: 0,
            };
            if host.grant(hold, place, &traffic, Span::ZERO).is_ok() {
                channels.push(traffic);
            }
        }
        let until = 300_000_000;
        let held = |number: usize| &host.held(channel(number as u64))[0];
        let delays = |channel: usize| [0, 1].map(|stage| held(channel).stages[stage].1.as_nanos());
        let flows = channels.iter().enumerate();
        let flows: Vec<Flow> = flows
            .map(|(channel, traffic)| flow(traffic, delays(channel)[0], until, &mut random))
            .collect();
        // Held, so that the buffers do; the next stage does not mind that packets come before their time.
        let done = run(&flows, rules(0, WAKE_UP, false, Early::Held));
        let linked = flows.iter().zip(&done).enumerate();
        let linked: Vec<Flow> = linked
            .map(|(channel, (flow, done))| {
                let bytes = u64::from(channels[channel].largest().get());
                on_link(flow, done, bytes, delays(channel))
            })
            .collect();
        let gone = run(&linked, rules(queued as usize, FRAME, true, Early::Mixed));
        for (channel, (flow, gone)) in linked.iter().zip(&gone).enumerate() {
            for (message, gone) in flow.messages.iter().zip(gone) {
                assert!(
                    *gone.last().unwrap() <= message.due,
                    "{:?}",
                    channels[channel]
                );
            }
            let packets = u64::from(channels[channel].largest().get()).div_ceil(PAYLOAD);
            let most = most_at_once(&flows[channel], gone) as u64;
            assert!(
                most * packets <= held(channel).buffers,
                "{most} of {:?}",
                channels[channel]
            );
        }
    }
}

/// One stage grants it and the other does not, to a channel that is there and to one that is not.
#[test]
fn what_one_stage_refuses_changes_nothing_at_any_other() {
    let mut host = host(0);
    let place = Place {
        from: None,
        to: Some(LinkId(0)),
    };
    let traffic = Traffic::new(20_000, (30, Span::from_secs(1)), 3).unwrap();
    let hold = |number| Hold {
        channel: channel(number),
        version: 0,
    };
    let least = host.grant(hold(0), place, &traffic, Span::ZERO).unwrap();
    let offered = Delays {
        own: least.delays.own * 4,
        ..least.delays
    };
    assert_eq!(host.relax(hold(0), offered), offered);
    let held = host.held(channel(0))[0].clone();
    let members = |host: &Host<Dedicated>| -> Vec<Vec<Member>> {
        let stages = host.stages().iter();
        stages
            .map(|stage| stage.resource().members().copied().collect())
            .collect()
    };
    let before = members(&host);
    for number in [0, 1] {
        for short in [0, 1] {
            let delay =
                |stage| [Span::from_millis(100), Span::from_micros(1)][usize::from(stage == short)];
            let granted = host.grant_these(hold(number), place, &traffic, Span::ZERO, delay);
            assert!(matches!(granted, Err(Lack::Stage { stage, .. }) if stage == short));
            assert_eq!(host.held(channel(0)), std::slice::from_ref(&held));
            assert!(host.held(channel(1)).is_empty());
            assert_eq!(members(&host), before);
        }
    }
    let nowhere = Place {
        to: Some(LinkId(1)),
        ..place
    };
    let granted = host.grant(hold(1), nowhere, &traffic, Span::ZERO);
    assert_eq!(granted, Err(Lack::Link(LinkId(1))));
}
