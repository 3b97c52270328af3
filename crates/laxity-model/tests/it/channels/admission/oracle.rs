//! The slow, obvious host: a list of what was granted, from which all else is reckoned anew each time.

use std::num::{NonZeroU32, NonZeroU64};

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Task, edf};
use laxity_model::channels::admission::{
    Costs, Demand, Host, LinkCosts, Member, Need, ProcessorCosts, Traffic,
};
use laxity_model::channels::asked::{Asked, Scarce};
use laxity_model::channels::signalling::{Admits, ChannelId, Delays, Hold, Place, Reserved};
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};

use super::{PAYLOAD, link};

pub(crate) const BUFFERS: u64 = 400;
const HORIZON: Span = Span::from_micros(300);
/// Who is not granted this is granted nothing.
const LONG: u64 = 1 << 36;

/// A processor, and two links.
fn parts() -> (ProcessorCosts, [LinkCosts; 2]) {
    let slow = ProcessorCosts {
        message: Service::from_micros(30),
        packet: Service::from_micros(40),
        byte_ps: 1_500,
        packets_at_once: NonZeroU32::new(3).unwrap(),
        ..super::processor()
    };
    let other = LinkCosts {
        rate: NonZeroU64::new(30_000_000).unwrap(),
        ..link(0, 1_466)
    };
    (slow, [link(2, 1_466), other])
}

fn costs() -> [Costs; 3] {
    let (processor, [fast, slow]) = parts();
    [
        Costs::Processor(processor),
        Costs::Link(fast),
        Costs::Link(slow),
    ]
}

pub(crate) fn host() -> Host<Dedicated> {
    let (processor, links) = parts();
    super::host(processor, &links, By::Deadline, (BUFFERS, HORIZON))
}

/// Stages with their delays.
type Stages = Vec<(usize, Span)>;

/// What was granted, in the order in which it was.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) hold: Hold,
    pub(crate) place: Place,
    pub(crate) asked: Asked,
    pub(crate) delays: Delays,
    pub(crate) stages: Stages,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Oracle {
    pub(crate) granted: Vec<Granted>,
}

/// Which of the three there are.
pub(crate) fn way(place: Place) -> Vec<usize> {
    let link = place.to.map(|to| 1 + to.index());
    [0].into_iter().chain(link).collect()
}

/// Counted one by one.
pub(crate) fn buffers(place: Place, traffic: &Traffic, delays: Delays) -> u64 {
    let (messages, per) = traffic.rate();
    let in_window = |window: Span| {
        let scaled = u128::from(window.as_nanos()) * u128::from(messages.get());
        let arrivals = (0_u64..).map(|number| u128::from(number) * u128::from(per.as_nanos()));
        arrivals.take_while(|at| *at <= scaled).count() as u64
    };
    let messages = match place.from {
        None => in_window(delays.own) + u64::from(traffic.burst().get()) - 1,
        Some(_) => in_window(delays.before + HORIZON + delays.own),
    };
    messages * u64::from(traffic.largest().get().div_ceil(PAYLOAD.get()))
}

impl Oracle {
    fn of(&self, channel: ChannelId) -> impl Iterator<Item = &Granted> {
        let all = self.granted.iter();
        all.filter(move |one| one.hold.channel == channel)
    }

    fn channels(&self) -> Vec<ChannelId> {
        let mut all: Vec<ChannelId> = self.granted.iter().map(|one| one.hold.channel).collect();
        all.sort();
        all.dedup();
        all
    }

    /// What a channel is to a stage with another version of it, which may take as long as is said; its need, interval and delay.
    fn merged(
        &self,
        channel: ChannelId,
        stage: usize,
        other: Option<(&Traffic, Span)>,
    ) -> Option<(Need, Span, Span)> {
        let there = self.of(channel).filter_map(|one| {
            let delay = one.stages.iter().find(|(number, _)| *number == stage)?.1;
            Some((&one.asked.traffic, delay))
        });
        let all: Vec<(Need, Span, Span)> = there
            .chain(other)
            .map(|(traffic, delay)| {
                let need = costs()[stage].need(traffic, PAYLOAD).unwrap();
                (need, traffic.interval(), delay)
            })
            .collect();
        Some((
            Need {
                cost: all.iter().map(|one| one.0.cost).max()?,
                region: all.iter().map(|one| one.0.region).max()?,
                last: all.iter().map(|one| one.0.last).min()?,
            },
            all.iter().map(|one| one.1).min()?,
            all.iter().map(|one| one.2).min()?,
        ))
    }

