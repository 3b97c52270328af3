//! The slow, obvious resource: messages in units that cannot be interrupted, one after the other, each chosen by looking at all channels. It knows nothing of any analysis.

use std::collections::VecDeque;

/// A packet, or a block of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// It is there from here on.
    pub(crate) from: u64,
    pub(crate) takes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) logical: u64,
    pub(crate) due: u64,
    pub(crate) units: Vec<Unit>,
}

/// All messages of one channel, which go in order.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) messages: Vec<Message>,
    /// Its place, where that is what counts.
    pub(crate) rank: u64,
}

/// When a message goes that is early.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Early {
    Held,
    /// By its deadline among all others.
    Mixed,
    /// When nobody else is there.
    Last,
}

/// What is on its way just before time 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum First {
    Nobody,
    BestEffort,
    /// The first unit of a channel.
    Flow(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// So many units are in order for good behind the one that goes.
    pub(crate) queued: usize,
    /// What a unit of best effort takes; zero where there is none.
    pub(crate) best_effort: u64,
    pub(crate) first: First,
    /// Whether there is always some best effort.
    pub(crate) is_saturated: bool,
    pub(crate) early: Early,
    pub(crate) by_rank: bool,
    /// Whether who comes in the instant of a choice comes just behind it.
    pub(crate) chooses_first: bool,
}

type Place = (usize, usize, usize);

struct Wire<'a> {
    flows: &'a [Flow],
    rules: Rules,
    /// Of each channel, the message and unit that is next to be chosen.
    next: Vec<(usize, usize)>,
    /// Those that are in order for good, the first of which goes; `None` is best effort.
    order: VecDeque<(Option<Place>, u64)>,
    now: u64,
    /// When the first of those has gone.
    end: u64,
}

/// When each unit of each message of each channel has gone.
pub(crate) fn run(flows: &[Flow], rules: Rules) -> Vec<Vec<Vec<u64>>> {
    let mut gone: Vec<Vec<Vec<u64>>> = flows
        .iter()
        .map(|flow| {
            flow.messages
                .iter()
                .map(|message| vec![0; message.units.len()])
                .collect()
        })
        .collect();
    let mut wire = Wire {
        flows,
        rules,
        next: vec![(0, 0); flows.len()],
        order: VecDeque::new(),
        now: 0,
        end: 0,
    };
    match rules.first {
        First::Nobody => {}
        First::BestEffort => (0..=rules.queued).for_each(|_| wire.push(None, rules.best_effort)),
        First::Flow(flow) => wire.choose(flow),
    }
    let mut left: usize = flows
        .iter()
        .flat_map(|flow| &flow.messages)
        .map(|message| message.units.len())
        .sum();
    let mut is_blind = rules.chooses_first;
    while left > 0 {
        wire.fill(is_blind);
        is_blind = false;
        let has_room = wire.order.len() <= rules.queued;
        let comes = wire.next_coming().filter(|_| has_room);
        if wire.order.is_empty() {
            wire.now = comes.expect("somebody is left");
            continue;
        }
        if let Some(comes) = comes.filter(|comes| *comes < wire.end) {
            wire.now = comes;
            continue;
        }
        wire.now = wire.end;
        is_blind = rules.chooses_first;
        let (place, _) = wire.order.pop_front().expect("somebody goes");
        if let Some((flow, message, unit)) = place {
            gone[flow][message][unit] = wire.now;
            left -= 1;
        }
        wire.end = wire.now + wire.order.front().map_or(0, |(_, takes)| *takes);
    }
    gone
}

