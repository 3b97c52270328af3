//! What is claimed of the flagship: what the class of an owned link is for, and what laxity's own is to keep beside everything.

use laxity::net::world::{Between, Queues};
use laxity_lab::bench::{Draft, Holes, Said};
use laxity_lab::report::fixed;
use laxity_model::Span;

use super::judge::Judged;
use super::{Beside, Case, Outcome, Seen, Who, shown};
use crate::spread::Spread;

/// The most that the 99th percentile of control and of video may be, over a link or a switch; and of control over relays its median, and that.
const CONTROL: Span = Span::from_micros(500);
const VIDEO: Span = Span::from_millis(3);
const RELAYED: [Span; 2] = [Span::from_micros(500), Span::from_millis(2)];
/// What a stream of others' has at least over a link and behind a switch, in bits a second; and each link of several beside others' datagrams.
const LEFT: [u64; 2] = [87_000_000, 85_000_000];
const LEFT_BY_RELAYS: u64 = 85_000_000;
/// What a node's thread takes at the most of a processor where the kernel carries best effort, and where the node does, in parts per million.
const NODE: [u64; 2] = [100_000, 400_000];
/// Of ten runs so many keep all that with what was disturbed.
const RAW: usize = 8;
const PERCENT_PPM: u64 = 10_000;

/// What the live runs of some cases say of themselves.
pub(in super::super) type Says<'a> = &'a dyn Fn(&dyn Fn(&Case) -> bool) -> Said;

/// The runs, and what they say of themselves.
pub(super) struct Runs<'a> {
    pub(super) trials: &'a [(Case, Seen)],
    pub(super) said: Says<'a>,
}

/// Control, and video.
type Flows = [Judged; 2];