    /// All meet their deadlines, with another version of a channel.
    fn is_met(&self, stage: usize, other: Option<(ChannelId, &Traffic, Span)>) -> bool {
        let mut channels = self.channels();
        channels.retain(|one| other.is_none_or(|(other, ..)| other != *one));
        let merged = channels.iter().map(|one| self.merged(*one, stage, None));
        let newcomer = other
            .map(|(channel, traffic, delay)| self.merged(channel, stage, Some((traffic, delay))));
        let all = merged.chain(newcomer).flatten();
        let tasks: Vec<Task> = all
            .map(|(need, interval, delay)| need.task(interval, delay).unwrap())
            .collect();
        let never_due = costs()[stage].never_due(PAYLOAD).unwrap();
        let verdict = edf::test_beside(&tasks, never_due, &Dedicated).unwrap();
        verdict.is_schedulable()
    }

    /// The least delay that a stage has for another version of a channel, were the others content with anything.
    pub(crate) fn least(
        &self,
        stage: usize,
        channel: ChannelId,
        traffic: &Traffic,
    ) -> Option<Span> {
        let mut content = self.clone();
        for one in &mut content.granted {
            if one.hold.channel == channel {
                let stages = one.stages.iter_mut();
                stages.for_each(|one| one.1 = Span::from_nanos(LONG));
            }
        }
        let is_met = |nanos| {
            let newcomer = (channel, traffic, Span::from_nanos(nanos));
            content.is_met(stage, Some(newcomer))
        };
        let (mut low, mut high) = (0, LONG);
        if !is_met(high) {
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_met(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(Span::from_nanos(high))
    }

    /// What is taken of the buffers, where one of a channel takes so many more.
    pub(crate) fn taken(&self, other: Option<(ChannelId, u64)>) -> u64 {
        let mut channels = self.channels();
        channels.extend(other.map(|(channel, _)| channel));
        channels.sort();
        channels.dedup();
        let most = |channel: ChannelId| {
            let held = self.of(channel);
            let held = held.map(|one| buffers(one.place, &one.asked.traffic, one.delays));
            let newcomer = other.filter(|(other, _)| *other == channel);
            held.chain(newcomer.map(|one| one.1)).max().unwrap_or(0)
        };
        channels.into_iter().map(most).sum()
    }

    /// What is reserved, or what is short and how much of it, where that is said at once.
    pub(crate) fn reserve(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
    ) -> Result<Stages, (Scarce, Option<u64>)> {
        let scarce = |stage| [Scarce::Processor, Scarce::Link][usize::from(stage > 0)];
        let mut stages = Vec::new();
        for stage in way(place) {
            let least = self.least(stage, hold.channel, traffic);
            stages.push((stage, least.ok_or((scarce(stage), None))?));
        }
        for (stage, least) in &stages {
            let others = self.of(hold.channel).flat_map(|one| &one.stages);
            let others = others.filter(|one| one.0 == *stage).map(|one| one.1);
            if let Some(shortest) = others.min().filter(|delay| delay < least) {
                let lacks = (*least - shortest).as_nanos();
                return Err((scarce(*stage), Some(lacks)));
            }
        }
        let own = stages.iter().map(|one| one.1).sum();
        let needed = buffers(place, traffic, Delays { before, own });
        let taken = self.taken(Some((hold.channel, needed)));
        match taken.checked_sub(BUFFERS).filter(|lacks| *lacks > 0) {
            Some(lacks) => Err((Scarce::Buffers, Some(lacks))),
            None => Ok(stages),
        }
    }

    pub(crate) fn reserved(&self) -> Vec<Reserved<'_, Asked>> {
        self.granted
            .iter()
            .map(|one| Reserved {
                hold: one.hold,
                place: one.place,
                asked: &one.asked,
                delays: one.delays,
            })
            .collect()
    }

    /// The host has these, and nothing else, and everybody's deadlines are met.
    pub(crate) fn is(&self, host: &Host<Dedicated>) {
        assert!(host.agrees(self.reserved().into_iter()));
        assert_eq!(host.buffers(), (self.taken(None), BUFFERS));
        assert!(self.taken(None) <= BUFFERS);
        for (number, stage) in host.stages().iter().enumerate() {
            assert!(self.is_met(number, None));
            let mut members: Vec<Member> = stage.resource().members().copied().collect();
            members.sort_by_key(|member| member.channel);
            let merged = |channel| {
                let (need, interval, delay) = self.merged(channel, number, None)?;
                let demand = Demand { need, interval };
                Some(Member {
                    channel,
                    demand,
                    delay,
                })
            };
            let expected: Vec<Member> = self.channels().into_iter().filter_map(merged).collect();
            assert_eq!(members, expected);
        }
    }
}
