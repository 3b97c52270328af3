//! Tables 1 and 2: TCP's throughput with the protocols as a client of the interface, and in BSD's way.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use laxity_lab::bench::{Draft, Holes, Request, Said};
use laxity_lab::report::{Compared, Origin, Row, Value, Verdict, fixed};
use laxity_model::{Service, Span};
use laxity_net::bodies::Work;
use serde::Deserialize;

use super::ttcp::{CARD, Protocols, Setup, TICK, WARM, WINDOWS};
use super::{TEXT, others};
use crate::or;
use crate::spread::Spread;

/// What a call takes beside copying, on all platforms.
pub const CALL: Service = Service::from_micros(60);
/// What copying 1,024 bytes takes, on all platforms.
pub const COPY: Service = Service::from_micros(50);
/// What a packet takes of the protocols, beside its bytes, on all platforms.
pub const PACKET: Service = Service::from_micros(100);
/// What an interrupt takes, and each packet of it.
pub const INTERRUPT: (Service, Service) = (Service::from_micros(20), Service::from_micros(20));
/// How long each run lasts in the twin.
pub const LENGTH: Span = Span::from_secs(11);
/// On this machine: at full length, and otherwise.
const LIVE_LENGTHS: [Span; 2] = [Span::from_secs(3), Span::from_millis(1_200)];
/// How often each is made there, likewise.
const LIVE_ROUNDS: [u32; 2] = [5, 3];
/// Bytes of each call: table 1's, which constants were chosen by, and table 2's.
pub const MESSAGES: [usize; 2] = [1_024, 4_096];
/// Bytes of the paper's KB, as we read it.
const KILOBYTE: u64 = 1_024;
/// So near a number of table 2 is to be, in percent.
const NEAR: u64 = 10;
const PERCENT_PPM: u64 = 10_000;
/// So much of what it does in BSD's way TCP is to carry as a client, in percent.
const LEAST: u64 = 90;
/// The two of the systems that this machine can be.
const CLIENT: &str = "x-kernel";
const BSD: &str = "bsd-choices";

/// One of the paper's three systems.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Platform {
    /// By which it is named in the study's words.
    pub key: &'static str,
    protocols: Protocols,
    /// What 1,024 bytes take of the protocols that arrive, and that are sent, in microseconds: chosen by table 1.
    kilobytes: (u64, u64),
}

/// The stack as a client, BSD's arrangement, and the reference.
pub const PLATFORMS: [Platform; 3] = [
    Platform {
        key: "x-kernel",
        protocols: Protocols::Threads,
        kilobytes: (590, 742),
    },
    Platform {
        key: "bsd-choices",
        protocols: Protocols::Interrupt,
        kilobytes: (572, 684),
    },
    Platform {
        key: "sunos",
        protocols: Protocols::Interrupt,
        kilobytes: (568, 632),
    },
];

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Which system.
    pub platform: Platform,
    /// Whether it sends, or receives.
    pub sends: bool,
    /// Bytes of each call.
    pub message: usize,
    /// How long it lasts.
    pub length: Span,
}

/// Whether it sends or receives, and how many bytes each call has.
pub(super) type Way = (bool, usize);

/// A row of the paper's tables 1 and 2.
#[derive(Deserialize)]
struct Quoted {
    platform: String,
    message: usize,
    receive: u64,
    send: u64,
}

impl Quoted {
    /// As it sends, or receives.
    const fn rate(&self, sends: bool) -> u64 {
        if sends { self.send } else { self.receive }
    }
}

fn quoted() -> Vec<Quoted> {
    TEXT.quoted("throughput")
}

impl Case {
    /// All runs of both tables.
    pub fn all() -> impl Iterator<Item = Self> {
        let both = MESSAGES
            .into_iter()
            .flat_map(|message| [(message, false), (message, true)]);
        both.flat_map(|(message, sends)| {
            PLATFORMS.map(|platform| Self {
                platform,
                sends,
                message,
                length: LENGTH,
            })
        })
    }

    /// What is tried.
    pub fn setup(&self) -> Setup {
        let (received, sent) = self.platform.kilobytes;
        let packets = |kilobyte| Work {
            packet: PACKET,
            kilobyte: Service::from_micros(kilobyte),
            is_burnt: false,
        };
        Setup {
            protocols: self.platform.protocols,
            sends: self.sends,
            message: self.message,
            call: Work {
                packet: CALL,
                kilobyte: COPY,
                is_burnt: false,
            },
            packets: (packets(received), packets(sent)),
            interrupt: INTERRUPT,
        }
    }

