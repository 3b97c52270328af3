//! The flagship's processes on this machine, judged by counts: this test starts them, each of which is this test once more.

use laxity::doctor::rights::{self, Right};
use laxity::net::may_pair;
use laxity::net::world::{Between, Queues};
use laxity::{HostError, LiveConfig, LiveHost};
use laxity_lab::bench::{Runner, Said};
use laxity_model::Span;
use laxity_studies::channels::flagship::judge::Judged;
use laxity_studies::channels::flagship::{Beside, Case, Outcome, Seen, Who, run};

fn ran(who: Who, between: Between, queues: Queues, beside: Beside) -> Outcome {
    let case = Case {
        who,
        between,
        queues,
        beside,
        length: Span::from_millis(400),
    };
    let seen = LiveConfig::detect(1)
        .map(LiveHost::new)
        .and_then(|mut host| run(&mut Runner::Live(&mut host, &mut Said::default()), case));
    match seen {
        Ok(Seen::Ran(outcome)) => *outcome,
        other => panic!("{case:?}: {other:?}"),
    }
}

/// Whether next to all came, in however long: a machine that stands still makes late what it likes.
fn came(judged: Judged) -> bool {
    judged.lost * 10 <= judged.due
}

/// A node at each host: beside what they carry themselves, behind a switch, and over relays.
fn nodes_carry() {
    for (between, beside) in [
        (Between::Wire, Beside::Own),
        (Between::Switch, Beside::Tcp),
        (Between::Relays(2), Beside::Udp),
    ] {
        let outcome = ran(Who::Channels, between, Queues::Node, beside);
        let [control, video] = outcome.flows;
        assert!(came(control) && came(video), "{outcome:?}");
        assert!(
            outcome.best_effort > 1_000_000 && outcome.best_effort < 110_000_000,
            "{outcome:?}"
        );
        let took = outcome.node_ppm.expect("nodes tell what they took");
        assert!(took > 0 && took < 1_000_000, "{outcome:?}");
    }
}

fn main() {
    let told: Vec<String> = std::env::args().collect();
    if let [_, peer, experiment, part] = &told[..]
        && peer == "peer"
    {
        if let Err(why) = laxity_studies::peer(experiment, part) {
            eprintln!("{why}");
            std::process::exit(1);
        }
        return;
    }
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    if let Err(why) = may_pair() {
        return rights::lacks(&why.to_string());
    }
    // The queue of 1,000 packets takes 115 ms, and what finds it full is lost.
    let [control, video] = ran(Who::Udp, Between::Wire, Queues::Fifo, Beside::Udp).flows;
    assert_eq!([control.due, video.due], [400, 12]);
    assert!(control.missed * 2 > control.due, "{control:?}");
    assert!(video.lost > 0 && !came(video), "{video:?}");
    for (who, between, beside) in [
        (Who::Udp, Between::Wire, Beside::Udp),
        (Who::Tcp, Between::Switch, Beside::Udp),
        (Who::Udp, Between::Relays(2), Beside::Tcp),
    ] {
        let outcome = ran(who, between, Queues::Class, beside);
        let [control, video] = outcome.flows;
        assert!(came(control) && came(video), "{outcome:?}");
        // No more than the link carries.
        assert!(
            outcome.best_effort > 1_000_000 && outcome.best_effort < 110_000_000,
            "{outcome:?}"
        );
    }
    nodes_carry();
    // The kernel has no session that best effort could be in.
    let case = Case {
        who: Who::Udp,
        between: Between::Wire,
        queues: Queues::Fifo,
        beside: Beside::Own,
        length: Span::from_millis(1),
    };
    let mut host = LiveHost::new(LiveConfig::detect(1).expect("it was there before"));
    let refused = run(&mut Runner::Live(&mut host, &mut Said::default()), case);
    assert!(
        matches!(refused, Err(HostError::BadProgram(_))),
        "{refused:?}"
    );
}
