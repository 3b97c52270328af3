//! Upcalls that send and receive: Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees", WUCS-95-06, 1995, §7.3.
//!
//! * [`peer`]: what each of the two processes does; [`transfer`]: both, and what runs beside them.
//! * [`threadshare`]: a rival whose processes are GStreamer's, where that has it.
//!
//! It is on this machine only: the twin has no sockets.

pub mod peer;
pub mod threadshare;
pub mod transfer;

use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Request, Round, Runner, Study, Text};
use laxity_lab::report::{Compared, Origin, Row, Value, Verdict};
use laxity_lab::runner::RunError;
use laxity_model::{HostError, Span};

use peer::Way;
use transfer::{Transfer, Transferred};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../../data/upcalls-udp.toml")));

/// Lengths of messages, the longest first: ½ to 8 KB.
pub(super) const SIZES: [usize; 3] = [8_192, 2_048, 512];
/// How long messages are sent, unless longer is asked for.
pub(super) const LENGTH: Span = Span::from_millis(600);
/// So much of what it was idle the throughput is to be with something beside, in percent.
pub(super) const KEPT: u64 = 95;
const PERCENT_PPM: u64 = 10_000;

const PLAIN: [Way; 2] = [Way::Plain, Way::Plain];
const SERVER: [Way; 2] = [Way::Plain, Way::Upcall];
const BOTH: [Way; 2] = [Way::Upcall, Way::Upcall];
/// How they are served, the client and the server, and in which figure that is.
const WAYS: [(&str, &str, [Way; 2]); 8] = [
    ("plain", "udp", PLAIN),
    ("server", "udp", SERVER),
    ("both", "udp", BOTH),
    ("by-deadline", "udp", [Way::ByDeadline, Way::ByDeadline]),
    ("threads", "rivals", [Way::Thread, Way::Thread]),
    ("kernel", "rivals", [Way::Kernel, Way::Kernel]),
    ("intervals", "rivals", [Way::Interval, Way::Interval]),
    ("threadshare", "rivals", threadshare::BOTH),
];

/// The experiment.
pub struct Udp;

type Trial = (Transfer, Transferred);

fn way(ways: [Way; 2]) -> String {
    let known = WAYS.iter().find(|(_, _, known)| *known == ways);
    TEXT.say(known.map_or("plain", |(key, _, _)| key), &[])
}

fn cases(request: &Request) -> Result<Vec<Transfer>, RunError> {
    let longer = request.option(&TEXT, "longer")?;
    let sizes = request.option(&TEXT, "sizes")? as usize;
    let is_here = |ways: &[Way; 2]| *ways != threadshare::BOTH || threadshare::lacking().is_none();
    let ways = WAYS.iter().filter(|(_, figure, _)| request.wants(figure));
    let ways: Vec<[Way; 2]> = ways.map(|(_, _, ways)| *ways).filter(is_here).collect();
    let all = SIZES.iter().take(sizes).flat_map(|bytes| {
        let ways = ways.clone().into_iter();
        ways.flat_map(move |ways| {
            [false, true].map(|loaded| Transfer {
                ways,
                bytes: *bytes,
                loaded,
                length: LENGTH * longer,
            })
        })
    });
    Ok(all.collect())
}

impl Study for Udp {
    type Case = Transfer;
    type Seen = Transferred;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Transfer>, RunError> {
        match round.live {
            true => cases(made.request),
            false => Ok(Vec::new()),
        }
    }

    fn name(&self, case: &Transfer) -> String {
        let beside = if case.loaded { ", loaded" } else { "" };
        format!("{} bytes, {}{beside}", case.bytes, way(case.ways))
    }