impl Wire<'_> {
    fn push(&mut self, place: Option<Place>, takes: u64) {
        if self.order.is_empty() {
            self.end = self.now + takes;
        }
        self.order.push_back((place, takes));
    }

    /// The next unit of a channel has its turn.
    fn choose(&mut self, flow: usize) {
        let (message, unit) = self.next[flow];
        let units = &self.flows[flow].messages[message].units;
        self.next[flow] = if unit + 1 < units.len() {
            (message, unit + 1)
        } else {
            (message + 1, 0)
        };
        self.push(Some((flow, message, unit)), units[unit].takes);
    }

    fn fill(&mut self, is_blind: bool) {
        while self.order.len() <= self.rules.queued {
            let best_effort = self.rules.is_saturated && self.rules.best_effort > 0;
            match self.pick(is_blind, false) {
                Some(flow) => self.choose(flow),
                None if best_effort => self.push(None, self.rules.best_effort),
                None => match self.pick(is_blind, true) {
                    Some(flow) => self.choose(flow),
                    None => return,
                },
            }
        }
    }

    /// The most urgent one, of those that are there.
    fn pick(&self, is_blind: bool, also_early: bool) -> Option<usize> {
        let there = |(index, flow): (usize, &Flow)| {
            let (message, unit) = self.next[index];
            let message = flow.messages.get(message)?;
            let from = message.units[unit].from;
            let is_there = from < self.now || (from == self.now && !is_blind);
            let is_early = message.logical > self.now;
            let goes = is_there
                && match self.rules.early {
                    Early::Held => !is_early,
                    Early::Mixed => true,
                    Early::Last => also_early || !is_early,
                };
            let rank = if self.rules.by_rank {
                flow.rank
            } else {
                message.due
            };
            goes.then_some((
                is_early && self.rules.early == Early::Last,
                rank,
                usize::MAX - index,
            ))
        };
        let best = self.flows.iter().enumerate().filter_map(there).min();
        best.map(|(.., index)| usize::MAX - index)
    }

    /// When the next unit comes that is not there, or the next is current.
    fn next_coming(&self) -> Option<u64> {
        let coming = |(index, flow): (usize, &Flow)| {
            let (message, unit) = self.next[index];
            let message = flow.messages.get(message)?;
            let from = message.units[unit].from;
            let from = match self.rules.early {
                Early::Held => from.max(message.logical),
                Early::Mixed | Early::Last => from,
            };
            Some(from.max(self.now))
        };
        self.flows.iter().enumerate().filter_map(coming).min()
    }
}

/// By how much a message was late at the most, negative where none was; by channel.
pub(crate) fn lateness(flows: &[Flow], gone: &[Vec<Vec<u64>>]) -> Vec<i64> {
    let of_flow = |(flow, gone): (&Flow, &Vec<Vec<u64>>)| {
        let late = flow.messages.iter().zip(gone).map(|(message, gone)| {
            let last = gone.last().copied().unwrap_or(0);
            last as i64 - message.due as i64
        });
        late.max().unwrap_or(i64::MIN)
    };
    flows.iter().zip(gone).map(of_flow).collect()
}

#[test]
fn a_wire_goes_by_deadline_and_not_through_what_is_in_order() {
    let flow = |from, due, takes: &[u64]| Flow {
        messages: vec![Message {
            logical: from,
            due,
            units: takes
                .iter()
                .map(|takes| Unit {
                    from,
                    takes: *takes,
                })
                .collect(),
        }],
        rank: 0,
    };
    let rules = Rules {
        queued: 0,
        best_effort: 10,
        first: First::BestEffort,
        is_saturated: false,
        early: Early::Held,
        by_rank: false,
        chooses_first: false,
    };
    let flows = [flow(0, 100, &[5, 5]), flow(12, 30, &[3])];
    let gone = run(&flows, rules);
    assert_eq!((&gone[0][0], &gone[1][0]), (&vec![15, 23], &vec![18]));
    let deeper = Rules { queued: 1, ..rules };
    let gone = run(&flows, deeper);
    assert_eq!((&gone[0][0], &gone[1][0]), (&vec![25, 33], &vec![28]));
    assert_eq!(lateness(&flows, &gone), [-67, -2]);
}
