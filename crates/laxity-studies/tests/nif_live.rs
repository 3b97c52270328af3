//! Tables 3 and 4 on this machine, by counts: what else it does makes frames late, and loses none.

use laxity::doctor::rights::{self, Right};
use laxity::net::may_pair;
use laxity::{LiveConfig, LiveHost};
use laxity_lab::bench::{Runner, Said};
use laxity_studies::nif::here::{Case, STREAMS, WAYS, run};

const INTERVALS: u64 = 6;

#[test]
fn frames_are_shown_in_each_way_and_streams_get_on_beside_them() {
    let Some(_turn) = rights::require(&[Right::RealTime]) else {
        return;
    };
    if let Err(why) = may_pair() {
        return rights::lacks(&why.to_string());
    }
    let mut host = LiveHost::new(LiveConfig::detect(1).expect("a processor may be used"));
    let mut said = Said::default();
    for way in WAYS {
        for streams in [0, STREAMS] {
            let case = Case {
                way,
                streams,
                intervals: INTERVALS,
                round: 0,
                seed: 1,
            };
            let mut runner = Runner::Live(&mut host, &mut said);
            let seen = run(&mut runner, &case).expect("it runs");
            // One frame at least, and no more than left: a machine that stands still takes what it likes of the rest.
            let [shown, left] = [&seen.all, &seen.left].map(|intervals| intervals.0.len() as u64);
            assert!(left <= INTERVALS && shown <= left, "{case:?}: {seen:?}");
            assert!(seen.undisturbed.0.len() as u64 <= shown);
            assert_eq!(seen.packets > 0, streams > 0, "{case:?}: {seen:?}");
            assert!(seen.busy_ppm > 0, "{case:?}: {seen:?}");
        }
    }
}
