//! A run that makes a network is killed, in the making of it too.

use laxity::doctor::rights::{self, Right};
use laxity::net::may_pair;

use super::LiveRun;
use super::common::Bench;
use super::common::machine::{FIFO, Machine, marked_processes, threads_of};

/// The rank of a driver's thread.
const INTERRUPT: u32 = 97;

/// A network for a second, in a namespace that is made for it.
const NETWORK: &str = r#"
[quick]
idle = "1s"

[interfaces.lan]

[flows.video]
kind = "video"

[clients.viewer]
interface = "lan"
flows = ["video"]
placement = "thread 24"

[variants.network]
on = "live"
clients = ["viewer"]
"#;

/// As soon as it has started anything, while packets come, and when they have come. Nobody has a name for its namespace, which is there as long as a process has something that was opened in it: the
/// run's, what it started, or its guardian.
#[test]
fn a_killed_network_leaves_nothing_and_the_next_begins_at_once() {
    let Some(_alone) = rights::require(&[Right::RealTime]) else {
        return;
    };
    if let Err(why) = may_pair() {
        return rights::lacks(&why.to_string());
    }
    let scenarios = Bench::new();
    let scenario = scenarios.write("network.toml", NETWORK);
    let start = || LiveRun::start(&scenario.display().to_string(), &[]);
    let has_driver = |run: &LiveRun| {
        let threads = threads_of(run.child.id());
        let mut all = threads.iter();
        all.any(|thread| (thread.policy, thread.priority) == (FIFO, INTERRUPT))
    };
    // Its guardian, or already who makes its interfaces.
    let has_begun = |run: &LiveRun| marked_processes(&run.mark).len() > 1;
    let before = Machine::now();
    for moment in ["it has begun", "packets come", "packets came"] {
        let mut run = start();
        let came = match moment {
            "it has begun" => run.reaches(moment, has_begun),
            _ => run.reaches(moment, has_driver),
        };
        if !came || moment == "packets came" && !run.reaches(moment, |run| !has_driver(run)) {
            return;
        }
        // It may have ended by itself by then.
        run.child.kill().expect("it is our child");
        run.ended();
        let mut next = start();
        if next.reaches("the next one's packets", has_driver) {
            next.murder(&before);
        }
        run.assert_cleared(&before);
    }
}