    fn run(&self, case: &Transfer, host: &mut Runner<'_>) -> Result<Transferred, HostError> {
        match case.ways {
            threadshare::BOTH => threadshare::run(case, host),
            _ => case.run(host),
        }
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        if !made.request.live {
            draft.say("not-here", &[]);
            return Ok(());
        }
        for figure in ["udp", "rivals"] {
            let is_of = |ways: [Way; 2]| {
                WAYS.iter()
                    .any(|(_, of, known)| *of == figure && *known == ways)
            };
            let own = made.live.iter().filter(|(case, _)| is_of(case.ways));
            let rows = own.map(|trial| row(trial, &made.live));
            draft.table(figure, "transfers", &[], rows);
        }
        if made.request.wants("rivals") {
            draft.remark("rivals", about_threadshare(threadshare::lacking()));
        }
        compare(draft, &made.live);
        claims(draft, made);
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

/// In what its row is not like others, or why it has none.
fn about_threadshare(lacking: Option<&str>) -> String {
    match lacking {
        None => TEXT.say("threadshare-differs", &[]),
        Some(why) => TEXT.say("no-threadshare", &[("why", &why)]),
    }
}

fn bits_per_second((case, seen): &Trial) -> u64 {
    let bits = u128::from(seen.received) * case.bytes as u128 * 8;
    (bits * 1_000_000_000 / u128::from(case.length.as_nanos().max(1))) as u64
}

/// What was received of what was received with nothing beside, in parts per million; `None` where that was nothing.
fn kept(trial: &Trial, all: &[Trial]) -> Option<u64> {
    let (case, seen) = trial;
    let idle = Transfer {
        loaded: false,
        ..*case
    };
    let (_, idle) = all.iter().find(|(case, _)| *case == idle)?;
    (seen.received * 1_000_000).checked_div(idle.received)
}

fn row(trial: &Trial, all: &[Trial]) -> Row {
    let (case, seen) = trial;
    let beside = if case.loaded { "spinners" } else { "nothing" };
    let mut row = Origin::Measured.row([
        way(case.ways).into(),
        (case.bytes as u64).into(),
        TEXT.say(beside, &[]).into(),
        seen.sent.into(),
        seen.received.into(),
        (seen.sent.saturating_sub(seen.received)).into(),
        Value::BitRate(bits_per_second(trial)),
    ]);
    let kept = kept(trial, all).filter(|_| case.loaded);
    row.push(kept.and_then(|ppm| Origin::Measured.cell(Value::share(ppm))));
    row
}

/// What the paper prints of 8 KB beside what was measured of it, beside a load where it says so. Only of what does not hang on its host it can be told whether it is so.
fn compare(draft: &mut Draft<'_>, all: &[Trial]) {
    let loaded = |ways: [Way; 2]| {
        let is_one =
            |(case, _): &&Trial| case.ways == ways && case.bytes == SIZES[0] && case.loaded;
        all.iter().find(is_one)
    };
    let times = |ways, other| {
        let [(_, one), (_, other)] = [loaded(ways)?, loaded(other)?];
        let times = (one.received * 1_000).checked_div(other.received);
        times.map(Value::Ratio)
    };
    let kept = |ways| loaded(ways).and_then(|trial| kept(trial, all));
    let lost = kept(PLAIN).map(|kept| Value::share(1_000_000_u64.saturating_sub(kept)));
    let rate = loaded(BOTH).map(|trial| Value::BitRate(bits_per_second(trial)));
    let whole = kept(BOTH);
    let open = |key| Verdict::Inconclusive(TEXT.say(key, &[]));
    let rows = [
        (
            "compared-lost",
            Value::share(900_000),
            lost,
            open("why-lost"),
        ),
        (
            "compared-server",
            Value::Ratio(5_000),
            times(SERVER, PLAIN),
            open("why-times"),
        ),
        (
            "compared-both",
            Value::Ratio(2_000),
            times(BOTH, SERVER),
            open("why-times"),
        ),
        (
            "compared-rate",
            Value::BitRate(80_000_000),
            rate,
            open("why-rate"),
        ),
        (
            "compared-kept",
            Value::share(1_000_000),
            whole.map(Value::share),
            is_as_much(whole),
        ),
    ];
    let Some(figure) = draft.figure("udp").filter(|_| loaded(BOTH).is_some()) else {
        return;
    };
    figure
        .compared
        .extend(rows.map(|(key, paper, live, live_verdict)| Compared {
            paper: Origin::Quoted.cell(paper),
            live: live.and_then(|live| Origin::Measured.cell(live)),
            live_verdict,
            ..Compared::new(TEXT.say(key, &[]))
        }));
}

/// Whether that part of a throughput is as much as all of it.
fn is_as_much(kept: Option<u64>) -> Verdict {
    let why = || TEXT.say("why-kept", &[("asked", &KEPT)]);
    match kept.map(|kept| kept >= KEPT * PERCENT_PPM) {
        Some(true) => Verdict::Agrees(why()),
        Some(false) => Verdict::Disagrees(why()),
        None => Verdict::Inconclusive(TEXT.say("nothing-received", &[])),
    }
}

/// What is claimed of two upcalls; plain processes stand beside it.
fn claims(draft: &mut Draft<'_>, made: &Made<'_, Udp>) {
    let of = |ways| made.live.iter().filter(move |(case, _)| case.ways == ways);
    if of(BOTH).next().is_none() {
        return;
    }
    let dropped = |ways| -> u64 {
        let all = of(ways).map(|(_, seen)| seen.sent.saturating_sub(seen.received));
        all.sum()
    };
    // Where of one length nothing is known, nothing is known of the least of all.
    let least = |ways| {
        let loaded = of(ways).filter(|(case, _)| case.loaded);
        let all: Option<Vec<u64>> = loaded.map(|trial| kept(trial, &made.live)).collect();
        all?.into_iter().min()
    };
    let due: u64 = of(BOTH).map(|(case, _)| case.due()).sum();
    let sends = of(BOTH).all(|(case, seen)| seen.sent == case.due());
    let wrong: u64 = of(BOTH).map(|(_, seen)| seen.wrong).sum();
    let sent: u64 = of(BOTH).map(|(_, seen)| seen.sent).sum();
    let [both, plain] = [BOTH, PLAIN].map(|ways| match least(ways) {
        Some(ppm) => TEXT.say("share", &[("percent", &(ppm / PERCENT_PPM))]),
        None => TEXT.say("nothing", &[]),
    });
    let holes: Holes<'_> = &[
        ("dropped", &dropped(BOTH)),
        ("wrong", &wrong),
        ("sent", &sent),
        ("due", &due),
        ("plain-dropped", &dropped(PLAIN)),
        ("asked", &KEPT),
        ("both", &both),
        ("plain", &plain),
    ];
    let said = |is_known: bool| {
        let doubt = (!is_known).then(|| TEXT.say("nothing-served", &[]));
        made.said(|case| case.ways == BOTH).but(doubt)
    };
    draft.claim_here("sends", (sends, false), holes, &said(true));
    let whole = dropped(BOTH) == 0 && wrong == 0;
    draft.claim_here("whole", (whole, false), holes, &said(sent > 0));
    let both = least(BOTH);
    let keeps = both.is_some_and(|ppm| ppm >= KEPT * PERCENT_PPM);
    draft.claim_here("keeps", (keeps, false), holes, &said(both.is_some()));
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::judge;

    use super::*;
    use crate::{disturbed, told_and_open};

    /// As if so many messages of each length had been sent and received, on a machine of which so much was disturbed: what each check says, how many are told and are
    /// open, and what was seen.
    fn told(messages: u64, ppm: u32) -> (Vec<Option<bool>>, (usize, usize), String) {
        let request = Request {
            live: true,
            ..Request::default()
        };
        let seen = Transferred {
            sent: messages,
            received: messages,
            wrong: 0,
        };
        let all = cases(&request).expect("nothing is asked for");
        let live: Vec<Trial> = all.into_iter().map(|case| (case, seen)).collect();
        let made = Made {
            said: vec![disturbed(ppm); live.len()],
            live,
            ..Made::nothing(&request)
        };
        let report = judge(&Udp, &made).expect("nothing is analysed");
        let seen = report.checks.iter().map(|check| check.seen.clone());
        let held = report.checks.iter().map(|check| check.held);
        (held.collect(), told_and_open(&report), seen.collect())
    }

    #[test]
    fn who_has_no_row_is_said_to_have_none_and_why() {
        let said = about_threadshare(Some("GStreamer has no element ts-udpsrc here"));
        assert!(said.contains("no row: GStreamer has no element ts-udpsrc here"));
        assert!(!about_threadshare(None).contains("no row"));
    }

    #[test]
    fn where_nothing_is_received_nothing_is_told_of_what_is_kept() {
        let (held, told_and_open, seen) = told(0, 0);
        assert_eq!(held, [Some(false), None, None], "{seen}");
        assert_eq!(told_and_open, (1, 2), "{seen}");
        assert!(!seen.contains("0 % at least"), "{seen}");
    }

    /// Thirty batches of twenty in 600 ms are due: who drops nothing of fewer, and keeps as few beside a load, has not sent what he is to.
    #[test]
    fn a_client_that_sends_too_little_or_too_much_is_seen() {
        for (messages, sends) in [(100, false), (599, false), (600, true), (601, false)] {
            let (held, _, seen) = told(messages, 0);
            assert_eq!(held, [sends, true, true].map(Some), "{messages}: {seen}");
        }
        // What the machine may have done is no fault of his.
        assert_eq!(told(599, 500_000).1, (0, 3));
    }
}