    /// What is run on this machine: the stack as a client and BSD's arrangement in turn, and as often as is asked.
    pub fn here(request: &Request) -> impl Iterator<Item = Self> + use<> {
        let is_quick = usize::from(!request.full);
        let length = LIVE_LENGTHS[is_quick];
        let rounds = 0..request.repeats.unwrap_or(LIVE_ROUNDS[is_quick]);
        let both = |case: &Self| [CLIENT, BSD].contains(&case.platform.key);
        let round = move |_| {
            Self::all()
                .filter(both)
                .map(move |case| Self { length, ..case })
        };
        rounds.flat_map(round)
    }

    const fn is_chosen_by(&self) -> bool {
        self.message == MESSAGES[0]
    }

    pub(super) const fn way(&self) -> Way {
        (self.sends, self.message)
    }

    pub(super) fn name(&self) -> String {
        let way = if self.sends { "sends" } else { "receives" };
        let holes: Holes<'_> = &[
            ("platform", &TEXT.say(self.platform.key, &[])),
            ("way", &TEXT.say(way, &[])),
            ("message", &self.message),
        ];
        TEXT.say("throughput", holes)
    }
}

/// What was put in, by the names that the study's words have for it.
pub(super) fn values() -> BTreeMap<&'static str, Value> {
    let micros = |micros| Value::from(Span::from_micros(micros));
    let mut all = BTreeMap::from([
        ("ttcp-call", CALL.as_dedicated_span().into()),
        ("ttcp-copy", COPY.as_dedicated_span().into()),
        ("ttcp-packet", PACKET.as_dedicated_span().into()),
        ("ttcp-interrupt", INTERRUPT.0.as_dedicated_span().into()),
        (
            "ttcp-interrupt-packet",
            INTERRUPT.1.as_dedicated_span().into(),
        ),
        ("ttcp-window", (WINDOWS.0 as u64).into()),
        ("ttcp-window-far", (WINDOWS.1 as u64).into()),
        ("ttcp-bus", Value::BitRate(CARD.transfers.rate)),
        ("ttcp-bus-begin", CARD.transfers.begin.into()),
        ("ttcp-tick", TICK.into()),
        ("ttcp-warm", WARM.into()),
        ("ttcp-length", LENGTH.into()),
        ("kilobyte", KILOBYTE.into()),
    ]);
    let names = [
        ("x-kernel-received", "x-kernel-sent"),
        ("bsd-received", "bsd-sent"),
        ("sunos-received", "sunos-sent"),
    ];
    for (platform, (received, sent)) in PLATFORMS.iter().zip(names) {
        all.insert(received, micros(platform.kilobytes.0));
        all.insert(sent, micros(platform.kilobytes.1));
    }
    all
}

/// As the paper has it: kilobytes of 1,024 bytes a second.
fn kilobytes(bytes: u64) -> u64 {
    bytes / KILOBYTE
}

/// In parts per million of the paper's number, how far the twin's is from it.
const fn off(paper: u64, twin: u64) -> u64 {
    (twin.abs_diff(paper) * 1_000_000).div_ceil(paper)
}

/// Parts per million in percent, to the nearest tenth: of one number, or of the mean of several.
fn percent(sum: u64, count: u64) -> String {
    fixed(sum, count.max(1) * PERCENT_PPM, 1)
}

/// Draws what was seen into the report: bytes a second of each run.
pub(super) fn judge(trials: &[(Case, u64)], draft: &mut Draft<'_>) {
    let quoted = quoted();
    let compared: Vec<(Case, u64, u64)> = trials
        .iter()
        .filter_map(|(case, bytes)| {
            let row = quoted
                .iter()
                .find(|row| row.platform == case.platform.key && row.message == case.message)?;
            Some((*case, row.rate(case.sends), kilobytes(*bytes)))
        })
        .collect();
    let rate = |kilobytes: u64| Value::from(format!("{kilobytes} KB/s"));
    let rows = compared.iter().map(|(case, paper, twin)| {
        let way = if case.sends { "sends" } else { "receives" };
        let mut row: Row = Origin::Charged.row([
            TEXT.say(case.platform.key, &[]).into(),
            TEXT.say(way, &[]).into(),
            (case.message as u64).into(),
        ]);
        row.extend([
            Origin::Quoted.cell(rate(*paper)),
            Origin::Simulated.cell(rate(*twin)),
        ]);
        row
    });
    draft.table("throughput", "throughput", &[], rows);
    for (case, paper, twin) in &compared {
        let why = if case.is_chosen_by() {
            "chosen"
        } else {
            "percent"
        };
        let why = TEXT.say(why, &[("near", &NEAR)]);
        let verdict = match (
            off(*paper, *twin) <= NEAR * PERCENT_PPM,
            case.is_chosen_by(),
        ) {
            (false, _) => Verdict::Disagrees(why),
            (true, true) => Verdict::Consistent(why),
            (true, false) => Verdict::Agrees(why),
        };
        if let Some(figure) = draft.figure("throughput") {
            figure.compared.push(Compared {
                paper: Origin::Quoted.cell(rate(*paper)),
                twin: Origin::Simulated.cell(rate(*twin)),
                verdict,
                ..Compared::new(case.name())
            });
        }
    }
    claims(&compared, draft);
}

