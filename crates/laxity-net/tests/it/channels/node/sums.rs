//! Whether counts add up, at each node.

use laxity_model::channels::signalling::LinkId;
use laxity_net::channels::node::EndCounts;
use laxity_net::channels::path::Lane;

use super::world::World;

impl World {
    /// Everything that came is in exactly one of the counts of what became of it, at each host.
    pub(super) fn adds_up(&self) {
        for node in self.nodes() {
            assert!(node.signalling().agrees());
            let mut data = 0;
            for channel in node.signalling().channels() {
                for lane in Lane::ALL {
                    data += node.counts(channel.label, lane).map_or(0, came);
                }
            }
            let links = (0..2).filter_map(|link| node.link_counts(LinkId(link)));
            let (mut kept, mut dropped) = (0, 0);
            for counts in links {
                let refused = counts.malformed + counts.repeated + counts.forged + counts.refused;
                let known = counts.data + counts.signals + counts.handshakes;
                assert_eq!(counts.came, known + refused, "{counts:?}");
                kept += counts.data;
                dropped += counts.nobodys + counts.misdirected + counts.ended;
            }
            assert_eq!(kept, data + dropped);
        }
    }

    /// Nothing is left of any channel.
    pub(super) fn is_empty(&self) {
        for node in self.nodes() {
            assert_eq!(node.signalling().channels().count(), 0);
            assert!(node.signalling().agrees());
            assert!(node.holds_nothing());
        }
    }
}

/// How many frames of a lane came to a host. What it counts of them adds up.
fn came(counts: EndCounts) -> u64 {
    match counts {
        EndCounts::Begins(began, packets) => {
            let gone = packets.sent + packets.discarded + packets.refused + packets.closed;
            assert!(gone <= packets.queued);
            if let Some(began) = began {
                assert_eq!(began.source.taken, began.handler.messages);
                assert_eq!(began.handler.packets, packets.queued);
            }
            0
        }
        EndCounts::Passes(passed, packets) => {
            assert_eq!(passed.came, packets.queued + passed.dropped(), "{passed:?}");
            passed.came
        }
        EndCounts::Ends(came, ended) => {
            let dropped = came.doubled + came.stale + came.malformed + came.no_buffer;
            assert_eq!(came.came, came.stored + came.complete + dropped, "{came:?}");
            assert_eq!(came.complete, ended.complete);
            assert_eq!(
                ended.complete,
                ended.in_time + ended.late + ended.within_error
            );
            assert_eq!(
                ended.complete,
                ended.delivered + ended.discarded,
                "{ended:?}"
            );
            came.came
        }
    }
}