impl Runs<'_> {
    fn of(&self, is_read: impl Fn(&Case) -> bool) -> Vec<(Case, Outcome)> {
        let ran = self.trials.iter().filter_map(|(case, seen)| match seen {
            Seen::Ran(outcome) if is_read(case) => Some((*case, **outcome)),
            _ => None,
        });
        ran.collect()
    }

    /// All of them.
    pub(super) fn claim(&self, draft: &mut Draft<'_>) {
        self.owned(draft);
        let is_near = |case: &Case| is_own(case) && !is_over_relays(case);
        let is_far = |case: &Case| is_own(case) && is_over_relays(case);
        self.kept(draft, "kept", &is_near, |[control, video]| {
            place(control, 1) <= CONTROL && place(video, 1) <= VIDEO
        });
        self.kept(draft, "relayed", &is_far, |[control, _]| {
            (0..)
                .zip(RELAYED)
                .all(|(at, most)| place(control, at) <= most)
        });
        self.left(draft);
        self.ahead(draft);
        self.light(draft);
    }

    /// Beside others' datagrams, over one link.
    fn owned(&self, draft: &mut Draft<'_>) {
        let [queue, class] = [Queues::Fifo, Queues::Class].map(|queues| {
            self.of(|case| {
                (case.who, case.between, case.queues, case.beside)
                    == (Who::Udp, Between::Wire, queues, Beside::Udp)
            })
        });
        let sum = |all: &[(Case, Outcome)], number: fn(&Flows) -> u64| -> u64 {
            all.iter().map(|(_, outcome)| number(&outcome.flows)).sum()
        };
        let lost = sum(&class, |[control, video]| control.lost + video.lost);
        let due = sum(&class, |[control, video]| control.due + video.due);
        let missed = sum(&queue, |[control, _]| control.missed);
        let queued = sum(&queue, |[control, _]| control.due);
        let holes: Holes<'_> = &[
            ("lost", &lost),
            ("due", &due),
            ("missed", &missed),
            ("queued", &queued),
        ];
        let holds = lost == 0 && due > 0 && missed * 2 > queued;
        let said = (self.said)(&|case| case.who == Who::Udp);
        draft.claim_here("owned", (holds, false), holes, &said);
    }

    /// Nothing of laxity's own is lost or missed, and latencies are so. Lost is what never came, disturbed or not.
    fn kept(
        &self,
        draft: &mut Draft<'_>,
        key: &str,
        is_read: &dyn Fn(&Case) -> bool,
        are_so: impl Fn(&Flows) -> bool,
    ) {
        let ran = self.of(is_read);
        if ran.is_empty() {
            return;
        }
        let sum = |of: fn(&Judged) -> u64, flows: fn(&Outcome) -> Flows| -> u64 {
            let all = ran.iter().flat_map(|(_, outcome)| flows(outcome));
            all.map(|flow| of(&flow)).sum()
        };
        let raw = |outcome: &Outcome| outcome.flows;
        let undisturbed = |outcome: &Outcome| outcome.undisturbed;
        let (lost, missed) = (sum(|of| of.lost, raw), sum(|of| of.missed, undisturbed));
        let keeps = |flows: &Flows| flows.iter().all(|flow| flow.missed == 0) && are_so(flows);
        let whole = ran.iter().filter(|(_, one)| keeps(&one.flows)).count();
        let [median, control, video] = [(0, 0), (0, 1), (1, 1)].map(|(flow, at)| {
            let all = ran.iter().map(|(_, one)| place(&one.undisturbed[flow], at));
            let most = all.max().unwrap_or(Span::MAX);
            most.rounded(Span::from_micros(1))
        });
        let holds = lost == 0 && ran.iter().all(|(_, one)| keeps(&one.undisturbed));
        let holds = holds && whole * 10 >= ran.len() * RAW;
        let holes: Holes<'_> = &[
            ("lost", &lost),
            ("missed", &missed),
            ("median", &median),
            ("control", &control),
            ("video", &video),
            ("whole", &whole),
            ("runs", &ran.len()),
        ];
        let is_certain = holds && whole == ran.len();
        draft.claim_here(key, (holds, is_certain), holes, &(self.said)(is_read));
    }

    /// Best effort has what laxity's own leaves.
    fn left(&self, draft: &mut Draft<'_>) {
        let kinds = [
            ("left", Between::Wire, Beside::Tcp, LEFT[0]),
            ("left-behind", Between::Switch, Beside::Tcp, LEFT[1]),
            (
                "left-by-relays",
                Between::Relays(3),
                Beside::Udp,
                LEFT_BY_RELAYS,
            ),
        ];
        for (key, between, beside, least) in kinds {
            let is_read =
                |case: &Case| is_own(case) && (case.between, case.beside) == (between, beside);
            let ran = self.of(is_read);
            let rates = Spread::of(ran.iter().map(|(_, one)| Some(one.best_effort)));
            let Some(rates) = rates else { continue };
            let words = rates.briefly(|bits| fixed(bits / 100_000, 10, 1));
            let holds = rates.median >= least;
            let is_certain = rates.least >= least;
            let said = (self.said)(&is_read);
            draft.claim_here(key, (holds, is_certain), &[("rate", &words)], &said);
        }
    }

    /// The median over runs of control's 99th percentile, of what was not disturbed.
    fn control(&self, is_read: impl Fn(&Case) -> bool) -> Option<Span> {
        let all = self.of(is_read);
        let all = all.iter().map(|(_, one)| one.undisturbed[0]);
        // Of what is not there a percentile says little.
        let all = all.filter(|control| control.missed * 100 <= control.due);
        let all = Spread::of(all.map(|control| Some(control.latency?[1].as_nanos())));
        all.map(|all| Span::from_nanos(all.median))
    }

    /// Laxity's own is ahead of the kernel's datagrams in the same class, and of whatever rival has least.
    fn ahead(&self, draft: &mut Draft<'_>) {
        for beside in [Beside::Udp, Beside::Tcp, Beside::Own] {
            let by = move |who: Who| {
                move |case: &Case| {
                    (case.who, case.between, case.beside) == (who, Between::Wire, beside)
                }
            };
            let in_class = |case: &Case| by(Who::Udp)(case) && case.queues == Queues::Class;
            let Some(own) = self.control(by(Who::Channels)) else {
                continue;
            };
            let rivals = [Who::ZenohTuned, Who::Cyclone].into_iter();
            let rivals = rivals.flat_map(|who| {
                [Queues::Fifo, Queues::Class]
                    .map(|queues| self.control(|case| by(who)(case) && case.queues == queues))
            });
            let others = [
                ("ahead", 2, self.control(in_class)),
                ("ahead-of-rivals", 3, rivals.flatten().min()),
            ];
            let read = |case: &Case| (case.between, case.beside) == (Between::Wire, beside);
            let load = shown::beside(beside);
            let words = |span: Span| span.rounded(Span::from_micros(1)).to_string();
            for (key, times, other) in others {
                let Some(other) = other else { continue };
                let holes: Holes<'_> = &[
                    ("load", &load),
                    ("own", &words(own)),
                    ("other", &words(other)),
                ];
                let holds = own * times <= other;
                draft.claim_here(key, (holds, false), holes, &(self.said)(&read));
            }
        }
    }

    /// A node's thread takes little.
    fn light(&self, draft: &mut Draft<'_>) {
        for (key, is_by_node, most) in [("light", false, NODE[0]), ("light-own", true, NODE[1])] {
            let is_read = |case: &Case| is_own(case) && (case.beside == Beside::Own) == is_by_node;
            let ran = self.of(is_read);
            let Some(took) = ran.iter().filter_map(|(_, one)| one.node_ppm).max() else {
                continue;
            };
            let percent = fixed(took / (PERCENT_PPM / 10), 10, 1);
            let said = (self.said)(&is_read);
            let holds = took <= most;
            draft.claim_here(key, (holds, holds), &[("percent", &percent)], &said);
        }
    }
}

fn is_own(case: &Case) -> bool {
    case.who == Who::Channels
}

const fn is_over_relays(case: &Case) -> bool {
    matches!(case.between, Between::Relays(_))
}

/// Of what never came it is for ever.
fn place(judged: &Judged, at: usize) -> Span {
    judged.latency.map_or(Span::MAX, |latency| latency[at])
}