/// How far table 2 is predicted off in the mean, how far off the guess is that it is as table 1, both in percent, and how many of its numbers the guess is nearer to.
fn beside_a_guess(compared: &[(Case, u64, u64)]) -> Option<(String, String, u64)> {
    let (mut twins, mut guesses, mut nearer, mut count) = (0, 0, 0, 0);
    for (case, paper, twin) in compared.iter().filter(|(case, ..)| !case.is_chosen_by()) {
        let mut all = compared.iter();
        let (_, guess, _) = all.find(|(other, ..)| {
            other.is_chosen_by() && (other.platform, other.sends) == (case.platform, case.sends)
        })?;
        let [by_twin, by_guess] = [twin, guess].map(|seen| off(*paper, *seen));
        twins += by_twin;
        guesses += by_guess;
        nearer += u64::from(by_guess < by_twin);
        count += 1;
    }
    Some((percent(twins, count), percent(guesses, count), nearer))
}

fn claims(compared: &[(Case, u64, u64)], draft: &mut Draft<'_>) {
    let predicted = compared.iter().filter(|(case, ..)| !case.is_chosen_by());
    let farthest = predicted.map(|(_, paper, twin)| off(*paper, *twin)).max();
    let (twins, guesses, nearer) = beside_a_guess(compared).unwrap_or_default();
    let of = |key: &str, sends: bool, message: usize| {
        let mut all = compared.iter();
        let found = all.find(|(case, ..)| {
            case.platform.key == key && case.sends == sends && case.message == message
        });
        found.map_or(0, |(.., twin)| *twin)
    };
    // In percent of BSD's way, rounded down: of table 2, as constants were chosen by table 1.
    let [receives, sends] = [false, true].map(|sends| {
        let bsd = of(BSD, sends, MESSAGES[1]);
        (of(CLIENT, sends, MESSAGES[1]) * 100).checked_div(bsd)
    });
    let words = |share: Option<u64>| or(share.map(|share| format!("{share} %")), "nothing");
    let holes: Holes<'_> = &[
        ("near", &NEAR),
        ("least", &LEAST),
        ("farthest", &percent(farthest.unwrap_or(1_000_000), 1)),
        ("mean", &twins),
        ("guess", &guesses),
        ("nearer", &nearer),
        ("receives", &words(receives)),
        ("sends", &words(sends)),
    ];
    let is_predicted = farthest.is_some_and(|off| off <= NEAR * PERCENT_PPM);
    draft.claim("predicted", is_predicted, holes);
    let is_near = sends.is_some_and(|share| share >= LEAST);
    draft.claim("client-is-near", is_near, holes);
}

/// What the stack as a client carried on this machine, of what BSD's arrangement did.
struct Share {
    way: Way,
    /// Bytes a second, as a client and in BSD's way.
    rates: [Option<Spread>; 2],
    /// In thousandths, round by round.
    share: Option<Spread>,
}

impl Share {
    fn of(trials: &[(Case, u64)], way: Way) -> Self {
        let rates = [CLIENT, BSD].map(|key| -> Vec<Option<u64>> {
            let own = trials
                .iter()
                .filter(|(case, _)| case.platform.key == key && case.way() == way);
            own.map(|(_, rate)| Some(*rate)).collect()
        });
        let [client, bsd] = &rates;
        let rounds = client.iter().zip(bsd);
        let shares = rounds.map(|(client, bsd)| (client.as_ref()? * 1_000).checked_div((*bsd)?));
        Self {
            way,
            share: Spread::of(shares),
            rates: rates.map(|rates| Spread::of(rates.into_iter())),
        }
    }

    fn sends(&self) -> String {
        TEXT.say(if self.way.0 { "sends" } else { "receives" }, &[])
    }

    /// In thousandths.
    fn paper(&self, quoted: &[Quoted]) -> Option<u64> {
        let of = |key: &str| {
            let mut rows = quoted.iter();
            let row = rows.find(|row| row.platform == key && row.message == self.way.1)?;
            Some(row.rate(self.way.0))
        };
        (of(CLIENT)? * 1_000).checked_div(of(BSD)?)
    }

    fn is_near(&self) -> Option<bool> {
        Some(self.share?.median >= LEAST * 10)
    }

