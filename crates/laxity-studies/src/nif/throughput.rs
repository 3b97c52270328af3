//! Tables 1 and 2: TCP's throughput with the protocols as a client of the interface, and in BSD's way.

use std::collections::BTreeMap;

use laxity_lab::bench::{Draft, Holes};
use laxity_lab::report::{Compared, Origin, Row, Value, Verdict};
use laxity_model::{Service, Span};
use laxity_net::bodies::Work;
use serde::Deserialize;

use super::TEXT;
use super::ttcp::{Protocols, Setup};

/// What a call takes beside copying, on all platforms.
pub const CALL: Service = Service::from_micros(60);
/// What copying 1,024 bytes takes, on all platforms.
pub const COPY: Service = Service::from_micros(50);
/// What a packet takes of the protocols, beside its bytes, on all platforms.
pub const PACKET: Service = Service::from_micros(100);
/// What an interrupt takes, and each packet of it.
pub const INTERRUPT: (Service, Service) = (Service::from_micros(20), Service::from_micros(20));
/// How long each run lasts.
pub const LENGTH: Span = Span::from_secs(11);
/// Bytes of each call: table 1's, which constants were chosen by, and table 2's.
pub const MESSAGES: [usize; 2] = [1_024, 4_096];
/// So near a number of table 2 is to be, in percent.
const NEAR: u64 = 10;

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
}

/// A row of the paper's tables 1 and 2.
#[derive(Deserialize)]
struct Quoted {
    platform: String,
    message: usize,
    receive: u64,
    send: u64,
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

    const fn is_chosen_by(&self) -> bool {
        self.message == MESSAGES[0]
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
    bytes / 1_024
}

/// In percent of the paper's number, how far the twin's is from it.
const fn off(paper: u64, twin: u64) -> u64 {
    (twin.abs_diff(paper) * 100).div_ceil(paper)
}

/// Draws what was seen into the report: bytes a second of each run.
pub(super) fn judge(trials: &[(Case, u64)], draft: &mut Draft<'_>) {
    let quoted: Vec<Quoted> = TEXT.quoted("throughput");
    let compared: Vec<(Case, u64, u64)> = trials
        .iter()
        .filter_map(|(case, bytes)| {
            let row = quoted
                .iter()
                .find(|row| row.platform == case.platform.key && row.message == case.message)?;
            let paper = if case.sends { row.send } else { row.receive };
            Some((*case, paper, kilobytes(*bytes)))
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
        let verdict = match (off(*paper, *twin) <= NEAR, case.is_chosen_by()) {
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

fn claims(compared: &[(Case, u64, u64)], draft: &mut Draft<'_>) {
    let predicted = compared.iter().filter(|(case, ..)| !case.is_chosen_by());
    let farthest = predicted.map(|(_, paper, twin)| off(*paper, *twin)).max();
    let of = |key: &str, sends: bool, message: usize| {
        let mut all = compared.iter();
        let found = all.find(|(case, ..)| {
            case.platform.key == key && case.sends == sends && case.message == message
        });
        found.map_or(0, |(.., twin)| *twin)
    };
    // In percent of BSD's way, rounded down.
    let all: Vec<u64> = MESSAGES
        .into_iter()
        .flat_map(|message| [(message, false), (message, true)])
        .filter_map(|(message, sends)| {
            let bsd = of("bsd-choices", sends, message);
            (of("x-kernel", sends, message) * 100).checked_div(bsd)
        })
        .collect();
    let least = all.iter().min().copied();
    let words: Vec<String> = all.iter().map(|share| format!("{share} %")).collect();
    let holes: Holes<'_> = &[
        ("near", &NEAR),
        ("farthest", &farthest.unwrap_or(100)),
        ("shares", &words.join(", ")),
    ];
    draft.claim("predicted", farthest.is_some_and(|off| off <= NEAR), holes);
    draft.claim(
        "client-is-near",
        least.is_some_and(|least| least >= 90),
        holes,
    );
}