    /// Whether some of its rounds say that it is near, and some that it is not.
    fn is_torn(&self) -> bool {
        let range = |share: Spread| share.least < LEAST * 10 && share.most >= LEAST * 10;
        self.share.is_some_and(range)
    }

    /// Whether every round says that it is not near.
    fn is_far(&self) -> bool {
        self.share.is_none_or(|share| share.most < LEAST * 10)
    }

    fn row(&self, quoted: &[Quoted]) -> Row {
        let mut row = Origin::Charged.row([self.sends().into(), (self.way.1 as u64).into()]);
        let rate = |rate: Spread| {
            format!(
                "{} KB/s",
                rate.briefly(|bytes| kilobytes(bytes).to_string())
            )
        };
        row.extend(self.rates.map(|one| Origin::Measured.cell(rate(one?))));
        let share = self.share.map(|share| share.briefly(ratio));
        row.push(share.and_then(|share| Origin::Measured.cell(share)));
        row.push(
            self.paper(quoted)
                .and_then(|paper| Origin::Quoted.cell(ratio(paper))),
        );
        row
    }

    fn compared(&self, quoted: &[Quoted], doubt: Option<&String>) -> Compared {
        let torn = self.is_torn().then(|| TEXT.say("torn", &[]));
        let doubt = doubt.or(torn.as_ref());
        let holes: Holes<'_> = &[("way", &self.sends()), ("message", &self.way.1)];
        let why = TEXT.say("least", &[("least", &LEAST)]);
        let live_verdict = match (self.is_near(), doubt) {
            (None, _) => Verdict::Alone,
            (Some(_), Some(doubt)) => Verdict::Inconclusive(doubt.clone()),
            (Some(true), None) => Verdict::Agrees(why),
            (Some(false), None) => Verdict::Disagrees(why),
        };
        let cell = |origin: Origin, share: Option<u64>| origin.cell(Value::Ratio(share?));
        Compared {
            paper: cell(Origin::Quoted, self.paper(quoted)),
            live: cell(Origin::Measured, self.share.map(|share| share.median)),
            live_verdict,
            ..Compared::new(TEXT.say("share", holes))
        }
    }
}

/// Thousandths, in words.
fn ratio(thousandths: u64) -> String {
    fixed(thousandths, 1_000, 2)
}

/// Why nothing is told of runs on this machine beside each of which others had so much of it, in parts per million, where that is known; `None`: nothing stands against it.
pub(super) fn doubt(others_ppm: impl Iterator<Item = Option<u64>>) -> Option<String> {
    let Some(all) = others_ppm.collect::<Option<Vec<u64>>>() else {
        return Some(TEXT.say("others-unknown", &[]));
    };
    let others_ppm = all.into_iter().max()?;
    let holes: Holes<'_> = &[
        ("had", &fixed(others_ppm, 10_000, 0)),
        ("limit", &(others::LIMIT_PPM / 10_000)),
    ];
    (others_ppm > others::LIMIT_PPM).then(|| TEXT.say("others", holes))
}

/// Draws what was seen on this machine: bytes a second of each run, in order; `said_of` a row's runs, or all, is what they say of themselves.
pub(super) fn judge_here(
    trials: &[(Case, u64)],
    said_of: impl Fn(Option<Way>) -> Said,
    draft: &mut Draft<'_>,
) {
    let quoted = quoted();
    let both = MESSAGES
        .into_iter()
        .flat_map(|message| [(false, message), (true, message)]);
    let shares: Vec<Share> = both.map(|which| Share::of(trials, which)).collect();
    let rows = shares.iter().map(|share| share.row(&quoted));
    draft.table("throughput", "throughput-here", &[], rows);
    if let Some(figure) = draft.figure("throughput") {
        let compared = shares.iter().map(|share| {
            let doubt = said_of(Some(share.way)).doubt();
            share.compared(&quoted, doubt.as_ref())
        });
        figure.compared.extend(compared);
    }
    let words = shares.iter().map(|share| {
        let share = share.share.map(|share| share.briefly(ratio));
        or(share, "nothing was carried")
    });
    let holes: Holes<'_> = &[
        ("least", &LEAST),
        ("shares", &words.collect::<Vec<_>>().join(", ")),
    ];
    let is_near = shares.iter().all(|share| share.is_near() == Some(true));
    // What every round says is not undone by others that are torn.
    let is_torn = shares.iter().any(Share::is_torn) && !shares.iter().any(Share::is_far);
    let said = said_of(None).but(is_torn.then(|| TEXT.say("torn", &[])));
    draft.claim_here("client-is-near-here", (is_near, false), holes, &said);
}
